//! Which pages have been touched: a bitmap in chunks, so that a sparse trace takes memory for what it touches only.

use std::collections::HashMap;

/// Pages of one chunk (128 MiB of 4 KiB pages in 4 KiB of memory).
const CHUNK_PAGES: u64 = 1 << 15;
const CHUNK_WORDS: usize = (CHUNK_PAGES / 64) as usize;

/// Memory that the chunks of one bitmap may take.
pub(crate) const MEMORY_BYTES_MAX: usize = 2 << 30;

type Chunk = Box<[u64; CHUNK_WORDS]>;

/// A set of page numbers that can only grow.
#[derive(Default)]
pub(crate) struct Footprint {
    /// Looked up, never iterated: its order cannot reach a result.
    chunks: HashMap<u64, Chunk>,
    pages: u64,
}

impl Footprint {
    /// Number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes of memory that the set takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_WORDS * 8
    }

    /// Adds the pages `first..end`.
    pub(crate) fn add(&mut self, first: u64, end: u64) {
        let mut page = first;
        while page < end {
            let stop = end.min((page / CHUNK_PAGES + 1) * CHUNK_PAGES);
            let chunk = self.chunks.entry(page / CHUNK_PAGES).or_insert_with(|| Box::new([0; CHUNK_WORDS]));
            while page < stop {
                let word = &mut chunk[(page % CHUNK_PAGES / 64) as usize];
                let bit = page % 64;
                let count = (64 - bit).min(stop - page);
                let mask = (u64::MAX >> (64 - count)) << bit;
                self.pages += u64::from((mask & !*word).count_ones());
                *word |= mask;
                page += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn counts_what_a_set_counts(ranges in prop::collection::vec((31_000u64..35_000, 0u64..3000), 0..20)) {
            let (mut footprint, mut set) = (Footprint::default(), BTreeSet::new());
            for (first, length) in ranges {
                footprint.add(first, first + length);
                set.extend(first..first + length);
                prop_assert_eq!(footprint.pages(), set.len() as u64);
            }
        }
    }
}
