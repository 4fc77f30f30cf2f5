//! Which pages are valid, how many of each block, what the block is doing and which stream filled it: one record a block.
//!
//! Every overwrite needs the first three of the block where the old page lies, a place that no cache foresees on a large device.
//! So they lie side by side: a header word (valid pages in its lowest 16 bits, the stream in the next, the state above), then one bit a page. A record
//! of a block of 64 pages has 16 bytes, within one cache line; as three tables the same took three lines and three
//! entries of the TLB. Memory: 8 bytes a block and 1 bit a page (at least 8 bytes of them a block).

use super::BlockState;
use crate::address::{BlockId, PageSet, Ppn, StreamId};
use crate::bits::for_each_bit;
use crate::memory;

const STREAM_SHIFT: u32 = 16;
const STATE_SHIFT: u32 = 32;
const COUNT_MASK: u64 = (1 << STREAM_SHIFT) - 1;
const STREAM_MASK: u64 = ((1 << STATE_SHIFT) - 1) & !COUNT_MASK;

/// Validity of every page, counted by block, and the state of every block.
#[derive(Clone, Debug)]
pub(crate) struct Validity {
    words: Vec<u64>,
    /// Words of a block: its header and its bits.
    stride: usize,
    log2_pages_per_block: u8,
}

/// A word with its `width` lowest bits set, 1 to 64.
#[inline(always)]
fn low_bits(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The header of the page's block, the word of the page, and its bit there.
#[inline(always)]
fn locate(at: Ppn, stride: usize, log2_pages_per_block: u8) -> (usize, usize, u32) {
    let header = (at.0 >> log2_pages_per_block) as usize * stride;
    let index = at.0 & ((1 << log2_pages_per_block) - 1);
    (header, header + 1 + index as usize / 64, index % 64)
}

impl Validity {
    /// Free blocks without valid pages.
    pub(crate) fn new(blocks: u32, log2_pages_per_block: u8) -> Self {
        const { assert!(BlockState::Free as u8 == 0, "a zero header is that of a free block") };
        let stride = 1 + (1usize << log2_pages_per_block).div_ceil(64);
        Self { words: memory::zeroed_table(blocks as usize * stride), stride, log2_pages_per_block }
    }

    #[inline(always)]
    fn header(&self, block: BlockId) -> usize {
        block.0 as usize * self.stride
    }

    #[inline(always)]
    fn locate(&self, at: Ppn) -> (usize, usize, u32) {
        locate(at, self.stride, self.log2_pages_per_block)
    }

    pub(crate) fn blocks(&self) -> u32 {
        (self.words.len() / self.stride) as u32
    }

    pub(crate) fn pages_per_block(&self) -> u32 {
        1 << self.log2_pages_per_block
    }

    /// Valid pages of the block.
    #[inline(always)]
    pub(crate) fn count(&self, block: BlockId) -> u32 {
        (self.words[self.header(block)] & COUNT_MASK) as u32
    }

    /// What the block is doing.
    #[inline(always)]
    pub(crate) fn state(&self, block: BlockId) -> BlockState {
        BlockState::ALL[(self.words[self.header(block)] >> STATE_SHIFT) as usize]
    }

    /// Says what the block is doing from now on.
    #[inline(always)]
    pub(crate) fn set_state(&mut self, block: BlockId, state: BlockState) {
        let header = self.header(block);
        let word = &mut self.words[header];
        *word = *word & (COUNT_MASK | STREAM_MASK) | (state as u64) << STATE_SHIFT;
    }

    /// The stream that filled the block last.
    #[inline(always)]
    pub(crate) fn stream(&self, block: BlockId) -> StreamId {
        StreamId((self.words[self.header(block)] >> STREAM_SHIFT) as u16)
    }

    /// Says which stream fills the block.
    #[inline(always)]
    pub(crate) fn set_stream(&mut self, block: BlockId, stream: StreamId) {
        let header = self.header(block);
        let word = &mut self.words[header];
        *word = *word & !STREAM_MASK | u64::from(stream.0) << STREAM_SHIFT;
    }

    #[inline(always)]
    pub(crate) fn is_valid(&self, at: Ppn) -> bool {
        let (_, word, bit) = self.locate(at);
        self.words[word] >> bit & 1 == 1
    }

    /// The page, which is not valid, becomes so.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: Ppn) {
        debug_assert!(!self.is_valid(at), "{at:?} becomes valid twice");
        let (header, word, bit) = self.locate(at);
        self.words[word] |= 1 << bit;
        self.words[header] += 1;
    }

    /// The page, which is valid, ceases to be so; returns what its block is doing, which has just been at hand.
    #[inline(always)]
    pub(crate) fn clear(&mut self, at: Ppn) -> BlockState {
        debug_assert!(self.is_valid(at), "{at:?} is invalidated twice");
        let (header, word, bit) = self.locate(at);
        self.words[word] &= !(1 << bit);
        let left = self.words[header] - 1;
        self.words[header] = left;
        BlockState::ALL[(left >> STATE_SHIFT) as usize]
    }

    /// Does what [`Validity::clear`] does with one page after the other, up to the first that leaves at most `most` valid pages in a
    /// block that is closed; returns how many those were, and whether the last of them left so few.
    #[inline(always)]
    pub(crate) fn clear_until(&mut self, pages: &[Ppn], most: u32) -> (usize, bool) {
        const CLOSED: u64 = (BlockState::Closed as u64) << STATE_SHIFT;
        // Of the other states, those below wrap around and those above lie beyond any count.
        let are_few = |left: u64| (left & !STREAM_MASK).wrapping_sub(CLOSED) <= u64::from(most);
        // In registers: what is written to the table might be any of them, for all that the compiler knows.
        let (stride, log2) = (self.stride, self.log2_pages_per_block);
        let words = &mut self.words[..];
        if stride == 2 {
            // A record is small enough to be looked up as one.
            let (records, _) = words.as_chunks_mut::<2>();
            for (index, at) in pages.iter().enumerate() {
                let [left, bits] = &mut records[(at.0 >> log2) as usize];
                let bit = at.0 & ((1 << log2) - 1);
                debug_assert!(*bits >> bit & 1 == 1, "{at:?} is invalidated twice");
                *bits &= !(1 << bit);
                *left -= 1;
                if are_few(*left) {
                    return (index + 1, true);
                }
            }
            return (pages.len(), false);
        }
        for (index, at) in pages.iter().enumerate() {
            let (header, word, bit) = locate(*at, stride, log2);
            debug_assert!(words[word] >> bit & 1 == 1, "{at:?} is invalidated twice");
            words[word] &= !(1 << bit);
            words[header] -= 1;
            if are_few(words[header]) {
                return (index + 1, true);
            }
        }
        (pages.len(), false)
    }

    /// The `count` pages of one block from `first` on, none of which is valid, become so.
    #[inline(always)]
    pub(crate) fn set_run(&mut self, first: Ppn, count: u32) {
        let (header, mut word, mut bit) = self.locate(first);
        self.words[header] += u64::from(count);
        let mut left = count;
        while left > 0 {
            let width = (64 - bit).min(left);
            self.words[word] |= low_bits(width) << bit;
            left -= width;
            word += 1;
            bit = 0;
        }
    }

    /// No page of the block is valid any more; returns how many were.
    pub(crate) fn clear_block(&mut self, block: BlockId) -> u32 {
        let (header, dropped) = (self.header(block), self.count(block));
        self.words[header] &= !COUNT_MASK;
        self.words[header + 1..header + self.stride].fill(0);
        dropped
    }

    /// Calls `visit` with the valid pages of `block`, in order.
    #[inline(always)]
    pub(crate) fn for_each_valid(&self, block: BlockId, mut visit: impl FnMut(Ppn)) {
        for (first, word) in (block.0 << self.log2_pages_per_block..).step_by(64).zip(self.bits(block)) {
            for_each_bit(*word, |bit| visit(Ppn(first + bit)));
        }
    }

    /// The valid pages of `block`, one bit each.
    #[inline(always)]
    pub(crate) fn bits(&self, block: BlockId) -> &[u64] {
        let header = self.header(block);
        &self.words[header + 1..header + self.stride]
    }

    /// The valid pages of `block`, in order.
    pub(crate) fn valid_pages(&self, block: BlockId) -> impl Iterator<Item = Ppn> + '_ {
        let first = block.0 << self.log2_pages_per_block;
        self.bits(block).iter().zip((first..).step_by(64)).flat_map(|(word, first)| PageSet::new(Ppn(first), *word))
    }

    /// Brings the record of a page towards the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: Ppn) {
        memory::prefetch(&self.words, (at.0 >> self.log2_pages_per_block) as usize * self.stride);
        // On blocks of 64 pages header and bits are on the same line.
        if self.stride > 2 {
            memory::prefetch(&self.words, self.locate(at).1);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Against a plain list of flags, on blocks smaller than a word, of a word, and of several.
    #[test]
    fn random_changes_agree_with_a_list_of_flags() {
        for log2 in [2, 5, 6, 8] {
            let pages = 1u32 << log2;
            let mut validity = Validity::new(3, log2);
            let (mut flags, mut streams) = (vec![false; 3 * pages as usize], [StreamId(0); 3]);
            let mut random = Random::new(u64::from(pages));
            for _ in 0..2000 {
                let at = random.below(u64::from(3 * pages)) as u32;
                let block = BlockId(at / pages);
                match random.below(8) {
                    0 => {
                        let own = &mut flags[(block.0 * pages) as usize..][..pages as usize];
                        assert_eq!(validity.clear_block(block), own.iter().filter(|f| **f).count() as u32);
                        own.fill(false);
                    }
                    1 => {
                        let own = &mut flags[at as usize..((block.0 + 1) * pages) as usize];
                        let free = own.iter().take_while(|f| !**f).count();
                        validity.set_run(Ppn(at), free as u32);
                        own[..free].fill(true);
                    }
                    2 => {
                        let stream = StreamId(random.below(1 << 16) as u16);
                        validity.set_stream(block, stream);
                        validity.set_state(block, BlockState::ALL[at as usize % BlockState::ALL.len()]);
                        streams[block.0 as usize] = stream;
                    }
                    3 => {
                        let most = random.below(u64::from(pages)) as u32;
                        let dying: Vec<Ppn> =
                            (at..3 * pages).filter(|at| flags[*at as usize]).take(3).map(Ppn).collect();
                        let (cleared, few) = validity.clear_until(&dying, most);
                        for (index, page) in dying[..cleared].iter().enumerate() {
                            let block = BlockId(page.0 / pages);
                            flags[page.0 as usize] = false;
                            let own = &flags[(block.0 * pages) as usize..][..pages as usize];
                            let is_few = validity.state(block) == BlockState::Closed
                                && own.iter().filter(|f| **f).count() <= most as usize;
                            assert_eq!(is_few, few && index + 1 == cleared);
                        }
                        assert!(few || cleared == dying.len());
                    }
                    _ if flags[at as usize] => {
                        validity.clear(Ppn(at));
                        flags[at as usize] = false;
                    }
                    _ => {
                        validity.set(Ppn(at));
                        flags[at as usize] = true;
                    }
                }
                let state = validity.state(block);
                for block in (0..3).map(BlockId) {
                    let mut valid = Vec::new();
                    validity.for_each_valid(block, |page| valid.push(page.0));
                    let first = block.0 * pages;
                    let expected: Vec<u32> = (first..first + pages).filter(|p| flags[*p as usize]).collect();
                    assert_eq!(valid, expected);
                    assert_eq!(validity.count(block), expected.len() as u32);
                    assert_eq!(validity.stream(block), streams[block.0 as usize]);
                }
                assert_eq!(validity.state(block), state);
            }
        }
    }

    #[test]
    fn a_state_stays_until_it_is_set_anew() {
        let mut validity = Validity::new(2, 6);
        validity.set_state(BlockId(1), BlockState::Closed);
        validity.set_run(Ppn(64), 64);
        assert_eq!((validity.state(BlockId(1)), validity.count(BlockId(1))), (BlockState::Closed, 64));
        validity.clear_block(BlockId(1));
        assert_eq!((validity.state(BlockId(0)), validity.state(BlockId(1))), (BlockState::Free, BlockState::Closed));
    }
}
