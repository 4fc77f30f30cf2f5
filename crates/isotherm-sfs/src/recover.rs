//! Roll-forward: where every block lies after a loss of power (Min et al., SFS, FAST'12, which takes it from LFS: Rosenblum &
//! Ousterhout, TOCS 1992).
//!
//! The newest checkpoint says where the blocks lay when it was written. Every segment write since then left a summary with its
//! sequence number. Summaries are replayed in that order up to the first that is missing: what was written after it was
//! never acknowledged, and may rest on what is lost. Costs O(s log s) for `s` summaries, and a step for each block that they name.
//!
//! The functions know no device: they take what a scan of it found. A simulated device never loses power, so that a log that keeps
//! bytes calls them when it starts, and the crash tests do after every operation.

use thiserror::Error;

/// The summary of one segment write, as a scan finds it.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// Number of the segment write.
    pub sequence: u64,
    /// Position of its first data block.
    pub position: u32,
    /// The data blocks, in order of position.
    pub blocks: &'a [u32],
}

/// How far a roll-forward came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Sequence of the last segment write that was replayed; the checkpoint's if there was none.
    pub last: u64,
    /// Highest sequence that the scan found, replayed or not. Before the log writes segments again, it must write a checkpoint of this
    /// sequence: or else summaries that were left out now would be taken for later ones at the next loss of power.
    pub newest: u64,
}

/// What a device cannot hold if this log wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RollForwardError {
    /// A block beyond the end.
    #[error(
        "the summary of segment write {sequence} names block {block}, but the log has blocks 0..{blocks}: the device holds \
         another log or is damaged; format it, or give the size that it was formatted with"
    )]
    UnknownBlock {
        /// The segment write.
        sequence: u64,
        /// The block it names.
        block: u32,
        /// Blocks of the log.
        blocks: usize,
    },
    /// Two summaries of one number.
    #[error(
        "positions {first} and {second} both follow a summary of segment write {sequence}: the device is damaged; format it"
    )]
    Repeated {
        /// The segment write.
        sequence: u64,
        /// Position of the data blocks of one.
        first: u32,
        /// And of the other.
        second: u32,
    },
}

/// Replays the summaries that follow a checkpoint. `positions` holds the position of every block as of the checkpoint, or `None`
/// for one without data, and afterwards the newest ones that are whole. The summaries may come in any order, also those
/// of before the checkpoint.
///
/// # Errors
/// Summaries that no log of this size left; `positions` is of no use then.
pub fn roll_forward(
    checkpoint: u64,
    positions: &mut [Option<u32>],
    summaries: &mut [Summary<'_>],
) -> Result<Replayed, RollForwardError> {
    summaries.sort_unstable_by_key(|summary| summary.sequence);
    let later = &summaries[summaries.partition_point(|summary| summary.sequence <= checkpoint)..];
    if let Some(pair) = later.windows(2).find(|pair| pair[0].sequence == pair[1].sequence) {
        let (sequence, first, second) = (pair[0].sequence, pair[0].position, pair[1].position);
        return Err(RollForwardError::Repeated { sequence, first, second });
    }
    let mut last = checkpoint;
    for summary in later {
        if summary.sequence != last + 1 {
            break;
        }
        last = summary.sequence;
        for (position, block) in (summary.position..).zip(summary.blocks) {
            let (block, blocks) = (*block, positions.len());
            let place = positions.get_mut(block as usize);
            *place.ok_or(RollForwardError::UnknownBlock { sequence: last, block, blocks })? = Some(position);
        }
    }
    Ok(Replayed { last, newest: later.last().map_or(checkpoint, |summary| summary.sequence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(sequence: u64, position: u32, blocks: &[u32]) -> Summary<'_> {
        Summary { sequence, position, blocks }
    }

    #[test]
    fn what_follows_the_checkpoint_is_replayed_in_order_up_to_a_gap() {
        let mut positions = [Some(90), Some(91), None, Some(93)];
        // In the order of a scan; 3 is older than the checkpoint, 6 replaces 5, 8 follows a gap.
        let mut found = [summary(8, 40, &[3]), summary(6, 10, &[1, 2]), summary(3, 30, &[0]), summary(5, 20, &[1])];
        assert_eq!(roll_forward(4, &mut positions, &mut found), Ok(Replayed { last: 6, newest: 8 }));
        assert_eq!(positions, [Some(90), Some(10), Some(11), Some(93)]);
        assert_eq!(roll_forward(9, &mut positions, &mut found), Ok(Replayed { last: 9, newest: 9 }));
        assert_eq!(positions, [Some(90), Some(10), Some(11), Some(93)]);
    }

    #[test]
    fn summaries_of_another_log_are_refused() {
        let (mut positions, blocks) = ([None; 4], 4);
        let unknown = roll_forward(0, &mut positions, &mut [summary(1, 10, &[3, 4])]);
        assert_eq!(unknown, Err(RollForwardError::UnknownBlock { sequence: 1, block: 4, blocks }));
        let repeated = roll_forward(0, &mut positions, &mut [summary(2, 10, &[1]), summary(2, 20, &[1])]);
        assert!(matches!(repeated, Err(RollForwardError::Repeated { sequence: 2, .. })), "{repeated:?}");
    }
}
