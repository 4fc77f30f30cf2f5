//! Long work: it runs on a thread of its own, with the interpreter released, while the calling thread listens for Ctrl-C and
//! tells of progress.

use isotherm_eval::Control;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked for and progress is told.
const TICK: Duration = Duration::from_millis(50);

/// Does `work`; `progress` is called with the host pages that are done.
///
/// # Errors
/// What a signal handler or `progress` raises, once the work has stopped; a panic, which is a bug.
pub fn watched<T: Send>(
    py: Python<'_>,
    control: &Control,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (done, mut waiting) = channel::<()>();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(done);
            result
        });
        let mut raised: Option<PyErr> = None;
        let mut told = u64::MAX;
        let mut runs_on = || {
            let waiting = &mut waiting;
            py.detach(move || waiting.recv_timeout(TICK)) == Err(RecvTimeoutError::Timeout)
        };
        while runs_on() {
            if raised.is_some() {
                continue;
            }
            let tell = |told: &mut u64| {
                let pages = control.pages_done.load(Ordering::Relaxed);
                let is_news = std::mem::replace(told, pages) != pages;
                progress.filter(|_| is_news).map_or(Ok(()), |progress| progress.call1((pages,)).map(|_| ()))
            };
            if let Err(error) = py.check_signals().and_then(|()| tell(&mut told)) {
                control.stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
        }
        let result = py.detach(|| worker.join()).and_then(|result| result);
        if let Some(error) = raised {
            return Err(error);
        }
        if let (Some(progress), Ok(_)) = (progress, &result) {
            progress.call1((control.pages_done.load(Ordering::Relaxed),))?;
        }
        result.map_err(|panic| {
            let text =
                panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            PyRuntimeError::new_err(format!(
                "internal error: {}; this is a bug of isotherm, please report it",
                text.unwrap_or("a panic")
            ))
        })
    })
}
