//! Cleaning: pick a victim, copy what is valid, tell the map, erase.
//!
//! The steps are free functions over the block store and the map above it, because both change while a page moves.

use super::BlockStore;
use super::levelling::level_wear;
use crate::address::{BlockId, Ppn, StreamId};
use crate::blocks::{BlockState, Streams};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::clock::Clock as _;
use crate::nand::{Medium, Move, Owner};
use crate::placement::{Placement, Reclaim, VictimSource};
use crate::store::tombstones::MapEntry;
use crate::victim::VictimPolicy;

/// What stands above a block store: it maps addresses to pages, and must hear where pages go.
///
/// # Contract
/// - `relocate` hears of every page moved out of a victim before the victim is erased. A victim may mix kinds of pages;
///   moves of the mapping's own pages must be applied before those of data.
/// - None of these calls starts another collection; pages appended here come out of the collector's reserve.
pub trait Mapping<M, P, V> {
    /// Brings the map's entry of a page towards the cache.
    fn prefetch(&self, _owner: Owner) {}
    /// The pages of `moves` are about to be copied.
    ///
    /// # Errors
    /// Faults of the medium.
    fn before_copy(&mut self, _store: &mut BlockStore<M, P, V>, _moves: &[Move]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Where pages of data are, if that is all that is to be changed when one of them moves. Then neither `before_copy` nor `relocate`
    /// need hear of pages of data.
    fn entries(&mut self) -> Option<&mut [MapEntry]> {
        None
    }
    /// The pages of `moves` have been copied.
    ///
    /// # Errors
    /// Faults of the medium, or no space.
    fn relocate(&mut self, store: &mut BlockStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError>;
    /// `block` holds nothing valid and is about to be erased.
    ///
    /// # Errors
    /// Faults of the medium, or no space.
    fn before_erase(&mut self, _store: &mut BlockStore<M, P, V>, _block: BlockId) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Makes sure that `stream` can take a page, and that the collector's reserve is whole before it is written.
///
/// # Errors
/// No space, or faults of the medium.
#[inline(always)]
pub fn make_room<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    stream: StreamId,
) -> Result<(), DeviceError> {
    if !store.needs_collection(stream) && store.failing.is_empty() {
        return Ok(());
    }
    clean_for(store, map, stream)
}

#[inline(never)]
fn clean_for<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    stream: StreamId,
) -> Result<(), DeviceError> {
    // First, since it may close the block that a stream is filling.
    level_wear(store, map)?;
    // Policies that do not look at valid pages may clean full blocks; one turn over the whole device frees a block if
    // anything can.
    let mut attempts = 2 * u64::from(store.blocks.blocks());
    // A placement that names blocks itself may name full ones, which free nothing: as many as it has streams, since what one gives up may
    // be too much for the next. Without a limit, every write might copy the whole device.
    let mut full_blocks = store.data_streams;
    loop {
        while store.needs_collection(stream) {
            let victim = if attempts > 0 { store.next_victim(stream, full_blocks > 0) } else { None };
            let Some(victim) = victim else {
                // The rest of the block that levelled data fills is the last to be had.
                if let Some(block) = store.levelled_block() {
                    store.close_block(store.levelled_slot(), block, BlockState::Closed);
                    continue;
                }
                // Without garbage the reserve is the last resort: a device filled exactly to its brim is still usable.
                return if store.has_room(stream) || store.free_blocks() > 0 { Ok(()) } else { Err(store.no_space()) };
            };
            if store.blocks.valid(victim) == store.blocks.pages_per_block() {
                full_blocks = full_blocks.saturating_sub(1);
            }
            collect(store, map, victim, Cause::Gc)?;
            attempts -= 1;
        }
        // Emptying a failing block frees none, so the reserve it takes must be whole, and is made so again.
        let Some(block) = store.failing.pop() else { break };
        collect(store, map, block, Cause::Gc)?;
    }
    Ok(())
}

/// Cleans in idle time, as long as `budget_ns` lasts and fewer than `wanted` blocks are free.
///
/// # Errors
/// No space, or faults of the medium.
pub fn collect_idle<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    budget_ns: u64,
    wanted: u32,
) -> Result<(), DeviceError> {
    let mut left_ns = budget_ns;
    while (store.free.len() as u32) < wanted && store.used_pages > store.valid_pages {
        let Some(victim) = store.choose_victim(true) else { break };
        let valid = store.blocks.valid(victim);
        let cost_ns = store.medium.clock().collection_ns(valid);
        // A nearly full victim frees too little to be worth its wear: leave it until it has to be cleaned.
        if cost_ns > left_ns || valid + valid / 8 >= store.blocks.pages_per_block() {
            break;
        }
        left_ns -= cost_ns;
        collect(store, map, victim, Cause::Gc)?;
        store.counters.background_collections += 1;
        left_ns = left_ns.saturating_sub(level_wear(store, map)?);
    }
    Ok(())
}

/// Empties `victim` and erases it.
pub(super) fn collect<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    victim: BlockId,
    cause: Cause,
) -> Result<(), DeviceError> {
    let state = store.blocks.state(victim);
    store.foresee(victim, map);
    if state == BlockState::Closed {
        store.victim.on_remove(victim, &store.blocks);
    }
    if state != BlockState::Failing {
        store.blocks.validity.set_state(victim, BlockState::Collecting);
    }
    if cause == Cause::Gc {
        store.count_victim(victim);
    }
    let mut moves = std::mem::take(&mut store.moves);
    let released = empty(store, map, victim, &mut moves, cause).and_then(|valid| {
        let cause = store.cause_of_erase(victim, cause);
        store.release(victim, cause)?;
        // A failing block was never told as closed.
        if state == BlockState::Closed {
            store.tell_reclaim(victim, valid);
        }
        Ok(())
    });
    if released.is_err() {
        store.give_up(victim, state, &moves);
    }
    store.moves = moves;
    released?;
    store.look_ahead(map);
    Ok(())
}

/// Moves what is valid out of `victim`, and returns how many pages that were.
#[inline(always)]
fn empty<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    victim: BlockId,
    moves: &mut Vec<Move>,
    cause: Cause,
) -> Result<u32, DeviceError> {
    moves.clear();
    if cause != Cause::Wear
        && let Some(stream) = store.moves_data_only(victim)
        && let Some(entries) = map.entries()
    {
        let valid = store.blocks.valid(victim);
        store.move_data(victim, stream, entries, cause)?;
        map.before_erase(store, victim)?;
        return Ok(valid);
    }
    store.list_valid(victim, moves);
    let valid = moves.len() as u32;
    map.before_copy(store, moves)?;
    if store.blocks.valid(victim) < valid {
        // The map has written pages of its own, and so invalidated some of these.
        moves.retain(|entry| store.is_valid(entry.from));
    }
    if cause == Cause::Wear && !store.is_meta(store.blocks.stream(victim)) {
        store.copy_levelled(victim, moves)?;
    } else {
        store.copy_moves(victim, moves, cause)?;
    }
    map.relocate(store, moves)?;
    map.before_erase(store, victim)?;
    Ok(valid)
}

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// A collection ended halfway, because no space or power was left. Copies that the map has not heard of are void, and
    /// the victim is again what it was: what the device holds can be read.
    #[cold]
    fn give_up(&mut self, victim: BlockId, state: BlockState, moves: &[Move]) {
        let heard = self.blocks.valid(victim) == 0;
        for entry in moves.iter().filter(|entry| !heard && entry.to != Ppn::NONE) {
            if self.watches_pages {
                self.victim.on_copies(&[Move { from: entry.to, to: entry.from, ..*entry }]);
            }
            self.valid_pages -= 1;
            self.counters.invalidated_pages += 1;
            if self.blocks.validity.clear(entry.to) == BlockState::Closed {
                self.victim.on_invalidate(self.medium.geometry().block_of(entry.to), &self.blocks);
            }
        }
        self.blocks.validity.set_state(victim, state);
        match state {
            BlockState::Closed => self.victim.on_close(victim, &self.blocks),
            BlockState::Failing => self.failing.push(victim),
            _ => {}
        }
    }

    /// Whether a page for `stream` must wait for a collection: the reserve has been drawn upon, or opening a block for the
    /// stream would draw upon it.
    #[inline(always)]
    fn needs_collection(&self, stream: StreamId) -> bool {
        (self.free.len() as u32) < self.options.floor || (!self.has_room(stream) && self.must_clean_to_open(stream))
    }

    /// Whether opening a block for `stream` would draw upon the reserve.
    fn must_clean_to_open(&self, stream: StreamId) -> bool {
        if self.is_meta(stream) { self.parked.is_empty() } else { self.free.len() as u32 <= self.options.floor }
    }

    /// The block to clean next so that `stream` can go on; `None` if nothing can be gained.
    fn next_victim(&mut self, stream: StreamId, may_be_full: bool) -> Option<BlockId> {
        self.excess_meta_block(stream)
            .or_else(|| self.emergency_victim())
            .or_else(|| if self.used_pages > self.valid_pages { self.choose_victim(may_be_full) } else { None })
    }

    /// The victim policy's choice, where the placement lets it look. Streams that hold nothing but valid pages free nothing:
    /// then it looks everywhere.
    fn choose_victim(&mut self, may_be_full: bool) -> Option<BlockId> {
        let chosen = match self.placement.victim_source(self.now) {
            VictimSource::Everywhere => None,
            VictimSource::Within(streams) => {
                self.victim.refresh(&self.blocks, streams, &self.history);
                let block = self.victim.pick_within(&self.blocks, self.now, streams);
                block.filter(|block| self.blocks.valid(*block) < self.blocks.pages_per_block())
            }
            VictimSource::Block(block) => {
                Some(block).filter(|block| may_be_full || self.blocks.valid(*block) < self.blocks.pages_per_block())
            }
        };
        if chosen.is_some() {
            return chosen;
        }
        self.victim.refresh(&self.blocks, Streams::ALL, &self.history);
        self.victim.pick(&self.blocks, self.now)
    }

    /// The placement hears that `block`, which was closed and held so many valid pages, has been cleaned.
    fn tell_reclaim(&mut self, block: BlockId, valid: u32) {
        let stream = self.blocks.stream(block);
        if self.is_meta(stream) {
            return;
        }
        self.placement.on_reclaim(&Reclaim {
            block,
            stream,
            opened_at: self.blocks.pasts[block.0 as usize].opened_at,
            stamp: self.blocks.stamp(block),
            now: self.now,
            valid,
        });
    }

    /// The erase of a block of translation pages belongs to their collection.
    fn cause_of_erase(&self, victim: BlockId, cause: Cause) -> Cause {
        if cause == Cause::Gc && self.is_meta(self.blocks.stream(victim)) { Cause::TranslationGc } else { cause }
    }
}
