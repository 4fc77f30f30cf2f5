//! How many segments are cleaned before a checkpoint, and which may be.

use super::Log;
use crate::device::Device;
use isotherm_sfs::machine::Machine;
use isotherm_sfs::segments::SegmentState;

/// Segments that are cleaned between two checkpoints at most.
pub(super) const CLEANED_AT_A_TIME: usize = 32;
/// What a batch gains, over the pages that its checkpoint writes.
const GAIN_OVER_PAGES: f64 = 2.0;
/// Segments of a volume for each that the victim policy chooses among.
const SEGMENTS_A_CANDIDATE: u32 = 32;

/// Segments that are cleaned before a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// How many.
    pub segments: usize,
    /// Segments that this gains.
    pub gain: usize,
    /// Segments that are to be free before, for what is live in these, beside those that stay free for one of them.
    pub headroom: usize,
}

/// Of so many segments, those with the fewest live blocks among which the policy chooses a victim.
///
/// A policy that weighs hotness against utilisation takes fuller segments than it needs where hotness tells little, and where little
/// is free each costs a multiple: among the emptiest it does no harm, and still prefers the cold.
pub(super) fn candidates(segments: u32) -> u32 {
    (segments / SEGMENTS_A_CANDIDATE).max(4)
}

/// The best batch on segments of `payload` blocks, the emptiest of which hold `live` blocks, where a checkpoint writes so many pages.
///
/// Each checkpoint writes the dirty pages, so that a batch has to gain a multiple of these; and what is kept free for it is missing
/// elsewhere, so that the segments that are cleaned next hold more. Both follow from how full the emptiest segments are.
fn batch(live: &[u32], most: usize, payload: f64, pages: usize) -> Batch {
    let full = live.iter().map(|live| f64::from(*live)).sum::<f64>() / (live.len().max(1) as f64 * payload);
    let emptied = (1.0 - full).max(0.01);
    let pages = pages as f64 / payload;
    let segments = (((GAIN_OVER_PAGES * pages).max(pages + 1.0) / emptied).ceil() as usize).clamp(most.min(4), most);
    let gain = ((segments as f64 * emptied) as usize).max(pages.ceil() as usize).max(1);
    Batch { segments, gain, headroom: ((segments as f64 * full).ceil() as usize).saturating_sub(1) }
}

impl<D: Device> Log<D> {
    /// How many segments are best cleaned before a checkpoint, and how many must be free for what is live in them.
    pub(super) fn batch(&self, machine: &Machine) -> Batch {
        let written = machine.counters().segments_written;
        if let Some((when, batch)) = self.batch.get()
            && when == written
        {
            return batch;
        }
        let segments = machine.segments();
        let is_written =
            |segment: &u32| segments.state(*segment) == SegmentState::Written && segments.live(*segment) > 0;
        let mut live: Vec<u32> =
            (0..segments.count()).filter(is_written).map(|segment| segments.live(segment)).collect();
        let most = (segments.count() as usize / 8).clamp(1, CLEANED_AT_A_TIME);
        if live.len() > most {
            live.select_nth_unstable(most - 1);
            live.truncate(most);
        }
        let pages = (self.usage.pages as usize).min(self.dirty_pages_limit());
        let batch = batch(&live, most, self.payload_of_segment() as f64, pages);
        self.batch.set(Some((written, batch)));
        batch
    }

    /// Segments that are best cleaned before the next checkpoint.
    pub fn segments_to_clean(&self) -> usize {
        self.batch(self.machine()).segments
    }
}
