//! A disk in memory as a file, until Ctrl-C:
//!
//! ```sh
//! mkdir -p /tmp/disk
//! cargo run --release -p isotherm-fuse --example memory_disk -- /tmp/disk 1024    # MiB
//! ```

mod memory;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_fuse::Ending;
use isotherm_fuse::drive::{DiskFile, Options, mount};
use memory::Memory;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory_disk: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: memory_disk MOUNTPOINT [MEBIBYTES] [THREADS]";
    let mountpoint = PathBuf::from(arguments.next().ok_or(usage)?);
    let mebibytes: u64 = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let mut options = Options::default();
    if let Some(threads) = arguments.next() {
        options.threads = threads.parse()?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stop_on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || stop_on_signal.store(true, Ordering::Relaxed))?;

    let export = Arc::new(Memory::new(mebibytes << 20));
    let mut mounted = mount(vec![DiskFile::new(export)], &mountpoint, &options)?;
    println!("{}: {mebibytes} MiB until Ctrl-C", mounted.mountpoint().join("disk").display());
    while !stop.load(Ordering::Relaxed) {
        if !mounted.wait(Duration::from_millis(100)) {
            println!("unmounted by somebody else");
            return Ok(());
        }
    }
    match mounted.unmount(Duration::from_secs(2))? {
        Ending::Clean => println!("unmounted"),
        Ending::Forced => println!("unmounted although somebody still had the file open; they get errors from now on"),
    }
    Ok(())
}
