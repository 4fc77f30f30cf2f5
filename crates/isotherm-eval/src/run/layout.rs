//! Which logical pages hold what before the measured run: the trace's own, filler, nothing.

use crate::fold::{Folding, TouchedPages};
use std::ops::Range;

/// A set of logical pages as ranges, in the order of their addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pages {
    /// Ranges with the number of pages before each.
    runs: Vec<(Range<u64>, u64)>,
    count: u64,
}

impl Pages {
    /// The pages of one range.
    pub fn range(range: Range<u64>) -> Self {
        let mut pages = Self::default();
        pages.push(range);
        pages
    }

    /// Adds a range that lies behind all others.
    fn push(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let length = range.end - range.start;
        match self.runs.last_mut() {
            Some((last, _)) if last.end == range.start => last.end = range.end,
            _ => self.runs.push((range, self.count)),
        }
        self.count += length;
    }

    /// Those of its pages whose addresses lie below `end`.
    #[must_use]
    pub fn below(&self, end: u64) -> Self {
        let mut pages = Self::default();
        self.runs().for_each(|run| pages.push(run.start.min(end)..run.end.min(end)));
        pages
    }

    /// Number of pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The ranges.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(|run| run.0.clone())
    }

    /// Page number `index`, below [`count`](Self::count).
    pub fn nth(&self, index: u64) -> u64 {
        let run = self.runs.partition_point(|run| run.1 <= index) - 1;
        let (range, before) = &self.runs[run];
        range.start + (index - before)
    }
}

/// What the pages of a device are used for.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Pages that the trace may touch, or does where that is known: preconditioning writes them.
    pub active: Pages,
    /// Pages that are written once, before all else, and never again.
    pub filler: Pages,
}

impl Layout {
    /// The trace has the first `active` of `logical` pages, filler the rest.
    pub fn split(active: u64, logical: u64) -> Self {
        Self { active: Pages::range(0..active), filler: Pages::range(active..logical) }
    }

    /// The trace has the pages that it touches, and filler goes to others, from the first on, until both take `live` pages.
    pub fn around(touched: &TouchedPages, folding: &Folding, logical: u64, live: u64) -> Self {
        let mut active = Pages::default();
        folding.pages(touched, logical).for_each(|page| active.push(page..page + 1));
        let mut left = live.saturating_sub(active.count());
        let mut filler = Pages::default();
        let mut from = 0;
        for used in active.runs().chain(std::iter::once(logical..logical)) {
            let end = used.start.min(from + left);
            left -= end - from;
            filler.push(from..end);
            from = used.end;
        }
        Self { active, filler }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::request::{Op, Request};

    #[test]
    fn filler_goes_between_what_the_trace_touches() {
        let write = |page: u64, pages: u64| Request {
            arrival_ns: 0,
            offset: page * 4096,
            length: pages * 4096,
            op: Op::Write,
            source: 0,
            durable: false,
        };
        let mut touched = TouchedPages::new(4096);
        touched.insert(&[write(2, 3), write(9, 1), write(21, 1)]).unwrap();
        touched.number();
        let ranges = |pages: &Pages| pages.runs().map(|r| (r.start, r.end)).collect::<Vec<_>>();
        let at = |folding, logical, live| Layout::around(&touched, &folding, logical, live);
        let layout = at(Folding::Refuse, 24, 12);
        assert_eq!(ranges(&layout.active), [(2, 5), (9, 10), (21, 22)]);
        assert_eq!(ranges(&layout.filler), [(0, 2), (5, 9), (10, 11)]);
        assert_eq!((layout.active.count(), layout.filler.count()), (5, 7));
        assert_eq!(ranges(&at(Folding::Refuse, 24, 24).filler), [(0, 2), (5, 9), (10, 21), (22, 24)]);
        assert_eq!(ranges(&at(Folding::Refuse, 24, 3).filler), []);
        // Page 21 becomes page 5.
        assert_eq!(ranges(&at(Folding::Wrap(16 * 4096), 16, 16).active), [(2, 6), (9, 10)]);
        let nth: Vec<u64> = (0..5).map(|i| layout.active.nth(i)).collect();
        assert_eq!(nth, [2, 3, 4, 9, 21]);
    }
}
