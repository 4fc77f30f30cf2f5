//! A log that goes on where recovery found it.

use super::SegmentLog;
use crate::blocks::{Block, NOWHERE};
use crate::disk::Disk;
use crate::machine::{MachineState, Mechanism};
use crate::options::{LogOptions, TrimPoint};
use crate::segments::{OpenSegment, SegmentRecord, SegmentState};
use isotherm::device::DeviceError;
use isotherm::hotness::heat::Time;

/// The tables of a log as recovery has found them.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) blocks: Vec<Block>,
    pub(crate) owners: Vec<u32>,
    /// State of every segment, and the time of its youngest block.
    pub(crate) segments: Vec<(SegmentState, Time)>,
    /// The queue of free segments, which hold nothing.
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
        let Self { machine, storage, .. } = &mut log;
        let ticks = (found.now >> options.log2_tick_blocks) as Time;
        let record = |(state, youngest)| SegmentRecord { state, youngest, ..SegmentRecord::default() };
        let mut segments: Vec<SegmentRecord> = found.segments.into_iter().map(record).collect();
        for (number, block) in (0..).zip(&found.blocks).filter(|(_, block)| block.position != NOWHERE) {
            let segment = &mut segments[storage.segment_of(block.position) as usize];
            segment.live += 1;
            segment.referenced += 1;
            segment.heat.add(block.heat);
            storage.files.restore(number, block.heat, options.age, ticks);
        }
        debug_assert!(found.freed.iter().all(|segment| segments[*segment as usize].referenced == 0));
        machine.restore(&MachineState {
            segments,
            queue: found.freed,
            open: found.open,
            centres: found.centres,
            now: found.now,
            sequence: found.sequence,
        });
        storage.blocks = found.blocks;
        storage.owners = found.owners;
        storage.checkpoints = found.checkpoints;
        storage.incarnation = found.incarnation + 1;
        storage.commit(machine)?;
        if options.trim != TrimPoint::Never {
            let free: Vec<u32> = machine.segments().queue().collect();
            for segment in free {
                machine.counters_mut().segments_trimmed += 1;
                storage.store.trim(segment)?;
            }
        }
        Ok(log)
    }
}
