//! What both sides of the DRAM would save at every size, from LRU stack distances: the measurements of the `marginal` rule.
//!
//! The buffer's curve counts, for each size, the writes that would have overwritten a buffered page and the reads that would
//! have found one. Reads look up but do not insert, so only buffers that reach to the page's segment notice a read: it renews
//! the page within that segment. This errs by a few per cent against the buffers themselves, where reads are many.
//!
//! The map's curve counts, for each size, the reads that would have missed their entry and the dirty entries that would have
//! been evicted: an entry is evicted by a size at the moment in which it crosses that size's end. Only a sample of the
//! addresses is followed. O(segments) an access that is in the sample.

use crate::address::Lpn;
use crate::dram::buffer::Touch;
use crate::dram::stack::{LruStack, is_sampled};

/// Segments of either stack: the resolution of the splits that are compared.
pub const SEGMENTS: u8 = 32;
const SIZES: usize = SEGMENTS as usize + 1;

/// No size: an entry that is clean in every cache.
const NEVER: u8 = u8::MAX;

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

/// Splits `most` addresses, of which one in 2^`log2` is followed, into segments.
fn stack(most: u64, log2: u8) -> LruStack {
    LruStack::new(SEGMENTS, ((most >> log2).div_ceil(SEGMENTS.into()) as u32).max(1))
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

/// The map's side.
#[derive(Clone, Debug)]
pub struct MapCurve {
    stack: LruStack,
    log2_sample: u8,
    /// Of each slot: the smallest cache, by its last segment, in which the entry is dirty.
    dirty_from: Vec<u8>,
    reads: [f64; SEGMENTS as usize],
    /// Dirty entries that a cache ending with each segment evicted.
    evictions: [f64; SEGMENTS as usize],
    /// Entries of moved pages that each segment held, and those that none did.
    moves: [f64; SEGMENTS as usize],
    moves_beyond: f64,
}

impl MapCurve {
    /// For caches of up to `entries`, in about `memory_bytes` of DRAM.
    pub fn new(entries: u64, memory_bytes: u64) -> Self {
        let log2_sample = sampling(entries, memory_bytes);
        let stack = stack(entries, log2_sample);
        Self {
            dirty_from: vec![NEVER; stack.slots()],
            stack,
            log2_sample,
            reads: [0.0; SEGMENTS as usize],
            evictions: [0.0; SEGMENTS as usize],
            moves: [0.0; SEGMENTS as usize],
            moves_beyond: 0.0,
        }
    }

    #[inline(always)]
    pub(super) fn on_access(&mut self, lpn: Lpn, touch: Touch) {
        if !is_sampled(lpn.0, self.log2_sample) {
            return;
        }
        let (dirty_from, evictions) = (&mut self.dirty_from, &mut self.evictions);
        let found = self.stack.touch(lpn.0, |slot, segment| {
            if dirty_from[slot as usize] <= segment {
                evictions[usize::from(segment)] += 1.0;
                dirty_from[slot as usize] = segment + 1;
            }
        });
        let slot = found.slot as usize;
        match (touch, found.segment) {
            (Touch::Write, _) => self.dirty_from[slot] = 0,
            (Touch::Read, Some(segment)) => self.reads[usize::from(segment)] += 1.0,
            (Touch::Read, None) => self.dirty_from[slot] = NEVER,
        }
    }

    /// A collection moved `lpn`: caches that hold its entry have it dirty now, the others' translation page was written.
    pub(super) fn on_move(&mut self, lpn: Lpn) {
        if !is_sampled(lpn.0, self.log2_sample) {
            return;
        }
        if let Some((slot, segment)) = self.stack.find(lpn.0) {
            let dirty_from = &mut self.dirty_from[slot as usize];
            *dirty_from = (*dirty_from).min(segment);
            self.moves[usize::from(segment)] += 1.0;
        } else {
            self.moves_beyond += 1.0;
        }
    }

    /// Of each size, up to `entries` in [`SEGMENTS`] steps: reads whose entry is missing, but for those that even the largest
    /// cache misses, dirty entries evicted, and moved pages whose entry is missing.
    pub fn misses(&self) -> (Curve, Curve, Curve) {
        let scale = (1u64 << self.log2_sample) as f64;
        let mut evictions = [0.0; SIZES];
        for (size, count) in self.evictions.iter().enumerate() {
            evictions[size + 1] = count * scale;
        }
        // A cache without room evicts each entry at once: at least as often as one segment does.
        evictions[0] = evictions[1];
        let moves = misses(&self.moves, scale).map(|moves| moves + self.moves_beyond * scale);
        (misses(&self.reads, scale), evictions, moves)
    }

    pub(super) fn decay(&mut self, factor: f64) {
        decay(&mut self.reads, factor);
        decay(&mut self.evictions, factor);
        decay(&mut self.moves, factor);
        self.moves_beyond *= factor;
    }

    /// Bytes of firmware state.
    pub fn memory_bytes(&self) -> u64 {
        self.stack.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::list::{Links, List};
    use crate::random::Random;
    use std::collections::BTreeMap;

    /// An LRU map cache with dirty entries: reads that miss, and dirty entries that leave.
    struct Cache {
        size: usize,
        order: Vec<(u32, bool)>,
        read_misses: u64,
        evictions: u64,
    }

    impl Cache {
        fn access(&mut self, lpn: u32, touch: Touch) {
            let held = self.order.iter().position(|e| e.0 == lpn).map(|at| self.order.remove(at));
            self.read_misses += u64::from(held.is_none() && touch == Touch::Read);
            self.order.insert(0, (lpn, touch == Touch::Write || held.is_some_and(|e| e.1)));
            if self.order.len() > self.size {
                self.evictions += u64::from(self.order.pop().is_some_and(|e| e.1));
            }
        }
    }

    #[test]
    fn the_maps_curve_counts_what_a_cache_of_each_size_does() {
        let entries = u64::from(SEGMENTS) * 4;
        let mut curve = MapCurve::new(entries, u64::MAX / 2);
        let mut caches: Vec<Cache> = [1, 4, 9, 20, 32]
            .map(|segments| Cache { size: segments * 4, order: Vec::new(), read_misses: 0, evictions: 0 })
            .into();
        let mut random = Random::new(17);
        let mut cold_reads = std::collections::BTreeSet::new();
        let mut beyond = 0;
        for _ in 0..30_000 {
            let lpn = (random.unit().powi(2) * 150.0) as u32;
            let touch = if random.chance(0.4) { Touch::Read } else { Touch::Write };
            let largest = caches.last().unwrap();
            beyond += u64::from(touch == Touch::Read && !largest.order.iter().any(|e| e.0 == lpn));
            cold_reads.insert(lpn);
            curve.on_access(Lpn(lpn), touch);
            caches.iter_mut().for_each(|cache| cache.access(lpn, touch));
        }
        let (reads, evictions, _) = curve.misses();
        for cache in &caches {
            let segments = cache.size / 4;
            assert_eq!(reads[segments] as u64 + beyond, cache.read_misses, "{segments} segments");
            assert_eq!(evictions[segments] as u64, cache.evictions, "{segments} segments");
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
