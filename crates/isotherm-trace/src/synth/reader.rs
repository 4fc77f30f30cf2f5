//! Runs a workload: draws requests in batches, at rates that no simulator should wait for.

use super::pattern::{Draw, Pattern, Uniform};
use super::workload::{Arrivals, Phase, Size, Workload};
use crate::TraceReader;
use crate::error::TraceError;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use std::collections::VecDeque;

/// Sets the draws of one replay apart from those of the others, of which the seeds lie far apart: an odd number of many bits.
const REPLAY_SALT: u64 = 0x9e6c_63d0_876a_3f6b;

/// A workload under way.
pub struct SynthReader {
    shape: Shape,
    random: Random,
    clock: Clock,
    pattern: Pattern,
    /// Phases still to come.
    phases: VecDeque<Phase>,
    /// Page writes so far.
    written: u64,
}

/// What requests look like.
struct Shape {
    pages: u32,
    page_bytes: u64,
    writes: u64,
    reads: f64,
    reads_and_trims: f64,
    size: Size,
}

impl Shape {
    #[inline(always)]
    fn op(&self, random: &mut Random) -> Op {
        if self.reads_and_trims == 0.0 {
            return Op::Write;
        }
        let choice = random.unit();
        if choice < self.reads {
            Op::Read
        } else if choice < self.reads_and_trims {
            Op::Trim
        } else {
            Op::Write
        }
    }

    #[inline(always)]
    fn pages(&self, random: &mut Random) -> u32 {
        match &self.size {
            Size::Fixed(pages) => *pages,
            Size::Drawn(law, sizes) => sizes[law.draw(random) as usize],
        }
    }
}

/// Arrival times by whole arithmetic, so that an even rate never drifts.
struct Clock {
    rate: u64,
    arrivals: Arrivals,
    now_ns: u64,
    /// Whole nanoseconds between requests.
    step_ns: u64,
    /// The rest of them, in units of 1 / rate, and what requests are owed of it so far.
    rest: u64,
    owed: u64,
}

impl Clock {
    fn new(rate: u64, arrivals: Arrivals) -> Self {
        let divisor = rate.max(1);
        let (step_ns, rest) = (1_000_000_000 / divisor, 1_000_000_000 % divisor);
        Self { rate, arrivals, now_ns: 0, step_ns, rest, owed: 0 }
    }

    /// The time of the next request.
    #[inline(always)]
    fn next(&mut self, random: &mut Random) -> u64 {
        if self.rate == 0 {
            return 0;
        }
        let now_ns = self.now_ns;
        self.now_ns += match self.arrivals {
            Arrivals::Even => {
                self.owed += self.rest;
                let extra = u64::from(self.owed >= self.rate);
                self.owed -= extra * self.rate;
                self.step_ns + extra
            }
            Arrivals::Poisson => (-libm::log(1.0 - random.unit()) * (1e9 / self.rate as f64)) as u64,
        };
        now_ns
    }
}

impl SynthReader {
    pub(crate) fn new(workload: Workload, replay: u64) -> Self {
        let Workload { pages, page_bytes, writes, seed, reads, trims, size, rate, arrivals, phases } = workload;
        Self {
            shape: Shape { pages, page_bytes, writes, reads, reads_and_trims: reads + trims, size },
            random: Random::new(seed ^ replay.wrapping_mul(REPLAY_SALT)),
            clock: Clock::new(rate, arrivals),
            pattern: Pattern::Uniform(Uniform { pages }),
            phases: phases.into(),
            written: 0,
        }
    }

    /// Begins the phases that are due; the page write at which the next one is.
    fn enter_phases(&mut self) -> u64 {
        while self.phases.front().is_some_and(|phase| phase.from_write <= self.written) {
            match self.phases.pop_front().and_then(|phase| phase.pattern) {
                Some(pattern) => self.pattern = pattern,
                None => self.pattern.shift(),
            }
        }
        self.phases.front().map_or(self.shape.writes, |phase| phase.from_write.min(self.shape.writes))
    }
}

/// One stretch of requests drawn from one pattern.
struct Run<'a> {
    shape: &'a Shape,
    random: &'a mut Random,
    clock: &'a mut Clock,
    written: &'a mut u64,
    /// Page write at which the stretch ends.
    until: u64,
    batch: &'a mut Vec<Request>,
    /// Requests that the batch still takes.
    room: usize,
}

impl Run<'_> {
    fn generate<D: Draw>(&mut self, pattern: &mut D) {
        // The generator lives in registers here, not behind a pointer.
        let mut random = self.random.clone();
        let mut written = *self.written;
        let page_bytes = self.shape.page_bytes;
        for _ in 0..self.room {
            if written >= self.until {
                break;
            }
            let op = self.shape.op(&mut random);
            let mut pages = self.shape.pages(&mut random);
            if op == Op::Write {
                pages = u64::from(pages).min(self.until - written) as u32;
                written += u64::from(pages);
            }
            // A request that would pass the end is moved back to end there.
            let page = pattern.draw(op, pages, &mut random).min(self.shape.pages - pages);
            let arrival_ns = self.clock.next(&mut random);
            self.batch.push(Request {
                arrival_ns,
                offset: u64::from(page) * page_bytes,
                length: u64::from(pages) * page_bytes,
                op,
                source: 0,
                durable: false,
            });
        }
        *self.written = written;
        *self.random = random;
    }
}

impl TraceReader for SynthReader {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        batch.reserve(most);
        while batch.len() - before < most && self.written < self.shape.writes {
            let until = self.enter_phases();
            let room = most - (batch.len() - before);
            let Self { shape, random, clock, written, .. } = self;
            let mut run = Run { shape, random, clock, written, until, batch: &mut *batch, room };
            match &mut self.pattern {
                Pattern::Uniform(pattern) => run.generate(pattern),
                Pattern::Zipf(pattern) => run.generate(pattern),
                Pattern::HotCold(pattern) => run.generate(pattern),
                Pattern::Sequential(pattern) => run.generate(pattern),
                Pattern::Counts(pattern) => run.generate(pattern),
                Pattern::Mix(pattern) => run.generate(pattern),
            }
        }
        Ok(batch.len() - before)
    }

    fn skipped(&self) -> u64 {
        0
    }

    fn format(&self) -> &'static str {
        "synth"
    }
}
