//! What both sides of the DRAM would save at every size, from LRU stack distances: the measurements of the `marginal` rule.
//!
//! The buffer's curve counts, for each size, the writes that would have overwritten a buffered page and the reads that would
//! have found one. Reads look up but do not insert, so only buffers that reach to the page's segment notice a read: it renews
//! the page within that segment. This errs by a few per cent against the buffers themselves, where reads are many.
//!
//! The map's curve follows a sample of the translation pages, with one entry in [`THINNING`] of each, and runs a map cache of
//! every size over it at once: an entry is evicted by a size at the moment in which it crosses that size's end. Entries are
//! followed by page because an eviction writes back all dirty entries of its page, so that the cost of evictions depends on
//! how many gather before, and falls off a cliff where a page's entries outlive each other. An entry is dirty in a size if
//! it was written after that size last wrote its page: one time for each entry, one for each page and size, no lists. A
//! write that made n followed entries clean stands for 1 + (THINNING - 1) / 4 n^2 writes: one if they were many, more if
//! they were few, since of those some go unseen. No weight is right for every number of entries; this one errs by less than
//! a factor of 3, and the rule scales the curve to what the map is measured to write at the size that it has.
//!
//! O(segments) an access that is in the sample.

use crate::address::Lpn;
use crate::dram::buffer::Touch;
use crate::dram::index::AddressIndex;
use crate::dram::stack::{LruStack, hash, is_sampled};

/// Segments of either stack: the resolution of the splits that are compared.
pub const SEGMENTS: u8 = 32;
const SIZES: usize = SEGMENTS as usize + 1;

/// One entry in this many is followed, of translation pages that are.
pub const THINNING: u32 = 8;

/// A quantity at sizes of 0 to [`SEGMENTS`] segments.
pub type Curve = [f64; SIZES];

/// Reads a curve between its points.
pub fn at(curve: &Curve, segments: f64) -> f64 {
    let segments = segments.clamp(0.0, f64::from(SEGMENTS));
    let below = (segments as usize).min(SIZES - 2);
    let part = segments - below as f64;
    curve[below] * (1.0 - part) + curve[below + 1] * part
}

/// Turns "found in segment i" into "missed by a cache of s segments".
fn misses(found: &[f64; SEGMENTS as usize], scale: f64) -> Curve {
    let mut curve = [0.0; SIZES];
    for size in (0..SEGMENTS as usize).rev() {
        curve[size] = curve[size + 1] + found[size] * scale;
    }
    curve
}

fn decay(counts: &mut [f64], factor: f64) {
    for count in counts {
        *count *= factor;
    }
}

/// Splits `most` addresses, of which one in 2^`log2` is followed, into segments. Rounded down: a loop that is longer than the
/// buffer by a page hits nothing, and a stack that is longer than the buffer would promise that it does.
fn stack(most: u64, log2: u8) -> LruStack {
    LruStack::new(SEGMENTS, (((most >> log2) / u64::from(SEGMENTS)) as u32).max(1))
}

/// Binary logarithm of the sampling that follows `most` addresses in at most `memory_bytes`.
fn sampling(most: u64, memory_bytes: u64) -> u8 {
    let kept = (memory_bytes / LruStack::ENTRY_BYTES).max(u64::from(SEGMENTS));
    most.div_ceil(kept).next_power_of_two().trailing_zeros() as u8
}

/// The buffer's side.
#[derive(Clone, Debug)]
pub struct BufferCurve {
    stack: LruStack,
    log2_sample: u8,
    /// Of each slot: flushes before the page was last written.
    written_in: Vec<u32>,
    flushes: u32,
    reads: [f64; SEGMENTS as usize],
    writes: [f64; SEGMENTS as usize],
}

impl BufferCurve {
    /// For buffers of up to `pages`, in about `memory_bytes` of DRAM.
    pub fn new(pages: u64, memory_bytes: u64) -> Self {
        let log2_sample = sampling(pages, memory_bytes);
        let stack = stack(pages, log2_sample);
        Self {
            written_in: vec![0; stack.slots()],
            stack,
            log2_sample,
            flushes: 0,
            reads: [0.0; SEGMENTS as usize],
            writes: [0.0; SEGMENTS as usize],
        }
    }

    pub(super) fn on_access(&mut self, lpn: Lpn, touch: Touch) {
        if !is_sampled(lpn.0, self.log2_sample) {
            return;
        }
        match touch {
            Touch::Read => {
                if let Some((slot, segment)) = self.stack.find(lpn.0) {
                    self.reads[usize::from(segment)] += 1.0;
                    self.stack.renew(slot);
                }
            }
            Touch::Write => {
                let found = self.stack.touch(lpn.0, |_, _| {});
                let written_in = std::mem::replace(&mut self.written_in[found.slot as usize], self.flushes);
                // What a flush has written since is clean: overwriting it saves nothing at any size.
                if let Some(segment) = found.segment.filter(|_| written_in == self.flushes) {
                    self.writes[usize::from(segment)] += 1.0;
                }
            }
        }
    }

    pub(super) fn on_trim(&mut self, lpn: Lpn) {
        self.stack.remove(lpn.0);
    }

    pub(super) fn on_drain(&mut self) {
        self.flushes = self.flushes.wrapping_add(1);
    }

    /// Flash reads and page writes that each size would not have saved; sizes of up to `pages` in [`SEGMENTS`] steps.
    pub fn misses(&self) -> (Curve, Curve) {
        let scale = (1u64 << self.log2_sample) as f64;
        (misses(&self.reads, scale), misses(&self.writes, scale))
    }

    pub(super) fn decay(&mut self, factor: f64) {
        decay(&mut self.reads, factor);
        decay(&mut self.writes, factor);
    }

    /// Bytes of firmware state.
    pub fn memory_bytes(&self) -> u64 {
        self.stack.memory_bytes()
    }
}

/// Accesses in all and those that were followed: by them samples are scaled.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: f64,
    followed: f64,
}

impl Share {
    fn scale(&self) -> f64 {
        if self.followed > 0.0 { self.all / self.followed } else { 0.0 }
    }
    fn decay(&mut self, factor: f64) {
        self.all *= factor;
        self.followed *= factor;
    }
}

/// The map's side.
#[derive(Clone, Debug)]
pub struct MapCurve {
    stack: LruStack,
    log2_page_entries: u8,
    thinning: u32,
    /// So many translation pages of `map_pages` are followed, at even distances: a hash would choose some more or some
    /// fewer, and stretch the curve by as much.
    followed: u64,
    map_pages: u64,
    /// Translation page to its row in `cleaned_at`.
    pages: AddressIndex,
    pages_seen: u32,
    pages_max: u32,
    /// Of each followed page and size: when it was written last, and its followed entries that are dirty since.
    cleaned_at: Vec<[u32; SEGMENTS as usize]>,
    dirty: Vec<[u8; SEGMENTS as usize]>,
    /// Of each slot of the stack: when its entry changed last, and the row of its page.
    written_at: Vec<u32>,
    row_of: Vec<u32>,
    /// Time: writes and collections followed so far.
    now: u32,
    /// Followed pages and segments of the entries of a collection.
    missing: Vec<(u32, u8)>,
    all_reads: Share,
    all_writes: Share,
    all_moves: Share,
    reads: [f64; SEGMENTS as usize],
    writebacks: [f64; SEGMENTS as usize],
    updates: [f64; SEGMENTS as usize],
}

/// What the map costs at every size: reads whose entry is missing, but for those that even the largest cache misses, pages
/// written back by evictions, and pages written by collections.
#[derive(Clone, Copy, Debug)]
pub struct MapMisses {
    /// Translation pages read for the host's reads.
    pub reads: Curve,
    /// Translation pages written by evictions.
    pub writebacks: Curve,
    /// Translation pages written by collections.
    pub updates: Curve,
}

impl MapCurve {
    /// Bytes of firmware state for one entry that is followed: two links within the sample, its segment, its offset in its
    /// page, and a time.
    pub const ENTRY_BYTES: u64 = 10;

    /// For caches of up to `entries` of a map of `map_pages` translation pages with `page_entries` each, in about
    /// `memory_bytes` of DRAM.
    pub fn new(entries: u64, map_pages: u32, page_entries: u32, memory_bytes: u64) -> Self {
        Self::thinned(entries, map_pages, page_entries, memory_bytes, THINNING)
    }

    fn thinned(entries: u64, map_pages: u32, page_entries: u32, memory_bytes: u64, thinning: u32) -> Self {
        let row_entries = u64::from(page_entries.div_ceil(thinning));
        let followed = (memory_bytes / Self::row_bytes(row_entries)).clamp(1, map_pages.into());
        let share = u64::from(map_pages) * u64::from(SEGMENTS) * u64::from(thinning);
        let segment = (entries * followed / share).max(1);
        // More than the followed entries need no room: a cache as large as that misses none of them.
        let stack = LruStack::new(SEGMENTS, segment.min(2 * followed * row_entries) as u32);
        let pages_max = followed as u32;
        Self {
            log2_page_entries: page_entries.trailing_zeros() as u8,
            thinning,
            followed,
            map_pages: map_pages.into(),
            pages: AddressIndex::new(pages_max),
            pages_seen: 0,
            pages_max,
            cleaned_at: vec![[0; SEGMENTS as usize]; pages_max as usize],
            dirty: vec![[0; SEGMENTS as usize]; pages_max as usize],
            written_at: vec![0; stack.slots()],
            row_of: vec![0; stack.slots()],
            stack,
            now: 0,
            missing: Vec::new(),
            all_reads: Share::default(),
            all_writes: Share::default(),
            all_moves: Share::default(),
            reads: [0.0; SEGMENTS as usize],
            writebacks: [0.0; SEGMENTS as usize],
            updates: [0.0; SEGMENTS as usize],
        }
    }

    /// Bytes of firmware state for one page that is followed: its entries, and a time and a count for each size.
    fn row_bytes(row_entries: u64) -> u64 {
        row_entries * Self::ENTRY_BYTES + 5 * u64::from(SEGMENTS)
    }

    /// Writes that a write stands for which made `cleaned` followed entries clean.
    fn weight(&self, cleaned: u8) -> f64 {
        let cleaned = f64::from(cleaned);
        1.0 + f64::from(self.thinning - 1) / (4.0 * cleaned * cleaned)
    }

    /// The row of the translation page of `lpn`, if that entry is followed.
    #[inline(always)]
    fn row(&mut self, lpn: Lpn) -> Option<u32> {
        let page = lpn.0 >> self.log2_page_entries;
        let rank = |page: u64| page * self.followed / self.map_pages;
        let is_followed = rank(u64::from(page) + 1) > rank(page.into());
        // Entries at even distances, beginning elsewhere in every page.
        if !is_followed || lpn.0.wrapping_add(hash(page)) & (self.thinning - 1) != 0 {
            return None;
        }
        self.pages.get(page).or_else(|| {
            (self.pages_seen < self.pages_max).then(|| {
                self.pages.insert(page, self.pages_seen);
                self.pages_seen += 1;
                self.pages_seen - 1
            })
        })
    }

    #[inline(always)]
    pub(super) fn on_access(&mut self, lpn: Lpn, touch: Touch) {
        let row = self.row(lpn);
        let share = if touch == Touch::Read { &mut self.all_reads } else { &mut self.all_writes };
        share.all += 1.0;
        let Some(row) = row else { return };
        share.followed += 1.0;
        self.now += 1;
        let now = self.now;
        // Scaled by `weight`, whose table is small; written out here because the stack is borrowed.
        let weights: [f64; 4] = std::array::from_fn(|n| self.weight(n as u8));
        let (written_at, row_of) = (&self.written_at, &self.row_of);
        let (cleaned_at, dirty, writebacks) = (&mut self.cleaned_at, &mut self.dirty, &mut self.writebacks);
        let found = self.stack.touch(lpn.0, |slot, segment| {
            let (row, size) = (row_of[slot as usize] as usize, usize::from(segment));
            if written_at[slot as usize] > cleaned_at[row][size] {
                cleaned_at[row][size] = now;
                let cleaned = std::mem::take(&mut dirty[row][size]);
                writebacks[size] += weights.get(usize::from(cleaned)).copied().unwrap_or(1.0);
            }
        });
        let slot = found.slot as usize;
        self.row_of[slot] = row;
        if found.segment.is_none() {
            self.written_at[slot] = 0;
        }
        match (touch, found.segment) {
            (Touch::Write, _) => self.make_dirty(slot, row, 0),
            (Touch::Read, Some(segment)) => self.reads[usize::from(segment)] += 1.0,
            (Touch::Read, None) => {}
        }
    }

    /// The entry in `slot` changed: it is dirty in every cache that reaches to `segment`.
    #[inline(always)]
    fn make_dirty(&mut self, slot: usize, row: u32, segment: u8) {
        let written_at = self.written_at[slot];
        // What made room for it comes before.
        self.now += 1;
        self.written_at[slot] = self.now;
        let (cleaned_at, dirty) = (&self.cleaned_at[row as usize], &mut self.dirty[row as usize]);
        for size in usize::from(segment)..usize::from(SEGMENTS) {
            dirty[size] = dirty[size].saturating_add(u8::from(written_at <= cleaned_at[size]));
        }
    }

    /// A collection moved `moved`: caches that hold an entry have it dirty now, the others wrote its translation page.
    pub(super) fn on_moves(&mut self, moved: &[Lpn]) {
        self.all_moves.all += moved.len() as f64;
        // First every entry changes, then the pages of those that are not cached are written with all that is dirty.
        for lpn in moved {
            let Some(row) = self.row(*lpn) else { continue };
            self.all_moves.followed += 1.0;
            let segment = match self.stack.find(lpn.0) {
                Some((slot, segment)) => {
                    self.make_dirty(slot as usize, row, segment);
                    segment
                }
                None => SEGMENTS,
            };
            self.missing.push((row, segment));
        }
        let mut missing = std::mem::take(&mut self.missing);
        missing.sort_unstable();
        for page in missing.chunk_by(|one, two| one.0 == two.0) {
            let row = page[0].0 as usize;
            // In order of their segments: a size misses the entries from its own end on.
            for size in 0..page[page.len() - 1].1 {
                let missed = page.len() - page.partition_point(|entry| entry.1 <= size);
                self.updates[usize::from(size)] += self.weight(missed.min(255) as u8);
                self.cleaned_at[row][usize::from(size)] = self.now;
                self.dirty[row][usize::from(size)] = 0;
            }
        }
        missing.clear();
        self.missing = missing;
    }

    /// What every size of up to `entries` would have cost, in [`SEGMENTS`] steps.
    pub fn misses(&self) -> MapMisses {
        // A cache without room writes at least as often as one segment does.
        let by_size = |counts: &[f64; SEGMENTS as usize], scale: f64| -> Curve {
            std::array::from_fn(|size| counts[size.saturating_sub(1)] * scale)
        };
        MapMisses {
            reads: misses(&self.reads, self.all_reads.scale()),
            writebacks: by_size(&self.writebacks, self.all_writes.scale()),
            updates: by_size(&self.updates, self.all_moves.scale()),
        }
    }

    pub(super) fn decay(&mut self, factor: f64) {
        for counts in [&mut self.reads, &mut self.writebacks, &mut self.updates] {
            decay(counts, factor);
        }
        for share in [&mut self.all_reads, &mut self.all_writes, &mut self.all_moves] {
            share.decay(factor);
        }
    }

    /// Bytes of firmware state.
    pub fn memory_bytes(&self) -> u64 {
        let row_entries = u64::from((1u32 << self.log2_page_entries).div_ceil(self.thinning));
        u64::from(self.pages_seen) * Self::row_bytes(row_entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::list::{Links, List};
    use crate::random::Random;
    use std::collections::BTreeMap;

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
    fn the_maps_curve_counts_what_a_cache_of_each_size_does() {
        let entries = u64::from(SEGMENTS) * 4;
        let mut curve = MapCurve::thinned(entries, 20, PAGE_ENTRIES, u64::MAX / 2, 1);
        let mut caches: Vec<Cache> = [1, 4, 9, 20, 32].map(|segments| Cache::new(segments * 4)).into();
        let mut random = Random::new(17);
        let mut beyond = 0;
        for _ in 0..30_000 {
            if random.chance(0.01) {
                let moved: Vec<Lpn> = (0..6).map(|_| Lpn(random.below(160) as u32)).collect();
                curve.on_moves(&moved);
                caches.iter_mut().for_each(|cache| cache.moves(&moved));
            }
            let lpn = (random.unit().powi(2) * 160.0) as u32;
            let touch = if random.chance(0.4) { Touch::Read } else { Touch::Write };
            beyond += u64::from(touch == Touch::Read && !caches[4].order.iter().any(|e| e.0 == lpn));
            curve.on_access(Lpn(lpn), touch);
            caches.iter_mut().for_each(|cache| cache.access(lpn, touch));
        }
        let misses = curve.misses();
        for cache in &caches {
            let segments = cache.size / 4;
            assert_eq!(misses.reads[segments].round() as u64 + beyond, cache.read_misses, "{segments} segments");
            assert_eq!(misses.writebacks[segments] as u64, cache.writebacks, "{segments} segments");
            assert_eq!(misses.updates[segments] as u64, cache.updates, "{segments} segments");
        }
    }

    /// A write buffer as `dram::buffer::Lru` orders it, without a device: flash reads and flushed pages saved.
    struct Buffer {
        frames: u32,
        links: Links,
        list: List,
        held: BTreeMap<u32, u32>,
        read_hits: u64,
        write_hits: u64,
    }

    impl Buffer {
        fn access(&mut self, lpn: u32, touch: Touch) {
            if let Some(frame) = self.held.get(&lpn) {
                self.list.touch(&mut self.links, *frame);
                self.read_hits += u64::from(touch == Touch::Read);
                self.write_hits += u64::from(touch == Touch::Write);
            } else if touch == Touch::Write {
                let frame = if self.list.length() == self.frames {
                    let frame = self.list.pop_oldest(&mut self.links).unwrap();
                    self.held.retain(|_, f| *f != frame);
                    frame
                } else {
                    self.list.length()
                };
                self.list.push_newest(&mut self.links, frame);
                self.held.insert(lpn, frame);
            }
        }
    }

    #[test]
    fn the_buffers_curve_counts_the_hits_of_a_buffer_of_each_size() {
        let pages = u64::from(SEGMENTS) * 4;
        let mut curve = BufferCurve::new(pages, u64::MAX / 2);
        let mut buffers: Vec<Buffer> = [2, 8, 16, 32]
            .map(|segments| Buffer {
                frames: segments * 4,
                links: Links::new(segments * 4),
                list: List::default(),
                held: BTreeMap::new(),
                read_hits: 0,
                write_hits: 0,
            })
            .into();
        let mut random = Random::new(21);
        for _ in 0..40_000 {
            let lpn = (random.unit().powi(2) * 200.0) as u32;
            let touch = if random.chance(0.3) { Touch::Read } else { Touch::Write };
            curve.on_access(Lpn(lpn), touch);
            buffers.iter_mut().for_each(|buffer| buffer.access(lpn, touch));
        }
        let (reads, writes) = curve.misses();
        for buffer in &buffers {
            let segments = buffer.frames as usize / 4;
            for (saved, hits) in
                [(reads[0] - reads[segments], buffer.read_hits), (writes[0] - writes[segments], buffer.write_hits)]
            {
                let error = (saved / hits as f64 - 1.0).abs();
                assert!(error < 0.03, "{segments} segments: {saved} by the curve, {hits} hits");
            }
        }
    }
}
