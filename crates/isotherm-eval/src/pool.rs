//! Many jobs over all cores: as many at a time as there are cores and as memory holds, in the order given.
//!
//! A kind of job implements [`Work`]: what it needs to know of its trace, how much memory it takes, and how it is done.
//! Traces are surveyed once for each page size and folding, however many jobs read them. Results stand in the order of
//! the jobs, whichever finished first, so that the number of cores does not show in them.

use crate::control::Control;
use crate::error::EvalError;
use crate::memory;
use crate::source::{Survey, SurveyKey};
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A job with the names under which its result is shown.
#[derive(Clone, Debug)]
pub struct Job<W> {
    /// Everything that determines the result.
    pub spec: W,
    /// What tells it from its neighbours.
    pub label: String,
    /// Value of each axis that is varied.
    pub axes: Map<String, Value>,
}

/// A kind of job.
pub trait Work: Sync {
    /// What it leaves behind.
    type Result: Named + Send;

    /// The survey that it reads, if any.
    fn survey_key(&self) -> SurveyKey;
    /// Whether it cannot start without its survey.
    fn needs_survey(&self) -> bool;
    /// Host pages that it will work through.
    fn pages(&self, survey: &Survey) -> u64;
    /// Checks everything that can be refused before memory is allocated.
    ///
    /// # Errors
    /// What is asked for does not exist, does not fit, or needs more memory than there is.
    fn prepare<'a>(&'a self, survey: Option<&Survey>) -> Result<Box<dyn Ready<Self::Result> + 'a>, EvalError>;
}

/// A job that is ready to start.
pub trait Ready<R>: Sync {
    /// Memory that it will take, estimated.
    fn memory_bytes(&self) -> u64;
    /// Whether its result holds times of this machine: then it runs alone, after all others.
    fn is_timed(&self) -> bool {
        false
    }
    /// Does it.
    ///
    /// # Errors
    /// The trace cannot be read, the work fails, or the user stopped.
    fn run(&self, control: &Control) -> Result<R, EvalError>;
}

/// A result that carries the names of its job.
pub trait Named {
    /// Sets them.
    fn name(&mut self, label: &str, axes: &Map<String, Value>);
}

/// Surveys that several jobs share: one for each trace, page size and folding.
#[derive(Default)]
pub struct Surveys(Vec<(SurveyKey, Survey)>);

impl Surveys {
    /// Surveys every trace that a job needs surveyed, over all cores.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn of<W: Work>(jobs: &[Job<W>]) -> Result<Self, EvalError> {
        let mut wanted: Vec<SurveyKey> = Vec::new();
        for job in jobs.iter().filter(|job| job.spec.needs_survey()) {
            if !wanted.contains(&job.spec.survey_key()) {
                wanted.push(job.spec.survey_key());
            }
        }
        let every: Vec<usize> = (0..wanted.len()).collect();
        let surveys = in_order(&every, cores(), |at| wanted[at].survey())?;
        Ok(Self(wanted.into_iter().zip(surveys).collect()))
    }

    /// Takes in further surveys.
    pub fn join(&mut self, others: Self) {
        for (key, survey) in others.0 {
            if self.0.iter().all(|(known, _)| *known != key) {
                self.0.push((key, survey));
            }
        }
    }

    /// The survey for a job, if it needs one.
    pub fn get<W: Work>(&self, spec: &W) -> Option<&Survey> {
        let key = spec.survey_key();
        self.0.iter().find(|s| s.0 == key).map(|s| &s.1)
    }

    /// Host pages that `jobs` will work through; `None` where some trace was not surveyed.
    pub fn pages<W: Work>(&self, jobs: &[Job<W>]) -> Option<u64> {
        jobs.iter().map(|job| Some(job.spec.pages(self.get(&job.spec)?))).sum()
    }
}

/// Jobs that cannot start, each with the reason.
pub type Refused<W> = Vec<(Job<W>, EvalError)>;

/// Parts jobs that can start from those that cannot, before any of them starts.
pub fn startable<W: Work>(jobs: Vec<Job<W>>, surveys: &Surveys) -> (Vec<Job<W>>, Refused<W>) {
    let (mut can, mut cannot) = (Vec::new(), Vec::new());
    for job in jobs {
        let refused = job.spec.prepare(surveys.get(&job.spec)).err();
        match refused {
            None => can.push(job),
            Some(reason) => cannot.push((job, reason)),
        }
    }
    (can, cannot)
}

/// Does every job; `done` hears of each result as it comes, with the job's position. Jobs that measure time run alone, after
/// all others.
///
/// # Errors
/// The first job, in order, that failed. The others that had started are finished.
pub fn run_all<W: Work>(
    jobs: &[Job<W>],
    surveys: &Surveys,
    control: &Control,
    done: impl Fn(usize, &W::Result) -> Result<(), EvalError> + Sync,
) -> Result<Vec<W::Result>, EvalError> {
    // Everything that can be refused is refused before the first job starts.
    let ready: Vec<_> = prepared(jobs, surveys).collect::<Result<_, _>>()?;
    run_jobs(jobs, ready.into_iter().map(Ok), control, |at, result| {
        let result = result?;
        done(at, &result)?;
        Ok(result)
    })
}

/// Does every job, whatever becomes of the others; `keep` hears of each, or why it has no result, as it comes, with the job's
/// position, and says what is kept of it.
///
/// # Errors
/// The user stopped the work, or what `keep` gives: then no other job starts.
pub fn run_each<W: Work, T: Send>(
    jobs: &[Job<W>],
    surveys: &Surveys,
    control: &Control,
    keep: impl Fn(usize, Result<W::Result, EvalError>) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
    run_jobs(jobs, prepared(jobs, surveys), control, |at, result| match result {
        Err(EvalError::Interrupted) => Err(EvalError::Interrupted),
        result => keep(at, result),
    })
}

/// A job as it is ready, or why it cannot start.
type Prepared<'a, R> = Result<Box<dyn Ready<R> + 'a>, EvalError>;

fn prepared<'a, W: Work>(jobs: &'a [Job<W>], surveys: &Surveys) -> impl Iterator<Item = Prepared<'a, W::Result>> {
    jobs.iter().map(|job| job.spec.prepare(surveys.get(&job.spec)))
}

/// Does every job; `keep` says what is kept of each, and whether the others go on.
fn run_jobs<'a, W: Work, T: Send>(
    jobs: &'a [Job<W>],
    prepared: impl Iterator<Item = Prepared<'a, W::Result>>,
    control: &Control,
    keep: impl Fn(usize, Result<W::Result, EvalError>) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
    let mut kept: Vec<Option<T>> = Vec::new();
    let mut ready = Vec::new();
    for (at, prepared) in prepared.enumerate() {
        kept.push(match prepared {
            Ok(job) => {
                ready.push((at, job));
                None
            }
            Err(problem) => Some(keep(at, Err(problem))?),
        });
    }
    let largest = ready.iter().map(|(_, job)| job.memory_bytes()).max().unwrap_or(0).max(1);
    let fitting = memory::available().map_or(usize::MAX, |bytes| (bytes / largest) as usize);
    let run = |which: usize| {
        let (at, job) = &ready[which];
        let named = |mut result: W::Result| {
            result.name(&jobs[*at].label, &jobs[*at].axes);
            result
        };
        keep(*at, job.run(control).map(named))
    };
    let (timed, others): (Vec<usize>, Vec<usize>) = (0..ready.len()).partition(|&which| ready[which].1.is_timed());
    for (group, workers) in [(others, cores().min(fitting)), (timed, 1)] {
        for (which, result) in group.iter().zip(in_order(&group, workers, run)?) {
            kept[ready[*which].0] = Some(result);
        }
    }
    Ok(kept.into_iter().flatten().collect())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Calls `work` for each of `items` on at most `workers` threads, first ones first, and gives the results in order. After a
/// failure nothing later is started.
fn in_order<T: Send>(
    items: &[usize],
    workers: usize,
    work: impl Fn(usize) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
    let count = items.len();
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let slots: Mutex<Vec<Option<Result<T, EvalError>>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(count).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count || failed.load(Ordering::Relaxed) < at {
                        return;
                    }
                    let result = work(items[at]);
                    if result.is_err() {
                        failed.fetch_min(at, Ordering::Relaxed);
                    }
                    slots.lock().expect("no worker panics while it holds the lock")[at] = Some(result);
                }
            });
        }
    });
    // Something is left out only after an earlier failure, so that collecting meets the failure first.
    slots.into_inner().expect("no worker panics while it holds the lock").into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that notes when it ran.
    struct Noting<'a> {
        number: u64,
        is_timed: bool,
        fate: Fate,
        ran: &'a Mutex<Vec<u64>>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        Good,
        Refused,
        Fails,
        Broken,
    }

    fn no_writes() -> EvalError {
        EvalError::NoWrites { trace: "a test".to_owned() }
    }

    struct Numbered(u64, String);

    impl Named for Numbered {
        fn name(&mut self, label: &str, _: &Map<String, Value>) {
            label.clone_into(&mut self.1);
        }
    }

    impl Ready<Numbered> for &Noting<'_> {
        fn memory_bytes(&self) -> u64 {
            1
        }
        fn is_timed(&self) -> bool {
            self.is_timed
        }
        fn run(&self, _: &Control) -> Result<Numbered, EvalError> {
            self.ran.lock().unwrap().push(self.number);
            match self.fate {
                Fate::Fails => Err(no_writes()),
                Fate::Broken => Err(EvalError::Law("a test".to_owned())),
                _ => Ok(Numbered(self.number, String::new())),
            }
        }
    }

    impl Work for Noting<'_> {
        type Result = Numbered;
        fn survey_key(&self) -> SurveyKey {
            SurveyKey { trace: crate::source::TraceSource::new("none"), page_bytes: 4096, touched: false }
        }
        fn needs_survey(&self) -> bool {
            false
        }
        fn pages(&self, _: &Survey) -> u64 {
            0
        }
        fn prepare<'a>(&'a self, _: Option<&Survey>) -> Result<Box<dyn Ready<Numbered> + 'a>, EvalError> {
            if self.fate == Fate::Refused { Err(no_writes()) } else { Ok(Box::new(self)) }
        }
    }

    #[test]
    fn jobs_that_measure_time_run_after_all_others_and_keep_their_place() {
        let ran = Mutex::new(Vec::new());
        let job = |number: u64| {
            let spec = Noting { number, is_timed: number.is_multiple_of(4), fate: Fate::Good, ran: &ran };
            Job { spec, label: format!("job {number}"), axes: Map::new() }
        };
        let jobs: Vec<_> = (0..10).map(job).collect();
        let results = run_all(&jobs, &Surveys::default(), &Control::default(), |_, _| Ok(())).unwrap();
        let found: Vec<_> = results.iter().map(|result| (result.0, result.1.as_str())).collect();
        let expected: Vec<String> = (0..10).map(|number| format!("job {number}")).collect();
        assert_eq!(found, (0..10).zip(expected.iter().map(String::as_str)).collect::<Vec<_>>());
        assert_eq!(ran.into_inner().unwrap()[7..], [0, 4, 8]);
    }

    #[test]
    fn a_job_that_cannot_start_or_fails_does_not_lose_the_others() {
        let ran = Mutex::new(Vec::new());
        let jobs = |broken: u64| -> Vec<Job<Noting<'_>>> {
            let job = |number: u64| {
                let fate = match number {
                    2 => Fate::Refused,
                    5 => Fate::Fails,
                    number if number == broken => Fate::Broken,
                    _ => Fate::Good,
                };
                let spec = Noting { number, is_timed: number == 0, fate, ran: &ran };
                Job { spec, label: format!("job {number}"), axes: Map::new() }
            };
            (0..8).map(job).collect()
        };
        let heard = Mutex::new(vec![None; 8]);
        let hear = |at: usize, result: Result<Numbered, EvalError>| {
            heard.lock().unwrap()[at] = Some(result.is_ok());
            match result {
                Err(broken @ EvalError::Law(_)) => Err(broken),
                result => Ok(result.ok().map(|numbered| numbered.0)),
            }
        };
        let numbers = run_each(&jobs(8), &Surveys::default(), &Control::default(), hear).unwrap();
        assert_eq!(numbers, [Some(0), Some(1), None, Some(3), Some(4), None, Some(6), Some(7)]);
        let expected: Vec<_> = numbers.iter().map(|number| Some(number.is_some())).collect();
        assert_eq!(*heard.lock().unwrap(), expected);
        assert!(!ran.lock().unwrap().contains(&2), "what cannot start does not run");

        let (can, cannot) = startable(jobs(8), &Surveys::default());
        assert_eq!((can.len(), cannot.len()), (7, 1));
        assert!(run_all(&can, &Surveys::default(), &Control::default(), |_, _| Ok(())).is_err());
        ran.lock().unwrap().clear();
        assert!(run_all(&jobs(8), &Surveys::default(), &Control::default(), |_, _| Ok(())).is_err());
        assert!(ran.lock().unwrap().is_empty(), "nothing starts where one of all cannot");
        let law = run_each(&jobs(6), &Surveys::default(), &Control::default(), hear);
        assert!(matches!(law, Err(EvalError::Law(_))), "whoever hears of it may end everything");
    }

    #[test]
    fn results_stand_in_order_and_the_first_failure_is_told() {
        let hundred: Vec<usize> = (0..100).collect();
        let squares = in_order(&hundred, 4, |at| Ok(at * at)).unwrap();
        assert!(squares.iter().enumerate().all(|(at, square)| *square == at * at));
        let failure = in_order(&hundred, 4, |at| if at < 7 { Ok(at) } else { Err(EvalError::Law(at.to_string())) });
        assert!(matches!(failure, Err(EvalError::Law(at)) if at == "7"));
        assert!(in_order(&[], 4, |_| Ok(())).unwrap().is_empty());
    }
}
