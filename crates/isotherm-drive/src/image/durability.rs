//! When what was written is durable: syncs of the image, one for all who wait, and what they allow.
//!
//! A block that is erased keeps its slot, and all that lies there, until its erase is durable and a record says so. Whatever part of
//! the writes since then is lost, what was durable can be found: operations are numbered, and only those up to the first one
//! missing count (see [`super::open`]).

use super::disk::Disk;
use super::record::{DurableRecord, HostTotals, Totals};
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};

/// What the image has been given, and what of it is durable.
pub(crate) struct Durability<D> {
    disk: D,
    state: Mutex<State>,
    /// A sync has ended.
    ended: Condvar,
}

struct State {
    /// Operations up to this number were handed to the disk.
    handed: u64,
    /// What was counted with them, but for the host's side.
    totals: Totals,
    /// Operations up to this number are durable.
    synced: u64,
    /// A record that says so up to this number is durable itself.
    recorded: u64,
    /// The last record that was written.
    last: DurableRecord,
    /// Whether somebody syncs now.
    is_busy: bool,
    /// Syncs begun so far.
    begun: u64,
    /// Syncs ended so far.
    done: u64,
    /// The disk failed: nothing is known of what it holds.
    failed: Option<io::ErrorKind>,
}

impl<D: Disk> Durability<D> {
    /// A disk on which everything up to `last` is durable, and `last` too.
    pub(crate) fn new(disk: D, last: DurableRecord) -> Self {
        let state = State {
            handed: last.number,
            totals: last.totals,
            synced: last.number,
            recorded: last.number,
            last,
            is_busy: false,
            begun: 0,
            done: 0,
            failed: None,
        };
        Self { disk, state: Mutex::new(state), ended: Condvar::new() }
    }

    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Operations up to `number` were handed to the disk; `totals` says what was counted with them, but for the host's side.
    pub(crate) fn hand(&self, number: u64, totals: &Totals) {
        let mut state = self.state();
        state.handed = number;
        state.totals = Totals { host: state.totals.host, ..*totals };
    }

    /// Takes down what the host asked for so far.
    pub(crate) fn count(&self, host: HostTotals) {
        self.state().totals.host = host;
    }

    /// What was counted over the life of the drive.
    pub(crate) fn totals(&self) -> Totals {
        self.state().totals
    }

    /// Operations whose erases can be forgotten: nothing before them is needed any more.
    pub(crate) fn recorded(&self) -> u64 {
        self.state().recorded
    }

    /// Operations that are durable.
    pub(crate) fn synced(&self) -> u64 {
        self.state().synced
    }

    /// Makes everything durable that was handed over before. Waits for a sync of somebody else where that serves.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        // A sync that has begun may have missed what was handed over since: the next one has not.
        let wanted = state.begun + 1;
        loop {
            if let Some(kind) = state.failed {
                return Err(kind.into());
            }
            if state.done >= wanted {
                return Ok(());
            }
            if !state.is_busy {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_busy = true;
        state.begun += 1;
        let (handed, written, begun) = (state.handed, state.last.number, state.begun);
        let record = DurableRecord {
            serial: state.last.serial + 1,
            number: handed,
            checkpoint_bytes: 0,
            checkpoint_check: 0,
            totals: state.totals,
        };
        drop(state);
        let result = self.disk.sync().and_then(|()| record.write(&self.disk));
        let mut state = self.state();
        state.is_busy = false;
        match &result {
            Ok(()) => {
                state.done = begun;
                state.synced = handed;
                // The sync has made the record before it durable too.
                state.recorded = written;
                state.last = record;
            }
            Err(error) => state.failed = Some(error.kind()),
        }
        drop(state);
        self.ended.notify_all();
        result
    }

    /// Makes everything durable that was handed over, and then the record that says so.
    pub(crate) fn sync_with_record(&self) -> io::Result<()> {
        self.sync()?;
        self.sync()
    }

    /// Ends the use of the image with a checkpoint of so many bytes, which is durable: the last record says that it is all there is.
    pub(crate) fn close(&self, checkpoint_bytes: u64, checkpoint_check: u32) -> io::Result<()> {
        let mut state = self.state();
        let record = DurableRecord {
            serial: state.last.serial + 1,
            number: state.handed,
            checkpoint_bytes,
            checkpoint_check,
            totals: state.totals,
        };
        record.write(&self.disk)?;
        self.disk.sync()?;
        state.last = record;
        Ok(())
    }
}
