//! Many runs over all cores: as many at a time as there are cores and as memory holds, in the order given.
//!
//! Traces are surveyed once for each page size and folding, however many runs replay them. Results stand in the order of
//! the jobs, whichever finished first, so that the number of cores does not show in them.

use crate::error::EvalError;
use crate::fold::AddressMode;
use crate::memory;
use crate::results::RunResult;
use crate::run::{Control, RunSpec, needs_survey, prepare, survey};
use crate::source::Survey;
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run with the names under which it is shown.
#[derive(Clone, Debug)]
pub struct Job {
    /// Everything that determines the run.
    pub spec: RunSpec,
    /// What tells it from its neighbours.
    pub label: String,
    /// Value of each axis that is varied.
    pub axes: Map<String, Value>,
}

/// Surveys that several jobs share: one for each trace, page size and folding.
#[derive(Default)]
pub struct Surveys(Vec<((String, u64, AddressMode), Survey)>);

impl Surveys {
    fn key(spec: &RunSpec) -> (String, u64, AddressMode) {
        (spec.trace.name.clone(), spec.device.device.page_size.0, spec.replay.address)
    }

    /// Surveys every trace that a job needs surveyed, over all cores.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn of(jobs: &[Job]) -> Result<Self, EvalError> {
        let mut wanted: Vec<&RunSpec> = Vec::new();
        for job in jobs {
            if needs_survey(&job.spec) && wanted.iter().all(|spec| Self::key(spec) != Self::key(&job.spec)) {
                wanted.push(&job.spec);
            }
        }
        let surveys = in_order(wanted.len(), cores(), |at| survey(wanted[at]))?;
        Ok(Self(wanted.into_iter().map(Self::key).zip(surveys).collect()))
    }

    /// The survey for a run, if it needs one.
    pub fn get(&self, spec: &RunSpec) -> Option<&Survey> {
        let key = Self::key(spec);
        self.0.iter().find(|s| s.0 == key).map(|s| &s.1)
    }

    /// Host pages that the measured parts of `jobs` will write; `None` where some trace was not surveyed.
    pub fn pages(&self, jobs: &[Job]) -> Option<u64> {
        jobs.iter().map(|j| Some(self.get(&j.spec)?.page_writes * u64::from(j.spec.replay.repeat))).sum()
    }
}

/// Runs every job; `done` hears of each result as it comes, with the job's position.
///
/// # Errors
/// The first job, in order, that failed. The others that had started are finished.
pub fn run_all(
    jobs: &[Job],
    surveys: &Surveys,
    control: &Control,
    done: impl Fn(usize, &RunResult) -> Result<(), EvalError> + Sync,
) -> Result<Vec<RunResult>, EvalError> {
    // Everything that can be refused is refused before the first run starts.
    let prepared = jobs.iter().map(|job| prepare(&job.spec, surveys.get(&job.spec))).collect::<Result<Vec<_>, _>>()?;
    let largest = prepared.iter().map(|p| p.memory_bytes()).max().unwrap_or(0).max(1);
    let fitting = memory::available().map_or(usize::MAX, |bytes| (bytes / largest) as usize);
    in_order(jobs.len(), cores().min(fitting), |at| {
        let mut result = prepared[at].run(control)?;
        result.label.clone_from(&jobs[at].label);
        result.axes.clone_from(&jobs[at].axes);
        done(at, &result)?;
        Ok(result)
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Calls `work` for `0..count` on at most `workers` threads, lowest first, and gives the results in order. After a failure
/// nothing later is started.
fn in_order<T: Send>(
    count: usize,
    workers: usize,
    work: impl Fn(usize) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
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
                    let result = work(at);
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

    #[test]
    fn results_stand_in_order_and_the_first_failure_is_told() {
        let squares = in_order(100, 4, |at| Ok(at * at)).unwrap();
        assert!(squares.iter().enumerate().all(|(at, square)| *square == at * at));
        let failure = in_order(100, 4, |at| if at < 7 { Ok(at) } else { Err(EvalError::Law(at.to_string())) });
        assert!(matches!(failure, Err(EvalError::Law(at)) if at == "7"));
        assert!(in_order(0, 4, |_| Ok(())).unwrap().is_empty());
    }
}
