//! Time, as a decorator: the same operations, with a [`FlashClock`] beside them.
//!
//! Two models from one code. *Serial* adds latencies up, one operation after another: the operation time of the papers.
//! *Queueing* keeps every plane and every channel busy until its own time; requests arrive as the trace says (open loop)
//! or as earlier ones complete (closed loop). The flash time of results is counts times latencies in every mode.
//!
//! Departures from real devices: planes of a die work independently; a plane's register holds one page, so that a
//! transfer waits for the plane; a copy-back crosses planes for free, which the papers' operation times imply.

use super::clock::Clock;
use super::{Medium, MediumError, Move, Oob, Owner, PageMut, PageRef};
use crate::address::{BlockId, Geometry, Lpn, PageSet, Ppn};
use crate::cause::Cause;
use crate::registry::Entry;
use crate::stats::{FlashTime, MediumCounters};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Latencies of one flash chip, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// Cell array to page register.
    pub read_ns: u64,
    /// Page register to cell array.
    pub program_ns: u64,
    /// Erase of one block.
    pub erase_ns: u64,
    /// One page over the channel.
    pub transfer_ns: u64,
}

/// A named set of latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preset {
    /// The latencies.
    pub latency: Latency,
    /// Bytes of the pages that they were measured on, where their source says so.
    pub page_bytes: Option<u32>,
}

/// How time is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeMode {
    /// No time at all: the fastest.
    None,
    /// Counts times latencies, one operation after another: the operation time of the papers.
    #[default]
    Serial,
    /// Queueing on channels and planes, requests arriving as the trace says.
    Open,
    /// Queueing with a fixed number of requests outstanding; arrival times are ignored.
    Closed,
}

/// Which model, and what it needs beside the latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimingOptions {
    /// The model.
    pub mode: TimeMode,
    /// Requests outstanding in a closed loop, at least 1.
    pub queue_depth: u32,
    /// Whether a copy stays inside the array; else it crosses the channel twice.
    pub copy_back: bool,
}

const fn microseconds(read: u64, program: u64, erase: u64, transfer: u64) -> Latency {
    // Arguments are tenths of a microsecond, the finest digit that the papers print.
    Latency { read_ns: read * 100, program_ns: program * 100, erase_ns: erase * 100, transfer_ns: transfer * 100 }
}

/// The named sets of latencies.
pub const TIMINGS: &[Entry<Preset>] = &[
    timing(
        "slc",
        "2 KB page SLC: 72.8 / 252.8 / 1500 us, transfer included",
        "Adaptive partitioning, Table I",
        Some(2 << 10),
        microseconds(728, 2528, 15000, 0),
    ),
    timing(
        "mlc",
        "4 KB page MLC: 165.6 / 905.6 / 1500 us, transfer included",
        "Adaptive partitioning, Table I",
        Some(4 << 10),
        microseconds(1656, 9056, 15000, 0),
    ),
    timing(
        "epoch",
        "25 / 220 / 1500 us and 121.6 us a transfer",
        "Write pattern based hot/cold separation, Table 2",
        None,
        microseconds(250, 2200, 15000, 1216),
    ),
    timing(
        "tlc",
        "16 KB page planar TLC, mean of lower, centre and upper pages: 80 / 2926.5 / 3000 us and 52.4 us a transfer",
        "SimpleSSD (IEEE CAL 17, 2018), latencies of its TLC flash",
        Some(16 << 10),
        microseconds(800, 29265, 30000, 524),
    ),
    timing(
        "qlc",
        "16 KB page 96-layer 3D QLC, mean of the four kinds of pages: 121.7 / 1860 / 6340 us and 20.5 us a transfer",
        "PACA (ICCD 2022), Figure 2 and Table I; transfer at 800 MT/s",
        Some(16 << 10),
        microseconds(1217, 18600, 63400, 205),
    ),
    timing("mbf", "25 / 200 / 1500 us", "Multiple Bloom filters, text", None, microseconds(250, 2000, 15000, 0)),
];

const fn timing(
    name: &'static str,
    summary: &'static str,
    paper: &'static str,
    page_bytes: Option<u32>,
    latency: Latency,
) -> Entry<Preset> {
    Entry { name, summary, paper, memory: "none", parameters: &[], build: Preset { latency, page_bytes } }
}

/// Busy times of planes and channels.
#[derive(Clone, Debug)]
struct Queue {
    plane_free_ns: Vec<u64>,
    channel_free_ns: Vec<u64>,
    /// When operations of the current request may start: its arrival, or the end of a collection that blocks it.
    ready_ns: u64,
    /// Latest end of an operation of the current request.
    end_ns: u64,
    /// Number of the current request, and of the one that each plane worked for last.
    request: u64,
    plane_request: Vec<u64>,
    /// The longest that an operation of the current request waited for a plane that worked for others.
    waited_ns: u64,
    /// Ends of outstanding requests, in closed loop.
    outstanding: Option<BinaryHeap<Reverse<u64>>>,
    depth: usize,
}

// A tag of its own: one hidden in a pointer takes six instructions an operation to read.
#[repr(u8)]
#[derive(Clone, Debug)]
enum Model {
    Off,
    Serial { request_ns: u64 },
    Queue(Queue),
}

/// The clock of a flash array: latencies, and the model by which they add up.
#[derive(Clone, Debug)]
pub struct FlashClock {
    geometry: Geometry,
    latency: Latency,
    copy_back: bool,
    arrival_ns: u64,
    model: Model,
}

/// A medium with a clock.
#[derive(Clone, Debug)]
pub struct Timed<M> {
    inner: M,
    clock: FlashClock,
}

impl<M: Medium> Timed<M> {
    /// Puts a clock beside `inner`; latencies come from `latency`, the model from `timing`.
    pub fn new(inner: M, latency: Latency, timing: TimingOptions) -> Self {
        let clock = FlashClock::new(*inner.geometry(), latency, timing);
        Self { inner, clock }
    }

    /// The medium inside.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The medium inside.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// The medium inside.
    pub fn into_inner(self) -> M {
        self.inner
    }
}

impl FlashClock {
    /// A clock at zero.
    pub fn new(geometry: Geometry, latency: Latency, timing: TimingOptions) -> Self {
        let queue = |closed: bool| {
            Model::Queue(Queue {
                plane_free_ns: vec![0; geometry.planes() as usize],
                channel_free_ns: vec![0; usize::from(geometry.channels)],
                ready_ns: 0,
                end_ns: 0,
                request: 0,
                plane_request: vec![0; geometry.planes() as usize],
                waited_ns: 0,
                outstanding: closed.then(BinaryHeap::new),
                depth: timing.queue_depth as usize,
            })
        };
        let model = match timing.mode {
            TimeMode::None => Model::Off,
            TimeMode::Serial => Model::Serial { request_ns: 0 },
            TimeMode::Open => queue(false),
            TimeMode::Closed => queue(true),
        };
        Self { geometry, latency, copy_back: timing.copy_back, arrival_ns: 0, model }
    }

    #[inline(always)]
    fn record_read(&mut self, at: Ppn) {
        let latency = self.latency;
        match &mut self.model {
            Model::Off => {}
            Model::Serial { request_ns } => *request_ns += latency.read_ns + latency.transfer_ns,
            Model::Queue(queue) => {
                let (plane, channel) = Queue::place(&self.geometry, at);
                let sensed = queue.plane_free(plane, queue.ready_ns) + latency.read_ns;
                let end = sensed.max(queue.channel_free_ns[channel]) + latency.transfer_ns;
                queue.plane_free_ns[plane] = end;
                queue.finish_transfer(channel, end, latency.transfer_ns);
            }
        }
    }

    #[inline(always)]
    fn record_program(&mut self, at: Ppn) {
        let latency = self.latency;
        match &mut self.model {
            Model::Off => {}
            Model::Serial { request_ns } => *request_ns += latency.program_ns + latency.transfer_ns,
            Model::Queue(queue) => {
                let (plane, channel) = Queue::place(&self.geometry, at);
                queue.program(plane, channel, queue.ready_ns, latency);
            }
        }
    }

    #[inline(always)]
    fn record_copy(&mut self, source: Ppn, target: Ppn) {
        let latency = self.latency;
        let transfers_ns = if self.copy_back { 0 } else { 2 * latency.transfer_ns };
        match &mut self.model {
            Model::Off => {}
            Model::Serial { request_ns } => *request_ns += latency.read_ns + latency.program_ns + transfers_ns,
            Model::Queue(queue) => {
                let (from, from_channel) = Queue::place(&self.geometry, source);
                let (to, to_channel) = Queue::place(&self.geometry, target);
                let crossing = Latency { transfer_ns: transfers_ns / 2, ..latency };
                let sensed = queue.plane_free(from, queue.ready_ns) + latency.read_ns;
                let out = sensed.max(if transfers_ns > 0 { queue.channel_free_ns[from_channel] } else { 0 })
                    + crossing.transfer_ns;
                queue.plane_free_ns[from] = out;
                queue.finish_transfer(from_channel, out, crossing.transfer_ns);
                queue.program(to, to_channel, out, crossing);
            }
        }
    }

    fn record_erase(&mut self, block: BlockId) {
        let erase_ns = self.latency.erase_ns;
        match &mut self.model {
            Model::Off => {}
            Model::Serial { request_ns } => *request_ns += erase_ns,
            Model::Queue(queue) => {
                // The erase waits for the copies out of the block; what follows in this request waits for the erase.
                let geometry = &self.geometry;
                let start = queue.end_ns.max(queue.ready_ns);
                let first = geometry.first_page(block);
                let planes = match geometry.striping {
                    crate::address::Striping::Superblock => geometry.planes().min(geometry.pages_per_block()),
                    crate::address::Striping::PerDie => 1,
                };
                let mut end = start;
                for index in 0..planes {
                    let plane = geometry.plane_of(Ppn(first.0 + index)) as usize;
                    queue.plane_free_ns[plane] = queue.plane_free(plane, start) + erase_ns;
                    end = end.max(queue.plane_free_ns[plane]);
                }
                queue.end_ns = end;
                queue.ready_ns = end;
            }
        }
    }
}

impl Queue {
    fn place(geometry: &Geometry, at: Ppn) -> (usize, usize) {
        let plane = geometry.plane_of(at);
        (plane as usize, geometry.channel_of_plane(plane) as usize)
    }

    /// When an operation of the current request that is ready then has its plane.
    fn plane_free(&mut self, plane: usize, ready_ns: u64) -> u64 {
        let free_ns = self.plane_free_ns[plane];
        if std::mem::replace(&mut self.plane_request[plane], self.request) != self.request {
            self.waited_ns = self.waited_ns.max(free_ns.saturating_sub(ready_ns));
        }
        free_ns.max(ready_ns)
    }

    fn finish_transfer(&mut self, channel: usize, end_ns: u64, transfer_ns: u64) {
        if transfer_ns > 0 {
            self.channel_free_ns[channel] = end_ns;
        }
        self.end_ns = self.end_ns.max(end_ns);
    }

    fn program(&mut self, plane: usize, channel: usize, ready_ns: u64, latency: Latency) {
        let mut start = self.plane_free(plane, ready_ns);
        if latency.transfer_ns > 0 {
            start = start.max(self.channel_free_ns[channel]);
        }
        let loaded = start + latency.transfer_ns;
        self.finish_transfer(channel, loaded, latency.transfer_ns);
        self.plane_free_ns[plane] = loaded + latency.program_ns;
        self.end_ns = self.end_ns.max(self.plane_free_ns[plane]);
    }
}

impl<M: Medium> Medium for Timed<M> {
    type Content = M::Content;
    type Clock = FlashClock;

    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    #[inline(always)]
    fn program(&mut self, at: Ppn, oob: Oob, page: PageRef<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.clock.record_program(at);
        self.inner.program(at, oob, page, cause)
    }
    fn program_meta(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<(), MediumError> {
        self.clock.record_program(at);
        self.inner.program_meta(at, oob, content, cause)
    }
    #[inline(always)]
    fn read(&mut self, at: Ppn, out: PageMut<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.clock.record_read(at);
        self.inner.read(at, out, cause)
    }
    fn read_meta(&mut self, at: Ppn, out: &mut Vec<u8>, cause: Cause) -> Result<(), MediumError> {
        self.clock.record_read(at);
        self.inner.read_meta(at, out, cause)
    }
    #[inline(always)]
    fn counts_meta_reads(&self) -> bool {
        matches!(self.clock.model, Model::Off) && self.inner.counts_meta_reads()
    }
    #[inline(always)]
    fn count_meta_reads(&mut self, pages: u64, cause: Cause) {
        self.inner.count_meta_reads(pages, cause);
    }
    #[inline(always)]
    fn copy(&mut self, source: Ppn, target: Ppn, cause: Cause) -> Result<(), MediumError> {
        self.clock.record_copy(source, target);
        self.inner.copy(source, target, cause)
    }
    #[inline(always)]
    fn copy_run(&mut self, moves: &[Move], target: Ppn, cause: Cause) -> (usize, Result<(), MediumError>) {
        let (copied, result) = self.inner.copy_run(moves, target, cause);
        // A copy that fails takes its time too.
        let attempted = (copied + usize::from(result.is_err())).min(moves.len());
        if !matches!(self.clock.model, Model::Off) {
            for (entry, at) in moves[..attempted].iter().zip(target.0..) {
                self.clock.record_copy(entry.from, Ppn(at));
            }
        }
        (copied, result)
    }
    #[inline(always)]
    fn copies_owners(&self) -> bool {
        self.inner.copies_owners()
    }
    #[inline(always)]
    fn holds_data_only(&self, block: BlockId) -> bool {
        self.inner.holds_data_only(block)
    }
    #[inline(always)]
    fn copy_data(
        &mut self,
        pages: PageSet,
        target: Ppn,
        cause: Cause,
        others: &mut PageSet,
        moved: impl FnMut(Lpn, Ppn, Option<Owner>),
    ) {
        self.inner.copy_data(pages, target, cause, others, moved);
        if !matches!(self.clock.model, Model::Off) {
            let mut to = target;
            for from in pages {
                self.clock.record_copy(from, to);
                to.0 += 1;
            }
        }
    }
    fn programs_runs(&self) -> bool {
        matches!(self.clock.model, Model::Off) && self.inner.programs_runs()
    }
    #[inline(always)]
    fn program_run(&mut self, lpns: &[Lpn], target: Ppn, sequence: u64, cause: Cause) {
        self.inner.program_run(lpns, target, sequence, cause);
    }
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<(), MediumError> {
        self.clock.record_erase(block);
        self.inner.erase(block, cause)
    }
    #[inline(always)]
    fn owner(&self, at: Ppn) -> Owner {
        self.inner.owner(at)
    }
    fn sequence(&self, at: Ppn) -> u64 {
        self.inner.sequence(at)
    }
    #[inline(always)]
    fn programmed_pages(&self, block: BlockId) -> u32 {
        self.inner.programmed_pages(block)
    }
    #[inline(always)]
    fn erase_count(&self, block: BlockId) -> u32 {
        self.inner.erase_count(block)
    }
    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block)
    }
    fn counters(&self) -> &MediumCounters {
        self.inner.counters()
    }
    fn keeps_content(&self) -> bool {
        self.inner.keeps_content()
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        self.inner.flush()
    }
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, PageRef<'_, Self>)>) -> Result<(), MediumError> {
        self.inner.save_frame(frame, held)
    }
    fn table_bytes(&self) -> u64 {
        self.inner.table_bytes()
    }
    #[inline(always)]
    fn prefetch_owner(&self, at: Ppn) {
        self.inner.prefetch_owner(at);
    }
    #[inline(always)]
    fn prefetch_block(&self, block: BlockId) {
        self.inner.prefetch_block(block);
    }
    fn spoil_page(&mut self, at: Ppn) {
        self.inner.spoil_page(at);
    }
    fn spoil_block(&mut self, block: BlockId) {
        self.inner.spoil_block(block);
    }
    #[inline(always)]
    fn clock(&self) -> &FlashClock {
        &self.clock
    }
    #[inline(always)]
    fn clock_mut(&mut self) -> &mut FlashClock {
        &mut self.clock
    }
}

impl Clock for FlashClock {
    fn begin_request(&mut self, arrival_ns: u64) {
        self.arrival_ns = arrival_ns;
        match &mut self.model {
            Model::Off => {}
            Model::Serial { request_ns } => *request_ns = 0,
            Model::Queue(queue) => {
                if let Some(outstanding) = &mut queue.outstanding {
                    // Closed loop: a request starts when a place in the queue falls free.
                    self.arrival_ns = if outstanding.len() < queue.depth {
                        0
                    } else {
                        outstanding.pop().map_or(0, |Reverse(end)| end)
                    };
                }
                queue.ready_ns = self.arrival_ns;
                queue.end_ns = self.arrival_ns;
                queue.request += 1;
                queue.waited_ns = 0;
            }
        }
    }

    fn end_request(&mut self) -> Option<u64> {
        match &mut self.model {
            Model::Off => None,
            Model::Serial { request_ns } => Some(*request_ns),
            Model::Queue(queue) => {
                if let Some(outstanding) = &mut queue.outstanding {
                    outstanding.push(Reverse(queue.end_ns));
                }
                Some(queue.end_ns - self.arrival_ns)
            }
        }
    }

    fn waited_ns(&self) -> u64 {
        match &self.model {
            Model::Queue(queue) => queue.waited_ns,
            _ => 0,
        }
    }

    fn busy_until_ns(&self) -> Option<u64> {
        match &self.model {
            Model::Queue(queue) => queue.plane_free_ns.iter().copied().max(),
            _ => None,
        }
    }

    fn idle_before(&self, arrival_ns: u64) -> u64 {
        match &self.model {
            Model::Queue(queue) if queue.outstanding.is_none() => {
                arrival_ns.saturating_sub(self.busy_until_ns().unwrap_or(0))
            }
            _ => 0,
        }
    }

    fn collection_ns(&self, valid: u32) -> u64 {
        let transfers = if self.copy_back { 0 } else { 2 * self.latency.transfer_ns };
        u64::from(valid) * (self.latency.read_ns + self.latency.program_ns + transfers) + self.latency.erase_ns
    }

    fn time(&self, counters: &MediumCounters) -> FlashTime {
        let (reads, programs, copies) = (counters.reads.total(), counters.programs.total(), counters.copies.total());
        let copy_transfers = if self.copy_back { 0 } else { 2 * copies };
        FlashTime {
            read_ns: (reads + copies) * self.latency.read_ns,
            program_ns: (programs + copies) * self.latency.program_ns,
            erase_ns: counters.erases.total() * self.latency.erase_ns,
            transfer_ns: (reads + programs + copy_transfers) * self.latency.transfer_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::array::NandArray;
    use super::super::payload::NoBytes;
    use super::*;

    const LATENCY: Latency = Latency { read_ns: 10, program_ns: 100, erase_ns: 1000, transfer_ns: 5 };

    fn timed(planes: u16, mode: TimeMode, queue_depth: u32) -> Timed<NandArray<NoBytes>> {
        let geometry = Geometry { channels: planes, ..Geometry::simple(4, 8, 4096) };
        let timing = TimingOptions { mode, queue_depth, copy_back: true };
        Timed::new(NandArray::without_bytes(geometry, 0, false), LATENCY, timing)
    }

    fn write(medium: &mut Timed<NandArray<NoBytes>>, arrival_ns: u64, pages: std::ops::Range<u32>) -> u64 {
        medium.clock_mut().begin_request(arrival_ns);
        for page in pages {
            let oob = Oob { owner: Owner::new(Kind::Data, page), sequence: 0 };
            medium.program(Ppn(page), oob, (), Cause::Host).unwrap();
        }
        medium.clock_mut().end_request().unwrap()
    }

    #[test]
    fn serial_latency_is_the_sum_and_time_is_counts_times_latencies() {
        let mut medium = timed(1, TimeMode::Serial, 1);
        assert_eq!(write(&mut medium, 0, 0..2), 210);
        medium.clock_mut().begin_request(0);
        medium.copy(Ppn(0), Ppn(8), Cause::Gc).unwrap();
        medium.erase(BlockId(0), Cause::Gc).unwrap();
        assert_eq!(medium.clock_mut().end_request(), Some(10 + 100 + 1000));
        let time = medium.clock().time(medium.counters());
        assert_eq!((time.read_ns, time.program_ns, time.erase_ns, time.transfer_ns), (10, 300, 1000, 10));
    }

    #[test]
    fn one_plane_in_closed_loop_of_one_equals_serial() {
        let mut closed = timed(1, TimeMode::Closed, 1);
        let mut serial = timed(1, TimeMode::Serial, 1);
        for start in [0, 2, 5] {
            let pages = start..start + if start == 2 { 3 } else { 2 };
            assert_eq!(write(&mut closed, 7, pages.clone()), write(&mut serial, 7, pages));
        }
    }

    #[test]
    fn planes_work_side_by_side_and_later_requests_queue() {
        let mut medium = timed(2, TimeMode::Open, 1);
        // Two pages on two channels take the time of one.
        assert_eq!(write(&mut medium, 0, 0..2), 105);
        assert_eq!(medium.clock().waited_ns(), 0);
        // The next request finds plane 0 busy until 105; it waits for that, and not for its own pages.
        assert_eq!(write(&mut medium, 50, 2..3), 105 - 50 + 105);
        assert_eq!(medium.clock().waited_ns(), 105 - 50);
        assert_eq!(write(&mut medium, 210, 3..7), 210);
        assert_eq!(medium.clock().waited_ns(), 0);
        assert_eq!(medium.clock().idle_before(1000), 1000 - 420);
    }

    #[test]
    fn collection_blocks_the_request_that_needed_it() {
        let mut medium = timed(1, TimeMode::Open, 1);
        write(&mut medium, 0, 0..1);
        medium.clock_mut().begin_request(10_000);
        medium.copy(Ppn(0), Ppn(8), Cause::Gc).unwrap();
        medium.erase(BlockId(0), Cause::Gc).unwrap();
        let oob = Oob { owner: Owner::new(Kind::Data, 1), sequence: 0 };
        medium.program(Ppn(9), oob, (), Cause::Host).unwrap();
        assert_eq!(medium.clock_mut().end_request(), Some(110 + 1000 + 105));
    }
}
