//! Whether it pays to wait for more requests before a group of them is written.
//!
//! Threads that write and sync in turn come back a moment after they were answered. A group that is written before they are back makes
//! them wait for the whole of its flush, and from then on the threads take turns in two halves of which each waits for the other's
//! flush. So whoever is about to write waits for as many as there were the last time, for no longer than a flush takes: it costs at
//! most what it may save. One that asks alone never waits.
//!
//! For the same reason there is one flush at a time, though a device may take several: with two in the air each is of half as many
//! requests, and what a group costs (a plan, a write, a flush, threads that wake up) is paid twice as often. A `fdatasync` of a file
//! waits besides for every page of it that is being written, those of the other flush included.

use std::time::Duration;

/// A thread that sleeps until a time oversleeps by about this: no flush that is quicker is worth a wait.
const OVERSLEPT: Duration = Duration::from_micros(50);
/// Waits that are passed over at most after one that was in vain.
const PASSED_OVER_MAX: u32 = 63;

/// See the module's text.
#[derive(Default)]
pub(super) struct Expected {
    /// Requests that the last group held, and that came until it was flushed.
    requests: usize,
    /// Moving mean of the time that a flush takes.
    flush: Duration,
    /// Waits to pass over, and how many it was after the last that was in vain, with none since that was not.
    to_pass_over: u32,
    passed_over: u32,
}

impl Expected {
    /// Whether so many requests are all that are expected.
    pub(super) fn is_met(&self, requests: usize) -> bool {
        requests >= self.requests
    }

    /// How long to wait for more than these requests, if it pays.
    pub(super) fn wait(&mut self, requests: usize) -> Option<Duration> {
        if requests == 0 || self.is_met(requests) || self.flush < OVERSLEPT {
            return None;
        }
        if self.to_pass_over > 0 {
            self.to_pass_over -= 1;
            return None;
        }
        Some(self.flush)
    }

    /// All have come within the time.
    pub(super) fn met(&mut self) {
        self.passed_over = 0;
    }

    /// They have not. Where that goes on, waits are fewer and fewer.
    pub(super) fn missed(&mut self) {
        self.passed_over = (2 * self.passed_over + 1).min(PASSED_OVER_MAX);
        self.to_pass_over = self.passed_over;
    }

    /// A group was flushed.
    pub(super) fn flushed(&mut self, group: usize, came_since: usize, took: Duration) {
        self.requests = group + came_since;
        self.flush = (7 * self.flush + took) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_micros(800);

    /// Flushes of so many requests, until their mean is as long as they are.
    fn used_to(group: usize, came_since: usize, flush: Duration) -> Expected {
        let mut expected = Expected::default();
        (0..1000).for_each(|_| expected.flushed(group, came_since, flush));
        expected
    }

    #[test]
    fn as_many_are_waited_for_as_there_were_for_as_long_as_a_flush_takes() {
        let mut expected = used_to(3, 1, FLUSH);
        let bound = expected.wait(3).expect("one is missing");
        assert!((FLUSH - Duration::from_micros(1)..=FLUSH).contains(&bound), "{bound:?}");
        assert_eq!([0, 4, 5].map(|requests| expected.wait(requests)), [None; 3]);
        // One does not come back.
        expected.flushed(3, 0, FLUSH);
        assert_eq!(expected.wait(3), None);
    }

    #[test]
    fn one_alone_never_waits_nor_does_anybody_where_flushes_are_quick() {
        assert_eq!(Expected::default().wait(1), None);
        assert_eq!(used_to(1, 0, FLUSH).wait(1), None);
        assert_eq!(used_to(8, 0, OVERSLEPT - Duration::from_micros(1)).wait(1), None);
    }

    #[test]
    fn waits_in_vain_become_rare_until_one_is_not() {
        let mut expected = used_to(2, 0, FLUSH);
        let mut waits = Vec::new();
        for group in 0..200 {
            if expected.wait(1).is_some() {
                waits.push(group);
                expected.missed();
            }
        }
        assert_eq!(waits, [0, 2, 6, 14, 30, 62, 126, 190]);
        while expected.wait(1).is_none() {}
        expected.met();
        assert!((0..3).all(|_| expected.wait(1).is_some()));
    }
}
