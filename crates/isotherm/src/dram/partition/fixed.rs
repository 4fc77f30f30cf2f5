//! A static split: the border stays where it is.

use super::sides::{BufferSide, MapJudge, MapSide};
use super::{AnySplit, BuildSplit, Sizes, SplitRule, Tuning, TuningView};
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildSplit> = Entry {
    name: "fixed",
    summary: "a static share for the map; 30% is short for fixed:share=30%",
    paper: "Adaptive partitioning, section I (static partitioning)",
    memory: "none",
    parameters: &[Parameter::share("share", 0.0..=1.0, "50%").help("the map's share of the DRAM")],
    build: |parameters, _| Ok(AnySplit::Fixed(Fixed { share: parameters.share("share") })),
};

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fixed {
    share: f64,
}

impl SplitRule for Fixed {
    fn start_share(&self) -> f64 {
        self.share
    }
    fn interval_requests(&self) -> u64 {
        // Nothing is decided; the interval only sets how often the share is recorded.
        1000
    }
    fn metadata_bytes(&self) -> u64 {
        0
    }
    fn sides(&self, _: &Sizes) -> (BufferSide, MapJudge) {
        (BufferSide::Off, MapJudge::Off)
    }
    fn tune(&mut self, at: &TuningView<'_>, _: &mut BufferSide, _: &mut MapSide) -> Tuning {
        Tuning { mapping_bytes: at.sizes.mapping_bytes, cost_benefit_buffer: 0.0, cost_benefit_mapping: 0.0 }
    }
}
