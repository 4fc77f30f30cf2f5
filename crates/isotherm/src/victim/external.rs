//! Victims chosen by a program that embeds the simulator: a ranked list of blocks serves many collections.
//!
//! The program is shown every closed block and names as many as it likes, best first. They are cleaned in this order; a block
//! that was cleaned meanwhile for another reason is passed over. When the list is used up, the program is asked again: a list of
//! one block is a full scan for each collection, a longer one is as old as its scan. O(blocks) a scan, O(1) a collection.

use super::{AnyVictim, BuildVictim, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::{BlockTable, Streams};
use crate::registry::{Entry, Parameter, SpecError};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "external",
    summary: "decided by the program that embeds the simulator, in lists that serve many collections",
    paper: "none",
    memory: "1 byte a block, and what the program keeps",
    parameters: &[Parameter::text("class", "a name", "unnamed").help("what the program calls it")],
    build: |_, context| match &context.external {
        Some(policy) => Ok(AnyVictim::External(Box::new(External::new(policy.clone(), context.blocks)))),
        None => Err(SpecError::new(
            "gc.victim",
            "\"external\" stands for a victim policy that a program brings along, and there is none",
            "use it from a program: isotherm.run(trace, victim=MyVictim) in Python",
        )),
    },
};

/// The closed blocks: columns of equal length, in the order of the blocks' numbers.
#[derive(Clone, Debug, Default)]
pub struct ClosedBlocks {
    /// Numbers of the blocks.
    pub blocks: Vec<u32>,
    /// Valid pages.
    pub valid: Vec<u32>,
    /// Ages in host page writes (see [`crate::blocks::AgeBase`]).
    pub ages: Vec<u64>,
    /// Times that each was erased.
    pub erases: Vec<u32>,
    /// Streams that filled them.
    pub streams: Vec<u16>,
    /// Pages in a block.
    pub pages_per_block: u32,
}

/// A victim policy that ranks blocks.
///
/// # Contract
/// - Every block named is one of those shown, and named once. An empty list means that none is worth cleaning.
/// - Blocks in which every page is valid give nothing. They may be named, as by a queue, but after as many of them in a row as there are
///   blocks cleaning would go on for ever.
/// - After an error it is asked nothing more: the device reports it and stops.
pub trait ExternalVictim: Debug + Send {
    /// The blocks to clean, best first.
    ///
    /// # Errors
    /// Why it cannot say, in words.
    fn rank(&mut self, closed: &ClosedBlocks, now: u64) -> Result<Vec<u32>, String>;
}

/// A victim policy that a program brings along. Devices that are cloned share it.
pub type SharedVictim = Arc<Mutex<dyn ExternalVictim>>;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct External {
    policy: SharedVictim,
    /// The list at hand.
    ranking: VecDeque<BlockId>,
    /// Whether a block has been in since the list was made.
    ranked: Vec<bool>,
    closed: ClosedBlocks,
    /// Blocks without an invalid page that were picked one after the other.
    full_in_a_row: u32,
    failure: Option<String>,
}

impl External {
    fn new(policy: SharedVictim, blocks: u32) -> Self {
        Self {
            policy,
            ranking: VecDeque::new(),
            ranked: vec![false; blocks as usize],
            closed: ClosedBlocks::default(),
            full_in_a_row: 0,
            failure: None,
        }
    }

    /// Asks for a new list.
    fn scan(&mut self, blocks: &BlockTable, now: u64) {
        let closed = &mut self.closed;
        closed.pages_per_block = blocks.pages_per_block();
        closed.blocks.clear();
        closed.blocks.extend(blocks.closed().map(|block| block.0));
        let ids = || closed.blocks.iter().copied().map(BlockId);
        closed.valid = ids().map(|block| blocks.valid(block)).collect();
        closed.ages = ids().map(|block| blocks.age(block, now)).collect();
        closed.erases = ids().map(|block| blocks.erases(block)).collect();
        closed.streams = ids().map(|block| blocks.stream(block).0).collect();
        self.ranked.fill(false);
        closed.blocks.iter().for_each(|block| self.ranked[*block as usize] = true);
        let asked = self.policy.lock().unwrap_or_else(PoisonError::into_inner).rank(closed, now);
        let mut unnamed = self.ranked.clone();
        let named = asked.and_then(|named| {
            let wrong = |block: &u32| unnamed.get_mut(*block as usize).is_none_or(|new| !std::mem::take(new));
            match named.iter().copied().find(wrong) {
                Some(block) => Err(format!("it names block {block} twice, or that block is not closed")),
                None => Ok(named),
            }
        });
        match named {
            Ok(named) => self.ranking = named.into_iter().map(BlockId).collect(),
            Err(problem) => {
                self.failure = Some(problem);
                self.rank_emptiest(blocks);
            }
        }
    }

    /// The emptiest block: until a device that has failed stops, it needs an answer.
    fn rank_emptiest(&mut self, blocks: &BlockTable) {
        self.ranking = blocks.closed().min_by_key(|block| blocks.valid(*block)).into_iter().collect();
        self.ranking.iter().for_each(|block| self.ranked[block.0 as usize] = true);
    }

    /// Whether cleaning goes on without gaining a page.
    fn gains_nothing(&mut self, picked: BlockId, blocks: &BlockTable) -> bool {
        let is_full = blocks.valid(picked) == blocks.pages_per_block();
        self.full_in_a_row = if is_full { self.full_in_a_row + 1 } else { 0 };
        self.full_in_a_row as usize > self.ranked.len()
    }

    /// The first of the list that is still in and passes `fits`.
    fn next(&self, fits: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        self.ranking.iter().copied().find(|block| self.ranked[block.0 as usize] && fits(*block))
    }
}

impl VictimPolicy for External {
    fn on_close(&mut self, block: BlockId, _: &BlockTable) {
        self.ranked[block.0 as usize] = false;
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.ranked[block.0 as usize] = false;
        while self.ranking.front().is_some_and(|first| !self.ranked[first.0 as usize]) {
            self.ranking.pop_front();
        }
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.pick_within(blocks, now, Streams::ALL)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        let fits = |block: BlockId| streams.contains(blocks.stream(block));
        let picked = self.next(fits).or_else(|| {
            if self.failure.is_none() {
                self.scan(blocks, now);
            } else {
                self.rank_emptiest(blocks);
            }
            self.next(fits)
        })?;
        if self.failure.is_some() || !self.gains_nothing(picked, blocks) {
            return Some(picked);
        }
        let row = self.full_in_a_row;
        self.failure =
            Some(format!("it named {row} blocks in a row in which every page is valid: cleaning them gains nothing"));
        self.rank_emptiest(blocks);
        self.next(fits)
    }
    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
    fn memory_bytes(&self) -> u64 {
        self.ranked.len() as u64
    }
}
