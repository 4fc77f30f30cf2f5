//! The largest `(invalid pages)^2 / (expected deaths of the live pages)`: minimum declining cost (Lomet & Luo, ICDE'21) with learnt
//! rates. A block that is about to empty itself is left alone, one whose live pages will stay is cleaned at once.
//!
//! The expected deaths are those of the block's live pages at their present ages (`hotness/lifetime`). They change as time goes by,
//! and are looked up anew where it matters: for the blocks that would be chosen, until one of them stays the best, and for a few
//! others in turn. In between, a block keeps the mean rate of its live pages. The list of a block's pages is what a drive keeps in the
//! block's own last page or spare areas, and reads at each such look.

use super::shortlist::Shortlists;
use super::{AnyVictim, NONE, PageHistory, VictimContext, VictimPolicy, Wanted, Written};
use crate::address::{BlockId, Lpn, Ppn};
use crate::blocks::{BlockState, BlockTable, Streams};
use crate::hotness::lifetime::LifetimeOptions;
use crate::memory;
use crate::nand::{Kind, Move};
use crate::registry::Entry;

pub(super) const ENTRY: Entry<super::BuildVictim> = Entry {
    name: "isotherm",
    summary: "the largest invalid^2 / expected deaths of the live pages, learnt from the lifetimes of pages like them",
    paper: "isotherm (docs/placement.md)",
    memory: "4 bytes a logical page and 60 KiB, kept once with the placement isotherm; 12 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::Isotherm(Isotherm::new(context))),
};

/// Blocks that would be chosen and are looked at anew before a choice, at most.
const CANDIDATES: u32 = 16;
/// Other blocks that are looked at before a choice.
const IN_TURN: u32 = 4;
/// A look goes by every so many-th of the block's live pages, each time by others. Who would be chosen is looked at more closely: of many
/// estimates the smallest is likely to be one that is too small.
const STEP_OF_CANDIDATE: u32 = 2;
const STEP_IN_TURN: u32 = 4;
/// Rate of a page of which nothing is known: it dies once in one write of the logical capacity.
const UNKNOWN_RATE: f32 = 1.0;
/// Not a page of the host.
const NOT_DATA: u32 = u32::MAX;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Isotherm {
    lifetimes: LifetimeOptions,
    /// The logical page of every page.
    owners: Vec<u32>,
    /// Mean death rate of each block's live pages, as of the last look at it.
    rates: Vec<f32>,
    /// Choices so far, and the one before which each block was looked at last.
    choices: u32,
    looked: Vec<u32>,
    shortlists: Shortlists,
    /// The block whose turn is next.
    turn: u32,
}

impl Isotherm {
    fn new(context: &VictimContext) -> Self {
        let pages = context.blocks as usize * context.pages_per_block as usize;
        Self {
            lifetimes: LifetimeOptions::of_drive(context.logical_pages, context.blocks, context.pages_per_block),
            owners: memory::table(pages, NOT_DATA),
            rates: vec![UNKNOWN_RATE; context.blocks as usize],
            choices: 0,
            looked: vec![0; context.blocks as usize],
            shortlists: Shortlists::with_room(context.blocks),
            turn: 0,
        }
    }

    /// Looks up the rates of every `step`-th of a block's live pages.
    fn look(&mut self, block: BlockId, step: u32, blocks: &BlockTable, history: &PageHistory) {
        let index = block.0 as usize;
        self.looked[index] = self.choices;
        let valid = blocks.valid(block);
        if valid == 0 || valid == blocks.pages_per_block() {
            return;
        }
        let (mut sum, mut looked_up) = (0.0, 0);
        let owners = &self.owners;
        let step = step.min(valid);
        let mut skipped = self.choices % step;
        blocks.validity.for_each_valid(block, |at| {
            skipped += 1;
            if skipped < step {
                return;
            }
            (skipped, looked_up) = (0, looked_up + 1);
            let owner = owners[at.0 as usize];
            sum += if owner == NOT_DATA { f64::from(UNKNOWN_RATE) } else { history.lifetimes().rate(Lpn(owner)) };
        });
        self.rates[index] = (sum / f64::from(looked_up)) as f32;
        let rates = &self.rates;
        self.shortlists.offer(block, blocks, |block, _| score(rates, blocks, block));
    }
}

#[inline(always)]
fn score(rates: &[f32], blocks: &BlockTable, block: BlockId) -> f64 {
    let valid = blocks.valid(block);
    if valid == 0 {
        return f64::INFINITY;
    }
    let invalid = f64::from(blocks.pages_per_block() - valid);
    invalid * invalid / (f64::from(valid) * f64::from(rates[block.0 as usize]))
}

impl VictimPolicy for Isotherm {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.rates[block.0 as usize] = UNKNOWN_RATE;
        self.looked[block.0 as usize] = self.choices.wrapping_sub(1);
        if blocks.valid(block) < blocks.pages_per_block() {
            self.on_invalidate(block, blocks);
        }
    }
    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        let rates = &self.rates;
        self.shortlists.offer(block, blocks, |block, _| score(rates, blocks, block));
    }
    fn watches_pages(&self) -> bool {
        true
    }
    fn wanted(&self) -> Wanted {
        Wanted { lifetimes: self.lifetimes, ..Wanted::default() }
    }
    #[inline(always)]
    fn on_program(&mut self, at: Ppn, written: Written, history: &mut PageHistory) {
        self.owners[at.0 as usize] = match written {
            Written::Host(lpn, now) => {
                history.lifetimes_mut().record(lpn, now);
                lpn.0
            }
            Written::Meta(_) => NOT_DATA,
        };
    }
    fn on_copies(&mut self, moves: &[Move]) {
        for page in moves {
            self.owners[page.to.0 as usize] =
                if page.owner.kind() == Kind::Data { page.owner.address() } else { NOT_DATA };
        }
    }
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.shortlists.remove(block);
    }
    fn refresh(&mut self, blocks: &BlockTable, streams: Streams, history: &PageHistory) {
        self.choices = self.choices.wrapping_add(1);
        for _ in 0..IN_TURN {
            let block = BlockId(self.turn);
            self.turn = if self.turn + 1 == blocks.blocks() { 0 } else { self.turn + 1 };
            if blocks.state(block) == BlockState::Closed {
                self.look(block, STEP_IN_TURN, blocks, history);
            }
        }
        for _ in 0..CANDIDATES {
            match self.pick_within(blocks, 0, streams) {
                Some(block) if self.looked[block.0 as usize] != self.choices => {
                    self.look(block, STEP_OF_CANDIDATE, blocks, history);
                }
                _ => break,
            }
        }
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.pick_within(blocks, now, Streams::ALL)
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let rates = &self.rates;
        // Between two looks scores do not change with time.
        self.shortlists.best(blocks, streams, 0, |block, _| score(rates, blocks, block))
    }
    fn memory_bytes(&self) -> u64 {
        (self.rates.len() * 8) as u64 + self.shortlists.bytes()
    }
    fn simulator_bytes(&self) -> u64 {
        self.memory_bytes() + self.owners.len() as u64 * 4
    }
}
