//! The largest `(invalid pages)^2 / (expected deaths of the live pages)`: minimum declining cost (Lomet & Luo, ICDE'21) with learnt
//! rates. A block that is about to empty itself is left alone, one whose live pages will stay is cleaned at once.
//!
//! That is the best index where deaths are independent and their rates certain. Learnt rates are not: of many blocks the one whose rate was
//! estimated too low is chosen, the sooner the longer blocks wait. So live pages count by themselves too, beside their deaths: their number
//! has the exponent of one plus the over-provisioning, and of two where pages die together (a block's live pages then die all or none, and the
//! mean of their rates tells little of when).
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
    memory: "4 bytes a logical page and 60 KiB, kept once with the placement isotherm; 12 bytes a block, 8 for each page of one",
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
/// Exponent of the number of live pages where pages die together.
const EXPONENT_TOGETHER: f64 = 2.0;
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
    /// Scores at a rate of one, by the number of live pages: where deaths are independent, and where pages die together.
    gains: [Gains; 2],
    /// Whether choices go by the latter.
    die_together: bool,
    /// The block whose turn is next.
    turn: u32,
    /// Owners of the pages that are looked up.
    looked_up: Vec<u32>,
}

/// `(invalid pages)^2` over the number of live pages with an exponent, by that number.
#[derive(Clone, Debug)]
struct Gains(Box<[f32]>);

impl Gains {
    fn new(pages_per_block: u32, exponent: f64) -> Self {
        let gain = |valid: u32| {
            let invalid = f64::from(pages_per_block - valid);
            // Without live pages infinite: nothing can be better.
            (invalid * invalid / libm::pow(valid.into(), exponent)) as f32
        };
        Self((0..=pages_per_block).map(gain).collect())
    }
}

impl Isotherm {
    fn new(context: &VictimContext) -> Self {
        let pages = context.blocks as usize * context.pages_per_block as usize;
        let lifetimes = LifetimeOptions::of_drive(context.logical_pages, context.blocks, context.pages_per_block);
        let over_provisioning = f64::from(lifetimes.spare_pages) / f64::from(lifetimes.logical_pages.max(1));
        Self {
            lifetimes,
            gains: [1.0 + over_provisioning, EXPONENT_TOGETHER]
                .map(|exponent| Gains::new(context.pages_per_block, exponent)),
            die_together: false,
            owners: memory::table(pages, NOT_DATA),
            rates: vec![UNKNOWN_RATE; context.blocks as usize],
            choices: 0,
            looked: vec![0; context.blocks as usize],
            shortlists: Shortlists::with_room(context.blocks),
            turn: 0,
            looked_up: Vec::with_capacity(context.pages_per_block as usize),
        }
    }

    /// Scores are those of pages that die together, or of pages that do not.
    fn go_by(&mut self, die_together: bool, blocks: &BlockTable) {
        if die_together != self.die_together {
            // Every score is another one.
            self.die_together = die_together;
            self.shortlists = Shortlists::with_room(blocks.blocks());
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
        let lifetimes = history.lifetimes();
        let (owners, looked_up) = (&self.owners, &mut self.looked_up);
        let step = step.min(valid);
        let mut skipped = self.choices % step;
        looked_up.clear();
        // What is known of pages lies anywhere in a large table: it is fetched side by side before the first is read.
        blocks.validity.for_each_valid(block, |at| {
            skipped += 1;
            if skipped < step {
                return;
            }
            skipped = 0;
            let owner = owners[at.0 as usize];
            if owner != NOT_DATA {
                lifetimes.prefetch([Lpn(owner)].into_iter());
            }
            looked_up.push(owner);
        });
        let rate = |owner| if owner == NOT_DATA { f64::from(UNKNOWN_RATE) } else { lifetimes.rate(Lpn(owner)) };
        let sum = looked_up.iter().map(|owner| rate(*owner)).sum::<f64>();
        self.rates[index] = (sum / looked_up.len() as f64) as f32;
        let (gains, rates) = (&self.gains[usize::from(self.die_together)], &self.rates);
        self.shortlists.offer(block, blocks, |block, _| score(gains, rates, blocks, block));
    }
}

#[inline(always)]
fn score(gains: &Gains, rates: &[f32], blocks: &BlockTable, block: BlockId) -> f64 {
    f64::from(gains.0[blocks.valid(block) as usize]) / f64::from(rates[block.0 as usize])
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
        let (gains, rates) = (&self.gains[usize::from(self.die_together)], &self.rates);
        self.shortlists.offer(block, blocks, |block, _| score(gains, rates, blocks, block));
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
        self.go_by(history.lifetimes().die_together(), blocks);
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
        let (gains, rates) = (&self.gains[usize::from(self.die_together)], &self.rates);
        // Between two looks scores do not change with time.
        self.shortlists.best(blocks, streams, 0, |block, _| score(gains, rates, blocks, block))
    }
    fn memory_bytes(&self) -> u64 {
        let gains: usize = self.gains.iter().map(|gains| size_of_val(&*gains.0)).sum();
        (self.rates.len() * 8 + gains) as u64 + self.shortlists.bytes()
    }
    fn simulator_bytes(&self) -> u64 {
        self.memory_bytes() + self.owners.len() as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::AgeBase;

    const PAGES_PER_BLOCK: u32 = 64;

    fn of(logical_pages: u32, blocks: u32) -> Isotherm {
        Isotherm::new(&VictimContext {
            blocks,
            pages_per_block: PAGES_PER_BLOCK,
            logical_pages,
            seed: 1,
            external: None,
        })
    }

    #[test]
    fn live_pages_count_the_more_the_larger_the_spare_space_and_most_where_pages_die_together() {
        // What a block with half of its pages live scores in those of one with a quarter: (1/2 : 3/4)^2 over 2 to the exponent.
        let halves = |gains: &Gains| f64::from(gains.0[32]) / f64::from(gains.0[16]);
        let expected = |exponent: f64| (2.0f64 / 3.0).powi(2) / 2f64.powf(exponent);
        for (logical, exponent) in [(64 * 100, 1.0), (64 * 80, 1.25), (64 * 50, 2.0)] {
            let policy = of(logical, 100);
            assert!((halves(&policy.gains[0]) / expected(exponent) - 1.0).abs() < 1e-6, "{}", halves(&policy.gains[0]));
            assert!((halves(&policy.gains[1]) / expected(2.0) - 1.0).abs() < 1e-6, "{}", halves(&policy.gains[1]));
            for gains in &policy.gains {
                assert!(gains.0.is_sorted_by(|less, more| less > more), "fewer live pages are better");
                assert_eq!((gains.0[0], gains.0[PAGES_PER_BLOCK as usize]), (f32::INFINITY, 0.0));
            }
        }
    }

    #[test]
    fn a_choice_is_made_anew_where_pages_begin_to_die_together() {
        let mut blocks = BlockTable::new(2, PAGES_PER_BLOCK.ilog2() as u8, AgeBase::Closed);
        let mut policy = of(2 * PAGES_PER_BLOCK, 2);
        // The block with more live pages wins by its lower rate, but not where the number of live pages counts twice.
        for (block, live, rate) in [(0, 32, 0.15), (1, 16, 1.0)] {
            let block = BlockId(block);
            blocks.validity.set_run(Ppn(block.0 * PAGES_PER_BLOCK), live);
            blocks.validity.set_state(block, BlockState::Closed);
            policy.on_close(block, &blocks);
            policy.rates[block.0 as usize] = rate;
        }
        assert_eq!(policy.pick(&blocks, 0), Some(BlockId(0)));
        policy.go_by(true, &blocks);
        assert_eq!(policy.pick(&blocks, 0), Some(BlockId(1)));
        // What was noted of blocks meanwhile holds no longer.
        (0..2).for_each(|block| policy.on_invalidate(BlockId(block), &blocks));
        policy.go_by(false, &blocks);
        assert_eq!(policy.pick(&blocks, 0), Some(BlockId(0)));
    }
}
