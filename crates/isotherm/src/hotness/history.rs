//! The last two updates of every logical page: what MDC's placement and its victim policy both judge by, kept once.
//!
//! The block store owns the history and hands it to the policies with every call that may ask for it. It is kept only if a
//! policy does: otherwise it has no pages, and nobody pays for it. O(1) an update, 8 bytes a logical page.

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
}

impl PageHistory {
    /// The history of `logical_pages` that were never written; 0 keeps none.
    pub fn new(logical_pages: u32) -> Self {
        Self { updates: memory::table(logical_pages as usize, Default::default()) }
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
        }
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        Self::bytes_of(self.updates.len() as u32)
    }

    /// Bytes of the table of so many logical pages.
    pub fn bytes_of(logical_pages: u32) -> u64 {
        u64::from(logical_pages) * size_of::<(u32, u32)>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_noted_once_however_many_hear_of_it() {
        let mut history = PageHistory::new(2);
        let page = Lpn(1);
        history.record(page, 0);
        assert_eq!(history.of(page), Updates { last: 0, before: 0 });
        for now in [7, 7, 9] {
            history.record(page, now);
        }
        assert_eq!(history.of(page), Updates { last: 9, before: 7 });
        assert_eq!(history.bytes(), 16);
    }
}
