//! A static split: the border stays where it is.

use super::sides::{BufferSide, MapJudge, MapSide};
use super::{AnySplit, BuildSplit, Sizes, SplitRule, Tuning, TuningView};
use crate::quantity::ByteSize;
use crate::registry::{Entry, Grain, Kind, Parameter, Parameters, SpecError};

/// A share, or a size of one of the two sides.
const BYTES: &[Kind] = &[Kind::word(&["share"]), Kind::bytes(1..=1 << 50, Grain::Any)];

pub(super) const ENTRY: Entry<BuildSplit> = Entry {
    name: "fixed",
    summary: "a static share for the map; 30% is short for fixed:share=30%",
    paper: "Adaptive partitioning, section I (static partitioning)",
    memory: "none",
    parameters: &[
        Parameter::share("share", 0.0..=1.0, "50%").help("the map's share of the DRAM"),
        Parameter::any("map", BYTES, "share").help("the map's part in bytes, in place of a share"),
        Parameter::any("buffer", BYTES, "share").help("the buffer's part in bytes, in place of a share"),
    ],
    build: |parameters, context| Ok(AnySplit::Fixed(Fixed { share: share(parameters, context.dram_bytes)? })),
};

/// The map's share, from whichever of the three is given.
fn share(parameters: &Parameters<'_>, dram_bytes: u64) -> Result<f64, SpecError> {
    if ["share", "map", "buffer"].iter().filter(|key| parameters.is_given(key)).count() > 1 {
        let problem = "more than one of share, map and buffer is given";
        return Err(SpecError::new("dram.split", problem, "each of them says where the border lies: give one"));
    }
    let of_dram = |key: &str| -> Result<f64, SpecError> {
        let bytes = parameters.bytes(key);
        if bytes > dram_bytes {
            return Err(parameters.refuse(key, format!("at most dram.size, {}", ByteSize(dram_bytes))));
        }
        Ok(bytes as f64 / dram_bytes as f64)
    };
    if !parameters.is("map", "share") {
        of_dram("map")
    } else if !parameters.is("buffer", "share") {
        Ok(1.0 - of_dram("buffer")?)
    } else {
        Ok(parameters.share("share"))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_is_a_share_or_the_size_of_one_side() {
        let share_of = |text: &str| {
            let name = text.parse().unwrap();
            share(&Parameters::new(&name, ENTRY.parameters).unwrap(), 1 << 20).map_err(|e| e.to_string())
        };
        let cases =
            [("fixed", 0.5), ("fixed:share=30%", 0.3), ("fixed:map=256KiB", 0.25), ("fixed:buffer=256KiB", 0.75)];
        for (text, expected) in cases {
            assert_eq!(share_of(text), Ok(expected), "{text}");
        }
        assert!(share_of("fixed:map=2MiB").unwrap_err().contains("dram.size"));
        assert!(share_of("fixed:map=2KiB,share=10%").unwrap_err().contains("give one"));
    }
}
