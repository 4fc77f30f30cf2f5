//! One pass over a trace that learns how long what is written lives: by address, by the size of the request, by who writes.

use crate::lifetimes::Lifetimes;
use isotherm::request::{Op, Request};
use isotherm_eval::{EvalError, Folding, Survey, TraceSource};

/// Most pieces that the addresses are cut into before like ones are joined.
const CHUNKS_MAX: u64 = 16_384;
/// Fewest pages of a piece: less than an erase block of any drive, more than a few pages whose lives are luck.
const CHUNK_PAGES_MIN: u64 = 16;
/// Powers of two, as exponents, that requests are sorted by: up to 512 bytes, up to 1 KiB, ..., above 8 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 9..=24;
/// Page writes that are watched at most, so that ages fit into 32 bits: no request has as many pages as are left above.
const WRITES_MAX: u64 = u32::MAX as u64 - (1 << 24);
/// A version that was there before the trace began: nobody knows what wrote it.
const UNKNOWN: u8 = u8::MAX;

/// What one pass learnt.
#[derive(Debug)]
pub struct Watched {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of each piece but the last, of those that the trace touches, in the order of their addresses.
    pub chunk_pages: u64,
    /// First byte of each piece, ascending.
    pub starts: Vec<u64>,
    /// Lifetimes by piece.
    pub by_address: Vec<Lifetimes>,
    /// Page writes by piece.
    pub writes_by_address: Vec<u64>,
    /// Lifetimes by the size of the request: up to `2^(9 + index)` bytes.
    pub by_size: Vec<Lifetimes>,
    /// Page writes by the same.
    pub writes_by_size: Vec<u64>,
    /// Lifetimes by source.
    pub by_source: Vec<Lifetimes>,
    /// Page writes by source.
    pub writes_by_source: Vec<u64>,
    /// Page writes in all.
    pub page_writes: u64,
    /// Requests that made them.
    pub requests: u64,
}

/// Index of a request's size.
fn size_of(length: u64) -> u8 {
    let exponent = length.next_power_of_two().ilog2();
    (exponent.clamp(*SIZES.start(), *SIZES.end()) - SIZES.start()) as u8
}

/// Bytes of the longest request with this index of size; none for the last.
pub fn size_up_to(index: usize) -> Option<u64> {
    let exponent = SIZES.start() + index as u32;
    (exponent < *SIZES.end()).then(|| 1 << exponent)
}

/// A live version of a page.
#[derive(Clone, Copy)]
struct Version {
    /// Host page writes when it was written.
    since: u32,
    source: u16,
    size: u8,
    is_live: bool,
}

struct Watcher {
    watched: Watched,
    versions: Vec<Version>,
}

impl Watcher {
    /// The version of a page ends: by death, or because the watching does.
    fn end(&mut self, page: u64, is_death: bool) {
        let version = self.versions[page as usize];
        if !version.is_live {
            return;
        }
        let age = self.watched.page_writes as u32 - version.since;
        // How old a version was when the trace began is not known: that it came to this age is all that it tells.
        let is_death = is_death && version.size != UNKNOWN;
        let note = |lifetimes: &mut Lifetimes| if is_death { lifetimes.died(age) } else { lifetimes.lives(age) };
        note(&mut self.watched.by_address[(page / self.watched.chunk_pages) as usize]);
        if version.size != UNKNOWN {
            note(&mut self.watched.by_size[usize::from(version.size)]);
            note(&mut self.watched.by_source[usize::from(version.source)]);
        }
        self.versions[page as usize].is_live = false;
    }

    fn write(&mut self, pages: std::ops::Range<u64>, source: u16, size: u8) {
        let watched = &mut self.watched;
        if watched.by_source.len() <= usize::from(source) {
            watched.by_source.resize_with(usize::from(source) + 1, Lifetimes::default);
            watched.writes_by_source.resize(usize::from(source) + 1, 0);
        }
        let count = pages.end - pages.start;
        watched.requests += 1;
        watched.writes_by_size[usize::from(size)] += count;
        watched.writes_by_source[usize::from(source)] += count;
        for page in pages {
            self.end(page, true);
            self.watched.writes_by_address[(page / self.watched.chunk_pages) as usize] += 1;
            self.versions[page as usize] =
                Version { since: self.watched.page_writes as u32, source, size, is_live: true };
            self.watched.page_writes += 1;
        }
    }
}

/// Watches a trace, or a part of one, whose touched pages `survey` found. Every touched page holds data when it begins.
///
/// # Errors
/// The trace cannot be read.
///
/// # Panics
/// If the survey does not know the touched pages (a bug).
pub fn watch(trace: &TraceSource, survey: &Survey, page_bytes: u64) -> Result<Watched, EvalError> {
    let touched = survey.touched.clone().expect("the survey was asked for the touched pages");
    let pages = touched.count();
    let chunk_pages = pages.div_ceil(CHUNKS_MAX).max(CHUNK_PAGES_MIN);
    let chunks = pages.div_ceil(chunk_pages) as usize;
    let starts: Vec<u64> = touched.pages().step_by(chunk_pages as usize).map(|page| page * page_bytes).collect();
    let sizes = SIZES.count();
    let mut watcher = Watcher {
        watched: Watched {
            page_bytes,
            chunk_pages,
            starts,
            by_address: vec![Lifetimes::default(); chunks],
            writes_by_address: vec![0; chunks],
            by_size: vec![Lifetimes::default(); sizes],
            writes_by_size: vec![0; sizes],
            by_source: Vec::new(),
            writes_by_source: Vec::new(),
            page_writes: 0,
            requests: 0,
        },
        versions: vec![Version { since: 0, source: 0, size: UNKNOWN, is_live: true }; pages as usize],
    };
    let folding = Folding::Compact(touched);
    trace.for_each(|batch| {
        folding.fold(batch);
        for request in batch.iter().filter(|request| request.length > 0) {
            let end = request.offset + request.length;
            let all = request.offset / page_bytes..end.div_ceil(page_bytes);
            let whole = request.offset.div_ceil(page_bytes)..end / page_bytes;
            match request.op {
                _ if watcher.watched.page_writes >= WRITES_MAX => break,
                Op::Write => watcher.write(all, request.source, size_of(request.length)),
                Op::Trim => whole.for_each(|page| watcher.end(page, true)),
                Op::WriteZeroes => write_zeroes(&mut watcher, request, all, whole),
                Op::Read | Op::Flush => {}
            }
        }
        Ok(())
    })?;
    (0..pages).for_each(|page| watcher.end(page, false));
    Ok(watcher.watched)
}

/// Parts of pages are written, whole ones discarded.
fn write_zeroes(watcher: &mut Watcher, request: &Request, all: std::ops::Range<u64>, whole: std::ops::Range<u64>) {
    for page in all {
        match whole.contains(&page) {
            true => watcher.end(page, true),
            false => watcher.write(page..page + 1, request.source, size_of(request.length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_eval::SurveyKey;

    #[test]
    fn lives_are_told_apart_by_address_and_by_size() {
        // 64 pages written around in order, all others at random.
        let mut rows = String::from("ts_ns,op,offset,length\n");
        let mut random = isotherm::random::Random::new(1);
        for at in 0..40_000u64 {
            let log = at / 2 % 64;
            let (page, length) = if at % 2 == 0 { (log, 4096) } else { (64 + random.below(1984), 512) };
            rows.push_str(&format!("{at},W,{},{length}\n", page * 4096));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rows).unwrap();
        let trace = TraceSource::new(file.path().to_str().unwrap());
        let survey = SurveyKey { trace: trace.clone(), page_bytes: 4096, touched: true }.survey().unwrap();
        let watched = watch(&trace, &survey, 4096).unwrap();
        assert_eq!((watched.page_writes, watched.chunk_pages, watched.starts.len()), (40_000, 16, 128));
        assert_eq!(watched.writes_by_address[..4], [5008, 5008, 4992, 4992]);
        assert_eq!(watched.writes_by_size[0], 20_000);
        let mean = |lifetimes: &Lifetimes| lifetimes.mean().unwrap();
        // The log's pages are written again after 128 writes of the host, the others after 2 x 1984 on average.
        assert!((mean(&watched.by_address[0]) / 128.0 - 1.0).abs() < 0.01, "{}", mean(&watched.by_address[0]));
        assert!((mean(&watched.by_size[3]) / 128.0 - 1.0).abs() < 0.01);
        let cold = mean(&watched.by_size[0]);
        assert!((cold / 3968.0 - 1.0).abs() < 0.05, "{cold}");
        assert!(watched.by_address[0].cost_of_joining(&watched.by_address[1]) < 1.0);
        assert!(watched.by_address[3].cost_of_joining(&watched.by_address[4]) > 200.0);
    }
}
