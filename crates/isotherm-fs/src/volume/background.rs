//! What happens while nobody asks: segment writes, checkpoints, and cleaning before it is needed.

use super::Volume;
use super::attendant::{Attendant, pause};
use super::writer::lock;
use crate::log::{Goal, Pressure};
use crate::store::{BLOCK_BYTES, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervals {
    /// Between segment writes.
    pub write: Duration,
    /// Between checkpoints.
    pub checkpoint: Duration,
}

impl Default for Intervals {
    /// 5 s and 30 s, as published.
    fn default() -> Self {
        Self { write: Duration::from_secs(5), checkpoint: Duration::from_secs(30) }
    }
}

/// A thread that looks after a volume until it is dropped.
#[derive(Debug)]
pub struct Background {
    attendant: Arc<Attendant>,
    thread: Option<JoinHandle<()>>,
}

/// How often it looks whether cleaning is due.
const LOOK: Duration = Duration::from_millis(200);

impl Background {
    /// Starts it.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(volume: Arc<Volume>, intervals: Intervals) -> std::io::Result<Self> {
        let attendant = volume.attendant.clone();
        let presence = attendant.arrive();
        let thread = thread::Builder::new().name("sfs-background".into()).spawn(move || {
            let (mut written, mut checkpointed) = (Instant::now(), Instant::now());
            while !volume.attendant.wait(LOOK.min(intervals.write)) {
                // An error has ended all writing, and is told to everyone who asks for something durable.
                let is_due = lock(&volume.tree).is_ok_and(|tree| tree.store().is_checkpoint_due());
                let done = if is_due || checkpointed.elapsed() >= intervals.checkpoint {
                    (written, checkpointed) = (Instant::now(), Instant::now());
                    volume.checkpoint_if_changed()
                } else if written.elapsed() >= intervals.write {
                    written = Instant::now();
                    volume.write_groups()
                } else {
                    volume.relieve().and_then(|()| volume.clean_ahead())
                };
                if done.is_err() {
                    break;
                }
            }
            drop(presence);
        })?;
        Ok(Self { attendant, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.attendant.dismiss();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl Volume {
    /// A checkpoint, if anything happened since the last one.
    ///
    /// # Errors
    /// No space, the device.
    pub fn checkpoint_if_changed(&self) -> Result<(), StoreError> {
        let is_changed = {
            let mut tree = lock(&self.tree)?;
            tree.settle_idle()?;
            tree.store().is_changed()
        };
        if is_changed { self.checkpoint() } else { Ok(()) }
    }

    /// Cleans if few segments are free, so that nobody has to wait for it.
    ///
    /// # Errors
    /// The device, damage.
    pub fn clean_ahead(&self) -> Result<(), StoreError> {
        if !lock(&self.tree)?.store().wants_cleaning() {
            return Ok(());
        }
        self.seated(|writer| self.make_room(writer))
    }

    /// Waits until there is room in memory for a request of so many blocks. Where nobody looks after the volume, makes it.
    pub(super) fn wait_for_room(&self, blocks: u64) -> Result<(), StoreError> {
        loop {
            let strain = {
                let tree = lock(&self.tree)?;
                if tree.store().pressure() == Pressure::None {
                    return Ok(());
                }
                tree.store().strain()
            };
            if !self.attendant.call() {
                self.relieve()?;
            } else if strain < 1.0 {
                let pause = pause(strain, blocks);
                if !pause.is_zero() {
                    thread::sleep(pause);
                }
                return Ok(());
            } else {
                self.attendant.wait_for_relief();
            }
        }
    }

    /// Brings times of access into pages, where there is room for these: what all that was read would make dirty at the next checkpoint is
    /// more than a full volume has room for.
    pub(super) fn settle_touched(&self) -> Result<(), StoreError> {
        self.wait_for_room(0)?;
        let mut tree = lock(&self.tree)?;
        // Another request may have done it.
        if tree.touched() >= tree.store().touched_limit() && tree.store().failure().is_none() {
            tree.settle_idle()?;
        }
        Ok(())
    }

    /// Writes some of what waits in memory, if so much does that it is to be written.
    fn relieve(&self) -> Result<(), StoreError> {
        let pressure = lock(&self.tree)?.store().pressure();
        if pressure == Pressure::None {
            return Ok(());
        }
        self.seated(|writer| {
            // Whoever had the seat before may have made room.
            if lock(&self.tree)?.store().pressure() != pressure {
                return Ok(());
            }
            match pressure {
                Pressure::None => Ok(()),
                Pressure::Blocks => self.carry_out(writer, &Goal::Coldest),
                // Its pages take segments and leave others nearly empty: where nothing but pages is written, nobody else cleans these.
                Pressure::Pages => {
                    self.make_room(writer)?;
                    self.commit_and_make_room(writer)
                }
                Pressure::Transactions => self.carry_out(writer, &Goal::Transactions),
            }
        })
    }

    /// Makes everything durable, without a checkpoint.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        self.seated(|writer| {
            self.carry_out_all(writer)?;
            self.flush(writer)
        })
    }

    /// Discards what lies in a range of bytes of the free segments, in runs of at least `smallest` bytes. A block that lies there in part
    /// is kept.
    pub(super) fn discard_unused(&self, range: Range<u64>, smallest: u64) -> Result<u64, StoreError> {
        const BLOCK: u64 = BLOCK_BYTES as u64;
        let (first, end) = (range.start.div_ceil(BLOCK) * BLOCK, range.end / BLOCK * BLOCK);
        self.seated(|writer| {
            // After a checkpoint most of what is free may be written over.
            self.commit_and_make_room(writer)?;
            let runs = lock(&self.tree)?.store().reusable_runs();
            let mut discarded = 0;
            for (offset, length) in runs {
                let from = offset.max(first);
                let length = (offset + length).min(end).saturating_sub(from);
                if length >= smallest.max(1) {
                    self.device.discard(from, length).map_err(|error| self.fail(&error.to_string()))?;
                    discarded += length;
                }
            }
            Ok(discarded)
        })
    }
}
