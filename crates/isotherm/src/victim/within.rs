//! Picking among the blocks of some streams, for placements that divide the space among them.
//!
//! Policies keep their orders over all blocks, and a stream's best may lie anywhere in them. So one scan of the streams' closed
//! blocks keeps the best few, and picks compare these until half of them are gone: a block outside may overtake them
//! meanwhile, and the choice differs from a full scan's seldom and by little. O(blocks) a scan, one scan in eight picks.
//! Policies whose scores only rise with time need no such list (`shortlist`).

use crate::address::BlockId;
use crate::blocks::Streams;
use crate::blocks::{BlockState, BlockTable};

/// Blocks that a scan keeps.
const KEPT: usize = 16;

/// The best blocks of each group of streams that was asked for; nothing until one is.
#[derive(Clone, Debug, Default)]
pub(super) struct Within {
    lists: Vec<(Streams, Vec<BlockId>)>,
    scored: Vec<(f64, BlockId)>,
}

impl Within {
    /// The closed block of `streams` with the largest score that is not full; the first in number among equals.
    pub(super) fn best(
        &mut self,
        blocks: &BlockTable,
        streams: Streams,
        score: impl Fn(BlockId) -> f64,
    ) -> Option<BlockId> {
        let at = self.lists.iter().position(|(of, _)| *of == streams).unwrap_or_else(|| {
            self.lists.push((streams, Vec::with_capacity(KEPT)));
            self.lists.len() - 1
        });
        let members = &mut self.lists[at].1;
        // Blocks may have been cleaned, and filled by another stream, since the list was made.
        members.retain(|b| blocks.state(*b) == BlockState::Closed && streams.contains(blocks.stream(*b)));
        if members.len() <= KEPT / 2 {
            let open_to_choice = blocks.closed_of(streams).filter(|b| blocks.valid(*b) < blocks.pages_per_block());
            self.scored.clear();
            self.scored.extend(open_to_choice.map(|b| (score(b), b)));
            if self.scored.len() > KEPT {
                self.scored.select_nth_unstable_by(KEPT, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                self.scored.truncate(KEPT);
            }
            members.clear();
            members.extend(self.scored.iter().map(|(_, block)| *block));
        }
        let scores = members.iter().map(|b| (score(*b), *b));
        scores.reduce(|a, b| if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a }).map(|best| best.1)
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.lists.len() * KEPT * size_of::<BlockId>() + self.scored.capacity() * size_of::<(f64, BlockId)>()) as u64
    }
}
