//! What stands on a volume, as text: for people who want to know why a check complains. Nothing is written to the volume.

use super::{Repair, places, settings};
use crate::device::Device;
use crate::format::checkpoint::{Checkpoint, Lagging};
use crate::format::redo::Transactions;
use crate::format::summary::{BlockName, Summary};
use crate::format::superblock::Superblock;
use crate::log::segment_reader::SegmentReader;
use crate::log::{Log, OpenError, read_checkpoints, read_superblock};
use crate::store::{PageId, StoreError};
use crate::tree::{Tree, TreeError, describe_entry, describe_page};
use isotherm_vfs::Ino;
use std::fmt::{self, Write};
use std::sync::Arc;

/// What is to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Both superblocks.
    Superblock,
    /// Both checkpoints.
    Checkpoints,
    /// The table of segments, with roll-forward, and the queue.
    Segments,
    /// The writes that lie in a segment, with the records of their blocks.
    Summaries(u32),
    /// A page, whatever its checksum.
    Page(PageId),
    /// An inode with its map.
    Inode(Ino),
    /// The names of a directory.
    Directory(Ino),
    /// Where a block of a file lies.
    Block {
        /// The file.
        ino: Ino,
        /// Number of the block in it.
        block: u64,
    },
}

/// Why something cannot be shown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum DumpError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("there is no {0}")]
    Missing(String),
    #[error("the text cannot be written")]
    Output(#[from] fmt::Error),
}

impl From<StoreError> for DumpError {
    fn from(error: StoreError) -> Self {
        Self::Open(error.into())
    }
}

/// Writes what is asked for to `out`.
///
/// # Errors
/// What is asked for is not there, or what leads to it cannot be read.
pub fn dump(device: Arc<dyn Device>, what: What, out: &mut impl Write) -> Result<(), DumpError> {
    match what {
        What::Superblock => superblocks(&*device, out),
        What::Checkpoints => {
            let superblock = read_superblock(&*device)?;
            for (place, found) in read_checkpoints(&*device, &superblock)?.iter().enumerate() {
                match found {
                    Some(found) => checkpoint(place, found, out)?,
                    None => writeln!(out, "checkpoint {place}: none, or damaged")?,
                }
            }
            Ok(())
        }
        What::Segments => Ok(segments(&Log::open(device, settings(Repair::No))?.0, out)?),
        What::Summaries(segment) => {
            let superblock = read_superblock(&*device)?;
            if segment >= superblock.segments {
                return Err(DumpError::Missing(format!("segment {segment}")));
            }
            let reader = SegmentReader::new(&*device, &superblock);
            Ok(reader.summaries(segment).try_for_each(|found| summary(&found, out))?)
        }
        What::Page(id) => {
            let (mut log, _) = Log::open(device, settings(Repair::No))?;
            let entry = log.page_entry(id)?;
            let page = log.raw_page(id).ok_or_else(|| DumpError::Missing(format!("page {id}")))?;
            writeln!(out, "page {id}: {}", describe_entry(entry))?;
            if log.is_newer(id) {
                writeln!(out, "as the log since the last checkpoint leads to, which is not written there yet:")?;
            } else if entry.is_stored() && crc32c::crc32c(&*page) != entry.checksum {
                writeln!(out, "its checksum is wrong")?;
            }
            Ok(describe_page(&page, out)?)
        }
        What::Inode(ino) => Ok(out.write_str(&tree(device)?.describe_inode(ino)?)?),
        What::Directory(ino) => Ok(out.write_str(&tree(device)?.describe_directory(ino)?)?),
        What::Block { ino, block } => {
            let found = tree(device)?.locate_block(ino, block)?;
            let text = found.map_or_else(
                || "hole, without a slot".into(),
                |(slot, entry)| format!("{}, slot {} of page {}", describe_entry(entry), slot.index, slot.page),
            );
            Ok(writeln!(out, "block {block} of inode {ino}: {text}")?)
        }
    }
}

fn tree(device: Arc<dyn Device>) -> Result<Tree<Log>, DumpError> {
    Ok(Tree::open_store(Log::open(device, settings(Repair::No))?.0)?)
}

fn superblocks(device: &dyn Device, out: &mut impl Write) -> Result<(), DumpError> {
    let mut is_any = false;
    for (copy, found) in places::superblocks(device).into_iter().enumerate() {
        match found {
            Ok(found) => {
                is_any = true;
                superblock(copy, &found, out)?;
            }
            Err(error) => writeln!(out, "superblock {copy}: {error}")?,
        }
    }
    if is_any { Ok(()) } else { Err(DumpError::Missing("superblock that can be read".into())) }
}

fn superblock(copy: usize, found: &Superblock, out: &mut impl Write) -> fmt::Result {
    let uuid: String = found.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let label = found.label.split(|byte| *byte == 0).next().unwrap_or_default();
    writeln!(out, "superblock {copy}: label {:?}, uuid {uuid}", String::from_utf8_lossy(label))?;
    writeln!(
        out,
        "  {} segments of {} blocks, from block {}",
        found.segments, found.segment_blocks, found.first_block
    )?;
    let [first, second] = found.checkpoints;
    writeln!(out, "  checkpoints at blocks {first} and {second}, of at most {} blocks", found.checkpoint_blocks)?;
    writeln!(out, "  {} segments in reserve, features {:#x}", found.reserve_segments, found.features)?;
    writeln!(out, "  made {} s after 1970, tag {:#010x}", found.created_seconds, found.tag())
}

fn checkpoint(place: usize, found: &Checkpoint, out: &mut impl Write) -> fmt::Result {
    let end = if found.is_clean { ", unmounted" } else { "" };
    writeln!(out, "checkpoint {place}: number {}, mount {}{end}", found.number, found.incarnation)?;
    writeln!(out, "  covers write {}, {} host block writes", found.sequence, found.now)?;
    writeln!(out, "  blocks: {} stored, {} set aside; {} pages", found.stored, found.reserved, found.pages)?;
    match found.open {
        Some((segment, next)) => writeln!(out, "  segment {segment} is open, {next} blocks are written")?,
        None => writeln!(out, "  no segment is open")?,
    }
    match &found.lagging {
        Lagging::Files(files) if files.is_empty() => {}
        Lagging::Files(files) => writeln!(out, "  inodes that do not count all of their blocks: {files:?}")?,
        Lagging::Any => writeln!(out, "  any inode may not count all of its blocks")?,
    }
    writeln!(out, "  centres of groups: {:?}", found.centres)?;
    for (number, root) in found.roots.iter().enumerate() {
        writeln!(out, "  table page {number}: {} pages, {}", root.used, describe_entry(root.entry))?;
    }
    writeln!(out, "  queue: {:?}", found.queue)
}

fn segments(log: &Log, out: &mut impl Write) -> fmt::Result {
    let machine = log.machine();
    let state = machine.state();
    writeln!(out, "segment  state    in use  live  utilisation  group  writes  hotness")?;
    for (number, segment) in state.segments.iter().enumerate() {
        let name = format!("{:?}", segment.state);
        let group = segment.group.map_or_else(|| "-".into(), |group| group.to_string());
        let hotness = segment.heat.hotness(segment.live, machine.ticks());
        let utilisation = machine.segments().utilisation(number as u32);
        writeln!(
            out,
            "{number:7}  {name:7}  {:6}  {:4}  {utilisation:11.3}  {group:>5}  {:6}  {hotness:.3e}",
            segment.referenced,
            segment.live,
            segment.heat.writes()
        )?;
    }
    if let Some(open) = state.open {
        writeln!(out, "open: segment {}, {} blocks are written", open.segment, open.next)?;
    }
    writeln!(out, "queue: {:?}", state.queue)
}

fn summary(found: &Summary, out: &mut impl Write) -> fmt::Result {
    let group = found.group.map_or_else(|| "mixed".into(), |group| format!("group {group}"));
    writeln!(
        out,
        "write {} at block {}: mount {}, {group}, {} host block writes, {} blocks, {} bytes of redo log",
        found.sequence,
        found.position,
        found.incarnation,
        found.now,
        found.records.len(),
        found.redo.len()
    )?;
    let mut flags = String::new();
    for (is_set, name) in [(found.is_first, " first of its segment"), (found.stays_open, " more may follow")] {
        flags += if is_set { name } else { "" };
    }
    writeln!(out, "  next segment {}{flags}", found.next_segment)?;
    for transaction in Transactions(&found.redo) {
        let operations = transaction.map_or(0, |operations| operations.flatten().count());
        writeln!(out, "  transaction of {operations} operations")?;
    }
    for (position, record) in (found.first_block()..).zip(&found.records) {
        let name = match record.name {
            BlockName::Data(page, index) => format!("data, slot {index} of page {page}"),
            BlockName::Page(id) => format!("page {id}"),
            BlockName::Table(number) => format!("table page {number}"),
        };
        writeln!(out, "  {name}: {}", describe_entry(record.entry(position)))?;
    }
    Ok(())
}
