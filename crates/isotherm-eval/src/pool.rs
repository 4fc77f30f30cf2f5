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
    run_jobs(jobs, surveys, control, |at, result| {
        let result = result?;
        done(at, &result)?;
        Ok(result)
    })
}

/// Does every job, whatever becomes of the others: the result of each, or why it has none.
///
/// # Errors
/// The user stopped the work, or a job cannot start at all (see [`startable`]).
pub fn run_each<W: Work>(
    jobs: &[Job<W>],
    surveys: &Surveys,
    control: &Control,
) -> Result<Vec<Result<W::Result, EvalError>>, EvalError> {
    run_jobs(jobs, surveys, control, |_, result| match result {
        Err(EvalError::Interrupted) => Err(EvalError::Interrupted),
        result => Ok(result),
    })
}

/// Does every job; `keep` says what is kept of each, and whether the others go on.
fn run_jobs<W: Work, T: Send>(
    jobs: &[Job<W>],
    surveys: &Surveys,
    control: &Control,
    keep: impl Fn(usize, Result<W::Result, EvalError>) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
    // Everything that can be refused is refused before the first job starts.
    let prepared: Vec<Box<dyn Ready<W::Result> + '_>> =
        jobs.iter().map(|job| job.spec.prepare(surveys.get(&job.spec))).collect::<Result<_, _>>()?;
    let largest = prepared.iter().map(|p| p.memory_bytes()).max().unwrap_or(0).max(1);
    let fitting = memory::available().map_or(usize::MAX, |bytes| (bytes / largest) as usize);
    let run = |at: usize| {
        let named = |mut result: W::Result| {
            result.name(&jobs[at].label, &jobs[at].axes);
            result
        };
        keep(at, prepared[at].run(control).map(named))
    };
    let (timed, others): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(|&at| prepared[at].is_timed());
    let mut others_done = in_order(&others, cores().min(fitting), run)?.into_iter();
    let mut timed_done = in_order(&timed, 1, run)?.into_iter();
    let in_turn = prepared.iter().filter_map(|p| if p.is_timed() { timed_done.next() } else { others_done.next() });
    Ok(in_turn.collect())
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
        fails: bool,
        ran: &'a Mutex<Vec<u64>>,
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
            if self.fails {
                return Err(EvalError::Law("a test".to_owned()));
            }
            Ok(Numbered(self.number, String::new()))
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
            Ok(Box::new(self))
        }
    }

    #[test]
    fn jobs_that_measure_time_run_after_all_others_and_keep_their_place() {
        let ran = Mutex::new(Vec::new());
        let job = |number: u64| {
            let spec = Noting { number, is_timed: number.is_multiple_of(4), fails: false, ran: &ran };
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
    fn a_job_that_fails_does_not_lose_the_others() {
        let ran = Mutex::new(Vec::new());
        let job = |number: u64| {
            let spec = Noting { number, is_timed: false, fails: number == 5, ran: &ran };
            Job { spec, label: format!("job {number}"), axes: Map::new() }
        };
        let (jobs, refused) = startable((0..8).map(job).collect(), &Surveys::default());
        assert!(refused.is_empty());
        let results = run_each(&jobs, &Surveys::default(), &Control::default()).unwrap();
        let failed: Vec<_> = results.iter().map(Result::is_err).collect();
        assert_eq!(failed, [false, false, false, false, false, true, false, false], "job 5 fails");
        assert!(run_all(&jobs, &Surveys::default(), &Control::default(), |_, _| Ok(())).is_err());
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
