//! Tombstones: trims made durable.
//!
//! A trim leaves no trace on the medium, so that a rebuild of the map from the OOB areas would bring trimmed data back.
//! Trims are therefore logged: extents of trimmed pages wait in memory until a flush, or until a page of them is full, and
//! are then written to a *tombstone page* (cause `trim`). A tombstone page is valid as long as one of its pages is still
//! trimmed. Two more rules close the gaps: before a block is erased that held data whose trim still waits, the waiting
//! trims are written (or older data could come back instead); and when tombstone pages pile up, they are compacted.
//!
//! Where tombstone pages lie is up to the FTL: anything that appends pages out of place is a [`TombstoneSpace`].

use crate::address::{BlockId, Ppn};
use crate::device::DeviceError;
use crate::nand::{Kind, Owner};

/// Where tombstone pages are written: a block store, or the log blocks of a hybrid map.
pub trait TombstoneSpace {
    /// Programs a tombstone page, without cleaning first: the caller has made room, or a reserve is used.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn append_tombstone(&mut self, owner: Owner, content: &[u8]) -> Result<Ppn, DeviceError>;
    /// The tombstone page at `at` is not needed any more.
    fn invalidate_tombstone(&mut self, at: Ppn);
}

/// An entry of the map: a page, nothing, or a trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct MapEntry(u32);

const TOMBSTONE: u32 = 1 << 30;

impl MapEntry {
    /// Never written, or trimmed so long ago that no tombstone is needed.
    pub const NONE: Self = Self(u32::MAX);
    /// Trimmed, and the trim is not written yet.
    const WAITING: Self = Self(u32::MAX - 1);

    /// Mapped to a page.
    #[inline(always)]
    pub fn page(at: Ppn) -> Self {
        debug_assert!(at.0 < TOMBSTONE);
        Self(at.0)
    }

    /// Trimmed by the tombstone in `slot`.
    pub fn tombstone(slot: u32) -> Self {
        Self(TOMBSTONE | slot)
    }

    /// The page that holds the data, if there is one.
    #[inline(always)]
    pub fn mapped(self) -> Option<Ppn> {
        (self.0 < TOMBSTONE).then_some(Ppn(self.0))
    }

    /// Whether all of these are mapped to pages.
    #[inline(always)]
    pub(crate) fn are_mapped(entries: &[Self]) -> bool {
        entries.iter().fold(0, |all, entry| all | entry.0) < TOMBSTONE
    }

    /// The page that holds the data where there is one; else a number beyond those of pages.
    #[inline(always)]
    pub(crate) fn page_if_mapped(self) -> Ppn {
        Ppn(self.0)
    }

    /// The tombstone that trims the page.
    #[inline(always)]
    fn slot(self) -> Option<u32> {
        (self.0 & (3 << 30) == TOMBSTONE).then_some(self.0 & (TOMBSTONE - 1))
    }
}

/// A run of trimmed pages, with the sequence number of its trim: 16 bytes on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First LPN.
    pub start: u32,
    /// Pages.
    pub count: u32,
    /// Sequence number of the trim.
    pub sequence: u64,
}

const EXTENT_BYTES: usize = 16;

impl Extent {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
    }

    fn lpns(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.count) as usize
    }
}

/// The extents of a tombstone page; padding (an extent of no pages) ends them.
pub fn decode(content: &[u8]) -> Vec<Extent> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    content
        .chunks_exact(EXTENT_BYTES)
        .map(|c| Extent {
            start: word(&c[0..4]),
            count: word(&c[4..8]),
            sequence: u64::from_le_bytes(c[8..16].try_into().expect("eight bytes")),
        })
        .take_while(|extent| extent.count > 0)
        .collect()
}

/// A tombstone page.
#[derive(Clone, Debug)]
struct Slot {
    at: Ppn,
    /// Pages whose map entry points here.
    live: u32,
    extents: Vec<Extent>,
}

/// The trims of an FTL, waiting and written.
#[derive(Clone, Debug)]
pub struct Tombstones {
    extents_per_page: usize,
    waiting: Vec<Extent>,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    /// Slots written since trims last began to wait.
    batch: Vec<u32>,
    /// Blocks that held data whose trim waits, each once.
    exposed: Vec<BlockId>,
    is_exposed: Vec<bool>,
    /// Tombstone pages above which they are compacted.
    most_pages: usize,
    content: Vec<u8>,
}

/// Tombstone pages that are always allowed before compaction.
const LEAST_PAGES: usize = 8;

impl Tombstones {
    /// No trims yet.
    pub fn new(page_bytes: u32, blocks: u32) -> Self {
        Self {
            extents_per_page: page_bytes as usize / EXTENT_BYTES,
            waiting: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            batch: Vec::new(),
            exposed: Vec::new(),
            is_exposed: vec![false; blocks as usize],
            most_pages: LEAST_PAGES,
            content: Vec::with_capacity(page_bytes as usize),
        }
    }

    /// Logs a trim of one mapped page and marks its entry. `block` held its data.
    pub fn trim(&mut self, lpn: u32, entry: &mut MapEntry, block: BlockId, sequence: u64) {
        *entry = MapEntry::WAITING;
        match self.waiting.last_mut() {
            // Pages trimmed one after another by one request share a sequence number.
            Some(last) if last.start + last.count == lpn && last.sequence == sequence => last.count += 1,
            _ => self.waiting.push(Extent { start: lpn, count: 1, sequence }),
        }
        if !std::mem::replace(&mut self.is_exposed[block.0 as usize], true) {
            self.exposed.push(block);
        }
    }

    /// Whether a page of trims waits.
    pub fn page_is_full(&self) -> bool {
        self.waiting.len() >= self.extents_per_page
    }

    /// Whether trims should be written now: a page of them waits, or so many pages have piled up that it does not do to wait for a flush.
    /// A host that never flushes has a page of a few trims written before nearly every erase.
    pub fn are_due(&self) -> bool {
        self.page_is_full() || self.pages() > 2 * self.most_pages
    }

    /// Whether any trim waits.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether erasing `block` now could bring back data older than an unwritten trim.
    pub fn is_exposed(&self, block: BlockId) -> bool {
        // Mostly no trim waits: then no look at a table that is in no cache.
        !self.exposed.is_empty() && self.is_exposed[block.0 as usize]
    }

    /// A page whose entry was `entry` has been rewritten: its tombstone, if any, loses it.
    #[inline(always)]
    pub fn forget(&mut self, entry: MapEntry, space: &mut impl TombstoneSpace) {
        if let Some(slot) = entry.slot() {
            self.lose(slot, space);
        }
    }

    fn lose(&mut self, slot: u32, space: &mut impl TombstoneSpace) {
        let dead = &mut self.slots[slot as usize];
        dead.live -= 1;
        if dead.live == 0 {
            space.invalidate_tombstone(dead.at);
            dead.extents = Vec::new();
            self.free_slots.push(slot);
        }
    }

    /// Whether the valid page of `slot` lies at `at`.
    pub fn is_at(&self, slot: u32, at: Ppn) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.live > 0 && s.at == at)
    }

    /// A tombstone page has moved.
    pub fn relocate(&mut self, slot: u32, to: Ppn) {
        self.slots[slot as usize].at = to;
    }

    /// Writes waiting trims, as many as a page holds; the next call goes on with the rest. The caller has made room for one
    /// page, or the collector's reserve is used: only a compaction has more than a page waiting, and it exposes no block.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    pub fn write_page(&mut self, entries: &mut [MapEntry], space: &mut impl TombstoneSpace) -> Result<(), DeviceError> {
        let size = self.waiting.len().min(self.extents_per_page);
        if size > 0 {
            let slot = self.take_slot();
            self.content.clear();
            self.waiting[..size].iter().for_each(|e| e.encode(&mut self.content));
            let written = space.append_tombstone(Owner::new(Kind::Tombstone, slot), &self.content);
            if written.is_err() {
                self.free_slots.push(slot);
            }
            let at = written?;
            let extents: Vec<Extent> = self.waiting.drain(..size).collect();
            // One live page more than counted keeps the slot until the whole batch is claimed.
            self.slots[slot as usize] = Slot { at, live: 1, extents };
            self.batch.push(slot);
            self.claim(slot, entries, space);
        }
        if self.waiting.is_empty() {
            for slot in std::mem::take(&mut self.batch) {
                self.lose(slot, space);
            }
            for block in self.exposed.drain(..) {
                self.is_exposed[block.0 as usize] = false;
            }
        }
        Ok(())
    }

    /// Points the entries of still trimmed pages to `slot`. A page that was trimmed, rewritten and trimmed again within a
    /// batch belongs to the later trim.
    fn claim(&mut self, slot: u32, entries: &mut [MapEntry], space: &mut impl TombstoneSpace) {
        for extent in self.slots[slot as usize].extents.clone() {
            for entry in &mut entries[extent.lpns()] {
                match entry.slot() {
                    None if *entry != MapEntry::WAITING => continue,
                    None => {}
                    Some(earlier) if earlier != slot && self.batch.contains(&earlier) => self.lose(earlier, space),
                    Some(_) => continue,
                }
                *entry = MapEntry::tombstone(slot);
                self.slots[slot as usize].live += 1;
            }
        }
    }

    fn take_slot(&mut self) -> u32 {
        self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot { at: Ppn::NONE, live: 0, extents: Vec::new() });
            self.slots.len() as u32 - 1
        })
    }

    /// Tombstone pages that are valid.
    pub fn pages(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Rebuilds a tombstone page found on the medium. `live` of its extents' pages point to it.
    pub fn restore(&mut self, slot: u32, at: Ppn, extents: Vec<Extent>, live: u32) {
        while self.slots.len() <= slot as usize {
            self.free_slots.push(self.slots.len() as u32);
            self.slots.push(Slot { at: Ppn::NONE, live: 0, extents: Vec::new() });
        }
        self.free_slots.retain(|free| *free != slot);
        self.slots[slot as usize] = Slot { at, live, extents };
    }

    /// Whether tombstone pages have piled up so far that rewriting them pays.
    pub fn wants_compaction(&self) -> bool {
        self.pages() > self.most_pages
    }

    /// Slots in use.
    pub fn live_slots(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|s| self.slots[*s as usize].live > 0).collect()
    }

    /// Puts the live trims of `slots` back among the waiting ones, so that [`Tombstones::write_page`] packs them anew. The
    /// slots and their pages stay valid until [`Tombstones::drop_slots`], so that a loss of power between finds them.
    pub fn unpack(&mut self, slots: &[u32], entries: &mut [MapEntry]) {
        for slot in slots {
            let extents = std::mem::take(&mut self.slots[*slot as usize].extents);
            self.slots[*slot as usize].live = 1;
            // Latest first: of a page that was trimmed twice in one batch, only the later trim is above its last data.
            for extent in extents.into_iter().rev() {
                self.unpack_extent(extent, *slot, entries);
            }
        }
    }

    /// Ends a compaction: the slots that were unpacked are written anew, and their old pages hold nothing.
    pub fn drop_slots(&mut self, old: &[u32], space: &mut impl TombstoneSpace) {
        for slot in old {
            self.lose(*slot, space);
        }
        self.most_pages = (2 * self.pages()).max(LEAST_PAGES);
    }

    fn unpack_extent(&mut self, extent: Extent, slot: u32, entries: &mut [MapEntry]) {
        let mut run: Option<Extent> = None;
        for lpn in extent.lpns() {
            if entries[lpn].slot() == Some(slot) {
                entries[lpn] = MapEntry::WAITING;
                let run = run.get_or_insert(Extent { start: lpn as u32, count: 0, ..extent });
                run.count += 1;
            } else {
                self.waiting.extend(run.take());
            }
        }
        self.waiting.extend(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page was trimmed, rewritten and trimmed again before one flush, so that its tombstone page named it twice.
    /// Compaction packed it with its first trim, which is older than the rewritten data: once the old tombstone page was
    /// erased, a loss of power brought that data back.
    #[test]
    fn compaction_keeps_the_later_of_two_trims() {
        let mut tombstones = Tombstones::new(64, 4);
        let mut entries = vec![MapEntry::NONE; 16];
        let extents = vec![Extent { start: 8, count: 6, sequence: 741 }, Extent { start: 9, count: 3, sequence: 758 }];
        (8..14).for_each(|lpn| entries[lpn] = MapEntry::tombstone(0));
        tombstones.restore(0, Ppn(3), extents, 6);
        tombstones.unpack(&[0], &mut entries);
        for lpn in 8..14u32 {
            let holding: Vec<_> =
                tombstones.waiting.iter().filter(|e| e.lpns().contains(&(lpn as usize))).map(|e| e.sequence).collect();
            assert_eq!(holding, [if (9..12).contains(&lpn) { 758 } else { 741 }], "LPN {lpn}");
        }
    }
}
