//! `sfs fsck`: checks a volume that is not mounted, and repairs it.

use super::device::{Access, mountpoint_of, open};
use clap::Args;
use isotherm_fs::check::{Options, Repair, check};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `fsck`.
#[derive(Args)]
#[command(
    after_help = "Exit codes, as fsck(8) has them: 0 clean, 1 errors were corrected, 4 errors were left, 8 the check could not be carried out, 16 wrong use."
)]
pub struct FsckArgs {
    /// File or block device that holds the volume
    device: PathBuf,
    /// Repair nothing, only say what is wrong
    #[arg(short = 'n', long, conflicts_with = "repair")]
    no: bool,
    /// Repair what can be repaired
    #[arg(short = 'y', long, short_aliases = ['a', 'p'], overrides_with = "repair")]
    repair: bool,
    /// Read all file data and verify its checksums too
    #[arg(long)]
    data: bool,
    /// Check even if the volume looks clean; it is always checked
    #[arg(short, hide = true)]
    force: bool,
    /// Leave a volume that is mounted alone: exit code 0
    #[arg(short = 'M')]
    skips_mounted: bool,
    /// Options of other checkers, which fsck(8) passes on: asking before a repair, more words, no title; without effect
    #[arg(short = 'r', short_aliases = ['V', 'T'], action = clap::ArgAction::Count, hide = true)]
    of_others: u8,
}

/// fsck(8) names a descriptor for a progress bar, `-C3` or `-C`, to every checker. There is no bar here.
pub fn without_progress(words: Vec<OsString>) -> Vec<OsString> {
    let is_progress = |word: &OsString| {
        word.to_str()
            .and_then(|word| word.strip_prefix("-C"))
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.into_iter().filter(|word| !is_progress(word)).collect()
}

/// Checks, and repairs if told to.
pub fn run(args: &FsckArgs) -> anyhow::Result<ExitCode> {
    let repairs = args.repair && !args.no;
    if args.skips_mounted && mountpoint_of(&args.device).is_some() {
        crate::output::print(&format!("{}: is mounted, and was not checked\n", args.device.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let device = match open(&args.device, if repairs { Access::Write } else { Access::Read }, || true) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("isotherm: {error:#}");
            return Ok(ExitCode::from(8));
        }
    };
    let repair = if repairs { Repair::Yes } else { Repair::No };
    let report = check(device, Options { repair, verifies_data: args.data, now: super::mount::now() });
    let mut text = String::new();
    for finding in &report.findings {
        text += &format!("{finding}\n");
    }
    for action in &report.actions {
        text += &format!("{action}\n");
    }
    let name = args.device.display();
    let clean = if report.has_crashed() { "clean when its log is rolled forward, as a mount does" } else { "clean" };
    text += &match report.exit_code() {
        0 => format!("{name}: {clean}, {} pages of metadata, {} blocks of data\n", report.pages, report.data_blocks),
        1 => format!("{name}: errors were corrected\n"),
        4 if !repairs && report.is_beyond_repair => {
            format!("{name}: errors were found, and among them some that `-y` cannot repair\n")
        }
        4 if !repairs => format!("{name}: errors were found; `-y` repairs what can be repaired\n"),
        4 => format!("{name}: errors are left\n"),
        _ => format!("{name}: the check could not be carried out\n"),
    };
    // To fsck(8), 2 asks for the machine to be restarted.
    if let Err(error) = crate::output::print(&text) {
        eprintln!("isotherm: {error:#}");
        return Ok(ExitCode::from(report.exit_code() | 8));
    }
    Ok(ExitCode::from(report.exit_code()))
}
