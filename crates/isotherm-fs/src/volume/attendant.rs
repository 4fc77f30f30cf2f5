//! Who looks after a volume in the background, as those see it who wait for room in memory.
//!
//! What waits in memory is written, and segments are cleaned for it, by the one who looks after the volume, if there is one: he is called
//! when so much waits that something is to be written. Who writes meanwhile goes on into the rest of the memory, the slower the less
//! of it is left, so that cleaning several segments is spread over many requests in place of stopping one of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a request waits before it looks again whether there is room.
const LOOK: Duration = Duration::from_millis(50);
/// The share of the memory beyond what is written from on that requests take without being slowed down.
const FREE_SHARE: f64 = 0.5;
/// How long a block waits there where slowing down begins.
const SHORTEST: f64 = 10e-6;
/// How often this doubles until the memory is full.
const DOUBLINGS: f64 = 12.0;
/// How long a request waits at most while there is memory.
const LONGEST: f64 = 0.04;

#[derive(Debug, Default)]
struct State {
    is_there: bool,
    is_called: bool,
    is_over: bool,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Attendant {
    state: Mutex<State>,
    /// Told when he is called, and when he is to leave.
    called: Condvar,
    /// Told when something has left the memory.
    relieved: Condvar,
}

/// Leaves when it is dropped, by a panic too.
pub(super) struct Presence(Arc<Attendant>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.lock().is_there = false;
        self.0.relieved.notify_all();
    }
}

impl Attendant {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to look after the volume.
    pub(super) fn arrive(self: &Arc<Self>) -> Presence {
        *self.lock() = State { is_there: true, ..State::default() };
        Presence(self.clone())
    }

    /// Ends it.
    pub(super) fn dismiss(&self) {
        self.lock().is_over = true;
        self.called.notify_all();
    }

    /// Waits until he is called, at most so long. Returns whether he is to leave.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let waits = |state: &mut State| !state.is_called && !state.is_over;
        let waited = self.called.wait_timeout_while(self.lock(), longest, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_called = false;
        state.is_over
    }

    /// Calls him. Returns false if nobody is there.
    pub(super) fn call(&self) -> bool {
        let mut state = self.lock();
        if state.is_there && !state.is_called {
            state.is_called = true;
            self.called.notify_all();
        }
        state.is_there
    }

    /// Something has left the memory.
    pub(super) fn relieve(&self) {
        self.relieved.notify_all();
    }

    /// Waits until something has left the memory, for a while at most.
    pub(super) fn wait_for_relief(&self) {
        drop(self.relieved.wait_timeout(self.lock(), LOOK));
    }
}

/// How long a request of so many blocks waits while so much of the memory that is left is taken, from 0 to 1.
pub(super) fn pause(strain: f64, blocks: u64) -> Duration {
    if strain < FREE_SHARE {
        return Duration::ZERO;
    }
    let a_block = SHORTEST * (DOUBLINGS * (strain - FREE_SHARE) / (1.0 - FREE_SHARE)).exp2();
    Duration::from_secs_f64((a_block * blocks as f64).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_slowed_down_the_more_the_less_memory_is_left() {
        let micros = |strain, blocks| pause(strain, blocks).as_micros();
        assert_eq!([0.0, 0.49, 0.5, 0.75, 0.875].map(|strain| micros(strain, 1)), [0, 0, 10, 640, 5120]);
        assert_eq!([1, 256].map(|blocks| micros(0.5, blocks)), [10, 2560]);
        // No request waits longer than this, however large.
        assert_eq!([micros(0.99, 256), micros(5.0, 1)], [40_000, 40_000]);
    }

    #[test]
    fn a_call_is_heard_once_and_by_nobody_when_he_has_left() {
        let attendant = Arc::new(Attendant::default());
        assert!(!attendant.call());
        let presence = attendant.arrive();
        assert!(attendant.call());
        assert!(!attendant.wait(Duration::from_secs(3600)), "he was called, and returns at once");
        assert!(!attendant.wait(Duration::ZERO));
        attendant.dismiss();
        assert!(attendant.wait(Duration::from_secs(3600)));
        drop(presence);
        assert!(!attendant.call());
    }
}
