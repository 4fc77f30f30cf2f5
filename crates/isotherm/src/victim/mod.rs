//! Victim policies: which closed block to clean next.
//!
//! A policy is one file plus one line in the table of this one (`victims!`). It holds no NAND: it hears of blocks that close,
//! lose a page or leave, and picks among the closed ones.

mod closed_set;
mod live_sums;
mod shortlist;

use crate::address::{BlockId, Lpn, Ppn};
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::nand::Move;
use crate::registry::{Entry, Parameter, Parameters, PolicyName, SpecError, find};
use crate::stats::Snapshot;

pub use crate::hotness::history::{PageHistory, Wanted};
pub use external::{ClosedBlocks, ExternalVictim, SharedVictim};

/// What a page that was just programmed holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// A host write of this page at this time, in host page writes.
    Host(Lpn, u64),
    /// A page that the FTL composed, or one whose history was lost, at this time.
    Meta(u64),
}

/// Chooses blocks to clean.
///
/// # Contract
/// - A block enters with `on_close` and leaves with `on_remove`; between the two it may lose pages (`on_invalidate`, called
///   after its count of valid pages went down by one). Deaths that leave more valid pages in it than `heeds_up_to` may be kept
///   from the policy.
/// - A policy that wants a history also `watches_pages`.
/// - To a policy that `watches_pages`, every page programmed is told by `on_program`, by `on_copies` when it moves, and by
///   `on_page_death` when it is overwritten or trimmed.
/// - `pick` returns a block that is in, or `None` if no block is worth cleaning. It does not remove the block.
/// - The choice depends on the calls so far and the seed alone.
pub trait VictimPolicy {
    /// A block is full and may be cleaned from now on.
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable);
    /// A page of a closed block became invalid.
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable);
    /// Valid pages above which it makes no difference to the policy that a block lost one, until the next pick.
    #[inline(always)]
    fn heeds_up_to(&self) -> u32 {
        u32::MAX
    }
    /// Whether the policy keeps something for every page; the same as long as it lives.
    fn watches_pages(&self) -> bool {
        false
    }
    /// What the policy judges by that is kept once for it and the placement.
    fn wanted(&self) -> Wanted {
        Wanted::default()
    }
    /// A page was programmed. A policy that judges by the history records host writes there.
    #[inline(always)]
    fn on_program(&mut self, _at: Ppn, _written: Written, _history: &mut PageHistory) {}
    /// Pages were copied, and live where they went.
    #[inline(always)]
    fn on_copies(&mut self, _moves: &[Move]) {}
    /// A page holds no current data any more.
    #[inline(always)]
    fn on_page_death(&mut self, _at: Ppn) {}
    /// A block is being cleaned, whoever chose it, or retired.
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable);
    /// A choice among the blocks of `streams` is about to be asked for: brings up to date what the policy keeps of blocks by the
    /// history of their pages.
    #[inline(always)]
    fn refresh(&mut self, _blocks: &BlockTable, _streams: Streams, _history: &PageHistory) {}
    /// The block to clean next; `now` counts host page writes.
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId>;
    /// The block of `streams` to clean next, by the same rule, for placements that divide the space.
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId>;
    /// The block that the next call of `pick` will probably name, where that is known for free.
    fn upcoming(&mut self) -> Option<BlockId> {
        None
    }
    /// The block that will probably follow the one that `upcoming` has just named.
    fn following(&mut self) -> Option<BlockId> {
        None
    }
    /// Brings what host writes of `lpns` will touch towards the cache, for a policy that `watches_pages`.
    #[inline(always)]
    fn prefetch(&self, _lpns: impl Iterator<Item = Lpn>) {}
    /// Brings what the deaths of `pages` will touch towards the cache, for a policy that `watches_pages`.
    #[inline(always)]
    fn prefetch_pages(&self, _pages: impl Iterator<Item = Ppn>) {}
    /// Why the policy could not decide, once that happened: its choices mean nothing from then on.
    fn failure(&self) -> Option<&str> {
        None
    }
    /// Adds what the policy counted to `snapshot`.
    fn fill_snapshot(&self, _snapshot: &mut Snapshot) {}
    /// Bytes that a drive's firmware would keep in DRAM for the policy, the history that is shared aside.
    fn memory_bytes(&self) -> u64;
    /// Bytes that the simulator keeps for it instead, the history aside.
    fn simulator_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

/// What a victim policy may need to be built.
#[derive(Clone, Debug, Default)]
pub struct VictimContext {
    /// Number of blocks.
    pub blocks: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Logical pages.
    pub logical_pages: u32,
    /// Seed of the run.
    pub seed: u64,
    /// What decides for the policy `external`.
    pub external: Option<SharedVictim>,
}

/// Builds a policy from its checked parameters.
pub type BuildVictim = fn(&Parameters<'_>, &VictimContext) -> Result<AnyVictim, SpecError>;

/// Declares every policy, one line each (its module and its type): the enum that dispatches to it, and the table of entries.
/// The last one has no name that a user could give.
macro_rules! victims {
    ($($module:ident :: $variant:ident),* $(,)?; $unnamed:ident :: $other:ident in $held:ty) => {
        mod $unnamed;
        $(
            mod $module;
            pub use $module::$variant;
        )*

        /// Any victim policy: a branch instead of a virtual call, so that policies inline into the block store.
        // A tag of its own: one hidden in a variant's pointer takes six instructions a call to read.
        #[repr(u8)]
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum AnyVictim { $($variant($variant),)* $other($held) }

        impl VictimPolicy for AnyVictim {
            #[inline(always)]
            fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
                match self { $(Self::$variant(policy) => policy.on_close(block, blocks),)* Self::$other(policy) => policy.on_close(block, blocks) }
            }
            #[inline(always)]
            fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
                match self { $(Self::$variant(policy) => policy.on_invalidate(block, blocks),)* Self::$other(policy) => policy.on_invalidate(block, blocks) }
            }
            #[inline(always)]
            fn heeds_up_to(&self) -> u32 {
                match self { $(Self::$variant(policy) => policy.heeds_up_to(),)* Self::$other(policy) => policy.heeds_up_to() }
            }
            fn watches_pages(&self) -> bool {
                match self { $(Self::$variant(policy) => policy.watches_pages(),)* Self::$other(policy) => policy.watches_pages() }
            }
            fn wanted(&self) -> Wanted {
                match self { $(Self::$variant(policy) => policy.wanted(),)* Self::$other(policy) => policy.wanted() }
            }
            #[inline(always)]
            fn on_program(&mut self, at: Ppn, written: Written, history: &mut PageHistory) {
                match self { $(Self::$variant(policy) => policy.on_program(at, written, history),)* Self::$other(policy) => policy.on_program(at, written, history) }
            }
            #[inline(always)]
            fn on_copies(&mut self, moves: &[Move]) {
                match self { $(Self::$variant(policy) => policy.on_copies(moves),)* Self::$other(policy) => policy.on_copies(moves) }
            }
            #[inline(always)]
            fn on_page_death(&mut self, at: Ppn) {
                match self { $(Self::$variant(policy) => policy.on_page_death(at),)* Self::$other(policy) => policy.on_page_death(at) }
            }
            #[inline(always)]
            fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
                match self { $(Self::$variant(policy) => policy.on_remove(block, blocks),)* Self::$other(policy) => policy.on_remove(block, blocks) }
            }
            fn refresh(&mut self, blocks: &BlockTable, streams: Streams, history: &PageHistory) {
                match self { $(Self::$variant(policy) => policy.refresh(blocks, streams, history),)* Self::$other(policy) => policy.refresh(blocks, streams, history) }
            }
            #[inline(always)]
            fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
                match self { $(Self::$variant(policy) => policy.pick(blocks, now),)* Self::$other(policy) => policy.pick(blocks, now) }
            }
            fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
                match self { $(Self::$variant(policy) => policy.pick_within(blocks, now, streams),)* Self::$other(policy) => policy.pick_within(blocks, now, streams) }
            }
            #[inline(always)]
            fn upcoming(&mut self) -> Option<BlockId> {
                match self { $(Self::$variant(policy) => policy.upcoming(),)* Self::$other(policy) => policy.upcoming() }
            }
            #[inline(always)]
            fn following(&mut self) -> Option<BlockId> {
                match self { $(Self::$variant(policy) => policy.following(),)* Self::$other(policy) => policy.following() }
            }
            #[inline(always)]
            fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
                match self { $(Self::$variant(policy) => policy.prefetch(lpns),)* Self::$other(policy) => policy.prefetch(lpns) }
            }
            #[inline(always)]
            fn prefetch_pages(&self, pages: impl Iterator<Item = Ppn>) {
                match self { $(Self::$variant(policy) => policy.prefetch_pages(pages),)* Self::$other(policy) => policy.prefetch_pages(pages) }
            }
            fn failure(&self) -> Option<&str> {
                match self { $(Self::$variant(policy) => policy.failure(),)* Self::$other(policy) => policy.failure() }
            }
            fn fill_snapshot(&self, snapshot: &mut Snapshot) {
                match self { $(Self::$variant(policy) => policy.fill_snapshot(snapshot),)* Self::$other(policy) => policy.fill_snapshot(snapshot) }
            }
            fn memory_bytes(&self) -> u64 {
                match self { $(Self::$variant(policy) => policy.memory_bytes(),)* Self::$other(policy) => policy.memory_bytes() }
            }
            fn simulator_bytes(&self) -> u64 {
                match self { $(Self::$variant(policy) => policy.simulator_bytes(),)* Self::$other(policy) => policy.simulator_bytes() }
            }
        }

        /// Every victim policy.
        pub const VICTIMS: &[Entry<BuildVictim>] = &[$($module::ENTRY),*];
    };
}

victims! {
    greedy::Greedy,
    cost_benefit::CostBenefit,
    fifo::Fifo,
    random::RandomVictim,
    d_choices::DChoices,
    windowed::Windowed,
    cat::Cat,
    cost_hotness::CostHotness,
    mdc::Mdc,
    isotherm::Isotherm;
    external::External in Box<external::External>
}

/// The entry of the policy that `name` names.
fn entry(name: &PolicyName) -> Result<&'static Entry<BuildVictim>, SpecError> {
    // A program that embeds the simulator brings this one along; a list of what can be named has no place for it.
    if name.name == external::ENTRY.name { Ok(&external::ENTRY) } else { find(VICTIMS, "gc.victim", name) }
}

/// Looks up a policy, and the keys of its parameters.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn check_victim(name: &PolicyName) -> Result<(), SpecError> {
    Parameters::new(name, entry(name)?.parameters).map(|_| ())
}

/// No parameters.
const NONE: &[Parameter] = &[];

/// Builds the policy that `name` names.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn build_victim(name: &PolicyName, context: &VictimContext) -> Result<AnyVictim, SpecError> {
    let entry = entry(name)?;
    (entry.build)(&Parameters::new(name, entry.parameters)?, context)
}
