//! The write buffer: pages that the host wrote wait in DRAM, where later writes and reads find them.
//!
//! An FTL over an FTL (Adaptive partitioning, section II.B). A write of a buffered page overwrites it in place; any other
//! write takes a frame, for which the policy evicts pages first. Reads look pages up but do not bring them in, unless the
//! policy asks for it. A write of a part of a page merges into its frame: the device reads the page through the buffer
//! first, and only if it is not here does that cost a flash read.
//!
//! What differs from a bare FTL: a write is durable after the next flush, not when it returns. A flush writes every dirty
//! page in the order of addresses, and only then flushes the FTL, so that no write after a flush can survive a loss of
//! power that a write before it did not. Pages stay after a flush, clean, for reads to hit. A drive whose capacitors can
//! write the buffer out when power fails need not ([`WriteBuffer::protect`]): a flush then tells what keeps the content of
//! pages which frames have changed, and writes nothing to flash.
//!
//! O(1) a page; frames, index and victims are allocated once, for the largest size. Evictions of whole blocks are sorted by
//! address.

use super::buffer::{AnyBuffer, BufferPolicy, Departure, Touch};
use super::index::AddressIndex;
use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::{BlockView, DeviceError};
use crate::ftl::Ftl;
use crate::nand::content::{Content, Frames as _};
use crate::nand::{Medium, PageMut, PageRef};
use crate::stats::{Snapshot, WearSummary, share};
use crate::store::fatal;

crate::counters! {
    /// The write buffer. Padding is counted apart: it is not what the host wrote.
    #[derive(Copy, Eq)]
    pub struct BufferCounters: BufferResults in "buffer" {
        /// Pages that the host read.
        unreported reads: u64,
        /// Of these, found in the buffer.
        unreported read_hits: u64,
        /// Pages that the host wrote.
        unreported writes: u64,
        /// Of these, overwriting a page that flash has not seen: a flash write saved.
        unreported write_hits: u64,
        /// Share of page reads that the buffer answered.
        fn read_hit_ratio(&self) -> Option<f64> {
            share(self.read_hits, self.reads)
        }
        /// Share of page writes that met their page in the buffer.
        fn write_hit_ratio(&self) -> Option<f64> {
            share(self.write_hits, self.writes)
        }
        /// Pages written out to flash for the host, by evictions and flushes.
        flushed_pages: u64,
        /// Pages that were trimmed before flash saw them.
        unreported discarded_pages: u64,
        /// Pages written to flash only to fill the unit of an eviction.
        unreported padded_pages: u64,
    }
}

/// Hears what a buffer does: how ghosts learn. The unit type hears nothing and costs nothing.
pub trait BufferObserver {
    /// A page was asked for; `is_hit` if it was in the buffer.
    fn on_access(&mut self, _lpn: Lpn, _touch: Touch, _is_hit: bool) {}
    /// A page left for want of room.
    fn on_evict(&mut self, _lpn: Lpn) {}
    /// A page was trimmed, whether it was in the buffer or not.
    fn on_trim(&mut self, _lpn: Lpn) {}
    /// Every dirty page was written to flash.
    fn on_drain(&mut self) {}
}

impl BufferObserver for () {}

/// Pages in DRAM that hold what those of the medium below an FTL hold.
type Frames<F> = <<<F as Ftl>::Medium as Medium>::Content as Content>::Frames;

/// See the module's text.
pub struct WriteBuffer<F: Ftl, O = ()> {
    ftl: F,
    policy: AnyBuffer,
    observer: O,
    /// LPN to frame.
    index: AddressIndex,
    /// LPN of each frame.
    pages: Vec<u32>,
    /// One bit a frame: its content is newer than flash.
    dirty: Vec<u64>,
    dirty_pages: u32,
    free: Vec<u32>,
    /// Frames that may be in use.
    capacity: u32,
    /// Content of the frames; one more page than frames, a register through which pages pass that are not buffered.
    frames: Frames<F>,
    victims: Vec<u32>,
    log2_page_bytes: u8,
    /// Power-loss protection: flushes write no page to flash.
    is_protected: bool,
    /// Where the buffer is protected and content is kept: the frames that changed since the last flush, once each.
    unsaved: Option<Unsaved>,
    counters: BufferCounters,
}

/// Frames whose content, or whose need to be kept, changed since they were saved.
struct Unsaved {
    frames: Vec<u32>,
    /// One bit a frame.
    is_listed: Vec<u64>,
}

impl Unsaved {
    fn insert(&mut self, frame: u32) {
        let (word, bit) = (&mut self.is_listed[frame as usize / 64], 1 << (frame % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.frames.push(frame);
        }
    }
}

impl<F: Ftl, O: BufferObserver> WriteBuffer<F, O> {
    /// An empty buffer of `frames` pages, which is also the most that it can ever have, in front of `ftl`. `policy` was built
    /// for as many.
    ///
    /// # Panics
    /// If `frames` is 0.
    pub fn new(ftl: F, policy: AnyBuffer, frames: u32, observer: O) -> Self {
        assert!(frames > 0, "a buffer has at least one page");
        let log2_page_bytes = ftl.medium().geometry().log2_page_bytes;
        Self {
            policy,
            observer,
            index: AddressIndex::new(frames),
            pages: vec![0; frames as usize],
            dirty: vec![0; frames.div_ceil(64) as usize],
            dirty_pages: 0,
            free: (0..frames).rev().collect(),
            capacity: frames,
            frames: Frames::<F>::new(frames + 1, log2_page_bytes),
            victims: Vec::with_capacity(frames as usize),
            log2_page_bytes,
            is_protected: false,
            unsaved: None,
            counters: BufferCounters::default(),
            ftl,
        }
    }

    /// The drive can write its buffer out when power fails, so that flushes need not. Where content is kept, a flush hands the frames
    /// that changed to what keeps it ([`Medium::save_frame`]).
    #[must_use]
    pub fn protect(mut self, is_protected: bool) -> Self {
        self.is_protected = is_protected;
        let saves = is_protected && self.ftl.medium().keeps_content();
        self.unsaved = saves.then(|| Unsaved { frames: Vec::new(), is_listed: vec![0; self.dirty.len()] });
        self
    }

    /// The FTL below.
    pub fn ftl(&self) -> &F {
        &self.ftl
    }
    /// The FTL below, to resize its cache.
    pub fn ftl_mut(&mut self) -> &mut F {
        &mut self.ftl
    }
    /// What hears of the buffer's work.
    pub fn observer(&self) -> &O {
        &self.observer
    }
    /// Both of them.
    pub fn parts(&mut self) -> (&mut F, &mut O) {
        (&mut self.ftl, &mut self.observer)
    }
    /// What the buffer counted.
    pub fn counters(&self) -> &BufferCounters {
        &self.counters
    }
    /// Frames in use.
    #[inline(always)]
    pub fn used_pages(&self) -> u32 {
        self.pages.len() as u32 - self.free.len() as u32
    }

    /// Allows `pages` frames from now on (at least one, at most as many as the buffer was built for), evicting what is too
    /// much.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    pub fn resize(&mut self, pages: u32) -> Result<(), DeviceError> {
        self.capacity = pages.clamp(1, self.pages.len() as u32);
        while self.used_pages() > self.capacity {
            self.evict()?;
        }
        self.policy.set_capacity(self.capacity);
        Ok(())
    }

    #[inline(always)]
    fn is_dirty(&self, frame: u32) -> bool {
        self.dirty[frame as usize / 64] >> (frame % 64) & 1 == 1
    }

    #[inline(always)]
    fn set_dirty(&mut self, frame: u32, is_dirty: bool) {
        let (word, bit) = (&mut self.dirty[frame as usize / 64], 1 << (frame % 64));
        let was_dirty = *word & bit != 0;
        *word = if is_dirty { *word | bit } else { *word & !bit };
        self.dirty_pages = self.dirty_pages + u32::from(is_dirty) - u32::from(was_dirty);
        if let Some(unsaved) = &mut self.unsaved
            && (is_dirty || was_dirty)
        {
            unsaved.insert(frame);
        }
    }

    /// The register: where pages pass that are not buffered.
    fn register(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Writes what a frame holds to flash. Compiled once for all who call it.
    #[inline(never)]
    fn write_frame(&mut self, lpn: Lpn, frame: u32, cause: Cause) -> Result<(), DeviceError> {
        self.ftl.write(lpn, self.frames.page(frame), cause)
    }

    /// Writes a dirty frame to flash, and so cleans it.
    fn write_back(&mut self, frame: u32) -> Result<(), DeviceError> {
        self.write_frame(Lpn(self.pages[frame as usize]), frame, Cause::Host)?;
        self.set_dirty(frame, false);
        self.counters.flushed_pages += 1;
        Ok(())
    }

    /// Takes a frame out of the buffer.
    #[inline(always)]
    fn release(&mut self, frame: u32, departure: Departure) {
        let lpn = Lpn(self.pages[frame as usize]);
        self.counters.discarded_pages += u64::from(departure == Departure::Discarded && self.is_dirty(frame));
        self.set_dirty(frame, false);
        self.index.remove(lpn.0);
        self.free.push(frame);
        self.policy.on_remove(frame, lpn, departure);
    }

    /// Evicts what the policy names.
    fn evict(&mut self) -> Result<(), DeviceError> {
        let mut victims = std::mem::take(&mut self.victims);
        // The map is asked for what leaves, not for what comes: each page's entry is fetched two evictions ahead, and the
        // state of its old place, which the entry tells, one ahead.
        let [sooner, later] = self.policy.upcoming();
        let page_in = |frame: u32| Lpn(self.pages[frame as usize]);
        self.ftl.prefetch_entries(later.map(page_in).as_slice());
        self.ftl.prefetch_pages(sooner.map(page_in).as_slice());
        self.policy.pick(&mut victims);
        debug_assert!(!victims.is_empty(), "a policy names at least one victim");
        if victims.len() > 1 {
            victims.sort_unstable_by_key(|frame| self.pages[*frame as usize]);
        }
        let is_dirty = victims.iter().any(|frame| self.is_dirty(*frame));
        self.ftl.begin_write(victims.len() as u32);
        match self.policy.padded_unit() {
            Some(log2) if is_dirty => self.write_back_padded(log2, victims[0])?,
            _ => {
                for frame in victims.iter().copied() {
                    if self.is_dirty(frame) {
                        self.write_back(frame)?;
                    }
                }
            }
        }
        for frame in victims.drain(..) {
            self.observer.on_evict(Lpn(self.pages[frame as usize]));
            self.release(frame, Departure::Evicted);
        }
        self.victims = victims;
        Ok(())
    }

    /// Writes the unit of 2^`log2` pages around `frame` whole: dirty pages as the host's, the others as padding.
    fn write_back_padded(&mut self, log2: u8, frame: u32) -> Result<(), DeviceError> {
        let first = self.pages[frame as usize] >> log2 << log2;
        let end = (first + (1 << log2)).min(self.ftl.logical_pages());
        let register = self.register();
        for lpn in (first..end).map(Lpn) {
            let source = match self.index.get(lpn.0) {
                Some(frame) if self.is_dirty(frame) => {
                    self.write_back(frame)?;
                    continue;
                }
                Some(frame) => frame,
                None if self.ftl.read(lpn, self.frames.page_mut(register), Cause::Padding)? => register,
                None => continue,
            };
            self.write_frame(lpn, source, Cause::Padding)?;
            self.counters.padded_pages += 1;
        }
        Ok(())
    }

    /// Gives `lpn`, which is not in, a frame.
    #[inline(always)]
    fn admit(&mut self, lpn: Lpn, touch: Touch) -> Result<u32, DeviceError> {
        self.policy.on_miss(lpn);
        while self.used_pages() >= self.capacity {
            self.evict()?;
        }
        let frame = self.free.pop().expect("a buffer below its capacity has a free frame");
        self.pages[frame as usize] = lpn.0;
        self.index.insert(lpn.0, frame);
        self.set_dirty(frame, touch == Touch::Write);
        self.policy.on_insert(frame, lpn, touch);
        Ok(frame)
    }

    /// Writes every dirty page to flash, in the order of addresses.
    fn drain(&mut self) -> Result<(), DeviceError> {
        if self.dirty_pages == 0 {
            return Ok(());
        }
        let mut frames = std::mem::take(&mut self.victims);
        for (index, word) in self.dirty.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                frames.push(index as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
        frames.sort_unstable_by_key(|frame| self.pages[*frame as usize]);
        for frame in frames.drain(..) {
            self.write_back(frame)?;
            self.policy.on_clean(frame);
        }
        self.victims = frames;
        self.observer.on_drain();
        Ok(())
    }
}

impl<F: Ftl, O: BufferObserver> WriteBuffer<F, O> {
    /// Hands the frames that changed to what keeps the content of pages. Trims were logged before: a page that was trimmed and
    /// leaves its frame comes back in no other way.
    fn save(&mut self) -> Result<(), DeviceError> {
        let Some(mut unsaved) = self.unsaved.take() else { return Ok(()) };
        // In the order of frames, so that the store is written from one end to the other.
        unsaved.frames.sort_unstable();
        let saved = unsaved.frames.iter().try_for_each(|frame| {
            let held = self.is_dirty(*frame).then(|| (Lpn(self.pages[*frame as usize]), self.frames.page(*frame)));
            self.ftl.medium_mut().save_frame(*frame, held).map_err(|error| fatal(error, self.pages[*frame as usize]))
        });
        // After an error the device stops: nothing is saved any more.
        for frame in unsaved.frames.drain(..) {
            unsaved.is_listed[frame as usize / 64] &= !(1 << (frame % 64));
        }
        self.unsaved = Some(unsaved);
        saved
    }
}

impl<F: Ftl, O: BufferObserver> Ftl for WriteBuffer<F, O> {
    type Medium = F::Medium;

    fn logical_pages(&self) -> u32 {
        self.ftl.logical_pages()
    }
    /// What is written soon is looked up here; the map below hears of it when it is evicted.
    fn writes_runs(&self) -> bool {
        false
    }
    fn write_run(&mut self, _: &[Lpn]) -> usize {
        0
    }
    fn wants_batches(&self) -> bool {
        // Pages reach the placement when the buffer lets them go.
        false
    }
    fn announce(&mut self, _: &[Lpn]) {}
    fn check_policies(&self) -> Result<(), DeviceError> {
        self.ftl.check_policies()
    }
    fn wants_sources(&self) -> bool {
        self.ftl.wants_sources()
    }
    fn attribute(&mut self, lpn: Lpn, source: u16) {
        self.ftl.attribute(lpn, source);
    }
    /// Below, pages that leave together are written together.
    #[inline(always)]
    fn begin_write(&mut self, _: u32) {}
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        lpns.iter().for_each(|lpn| self.index.prefetch(lpn.0));
    }
    #[inline(always)]
    fn prefetch_pages(&self, _: &[Lpn]) {}
    #[inline(always)]
    fn end_request(&mut self) -> Result<(), DeviceError> {
        self.ftl.end_request()
    }
    #[inline(always)]
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.index.get(lpn.0).is_some() || self.ftl.is_mapped(lpn)
    }

    fn read(&mut self, lpn: Lpn, out: PageMut<'_, F::Medium>, cause: Cause) -> Result<bool, DeviceError> {
        let is_host = cause == Cause::Host;
        self.counters.reads += u64::from(is_host);
        let hit = self.index.get(lpn.0);
        self.observer.on_access(lpn, Touch::Read, hit.is_some());
        if let Some(frame) = hit {
            self.counters.read_hits += u64::from(is_host);
            self.policy.on_touch(frame, lpn, Touch::Read);
            self.frames.get(frame, out);
            return Ok(true);
        }
        if !is_host || !self.policy.keeps_reads() {
            return self.ftl.read(lpn, out, cause);
        }
        let register = self.register();
        if !self.ftl.read(lpn, self.frames.page_mut(register), cause)? {
            return Ok(false);
        }
        match self.admit(lpn, Touch::Read) {
            Ok(frame) => self.frames.copy(register, frame),
            // A device without room for what would have to leave the buffer answers all the same, and keeps nothing.
            Err(error) if error.is_out_of_room() => {}
            Err(error) => return Err(error),
        }
        self.frames.get(register, out);
        Ok(true)
    }

    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, F::Medium>, cause: Cause) -> Result<(), DeviceError> {
        debug_assert_eq!(cause, Cause::Host, "what is above a write buffer writes for the host alone");
        let hit = self.index.get(lpn.0);
        self.observer.on_access(lpn, Touch::Write, hit.is_some());
        let frame = match hit {
            Some(frame) => {
                self.counters.write_hits += u64::from(self.is_dirty(frame));
                self.set_dirty(frame, true);
                self.policy.on_touch(frame, lpn, Touch::Write);
                frame
            }
            None => self.admit(lpn, Touch::Write)?,
        };
        // A write that found no room, because the device below is full, has not come.
        self.counters.writes += 1;
        self.frames.put(frame, page);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        for lpn in (lpn.0..lpn.0 + pages).map(Lpn) {
            self.observer.on_trim(lpn);
            if let Some(frame) = self.index.get(lpn.0) {
                self.release(frame, Departure::Discarded);
            }
        }
        self.ftl.trim(lpn, pages)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if !self.is_protected {
            self.drain()?;
        }
        self.ftl.flush()?;
        self.save()
    }

    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.drain()?;
        self.ftl.write_out()
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.ftl.idle(budget_ns)
    }
    fn medium(&self) -> &F::Medium {
        self.ftl.medium()
    }
    fn medium_mut(&mut self) -> &mut F::Medium {
        self.ftl.medium_mut()
    }
    fn into_medium(self) -> F::Medium {
        self.ftl.into_medium()
    }

    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        self.ftl.fill_snapshot(snapshot);
        snapshot.sections.put(self.counters);
        snapshot.dram.push(("buffer", u64::from(self.capacity) << self.log2_page_bytes));
        snapshot.dram.push(("buffer policy", self.policy.memory_bytes()));
    }

    fn wear(&self) -> WearSummary {
        self.ftl.wear()
    }
    fn blocks(&self) -> Vec<BlockView> {
        self.ftl.blocks()
    }

    fn check(&self) -> Result<(), String> {
        let used = self.used_pages();
        if used > self.capacity {
            return Err(format!("{used} pages are buffered where {} may be", self.capacity));
        }
        let dirty: u32 = self.dirty.iter().map(|w| w.count_ones()).sum();
        let BufferCounters { writes, write_hits, flushed_pages, discarded_pages, .. } = self.counters;
        let accounted = write_hits + flushed_pages + discarded_pages + u64::from(dirty);
        if dirty != self.dirty_pages || writes != accounted {
            return Err(format!(
                "{writes} writes came: {write_hits} overwrote, {flushed_pages} were flushed, {discarded_pages} trimmed, \
                 {dirty} are dirty"
            ));
        }
        self.ftl.check()
    }
}
