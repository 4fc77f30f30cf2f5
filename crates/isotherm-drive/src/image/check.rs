//! Looking at a whole image: every page that is programmed is read and compared with its checksum. Nothing is written.

use super::ImageError;
use super::checkpoint;
use super::disk::Disk;
use super::layout::page_check;
use super::open::{read_head, tables};
use isotherm::address::BlockId;
use isotherm::nand::{Kind, Oob};

/// A page that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DamagedPage {
    /// The block.
    pub block: BlockId,
    /// The page's index in it.
    pub index: u32,
    /// Where its bytes lie in the image.
    pub offset: u64,
    /// What it held; none where its OOB area is damaged too.
    pub held: Option<Kind>,
    /// Its address: an LPN for data. 0 where that is not known.
    pub address: u32,
}

/// What was found in an image.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings {
    /// Pages programmed.
    pub pages: u64,
    /// Pages that cannot be read, current or not.
    pub damaged: Vec<DamagedPage>,
    /// Logical pages that only the write buffer held, and whose saved bytes are damaged.
    pub damaged_frames: Vec<u32>,
    /// Whether its last user ended in order.
    pub was_clean: bool,
    /// Whether its checkpoint was damaged, so that the OOB areas were read in its place.
    pub checkpoint_was_damaged: bool,
    /// Operations that were not durable when power was lost, and that do not count.
    pub lost_operations: u64,
    /// Records of OOB areas, erases and frames that are damaged, and were read from their copies.
    pub mended_records: u64,
}

/// Reads everything.
///
/// # Errors
/// No image, or so damaged that it cannot be opened.
pub fn check<D: Disk>(disk: &D) -> Result<Findings, ImageError> {
    let (_, layout, record) = read_head(disk)?;
    let checkpoint_was_damaged = record.checkpoint_bytes > 0
        && checkpoint::read(disk, &layout, record.checkpoint_bytes, record.checkpoint_check)?.is_none();
    let (scanned, was_clean) = tables(disk, &layout, &record)?;
    let lost_operations = scanned.lost.operations();
    let mended_records = scanned.mended_records;
    let mut findings =
        Findings { was_clean, checkpoint_was_damaged, lost_operations, mended_records, ..Findings::default() };
    let page_bytes = layout.geometry.page_bytes() as usize;
    let mut bytes = vec![0; page_bytes];
    for held in scanned.held.iter().flatten() {
        if !held.read(disk, &mut bytes)? {
            findings.damaged_frames.push(held.lpn.0);
        }
    }
    for block in (0..layout.geometry.blocks).map(BlockId) {
        let programmed = usize::from(scanned.state.next_pages[block.0 as usize]);
        if programmed == 0 {
            continue;
        }
        findings.pages += programmed as u64;
        let slot = scanned.tables.slots[block.0 as usize];
        bytes.resize(programmed * page_bytes, 0);
        disk.read(layout.data_of(slot, 0), &mut bytes)?;
        let base = layout.geometry.first_page(block).0 as usize;
        for (index, page) in bytes.chunks_exact(page_bytes).enumerate() {
            let (owner, sequence) = (scanned.state.owners[base + index], scanned.state.sequences[base + index]);
            // Pages that an FTL programs as filler are unreadable too, and whole.
            if page_check(page, Oob { owner, sequence }) == scanned.tables.checks[base + index] {
                continue;
            }
            let oob_is_lost = owner.kind() == Kind::Unreadable;
            findings.damaged.push(DamagedPage {
                block,
                index: index as u32,
                offset: layout.data_of(slot, index as u32),
                held: (!oob_is_lost).then(|| owner.kind()),
                address: if oob_is_lost { 0 } else { owner.address() },
            });
        }
    }
    Ok(findings)
}
