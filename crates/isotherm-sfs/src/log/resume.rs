//! A log that goes on where recovery found it.

use super::SegmentLog;
use crate::blocks::{Block, NOWHERE};
use crate::checkpoint::OpenSegment;
use crate::disk::Disk;
use crate::options::{LogOptions, TrimPoint};
use crate::segments::SegmentState;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::Time;

/// The tables of a log as recovery has found them.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) blocks: Vec<Block>,
    pub(crate) owners: Vec<u32>,
    /// State of every segment, and the time of its youngest block.
    pub(crate) segments: Vec<(SegmentState, Time)>,
    /// The queue of free segments.
    pub(crate) freed: Vec<u32>,
    pub(crate) open: Option<OpenSegment>,
    pub(crate) centres: Vec<f64>,
    pub(crate) now: u64,
    pub(crate) sequence: u64,
    pub(crate) checkpoints: u64,
    pub(crate) incarnation: u32,
}

impl<S: Disk> SegmentLog<S> {
    /// The log that recovery has found on `store`, which a new checkpoint makes durable. Its counters begin anew.
    ///
    /// # Errors
    /// Faults below.
    pub(crate) fn resume(store: S, options: LogOptions, found: Recovered) -> Result<Self, DeviceError> {
        let mut log = Self::new(store, found.blocks.len() as u32, found.segments.len() as u32, options);
        log.now = found.now;
        let ticks = log.ticks() as Time;
        for (number, block) in (0..).zip(&found.blocks).filter(|(_, block)| block.position != NOWHERE) {
            log.segments.on_write(log.segment_of(block.position), block.heat, block.modified);
            log.files.restore(number, block.heat, options.age, ticks);
        }
        log.segments.restore(&found.segments, found.freed);
        log.quantiser.restore(&found.centres);
        log.blocks = found.blocks;
        log.owners = found.owners;
        log.open = found.open;
        log.sequence = found.sequence;
        log.checkpoints = found.checkpoints;
        log.incarnation = found.incarnation + 1;
        log.commit()?;
        if options.trim != TrimPoint::Never {
            for segment in log.segments.queue() {
                log.counters.segments_trimmed += 1;
                log.store.trim(segment)?;
            }
        }
        Ok(log)
    }
}
