//! A log as a device: requests above, segments of another device below.

use crate::checkpoint::{CheckpointWrite, checkpoint_blocks};
use crate::disk::{Disk, SegmentWrite};
use crate::log::SegmentLog;
use crate::options::BLOCK_BYTES;
use crate::segments::SegmentState;
use crate::snapshot::{LogSnapshot, UTILISATION_BUCKETS, utilisation_bucket};
use isotherm::cause::Cause;
use isotherm::device::{DeviceError, Observe, Replay};
use isotherm::request::{Op, Request};
use isotherm::stats::{HostCounters, Latencies, Snapshot, VICTIM_BUCKETS, WearSummary};

/// How many requests ahead a block's state is prefetched.
const AHEAD: usize = 16;

/// The device below a log: two places for checkpoints, then the segments. Without a device the log's own work is all there is.
pub struct Below {
    device: Option<Box<dyn Replay>>,
    segment_blocks: u32,
    checkpoint_blocks: u32,
    arrival_ns: u64,
    /// Bytes of the writes that the device carried out.
    written_bytes: u64,
    /// Bytes of the parts of failed writes that the device carried out: counted below, and for the log not written.
    failed_bytes: u64,
}

impl Below {
    /// The device below a log of `segments` segments; it has room for [`Below::bytes`].
    pub fn new(device: Option<Box<dyn Replay>>, segments: u32, segment_blocks: u32) -> Self {
        let checkpoint_blocks = checkpoint_blocks(segments);
        Self { device, segment_blocks, checkpoint_blocks, arrival_ns: 0, written_bytes: 0, failed_bytes: 0 }
    }

    /// Bytes that a log of `segments` segments takes of the device below.
    pub fn bytes(segments: u32, segment_blocks: u32) -> u64 {
        let blocks = 2 * u64::from(checkpoint_blocks(segments)) + u64::from(segments) * u64::from(segment_blocks);
        blocks * u64::from(BLOCK_BYTES)
    }

    fn submit(&mut self, op: Op, block: u64, blocks: u32) -> Result<(), DeviceError> {
        let Some(device) = &mut self.device else { return Ok(()) };
        let length = u64::from(blocks) * u64::from(BLOCK_BYTES);
        let offset = block * u64::from(BLOCK_BYTES);
        let submitted = device.submit(&[Request { arrival_ns: self.arrival_ns, offset, length, op }]);
        if submitted.is_err() && op == Op::Write {
            let arrived = device.snapshot().host.bytes_written;
            self.failed_bytes += arrived - self.written_bytes - self.failed_bytes;
        } else if op == Op::Write {
            self.written_bytes += length;
        }
        submitted
    }

    /// The block of the device at which a position of the log lies.
    fn block(&self, position: u32) -> u64 {
        2 * u64::from(self.checkpoint_blocks) + u64::from(position)
    }
}

impl Disk for Below {
    type Block = ();
    fn write(&mut self, write: &SegmentWrite<'_, ()>) -> Result<(), DeviceError> {
        self.submit(Op::Write, self.block(write.position), write.summary_blocks + write.blocks.len() as u32)
    }
    fn read(&mut self, position: u32, out: &mut [()]) -> Result<(), DeviceError> {
        self.submit(Op::Read, self.block(position), out.len() as u32)
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        self.submit(Op::Trim, self.block(segment * self.segment_blocks), self.segment_blocks)
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.submit(Op::Flush, 0, 0)
    }
    fn checkpoint(&mut self, write: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        let place = u64::from(write.place()) * u64::from(self.checkpoint_blocks);
        self.submit(Op::Write, place, self.checkpoint_blocks)
    }
}

/// A log-structured file system as a device whose addresses are the blocks of its files.
pub struct LogDevice {
    log: SegmentLog<Below>,
    sync: bool,
    host: HostCounters,
    /// Without a device below there is no time.
    no_latencies: Latencies,
}

impl LogDevice {
    /// A device over `log`; `sync` carries out the flushes of the host.
    pub fn new(log: SegmentLog<Below>, sync: bool) -> Self {
        Self { log, sync, host: HostCounters::default(), no_latencies: Latencies::default() }
    }

    fn below(&self) -> Option<&dyn Replay> {
        self.log.store().device.as_deref()
    }

    fn check_range(&self, index: usize, request: &Request) -> Result<u64, DeviceError> {
        let capacity_bytes = u64::from(self.log.blocks()) * u64::from(BLOCK_BYTES);
        let end = request.offset.saturating_add(request.length);
        if end > capacity_bytes {
            return Err(DeviceError::OutOfRange { request: index, offset: request.offset, end, capacity_bytes });
        }
        Ok(end)
    }

    #[inline(always)]
    fn carry_out(&mut self, index: usize, request: &Request) -> Result<(), DeviceError> {
        let end = self.check_range(index, request)?;
        let block_bytes = u64::from(BLOCK_BYTES);
        match request.op {
            Op::Flush => {
                self.host.flushes += 1;
                return if self.sync { self.log.sync() } else { Ok(()) };
            }
            _ if request.length == 0 => return Ok(()),
            Op::Write => {
                for block in request.offset / block_bytes..end.div_ceil(block_bytes) {
                    let whole = block * block_bytes >= request.offset && (block + 1) * block_bytes <= end;
                    if !whole {
                        self.host.pages_partly_written += 1;
                        self.log.read(block as u32, &mut ())?;
                    }
                    self.log.write(block as u32, ())?;
                    self.host.pages_written += 1;
                    let start = block * block_bytes;
                    self.host.bytes_written += end.min(start + block_bytes) - request.offset.max(start);
                }
            }
            Op::Read => {
                self.host.bytes_read += request.length;
                for block in request.offset / block_bytes..end.div_ceil(block_bytes) {
                    self.host.pages_read += 1;
                    self.host.pages_read_unmapped += u64::from(!self.log.read(block as u32, &mut ())?);
                }
            }
            Op::Trim => {
                self.host.bytes_trimmed += request.length;
                for block in request.offset.div_ceil(block_bytes)..end / block_bytes {
                    self.host.pages_trimmed += 1;
                    self.log.trim(block as u32);
                }
            }
        }
        Ok(())
    }

    /// The log's writes as those of a medium: its cleaning is the collection, its segments are the blocks.
    fn ideal_snapshot(&self) -> Snapshot {
        let (counters, segments) = (self.log.counters(), self.log.segments());
        let mut snapshot = Snapshot::default();
        snapshot.medium.programs[Cause::Host] = counters.logged_blocks;
        snapshot.medium.programs[Cause::Gc] = counters.cleaned_blocks;
        snapshot.medium.programs[Cause::Checkpoint] = counters.summary_blocks + counters.checkpoint_blocks;
        snapshot.medium.reads[Cause::Gc] = counters.cleaning_reads;
        snapshot.valid_pages = (0..segments.count()).map(|s| u64::from(segments.live(s))).sum();
        snapshot.mapped_pages = snapshot.valid_pages + self.log.dirty_blocks() as u64;
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
            dirty_blocks: self.log.dirty_blocks() as u64,
            below: self.below().map(Observe::snapshot),
        }
    }
}

impl Observe for LogDevice {
    /// Where a device stands below, everything but `host` is its own; else the log's writes stand in for a medium's.
    fn snapshot(&self) -> Snapshot {
        let log = self.log_snapshot();
        let mut snapshot = log.below.clone().unwrap_or_else(|| self.ideal_snapshot());
        snapshot.host = self.host;
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

    fn block_valid_pages(&self) -> Vec<u32> {
        self.below().map(Observe::block_valid_pages).unwrap_or_default()
    }

    fn latencies(&self) -> &Latencies {
        self.below().map_or(&self.no_latencies, Observe::latencies)
    }

    fn reset_latencies(&mut self) {
        if let Some(device) = &mut self.log.store_mut().device {
            device.reset_latencies();
        }
    }

    fn check(&self) -> Result<(), String> {
        self.log.check()?;
        let counters = self.log.counters();
        let Some(below) = self.below() else { return Ok(()) };
        below.check()?;
        let arrived = below.snapshot().host.bytes_written;
        let sent = counters.written_blocks() * u64::from(BLOCK_BYTES) + self.log.store().failed_bytes;
        if arrived == sent { Ok(()) } else { Err(format!("the log wrote {sent} bytes, {arrived} arrived below")) }
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

impl Replay for LogDevice {
    fn submit(&mut self, batch: &[Request]) -> Result<(), DeviceError> {
        for (index, request) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(index + AHEAD) {
                self.log.prefetch((ahead.offset / u64::from(BLOCK_BYTES)) as u32);
            }
            self.log.store_mut().arrival_ns = request.arrival_ns;
            self.log.tick(request.arrival_ns)?;
            self.carry_out(index, request)?;
        }
        Ok(())
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.log.store_mut().device.as_mut().map_or(Ok(()), |device| device.idle(budget_ns))
    }
}
