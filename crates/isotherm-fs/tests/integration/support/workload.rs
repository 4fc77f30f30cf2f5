//! Requests that look random, over a few names.

use super::operation::Operation;
use super::random::Random;
use isotherm_vfs::{Caller, RenameMode};

const DIRECTORIES: [&str; 4] = ["", "a", "b", "a/c"];
const NAMES: [&str; 4] = ["x", "y", "z", "c"];

/// What is asked for how often.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Blocks of a file that are written usually.
    pub blocks: u64,
    /// Times in a hundred that something is made durable.
    pub durable: u64,
    /// Times in a hundred that something is truncated or removed.
    pub removals: u64,
}

/// Some path.
fn path(random: &mut Random) -> String {
    let directory = DIRECTORIES[random.below(4) as usize];
    let name = NAMES[random.below(4) as usize];
    if directory.is_empty() {
        // Directories are there more often than not.
        let name = if random.chance(30) { DIRECTORIES[1 + random.below(2) as usize] } else { name };
        return name.into();
    }
    format!("{directory}/{name}")
}

/// The next request: `files` are the paths of files that are there.
pub fn next(random: &mut Random, files: &[String], stamp: u64, mix: Mix) -> Operation {
    let file = |random: &mut Random| match files.len() {
        0 => path(random),
        count => files[random.below(count as u64) as usize].clone(),
    };
    if random.chance(mix.durable) {
        return match random.below(12) {
            0..5 => Operation::Fsync(file(random)),
            5..7 => Operation::FsyncDirectory(DIRECTORIES[random.below(3) as usize].into()),
            7 => Operation::Sync,
            8 | 9 => Operation::WriteGroups,
            10 => Operation::Checkpoint,
            _ => Operation::CleanAhead,
        };
    }
    if random.chance(mix.removals) {
        return match random.below(6) {
            0 => Operation::RemoveDirectory(path(random)),
            1 => Operation::Unlink(path(random)),
            2 => Operation::Unlink(file(random)),
            3 => Operation::Punch { path: file(random), offset: offset(random, mix), length: length(random, mix) },
            _ => Operation::Truncate { path: file(random), size: offset(random, mix) },
        };
    }
    match random.below(32) {
        0..3 => Operation::Create(path(random)),
        3 => Operation::MakeDirectory(DIRECTORIES[1 + random.below(3) as usize].into()),
        4 => Operation::Symlink { path: path(random), target: format!("target{stamp}") },
        5..8 => {
            let whiteout = |replaces| RenameMode::Whiteout { caller: Caller::default(), replaces };
            let moves =
                [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange, whiteout(true), whiteout(false)];
            let mode = moves[random.below(moves.len() as u64) as usize];
            let from = if random.chance(60) { file(random) } else { path(random) };
            Operation::Rename { from, to: path(random), mode }
        }
        8 => Operation::Link { from: file(random), to: path(random) },
        9 => {
            let length = [10, 300, 5000][random.below(3) as usize];
            Operation::SetXattr { path: path(random), name: format!("user.{}", random.below(3)), length, stamp }
        }
        10 => Operation::RemoveXattr { path: path(random), name: format!("user.{}", random.below(3)) },
        11 => Operation::Permissions { path: path(random), permissions: random.below(0o1000) as u16 },
        12 => Operation::Reserve {
            path: file(random),
            offset: offset(random, mix),
            length: length(random, mix),
            keep_size: random.chance(50),
        },
        13 => Operation::Zero {
            path: file(random),
            offset: offset(random, mix),
            length: length(random, mix),
            keep_size: random.chance(50),
        },
        14..19 => Operation::Append { path: file(random), length: length(random, mix) as usize, stamp },
        _ => Operation::Write {
            path: file(random),
            offset: offset(random, mix),
            length: length(random, mix) as usize,
            stamp,
        },
    }
}

/// Mostly in a few hot blocks, and now and then far away.
fn offset(random: &mut Random, mix: Mix) -> u64 {
    let block = match random.below(10) {
        0 => random.below(600),
        1..6 => random.below(4),
        _ => random.below(100 + 14 * mix.blocks),
    };
    block * 4096 + if random.chance(40) { random.below(4096) } else { 0 }
}

fn length(random: &mut Random, mix: Mix) -> u64 {
    let blocks = if random.chance(50) { 1 } else { 1 + random.below(2 * mix.blocks) };
    if random.chance(60) { blocks * 4096 } else { 1 + random.below(blocks * 4096) }
}
