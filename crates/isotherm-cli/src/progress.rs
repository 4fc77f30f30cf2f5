//! The progress bar, and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isotherm_eval::Control;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// A control whose `stop` Ctrl-C sets: runs end at their next batch, and no file is left half written.
pub fn interruptible() -> anyhow::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let seen = Arc::clone(&control);
    ctrlc::set_handler(move || seen.stop.store(true, Ordering::Relaxed))?;
    Ok(control)
}

/// Runs `work` with a bar on standard error that follows `control`; without a terminal there is no bar.
pub fn with_bar<T>(control: &Control, total_pages: Option<u64>, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (bar, template) = match total_pages {
        Some(total) => (ProgressBar::new(total), "{wide_bar} {percent} %  {msg}  {eta} left"),
        None => (ProgressBar::no_length(), "{spinner} {msg}  {elapsed} so far"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(template).expect("the template is fixed and valid"));
    let finished = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                let done = control.pages_done.load(Ordering::Relaxed);
                bar.set_position(done);
                let rate = done as f64 / bar.elapsed().as_secs_f64().max(1e-3);
                bar.set_message(format!("{} host writes/s", crate::output::count(rate)));
                std::thread::park_timeout(TICK);
            }
        });
        let result = work();
        finished.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    });
    bar.finish_and_clear();
    result
}
