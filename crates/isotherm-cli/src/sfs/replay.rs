//! `sfs replay`: a recording of a mount, decided again by the simulator.

use anyhow::Context as _;
use clap::Args;
use isotherm_fs::recording::recorder::read;
use isotherm_fs::recording::replay::replay;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `replay`.
#[derive(Args)]
pub struct ReplayArgs {
    /// What `sfs mount --record` has written
    recording: PathBuf,
}

/// Replays, and prints what was compared.
pub fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let name = || args.recording.display().to_string();
    let file = File::open(&args.recording).with_context(name)?;
    let replayed = replay(read(BufReader::with_capacity(1 << 20, file))).with_context(name)?;
    println!(
        "{} events: {} writes of {} blocks, {} victims and {} checkpoints are the same{}",
        replayed.events,
        replayed.writes,
        replayed.blocks,
        replayed.victims,
        replayed.checkpoints,
        if replayed.is_whole { "" } else { "; the recording ends before the volume was unmounted" }
    );
    Ok(ExitCode::SUCCESS)
}
