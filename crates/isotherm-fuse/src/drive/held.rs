//! Answers that are held back until their time, while other requests go on.
//!
//! One thread sleeps until the earliest of them is due. Its timer slack is set to the least there is: the kernel's 50 us would be
//! as much as a page's read of a fast flash takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::write_back::promise_to_write_back;

/// Answers that wait, in order of time. What still waits when this is dropped is sent at once.
pub(super) struct Held<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    send: fn(T),
}

struct State<T> {
    waiting: BinaryHeap<Reverse<Entry<T>>>,
    entries_ever: u64,
    is_ending: bool,
}

struct Entry<T> {
    due: Instant,
    number: u64,
    answer: T,
}

impl<T: Send + 'static> Held<T> {
    /// Starts the thread; `send` is what it does with an answer whose time has come.
    pub(super) fn new(send: fn(T)) -> io::Result<Self> {
        let state = State { waiting: BinaryHeap::new(), entries_ever: 0, is_ending: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), send });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fuse-held".into()).spawn(move || {
            // Without it answers are later by the slack, and no less right.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            promise_to_write_back();
            of_thread.run();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends `answer` at `due`.
    pub(super) fn hold(&self, due: Instant, answer: T) {
        let mut state = self.shared.lock();
        let number = state.entries_ever;
        state.entries_ever += 1;
        let is_next = state.waiting.peek().is_none_or(|first| due < first.0.due);
        state.waiting.push(Reverse(Entry { due, number, answer }));
        drop(state);
        if is_next {
            self.shared.changed.notify_one();
        }
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing to undo.
            let _ = thread.join();
        }
    }
}

impl<T> Shared<T> {
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let Some(Reverse(first)) = state.waiting.peek() else {
                if state.is_ending {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = first.due.saturating_duration_since(Instant::now());
            if !left.is_zero() && !state.is_ending {
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if let Some(Reverse(entry)) = state.waiting.pop() {
                drop(state);
                (self.send)(entry.answer);
                state = self.lock();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    type Answer = (Sender<(u32, Instant)>, u32);

    fn send((to, number): Answer) {
        to.send((number, Instant::now())).unwrap();
    }

    #[test]
    fn answers_go_in_order_of_their_times_and_none_early() {
        let held = Held::new(send).unwrap();
        let (sender, receiver) = channel();
        let start = Instant::now();
        let due = |number: u32| start + Duration::from_millis(20 * u64::from(number));
        for number in [5, 1, 4, 2, 3] {
            held.hold(due(number), (sender.clone(), number));
        }
        for expected in 1..=5 {
            let (number, at) = receiver.recv().unwrap();
            assert_eq!(number, expected);
            assert!(at >= due(number));
        }
    }

    #[test]
    fn an_answer_does_not_wait_for_one_that_is_due_later() {
        let held = Held::new(send).unwrap();
        let (sender, receiver) = channel();
        held.hold(Instant::now() + Duration::from_secs(3600), (sender.clone(), 2));
        // Time for the thread to fall asleep until then.
        thread::sleep(Duration::from_millis(50));
        held.hold(Instant::now() + Duration::from_millis(1), (sender, 1));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap().0, 1);
    }

    #[test]
    fn what_still_waits_is_sent_at_the_end() {
        let held = Held::new(send).unwrap();
        let (sender, receiver) = channel();
        let far = Instant::now() + Duration::from_secs(3600);
        held.hold(far, (sender.clone(), 1));
        held.hold(far, (sender, 2));
        drop(held);
        let numbers: Vec<_> = receiver.iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2]);
    }
}
