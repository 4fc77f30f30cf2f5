//! Classes of update rate on a logarithmic scale, shared by the placements that order pages by an estimated interval.

use super::PlacementContext;
use crate::address::StreamId;

/// Intervals between updates in host page writes, in classes by powers of two: class 0 holds the longest, each further one
/// intervals half as long, the last one all that are shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateClasses {
    /// The shortest interval of class 0: no page of a uniform load would be updated later than this on average.
    longest: u64,
    classes: u16,
}

impl RateClasses {
    /// `classes` classes that start at four times the logical pages: a page with that interval receives a quarter of its share.
    pub(super) fn new(context: &PlacementContext, classes: u64) -> Self {
        Self { longest: 4 * u64::from(context.logical_pages), classes: classes as u16 }
    }

    pub(super) fn streams(&self) -> u16 {
        self.classes
    }

    #[inline(always)]
    pub(super) fn stream(&self, interval: u64) -> StreamId {
        let interval = interval.max(1);
        if interval > self.longest {
            return StreamId(0);
        }
        // The logarithm of their quotient, without dividing.
        let at_most = self.longest.ilog2() - interval.ilog2();
        let times_log2 = at_most - u32::from(interval << at_most > self.longest);
        StreamId((times_log2 as u16).min(self.classes - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_half_as_long_are_one_class_hotter() {
        let classes = RateClasses { longest: 1024, classes: 6 };
        let streams = [5000, 1024, 513, 512, 256, 33, 32, 1, 0].map(|interval| classes.stream(interval).0);
        assert_eq!(streams, [0, 0, 0, 1, 2, 4, 5, 5, 5]);
        let classes = RateClasses { longest: 4 * 1000, classes: 32 };
        for interval in 1..=4 * 1000 {
            assert_eq!(u32::from(classes.stream(interval).0), (4 * 1000 / interval).ilog2(), "{interval}");
        }
    }
}
