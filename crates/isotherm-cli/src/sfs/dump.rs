//! `sfs dump`: any structure of a volume as text.

use super::device::{Access, open};
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_fs::check::dump::{What, dump};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `dump`.
#[derive(Args)]
pub struct DumpArgs {
    /// File or block device that holds the volume
    device: PathBuf,
    /// superblock, checkpoints, segments, or with a number: summaries SEGMENT, page ID, inode INO, directory INO, block INO BLOCK
    #[arg(required = true, num_args = 1..=3)]
    what: Vec<String>,
}

/// Prints the structure.
pub fn run(args: &DumpArgs) -> anyhow::Result<ExitCode> {
    let number = |index: usize| -> anyhow::Result<u64> {
        let text = args.what.get(index).with_context(|| format!("{}: a number is missing", args.what[0]))?;
        text.parse().with_context(|| format!("{text}: no number"))
    };
    let small = |index: usize| -> anyhow::Result<u32> {
        let number = number(index)?;
        number.try_into().with_context(|| format!("{number}: too large"))
    };
    let what = match args.what[0].as_str() {
        "superblock" => What::Superblock,
        "checkpoints" => What::Checkpoints,
        "segments" => What::Segments,
        "summaries" => What::Summaries(small(1)?),
        "page" => What::Page(small(1)?),
        "inode" => What::Inode(number(1)?),
        "directory" => What::Directory(number(1)?),
        "block" => What::Block { ino: number(1)?, block: number(2)? },
        other => bail!("{other}: give superblock, checkpoints, segments, summaries, page, inode, directory or block"),
    };
    let mut text = String::new();
    let dumped = dump(open(&args.device, Access::Read, || true)?, what, &mut text);
    // What was found up to an error may tell why.
    crate::output::print(&text)?;
    dumped.with_context(|| args.device.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
