//! What can be set when a volume is mounted.

use crate::format::superblock::Superblock;
use crate::geometry::waiting_segments;
use crate::store::BLOCK_BYTES;
use isotherm::hotness::heat::AgeFrom;
use isotherm::hotness::quantise::Criterion;
use isotherm::registry::{PolicyName, SpecError};
use isotherm_sfs::options::{LogOptions, TrimPoint, parse_log};

/// Most bytes of file data in memory where nothing else is said.
const DATA_BYTES_MAX: u64 = 256 << 20;
/// Of these, segments' worth of blocks that were taken out of segments that are being cleaned, at least.
const TAKEN_OUT_SEGMENTS: u64 = 3;

/// Bytes of file data that may wait to be written: half of it where segments are large.
fn files_bytes(segment_bytes: u64) -> u64 {
    DATA_BYTES_MAX.saturating_sub(TAKEN_OUT_SEGMENTS * segment_bytes).max(DATA_BYTES_MAX / 2)
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// The log with its parameters, as it was named.
    pub name: String,
    /// Groups, quantisation, victim policy and deferral: what the segment machine is told. Its sizes are those of the volume.
    pub machine: LogOptions,
    /// Share of segments in use at which cleaning begins.
    pub clean_at: f64,
    /// Bytes of pages that are kept in memory.
    pub cache_bytes: usize,
    /// Bytes of file data that may wait to be written; by default eight segments, fewer on a volume of few, and no more than
    /// leaves room in 256 MiB for three segments that are being cleaned, or half of that.
    pub waiting_bytes: Option<usize>,
    /// Whether segments that are free are discarded.
    pub discard: bool,
    /// No writes at all: not even the checkpoint after a recovery.
    pub read_only: bool,
}

impl Default for LogSettings {
    /// SFS as published: four groups, cost-hotness.
    fn default() -> Self {
        Self::parse("sfs").expect("the registry has it")
    }
}

impl LogSettings {
    /// The log that `name` names: `sfs` or `lfs` with parameters, such as `sfs:groups=6,victim=cost_benefit`.
    ///
    /// # Errors
    /// Unknown name, unknown parameter, or a value out of range.
    pub fn parse(name: &str) -> Result<Self, SpecError> {
        let policy: PolicyName = name.parse()?;
        if !["sfs", "lfs"].contains(&policy.name.as_str()) {
            let problem = format!("there is no log {}", policy.name.as_str());
            return Err(SpecError::new("log", problem, "give sfs, or lfs for a log without groups"));
        }
        let choice = parse_log(&policy, 1)?;
        let mut machine = choice.options;
        if machine.quantiser.criterion == Criterion::Isotherm {
            return Err(SpecError::new(
                "criterion",
                "a volume does not keep how long its blocks have lived, which \"isotherm\" learns from",
                "give iterative, equi_width or equi_height; the log of isotherm run --log takes it",
            ));
        }
        // On the device stands the time of the last modification, as the paper has it.
        machine.age = AgeFrom::Modified;
        machine.trim = TrimPoint::Reusable;
        // A checkpoint needs room for pages: the next segment must not wait for one.
        machine.reusable_first = true;
        Ok(Self {
            name: name.to_owned(),
            machine,
            clean_at: choice.clean_at,
            cache_bytes: 64 << 20,
            waiting_bytes: None,
            discard: true,
            read_only: false,
        })
    }

    /// The same with the sizes of a volume.
    pub(super) fn of_volume(mut self, superblock: &Superblock) -> Self {
        let segment_bytes = u64::from(superblock.segment_blocks) * BLOCK_BYTES as u64;
        let wished = u64::from(waiting_segments(superblock.segments)) * segment_bytes;
        let waiting =
            self.waiting_bytes.map_or(files_bytes(segment_bytes), |bytes| bytes as u64).min(wished.max(segment_bytes));
        self.waiting_bytes = Some(waiting as usize);
        self.machine.segment_blocks = superblock.segment_blocks;
        // What becomes of too much that waits is planned here, with a look at the room for it.
        self.machine.dirty_blocks = usize::MAX;
        self.machine.summary_bytes = crate::format::summary::RECORD_BYTES as u32;
        // The reserve is free on a full volume; cleaning that began there would never end.
        let reserve = superblock.reserve_segments.saturating_sub(2);
        self.machine.clean_below = ((f64::from(superblock.segments) * (1.0 - self.clean_at)) as u32 + 3).min(reserve);
        self
    }

    /// Bytes of blocks that may wait after they were taken out of segments that are being cleaned.
    pub(super) fn taken_out_bytes(&self, superblock: &Superblock) -> u64 {
        let segment_bytes = u64::from(superblock.segment_blocks) * BLOCK_BYTES as u64;
        let rest = DATA_BYTES_MAX.saturating_sub(self.waiting_bytes.map_or(0, |bytes| bytes as u64));
        rest.max(TAKEN_OUT_SEGMENTS * segment_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_memory_for_segments_that_are_being_cleaned() {
        let mebibytes = |segment: u64| files_bytes(segment << 20) >> 20;
        assert_eq!([1, 2, 16, 32, 64, 1024].map(mebibytes), [253, 250, 208, 160, 128, 128]);
    }

    #[test]
    fn groups_by_what_no_volume_keeps_are_refused() {
        let error = LogSettings::parse("sfs:criterion=isotherm").unwrap_err().to_string();
        assert!(error.contains("criterion") && error.contains("give iterative"), "{error}");
    }
}
