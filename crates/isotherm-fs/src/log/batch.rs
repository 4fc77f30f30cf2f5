//! How many segments are cleaned before a checkpoint, and which may be.

use super::Log;
use isotherm_sfs::machine::Machine;
use isotherm_sfs::segments::SegmentState;

/// Segments that are cleaned between two checkpoints at most.
pub(super) const CLEANED_AT_A_TIME: usize = 32;
/// What a batch gains, over the pages that its checkpoint writes.
const GAIN_OVER_PAGES: u64 = 3;
/// Segments of a volume for each that the victim policy chooses among.
const SEGMENTS_A_CANDIDATE: u32 = 24;

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

/// Of so many segments, those with the fewest live blocks among which the policy chooses a victim; where room is short the one with the fewest.
///
/// A policy that weighs hotness against utilisation takes fuller segments than it needs where hotness tells little, and where little
/// is free each costs a multiple: among the emptiest it does no harm, and still prefers the cold.
pub(super) fn victims(segments: u32, room_is_short: bool) -> u32 {
    if room_is_short { 1 } else { (segments / SEGMENTS_A_CANDIDATE).max(4) }
}

/// The best batch on segments of `payload` blocks, the emptiest of which hold `live` blocks, where a checkpoint writes so many pages.
///
/// Each checkpoint writes the dirty pages, so that a batch has to gain a multiple of these; and what is kept free for it is missing
/// elsewhere, so that the segments that are cleaned next hold more. Both follow from how full the emptiest segments are.
fn batch(live: &[u32], most: usize, payload: u64, pages: u64) -> Batch {
    let blocks = live.len().max(1) as u64 * payload;
    let full: u64 = live.iter().map(|live| u64::from(*live)).sum();
    // Where nothing is to be won, as many as may be. A segment that was written at once has fewer summaries than `payload` leaves
    // room for, and may hold more.
    let emptied = blocks.saturating_sub(full).max(1);
    let wanted = (GAIN_OVER_PAGES * pages).max(pages + payload);
    let segments = ((wanted * blocks).div_ceil(emptied * payload) as usize).clamp(most.min(4), most);
    let gain = (segments as u64 * emptied / blocks).max(pages.div_ceil(payload)).max(1);
    let headroom = (segments as u64 * full).div_ceil(blocks).saturating_sub(1);
    Batch { segments, gain: gain as usize, headroom: headroom as usize }
}

impl Log {
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
        let pages = self.usage.pages.min(self.dirty_pages_limit() as u64);
        let batch = batch(&live, most, self.payload_of_segment(), pages);
        self.batch.set(Some((written, batch)));
        batch
    }

    /// Segments that are best cleaned before the next checkpoint.
    pub fn segments_to_clean(&self) -> usize {
        self.batch(self.machine()).segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u64 = 500;

    #[test]
    fn a_batch_gains_a_multiple_of_its_checkpoint() {
        // Half of each segment is won: twelve for two segments of pages, which gain six.
        assert_eq!(batch(&[250; 16], 16, PAYLOAD, 1000), Batch { segments: 12, gain: 6, headroom: 5 });
        // A fifth: thirty.
        assert_eq!(batch(&[400; 32], 32, PAYLOAD, 1000), Batch { segments: 30, gain: 6, headroom: 23 });
        // Four at least, as long as there are so many.
        assert_eq!(batch(&[5; 16], 16, PAYLOAD, 10), Batch { segments: 4, gain: 3, headroom: 0 });
        assert_eq!(batch(&[250; 2], 2, PAYLOAD, 10), Batch { segments: 2, gain: 1, headroom: 0 });
    }

    #[test]
    fn a_batch_gains_a_segment_over_its_checkpoint_where_that_is_small() {
        // A twentieth is won of each, and pages take a quarter of a segment: 3 x .25 would be lost to rounding.
        let few = batch(&[475; 32], 32, PAYLOAD, 125);
        assert_eq!(few, Batch { segments: 25, gain: 1, headroom: 23 });
        assert!(few.segments * 25 >= 125 + 500);
    }

    #[test]
    fn a_batch_has_a_limit() {
        let full = batch(&[500; 16], 16, PAYLOAD, 1000);
        assert_eq!(full, Batch { segments: 16, gain: 2, headroom: 15 });
        let fuller = batch(&[503; 16], 16, PAYLOAD, 1000);
        assert_eq!(fuller, Batch { segments: 16, gain: 2, headroom: 16 });
        assert_eq!(batch(&[], 1, PAYLOAD, 0), Batch { segments: 1, gain: 1, headroom: 0 });
    }

    #[test]
    fn victims_are_a_share_of_the_segments_or_the_emptiest_one() {
        assert_eq!([1, 96, 480, 4800].map(|segments| victims(segments, false)), [4, 4, 20, 200]);
        assert_eq!(victims(4800, true), 1);
    }
}
