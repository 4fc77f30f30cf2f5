//! Requests on their way through the device, one after the other.

use super::room::Room;
use super::{Drive, Latency, Recorder, SlowRequest};
use crate::image::HostTotals;
use crate::served::Served;
use isotherm::cause::Cause;
use isotherm::device::DeviceError;
use isotherm::request::{Op, Request};
use isotherm::stats::{Counter as _, MediumCounters};
use isotherm_export::{Due, ErrorKind, ExportError, Extent};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// Bytes of zeros that are written at a time.
const ZERO_BYTES: usize = 1 << 20;
/// Pages that one question for extents looks at.
const EXTENT_PAGES_MAX: u64 = 1 << 20;
/// Requests that are remembered as slow.
const SLOW_MAX: usize = 12;
/// For how long.
const SLOW: Duration = Duration::from_secs(60);

/// What one request at a time has.
pub(super) struct Core {
    /// The slowest requests of late, slowest first.
    pub(super) slow: Vec<SlowRequest>,
    pub(super) device: Served,
    pub(super) recorder: Option<Recorder>,
    pub(super) host: HostTotals,
    pub(super) requests: u64,
    /// What was counted before this use.
    pub(super) host_before: HostTotals,
    /// Flash could not take what the write buffer held when power was lost. Nothing else is written or saved then, so that what was saved
    /// stays what it is.
    pub(super) is_unwritten: bool,
    /// Nothing is served any more, and why.
    pub(super) stopped: Option<&'static str>,
    /// What the device said when it could be written no more.
    pub(super) failed: Option<DeviceError>,
    /// On the disk below.
    pub(super) room: Room,
}

/// A request on its way to the device.
pub(super) struct Asked {
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) durable: bool,
    pub(super) source: u16,
}

impl Drive {
    /// The device, for one request. After a panic in the midst of one nothing is known of its tables: it serves nothing any more,
    /// and the image is as after a loss of power.
    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            let mut core = poisoned.into_inner();
            core.stopped.get_or_insert("the drive stopped because of a defect of the program");
            core
        })
    }

    pub(super) fn make_durable(&self, host: HostTotals) -> std::io::Result<()> {
        let Some(durable) = &self.durable else { return Ok(()) };
        durable.count(host);
        durable.sync()
    }

    /// Carries out a request, and says when the client may hear of it.
    pub(super) fn serve(
        &self,
        asked: &Asked,
        work: impl FnOnce(&mut Served) -> Result<(), DeviceError>,
    ) -> Result<Due, ExportError> {
        let mut core = self.core();
        if let Some(why) = core.stopped {
            return Err(ExportError { kind: ErrorKind::Stopped, message: why.to_owned() });
        }
        core.admit(asked)?;
        if core.is_unwritten && asked.op == Op::Flush {
            // Nothing was written since.
            return Ok(None);
        }
        let now_ns = self.clock_ns();
        core.device.arrive(now_ns, asked.source);
        core.take_down(asked, now_ns);
        let before = core.device.counters();
        let result = work(&mut core.device);
        let due = self.due(now_ns, core.device.latency_ns());
        let ended = due.map_or_else(|| self.start.elapsed(), |due| due.duration_since(self.start));
        core.judge(asked, ended, &before);
        if let Err(error) = result {
            core.host.media_errors += u64::from(matches!(error, DeviceError::Unreadable { .. }));
            if matches!(error, DeviceError::WornOut { .. } | DeviceError::Payload(_)) {
                core.failed.get_or_insert_with(|| error.clone());
            }
            return Err(refused(&error));
        }
        if asked.durable || asked.op == Op::Flush {
            let host = core.host_over_life(self.start);
            drop(core);
            self.make_durable(host).map_err(|error| ExportError {
                kind: ErrorKind::Io,
                message: format!("the image cannot be made durable: {error}"),
            })?;
        }
        Ok(due)
    }

    /// When a request that arrived then, and took so long, is done on the wall clock.
    fn due(&self, arrival_ns: u64, latency_ns: Option<u64>) -> Due {
        let Latency::Emulated { slowdown } = self.latency else { return None };
        let end_ns = (arrival_ns + latency_ns?) as f64 * slowdown;
        Some(self.start + Duration::from_nanos(end_ns as u64))
    }

    /// Writes zeros that are to be kept as such.
    pub(super) fn program_zeros(&self, asked: &Asked) -> Result<Due, ExportError> {
        let zeros = vec![0; ZERO_BYTES.min(asked.length as usize)];
        let mut due = None;
        let mut offset = asked.offset;
        let end = asked.offset + asked.length;
        while offset < end {
            let length = (end - offset).min(ZERO_BYTES as u64);
            let durable = asked.durable && offset + length == end;
            let part = Asked { op: Op::Write, offset, length, durable, source: asked.source };
            due = self.serve(&part, |device| device.write(offset, &zeros[..length as usize], durable))?;
            offset += length;
        }
        Ok(due)
    }

    pub(super) fn extents_of(&self, offset: u64, length: u64, most: usize) -> Vec<Extent> {
        let page_bytes = u64::from(self.page_bytes);
        let core = self.core();
        let mut extents: Vec<Extent> = Vec::new();
        let (first, end) = (offset / page_bytes, (offset + length).div_ceil(page_bytes));
        for page in first..end.min(first + EXTENT_PAGES_MAX) {
            let is_data = core.device.holds_data(page as u32);
            let from = (page * page_bytes).max(offset);
            let piece = ((page + 1) * page_bytes).min(offset + length) - from;
            let count = extents.len();
            match extents.last_mut() {
                Some(last) if last.is_data == is_data => last.length += piece,
                _ if count == most => break,
                _ => extents.push(Extent { length: piece, is_data }),
            }
        }
        extents
    }
}

impl Core {
    /// Refuses what cannot be written, before the device hears of it: a discard too is written, and one that a worn-out drive took
    /// would be gone when it is opened again.
    fn admit(&mut self, asked: &Asked) -> Result<(), ExportError> {
        if !matches!(asked.op, Op::Write | Op::Trim | Op::WriteZeroes) {
            return Ok(());
        }
        if let Some(error) = &self.failed
            && (self.is_unwritten || matches!(error, DeviceError::WornOut { .. }))
        {
            return Err(refused(error));
        }
        // A discard makes room, in the end.
        if asked.op == Op::Write && !self.room.take(asked.length) {
            let message = "the disk that the image lies on is full; free some space there".to_owned();
            return Err(ExportError { kind: ErrorKind::NoSpace, message });
        }
        Ok(())
    }

    fn take_down(&mut self, asked: &Asked, now_ns: u64) {
        self.requests += 1;
        let host = &mut self.host;
        match asked.op {
            Op::Read => (host.reads, host.bytes_read) = (host.reads + 1, host.bytes_read + asked.length),
            Op::Write => (host.writes, host.bytes_written) = (host.writes + 1, host.bytes_written + asked.length),
            Op::Trim | Op::WriteZeroes => host.bytes_trimmed += asked.length,
            Op::Flush => host.flushes += 1,
        }
        if let Some(recorder) = &mut self.recorder {
            let Asked { op, offset, length, durable, source } = *asked;
            recorder(&Request { arrival_ns: now_ns, offset, length, op, source, durable });
        }
    }

    /// Remembers a request that is among the slowest.
    fn judge(&mut self, asked: &Asked, ended: Duration, before: &MediumCounters) {
        let Some(latency_ns) = self.device.latency_ns() else { return };
        self.slow.retain(|slow| slow.ended + SLOW >= ended);
        let rank = self.slow.partition_point(|slow| slow.latency_ns >= latency_ns);
        if rank >= SLOW_MAX || latency_ns == 0 {
            return;
        }
        let done = self.device.counters().since(before);
        let slow = SlowRequest {
            ended,
            op: asked.op,
            offset: asked.offset,
            length: asked.length,
            latency_ns,
            waited_ns: self.device.waited_ns(),
            erases: done.erases.total(),
            copies: done.copies.total(),
            other_programs: done.programs.total() - done.programs[Cause::Host],
            buffered_programs: if asked.op == Op::Flush { done.programs[Cause::Host] } else { 0 },
        };
        self.slow.insert(rank, slow);
        self.slow.truncate(SLOW_MAX);
    }

    pub(super) fn host_over_life(&self, start: Instant) -> HostTotals {
        let (now, before) = (&self.host, &self.host_before);
        HostTotals {
            bytes_written: now.bytes_written + before.bytes_written,
            bytes_read: now.bytes_read + before.bytes_read,
            bytes_trimmed: now.bytes_trimmed + before.bytes_trimmed,
            writes: now.writes + before.writes,
            reads: now.reads + before.reads,
            flushes: now.flushes + before.flushes,
            power_on_ns: before.power_on_ns + start.elapsed().as_nanos() as u64,
            media_errors: now.media_errors + before.media_errors,
            ..*before
        }
    }
}

/// What a client hears of a device that failed.
fn refused(error: &DeviceError) -> ExportError {
    let kind = match error {
        DeviceError::NoSpace { .. } | DeviceError::Payload(std::io::ErrorKind::StorageFull) => ErrorKind::NoSpace,
        DeviceError::WornOut { .. } => ErrorKind::ReadOnly,
        DeviceError::OutOfRange { .. } => ErrorKind::Invalid,
        DeviceError::PowerLost => ErrorKind::Stopped,
        _ => ErrorKind::Io,
    };
    ExportError { kind, message: error.to_string() }
}
