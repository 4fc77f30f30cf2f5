//! The device: requests in bytes above, an FTL in pages below.
//!
//! Requests are split into pages here, and nowhere else. A write of a part of a page that holds data reads it first (cause
//! `modify`); a trim takes only the pages that it covers whole.

use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::{BlockDevice, BlockView, DeviceError, Observe, Replay};
use crate::ftl::Ftl;
use crate::memory;
use crate::nand::Medium;
use crate::nand::clock::Clock as _;
use crate::nand::content::{Bytes, Content, Frames, Nothing, Run as _};
use crate::request::{Op, Request};
use crate::stats::{HostCounters, Latencies, Snapshot, WearSummary};
use crate::store::fatal;
use hdrhistogram::Histogram;

/// Requests are prefetched in groups of this size: map entries two groups ahead, the state of old pages one group ahead,
/// which needs the entries to have arrived. A prefetch that misses the TLB holds up what follows it; side by side the
/// misses of a group overlap, while between one write and the next they would come one after the other. It is the other way
/// round where a write looks at many tables ([`Ftl::looks_at_many_tables`]): a processor waits for some two dozen lines at once, and
/// a read that comes while more are wanted waits for those too. Then one page is prefetched with each request, as far ahead.
const GROUP: usize = 8;

/// Groups that requests themselves are prefetched ahead.
const GROUPS_AHEAD: usize = 8;

/// What the pages of an FTL hold.
type ContentOf<F> = <<F as Ftl>::Medium as Medium>::Content;
/// What the host writes to it.
type Data<'a, F> = <ContentOf<F> as Content>::Data<'a>;
/// Room for what the host reads from it.
type Room<'a, F> = <ContentOf<F> as Content>::Room<'a>;

/// A simulated SSD over any FTL.
pub struct Ssd<F: Ftl> {
    ftl: F,
    log2_page_bytes: u8,
    capacity_bytes: u64,
    clean_when_idle: bool,
    /// Whether anything below asks who writes.
    wants_sources: bool,
    /// Whether writes of whole pages go to the FTL in runs.
    writes_runs: bool,
    /// Whether the placement is told of writes ahead.
    wants_batches: bool,
    host: HostCounters,
    /// Host programs of the medium before this device took it over.
    programs_before: u64,
    latencies: Latencies,
    /// Whether the request under way reads, and has found nothing so far.
    finds_nothing: bool,
    /// One page, for reads and writes of parts.
    scratch: <ContentOf<F> as Content>::Frames,
    /// When the host's requests arrive, where bytes are served, and who asks.
    arrival_ns: u64,
    source: u16,
    /// Why nothing is answered any more, where bytes are served.
    stopped: Option<DeviceError>,
    /// What the last request took, where there is a clock.
    latency_ns: Option<u64>,
}

impl<F: Ftl> Ssd<F> {
    /// A device over `ftl`; `clean_when_idle` cleans in the gaps between requests that a queueing clock sees.
    pub fn new(ftl: F, clean_when_idle: bool) -> Self {
        let log2_page_bytes = ftl.medium().geometry().log2_page_bytes;
        let programs_before = ftl.medium().counters().programs[Cause::Host];
        Self {
            capacity_bytes: u64::from(ftl.logical_pages()) << log2_page_bytes,
            log2_page_bytes,
            clean_when_idle,
            wants_sources: ftl.wants_sources(),
            writes_runs: ftl.writes_runs(),
            wants_batches: ftl.wants_batches(),
            ftl,
            host: HostCounters::default(),
            programs_before,
            latencies: Latencies::default(),
            finds_nothing: false,
            scratch: Frames::new(1, log2_page_bytes),
            arrival_ns: 0,
            source: 0,
            stopped: None,
            latency_ns: None,
        }
    }

    /// The FTL inside.
    pub fn ftl(&self) -> &F {
        &self.ftl
    }

    /// The FTL inside, for what lies on its medium.
    pub fn ftl_mut(&mut self) -> &mut F {
        &mut self.ftl
    }

    /// Gives the FTL back.
    pub fn into_ftl(self) -> F {
        self.ftl
    }

    #[inline(always)]
    fn page_of(&self, offset: u64) -> Lpn {
        Lpn((offset >> self.log2_page_bytes) as u32)
    }

    /// Checks that a range lies on the device.
    #[inline(always)]
    fn check_range(&self, request: usize, offset: u64, length: u64) -> Result<u64, DeviceError> {
        let end = offset.saturating_add(length);
        if end > self.capacity_bytes {
            return Err(DeviceError::OutOfRange { request, offset, end, capacity_bytes: self.capacity_bytes });
        }
        Ok(end)
    }

    /// Trims the pages that bytes `offset..end` cover whole.
    fn trim_range(&mut self, offset: u64, end: u64) -> Result<(), DeviceError> {
        self.host.bytes_trimmed += end - offset;
        let first = offset.div_ceil(1 << self.log2_page_bytes) as u32;
        let last = self.page_of(end).0;
        if first < last {
            self.host.pages_trimmed += u64::from(last - first);
            self.ftl.trim(Lpn(first), last - first)?;
        }
        Ok(())
    }

    /// The first pages of a group of requests from `start` on. Past the end of the batch the last request stands in.
    #[inline(always)]
    fn first_pages(&self, batch: &[Request], start: usize) -> [Lpn; GROUP] {
        match batch.get(start..).and_then(|rest| rest.first_chunk::<GROUP>()) {
            Some(group) => std::array::from_fn(|index| self.page_of(group[index].offset)),
            None => std::array::from_fn(|index| self.page_of(batch[(start + index).min(batch.len() - 1)].offset)),
        }
    }

    /// Prefetches for the two groups of requests that follow the one that `batch` begins with, unless that is done with each request, and the
    /// requests of a later one: a long batch is not in the near caches either. `next` are the first pages of the next group; those of the one after it are returned.
    #[inline(always)]
    fn prefetch_groups(&self, batch: &[Request], next: &[Lpn; GROUP]) -> [Lpn; GROUP] {
        const REQUESTS_PER_LINE: usize = 64 / size_of::<Request>();
        for index in (0..GROUP).step_by(REQUESTS_PER_LINE) {
            memory::prefetch(batch, GROUPS_AHEAD * GROUP + index);
        }
        let after_next = self.first_pages(batch, 2 * GROUP);
        if !self.ftl.looks_at_many_tables() {
            self.ftl.prefetch_entries(&after_next);
            self.ftl.prefetch_pages(next);
        }
        after_next
    }

    /// Makes the range zero: parts of pages are written, whole ones discarded.
    fn zero_range(&mut self, offset: u64, end: u64) -> Result<(), DeviceError> {
        let mask = (1u64 << self.log2_page_bytes) - 1;
        let (first, last) = ((offset + mask) & !mask, end & !mask);
        if first > last {
            return self.zero_part(offset, end);
        }
        if offset < first {
            self.zero_part(offset, first)?;
        }
        if first < last {
            self.trim_range(first, last)?;
        }
        if last < end { self.zero_part(last, end) } else { Ok(()) }
    }

    /// Writes zeros to a part of a page.
    fn zero_part(&mut self, offset: u64, end: u64) -> Result<(), DeviceError> {
        let lpn = self.page_of(offset);
        let start = u64::from(lpn.0) << self.log2_page_bytes;
        self.host.pages_partly_written += 1;
        self.ftl.begin_write(1);
        self.load(lpn.0, Cause::Modify)?;
        self.scratch.clear(0, (offset - start) as usize..(end - start) as usize);
        self.write_scratch(lpn)?;
        self.host.pages_written += 1;
        self.host.bytes_written += end - offset;
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), DeviceError> {
        self.host.flushes += 1;
        self.make_durable()
    }

    fn make_durable(&mut self) -> Result<(), DeviceError> {
        self.ftl.flush()?;
        self.ftl.medium_mut().flush().map_err(|error| fatal(error, 0))
    }
}

impl<F: Ftl> Ssd<F> {
    /// A request arrives: what idle time allows is cleaned first, then the clock marks its beginning.
    #[inline(always)]
    fn begin(&mut self, arrival_ns: u64) -> Result<(), DeviceError> {
        if self.clean_when_idle {
            self.clean_before(arrival_ns)?;
        }
        self.ftl.medium_mut().clock_mut().begin_request(arrival_ns);
        Ok(())
    }

    /// The request is carried out: its latency is taken down under `op`. A read that finds nothing, not even in a translation
    /// page, takes no flash time; counted as a latency of 0, it would make reads look fast.
    #[inline(always)]
    fn end(&mut self, op: Op) -> Result<(), DeviceError> {
        self.ftl.end_request()?;
        self.latency_ns = self.ftl.medium_mut().clock_mut().end_request();
        if let Some(latency_ns) = self.latency_ns {
            if op == Op::Read && latency_ns == 0 && self.finds_nothing {
                self.latencies.read_unmapped += 1;
            } else {
                self.latencies.of(op).saturating_record(latency_ns);
            }
        }
        Ok(())
    }

    /// Carries out a request that arrives now, and with `durable` makes it durable. A device without power, or whose content cannot be kept, stays as it is: what
    /// its tables hold may be halfway through a collection.
    fn serve_bytes(
        &mut self,
        op: Op,
        durable: bool,
        work: impl FnOnce(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        let result = self
            .begin(self.arrival_ns)
            .and_then(|()| work(self))
            .and_then(|()| if durable { self.make_durable() } else { Ok(()) })
            .and_then(|()| self.end(op));
        if let Err(error @ (DeviceError::PowerLost | DeviceError::Payload(_))) = &result {
            self.stopped = Some(error.clone());
        }
        result
    }

    fn clean_before(&mut self, arrival_ns: u64) -> Result<(), DeviceError> {
        let idle_ns = self.ftl.medium().clock().idle_before(arrival_ns);
        if idle_ns > 0 {
            self.ftl.medium_mut().clock_mut().begin_request(arrival_ns - idle_ns);
            self.ftl.idle(idle_ns)?;
            self.ftl.medium_mut().clock_mut().end_request();
        }
        Ok(())
    }

    /// Writes bytes `offset..end`, a page at a time.
    #[inline(always)]
    fn write_pages(&mut self, offset: u64, end: u64, data: Data<'_, F>) -> Result<(), DeviceError> {
        let mask = (1 << self.log2_page_bytes) - 1;
        let (head, tail) = (offset & mask != 0, end & mask != 0);
        let (first, last) = (self.page_of(offset).0, self.page_of(end - 1).0);
        self.ftl.begin_write(last + 1 - first);
        for lpn in first..last + 1 {
            let start = u64::from(lpn) << self.log2_page_bytes;
            let (from, to) = (offset.max(start), end.min(start + mask + 1));
            let range = (from - offset) as usize..(to - offset) as usize;
            if (head && lpn == first) || (tail && lpn == last) {
                self.host.pages_partly_written += 1;
                self.load(lpn, Cause::Modify)?;
                self.scratch.patch(0, (from - start) as usize, data, range);
                self.write_scratch(Lpn(lpn))?;
            } else {
                self.ftl.write(Lpn(lpn), data.page(range), Cause::Host)?;
            }
            self.host.pages_written += 1;
            self.host.bytes_written += to - from;
        }
        Ok(())
    }

    /// Tells what is below on whose behalf the pages of bytes `offset..end` are written.
    #[cold]
    fn attribute(&mut self, offset: u64, end: u64, source: u16) {
        let pages = self.page_of(offset).0..=self.page_of(end - 1).0;
        pages.for_each(|lpn| self.ftl.attribute(Lpn(lpn), source));
    }

    /// Reads bytes `offset..end`, a page at a time.
    fn read_pages(&mut self, offset: u64, end: u64, room: &mut Room<'_, F>) -> Result<(), DeviceError> {
        self.host.bytes_read += end - offset;
        self.finds_nothing = true;
        let page_bytes = 1 << self.log2_page_bytes;
        for lpn in self.page_of(offset).0..self.page_of(end - 1).0 + 1 {
            let mapped = self.load(lpn, Cause::Host)?;
            let start = u64::from(lpn) << self.log2_page_bytes;
            let (from, to) = (offset.max(start), end.min(start + page_bytes));
            let range = (from - offset) as usize..(to - offset) as usize;
            self.scratch.extract(0, (from - start) as usize, room, range);
            self.host.pages_read += 1;
            self.host.pages_read_unmapped += u64::from(!mapped);
            self.finds_nothing &= !mapped;
        }
        Ok(())
    }

    /// Writes the scratch page. Compiled once: a part of a page costs a read as well.
    #[inline(never)]
    fn write_scratch(&mut self, lpn: Lpn) -> Result<(), DeviceError> {
        self.ftl.write(lpn, self.scratch.page(0), Cause::Host)
    }

    /// Reads a page into the scratch page; zeros where it holds nothing.
    #[inline(always)]
    fn load(&mut self, lpn: u32, cause: Cause) -> Result<bool, DeviceError> {
        let mapped = self.ftl.read(Lpn(lpn), self.scratch.page_mut(0), cause)?;
        if !mapped {
            self.scratch.clear(0, 0..1 << self.log2_page_bytes);
        }
        Ok(mapped)
    }
}

impl Latencies {
    #[inline(always)]
    fn of(&mut self, op: Op) -> &mut Histogram<u64> {
        match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim | Op::WriteZeroes => &mut self.trim,
            Op::Flush => &mut self.flush,
        }
    }
}

impl<F: Ftl> Observe for Ssd<F> {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot { host: self.host, ..Snapshot::default() };
        self.ftl.fill_snapshot(&mut snapshot);
        snapshot
    }

    fn wear(&self) -> WearSummary {
        self.ftl.wear()
    }

    fn block_erases(&self) -> Vec<u32> {
        let medium = self.ftl.medium();
        (0..medium.geometry().blocks).map(|b| medium.erase_count(crate::address::BlockId(b))).collect()
    }

    fn blocks(&self) -> Vec<BlockView> {
        self.ftl.blocks()
    }

    fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    fn reset_latencies(&mut self) {
        self.latencies = Latencies::default();
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check()?;
        let programs = self.ftl.medium().counters().programs[Cause::Host] - self.programs_before;
        if programs > self.host.pages_written {
            return Err(format!("{programs} host programs for {} host page writes", self.host.pages_written));
        }
        Ok(())
    }

    fn logical_pages(&self) -> u32 {
        self.ftl.logical_pages()
    }

    fn physical_pages(&self) -> u32 {
        self.ftl.medium().geometry().pages()
    }

    fn page_bytes(&self) -> u32 {
        self.ftl.medium().geometry().page_bytes()
    }
}

impl<F: Ftl> Ssd<F>
where
    F::Medium: Medium<Content = Nothing>,
{
    /// Carries out `batch`, whose first request is number `first` of what was submitted. A function of its own: as a part of the loop
    /// that calls it, it was a fifth slower under DFTL and ASA-FTL (`cargo bench --bench map`).
    #[inline(never)]
    fn carry_out_all(&mut self, batch: &[Request], first: usize) -> Result<(), DeviceError> {
        if batch.is_empty() {
            return Ok(());
        }
        let (mut current, mut next) = (self.first_pages(batch, 0), self.first_pages(batch, GROUP));
        for start in (0..batch.len()).step_by(GROUP) {
            let rest = &batch[start..];
            let after_next = self.prefetch_groups(rest, &next);
            let lpns = std::mem::replace(&mut current, std::mem::replace(&mut next, after_next));
            if self.writes_runs
                && let Some(group) = rest.first_chunk::<GROUP>()
                && self.are_whole_pages(group)
            {
                self.write_group(&lpns)?;
                continue;
            }
            for (index, request) in rest.iter().take(GROUP).enumerate() {
                if self.ftl.looks_at_many_tables() {
                    self.ftl.prefetch_entries(&next[index..=index]);
                    self.ftl.prefetch_pages(&current[index..=index]);
                }
                self.begin(request.arrival_ns)?;
                self.carry_out(first + start + index, request)?;
                if request.durable {
                    self.make_durable()?;
                }
                self.end(request.op)?;
            }
        }
        Ok(())
    }

    /// Whether each request of a group writes one whole page and no more is asked. All of them are looked at, without a branch.
    #[inline(always)]
    fn are_whole_pages(&self, group: &[Request; GROUP]) -> bool {
        let page_bytes = 1u64 << self.log2_page_bytes;
        let (mut unlike, mut last) = (0, 0);
        for request in group {
            unlike |= request.offset & (page_bytes - 1) | request.length ^ page_bytes;
            unlike |= u64::from(request.op as u8 ^ Op::Write as u8 | u8::from(request.durable));
            last = last.max(request.offset);
        }
        unlike == 0 && last < self.capacity_bytes
    }

    /// Writes whole pages, in runs as long as an open block has room.
    #[inline(always)]
    fn write_group(&mut self, lpns: &[Lpn]) -> Result<(), DeviceError> {
        let mut rest = lpns;
        loop {
            let written = self.ftl.write_run(rest);
            self.count_pages(written);
            let Some((lpn, others)) = rest[written..].split_first() else { return Ok(()) };
            self.ftl.write(*lpn, (), Cause::Host)?;
            self.count_pages(1);
            rest = others;
        }
    }

    /// The host has written so many whole pages.
    #[inline(always)]
    fn count_pages(&mut self, pages: usize) {
        self.host.pages_written += pages as u64;
        self.host.bytes_written += (pages as u64) << self.log2_page_bytes;
    }

    /// Tells the placement of the writes that `batch` begins with, and returns how many requests those are in: one that discards pages ends
    /// what can be told ahead.
    #[cold]
    fn announce(&mut self, batch: &[Request]) -> Result<usize, DeviceError> {
        let length = batch.iter().position(|request| request.op.discards()).map_or(batch.len(), |at| at.max(1));
        let writes = batch[..length].iter().filter(|request| request.op == Op::Write && request.length > 0);
        let inside = writes.take_while(|r| r.offset.saturating_add(r.length) <= self.capacity_bytes);
        let pages = inside.flat_map(|r| self.page_of(r.offset).0..=self.page_of(r.offset + r.length - 1).0);
        let pages: Vec<Lpn> = pages.map(Lpn).collect();
        self.ftl.announce(&pages);
        self.ftl.check_policies()?;
        Ok(length)
    }

    #[inline(always)]
    fn carry_out(&mut self, index: usize, request: &Request) -> Result<(), DeviceError> {
        let end = self.check_range(index, request.offset, request.length)?;
        match request.op {
            Op::Flush => self.flush_all(),
            _ if request.length == 0 => Ok(()),
            Op::Trim => self.trim_range(request.offset, end),
            Op::Write => {
                if self.wants_sources {
                    self.attribute(request.offset, end, request.source);
                }
                self.write_pages(request.offset, end, ())
            }
            Op::Read => self.read_pages(request.offset, end, &mut ()),
            Op::WriteZeroes => {
                if self.wants_sources {
                    self.attribute(request.offset, end, request.source);
                }
                self.zero_range(request.offset, end)
            }
        }
    }
}

impl<F: Ftl + Send> Replay for Ssd<F>
where
    F::Medium: Medium<Content = Nothing>,
{
    fn submit(&mut self, batch: &[Request]) -> Result<(), DeviceError> {
        let mut first = 0;
        while first < batch.len() {
            let rest = &batch[first..];
            let length = if self.wants_batches { self.announce(rest)? } else { rest.len() };
            self.carry_out_all(&rest[..length], first)?;
            first += length;
        }
        self.ftl.check_policies()
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.ftl.idle(budget_ns)
    }
}

impl<F: Ftl + Send> BlockDevice for Ssd<F>
where
    F::Medium: Medium<Content = Bytes>,
{
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn arrive(&mut self, now_ns: u64, source: u16) {
        self.arrival_ns = self.arrival_ns.max(now_ns);
        self.source = source;
    }

    fn read(&mut self, offset: u64, mut out: &mut [u8]) -> Result<(), DeviceError> {
        self.serve_bytes(Op::Read, false, |this| {
            let end = this.check_range(0, offset, out.len() as u64)?;
            if out.is_empty() { Ok(()) } else { this.read_pages(offset, end, &mut out) }
        })
    }

    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), DeviceError> {
        self.serve_bytes(Op::Write, durable, |this| {
            let end = this.check_range(0, offset, data.len() as u64)?;
            if data.is_empty() {
                return Ok(());
            }
            if this.wants_sources {
                this.attribute(offset, end, this.source);
            }
            this.write_pages(offset, end, data)
        })
    }

    fn trim(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError> {
        self.serve_bytes(Op::Trim, durable, |this| {
            let end = this.check_range(0, offset, length)?;
            if length == 0 { Ok(()) } else { this.trim_range(offset, end) }
        })
    }

    fn write_zeroes(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError> {
        self.serve_bytes(Op::WriteZeroes, durable, |this| {
            let end = this.check_range(0, offset, length)?;
            if length == 0 {
                return Ok(());
            }
            if this.wants_sources {
                this.attribute(offset, end, this.source);
            }
            this.zero_range(offset, end)
        })
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.serve_bytes(Op::Flush, false, Self::flush_all)
    }

    fn latency_ns(&self) -> Option<u64> {
        self.latency_ns
    }

    fn holds_data(&self, page: u32) -> bool {
        self.ftl.is_mapped(Lpn(page))
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.ftl.idle(budget_ns)
    }
}
