//! What happens while nobody asks: segment writes, checkpoints, and cleaning before it is needed.

use super::{Volume, lock};
use crate::device::Device;
use crate::log::Goal;
use crate::store::StoreError;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
    shared: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

/// How often it looks whether cleaning is due.
const LOOK: Duration = Duration::from_millis(200);

impl Background {
    /// Starts it.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start<D: Device>(volume: Arc<Volume<D>>, intervals: Intervals) -> std::io::Result<Self> {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("sfs-background".into()).spawn(move || {
            let (mut written, mut checkpointed) = (Instant::now(), Instant::now());
            while !wait(&of_thread, LOOK.min(intervals.write)) {
                // An error has ended all writing, and is told to everyone who asks for something durable.
                let done = if checkpointed.elapsed() >= intervals.checkpoint {
                    (written, checkpointed) = (Instant::now(), Instant::now());
                    volume.checkpoint_if_changed()
                } else if written.elapsed() >= intervals.write {
                    written = Instant::now();
                    volume.write_groups()
                } else {
                    volume.clean_ahead()
                };
                if done.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

/// Waits at most so long; true if it is to end.
fn wait(shared: &(Mutex<bool>, Condvar), longest: Duration) -> bool {
    let is_over = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (is_over, _) =
        shared.1.wait_timeout_while(is_over, longest, |over| !*over).unwrap_or_else(PoisonError::into_inner);
    *is_over
}

impl Drop for Background {
    fn drop(&mut self) {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl<D: Device> Volume<D> {
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
        let mut writer = lock(&self.writer)?;
        self.make_room(&mut writer)
    }

    /// Waits until there is room in memory for another request, and helps to make it.
    pub(super) fn wait_for_room(&self) -> Result<(), StoreError> {
        loop {
            let pressure = lock(&self.tree)?.store().pressure();
            let goal = match pressure {
                crate::log::Pressure::None => return Ok(()),
                crate::log::Pressure::Blocks => Goal::Coldest,
                crate::log::Pressure::Pages => Goal::Pages,
            };
            let mut writer = lock(&self.writer)?;
            // Whoever had the lock before may have made room.
            if lock(&self.tree)?.store().pressure() != pressure {
                continue;
            }
            match goal {
                Goal::Pages => self.commit(&mut writer, false)?,
                goal => self.carry_out(&mut writer, &goal)?,
            }
        }
    }

    /// Makes everything durable, without a checkpoint.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer)?;
        self.carry_out(&mut writer, &Goal::Everything)?;
        self.flush(&mut writer)
    }

    /// Discards the free segments in runs of at least `smallest` bytes.
    pub(super) fn discard_unused(&self, smallest: u64) -> Result<u64, StoreError> {
        let mut writer = lock(&self.writer)?;
        // After a checkpoint most of what is free may be written over.
        self.commit(&mut writer, false)?;
        let runs = lock(&self.tree)?.store().reusable_runs();
        let mut discarded = 0;
        for (offset, length) in runs.into_iter().filter(|(_, length)| *length >= smallest) {
            self.device.discard(offset, length).map_err(|error| self.fail(&error.to_string()))?;
            discarded += length;
        }
        Ok(discarded)
    }
}
