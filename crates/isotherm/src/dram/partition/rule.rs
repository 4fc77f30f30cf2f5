//! The rules that decide where the border lies, and their registry.

use super::sides::{BufferSide, MapJudge, MapSide};
use super::{AdaptivePaper, Fixed, LeastCost, Sizes, adaptive_paper, fixed, least_cost};
use crate::ftl::Profits;
use crate::registry::{Entry, Parameter, Parameters, PolicyName, SpecError, find};

/// What a rule decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuning {
    /// What the map should have from now on.
    pub mapping_bytes: u64,
    /// Nanoseconds of flash time that a byte more of buffer would have saved in the interval.
    pub cost_benefit_buffer: f64,
    /// Nanoseconds of flash time that a byte more of map would have saved.
    pub cost_benefit_mapping: f64,
}

/// Decides where the border lies.
///
/// # Contract
/// - `tune` is called every `interval_requests()` requests; what it returns is brought within the floors.
/// - What it and its sides keep fits in [`Sizes::metadata_bytes_now`].
/// - The decision depends on the calls so far and the seed alone.
pub trait SplitRule {
    /// The map's share of what both sides have, at first.
    fn start_share(&self) -> f64;
    /// Requests between two decisions.
    fn interval_requests(&self) -> u64;
    /// DRAM that the rule takes from both sides, whatever the border.
    fn metadata_bytes(&self) -> u64;
    /// DRAM that it takes for each page that the buffer could have and has not.
    fn ghost_page_bytes(&self) -> u64 {
        0
    }
    /// What it wants to hear of the two sides.
    fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge);
    /// Decides.
    fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning;
}

/// What a rule sees when it decides.
#[derive(Clone, Copy, Debug)]
pub struct TuningView<'a> {
    /// The border now.
    pub sizes: &'a Sizes,
    /// What hits are worth now (Table IV).
    pub profits: &'a Profits,
    /// Recent flash time, decayed by [`WORK_DECAY`](super::WORK_DECAY) an interval, in nanoseconds.
    pub recent_ns: f64,
}

/// What a rule may need to be built.
#[derive(Clone, Copy, Debug)]
pub struct SplitContext {
    /// All of the DRAM.
    pub dram_bytes: u64,
    /// Page size.
    pub page_bytes: u64,
    /// The paper's interval for this FTL, in requests.
    pub paper_interval_requests: u64,
    /// The paper's tuning unit for this FTL.
    pub paper_unit_bytes: u64,
    /// Whether the map is demand-paged, so that it has misses.
    pub is_demand: bool,
    /// Entries of a translation page, or pages of a logical block.
    pub map_page_entries: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// Builds a rule from its checked parameters.
pub type BuildSplit = fn(&Parameters<'_>, &SplitContext) -> Result<AnySplit, SpecError>;

/// Declares the enum that dispatches to every rule, and its implementation of [`SplitRule`].
macro_rules! dispatch {
    ($($variant:ident),* $(,)?) => {
        /// Any rule.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum AnySplit { $($variant($variant)),* }

        impl SplitRule for AnySplit {
            fn start_share(&self) -> f64 {
                match self { $(Self::$variant(rule) => rule.start_share()),* }
            }
            fn interval_requests(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.interval_requests()),* }
            }
            fn metadata_bytes(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.metadata_bytes()),* }
            }
            fn ghost_page_bytes(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.ghost_page_bytes()),* }
            }
            fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge) {
                match self { $(Self::$variant(rule) => rule.sides(sizes)),* }
            }
            fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning {
                match self { $(Self::$variant(rule) => rule.tune(at, buffer, map)),* }
            }
        }
    };
}

dispatch!(Fixed, AdaptivePaper, LeastCost);

/// Every rule.
pub const SPLITS: &[Entry<BuildSplit>] = &[fixed::ENTRY, adaptive_paper::ENTRY, least_cost::ENTRY];

/// The share at which adaptive rules start.
pub(super) const START: Parameter =
    Parameter::share("start", 0.0..=1.0, "50%").help("the map's share at first, of what both sides have");

/// The rule that `name` names, and its name in full; a bare share such as `30%` is a fixed split.
fn find_split(name: &PolicyName) -> Result<(&'static Entry<BuildSplit>, PolicyName), SpecError> {
    let mut name = name.clone();
    if name.name.starts_with(|c: char| c.is_ascii_digit()) {
        name = PolicyName { name: "fixed".to_owned(), parameters: vec![("share".to_owned(), name.to_string())] };
    }
    let or_share = |e: SpecError| SpecError { fix: format!("{}, or give a share such as 30%", e.fix), ..e };
    Ok((find(SPLITS, "dram.split", &name).map_err(or_share)?, name))
}

/// Looks up the rule that `name` names, and the keys of its parameters.
///
/// # Errors
/// Unknown name or parameter.
pub fn check_split(name: &PolicyName) -> Result<(), SpecError> {
    let (entry, name) = find_split(name)?;
    Parameters::new(&name, entry.parameters).map(|_| ())
}

/// Builds the rule that `name` names; a bare share such as `30%` is a fixed split.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn build_split(name: &PolicyName, context: &SplitContext) -> Result<AnySplit, SpecError> {
    let (entry, name) = find_split(name)?;
    (entry.build)(&Parameters::new(&name, entry.parameters)?, context)
}
