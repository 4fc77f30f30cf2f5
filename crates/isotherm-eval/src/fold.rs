//! Address folding: how a trace's addresses are brought onto a device of another size.
//!
//! `refuse` passes addresses through (the device refuses what lies past its end), `wrap` takes them modulo the capacity, and
//! `compact` renumbers the pages that the trace reads or writes densely, in the order of their addresses. A read or write stays
//! whole, since its pages are all touched and so stay neighbours. A trim touches nothing: it keeps the touched pages within it,
//! which are neighbours too, and vanishes where there are none (the discard of a whole device must not make the device larger).
//! Compacting needs one pass over the trace before the run and one bit for each page within touched 128 MiB chunks (4 KiB
//! pages); a look-up costs one bit count.

use isotherm::registry::SpecError;
use isotherm::request::{Op, Request};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is done with addresses past the device's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressMode {
    /// They are an error.
    #[default]
    Refuse,
    /// They are taken modulo the capacity.
    Wrap,
    /// The pages read or written are renumbered densely.
    Compact,
}

impl AddressMode {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Wrap => "wrap",
            Self::Compact => "compact",
        }
    }
}

/// Pages of one chunk of the touched set.
const CHUNK_PAGES: u64 = 1 << 15;
const CHUNK_WORDS: usize = (CHUNK_PAGES / 64) as usize;

/// One chunk: a bit for each touched page, with the touched pages counted up to each word once the set is complete.
struct Chunk {
    words: [u64; CHUNK_WORDS],
    before_word: [u16; CHUNK_WORDS],
    before_chunk: u64,
}

/// The set of pages that a trace reads or writes, and their dense numbers.
pub struct TouchedPages {
    chunks: Vec<Option<Box<Chunk>>>,
    page_bytes: u64,
    count: u64,
}

/// Spans beyond this are taken for a misread trace: 2^23 chunks, 1 PiB of 4 KiB pages.
const CHUNKS_MAX: u64 = 1 << 23;

impl TouchedPages {
    /// An empty set of pages of `page_bytes` (a power of two).
    pub fn new(page_bytes: u64) -> Self {
        Self { chunks: Vec::new(), page_bytes, count: 0 }
    }

    /// Adds the pages of a batch.
    ///
    /// # Errors
    /// An address so high that the trace cannot have been read in the right unit.
    pub fn insert(&mut self, batch: &[Request]) -> Result<(), SpecError> {
        for request in batch.iter().filter(|r| r.length > 0 && !r.op.discards()) {
            let first = request.offset / self.page_bytes;
            let last = (request.offset + (request.length - 1)) / self.page_bytes;
            if last / CHUNK_PAGES >= CHUNKS_MAX {
                let problem = format!("the trace reaches byte {}", request.offset + request.length);
                return Err(SpecError::new("addresses", problem, "check the unit of the trace's addresses"));
            }
            for page in first..=last {
                let at = (page / CHUNK_PAGES) as usize;
                if at >= self.chunks.len() {
                    self.chunks.resize_with(at + 1, || None);
                }
                let empty = || Chunk { words: [0; CHUNK_WORDS], before_word: [0; CHUNK_WORDS], before_chunk: 0 };
                let chunk = self.chunks[at].get_or_insert_with(|| Box::new(empty()));
                chunk.words[(page % CHUNK_PAGES / 64) as usize] |= 1 << (page % 64);
            }
        }
        Ok(())
    }

    /// Counts the set, so that pages can be looked up. To be called once after the last insertion.
    pub fn number(&mut self) {
        self.count = 0;
        for chunk in self.chunks.iter_mut().flatten() {
            chunk.before_chunk = self.count;
            let mut within = 0u32;
            for (word, before) in chunk.words.iter().zip(&mut chunk.before_word) {
                *before = within as u16;
                within += word.count_ones();
            }
            self.count += u64::from(within);
        }
    }

    /// Touched pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The touched pages in order.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = self.chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at as u64, chunk.as_ref()?)));
        chunks.flat_map(|(at, chunk)| {
            chunk.words.iter().enumerate().flat_map(move |(word, &bits)| {
                let base = at * CHUNK_PAGES + word as u64 * 64;
                (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| base + bit)
            })
        })
    }

    /// The dense number of a page in the set.
    ///
    /// # Panics
    /// If the page is so far from the set that it cannot be told from it (a bug).
    pub fn rank(&self, page: u64) -> u64 {
        let chunk = self.chunks[(page / CHUNK_PAGES) as usize].as_ref().expect("every page of the trace is in the set");
        chunk.rank(page)
    }

    /// How many pages of the set lie below `page`, and whether it is in the set itself.
    fn below(&self, page: u64) -> (u64, bool) {
        match self.chunks.get((page / CHUNK_PAGES) as usize) {
            Some(Some(chunk)) => {
                let word = chunk.words[(page % CHUNK_PAGES / 64) as usize];
                (chunk.rank(page), word >> (page % 64) & 1 == 1)
            }
            Some(None) => {
                let later = self.chunks[(page / CHUNK_PAGES) as usize..].iter().flatten().next();
                (later.map_or(self.count, |chunk| chunk.before_chunk), false)
            }
            None => (self.count, false),
        }
    }

    /// The dense place of a byte where a trim begins or ends: that of the next touched byte.
    fn place(&self, byte: u64) -> u64 {
        let (below, is_touched) = self.below(byte / self.page_bytes);
        below * self.page_bytes + if is_touched { byte % self.page_bytes } else { 0 }
    }
}

impl Chunk {
    fn rank(&self, page: u64) -> u64 {
        let word = (page % CHUNK_PAGES / 64) as usize;
        let below = self.words[word] & ((1 << (page % 64)) - 1);
        self.before_chunk + u64::from(self.before_word[word]) + u64::from(below.count_ones())
    }
}

/// The folding in force for one run.
pub enum Folding {
    /// Addresses pass through.
    Refuse,
    /// Modulo a number of bytes.
    Wrap(u64),
    /// Dense numbers of the touched pages.
    Compact(Arc<TouchedPages>),
}

impl Folding {
    /// The logical pages, of `logical`, that a trace touches once it is folded, in order.
    pub fn pages<'a>(&self, touched: &'a TouchedPages, logical: u64) -> Box<dyn Iterator<Item = u64> + 'a> {
        let all = touched.pages();
        match self {
            Self::Refuse => Box::new(all),
            Self::Wrap(_) => Box::new(all.map(|page| page % logical).collect::<BTreeSet<_>>().into_iter()),
            Self::Compact(_) => Box::new(0..touched.count()),
        }
    }

    /// Folds the addresses of a batch in place. Wrapping may split a request that crosses the end.
    pub fn fold(&self, batch: &mut Vec<Request>) {
        match self {
            Self::Refuse => {}
            Self::Wrap(capacity) => {
                if batch.iter().any(|r| r.offset + r.length > *capacity) {
                    *batch = wrapped(batch, *capacity);
                }
            }
            Self::Compact(pages) => {
                let mut vanished = false;
                for request in batch.iter_mut().filter(|r| r.op != Op::Flush && r.length > 0) {
                    if request.op.discards() {
                        let end = pages.place(request.offset + request.length);
                        request.offset = pages.place(request.offset);
                        request.length = end - request.offset;
                        vanished |= request.length == 0;
                    } else {
                        let page = pages.rank(request.offset / pages.page_bytes);
                        request.offset = page * pages.page_bytes + request.offset % pages.page_bytes;
                    }
                }
                if vanished {
                    batch.retain(|request| !request.op.discards() || request.length > 0);
                }
            }
        }
    }
}

/// The batch with every range taken modulo `capacity`, cut where it crosses the end.
fn wrapped(batch: &[Request], capacity: u64) -> Vec<Request> {
    let mut out = Vec::with_capacity(batch.len() + 16);
    for &request in batch {
        let mut rest = Request { offset: request.offset % capacity, ..request };
        while rest.offset + rest.length > capacity {
            let part = capacity - rest.offset;
            out.push(Request { length: part, ..rest });
            rest = Request { offset: 0, length: rest.length - part, ..rest };
        }
        if rest.length > 0 || request.length == 0 {
            out.push(rest);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, length: u64) -> Request {
        Request { arrival_ns: 0, offset, length, op: Op::Write, source: 0, durable: false }
    }

    #[test]
    fn wrapping_cuts_requests_at_the_end() {
        let mut batch = vec![write(0, 4096), write(12 << 10, 8 << 10), write(40 << 10, 4096), write(0, 33 << 10)];
        Folding::Wrap(16 << 10).fold(&mut batch);
        let k = |offset: u64, length: u64| write(offset << 10, length << 10);
        let expected = [k(0, 4), k(12, 4), k(0, 4), k(8, 4), k(0, 16), k(0, 16), k(0, 1)];
        assert_eq!(batch, expected);
    }

    #[test]
    fn compacting_numbers_pages_densely_and_keeps_offsets_within_them() {
        let mut touched = TouchedPages::new(4096);
        let far = 5 << 40;
        let mut batch = vec![write(far + 512, 8192), write(4096, 4096), write((128 << 20) - 4096, 8192)];
        touched.insert(&batch).unwrap();
        touched.number();
        assert_eq!(touched.count(), 6);
        Folding::Compact(Arc::new(touched)).fold(&mut batch);
        assert_eq!(batch, [write(3 * 4096 + 512, 8192), write(0, 4096), write(4096, 8192)]);
    }

    #[test]
    fn a_trim_keeps_the_touched_pages_within_it_and_touches_none() {
        let trim = |offset, length| Request { op: Op::Trim, ..write(offset, length) };
        let mut touched = TouchedPages::new(4096);
        let far = 128 << 20;
        let whole = trim(0, 1 << 40);
        touched.insert(&[whole, write(2 * 4096, 4096), write(5 * 4096, 8192), write(far, 4096)]).unwrap();
        touched.number();
        assert_eq!(touched.pages().collect::<Vec<_>>(), [2, 5, 6, far / 4096]);
        let pages = Arc::new(touched);
        let folded = |request| {
            let mut batch = vec![request];
            Folding::Compact(pages.clone()).fold(&mut batch);
            batch.first().map(|r| (r.offset, r.length))
        };
        assert_eq!(folded(whole), Some((0, 4 * 4096)));
        assert_eq!(folded(trim(0, 2 * 4096)), None);
        assert_eq!(folded(trim(3 * 4096, 2 * 4096)), None);
        assert_eq!(folded(trim(1 << 41, 4096)), None);
        assert_eq!(folded(trim(0, 6 * 4096)), Some((0, 2 * 4096)));
        assert_eq!(folded(trim(6 * 4096, far)), Some((2 * 4096, 2 * 4096)));
        assert_eq!(folded(trim(5 * 4096 + 512, 512)), Some((4096 + 512, 512)));
    }

    #[test]
    fn absurd_addresses_are_refused_before_memory_is_spent_on_them() {
        assert!(TouchedPages::new(4096).insert(&[write(1 << 60, 4096)]).is_err());
    }
}
