//! Changes to a situation: what the host does differently, what the drive does differently, and both together.

use crate::freed::Freed;
use crate::plan::Plan;
use crate::question::{PAGE_BYTES, Question, Situation, filled};
use crate::view::View;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::PolicyName;
use isotherm_eval::compare::Choice;
use isotherm_eval::{RunSpec, Survey, TraceSource};
use isotherm_sfs::FillMode;
use serde::Serialize;
use std::sync::Arc;

/// What kind of change it is: of the candidates of a kind, the best is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// None.
    AsItIs,
    /// The drive hears of what is deleted, or does not.
    Trim,
    /// The drive hears at once of what no file of a map holds: an estimate.
    TrimAtOnce,
    /// The host tags writes by address.
    HandlesByAddress,
    /// The host tags writes by the size of the request.
    HandlesBySize,
    /// The host tags writes by who writes.
    HandlesBySource,
    /// The drive places and cleans in another way.
    Firmware,
    /// More of the flash is spare.
    OverProvisioning,
    /// The drive holds writes back in memory.
    WriteBuffer,
    /// Its DRAM is split in another way between write buffer and map, and stays so.
    FixedSplit,
    /// A rule moves the border between them.
    AdaptiveSplit,
    /// A log-structured file system lies between.
    FileSystem,
    /// Several of these.
    Combination,
    /// A placement that knows when each page dies.
    KnowsFuture,
}

impl Kind {
    /// Whether its candidates stand for one another, so that the best of them is told; of other kinds, whose candidates differ in what
    /// they cost, each is.
    pub fn is_choice(self) -> bool {
        use Kind::{AdaptiveSplit, Firmware, FixedSplit, HandlesByAddress, HandlesBySize, HandlesBySource};
        matches!(self, HandlesByAddress | HandlesBySize | HandlesBySource | Firmware | FixedSplit | AdaptiveSplit)
    }
}

/// The log-structured file system between host and drive.
const FILE_SYSTEM: &str = "sfs";
/// Segments that its log has at least, where that leaves them 64 KiB.
const SEGMENTS_MIN: u64 = 512;
/// Pages of a segment at most: 32 MiB.
const SEGMENT_PAGES_MAX: u64 = 8192;

/// A change. What is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Whether the drive hears of what is deleted.
    pub discards: Option<bool>,
    /// What it hears of at once beside the discards of the trace.
    pub freed: Option<Arc<Freed>>,
    /// Which handle each write is tagged with.
    pub plan: Option<Arc<Plan>>,
    /// Whether the drive gathers copies in a stream of their own, where writes are tagged.
    pub copies_apart: bool,
    /// The drive's placement.
    pub placement: Option<PolicyName>,
    /// Its victim policy.
    pub victim: Option<PolicyName>,
    /// Over-provisioning (T-U)/U.
    pub over_provisioning: Option<f64>,
    /// Memory of the write buffer over the drive's capacity.
    pub buffer: Option<f64>,
    /// How the drive's DRAM is split between write buffer and map.
    pub split: Option<PolicyName>,
    /// Whether SFS lies between.
    pub file_system: bool,
}

impl Change {
    /// Both changes; where both say something, `other` does.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            discards: other.discards.or(self.discards),
            freed: other.freed.clone().or_else(|| self.freed.clone()),
            plan: other.plan.clone().or_else(|| self.plan.clone()),
            copies_apart: other.copies_apart || self.copies_apart,
            placement: other.placement.clone().or_else(|| self.placement.clone()),
            victim: other.victim.clone().or_else(|| self.victim.clone()),
            over_provisioning: other.over_provisioning.or(self.over_provisioning),
            buffer: other.buffer.or(self.buffer),
            split: other.split.clone().or_else(|| self.split.clone()),
            file_system: other.file_system || self.file_system,
        }
    }

    /// Handles that writes are tagged with; 0 without a plan.
    pub fn handles(&self) -> u16 {
        self.plan.as_ref().map_or(0, |plan| plan.handles)
    }

    /// Whether the drive does something differently, at the same price of flash.
    pub fn is_of_drive(&self) -> bool {
        self.placement.is_some() || self.victim.is_some() || self.buffer.is_some() || self.split.is_some()
    }

    /// Whether the drive hears of what is deleted.
    fn discards(&self, situation: &Situation) -> bool {
        self.discards.unwrap_or(situation.has_trims)
    }

    /// `trace` as it is under this change.
    fn seen(&self, trace: &TraceSource, situation: &Situation) -> TraceSource {
        let without_trims = situation.has_trims && !self.discards(situation);
        match without_trims || self.freed.is_some() || self.plan.is_some() {
            true => {
                View { without_trims, freed: self.freed.clone(), plan: self.plan.clone(), ..View::default() }.of(trace)
            }
            false => trace.clone(),
        }
    }

    /// The run of the situation under this change, on `trace`: the whole, or a part of its addresses, which `survey` is of.
    pub fn run(&self, question: &Question, situation: &Situation, trace: &TraceSource, survey: &Survey) -> RunSpec {
        let trace = self.seen(trace, situation);
        let touched = survey.touched.as_ref().map_or(0, |touched| touched.count());
        let discards = self.discards(situation);
        let mut spec = question.run(trace, survey, situation, discards);
        if let Some(placement) = &self.placement {
            spec.device.placement.name = placement.clone();
        }
        if let Some(victim) = &self.victim {
            spec.device.gc.victim = victim.clone();
        }
        if let Some(plan) = &self.plan {
            let gc = if self.copies_apart { "apart" } else { "same" };
            let streams = format!("streams:count={},gc={gc}", plan.handles.max(2));
            spec.device.placement.name = streams.parse().expect("the placement takes 2 to 64 streams");
        }
        if let Some(to) = self.over_provisioning {
            spare(&mut spec, question, touched, to, discards);
        }
        if let Some(share) = self.buffer {
            let logical = spec.device.device.logical_size.map_or(0, |size| size.0);
            let pages = ((logical as f64 * share) as u64 / PAGE_BYTES).max(1);
            spec.device.dram.size = Some(ByteSize(pages * PAGE_BYTES));
            spec.device.dram.power_loss_protection = true;
        }
        if let Some(split) = &self.split {
            spec.device.dram.split = Some(split.clone());
        }
        if self.file_system {
            between(&mut spec, question, touched);
        }
        spec
    }

    /// Capacity that is given up, or flash that is added, over what there is: one of them, none for most changes.
    pub fn price(&self, question: &Question) -> Price {
        let Some(to) = self.over_provisioning else { return Price::default() };
        let from = question.drive.over_provisioning();
        let capacity = (1.0 + from) / (1.0 + to);
        match fits(question, capacity) {
            true => Price { capacity: capacity - 1.0, flash: 0.0 },
            false => Price { capacity: 0.0, flash: (1.0 + to) / (1.0 + from) - 1.0 },
        }
    }
}

/// What a change costs, as shares of what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Price {
    /// Change of the capacity: 0 or below.
    pub capacity: f64,
    /// Change of the flash: 0 or above.
    pub flash: f64,
}

/// Whether the data fits a drive of `capacity` times as much.
fn fits(question: &Question, capacity: f64) -> bool {
    question.fill <= capacity
}

/// Puts the file system between. Its files are what the trace touches; the log is as large as the drive.
fn between(spec: &mut RunSpec, question: &Question, touched: u64) {
    let pages = spec.device.device.logical_size.map_or(0, |size| size.0) / PAGE_BYTES;
    let segment_pages = (pages / SEGMENTS_MIN).clamp(16, SEGMENT_PAGES_MAX);
    let segment = format!("{FILE_SYSTEM}:segment={}", (1 << segment_pages.ilog2()) * PAGE_BYTES);
    let log = segment.parse().expect("segments of 64 KiB to 32 MiB are possible");
    Choice::Log(log).apply(&mut spec.device);
    Choice::Below(question.ftl.clone()).apply(&mut spec.device);
    if let Some(log) = &mut spec.device.log {
        log.utilisation = Share(question.fill);
        if question.untouched > 0.0 {
            log.fill_mode = FillMode::Filler;
            log.active = Share(question.fill * (1.0 - question.untouched));
        }
    }
    spec.device.device.logical_size = (question.untouched == 0.0).then_some(ByteSize(touched * PAGE_BYTES));
    // What the drive holds beside the files is the log's affair.
    spec.replay.fill = Share(0.0);
}

/// More spare space: the same flash exports less where the data fits that, else there is more flash.
fn spare(spec: &mut RunSpec, question: &Question, touched: u64, to: f64, discards: bool) {
    let capacity = (1.0 + question.drive.over_provisioning()) / (1.0 + to);
    spec.device.device.over_provisioning = Some(Share(to));
    if !fits(question, capacity) {
        return;
    }
    let pages = spec.device.device.logical_size.map_or(0, |size| size.0) / PAGE_BYTES;
    let left = (pages as f64 * capacity) as u64;
    spec.device.device.logical_size = Some(ByteSize(left * PAGE_BYTES));
    let live = if discards { (pages as f64 * question.fill) as u64 } else { left };
    spec.replay.fill = filled(live, touched, left);
}
