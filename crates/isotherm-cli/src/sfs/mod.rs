//! `isotherm sfs`: SFS as a file system that is made, mounted, looked at.

mod copying;
mod detached;
mod device;
mod dump;
mod files;
mod fsck;
mod look;
mod mkfs;
mod mount;
mod options;
mod remount;
mod replay;
mod signatures;
mod simulated;
mod watch;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `sfs`.
#[derive(Args)]
pub struct SfsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make an empty volume on a file or block device (also as mkfs.sfs)
    Mkfs(mkfs::MkfsArgs),
    /// Mount a volume in the background (also as mount.sfs)
    Mount(mount::MountArgs),
    /// Mount a volume and serve it until it is unmounted or interrupted
    Serve(mount::MountArgs),
    /// Check a volume that is not mounted, and repair it (also as fsck.sfs)
    Fsck(fsck::FsckArgs),
    /// Print a structure of a volume: superblock, segments, a page, an inode ... (also as dump.sfs)
    Dump(dump::DumpArgs),
    /// Put links named mkfs.sfs, fsck.sfs, dump.sfs, mount.sfs and mount.fuse.sfs into a folder, where mkfs(8), mount(8) and fstab(5) find them
    Helpers(HelpersArgs),
    /// Make everything durable that was written to a mounted volume: sync(2) does not reach it
    Sync(look::MountpointArgs),
    /// Print what a mounted volume counts, as JSON
    Stats(look::MountpointArgs),
    /// Print where every file of a volume lies on its device, as `filefrag -v` does: a map for `advise --file-map`
    Files(files::FilesArgs),
    /// Let the simulator decide again what a mounted volume decided, from a recording of `mount --record`
    Replay(replay::ReplayArgs),
    /// List a directory of a volume that is not mounted
    Ls(look::PathArgs),
    /// Print a file of a volume that is not mounted
    Cat(look::PathArgs),
    /// Copy a file or a directory out of a volume that is not mounted, with all that `cp -a` keeps
    Cp(copying::CopyArgs),
}

/// Runs the verb.
///
/// # Errors
/// The message names the place and the fix.
pub fn run(args: &SfsArgs) -> anyhow::Result<ExitCode> {
    match &args.verb {
        Verb::Mkfs(args) => mkfs::run(args),
        Verb::Mount(args) => mount::mount(args),
        Verb::Serve(args) => mount::serve(args),
        Verb::Dump(args) => dump::run(args),
        Verb::Fsck(args) => fsck::run(args),
        Verb::Helpers(args) => helpers(args),
        Verb::Sync(args) => look::sync(args),
        Verb::Stats(args) => look::stats(args),
        Verb::Files(args) => files::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Ls(args) => look::ls(args),
        Verb::Cat(args) => look::cat(args),
        Verb::Cp(args) => copying::run(args),
    }
}

/// The names that mount(8), mkfs(8) and their kind look for, and the verbs behind them.
const HELPERS: &[(&str, &str)] = &[
    ("mkfs.sfs", "mkfs"),
    ("fsck.sfs", "fsck"),
    ("dump.sfs", "dump"),
    ("mount.sfs", "mount"),
    ("mount.fuse.sfs", "mount"),
];

/// Arguments of `helpers`.
#[derive(Args)]
struct HelpersArgs {
    /// Folder
    #[arg(default_value = "/sbin")]
    folder: PathBuf,
}

/// Puts links to this program into a folder.
fn helpers(args: &HelpersArgs) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("the program's own file cannot be found")?;
    for (name, _) in HELPERS {
        let link = args.folder.join(name);
        if link.is_symlink() {
            std::fs::remove_file(&link).with_context(|| link.display().to_string())?;
        }
        std::os::unix::fs::symlink(&program, &link).with_context(|| link.display().to_string())?;
        println!("{}", link.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line as it is meant: called by the name of a helper, the program is that verb.
pub fn with_helper(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().map(|first| Path::new(first).file_name().unwrap_or_default().to_owned());
    let helper = HELPERS.iter().find(|(helper, _)| name.as_deref() == Some((*helper).as_ref()));
    if let Some((_, verb)) = helper {
        // Without the helper's own name, which help would print in front of the verb.
        arguments.splice(..1, ["isotherm".into(), "sfs".into(), (*verb).into()]);
    }
    if is_check(&arguments) { fsck::without_progress(arguments) } else { arguments }
}

/// The exit code of wrong use where it is another than that of all verbs: fsck(8) has one of its own.
pub fn code_of_wrong_use(arguments: &[OsString]) -> Option<u8> {
    is_check(arguments).then_some(16)
}

fn is_check(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, sfs, verb, ..] if sfs == "sfs" && verb == "fsck")
}
