//! Cleaning: pick a victim, copy what is valid, tell the map, erase.
//!
//! The steps are free functions over the log store and the map above it, because both change while a page moves.

use super::LogStore;
use super::block_table::BlockState;
use crate::address::{BlockId, Lpn, Ppn, StreamId};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Kind, Medium, Owner};
use crate::placement::{GcCopy, Placement};
use crate::victim::VictimPolicy;

/// A page that a collection moves.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// Whose page it is.
    pub owner: Owner,
    /// Where it was.
    pub from: Ppn,
    /// Where it is now; [`Ppn::NONE`] until it is copied.
    pub to: Ppn,
}

/// What stands above a log store: it maps addresses to pages, and must hear where pages go.
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
    fn before_copy(&mut self, _log: &mut LogStore<M, P, V>, _moves: &[Move]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// The pages of `moves` have been copied.
    ///
    /// # Errors
    /// Faults of the medium, or no space.
    fn relocate(&mut self, log: &mut LogStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError>;
    /// `block` holds nothing valid and is about to be erased.
    ///
    /// # Errors
    /// Faults of the medium, or no space.
    fn before_erase(&mut self, _log: &mut LogStore<M, P, V>, _block: BlockId) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Makes sure that `stream` can take a page: it has room in its open block, or a free block above the floor.
///
/// # Errors
/// No space, or faults of the medium.
#[inline(always)]
pub fn make_room<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    stream: StreamId,
) -> Result<(), DeviceError> {
    if log.has_room(stream) || log.has_room_for(stream, 1) {
        return Ok(());
    }
    clean_for(log, map, stream, 1)
}

/// Makes sure that `stream` can take `pages` pages in a row, without the collector's reserve.
///
/// # Errors
/// No space, or faults of the medium.
pub fn make_room_for<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    stream: StreamId,
    pages: u32,
) -> Result<(), DeviceError> {
    if log.has_room_for(stream, pages) { Ok(()) } else { clean_for(log, map, stream, pages) }
}

#[inline(never)]
fn clean_for<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    stream: StreamId,
    pages: u32,
) -> Result<(), DeviceError> {
    while let Some(block) = log.failing.pop() {
        collect(log, map, block, Cause::Gc)?;
    }
    // Policies that do not look at valid pages may clean full blocks; one turn over the whole device frees a block if
    // anything can.
    let mut attempts = 2 * u64::from(log.blocks.blocks());
    while !log.has_room_for(stream, pages) {
        let victim = log.excess_meta_block(stream).or_else(|| log.emergency_victim()).or_else(|| {
            if attempts > 0 && log.used_pages > log.valid_pages { log.victim.pick(&log.blocks, log.now) } else { None }
        });
        let Some(victim) = victim else {
            // Without garbage the reserve is the last resort: a device filled exactly to its brim is still usable.
            return if log.free_blocks() == 0 { Err(log.no_space()) } else { Ok(()) };
        };
        collect(log, map, victim, Cause::Gc)?;
        attempts = attempts.saturating_sub(1);
    }
    collect_worn(log, map)
}

/// Static wear levelling: empties the least worn blocks once they fall too far behind, so that they are used again.
///
/// # Errors
/// No space, or faults of the medium.
pub fn collect_worn<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
) -> Result<(), DeviceError> {
    let Some(threshold) = log.options.wear_threshold else { return Ok(()) };
    let blocks = log.blocks.blocks();
    // A look at all blocks once in blocks/16 erases costs 16 blocks an erase.
    if log.erases_since_wear_check < (blocks / 16).max(1) {
        return Ok(());
    }
    log.erases_since_wear_check = 0;
    let most = log.blocks.erases.iter().copied().max().unwrap_or(0);
    let mut behind: Vec<(u32, BlockId)> = log
        .blocks
        .closed()
        .map(|b| (log.blocks.erases(b), b))
        .filter(|(erases, _)| most - erases > threshold)
        .collect();
    behind.sort_unstable();
    for (_, block) in behind.into_iter().take((blocks / 64).max(1) as usize) {
        // Moving a full block needs a free one; ordinary cleaning comes first.
        if log.free.len() as u32 <= log.options.floor || log.blocks.state(block) != BlockState::Closed {
            break;
        }
        collect(log, map, block, Cause::Wear)?;
    }
    Ok(())
}

/// Cleans in idle time, as long as `budget_ns` lasts and fewer than `wanted` blocks are free.
///
/// # Errors
/// No space, or faults of the medium.
pub fn collect_idle<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    budget_ns: u64,
    wanted: u32,
) -> Result<(), DeviceError> {
    let mut left_ns = budget_ns;
    while (log.free.len() as u32) < wanted && log.used_pages > log.valid_pages {
        let Some(victim) = log.victim.pick(&log.blocks, log.now) else { break };
        let valid = log.blocks.valid(victim);
        let cost_ns = log.medium.collection_ns(valid);
        // A nearly full victim frees too little to be worth its wear: leave it until it has to be cleaned.
        if cost_ns > left_ns || valid + valid / 8 >= log.blocks.pages_per_block() {
            break;
        }
        left_ns -= cost_ns;
        collect(log, map, victim, Cause::Gc)?;
        log.counters.background_collections += 1;
    }
    Ok(())
}

/// Empties `victim` and erases it.
fn collect<M: Medium, P: Placement, V: VictimPolicy>(
    log: &mut LogStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
    victim: BlockId,
    cause: Cause,
) -> Result<(), DeviceError> {
    if log.blocks.state(victim) == BlockState::Closed {
        log.victim.on_remove(victim, &log.blocks);
        log.blocks.states[victim.0 as usize] = BlockState::Collecting;
    }
    if cause == Cause::Gc {
        log.count_victim(victim);
    }
    let mut moves = std::mem::take(&mut log.moves);
    moves.clear();
    log.list_valid(victim, &mut moves, map);
    let valid = moves.len() as u32;
    map.before_copy(log, &moves)?;
    log.copy_moves(victim, &mut moves, cause)?;
    map.relocate(log, &moves)?;
    log.moves = moves;
    map.before_erase(log, victim)?;
    let cause = log.cause_of_erase(victim, cause);
    log.release(victim, cause, valid)
}

impl<M: Medium, P: Placement, V: VictimPolicy> LogStore<M, P, V> {
    /// The valid pages of `block`, in order; the map's entries are prefetched on the way.
    fn list_valid(&self, block: BlockId, moves: &mut Vec<Move>, map: &impl Mapping<M, P, V>) {
        let first = self.medium.geometry().first_page(block).0;
        let pages = self.medium.geometry().pages_per_block();
        let mut at = first;
        while at < first + pages {
            // A block of fewer than 64 pages is a part of one word.
            let width = (64 - at % 64).min(first + pages - at);
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let mut bits = self.valid[at as usize / 64] >> (at % 64) & mask;
            while bits != 0 {
                let from = Ppn(at + bits.trailing_zeros());
                bits &= bits - 1;
                let owner = self.medium.owner(from);
                map.prefetch(owner);
                if owner.kind() == Kind::Data {
                    self.placement.prefetch(Lpn(owner.address()));
                }
                moves.push(Move { owner, from, to: Ppn::NONE });
            }
            at += width;
        }
    }

    /// Copies the pages of `moves` to the streams that the placement names; pages that died meanwhile are dropped.
    fn copy_moves(&mut self, victim: BlockId, moves: &mut Vec<Move>, cause: Cause) -> Result<(), DeviceError> {
        let (from, stamp) = (self.blocks.stream(victim), self.blocks.stamp(victim));
        let mut error = None;
        moves.retain_mut(|entry| {
            if error.is_some() || !self.is_valid(entry.from) {
                return false;
            }
            let (stream, cause) = self.destination(entry.owner, from, stamp, cause);
            let source = entry.from;
            match self.append(stream, Some(stamp), |medium, at| medium.copy(source, at, cause)) {
                Ok(at) => entry.to = at,
                Err(failure) => error = Some(failure),
            }
            self.drop_valid(source, victim);
            true
        });
        error.map_or(Ok(()), Err)
    }

    /// Where a moved page goes, and under which cause.
    #[inline(always)]
    fn destination(&mut self, owner: Owner, from: StreamId, stamp: u64, cause: Cause) -> (StreamId, Cause) {
        match owner.kind() {
            Kind::Data => {
                let copy = GcCopy { lpn: Lpn(owner.address()), now: self.now, from, stamp };
                (self.placement.gc(&copy), cause)
            }
            Kind::Translation => {
                let cause = if cause == Cause::Gc { Cause::TranslationGc } else { cause };
                (self.meta_stream(0), cause)
            }
            Kind::Tombstone | Kind::Unreadable => (StreamId(0), cause),
        }
    }

    /// The erase of a block of translation pages belongs to their collection.
    fn cause_of_erase(&self, victim: BlockId, cause: Cause) -> Cause {
        if cause == Cause::Gc && self.is_meta(self.blocks.stream(victim)) { Cause::TranslationGc } else { cause }
    }

    /// A moved page's old place holds nothing any more.
    #[inline(always)]
    fn drop_valid(&mut self, at: Ppn, block: BlockId) {
        self.valid[at.0 as usize / 64] &= !(1 << (at.0 % 64));
        self.blocks.valid[block.0 as usize] -= 1;
        self.valid_pages -= 1;
        self.counters.invalidated_pages += 1;
    }
}
