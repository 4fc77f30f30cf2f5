//! The buffer's curve: for each split, the writes that would have reached flash, because no later write or trim met the page in
//! the buffer, and the reads that would not have found their page there.
//!
//! Every page is followed, so that a loop of writes which just fits is told from one that just does not. Reads look up but
//! do not insert, so only buffers that reach to the page's segment notice a read: it renews the page within that segment.
//! This errs by a few per cent against the buffers themselves, where reads are many.
//!
//! Memory: the buffer orders its own pages anyway, so that a page in it costs one byte more, for its segment; a page that
//! only a larger buffer would hold costs a ghost's [`GHOST_BYTES`]. O(splits) an access.

use super::{Curve, Grid, SPLITS, SequentialCurve, decay, misses};
use crate::address::Lpn;
use crate::dram::buffer::Touch;
use crate::dram::ghost::GhostLru;
use crate::dram::index::AddressIndex;
use crate::dram::stack::LruStack;

/// DRAM for a page that the buffer may hold: its segment.
pub const FRAME_BYTES: u64 = 1;
/// DRAM for a page that it could hold but does not.
pub const GHOST_BYTES: u64 = GhostLru::ENTRY_BYTES;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct BufferCurve {
    index: AddressIndex,
    pages: Vec<u32>,
    free: Vec<u32>,
    stack: LruStack,
    /// Pages of each segment, the smallest buffer first.
    lengths: [u32; SPLITS],
    /// Of each slot: flushes before the page was last written.
    written_in: Vec<u32>,
    flushes: u32,
    reads_all: f64,
    writes_all: f64,
    reads: Curve,
    writes: Curve,
    /// What hears of every size's evictions, where there is a hybrid map behind.
    sequential: Option<SequentialCurve>,
}

impl BufferCurve {
    /// For the buffers of a grid, of which `sequential` hears what each evicts.
    pub fn new(grid: &Grid, sequential: Option<SequentialCurve>) -> Self {
        let mut sizes = grid.frames;
        sizes.reverse();
        // One page more than the largest holds: it is the one that is leaving.
        let slots = sizes[SPLITS - 1] + 1;
        Self {
            index: AddressIndex::new(slots),
            pages: vec![0; slots as usize],
            free: (0..slots).rev().collect(),
            stack: LruStack::new(SPLITS as u8, slots),
            lengths: std::array::from_fn(|i| if i == 0 { sizes[0] } else { sizes[i] - sizes[i - 1] }),
            written_in: vec![0; slots as usize],
            flushes: 0,
            reads_all: 0.0,
            writes_all: 0.0,
            reads: [0.0; SPLITS],
            writes: [0.0; SPLITS],
            sequential,
        }
    }

    pub(in crate::dram::partition) fn on_access(&mut self, lpn: Lpn, touch: Touch) {
        let known = self.index.get(lpn.0);
        if touch == Touch::Read {
            self.reads_all += 1.0;
            if let Some((slot, segment)) = known.and_then(|slot| Some((slot, self.stack.segment(slot)?))) {
                self.reads[usize::from(segment)] += 1.0;
                self.stack.renew(slot);
            }
            return;
        }
        self.writes_all += 1.0;
        let slot = known.unwrap_or_else(|| {
            let slot = self.free.pop().expect("one slot is free between accesses");
            self.pages[slot as usize] = lpn.0;
            self.index.insert(lpn.0, slot);
            slot
        });
        let found = self.stack.touch(slot);
        let written_in = std::mem::replace(&mut self.written_in[slot as usize], self.flushes);
        // What a flush has written since is clean: overwriting it saves nothing at any size.
        if let Some(segment) = found.filter(|_| written_in == self.flushes) {
            self.writes[usize::from(segment)] += 1.0;
        }
        self.settle();
    }

    /// Moves the oldest page of every segment that is too long to the next one.
    #[inline(always)]
    fn settle(&mut self) {
        for segment in 0..SPLITS as u8 {
            if self.stack.length(segment) <= self.lengths[usize::from(segment)] {
                return;
            }
            let Some(slot) = self.stack.pass_on(segment) else { return };
            if let Some(curve) = self.sequential.as_mut().filter(|_| self.written_in[slot as usize] == self.flushes) {
                // The smallest buffer is that of the last split.
                curve.on_evict(SPLITS - 1 - usize::from(segment), Lpn(self.pages[slot as usize]));
            }
            if self.stack.segment(slot).is_none() {
                self.index.remove(self.pages[slot as usize]);
                self.free.push(slot);
            }
        }
    }

    pub(in crate::dram::partition) fn on_trim(&mut self, lpn: Lpn) {
        let Some(slot) = self.index.remove(lpn.0) else { return };
        // A page that is discarded while it waits is a write saved, as if it had been overwritten.
        let is_dirty = self.written_in[slot as usize] == self.flushes;
        if let Some(segment) = self.stack.segment(slot).filter(|_| is_dirty) {
            self.writes[usize::from(segment)] += 1.0;
        }
        self.stack.remove(slot);
        self.free.push(slot);
    }

    pub(in crate::dram::partition) fn on_drain(&mut self) {
        self.flushes = self.flushes.wrapping_add(1);
    }

    /// Flash reads and page writes that the buffer of each split would not have saved.
    pub fn misses(&self) -> (Curve, Curve) {
        let by_split = |found: &Curve, all| {
            let mut curve = misses(found, all);
            curve.reverse();
            curve
        };
        (by_split(&self.reads, self.reads_all), by_split(&self.writes, self.writes_all))
    }

    /// Pages that merges of the sequential log block would have copied; none where the map is no hybrid.
    pub fn sequential_copies(&self) -> Curve {
        self.sequential.as_ref().map_or([0.0; SPLITS], |curve| *curve.copies())
    }

    pub(in crate::dram::partition) fn decay(&mut self, factor: f64) {
        if let Some(curve) = &mut self.sequential {
            curve.decay(factor);
        }
        self.reads_all *= factor;
        self.writes_all *= factor;
        decay(&mut self.reads, factor);
        decay(&mut self.writes, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::list::{Links, List};
    use crate::random::Random;
    use std::collections::BTreeMap;

    /// A write buffer as `dram::buffer::Queue` orders it for LRU, without a device.
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

    fn grid() -> Grid {
        let frames = std::array::from_fn(|i| 128 - 8 * i as u32);
        Grid { mapping_bytes: [0; SPLITS], entries: [0; SPLITS], frames }
    }

    #[test]
    fn the_curve_counts_the_hits_of_a_buffer_of_each_size() {
        let mut curve = BufferCurve::new(&grid(), None);
        let mut buffers = grid().frames.map(|frames| Buffer {
            frames,
            links: Links::new(frames),
            list: List::default(),
            held: BTreeMap::new(),
            read_hits: 0,
            write_hits: 0,
        });
        let mut random = Random::new(21);
        let (mut all_reads, mut all_writes) = (0.0, 0.0);
        for _ in 0..40_000 {
            let lpn = (random.unit().powi(2) * 200.0) as u32;
            let touch = if random.chance(0.3) { Touch::Read } else { Touch::Write };
            all_reads += f64::from(u8::from(touch == Touch::Read));
            all_writes += f64::from(u8::from(touch == Touch::Write));
            curve.on_access(Lpn(lpn), touch);
            buffers.iter_mut().for_each(|buffer| buffer.access(lpn, touch));
        }
        let (reads, writes) = curve.misses();
        for (split, buffer) in buffers.iter().enumerate() {
            for (saved, hits) in
                [(all_reads - reads[split], buffer.read_hits), (all_writes - writes[split], buffer.write_hits)]
            {
                let error = (saved / hits as f64 - 1.0).abs();
                assert!(error < 0.03, "{} pages: {saved} by the curve, {hits} hits", buffer.frames);
            }
        }
    }

    #[test]
    fn the_sequential_block_behind_each_size_sees_what_that_size_evicts() {
        const PAGES: u32 = 8;
        let mut curve = BufferCurve::new(&grid(), Some(SequentialCurve::new(PAGES)));
        let mut alone = SequentialCurve::new(PAGES);
        let mut buffers = grid().frames.map(|_| Vec::new());
        let mut random = Random::new(22);
        let mut write = |lpn: u32| {
            curve.on_access(Lpn(lpn), Touch::Write);
            for (split, (buffer, frames)) in buffers.iter_mut().zip(grid().frames).enumerate() {
                buffer.retain(|held| *held != lpn);
                buffer.push(lpn);
                if buffer.len() > frames as usize {
                    alone.on_evict(split, Lpn(buffer.remove(0)));
                }
            }
        };
        for _ in 0..3000 {
            // Short files, now and then with a page written twice.
            let first = random.below(40) as u32 * PAGES;
            for offset in 0..random.below(9) as u32 {
                write(first + offset);
                if random.chance(0.1) {
                    write(first + random.below(u64::from(offset) + 1) as u32);
                }
            }
        }
        let copies = curve.sequential_copies();
        assert_eq!(&copies, alone.copies());
        assert!(copies[15] > copies[0] * 1.2 && copies[0] > 0.0, "larger buffers keep more order: {copies:?}");
    }

    #[test]
    fn what_is_trimmed_while_it_waits_is_a_write_saved() {
        let mut curve = BufferCurve::new(&grid(), None);
        for turn in 0..1000 {
            curve.on_access(Lpn(turn), Touch::Write);
            if let Some(old) = turn.checked_sub(60) {
                curve.on_trim(Lpn(old));
            }
        }
        // Sixty pages are written before each is trimmed: buffers of 64 pages and more save all but the last of them.
        let writes = curve.misses().1;
        assert!(writes[..9].iter().all(|w| *w == 60.0) && writes[9..].iter().all(|w| *w == 1000.0), "{writes:?}");
    }

    #[test]
    fn a_loop_hits_in_buffers_that_hold_all_of_it_and_in_no_other() {
        for (length, holds) in [(128, 1), (127, 1), (120, 2), (129, 0)] {
            let mut curve = BufferCurve::new(&grid(), None);
            (0..100).for_each(|_| (0..length).for_each(|lpn| curve.on_access(Lpn(lpn), Touch::Write)));
            let writes = curve.misses().1;
            let all = 100.0 * f64::from(length);
            assert!(writes[..holds].iter().all(|w| *w == f64::from(length)), "{length}: {writes:?}");
            assert!(writes[holds..].iter().all(|w| *w == all), "{length}: {writes:?}");
        }
    }
}
