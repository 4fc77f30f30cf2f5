//! A log as a device: requests or bytes above, segments of another device below.

use crate::below::{Below, KeepsBytes, Lower};
use crate::content::BlockContent;
use crate::disk::Disk;
use crate::drive::Drive;
use crate::log::SegmentLog;
use crate::options::{BLOCK_BYTES, LogOptions};
use crate::recover::{RecoverError, recover};
use crate::segments::SegmentState;
use crate::snapshot::{LogSnapshot, UTILISATION_BUCKETS, utilisation_bucket};
use isotherm::cause::Cause;
use isotherm::device::{BlockDevice, BlockView, DeviceError, Observe, Replay};
use isotherm::request::{Op, Request};
use isotherm::stats::{HostCounters, Latencies, Snapshot, VICTIM_BUCKETS, WearSummary};
use std::ops::Range;

/// How many requests ahead a block's state is prefetched.
const AHEAD: usize = 16;

/// What a block of a log over a `D` holds.
type Block<D> = <Below<D> as Disk>::Block;
/// What the host writes to a log over a `D`.
type Data<'a, D> = <Block<D> as BlockContent>::Data<'a>;
/// Where the host reads from a log over a `D` to.
type Room<'a, D> = <Block<D> as BlockContent>::Room<'a>;

/// A log-structured file system as a device whose addresses are the blocks of its files.
pub struct LogDevice<D>
where
    Below<D>: Disk,
{
    log: SegmentLog<Below<D>>,
    sync: bool,
    drive: Drive,
    host: HostCounters,
    arrival_ns: u64,
    /// Without a device below there is no time.
    no_latencies: Latencies,
}

/// The part of a block that a request covers.
struct Piece {
    /// First byte of the block.
    at: usize,
    /// Bytes of the request.
    range: Range<usize>,
}

impl Piece {
    /// What bytes `offset..end` cover of a block.
    #[inline(always)]
    fn of(block: u64, offset: u64, end: u64) -> Self {
        let start = block * u64::from(BLOCK_BYTES);
        let (from, to) = (offset.max(start), end.min(start + u64::from(BLOCK_BYTES)));
        Self { at: (from - start) as usize, range: (from - offset) as usize..(to - offset) as usize }
    }
}

/// Blocks that bytes `offset..end` touch.
#[inline(always)]
fn blocks(offset: u64, end: u64) -> Range<u64> {
    offset / u64::from(BLOCK_BYTES)..end.div_ceil(u64::from(BLOCK_BYTES))
}

impl LogDevice<Box<dyn BlockDevice>> {
    /// Opens the log of `blocks` blocks in `segments` segments that `device` holds. A device that was never written holds an
    /// empty log. `sync` carries out the flushes of the host.
    ///
    /// # Errors
    /// See [`RecoverError`].
    pub fn open(
        device: Box<dyn BlockDevice>,
        blocks: u32,
        segments: u32,
        options: LogOptions,
        sync: bool,
        drive: Drive,
    ) -> Result<Self, RecoverError> {
        let below = Below::new(device, segments, options.segment_blocks);
        Ok(Self::new(recover(below, blocks, segments, options)?, sync, drive))
    }
}

impl<D: Lower> LogDevice<D>
where
    Below<D>: Disk,
{
    /// A device over `log`; `sync` carries out the flushes of the host, and `drive` tells what writes cost.
    pub fn new(log: SegmentLog<Below<D>>, sync: bool, drive: Drive) -> Self {
        Self { log, sync, drive, host: HostCounters::default(), arrival_ns: 0, no_latencies: Latencies::default() }
    }

    /// The log inside.
    pub fn log(&self) -> &SegmentLog<Below<D>> {
        &self.log
    }

    /// Gives the device below back, as a loss of power leaves it: what is dirty is lost.
    pub fn into_lower(self) -> D {
        self.log.into_store().device
    }

    fn below(&self) -> Option<&dyn Observe> {
        self.log.store().device.observed()
    }

    fn check_range(&self, request: usize, offset: u64, length: u64) -> Result<u64, DeviceError> {
        let capacity_bytes = u64::from(self.log.blocks()) * u64::from(BLOCK_BYTES);
        let end = offset.saturating_add(length);
        if end > capacity_bytes {
            return Err(DeviceError::OutOfRange { request, offset, end, capacity_bytes });
        }
        Ok(end)
    }

    /// A request arrives: the log may have work to do that was due before.
    #[inline(always)]
    fn begin(&mut self, arrival_ns: u64) -> Result<(), DeviceError> {
        self.log.store_mut().arrival_ns = arrival_ns;
        self.log.tick(arrival_ns)
    }

    #[inline(always)]
    fn write_blocks(&mut self, offset: u64, end: u64, data: Data<'_, D>) -> Result<(), DeviceError> {
        let written = blocks(offset, end);
        self.log.begin_write((written.end - written.start) as u32);
        for block in written {
            let start = block * u64::from(BLOCK_BYTES);
            if start < offset || start + u64::from(BLOCK_BYTES) > end {
                self.write_part(block, Piece::of(block, offset, end), data)?;
                continue;
            }
            let from = (start - offset) as usize;
            self.log.write(block as u32, Block::<D>::of(data, from..from + BLOCK_BYTES as usize))?;
            self.host.pages_written += 1;
            self.host.bytes_written += u64::from(BLOCK_BYTES);
        }
        Ok(())
    }

    /// Writes a part of a block, which is read first.
    #[inline(never)]
    fn write_part(&mut self, block: u64, piece: Piece, data: Data<'_, D>) -> Result<(), DeviceError> {
        self.host.pages_partly_written += 1;
        let mut content = Block::<D>::default();
        self.log.read(block as u32, &mut content)?;
        let length = piece.range.len() as u64;
        content.patch(piece.at, data, piece.range);
        self.log.write(block as u32, content)?;
        self.host.pages_written += 1;
        self.host.bytes_written += length;
        Ok(())
    }

    fn read_blocks(&mut self, offset: u64, end: u64, room: &mut Room<'_, D>) -> Result<(), DeviceError> {
        self.host.bytes_read += end - offset;
        for block in blocks(offset, end) {
            self.host.pages_read += 1;
            let mut content = Block::<D>::default();
            self.host.pages_read_unmapped += u64::from(!self.log.read(block as u32, &mut content)?);
            let piece = Piece::of(block, offset, end);
            content.extract(piece.at, room, piece.range);
        }
        Ok(())
    }

    /// Trims the blocks that bytes `offset..end` cover whole.
    fn trim_blocks(&mut self, offset: u64, end: u64) {
        self.host.bytes_trimmed += end - offset;
        for block in offset.div_ceil(u64::from(BLOCK_BYTES))..end / u64::from(BLOCK_BYTES) {
            self.host.pages_trimmed += 1;
            self.log.trim(block as u32);
        }
    }

    /// Makes the range zero: parts of blocks are written, whole ones trimmed.
    fn zero_range(&mut self, offset: u64, end: u64) -> Result<(), DeviceError> {
        for block in blocks(offset, end) {
            let start = block * u64::from(BLOCK_BYTES);
            let (from, to) = (offset.max(start), end.min(start + u64::from(BLOCK_BYTES)));
            if to - from == u64::from(BLOCK_BYTES) {
                self.trim_blocks(from, to);
                continue;
            }
            self.host.pages_partly_written += 1;
            let mut content = Block::<D>::default();
            self.log.read(block as u32, &mut content)?;
            content.clear((from - start) as usize..(to - start) as usize);
            self.log.write(block as u32, content)?;
            self.host.pages_written += 1;
            self.host.bytes_written += to - from;
        }
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), DeviceError> {
        self.host.flushes += 1;
        self.make_durable()
    }

    fn make_durable(&mut self) -> Result<(), DeviceError> {
        if self.sync { self.log.sync() } else { Ok(()) }
    }

    /// Blocks of the host in all segments.
    fn live_blocks(&self) -> u64 {
        let segments = self.log.segments();
        (0..segments.count()).map(|segment| u64::from(segments.live(segment))).sum()
    }

    /// The log's writes as those of a medium: its cleaning is the collection, its segments are the blocks.
    fn ideal_snapshot(&self) -> Snapshot {
        let (counters, segments) = (self.log.counters(), self.log.segments());
        let mut snapshot = Snapshot::default();
        snapshot.medium.programs[Cause::Host] = counters.logged_blocks;
        snapshot.medium.programs[Cause::Gc] = counters.cleaned_blocks;
        snapshot.medium.programs[Cause::Checkpoint] = counters.summary_blocks + counters.checkpoint_blocks;
        snapshot.medium.reads[Cause::Gc] = counters.cleaning_reads;
        snapshot.valid_pages = self.live_blocks();
        snapshot.free_blocks = segments.freed();
        snapshot.collector.invalidated_pages = counters.written_blocks() - snapshot.valid_pages;
        snapshot.collector.collections = counters.segments_cleaned;
        snapshot.collector.victim_pages = counters.segments_cleaned * u64::from(self.log.options().payload_blocks());
        snapshot.collector.victim_invalid_pages = snapshot.collector.victim_pages - counters.cleaning_reads;
        for (index, count) in counters.victim_histogram.iter().enumerate() {
            snapshot.collector.victim_histogram[VICTIM_BUCKETS - 1 - index] += count;
        }
        snapshot
    }

    fn log_snapshot(&self) -> LogSnapshot {
        let segments = self.log.segments();
        let mut histogram = [0; UTILISATION_BUCKETS];
        for segment in (0..segments.count()).filter(|s| segments.state(*s) == SegmentState::Written) {
            histogram[utilisation_bucket(segments.utilisation(segment))] += 1;
        }
        LogSnapshot {
            counters: self.log.counters().clone(),
            centres: self.log.centres(),
            utilisation_histogram: histogram,
            segments: segments.count(),
            payload_blocks: self.log.options().payload_blocks(),
            drive: self.drive,
            dirty_blocks: self.log.dirty_blocks() as u64,
            below: self.below().map(Observe::snapshot),
        }
    }
}

impl<D: Lower> Observe for LogDevice<D>
where
    Below<D>: Disk,
{
    /// Where a device stands below, everything but `host` and what that has mapped is its own; else the log's writes stand in for a
    /// medium's.
    fn snapshot(&self) -> Snapshot {
        let log = self.log_snapshot();
        let mut snapshot = log.below.clone().unwrap_or_else(|| self.ideal_snapshot());
        snapshot.host = self.host;
        snapshot.mapped_pages = self.live_blocks() + self.log.dirty_blocks() as u64;
        snapshot.dram.push(("log", self.log.table_bytes()));
        snapshot.sections.put(log);
        snapshot
    }

    fn wear(&self) -> WearSummary {
        self.below().map(Observe::wear).unwrap_or_default()
    }

    fn block_erases(&self) -> Vec<u32> {
        self.below().map(Observe::block_erases).unwrap_or_default()
    }

    fn blocks(&self) -> Vec<BlockView> {
        self.below().map(Observe::blocks).unwrap_or_default()
    }

    fn latencies(&self) -> &Latencies {
        self.below().map_or(&self.no_latencies, Observe::latencies)
    }

    fn reset_latencies(&mut self) {
        if let Some(device) = self.log.store_mut().device.observed_mut() {
            device.reset_latencies();
        }
    }

    fn check(&self) -> Result<(), String> {
        self.log.check()?;
        self.log.store().check(self.log.counters().written_blocks())
    }

    fn logical_pages(&self) -> u32 {
        self.log.blocks()
    }

    fn physical_pages(&self) -> u32 {
        let log = self.log.segments().count() * self.log.options().segment_blocks;
        self.below().map_or(log, Observe::physical_pages)
    }

    fn page_bytes(&self) -> u32 {
        BLOCK_BYTES
    }
}

impl Replay for LogDevice<Option<Box<dyn Replay>>> {
    fn submit(&mut self, batch: &[Request]) -> Result<(), DeviceError> {
        for (index, request) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(index + AHEAD) {
                self.log.prefetch((ahead.offset / u64::from(BLOCK_BYTES)) as u32);
            }
            self.begin(request.arrival_ns)?;
            let end = self.check_range(index, request.offset, request.length)?;
            match request.op {
                Op::Flush => self.flush_all()?,
                _ if request.length == 0 => {}
                Op::Write => self.write_blocks(request.offset, end, ())?,
                Op::Read => self.read_blocks(request.offset, end, &mut ())?,
                Op::Trim => self.trim_blocks(request.offset, end),
                Op::WriteZeroes => self.zero_range(request.offset, end)?,
            }
            if request.durable {
                self.make_durable()?;
            }
        }
        Ok(())
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.log.store_mut().device.idle(budget_ns)
    }
}

impl<D: KeepsBytes> BlockDevice for LogDevice<D> {
    fn capacity_bytes(&self) -> u64 {
        u64::from(self.log.blocks()) * u64::from(BLOCK_BYTES)
    }

    /// The log mixes what it writes: who asks is not told below.
    fn arrive(&mut self, now_ns: u64, _: u16) {
        self.arrival_ns = self.arrival_ns.max(now_ns);
    }

    fn read(&mut self, offset: u64, mut out: &mut [u8]) -> Result<(), DeviceError> {
        self.begin(self.arrival_ns)?;
        let end = self.check_range(0, offset, out.len() as u64)?;
        if out.is_empty() { Ok(()) } else { self.read_blocks(offset, end, &mut out) }
    }

    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), DeviceError> {
        self.begin(self.arrival_ns)?;
        let end = self.check_range(0, offset, data.len() as u64)?;
        if !data.is_empty() {
            self.write_blocks(offset, end, data)?;
        }
        if durable { self.make_durable() } else { Ok(()) }
    }

    fn trim(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError> {
        self.begin(self.arrival_ns)?;
        let end = self.check_range(0, offset, length)?;
        if length > 0 {
            self.trim_blocks(offset, end);
        }
        if durable { self.make_durable() } else { Ok(()) }
    }

    fn write_zeroes(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError> {
        self.begin(self.arrival_ns)?;
        let end = self.check_range(0, offset, length)?;
        if length > 0 {
            self.zero_range(offset, end)?;
        }
        if durable { self.make_durable() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.begin(self.arrival_ns)?;
        self.flush_all()
    }

    /// The log's own work is not timed: what the device below takes is its own.
    fn latency_ns(&self) -> Option<u64> {
        None
    }

    fn holds_data(&self, page: u32) -> bool {
        self.log.holds(page)
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.log.store_mut().device.idle(budget_ns)
    }
}
