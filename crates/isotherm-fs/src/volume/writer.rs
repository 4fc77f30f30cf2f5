//! Who writes the log: one thread at a time, for all that wait.
//!
//! Writes are planned under the tree's lock, and carried out without it; the writer's seat is held over both, so that they reach the
//! device in the order of their numbers.

use super::Volume;
use super::seat::{Asked, Done, Patience, Wanted, Writer};
use crate::format::checkpoint::Lagging;
use crate::log::{CheckpointImage, Goal, Job, Log, Planned};
use crate::store::{BLOCK_BYTES, StoreError};
use crate::tree::Tree;
use std::collections::HashSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// What is told after a panic.
pub(super) fn panicked() -> StoreError {
    StoreError::Device("an earlier request ended in a panic; mount the volume again".into())
}

/// A lock whose holder has panicked: nothing behind it is to be trusted.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, StoreError> {
    mutex.lock().map_err(|_| panicked())
}

/// The files among what is asked to be durable.
fn files_of(asked: &[Asked]) -> HashSet<u64> {
    let file = |asked: &Asked| match asked.wanted {
        Wanted::File(ino) => Some(ino),
        Wanted::Metadata => None,
    };
    asked.iter().filter_map(file).collect()
}

/// Tells all who asked what came of it.
fn answer(asked: Vec<Asked>, done: &Result<(), StoreError>) {
    asked.into_iter().for_each(|asked| (asked.done)(done.clone()));
}

/// Brings into pages what memory knows of the inodes that `goal` is about.
fn settle(tree: &mut Tree<Log>, goal: &Goal) -> Result<(), StoreError> {
    if goal.is_of_files() {
        // Nobody needs what they hold to be written.
        tree.free_doomed()?;
    }
    match goal {
        Goal::Files(files) | Goal::FilesInBetween(files) => files.iter().try_for_each(|ino| tree.settle(*ino))?,
        Goal::Coldest => drop(tree.settle_idle()?),
        Goal::Everything => tree.settle_all()?,
        Goal::Pages | Goal::Transactions | Goal::CleanedGroups | Goal::Cleaned => {}
    }
    Ok(())
}

/// The checkpoint of this moment. Blocks that were written while requests are held, or came along with pages, may be of files whose
/// inodes do not count them, and roll-forward does not meet them: it names these.
fn take_checkpoint(tree: &mut Tree<Log>, is_last: bool) -> Result<CheckpointImage, StoreError> {
    let written = tree.store().written_files();
    let lagging = tree.lagging(&written).map_err(StoreError::from)?;
    Ok(tree.store_mut().checkpoint(is_last, Lagging::of(lagging)))
}

impl Volume {
    /// Has what is wanted made durable, together with what others want at the time, and `done` told: before this returns if nobody
    /// else writes, later and by another thread otherwise.
    pub(super) fn make_durable(&self, wanted: Wanted, patience: Patience, done: Done) {
        if let Some(writer) = self.seat.ask(Asked { wanted, done }, patience) {
            self.serve_all(writer);
        }
    }

    /// The same, and waits for it.
    pub(super) fn wait_until_durable(&self, wanted: Wanted) -> Result<(), StoreError> {
        let (tell, told) = sync_channel(1);
        let done = move |done| tell.send(done).expect("it is waited for");
        self.make_durable(wanted, Patience::Leaves, Box::new(done));
        told.recv().unwrap_or_else(|_| Err(panicked()))
    }

    /// Has the seat for some work, and then serves those who have asked meanwhile.
    pub(super) fn seated<T>(
        &self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.seat.take()?;
        let done = work(&mut writer);
        self.let_requests_on(&mut writer);
        self.serve_all(writer);
        done
    }

    /// Serves requests until there are none, or somebody else wants the seat or has it.
    fn serve_all(&self, writer: Writer<'_>) {
        let mut seated = Some(writer);
        while let Some(mut writer) = seated.and_then(Writer::gather) {
            self.serve(&mut writer);
            self.let_requests_on(&mut writer);
            seated = writer.leave();
        }
    }

    /// Requests that were held back while room was made go on.
    fn let_requests_on(&self, writer: &mut Writer<'_>) {
        if std::mem::take(&mut writer.holds_requests) {
            // After a panic every request fails.
            if let Ok(mut tree) = lock(&self.tree) {
                tree.store_mut().hold_requests(false);
            }
            self.attendant.relieve();
        }
    }

    /// Serves the requests that were left until now.
    fn serve(&self, writer: &mut Writer<'_>) {
        let asked = writer.take_asked();
        if asked.is_empty() {
            return;
        }
        let written = self.carry_out(writer, &Goal::Files(files_of(&asked)));
        let start = Instant::now();
        let flushed = written.and_then(|()| self.flush(writer));
        writer.flushed(asked.len(), start.elapsed());
        answer(asked, &flushed.and_then(|()| self.check_failure()));
    }

    /// Serves requests in the middle of other work, if there is room beside what was taken out of segments that are being cleaned.
    fn serve_in_between(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        let asked = writer.take_asked();
        if asked.is_empty() {
            return Ok(());
        }
        match self.write_beside_cleaning(writer, files_of(&asked)) {
            Ok(true) => answer(asked, &Ok(())),
            Ok(false) => writer.put_back(asked),
            Err(error) => {
                answer(asked, &Err(error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns false if there is no room for it.
    fn write_beside_cleaning(&self, writer: &mut Writer<'_>, files: HashSet<u64>) -> Result<bool, StoreError> {
        if !lock(&self.tree)?.store().has_room_beside_cleaning(&files)
            || self.plan_and_write(writer, &Goal::FilesInBetween(files))?.0 != Planned::Done
        {
            return Ok(false);
        }
        self.flush(writer)?;
        Ok(true)
    }

    /// Tells why nothing is written any more, if something has failed.
    ///
    /// # Errors
    /// The first failure of the device since the volume was opened.
    pub fn check_failure(&self) -> Result<(), StoreError> {
        match lock(&self.tree)?.store().failure() {
            Some(why) => Err(StoreError::Device(why.to_owned())),
            None => Ok(()),
        }
    }

    /// Plans what `goal` asks for and writes it, with the checkpoints and the cleaning that it needs.
    pub(super) fn carry_out(&self, writer: &mut Writer<'_>, goal: &Goal) -> Result<(), StoreError> {
        let mut cleanings = 0;
        loop {
            self.make_room(writer)?;
            match self.plan_and_write(writer, goal)? {
                (Planned::Done, _) => return Ok(()),
                // A part of it is planned, the rest when there is room again.
                (_, true) => {}
                (Planned::NeedsCheckpoint, _) => self.commit(writer, false)?,
                (Planned::NeedsCleaning, _) => {
                    cleanings += 1;
                    let (is_hopeless, before) = {
                        let tree = lock(&self.tree)?;
                        let log = tree.store();
                        (cleanings > 4 * log.superblock().segments, log.writable_blocks())
                    };
                    let is_any = self.clean_several(writer, true)?;
                    // A segment that had been cleaned before may have become one that can be written over.
                    if is_hopeless || !is_any && lock(&self.tree)?.store().writable_blocks() <= before {
                        return Err(self.fail("no segment is free, and none is worth cleaning"));
                    }
                }
            }
        }
    }

    /// Writes the groups that fill a segment, one segment after the other: whoever has asked for something durable is served after
    /// each. What begins to wait meanwhile does not prolong it.
    pub(super) fn carry_out_groups(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        let written = || lock(&self.tree).map(|tree| tree.store().machine().counters().segments_written);
        let waiting = lock(&self.tree)?.store().segments_waiting();
        for _ in 0..waiting {
            let before = written()?;
            self.carry_out(writer, &Goal::Coldest)?;
            if written()? == before {
                break;
            }
            self.serve(writer);
        }
        Ok(())
    }

    /// Writes all that waits: groups that fill a segment, and the rest mixed.
    pub(super) fn carry_out_all(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        self.carry_out_groups(writer)?;
        self.carry_out(writer, &Goal::Everything)
    }

    /// Plans what `goal` asks for as far as there is room, and writes that. Returns also whether it was anything.
    fn plan_and_write(&self, writer: &mut Writer<'_>, goal: &Goal) -> Result<(Planned, bool), StoreError> {
        let is_of_files = goal.is_of_files();
        let (planned, jobs) = {
            let mut tree = lock(&self.tree)?;
            // Sizes go with their data, or after it where planning may stop half way: never before it.
            let goes_with_data = matches!(goal, Goal::Coldest) || tree.store().has_ample_room();
            if is_of_files && goes_with_data {
                settle(&mut tree, goal)?;
            }
            let mut planned = tree.store_mut().plan(goal)?;
            if is_of_files && !goes_with_data && planned == Planned::Done {
                settle(&mut tree, goal)?;
                planned = tree.store_mut().plan(&Goal::Files(HashSet::new()))?;
            }
            (planned, tree.store_mut().take_jobs())
        };
        let is_any = !jobs.is_empty();
        if matches!(goal, Goal::Files(_) | Goal::FilesInBetween(_) | Goal::Everything) {
            self.perform_as_one(writer, jobs)?;
        } else {
            self.perform(writer, jobs)?;
        }
        Ok((planned, is_any))
    }

    /// Cleans before it is too late, where room is short: what is cleaned needs room itself. Where that takes
    /// another checkpoint, requests wait until whoever has the seat is done.
    pub(super) fn make_room(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        let mut room_is_short = false;
        loop {
            let (ahead, before) = {
                let mut tree = lock(&self.tree)?;
                let log = tree.store_mut();
                let ahead = log.ahead();
                if ahead == Planned::NeedsCleaning && (room_is_short || !log.can_clean_on(false)) {
                    log.hold_requests(true);
                    writer.holds_requests = true;
                }
                (ahead, log.writable_blocks())
            };
            match ahead {
                Planned::Done => return Ok(()),
                Planned::NeedsCheckpoint => self.commit(writer, false)?,
                Planned::NeedsCleaning => drop(self.clean_several(writer, room_is_short)?),
            }
            if lock(&self.tree)?.store().writable_blocks() <= before {
                // What is full gives no more: what waits may have room all the same.
                if room_is_short {
                    lock(&self.tree)?.store_mut().set_exhausted();
                    return Ok(());
                }
                room_is_short = true;
            }
        }
    }

    /// Cleans segments as long as there is room for what is taken out of them, and makes a checkpoint that lets them be written over.
    /// Returns false if none is worth cleaning.
    fn clean_several(&self, writer: &mut Writer<'_>, room_is_short: bool) -> Result<bool, StoreError> {
        let most = lock(&self.tree)?.store().segments_to_clean();
        let mut cleaned = 0;
        while cleaned < most
            && lock(&self.tree)?.store().can_clean_on(room_is_short)
            && self.clean_one(writer, room_is_short)?
        {
            cleaned += 1;
            // Groups that fill a segment are written, the others gather more of their kind.
            let _ = self.plan_and_write(writer, &Goal::CleanedGroups)?;
            if !lock(&self.tree)?.store().has_memory_to_clean() {
                let _ = self.plan_and_write(writer, &Goal::Cleaned)?;
            }
            self.serve_in_between(writer)?;
        }
        let is_any = cleaned > 0;
        if self.plan_and_write(writer, &Goal::Cleaned)?.0 == Planned::NeedsCleaning {
            return Err(self.fail("no segment is free for what was cleaned"));
        }
        self.commit(writer, false)?;
        Ok(is_any)
    }

    /// Writes planned jobs. A device that fails ends all writing.
    pub(super) fn perform(&self, writer: &mut Writer<'_>, jobs: Vec<Job>) -> Result<(), StoreError> {
        for job in jobs {
            writer.is_unflushed = true;
            job.perform(&*self.device).map_err(|error| self.fail(&error.to_string()))?;
            lock(&self.tree)?.store_mut().finish(&job);
            self.attendant.relieve();
        }
        Ok(())
    }

    /// The same, so that a crash keeps all of them or none: the first holds sizes whose data is in the others. It is written
    /// when they are durable, and a replay reaches them only through it.
    fn perform_as_one(&self, writer: &mut Writer<'_>, mut jobs: Vec<Job>) -> Result<(), StoreError> {
        if jobs.len() > 1 {
            let others = jobs.split_off(1);
            self.perform(writer, others)?;
            // The first is not carried out yet, so that this says nothing of the writes up to here.
            self.flush_device(writer)?;
        }
        self.perform(writer, jobs)
    }

    /// Makes durable what was written, and lets the log know.
    pub(super) fn flush(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        if writer.is_unflushed {
            self.flush_device(writer)?;
            lock(&self.tree)?.store_mut().set_flushed();
        }
        Ok(())
    }

    fn flush_device(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        if writer.is_unflushed {
            if let Err(error) = self.device.flush() {
                // What was written before may be gone, and nobody would know.
                return Err(self.fail(&error.to_string()));
            }
            writer.is_unflushed = false;
        }
        Ok(())
    }

    /// A checkpoint, and cleaning after it where it took the last room for that: while no page is dirty cleaning needs the least.
    pub(super) fn commit_and_make_room(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        self.commit(writer, false)?;
        self.make_room(writer)
    }

    /// Writes what pages need and a checkpoint that refers to it; blocks of files go on waiting.
    pub(super) fn commit(&self, writer: &mut Writer<'_>, is_last: bool) -> Result<(), StoreError> {
        let (jobs, image) = {
            let mut tree = lock(&self.tree)?;
            if !writer.holds_requests {
                // Where requests are held, room is counted by the block.
                tree.settle_idle()?;
                let written = tree.store().written_files();
                match tree.list_unsettled(&written).map_err(StoreError::from) {
                    Ok(()) => tree.store_mut().forget_written_files(),
                    // No reason to go without a checkpoint, which names what is not listed.
                    Err(StoreError::NoSpace) => {}
                    Err(error) => return Err(error),
                }
            }
            let log = tree.store_mut();
            // They can be written over from this checkpoint on.
            log.free_empty_segments();
            let planned = log.plan(&Goal::Pages)?;
            let image = match planned {
                Planned::Done => Some(take_checkpoint(&mut tree, is_last)?),
                _ => None,
            };
            (tree.store_mut().take_jobs(), image)
        };
        self.perform(writer, jobs)?;
        let Some(image) = image else {
            return Err(self.fail("no segment is free for a checkpoint"));
        };
        self.flush(writer)?;
        writer.is_unflushed = true;
        if let Err(error) = self.device.write(u64::from(image.position) * BLOCK_BYTES as u64, &image.bytes) {
            return Err(self.fail(&error.to_string()));
        }
        self.flush(writer)?;
        self.discard_freed(writer, &image.free)
    }

    /// Discards segments to which no checkpoint refers any more. Many of them take as long as writing several: whoever has asked for something
    /// durable is served after each, and what is written for them may go into those that are to come.
    fn discard_freed(&self, writer: &mut Writer<'_>, free: &[(u32, u32)]) -> Result<(), StoreError> {
        for (position, blocks) in free {
            if !lock(&self.tree)?.store().is_reusable_at(*position) {
                continue;
            }
            let (offset, length) = (u64::from(*position) * BLOCK_BYTES as u64, u64::from(*blocks) * BLOCK_BYTES as u64);
            if let Err(error) = self.device.discard(offset, length) {
                return Err(self.fail(&error.to_string()));
            }
            self.serve_in_between(writer)?;
        }
        Ok(())
    }

    /// Ends all writing: the device did not do what it was asked.
    pub(super) fn fail(&self, why: &str) -> StoreError {
        if let Ok(mut tree) = lock(&self.tree) {
            tree.store_mut().fail(why);
        }
        self.attendant.relieve();
        StoreError::Device(why.to_owned())
    }
}

#[cfg(test)]
mod tests;
