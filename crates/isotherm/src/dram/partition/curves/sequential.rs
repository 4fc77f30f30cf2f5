//! Merges of the sequential log block at each split: what FAST's rules make of the pages that the buffer of each size evicts.
//!
//! A larger buffer saves a write here and there, and with it the merge that the write would have forced on the sequential
//! block: one page that is rewritten in the middle of a run of others costs a merge of its logical block, some sixty times
//! the write. Counted by writes alone, a buffer that absorbs one write in two hundred looks worthless; on a trace of small
//! files those writes were a fifth of all merges.
//!
//! The evictions of every size are known from the stack, so that the block which each would have open is followed exactly,
//! but for what reclaims of the other log blocks take away from it. O(1) an eviction.

use super::{Curve, SPLITS, decay};
use crate::address::Lpn;

/// Bytes of firmware state: for each size, the logical block that is open and its next page.
pub const BYTES: u64 = SPLITS as u64 * 8;

/// The sequential log block behind one size of buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    logical: u32,
    next: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SequentialCurve {
    log2_pages_per_block: u8,
    open: [Option<Open>; SPLITS],
    copies: Curve,
}

impl SequentialCurve {
    /// Nothing is open.
    pub fn new(pages_per_block: u32) -> Self {
        Self {
            log2_pages_per_block: pages_per_block.trailing_zeros() as u8,
            open: [None; SPLITS],
            copies: [0.0; SPLITS],
        }
    }

    /// The buffer of `split` evicts `lpn`.
    #[inline(always)]
    pub(super) fn on_evict(&mut self, split: usize, lpn: Lpn) {
        let pages = 1 << self.log2_pages_per_block;
        let (logical, offset) = (lpn.0 >> self.log2_pages_per_block, lpn.0 & (pages - 1));
        let open = &mut self.open[split];
        let copied = match *open {
            // A block that begins closes the one before: by a switch if that is complete, else with a copy of its rest.
            Some(before) if offset == 0 => pages - before.next,
            Some(Open { logical: owner, next }) if owner == logical && offset != next => {
                if offset < next {
                    pages
                } else {
                    pages - next
                }
            }
            _ => 0,
        };
        self.copies[split] += f64::from(copied);
        if offset == 0 {
            *open = Some(Open { logical, next: 1 });
        } else if let Some(Open { next, .. }) = open.as_mut().filter(|open| open.logical == logical) {
            if *next == offset {
                *next += 1;
            } else {
                *open = None;
            }
        }
    }

    /// Pages copied by merges of the sequential block, at each split.
    pub(super) fn copies(&self) -> &Curve {
        &self.copies
    }

    pub(super) fn decay(&mut self, factor: f64) {
        decay(&mut self.copies, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_copy_what_the_sequential_block_lacks() {
        let mut curve = SequentialCurve::new(8);
        let mut copied = |pages: &[u32]| {
            let before = curve.copies()[3];
            pages.iter().for_each(|lpn| curve.on_evict(3, Lpn(*lpn)));
            curve.copies()[3] - before
        };
        assert_eq!(copied(&[0, 1, 2, 3, 4, 5, 6, 7]), 0.0);
        assert_eq!(copied(&[8]), 0.0, "a switch copies nothing");
        assert_eq!(copied(&[9, 10, 30, 11]), 0.0, "other blocks leave the order as it is");
        assert_eq!(copied(&[16]), 4.0, "a partial merge copies the rest");
        assert_eq!(copied(&[18]), 7.0, "so does a page that skips ahead");
        assert_eq!(copied(&[19]), 0.0, "nothing is open any more");
        assert_eq!(copied(&[24, 25, 26, 25]), 8.0, "a page that is rewritten makes a full merge");
        assert!(curve.copies().iter().enumerate().all(|(split, copies)| split == 3 || *copies == 0.0));
    }
}
