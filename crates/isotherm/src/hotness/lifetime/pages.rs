//! What is known of one logical page, in four bytes.

use super::ages;
use super::contexts::{CLASSES, MEANS};
use super::{FORGOTTEN, OLDEST, SETTLED_AGE};

/// 16 bits of time, in units, of the last write; 7 of the mean interval between rewrites, in eighths of octaves of units; 3 of the class of
/// rewrites; one that tells whether the page holds anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct PageState(u32);

const MEAN_AT: u32 = 16;
const CLASS_AT: u32 = 23;
const LIVE: u32 = 1 << 26;

impl PageState {
    /// A page that was never written.
    pub(super) const UNKNOWN: Self = Self(0);

    #[inline(always)]
    pub(super) fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    #[inline(always)]
    fn class(self) -> u32 {
        self.0 >> CLASS_AT & 7
    }

    #[inline(always)]
    fn mean(self) -> u32 {
        self.0 >> MEAN_AT & 127
    }

    /// The context of the version: its class of rewrites and their mean interval in half octaves.
    #[inline(always)]
    pub(super) fn context(self) -> usize {
        self.class() as usize * MEANS + self.mean() as usize / 4
    }

    /// Units since the last write.
    #[inline(always)]
    pub(super) fn age(self, now: u32) -> u32 {
        u32::from((now as u16).wrapping_sub(self.0 as u16))
    }

    /// A version is written.
    #[inline(always)]
    pub(super) fn begin(&mut self, now: u32) {
        self.0 = self.0 & (127 << MEAN_AT | 7 << CLASS_AT) | LIVE | u32::from(now as u16);
    }

    /// The page holds nothing any more.
    pub(super) fn leave(&mut self) {
        self.0 &= !LIVE;
    }

    /// A version ended after `interval` units. A class above the third is left for the next with a chance that makes it as
    /// many rewrites wide as its name says; `lot` is drawn from `0..2^16`.
    #[inline(always)]
    pub(super) fn learn(&mut self, interval: u32, lot: u32) {
        let class = self.class();
        let last = ages::eighths(interval);
        let mean = if class == 0 {
            last
        } else {
            // The mean over as many intervals as are known, four at most.
            let weight = (class as i32 + 1).min(4);
            let (mean, step) = (self.mean() as i32, last as i32 - self.mean() as i32);
            (mean + (2 * step + step.signum() * weight) / (2 * weight)) as u32
        };
        let class = match class {
            _ if interval > FORGOTTEN && class > 1 => class - 1,
            0..=2 => class + 1,
            _ if class + 1 < CLASSES as u32 && lot & ((1 << (class - 2)) - 1) == 0 => class + 1,
            _ => class,
        };
        self.0 = self.0 & !(127 << MEAN_AT | 7 << CLASS_AT) | mean.min(127) << MEAN_AT | class << CLASS_AT;
    }

    /// Keeps a page that grows old from looking young once its time has wrapped around.
    #[inline(always)]
    pub(super) fn keep_in_range(&mut self, now: u32) {
        if self.age(now) > OLDEST {
            self.0 = self.0 & !0xFFFF | u32::from((now as u16).wrapping_sub(SETTLED_AGE as u16));
        }
    }
}
