//! `sfs fsck`: checks a volume that is not mounted, and repairs it.

use super::device::{Access, open};
use clap::Args;
use isotherm_fs::check::{Options, Repair, check};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `fsck`.
#[derive(Args)]
#[command(
    after_help = "Exit codes, as fsck(8) has them: 0 clean, 1 errors were corrected, 4 errors were left, 8 the check could not be carried out."
)]
pub struct FsckArgs {
    /// File or block device that holds the volume
    device: PathBuf,
    /// Repair nothing, only say what is wrong
    #[arg(short = 'n', long, conflicts_with = "repair")]
    no: bool,
    /// Repair what can be repaired
    #[arg(short = 'y', long, short_alias = 'a', short_alias = 'p')]
    repair: bool,
    /// Read all file data and verify its checksums too
    #[arg(long)]
    data: bool,
    /// Check even if the volume looks clean; it is always checked
    #[arg(short, hide = true)]
    force: bool,
}

/// Checks, and repairs if told to.
pub fn run(args: &FsckArgs) -> anyhow::Result<ExitCode> {
    let repairs = args.repair && !args.no;
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
    text += &match report.exit_code() {
        0 => format!("{name}: clean, {} pages of metadata, {} blocks of data\n", report.pages, report.data_blocks),
        1 => format!("{name}: errors were corrected\n"),
        4 if !repairs => format!("{name}: errors were found; `-y` repairs what can be repaired\n"),
        4 => format!("{name}: errors are left\n"),
        _ => format!("{name}: the check could not be carried out\n"),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::from(report.exit_code()))
}
