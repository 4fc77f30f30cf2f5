//! What is written before the measured run, so that it starts from a state that means something.
//!
//! The words are those of SNIA's Performance Test Specification: the device is filled sequentially, then overwritten until
//! write amplification is steady ([`crate::steady`]). Every kind has a bound; whether steady state was reached is reported.

use super::layout::{Layout, Pages};
use super::submit::{Stopped, submit};
use super::{Precondition, RunSpec};
use crate::control::Control;
use crate::error::EvalError;
use crate::fold::Folding;
use crate::source::BATCH;
use crate::steady;
use isotherm::device::Replay;
use isotherm::random::Random;
use isotherm::request::{Op, Request};

/// Random overwrites are judged in rounds of this share of the active pages.
const ROUND_SHARE: u64 = 4;
/// Most rounds of random overwrites: ten drive writes.
const RANDOM_ROUNDS_MAX: usize = 40;
/// Most replays of the trace.
const TRACE_ROUNDS_MAX: usize = 20;
/// Pages of one request of a sequential fill.
const SEQUENTIAL_PAGES: u64 = 64;
/// Sets the random overwrites apart from whatever else is drawn from the run's seed.
const SEED_SALT: u64 = 0x7072_6563_6f6e_6469;

/// How preconditioning ended.
pub struct Outcome {
    /// Whether write amplification was steady, where that was waited for.
    pub steady: Option<bool>,
    /// Why the device stopped, if it did.
    pub stopped: Stopped,
    /// Write amplification of each replay of the trace; empty where something else was written.
    pub replays: Vec<Option<f64>>,
}

/// Writes the filler and the preconditioning of `spec`. Of a pattern, `pattern_pages` are those that it names.
///
/// # Errors
/// The trace cannot be read, a request does not fit the device, the user stopped.
pub fn write(
    device: &mut dyn Replay,
    spec: &RunSpec,
    folding: &Folding,
    layout: &Layout,
    pattern_pages: Option<u64>,
    control: &Control,
) -> Result<Outcome, EvalError> {
    let page_bytes = u64::from(device.page_bytes());
    let active = &layout.active;
    let mut writer = Writer { device, trace: &spec.trace.name, control, page_bytes, stopped: None };
    writer.sequential(&layout.filler)?;
    let mut replays = Vec::new();
    let steady = match spec.replay.precondition {
        Precondition::None => None,
        Precondition::Sequential => {
            writer.sequential(active)?;
            None
        }
        Precondition::Random => {
            writer.sequential(active)?;
            let mut random = Random::new(spec.seed ^ SEED_SALT);
            let round = active.count().div_ceil(ROUND_SHARE);
            Some(writer.until_steady(RANDOM_ROUNDS_MAX, |w| w.random(active, round, &mut random))?.0)
        }
        Precondition::Trace => {
            // What is rarely drawn holds data on a device that has seen the pattern for long, though a replay may not write it.
            if let Some(pages) = pattern_pages {
                writer.sequential(&active.below(pages))?;
            }
            // Whatever is measured after them is numbered from 0: it is the same however many came before.
            let mut replay = u64::MAX;
            let (steady, rounds) = writer.until_steady(TRACE_ROUNDS_MAX, |w| {
                replay -= 1;
                w.trace(spec, folding, replay)
            })?;
            // A trace without writes has no write amplification.
            replays = rounds.into_iter().map(|wa| Some(wa).filter(|wa| wa.is_finite())).collect();
            Some(steady)
        }
    };
    Ok(Outcome { steady, stopped: writer.stopped, replays })
}

/// Writes to a device until it stops.
struct Writer<'a> {
    device: &'a mut dyn Replay,
    trace: &'a str,
    control: &'a Control,
    page_bytes: u64,
    stopped: Stopped,
}

impl Writer<'_> {
    fn submit(&mut self, batch: &[Request]) -> Result<(), EvalError> {
        self.control.go_on()?;
        if self.stopped.is_none() {
            self.stopped = submit(self.device, batch, self.trace, 1)?;
        }
        Ok(())
    }

    /// Writes `pages` in order.
    fn sequential(&mut self, pages: &Pages) -> Result<(), EvalError> {
        let mut batch = Vec::with_capacity(BATCH);
        for range in pages.runs() {
            let mut at = range.start;
            while at < range.end {
                let some = SEQUENTIAL_PAGES.min(range.end - at);
                let (offset, length) = (at * self.page_bytes, some * self.page_bytes);
                batch.push(Request { arrival_ns: 0, offset, length, op: Op::Write, source: 0, durable: false });
                at += some;
                if batch.len() == BATCH / SEQUENTIAL_PAGES as usize {
                    self.submit(&batch)?;
                    batch.clear();
                }
            }
        }
        self.submit(&batch)
    }

    /// Overwrites `count` pages drawn uniformly from `active`.
    fn random(&mut self, active: &Pages, count: u64, random: &mut Random) -> Result<(), EvalError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut left = count;
        while left > 0 {
            batch.clear();
            let some = left.min(BATCH as u64);
            batch.extend((0..some).map(|_| Request {
                arrival_ns: 0,
                offset: active.nth(random.below(active.count())) * self.page_bytes,
                length: self.page_bytes,
                op: Op::Write,
                source: 0,
                durable: false,
            }));
            self.submit(&batch)?;
            left -= some;
        }
        Ok(())
    }

    /// Replays the trace once, as replay number `replay`. Arrival times are dropped: how fast the device was filled is of no interest.
    fn trace(&mut self, spec: &RunSpec, folding: &Folding, replay: u64) -> Result<(), EvalError> {
        spec.trace.for_each_of(replay, |batch| {
            folding.fold(batch);
            batch.iter_mut().for_each(|r| r.arrival_ns = 0);
            self.submit(batch)
        })
    }

    /// Repeats `round` until write amplification is steady, at most `rounds_max` times; that of each round is returned too.
    fn until_steady(
        &mut self,
        rounds_max: usize,
        mut round: impl FnMut(&mut Self) -> Result<(), EvalError>,
    ) -> Result<(bool, Vec<f64>), EvalError> {
        let mut rounds = Vec::new();
        while rounds.len() < rounds_max && self.stopped.is_none() {
            let before = self.device.snapshot();
            round(self)?;
            let after = self.device.snapshot();
            let programmed = after.medium.programmed().total() - before.medium.programmed().total();
            rounds.push(programmed as f64 / (after.host.pages_written - before.host.pages_written) as f64);
            if steady::is_steady(&rounds) {
                return Ok((true, rounds));
            }
        }
        Ok((false, rounds))
    }
}
