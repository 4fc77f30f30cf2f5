//! What is known of every logical page and judged by a placement and a victim policy both, kept once: the last two updates for MDC's,
//! lifetimes for those of our own.
//!
//! The block store owns the history and hands it to the policies with every call that may ask for it. It is kept only if a
//! policy does: otherwise it has no pages, and nobody pays for it. Updates: O(1), 8 bytes a logical page; lifetimes: see [`lifetime`](super::lifetime).

use super::lifetime::{LifetimeOptions, Lifetimes};
use crate::address::Lpn;
use crate::memory;

/// When a page was updated, in host page writes modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Updates {
    /// The last time.
    pub last: u32,
    /// The last time but one; the last one where there was no other.
    pub before: u32,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct PageHistory {
    /// Both times plus one, 0 for none.
    updates: Vec<(u32, u32)>,
    lifetimes: Option<Box<Lifetimes>>,
}

/// What a policy wants to be told. The same as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// The last two updates of so many logical pages.
    pub updates: u32,
    /// How long pages live.
    pub lifetimes: LifetimeOptions,
}

impl Wanted {
    /// Whether a policy wants to be told anything.
    pub fn anything(self) -> bool {
        self != Self::default()
    }

    /// What two policies want together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { updates: self.updates.max(other.updates), lifetimes: self.lifetimes.and(other.lifetimes) }
    }

    /// Bytes that are kept for it.
    pub fn bytes(self) -> u64 {
        u64::from(self.updates) * size_of::<(u32, u32)>() as u64 + Lifetimes::bytes_of(self.lifetimes.logical_pages)
    }
}

impl PageHistory {
    /// The history of pages that were never written.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            updates: memory::table(wanted.updates as usize, Default::default()),
            lifetimes: (wanted.lifetimes.logical_pages > 0).then(|| Box::new(Lifetimes::new(wanted.lifetimes))),
        }
    }

    /// Lifetimes of pages.
    ///
    /// # Panics
    /// Where none are kept: whoever asks has said that it wants them.
    #[inline(always)]
    pub(crate) fn lifetimes(&self) -> &Lifetimes {
        self.lifetimes.as_deref().expect("lifetimes are kept for who wants them")
    }

    /// Lifetimes of pages, to note a write.
    ///
    /// # Panics
    /// As above.
    #[inline(always)]
    pub(crate) fn lifetimes_mut(&mut self) -> &mut Lifetimes {
        self.lifetimes.as_deref_mut().expect("lifetimes are kept for who wants them")
    }

    /// The host trimmed a page.
    pub(crate) fn trim(&mut self, lpn: Lpn) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.trim(lpn);
        }
    }

    /// A request of the host is about to write so many pages.
    #[inline(always)]
    pub(crate) fn begin_write(&mut self, pages: u32) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.begin_write(pages);
        }
    }

    /// Notes that the host writes `lpn` at the time `now`. Everyone who judges by the history does so when hearing of the
    /// write: no two writes have the same time, so the second call for a write changes nothing.
    #[inline(always)]
    pub fn record(&mut self, lpn: Lpn, now: u64) {
        let (last, before) = &mut self.updates[lpn.0 as usize];
        let stamp = (now as u32).wrapping_add(1);
        if *last != stamp {
            *before = if *last == 0 { stamp } else { *last };
            *last = stamp;
        }
    }

    /// The updates of a page, 0 for one that was never written. A trim changes nothing: they are those of the address.
    #[inline(always)]
    pub fn of(&self, lpn: Lpn) -> Updates {
        let (last, before) = self.updates[lpn.0 as usize];
        Updates { last: last.saturating_sub(1), before: before.saturating_sub(1) }
    }

    /// Brings the updates of `lpns` towards the cache, if they are kept.
    #[inline(always)]
    pub fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        if !self.updates.is_empty() {
            lpns.for_each(|lpn| memory::prefetch(&self.updates, lpn.0 as usize));
        } else if let Some(lifetimes) = &self.lifetimes {
            lifetimes.prefetch(lpns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_noted_once_however_many_hear_of_it() {
        let mut history = PageHistory::new(Wanted { updates: 2, ..Wanted::default() });
        let page = Lpn(1);
        history.record(page, 0);
        assert_eq!(history.of(page), Updates { last: 0, before: 0 });
        for now in [7, 7, 9] {
            history.record(page, now);
        }
        assert_eq!(history.of(page), Updates { last: 9, before: 7 });
        assert_eq!(Wanted { updates: 2, ..Wanted::default() }.bytes(), 16);
    }
}
