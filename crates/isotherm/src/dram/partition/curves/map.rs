//! The cost of a demand-paged map at each split: a sample of its translation pages, with one entry in [`THINNING`] of each,
//! and a map cache of every size run over it at once.
//!
//! An entry is evicted by a size at the moment in which it crosses that size's end. Entries are followed by page because an
//! eviction writes back all dirty entries of its page, so that the cost of evictions depends on how many gather before, and
//! falls off a cliff where a page's entries outlive each other. An entry has one bit for each size in which it is dirty.
//!
//! A write that made n followed entries clean stands for 1 + (THINNING - 1) / 4 n^2 writes: one if they were many, more if
//! they were few, since of those some go unseen. No weight is right for every number of entries; this one errs by less than
//! a factor of 3, and the rule scales the curve to what the map is measured to write at the size that it has.
//!
//! O(splits) an access that is in the sample, O(entries followed of a page) an eviction.

use super::{Curve, Evenly, Grid, MapMisses, SPLITS, Share, decay, misses};
use crate::address::Lpn;
use crate::dram::buffer::Touch;
use crate::dram::stack::{LruStack, hash};

/// One entry in this many is followed, of translation pages that are.
pub const THINNING: u32 = 8;

/// Bytes of firmware state for one entry that is followed: two links within the sample, its segment, and 16 dirty bits.
pub const ENTRY_BYTES: u64 = 7;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MapCurve {
    pages: Evenly,
    log2_page_entries: u8,
    log2_thinning: u8,
    stack: LruStack,
    /// Followed entries of each segment, the smallest cache first.
    lengths: [u32; SPLITS],
    /// Of each slot, one bit for each size: the entry is newer there than on flash. The slots of a page lie together.
    dirty: Vec<u16>,
    /// Rows and segments of the entries of a collection.
    missing: Vec<(u32, u8)>,
    all_reads: Share,
    all_writes: Share,
    all_moves: Share,
    reads: Curve,
    evictions: Curve,
    updates: Curve,
}

/// The segment of an entry that no size holds.
const NOWHERE: u8 = SPLITS as u8;

/// The sizes that hold an entry of `segment`.
#[inline(always)]
fn sizes_from(segment: u8) -> u16 {
    u16::MAX.checked_shl(segment.into()).unwrap_or(0)
}

impl MapCurve {
    /// DRAM that following one translation page takes.
    pub fn least_bytes(page_entries: u32) -> u64 {
        u64::from((page_entries / THINNING).max(1)) * ENTRY_BYTES
    }

    /// For the caches of a grid, of a map of `map_pages` translation pages with `page_entries` each, in at most
    /// `memory_bytes` of DRAM, which is enough for one.
    pub fn new(grid: &Grid, map_pages: u32, page_entries: u32, memory_bytes: u64) -> Self {
        Self::thinned(grid, map_pages, page_entries, memory_bytes, THINNING)
    }

    fn thinned(grid: &Grid, map_pages: u32, page_entries: u32, memory_bytes: u64, thinning: u32) -> Self {
        let row_entries = u64::from((page_entries / thinning).max(1));
        let pages = Evenly {
            followed: (memory_bytes / (row_entries * ENTRY_BYTES)).clamp(1, map_pages.into()),
            all: map_pages.into(),
        };
        let of_sample = |entries: u32| {
            let entries = u64::from(entries) * pages.followed * row_entries;
            (entries / (pages.all * u64::from(page_entries))).max(1) as u32
        };
        let slots = (pages.followed * row_entries) as u32;
        let length = |i: usize| of_sample(grid.entries[i]) - if i == 0 { 0 } else { of_sample(grid.entries[i - 1]) };
        Self {
            pages,
            log2_page_entries: page_entries.trailing_zeros() as u8,
            log2_thinning: (u64::from(page_entries) / row_entries).trailing_zeros() as u8,
            stack: LruStack::new(SPLITS as u8, slots),
            lengths: std::array::from_fn(length),
            dirty: vec![0; slots as usize],
            missing: Vec::new(),
            all_reads: Share::default(),
            all_writes: Share::default(),
            all_moves: Share::default(),
            reads: [0.0; SPLITS],
            evictions: [0.0; SPLITS],
            updates: [0.0; SPLITS],
        }
    }

    /// Binary logarithm of the followed entries of a page.
    #[inline(always)]
    fn log2_row(&self) -> u8 {
        self.log2_page_entries - self.log2_thinning
    }

    /// The slot of an entry that is followed.
    #[inline(always)]
    fn slot(&self, lpn: Lpn) -> Option<u32> {
        let page = lpn.0 >> self.log2_page_entries;
        let row = self.pages.rank(page)?;
        // Entries at even distances, beginning elsewhere in every page.
        let shifted = lpn.0.wrapping_add(hash(page)) & ((1 << self.log2_page_entries) - 1);
        let is_followed = shifted & ((1 << self.log2_thinning) - 1) == 0;
        is_followed.then_some(row << self.log2_row() | shifted >> self.log2_thinning)
    }

    /// Writes that a write stands for which made `cleaned` followed entries clean.
    fn weight(&self, cleaned: u32) -> f64 {
        let (thinning, cleaned) = (f64::from(1u32 << self.log2_thinning), f64::from(cleaned.max(1)));
        1.0 + (thinning - 1.0) / (4.0 * cleaned * cleaned)
    }

    /// Size `size` writes the page of `row`: none of its entries is dirty there any more. Returns how many were.
    fn clean(&mut self, row: u32, size: u8) -> u32 {
        let (first, log2, bit) = ((row as usize) << self.log2_row(), self.log2_row(), 1 << size);
        let mut cleaned = 0;
        for dirty in &mut self.dirty[first..first + (1 << log2)] {
            cleaned += u32::from(*dirty & bit != 0);
            *dirty &= !bit;
        }
        cleaned
    }

    #[inline(always)]
    pub(in crate::dram::partition) fn on_access(&mut self, lpn: Lpn, touch: Touch) {
        let slot = self.slot(lpn);
        let share = if touch == Touch::Read { &mut self.all_reads } else { &mut self.all_writes };
        share.all += 1.0;
        let Some(slot) = slot else { return };
        share.followed += 1.0;
        let found = self.stack.touch(slot);
        for size in 0..SPLITS as u8 {
            // A segment without room passes on what it is given.
            if self.stack.length(size) <= self.lengths[usize::from(size)] {
                break;
            }
            let Some(evicted) = self.stack.pass_on(size) else { break };
            if self.dirty[evicted as usize] >> size & 1 == 1 {
                let cleaned = self.clean(evicted >> self.log2_row(), size);
                self.evictions[usize::from(size)] += self.weight(cleaned);
            }
        }
        match (touch, found) {
            (Touch::Write, _) => self.dirty[slot as usize] = u16::MAX,
            (Touch::Read, Some(segment)) => self.reads[usize::from(segment)] += 1.0,
            (Touch::Read, None) => {}
        }
    }

    /// A collection moved `moved`: caches that hold an entry have it dirty now, the others wrote its translation page.
    pub(in crate::dram::partition) fn on_moves(&mut self, moved: &[Lpn]) {
        self.all_moves.all += moved.len() as f64;
        // First every entry changes, then the pages of those that are not cached are written with all that is dirty.
        for lpn in moved {
            let Some(slot) = self.slot(*lpn) else { continue };
            self.all_moves.followed += 1.0;
            let segment = self.stack.segment(slot).unwrap_or(NOWHERE);
            self.dirty[slot as usize] |= sizes_from(segment);
            self.missing.push((slot >> self.log2_row(), segment));
        }
        let mut missing = std::mem::take(&mut self.missing);
        missing.sort_unstable();
        for page in missing.chunk_by(|one, two| one.0 == two.0) {
            // In order of their segments: a size misses the entries behind its own end.
            for size in 0..page[page.len() - 1].1 {
                let missed = page.len() - page.partition_point(|entry| entry.1 <= size);
                self.updates[usize::from(size)] += self.weight(missed as u32);
                self.clean(page[0].0, size);
            }
        }
        missing.clear();
        self.missing = missing;
    }

    /// What the cache of each split would have cost.
    pub fn misses(&self) -> MapMisses {
        MapMisses {
            reads: misses(&self.reads, self.all_reads.followed).map(|reads| reads * self.all_reads.scale()),
            evictions: self.evictions.map(|writes| writes * self.all_writes.scale()),
            reclaims: self.updates.map(|writes| writes * self.all_moves.scale()),
        }
    }

    pub(in crate::dram::partition) fn decay(&mut self, factor: f64) {
        for counts in [&mut self.reads, &mut self.evictions, &mut self.updates] {
            decay(counts, factor);
        }
        for share in [&mut self.all_reads, &mut self.all_writes, &mut self.all_moves] {
            share.decay(factor);
        }
    }

    /// Bytes of firmware state.
    pub fn memory_bytes(&self) -> u64 {
        self.dirty.len() as u64 * ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PAGE_ENTRIES: u32 = 8;

    /// An LRU map cache whose evictions write back whole translation pages.
    struct Cache {
        size: usize,
        order: Vec<(u32, bool)>,
        read_misses: u64,
        writebacks: u64,
        updates: u64,
    }

    impl Cache {
        fn new(size: usize) -> Self {
            Self { size, order: Vec::new(), read_misses: 0, writebacks: 0, updates: 0 }
        }

        fn clean(&mut self, page: u32) {
            self.order.iter_mut().filter(|e| e.0 / PAGE_ENTRIES == page).for_each(|e| e.1 = false);
        }

        fn access(&mut self, lpn: u32, touch: Touch) {
            let held = self.order.iter().position(|e| e.0 == lpn).map(|at| self.order.remove(at));
            self.read_misses += u64::from(held.is_none() && touch == Touch::Read);
            if self.order.len() == self.size {
                let (evicted, is_dirty) = self.order.pop().unwrap();
                if is_dirty {
                    self.writebacks += 1;
                    self.clean(evicted / PAGE_ENTRIES);
                }
            }
            self.order.insert(0, (lpn, touch == Touch::Write || held.is_some_and(|e| e.1)));
        }

        fn moves(&mut self, moved: &[Lpn]) {
            let mut pages = std::collections::BTreeSet::new();
            for lpn in moved {
                match self.order.iter_mut().find(|e| e.0 == lpn.0) {
                    Some(entry) => entry.1 = true,
                    None => {
                        pages.insert(lpn.0 / PAGE_ENTRIES);
                    }
                }
            }
            self.updates += pages.len() as u64;
            pages.into_iter().for_each(|page| self.clean(page));
        }
    }

    #[test]
    fn the_curve_counts_what_a_cache_of_each_size_does() {
        let entries = std::array::from_fn(|i| 1 + 8 * i as u32);
        let grid = Grid { mapping_bytes: [0; SPLITS], entries, frames: [1; SPLITS] };
        let mut curve = MapCurve::thinned(&grid, 20, PAGE_ENTRIES, u64::MAX, 1);
        let mut caches = entries.map(|entries| Cache::new(entries as usize));
        let mut random = Random::new(17);
        for _ in 0..30_000 {
            if random.chance(0.01) {
                let moved: Vec<Lpn> = (0..6).map(|_| Lpn(random.below(160) as u32)).collect();
                curve.on_moves(&moved);
                caches.iter_mut().for_each(|cache| cache.moves(&moved));
            }
            let lpn = (random.unit().powi(2) * 160.0) as u32;
            let touch = if random.chance(0.4) { Touch::Read } else { Touch::Write };
            curve.on_access(Lpn(lpn), touch);
            caches.iter_mut().for_each(|cache| cache.access(lpn, touch));
        }
        let misses = curve.misses();
        for (split, cache) in caches.iter().enumerate() {
            assert_eq!(misses.reads[split].round() as u64, cache.read_misses, "{} entries", cache.size);
            assert_eq!(misses.evictions[split].round() as u64, cache.writebacks, "{} entries", cache.size);
            assert_eq!(misses.reclaims[split].round() as u64, cache.updates, "{} entries", cache.size);
        }
    }
}
