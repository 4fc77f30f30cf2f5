//! The progress bar, and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isotherm_eval::Control;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// How often a stage that takes long is told of where there is no bar.
const STAGE_TOLD_EVERY: Duration = Duration::from_secs(60);

/// What Ctrl-C stops: the newest control that there is.
static STOPPED_BY_INTERRUPT: Mutex<Weak<Control>> = Mutex::new(Weak::new());

/// A control whose `stop` Ctrl-C sets: runs end at their next batch, and no file is left half written. A process can ask for one
/// again, as a Python program does that gives several commands.
pub fn interruptible() -> anyhow::Result<Arc<Control>> {
    static HANDLER: OnceLock<Result<(), String>> = OnceLock::new();
    let newest = || STOPPED_BY_INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner);
    let control = Arc::new(Control::default());
    *newest() = Arc::downgrade(&control);
    let stop = move || {
        if let Some(control) = newest().upgrade() {
            control.stop.store(true, Ordering::Relaxed);
        }
    };
    let handled = HANDLER.get_or_init(|| ctrlc::set_handler(stop).map_err(|error| error.to_string()));
    handled.clone().map_err(|error| anyhow::anyhow!("signals cannot be caught: {error}"))?;
    Ok(control)
}

/// Runs `work` with a bar on standard error that follows `control`. Without a terminal there is a line for each stage of work that
/// has several, and one for each minute of a stage.
pub fn with_bar<T>(control: &Control, total_pages: Option<u64>, work: impl FnOnce() -> T) -> T {
    let pages_done = || control.pages_done.load(Ordering::Relaxed);
    if !std::io::stderr().is_terminal() {
        let mut told = (String::new(), Instant::now());
        let look = || {
            let stage = control.stage();
            if stage != told.0 {
                eprintln!("{stage}");
                told = (stage, Instant::now());
            } else if !stage.is_empty() && told.1.elapsed() >= STAGE_TOLD_EVERY {
                eprintln!("{stage}: {} host page writes so far", crate::output::count(pages_done() as f64));
                told.1 = Instant::now();
            }
        };
        return watched(look, work);
    }
    let (bar, template) = match total_pages {
        Some(total) => (ProgressBar::new(total), "{wide_bar} {percent} %  {msg}  {eta} left"),
        None => (ProgressBar::no_length(), "{spinner} {msg}  {elapsed} so far"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(template).expect("the template is fixed and valid"));
    let look = || {
        let done = pages_done();
        bar.set_position(done);
        let rate = done as f64 / bar.elapsed().as_secs_f64().max(1e-3);
        let stage = control.stage();
        let separator = if stage.is_empty() { "" } else { ": " };
        bar.set_message(format!("{stage}{separator}{} host writes/s", crate::output::count(rate)));
    };
    let result = watched(look, work);
    bar.finish_and_clear();
    result
}

/// Runs `work` while another thread looks at it every [`TICK`].
fn watched<T>(mut look: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                look();
                std::thread::park_timeout(TICK);
            }
        });
        let result = work();
        finished.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_ask_twice_and_the_newest_is_stopped() {
        let first = interruptible().unwrap();
        let second = interruptible().unwrap();
        let newest = STOPPED_BY_INTERRUPT.lock().unwrap().upgrade().unwrap();
        assert!(Arc::ptr_eq(&newest, &second) && !Arc::ptr_eq(&newest, &first));
    }
}
