//! The device below a log: two places for checkpoints, then the segments.

use crate::checkpoint::{CheckpointWrite, checkpoint_blocks};
use crate::disk::{Disk, Recoverable, SegmentWrite};
use crate::options::BLOCK_BYTES;
use isotherm::device::{BlockDevice, DeviceError, Observe, Replay};
use isotherm::request::{Op, Request};

/// What stands below a log.
pub trait Lower {
    /// It, to be asked; `None` if the log's own work is all there is.
    fn observed(&self) -> Option<&dyn Observe>;
    /// It, to forget what it has recorded.
    fn observed_mut(&mut self) -> Option<&mut dyn Observe>;
    /// Lets it clean in the background for `budget_ns` of its own time.
    ///
    /// # Errors
    /// Faults of the device.
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError>;
}

/// A simulated device, or none.
impl Lower for Option<Box<dyn Replay>> {
    fn observed(&self) -> Option<&dyn Observe> {
        self.as_deref().map(|device| device as &dyn Observe)
    }
    fn observed_mut(&mut self) -> Option<&mut dyn Observe> {
        self.as_deref_mut().map(|device| device as &mut dyn Observe)
    }
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.as_deref_mut().map_or(Ok(()), |device| device.idle(budget_ns))
    }
}

/// A device that keeps its bytes.
impl Lower for Box<dyn BlockDevice> {
    fn observed(&self) -> Option<&dyn Observe> {
        Some(self.as_ref() as &dyn Observe)
    }
    fn observed_mut(&mut self) -> Option<&mut dyn Observe> {
        Some(self.as_mut() as &mut dyn Observe)
    }
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.as_mut().idle(budget_ns)
    }
}

/// What stands below a log and keeps the bytes that it is given.
pub trait KeepsBytes: Lower + Send {
    /// Requests from now on arrive at `now_ns`.
    fn arrive(&mut self, now_ns: u64);
    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// Faults of the device.
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), DeviceError>;
    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// Faults of the device.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), DeviceError>;
    /// Discards a range of whole blocks.
    ///
    /// # Errors
    /// Faults of the device.
    fn trim(&mut self, offset: u64, length: u64) -> Result<(), DeviceError>;
    /// Makes everything durable.
    ///
    /// # Errors
    /// Faults of the device.
    fn flush(&mut self) -> Result<(), DeviceError>;
}

impl KeepsBytes for Box<dyn BlockDevice> {
    fn arrive(&mut self, now_ns: u64) {
        self.as_mut().arrive(now_ns, 0);
    }
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        self.as_mut().read(offset, out)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.as_mut().write(offset, data, false)
    }
    fn trim(&mut self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.as_mut().trim(offset, length, false)
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.as_mut().flush()
    }
}

/// See the module's text.
pub struct Below<D> {
    pub(crate) device: D,
    segment_blocks: u32,
    checkpoint_blocks: u32,
    pub(crate) arrival_ns: u64,
    /// Bytes that had been written to the device before this log came.
    earlier_bytes: u64,
    /// Bytes of the writes that the device carried out.
    written_bytes: u64,
    /// Bytes of the parts of failed writes that the device carried out: counted below, and for the log not written.
    failed_bytes: u64,
    /// Bytes on their way to the device or from it.
    buffer: Vec<u8>,
}

/// Bytes of `blocks` blocks.
fn bytes_of(blocks: u64) -> u64 {
    blocks * u64::from(BLOCK_BYTES)
}

impl<D: Lower> Below<D> {
    /// `device` below a log of `segments` segments; it has room for [`below_bytes`].
    pub fn new(device: D, segments: u32, segment_blocks: u32) -> Self {
        let earlier_bytes = device.observed().map_or(0, |device| device.snapshot().host.bytes_written);
        Self {
            device,
            segment_blocks,
            checkpoint_blocks: checkpoint_blocks(segments),
            arrival_ns: 0,
            earlier_bytes,
            written_bytes: 0,
            failed_bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// The block of the device at which a position of the log lies.
    fn block(&self, position: u32) -> u64 {
        2 * u64::from(self.checkpoint_blocks) + u64::from(position)
    }

    /// The block of the device at which a checkpoint lies.
    fn place(&self, place: u32) -> u64 {
        u64::from(place) * u64::from(self.checkpoint_blocks)
    }

    fn arrived_bytes(&self) -> u64 {
        self.device.observed().map_or(0, |device| device.snapshot().host.bytes_written)
    }

    /// Counts the bytes of a write that have arrived.
    fn count_write(&mut self, length: u64, written: Result<(), DeviceError>) -> Result<(), DeviceError> {
        if written.is_ok() {
            self.written_bytes += length;
        } else {
            self.failed_bytes = self.arrived_bytes() - self.earlier_bytes - self.written_bytes;
        }
        written
    }

    /// Checks the device, and that what has arrived there is what a log says that it wrote.
    ///
    /// # Errors
    /// The law that is broken.
    pub(crate) fn check(&self, written_blocks: u64) -> Result<(), String> {
        let Some(device) = self.device.observed() else { return Ok(()) };
        device.check()?;
        let arrived = self.arrived_bytes() - self.earlier_bytes;
        let sent = bytes_of(written_blocks) + self.failed_bytes;
        if arrived == sent { Ok(()) } else { Err(format!("the log wrote {sent} bytes, {arrived} arrived below")) }
    }
}

/// Bytes that a log of `segments` segments takes of the device below.
pub fn below_bytes(segments: u32, segment_blocks: u32) -> u64 {
    bytes_of(2 * u64::from(checkpoint_blocks(segments)) + u64::from(segments) * u64::from(segment_blocks))
}

impl Below<Option<Box<dyn Replay>>> {
    fn submit(&mut self, op: Op, block: u64, blocks: u32) -> Result<(), DeviceError> {
        let Some(device) = &mut self.device else { return Ok(()) };
        let length = bytes_of(blocks.into());
        let submitted = device.submit(&[Request {
            arrival_ns: self.arrival_ns,
            offset: bytes_of(block),
            length,
            op,
            source: 0,
            durable: false,
        }]);
        if op == Op::Write { self.count_write(length, submitted) } else { submitted }
    }
}

impl Disk for Below<Option<Box<dyn Replay>>> {
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
        self.submit(Op::Write, self.place(write.place()), self.checkpoint_blocks)
    }
}

impl<D: KeepsBytes> Below<D> {
    fn put(&mut self, block: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.arrive(self.arrival_ns);
        let written = self.device.write(bytes_of(block), bytes);
        self.count_write(bytes.len() as u64, written)
    }

    /// Reads `blocks` blocks and lets `take` have their bytes.
    fn get(&mut self, block: u64, blocks: usize, take: impl FnOnce(&[u8])) -> Result<(), DeviceError> {
        self.device.arrive(self.arrival_ns);
        self.buffer.resize(blocks * BLOCK_BYTES as usize, 0);
        self.device.read(bytes_of(block), &mut self.buffer)?;
        take(&self.buffer);
        Ok(())
    }
}

impl<D: KeepsBytes> Disk for Below<D> {
    type Block = Box<[u8]>;
    fn write(&mut self, write: &SegmentWrite<'_, Box<[u8]>>) -> Result<(), DeviceError> {
        // In one piece: the device below counts requests as it does in a simulation.
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(&write.summaries());
        write.contents().for_each(|content| buffer.extend_from_slice(content));
        let written = self.put(self.block(write.position), &buffer);
        self.buffer = buffer;
        written
    }
    fn read(&mut self, position: u32, out: &mut [Box<[u8]>]) -> Result<(), DeviceError> {
        self.get(self.block(position), out.len(), |bytes| {
            for (out, bytes) in out.iter_mut().zip(bytes.chunks(BLOCK_BYTES as usize)) {
                *out = bytes.into();
            }
        })
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        self.device.arrive(self.arrival_ns);
        let offset = bytes_of(self.block(segment * self.segment_blocks));
        self.device.trim(offset, bytes_of(self.segment_blocks.into()))
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.device.arrive(self.arrival_ns);
        self.device.flush()
    }
    fn checkpoint(&mut self, write: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        self.put(self.place(write.place()), &write.bytes())
    }
}

impl<D: KeepsBytes> Recoverable for Below<D> {
    fn read_summary(&mut self, position: u32, out: &mut Vec<u8>) -> Result<(), DeviceError> {
        self.get(self.block(position), 1, |bytes| out.extend_from_slice(bytes))
    }
    fn read_checkpoint(&mut self, place: u32, out: &mut Vec<u8>) -> Result<(), DeviceError> {
        self.get(self.place(place), self.checkpoint_blocks as usize, |bytes| out.extend_from_slice(bytes))
    }
}
