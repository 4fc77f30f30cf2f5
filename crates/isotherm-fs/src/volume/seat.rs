//! The seat of the one who writes the log, and what others ask of whoever sits there.
//!
//! Whoever needs something durable leaves a request, and does not wait for it: if the seat is free he sits down and serves all
//! requests with one write and one flush, otherwise whoever sits there serves them next. The answers are given from the seat too, so
//! that nobody has to be woken only to pass one on. Whoever has something else to do gives up the seat to the next who asks, and
//! whoever cleans serves requests in between, so that nobody waits for all of it. Whoever stays may wait for a group to be whole
//! ([`expected`]), and whoever completes it takes over the seat.

mod expected;

use crate::store::StoreError;
use expected::Expected;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is asked to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// Names and attributes, until now.
    Metadata,
    /// A file, and all metadata until now.
    File(u64),
}

/// What is told when something is durable, or will not be. Dropped without a word by a panic.
pub(super) type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Something that is to be durable.
pub(super) struct Asked {
    pub wanted: Wanted,
    pub done: Done,
}

/// What somebody does who sits down to serve his own request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// Stays as long as there are requests.
    Stays,
    /// Has something else to do.
    Leaves,
}

#[derive(Default)]
struct State {
    is_taken: bool,
    /// Whoever sits there has something else to do: the next who asks is to relieve him.
    wants_relief: bool,
    /// How many wait for the seat.
    waiting: usize,
    /// Whether something was written since the last flush.
    is_unflushed: bool,
    /// A writer has panicked: nothing behind the seat is to be trusted.
    has_panicked: bool,
    /// What nobody has served yet.
    asked: Vec<Asked>,
    /// How much is to be asked for before it is served.
    expected: Expected,
    /// Times that somebody sat and waited for a group to be whole, and which of them has not ended.
    gatherings: u64,
    gathering: Option<u64>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Seat {
    state: Mutex<State>,
    /// Told when the seat is free.
    free: Condvar,
    /// Never told: whoever completes a group takes over the seat, and has no time to wake up who had it, who has nothing left to do.
    time_out: Condvar,
}

/// Who sits there.
pub(super) struct Writer<'a> {
    seat: &'a Seat,
    /// Whether something was written since the last flush.
    pub(super) is_unflushed: bool,
    /// Requests are held back, until the work is done.
    pub(super) holds_requests: bool,
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the seat. Whoever sits there then has something else to do than to serve requests.
    pub(super) fn take(&self) -> Result<Writer<'_>, StoreError> {
        let writer = self.wait(self.lock(), Patience::Leaves, |_| false)?;
        Ok(writer.expect("it is waited for until it is free"))
    }

    /// Waits for the seat, or until whoever has it has done what it is wanted for.
    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        patience: Patience,
        is_done: impl Fn(&State) -> bool,
    ) -> Result<Option<Writer<'_>>, StoreError> {
        state.waiting += 1;
        let waited = self.free.wait_while(state, |state| state.is_taken && !is_done(state));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        if state.has_panicked {
            return Err(super::writer::panicked());
        }
        if state.is_taken {
            return Ok(None);
        }
        state.is_taken = true;
        state.wants_relief = patience == Patience::Leaves;
        Ok(Some(Writer { seat: self, is_unflushed: state.is_unflushed, holds_requests: false }))
    }

    /// Leaves a request. Returns the seat if it is up to whoever asks to serve it.
    pub(super) fn ask(&self, asked: Asked, patience: Patience) -> Option<Writer<'_>> {
        let mut state = self.lock();
        if state.has_panicked {
            drop(state);
            (asked.done)(Err(super::writer::panicked()));
            return None;
        }
        state.asked.push(asked);
        if state.gathering.is_some() && state.expected.is_met(state.asked.len()) {
            state.gathering = None;
            state.expected.met();
            state.wants_relief = patience == Patience::Leaves;
            return Some(Writer { seat: self, is_unflushed: state.is_unflushed, holds_requests: false });
        }
        // Who waits for the seat serves this as well.
        let is_needed = state.waiting == 0 && (!state.is_taken || state.wants_relief);
        if !is_needed {
            return None;
        }
        // After a panic there is nothing left to serve.
        self.wait(state, patience, |state| state.asked.is_empty()).ok().flatten()
    }
}

impl<'a> Writer<'a> {
    /// Waits for those who are expected to ask, if that pays. Returns nothing if the last of them has taken over the seat.
    pub(super) fn gather(self) -> Option<Self> {
        let mut state = self.seat.lock();
        let requests = state.asked.len();
        let wait = if state.wants_relief { None } else { state.expected.wait(requests) };
        let Some(wait) = wait else {
            drop(state);
            return Some(self);
        };
        state.gatherings += 1;
        let own = Some(state.gatherings);
        state.gathering = own;
        state.is_unflushed = self.is_unflushed;
        let waited = self.seat.time_out.wait_timeout_while(state, wait, |state| state.gathering == own);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let is_own = state.gathering == own;
        if is_own {
            state.gathering = None;
            state.expected.missed();
        }
        drop(state);
        if is_own {
            return Some(self);
        }
        // Only a panic drops it.
        std::mem::forget(self);
        None
    }

    /// A group of so many requests was flushed, in so much time.
    pub(super) fn flushed(&mut self, group: usize, took: Duration) {
        let mut state = self.seat.lock();
        let came_since = state.asked.len();
        state.expected.flushed(group, came_since, took);
    }

    /// What is asked for: to be served, or put back. Whoever waits only to serve it need not.
    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        let mut state = self.seat.lock();
        if state.waiting > 0 && !state.asked.is_empty() {
            self.seat.free.notify_all();
        }
        std::mem::take(&mut state.asked)
    }

    /// Requests wait on, before those that came since.
    pub(super) fn put_back(&mut self, mut asked: Vec<Asked>) {
        let mut state = self.seat.lock();
        asked.append(&mut state.asked);
        state.asked = asked;
    }

    /// Leaves the seat, unless there are requests and nobody waits for the seat who would serve them.
    pub(super) fn leave(self) -> Option<Self> {
        let mut state = self.seat.lock();
        if !state.asked.is_empty() && state.waiting == 0 {
            drop(state);
            return Some(self);
        }
        state.is_taken = false;
        state.is_unflushed = self.is_unflushed;
        if state.waiting > 0 {
            self.seat.free.notify_one();
        }
        drop(state);
        // Only a panic drops it.
        std::mem::forget(self);
        None
    }
}

/// A panic: requests that were left are answered by being dropped.
impl Drop for Writer<'_> {
    fn drop(&mut self) {
        let mut state = self.seat.lock();
        state.is_taken = false;
        state.has_panicked = true;
        let asked = std::mem::take(&mut state.asked);
        self.seat.free.notify_all();
        drop(state);
        drop(asked);
    }
}

#[cfg(test)]
mod tests;
