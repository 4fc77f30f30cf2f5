//! What is known of one logical page, in four bytes.

use super::ages;
use super::{FORGOTTEN, OLDEST, SETTLED_AGE};

/// Pages of the request that wrote a version, as far as contexts tell them apart: 1, 2-7, 8-31, more.
pub(super) const SIZES: usize = 4;

/// 16 bits of time, in units, of the last write; 7 of the mean interval between rewrites, in eighths of octaves of units; 3 of the class of
/// rewrites; one that tells whether the page holds anything; 2 of the size of the request that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct PageState(u32);

const MEAN_AT: u32 = 16;
const CLASS_AT: u32 = 23;
const LIVE: u32 = 1 << 26;
const SIZE_AT: u32 = 27;

/// What a first interval is taken for at most: an age of 16 bits.
const LONGEST_FIRST: u64 = (ages::SCALE as u64) << 16;
/// Classes of rewrites: 0, 1, 2, 3-4, 5-8, 9-16, 17-32, more.
const CLASSES: u32 = 8;
/// Intervals that a mean goes over, at most: with more it would follow changes late.
const MOST_INTERVALS: u32 = 8;

impl PageState {
    /// A page that was never written.
    pub(super) const UNKNOWN: Self = Self(0);

    /// The class of a request of so many pages.
    #[inline(always)]
    pub(super) const fn size_of_request(pages: u32) -> u32 {
        match pages {
            0 | 1 => 0,
            2..=7 => 1,
            8..=31 => 2,
            _ => 3,
        }
    }

    #[inline(always)]
    pub(super) fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    /// The class of the size of the request that wrote the version.
    #[inline(always)]
    pub(super) fn size(self) -> u32 {
        self.0 >> SIZE_AT & (SIZES as u32 - 1)
    }

    /// The class of the number of rewrites before this version.
    #[inline(always)]
    pub(super) fn class(self) -> u32 {
        self.0 >> CLASS_AT & (CLASSES - 1)
    }

    /// The mean interval between rewrites, in eighths of octaves of units.
    #[inline(always)]
    pub(super) fn mean(self) -> u32 {
        self.0 >> MEAN_AT & 127
    }

    /// Units since the last write.
    #[inline(always)]
    pub(super) fn age(self, now: u32) -> u32 {
        u32::from((now as u16).wrapping_sub(self.0 as u16))
    }

    /// A version is written, by a request of that class of sizes.
    #[inline(always)]
    pub(super) fn begin(&mut self, now: u32, size: u32) {
        self.0 = self.0 & (127 << MEAN_AT | (CLASSES - 1) << CLASS_AT) | LIVE | size << SIZE_AT | u32::from(now as u16);
    }

    /// The page holds nothing any more.
    pub(super) fn leave(&mut self) {
        self.0 &= !LIVE;
    }

    /// A version ended after `interval` units. First intervals count as so many 256ths of what they were once there is a second. A class
    /// above the third is left for the next with a chance that makes it as many rewrites wide as its name says; `lot` is drawn from
    /// `0..2^16`, and decides the rounding of the mean too.
    #[inline(always)]
    pub(super) fn learn(&mut self, interval: u32, first_parts: u64, lot: u32) {
        let class = self.class();
        // The intervals that are known with this one, about.
        let known = match class {
            0..=2 => class + 1,
            3 => 4,
            4 => 7,
            _ => MOST_INTERVALS,
        };
        // Eight intervals of 2^16 units fit in 32 bits.
        let interval_then = ages::SCALE * interval;
        let mean = if known == 1 {
            interval_then
        } else {
            let before = match class {
                1 => (u64::from(ages::of_eighths(self.mean())) * first_parts / 256).min(LONGEST_FIRST) as u32,
                _ => ages::of_eighths(self.mean()),
            };
            (before * (known - 1) + interval_then) / known
        };
        let mean = ages::eighths_at_random(mean, lot);
        let class = match class {
            _ if interval > FORGOTTEN && class > 1 => class - 1,
            0..=2 => class + 1,
            _ if class + 1 < CLASSES && lot & ((1 << (class - 2)) - 1) == 0 => class + 1,
            _ => class,
        };
        self.0 = self.0 & !(127 << MEAN_AT | (CLASSES - 1) << CLASS_AT) | mean << MEAN_AT | class << CLASS_AT;
    }

    /// Keeps a page that grows old from looking young once its time has wrapped around.
    #[inline(always)]
    pub(super) fn keep_in_range(&mut self, now: u32) {
        if self.age(now) > OLDEST {
            self.0 = self.0 & !0xFFFF | u32::from((now as u16).wrapping_sub(SETTLED_AGE as u16));
        }
    }
}
