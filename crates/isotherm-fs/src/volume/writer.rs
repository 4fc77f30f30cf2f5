//! Who writes the log: one thread at a time, for all that wait.
//!
//! Writes are planned under the tree's lock, and carried out without it; the writer's lock is held over both, so that they reach the
//! device in the order of their numbers. Whoever needs something durable says so and asks for the writer's lock: the first to get it
//! serves all who have asked until then, with one write and one flush.

use super::Volume;
use crate::device::Device;
use crate::log::{Goal, Job, Log, Planned};
use crate::store::{BLOCK_BYTES, StoreError};
use crate::tree::Tree;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is asked to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wanted {
    /// Names and attributes, until now.
    Metadata,
    /// A file, and all metadata until now.
    File(u64),
}

/// Requests that nobody has served yet.
#[derive(Debug, Default)]
pub(super) struct Requests {
    tickets: u64,
    wanted: HashSet<Wanted>,
}

/// State of the one who writes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// Tickets up to this one are served.
    served: u64,
    /// Whether something was written since the last flush.
    is_unflushed: bool,
}

/// A lock whose holder has panicked: nothing behind it is to be trusted.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, StoreError> {
    mutex.lock().map_err(|_| StoreError::Device("an earlier request ended in a panic; mount the volume again".into()))
}

/// Brings into pages what memory knows of the inodes that `goal` is about.
fn settle<D: Device>(tree: &mut Tree<Log<D>>, goal: &Goal) -> Result<(), StoreError> {
    match goal {
        Goal::Files(files) => files.iter().try_for_each(|ino| tree.settle(*ino))?,
        Goal::Groups | Goal::Coldest => drop(tree.settle_idle()?),
        Goal::Everything => tree.settle_all()?,
        Goal::Pages | Goal::CleanedGroups | Goal::Cleaned => {}
    }
    Ok(())
}

impl<D: Device> Volume<D> {
    /// Makes durable what is wanted, together with what others want at the time.
    pub(super) fn make_durable(&self, wanted: Wanted) -> Result<(), StoreError> {
        let ticket = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.tickets += 1;
            requests.wanted.insert(wanted);
            requests.tickets
        };
        let mut writer = lock(&self.writer)?;
        if writer.served < ticket {
            let (served, wanted) = {
                let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
                (requests.tickets, std::mem::take(&mut requests.wanted))
            };
            self.write_wanted(&mut writer, &wanted)?;
            writer.served = served;
        }
        drop(writer);
        // Whoever served this ticket may have failed.
        self.check_failure()
    }

    /// Tells why nothing is written any more, if something has failed.
    pub(super) fn check_failure(&self) -> Result<(), StoreError> {
        match lock(&self.tree)?.store().failure() {
            Some(why) => Err(StoreError::Device(why.to_owned())),
            None => Ok(()),
        }
    }

    fn write_wanted(&self, writer: &mut Writer, wanted: &HashSet<Wanted>) -> Result<(), StoreError> {
        let files: HashSet<u64> = wanted
            .iter()
            .filter_map(|wanted| match wanted {
                Wanted::File(ino) => Some(*ino),
                Wanted::Metadata => None,
            })
            .collect();
        self.carry_out(writer, &Goal::Files(files))?;
        self.flush(writer)
    }

    /// Plans what `goal` asks for and writes it, with the checkpoints and the cleaning that it needs.
    pub(super) fn carry_out(&self, writer: &mut Writer, goal: &Goal) -> Result<(), StoreError> {
        let mut cleanings = 0;
        loop {
            if matches!(goal, Goal::Files(_) | Goal::Groups | Goal::Coldest | Goal::Everything) {
                self.make_room(writer)?;
            }
            let (planned, jobs) = {
                let mut tree = lock(&self.tree)?;
                // Sizes go with their data, or after it where planning may stop half way: never before it.
                let goes_with_data = matches!(goal, Goal::Groups | Goal::Coldest) || tree.store().has_ample_room();
                if goes_with_data {
                    settle(&mut tree, goal)?;
                }
                let mut planned = tree.store_mut().plan(goal)?;
                if !goes_with_data && planned == Planned::Done {
                    settle(&mut tree, goal)?;
                    planned = tree.store_mut().plan(&Goal::Files(HashSet::new()))?;
                }
                (planned, tree.store_mut().take_jobs())
            };
            if matches!(goal, Goal::Files(_) | Goal::Everything) {
                self.perform_as_one(writer, &jobs)?;
            } else {
                self.perform(writer, &jobs)?;
            }
            match planned {
                Planned::Done => return Ok(()),
                // A part of it is planned, the rest when there is room again.
                _ if !jobs.is_empty() => {}
                Planned::NeedsCheckpoint => self.commit(writer, false)?,
                Planned::NeedsCleaning => {
                    cleanings += 1;
                    let is_hopeless = cleanings > 4 * lock(&self.tree)?.store().superblock().segments;
                    if is_hopeless || !self.clean_several(writer, true)? {
                        return Err(self.fail("no segment is free, and none is worth cleaning"));
                    }
                }
            }
        }
    }

    /// Cleans before it is too late, where room is short: what is cleaned needs room itself.
    pub(super) fn make_room(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let mut room_is_short = false;
        loop {
            let (ahead, before) = {
                let tree = lock(&self.tree)?;
                (tree.store().ahead(), tree.store().writable_blocks())
            };
            match ahead {
                Planned::Done => return Ok(()),
                Planned::NeedsCheckpoint => self.commit(writer, false)?,
                Planned::NeedsCleaning => drop(self.clean_several(writer, room_is_short)?),
            }
            if lock(&self.tree)?.store().writable_blocks() <= before {
                // What is full gives no more: what waits may have room all the same.
                if room_is_short {
                    return Ok(());
                }
                room_is_short = true;
            }
        }
    }

    /// Cleans segments as long as there is room for what is taken out of them, and makes a checkpoint that lets them be written over.
    /// Returns false if none is worth cleaning.
    fn clean_several(&self, writer: &mut Writer, room_is_short: bool) -> Result<bool, StoreError> {
        let most = lock(&self.tree)?.store().segments_to_clean();
        let mut cleaned = 0;
        while cleaned < most
            && lock(&self.tree)?.store().can_clean_on(room_is_short)
            && self.clean_one(writer, room_is_short)?
        {
            cleaned += 1;
            // Groups that fill a segment are written, the others gather more of their kind.
            let _ = self.plan_and_perform(writer, &Goal::CleanedGroups)?;
        }
        let is_any = cleaned > 0;
        if self.plan_and_perform(writer, &Goal::Cleaned)? == Planned::NeedsCleaning {
            return Err(self.fail("no segment is free for what was cleaned"));
        }
        self.commit(writer, false)?;
        Ok(is_any)
    }

    fn plan_and_perform(&self, writer: &mut Writer, goal: &Goal) -> Result<Planned, StoreError> {
        let (planned, jobs) = {
            let mut tree = lock(&self.tree)?;
            let planned = tree.store_mut().plan(goal)?;
            (planned, tree.store_mut().take_jobs())
        };
        self.perform(writer, &jobs)?;
        Ok(planned)
    }

    /// Writes planned jobs. A device that fails ends all writing.
    pub(super) fn perform(&self, writer: &mut Writer, jobs: &[Job]) -> Result<(), StoreError> {
        for job in jobs {
            writer.is_unflushed = true;
            if let Err(error) = job.perform(&*self.device) {
                return Err(self.fail(&error.to_string()));
            }
        }
        if !jobs.is_empty() {
            lock(&self.tree)?.store_mut().finish(jobs);
            self.room.notify_all();
        }
        Ok(())
    }

    /// The same, so that a crash keeps all of them or none: the first holds sizes whose data is in the others. It is written
    /// when they are durable, and a replay reaches them only through it.
    fn perform_as_one(&self, writer: &mut Writer, jobs: &[Job]) -> Result<(), StoreError> {
        if let [_, others @ ..] = jobs
            && !others.is_empty()
        {
            for job in others {
                writer.is_unflushed = true;
                job.perform(&*self.device).map_err(|error| self.fail(&error.to_string()))?;
            }
            self.flush(writer)?;
            self.perform(writer, &jobs[..1])?;
            lock(&self.tree)?.store_mut().finish(others);
            self.room.notify_all();
            return Ok(());
        }
        self.perform(writer, jobs)
    }

    /// Makes durable what was written.
    pub(super) fn flush(&self, writer: &mut Writer) -> Result<(), StoreError> {
        if writer.is_unflushed {
            if let Err(error) = self.device.flush() {
                // What was written before may be gone, and nobody would know.
                return Err(self.fail(&error.to_string()));
            }
            writer.is_unflushed = false;
        }
        Ok(())
    }

    /// Writes what pages need and a checkpoint that refers to it; blocks of files go on waiting.
    pub(super) fn commit(&self, writer: &mut Writer, is_last: bool) -> Result<(), StoreError> {
        let (jobs, image) = {
            let mut tree = lock(&self.tree)?;
            let log = tree.store_mut();
            // They can be written over from this checkpoint on.
            log.free_empty_segments();
            let planned = log.plan(&Goal::Pages)?;
            let image = (planned == Planned::Done).then(|| log.checkpoint(is_last));
            (log.take_jobs(), image)
        };
        self.perform(writer, &jobs)?;
        let Some(image) = image else {
            return Err(self.fail("no segment is free for a checkpoint"));
        };
        self.flush(writer)?;
        writer.is_unflushed = true;
        if let Err(error) = self.device.write(u64::from(image.position) * BLOCK_BYTES as u64, &image.bytes) {
            return Err(self.fail(&error.to_string()));
        }
        self.flush(writer)?;
        for (position, blocks) in image.free {
            let (offset, length) = (u64::from(position) * BLOCK_BYTES as u64, u64::from(blocks) * BLOCK_BYTES as u64);
            if let Err(error) = self.device.discard(offset, length) {
                return Err(self.fail(&error.to_string()));
            }
        }
        Ok(())
    }

    /// Ends all writing: the device did not do what it was asked.
    pub(super) fn fail(&self, why: &str) -> StoreError {
        if let Ok(mut tree) = lock(&self.tree) {
            tree.store_mut().fail(why);
        }
        self.room.notify_all();
        StoreError::Device(why.to_owned())
    }
}
