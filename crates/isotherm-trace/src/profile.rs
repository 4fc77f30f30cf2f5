//! What a trace is, in one streaming pass: the line that tells a mistaken unit before a run is wasted on it.

use crate::TraceReader;
use crate::error::TraceError;
use crate::footprint::{Footprint, MEMORY_BYTES_MAX};
use crate::leading::LeadingTrims;
use crate::open::open;
use crate::options::OpenOptions;
use isotherm::request::{Op, Request};
use std::fmt;

/// Requests, bytes and sizes of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OpProfile {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Shortest; 0 if there are none.
    pub length_bytes_min: u64,
    /// Longest.
    pub length_bytes_max: u64,
    /// How many requests have lengths up to each power of two (and above the one before), the smallest first.
    pub lengths: Vec<LengthBin>,
}

/// One bar of a histogram of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LengthBin {
    /// Largest length that counts here; the smallest is half of it plus 1.
    pub length_bytes_max: u64,
    /// Number of requests.
    pub requests: u64,
}

/// A trace in figures. Bytes are bytes, pages are of `page_bytes`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Profile {
    /// File or specification.
    pub source: String,
    /// Format that was found.
    pub format: String,
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub reads: OpProfile,
    /// Writes.
    pub writes: OpProfile,
    /// Discards.
    pub trims: OpProfile,
    /// Flushes.
    pub flushes: u64,
    /// Highest address that a request reaches.
    pub span_bytes: u64,
    /// Size of the pages that the rest is counted in.
    pub page_bytes: u64,
    /// Pages read or written at least once.
    pub footprint_pages: u64,
    /// Pages written at least once.
    pub written_pages: u64,
    /// Written bytes over the bytes of the pages written: how often the trace overwrites what it writes.
    pub overwrite_factor: f64,
    /// Share of the reads and writes whose begin or end is not on a page boundary.
    pub unaligned_share: f64,
    /// Time of the first request in the trace's own clock (0 except in the canonical forms).
    pub first_ns: u64,
    /// Time of the last request.
    pub last_ns: u64,
    /// Between the two.
    pub duration_ns: u64,
    /// Rows that could not be read and were skipped.
    pub skipped_rows: u64,
    /// Requests that were put in order of time.
    pub reordered_requests: u64,
    /// Trims at the head that were dropped; they count nowhere else.
    pub leading_trims: LeadingTrims,
}

impl OpProfile {
    fn add(&mut self, length: u64) {
        self.length_bytes_min = if self.requests == 0 { length } else { self.length_bytes_min.min(length) };
        self.length_bytes_max = self.length_bytes_max.max(length);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(length);
        let bin = length.next_power_of_two();
        match self.lengths.binary_search_by_key(&bin, |b| b.length_bytes_max) {
            Ok(index) => self.lengths[index].requests += 1,
            Err(index) => self.lengths.insert(index, LengthBin { length_bytes_max: bin, requests: 1 }),
        }
    }

    /// Mean length; 0 if there are none.
    pub fn length_bytes_mean(&self) -> u64 {
        self.bytes.checked_div(self.requests).unwrap_or(0)
    }
}

/// Profiles a trace file or a synthetic workload in 4 KiB pages.
///
/// # Errors
/// As [`open`] and [`TraceReader::fill`].
pub fn profile(source: &str, options: &OpenOptions) -> Result<Profile, TraceError> {
    profile_pages(source, options, 4096)
}

/// As [`profile`], in pages of `page_bytes`.
///
/// # Errors
/// As [`profile`], and a footprint too sparse to be counted in memory.
///
/// # Panics
/// If `page_bytes` is not a power of two.
pub fn profile_pages(source: &str, options: &OpenOptions, page_bytes: u64) -> Result<Profile, TraceError> {
    profile_reader(source, &mut *open(source, options)?, page_bytes)
}

/// As [`profile_pages`], of what a reader gives from here to its end; `source` is its name.
///
/// # Errors
/// As [`profile_pages`].
///
/// # Panics
/// If `page_bytes` is not a power of two.
pub fn profile_reader(source: &str, reader: &mut dyn TraceReader, page_bytes: u64) -> Result<Profile, TraceError> {
    assert!(page_bytes.is_power_of_two(), "pages are powers of two");
    let mut pass = Pass::new(page_bytes);
    let mut batch = Vec::with_capacity(4096);
    while reader.fill(&mut batch, 4096)? > 0 {
        batch.iter().for_each(|request| pass.add(request));
        batch.clear();
        if pass.touched.memory_bytes() + pass.written.memory_bytes() > MEMORY_BYTES_MAX {
            return Err(TraceError::input(
                source,
                format!("its addresses are too sparse: counting them takes over {MEMORY_BYTES_MAX} bytes"),
                "check the unit of its addresses",
            ));
        }
    }
    Ok(pass.finish(source, reader))
}

/// The counts of a pass under way.
struct Pass {
    page_shift: u32,
    ops: [OpProfile; 3],
    flushes: u64,
    span_bytes: u64,
    unaligned: u64,
    times_ns: Option<(u64, u64)>,
    touched: Footprint,
    written: Footprint,
}

impl Pass {
    fn new(page_bytes: u64) -> Self {
        Self {
            page_shift: page_bytes.trailing_zeros(),
            ops: Default::default(),
            flushes: 0,
            span_bytes: 0,
            unaligned: 0,
            times_ns: None,
            touched: Footprint::default(),
            written: Footprint::default(),
        }
    }

    fn add(&mut self, request: &Request) {
        let Request { arrival_ns, offset, length, op, source: _, durable: _ } = *request;
        self.times_ns = Some((self.times_ns.map_or(arrival_ns, |times| times.0), arrival_ns));
        if op == Op::Flush {
            self.flushes += 1;
            return;
        }
        let end = offset + length;
        let kind = match op {
            Op::Read => 0,
            Op::Write => 1,
            // Whole pages that are made zero are discarded.
            Op::Trim | Op::WriteZeroes | Op::Flush => 2,
        };
        self.ops[kind].add(length);
        self.span_bytes = self.span_bytes.max(end);
        if op.discards() {
            return;
        }
        let page_bytes = 1u64 << self.page_shift;
        self.unaligned += u64::from((offset | end) & (page_bytes - 1) != 0);
        let (first, last) = (offset >> self.page_shift, end.div_ceil(page_bytes));
        self.touched.add(first, last);
        if op == Op::Write {
            self.written.add(first, last);
        }
    }

    fn finish(self, source: &str, reader: &dyn TraceReader) -> Profile {
        let [reads, writes, trims] = self.ops;
        let page_bytes = 1u64 << self.page_shift;
        let (first_ns, last_ns) = self.times_ns.unwrap_or_default();
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        Profile {
            source: source.to_owned(),
            format: reader.format().to_owned(),
            requests: reads.requests + writes.requests + trims.requests + self.flushes,
            flushes: self.flushes,
            span_bytes: self.span_bytes,
            page_bytes,
            footprint_pages: self.touched.pages(),
            written_pages: self.written.pages(),
            overwrite_factor: share(writes.bytes, self.written.pages() * page_bytes),
            unaligned_share: share(self.unaligned, reads.requests + writes.requests),
            first_ns,
            last_ns,
            duration_ns: last_ns - first_ns,
            skipped_rows: reader.skipped(),
            reordered_requests: reader.reordered(),
            leading_trims: reader.leading_trims(),
            reads,
            writes,
            trims,
        }
    }
}

/// Bytes for people: three digits and a binary unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let unit = (self.0.max(1).ilog2() / 10).min(5) as usize;
        let value = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        let decimals = if unit == 0 || value >= 100.0 { 0 } else { 1 };
        write!(f, "{value:.decimals$} {}", UNITS[unit])
    }
}

/// Counts for people: `1.25 M`.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ 0..10_000 => write!(f, "{n}"),
            n @ 10_000..1_000_000 => write!(f, "{:.1} k", n as f64 / 1e3),
            n @ 1_000_000..1_000_000_000 => write!(f, "{:.2} M", n as f64 / 1e6),
            n => write!(f, "{:.2} G", n as f64 / 1e9),
        }
    }
}

impl Profile {
    /// One line to read before a run: format, requests, mix, span, footprint, alignment, skipped rows.
    pub fn sanity_line(&self) -> String {
        let share = |part: u64| part as f64 * 100.0 / self.requests.max(1) as f64;
        let mut line = format!(
            "{} trace: {} requests, {:.1} % read / {:.1} % write / {:.1} % trim, span {}, footprint {}, {:.1} % unaligned, {} skipped",
            self.format,
            Count(self.requests),
            share(self.reads.requests),
            share(self.writes.requests),
            share(self.trims.requests),
            Bytes(self.span_bytes),
            Bytes(self.footprint_pages * self.page_bytes),
            self.unaligned_share * 100.0,
            Count(self.skipped_rows),
        );
        if self.reordered_requests > 0 {
            line += &format!(", {} put in order", Count(self.reordered_requests));
        }
        let LeadingTrims { requests, bytes } = self.leading_trims;
        if requests > 0 {
            let plural = if requests == 1 { "" } else { "s" };
            line += &format!(
                ", {} leading trim{plural} of {} dropped (the discard of mkfs; --keep-leading-trim keeps it)",
                Count(requests),
                Bytes(bytes)
            );
        }
        line
    }
}

impl fmt::Display for Profile {
    /// The sanity line and a table under it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sanity_line())?;
        writeln!(f, "{:<10}{:>12}{:>14}{:>12}{:>12}{:>12}", "", "requests", "bytes", "min", "mean", "max")?;
        for (name, op) in [("read", &self.reads), ("write", &self.writes), ("trim", &self.trims)] {
            writeln!(
                f,
                "{name:<10}{:>12}{:>14}{:>12}{:>12}{:>12}",
                op.requests,
                Bytes(op.bytes).to_string(),
                Bytes(op.length_bytes_min).to_string(),
                Bytes(op.length_bytes_mean()).to_string(),
                Bytes(op.length_bytes_max).to_string(),
            )?;
        }
        writeln!(f, "{:<10}{:>12}", "flush", self.flushes)?;
        let pages = Bytes(self.page_bytes);
        writeln!(f, "span       {} ({} bytes)", Bytes(self.span_bytes), self.span_bytes)?;
        writeln!(f, "touched    {} pages of {pages}", self.footprint_pages)?;
        writeln!(f, "written    {} pages of {pages}, each {:.2} times", self.written_pages, self.overwrite_factor)?;
        writeln!(f, "unaligned  {:.2} % of reads and writes", self.unaligned_share * 100.0)?;
        write!(f, "time       {:.6} s, from {} ns to {} ns", self.duration_ns as f64 / 1e9, self.first_ns, self.last_ns)
    }
}
