//! Threads that carry out write-back, as those must do that serve a file under a loop device.
//!
//! When memory runs short, the kernel lets whoever asks for some wait until changed pages are written. A thread that those pages
//! must pass on their way to the disk would wait for itself. `PR_SET_IO_FLUSHER` (prctl(2)) exempts it.

/// Tells the kernel that this thread, and those that it starts from now on, carry out write-back.
///
/// Needs `CAP_SYS_RESOURCE`; who has not got that cannot set up a loop device either.
pub(crate) fn promise_to_write_back() {
    let _ = rustix::process::configure_io_flusher_behavior(true);
}
