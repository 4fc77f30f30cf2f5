//! What a block holds, as a type: nothing (simulation), or bytes on the heap (a working log).
//!
//! The log and the device over it are written once, for any [`BlockContent`]. Without bytes a block's content is `()`, and every
//! table of contents is empty.

use crate::options::BLOCK_BYTES;
use std::fmt::Debug;
use std::ops::Range;

/// What a block of a log holds.
///
/// # Contract
/// - The default value is the content of a block that was never written: it reads as zeros, and allocates nothing.
pub trait BlockContent: Clone + Default + Debug {
    /// What the host writes: a run of bytes that need not begin or end with a block.
    type Data<'a>: Copy;
    /// Room for what the host reads.
    type Room<'a>;
    /// The block that is the whole of `range`.
    fn of(data: Self::Data<'_>, range: Range<usize>) -> Self;
    /// Puts `range` of what the host writes into the block, from its byte `at` on.
    fn patch(&mut self, at: usize, data: Self::Data<'_>, range: Range<usize>);
    /// Makes a part of the block zero.
    fn clear(&mut self, range: Range<usize>);
    /// Puts a part of the block, from its byte `at` on, into `range` of what the host reads.
    fn extract(&self, at: usize, room: &mut Self::Room<'_>, range: Range<usize>);
    /// The content as bytes: none without content, and none for a block that was never written.
    fn bytes(&self) -> &[u8];
}

/// No content: a simulation needs block numbers only.
impl BlockContent for () {
    type Data<'a> = ();
    type Room<'a> = ();
    #[inline(always)]
    fn of((): (), _: Range<usize>) {}
    #[inline(always)]
    fn patch(&mut self, _: usize, (): (), _: Range<usize>) {}
    #[inline(always)]
    fn clear(&mut self, _: Range<usize>) {}
    #[inline(always)]
    fn extract(&self, _: usize, (): &mut (), _: Range<usize>) {}
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &[]
    }
}

/// The bytes of a block: [`BLOCK_BYTES`] of them, or none if it was never written.
impl BlockContent for Box<[u8]> {
    type Data<'a> = &'a [u8];
    type Room<'a> = &'a mut [u8];
    fn of(data: &[u8], range: Range<usize>) -> Self {
        debug_assert_eq!(range.len(), BLOCK_BYTES as usize);
        data[range].into()
    }
    fn patch(&mut self, at: usize, data: &[u8], range: Range<usize>) {
        if self.is_empty() {
            *self = vec![0; BLOCK_BYTES as usize].into();
        }
        self[at..at + range.len()].copy_from_slice(&data[range]);
    }
    fn clear(&mut self, range: Range<usize>) {
        if self.is_empty() {
            *self = vec![0; BLOCK_BYTES as usize].into();
        }
        self[range].fill(0);
    }
    fn extract(&self, at: usize, room: &mut &mut [u8], range: Range<usize>) {
        let length = range.len();
        match self.get(at..at + length) {
            Some(bytes) => room[range].copy_from_slice(bytes),
            None => room[range].fill(0),
        }
    }
    fn bytes(&self) -> &[u8] {
        self
    }
}
