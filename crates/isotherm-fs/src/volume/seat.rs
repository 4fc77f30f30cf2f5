//! The seat of the one who writes the log, and what others ask of whoever sits there.
//!
//! Whoever needs something durable asks for it, and waits until it is served or the seat is free: the first to get it serves all who
//! have asked until then, with one write and one flush. Whoever cleans serves them in between, so that nobody waits for all of it.

use crate::store::StoreError;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is asked to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wanted {
    /// Names and attributes, until now.
    Metadata,
    /// A file, and all metadata until now.
    File(u64),
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Whether something was written since the last flush.
    is_unflushed: bool,
    /// A writer has panicked: nothing behind the seat is to be trusted.
    has_panicked: bool,
    /// Requests so far, and up to which one they are served.
    tickets: u64,
    served: u64,
    /// What nobody has served yet, with the last request for it.
    wanted: HashMap<Wanted, u64>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Seat {
    state: Mutex<State>,
    /// Told when the seat is free, and when somebody is served.
    changed: Condvar,
}

/// Who sits there.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    seat: &'a Seat,
    /// Whether something was written since the last flush.
    pub(super) is_unflushed: bool,
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the seat.
    pub(super) fn take(&self) -> Result<Writer<'_>, StoreError> {
        self.take_unless_served(u64::MAX).map(|writer| writer.expect("no request has this number"))
    }

    /// Asks for something. Returns the number of the request.
    pub(super) fn ask(&self, wanted: Wanted) -> u64 {
        let mut state = self.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        state.wanted.insert(wanted, ticket);
        ticket
    }

    /// Waits until a request is served, or the seat is there to serve it from.
    pub(super) fn take_unless_served(&self, ticket: u64) -> Result<Option<Writer<'_>>, StoreError> {
        let waits = |state: &mut State| state.is_taken && state.served < ticket;
        let state = self.changed.wait_while(self.lock(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.has_panicked {
            return Err(super::writer::panicked());
        }
        if state.served >= ticket {
            return Ok(None);
        }
        state.is_taken = true;
        Ok(Some(Writer { seat: self, is_unflushed: state.is_unflushed }))
    }
}

impl Writer<'_> {
    /// What is asked for, with the number of the last request; `None` if nothing is.
    pub(super) fn asked(&self) -> Option<(u64, Vec<Wanted>)> {
        let state = self.seat.lock();
        (!state.wanted.is_empty()).then(|| (state.tickets, state.wanted.keys().copied().collect()))
    }

    /// Requests up to this one are served.
    pub(super) fn serve(&mut self, ticket: u64) {
        let mut state = self.seat.lock();
        state.served = ticket;
        state.wanted.retain(|_, last| *last > ticket);
        self.seat.changed.notify_all();
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        let mut state = self.seat.lock();
        state.is_taken = false;
        state.is_unflushed = self.is_unflushed;
        state.has_panicked |= std::thread::panicking();
        self.seat.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_is_served_does_not_wait_for_the_seat() {
        let seat = Arc::new(Seat::default());
        let mut writer = seat.take().expect("nobody has panicked");
        assert_eq!(writer.asked(), None);
        let first = seat.ask(Wanted::File(7));
        let waits = {
            let seat = seat.clone();
            std::thread::spawn(move || seat.take_unless_served(first).map(|writer| writer.is_some()))
        };
        assert_eq!(writer.asked(), Some((first, vec![Wanted::File(7)])));
        // What is asked for while it is written is not served by that.
        let second = seat.ask(Wanted::File(7));
        writer.serve(first);
        assert_eq!(waits.join().expect("no panic"), Ok(false));
        assert_eq!(writer.asked(), Some((second, vec![Wanted::File(7)])));
        writer.is_unflushed = true;
        drop(writer);
        let writer = seat.take_unless_served(second).expect("nobody has panicked").expect("nobody has served it");
        assert!(writer.is_unflushed, "what was written is still to be flushed");
    }

    #[test]
    fn nobody_sits_down_after_a_panic() {
        let seat = Arc::new(Seat::default());
        let of_thread = seat.clone();
        let seated = Arc::new(AtomicBool::new(false));
        let told = seated.clone();
        let thread = std::thread::spawn(move || {
            let _writer = of_thread.take().expect("nobody has panicked");
            told.store(true, Ordering::Relaxed);
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert!(seated.load(Ordering::Relaxed));
        assert!(seat.take().is_err());
    }
}
