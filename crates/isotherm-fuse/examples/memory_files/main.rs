//! A file system in memory, mounted until Ctrl-C. It does nothing that costs time, so that it shows what the way from the kernel to
//! a FUSE server costs; and it is complete, so that suites of tests try that way by it:
//!
//! ```sh
//! mkdir -p /tmp/files
//! cargo run --release -p isotherm-fuse --example memory_files -- /tmp/files --threads 4
//! ```
//!
//! When root mounts it, everyone may use it, and set-user-ID programs and device nodes work.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_fuse::Ending;
use isotherm_fuse::files::{FilesOptions, Rights, mount};
use isotherm_vfs::memory::{MemoryFileSystem, Options};

const USAGE: &str =
    "usage: memory_files MOUNTPOINT [--threads N] [--mebibytes N] [--read-only] [--no-access-times] [--write-back]";

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory_files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mountpoint = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let is_root = rustix::process::geteuid().is_root();
    let rights = Rights { suid: is_root, dev: is_root, ..Rights::default() };
    let mut options = FilesOptions { source: "memory".into(), rights, ..FilesOptions::default() };
    let mut room = Options::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => options.threads = arguments.next().ok_or(USAGE)?.parse()?,
            "--mebibytes" => room.capacity_bytes = arguments.next().ok_or(USAGE)?.parse::<u64>()? << 20,
            "--read-only" => options.read_only = true,
            "--no-access-times" => room.keeps_access_times = false,
            "--write-back" => options.writeback = true,
            _ => return Err(format!("{argument}: {USAGE}").into()),
        }
    }
    options.on_panic = Arc::new(|request| eprintln!("memory_files: {request} panicked"));
    let stop = Arc::new(AtomicBool::new(false));
    let stop_on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || stop_on_signal.store(true, Ordering::Relaxed))?;

    let files = Arc::new(MemoryFileSystem::new(room));
    let mut mounted = mount(files, &mountpoint, &options)?;
    println!("{}: files in memory until Ctrl-C", mounted.mountpoint().display());
    while !stop.load(Ordering::Relaxed) {
        if !mounted.wait(Duration::from_millis(100)) {
            println!("unmounted by somebody else");
            return Ok(());
        }
    }
    match mounted.unmount(Duration::from_secs(2))? {
        Ending::Clean => println!("unmounted"),
        Ending::Forced => println!("unmounted although somebody still had files open; they get errors from now on"),
    }
    Ok(())
}
