//! Rebuilding the hybrid map from the OOB areas, after everything in memory was lost.
//!
//! One scan finds the newest version of each logical page, as for the page-mapped FTL. What FAST needs beyond that is the
//! role of each block, which no OOB area records; it follows from the rules of writing:
//!
//! - The first page of an RW block never holds the first page of a logical block (such writes go to the SW block) and
//!   never a filler. So a block whose data pages all lie at their own place in one logical block, and which has no
//!   tombstones, is a data block, an SW block or the target of a merge; every other block is an RW block.
//! - Copies keep their sequence number, so that an unfinished merge shows as several copies of one version. A block all
//!   of whose current pages have another copy is redundant. Leaving such blocks out one after the other undoes a merge
//!   that was cut short, or finishes one that was complete; at most two blocks of one logical block are left. The one
//!   with the newest page is the SW block then, since an SW block is opened after the data block was made.
//! - A lone block becomes the data block, also if it was the SW block: what was written stays, only the order is forgotten.
//!
//! Blocks left out are erased, and a log that a reclaim left too large is brought back to its size. Torn pages and stale ones need no care: nothing maps to them. Cost: as for the
//! page-mapped FTL, one look at the OOB of every programmed page.

use super::block_pool::{BlockPool, Role};
use super::log_blocks::SequentialBlock;
use super::{FastFtl, FastOptions, LogObserver, NO_BLOCK};
use crate::address::{BlockId, Geometry, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::recover::{Found, FoundTombstone, bury, scan};
use crate::nand::{Kind, Medium};
use crate::store::tombstones::MapEntry;
use std::collections::BTreeMap;

/// Current copies, by block: what is left after the stale pages are taken away.
struct Copies<'a, M> {
    medium: &'a M,
    versions: &'a [MapEntry],
    /// Copies of the newest version of each logical page on blocks not yet left out; more than 255 do not occur.
    count: Vec<u8>,
}

/// What the pages of a block say of its role.
enum Content {
    /// Nothing readable.
    Nothing,
    /// Every page at its place in this logical block.
    Aligned(u32),
    /// Pages in the order of writing.
    Random,
}

fn pages<M: Medium>(medium: &M, block: BlockId) -> impl Iterator<Item = Ppn> + use<M> {
    let first = medium.geometry().first_page(block).0;
    (first..first + medium.programmed_pages(block)).map(Ppn)
}

fn classify<M: Medium>(medium: &M, block: BlockId) -> Content {
    let geometry: &Geometry = medium.geometry();
    let mut content = Content::Nothing;
    for at in pages(medium, block) {
        let owner = medium.owner(at);
        let logical = owner.address() >> geometry.log2_pages_per_block;
        let at_its_place = owner.address() & (geometry.pages_per_block() - 1) == geometry.index_in_block(at);
        content = match (owner.kind(), content) {
            (Kind::Unreadable, content) => content,
            (Kind::Data, Content::Nothing) if at_its_place => Content::Aligned(logical),
            (Kind::Data, Content::Aligned(same)) if at_its_place && same == logical => Content::Aligned(same),
            _ => return Content::Random,
        };
    }
    content
}

/// The highest sequence number in a block.
fn youngest<M: Medium>(medium: &M, block: BlockId) -> u64 {
    pages(medium, block).map(|at| medium.sequence(at)).max().unwrap_or(0)
}

impl<M: Medium> Copies<'_, M> {
    /// LPNs whose newest version has a copy on `block`, with its place.
    fn current(&self, block: BlockId) -> impl Iterator<Item = (usize, Ppn)> + '_ {
        pages(self.medium, block).filter_map(|at| {
            let owner = self.medium.owner(at);
            let version = self.versions.get(owner.address() as usize)?.mapped()?;
            let is_current = owner.kind() == Kind::Data && self.medium.sequence(version) == self.medium.sequence(at);
            is_current.then_some((owner.address() as usize, at))
        })
    }

    fn add(&mut self, block: BlockId) {
        let found: Vec<usize> = self.current(block).map(|(lpn, _)| lpn).collect();
        found.into_iter().for_each(|lpn| self.count[lpn] += 1);
    }

    /// Leaves `block` out if each of its current pages has another copy.
    fn leave_out_if_redundant(&mut self, block: BlockId) -> bool {
        let found: Vec<usize> = self.current(block).map(|(lpn, _)| lpn).collect();
        let redundant = found.iter().all(|lpn| self.count[*lpn] > 1);
        if redundant {
            found.into_iter().for_each(|lpn| self.count[lpn] -= 1);
        }
        redundant
    }
}

/// Blocks by role, found on the medium.
struct Roles {
    /// Random-write blocks, oldest first.
    random: Vec<BlockId>,
    /// Data blocks by logical block.
    data: BTreeMap<u32, BlockId>,
    sequential: Option<(u32, BlockId)>,
    /// Blocks to be erased.
    garbage: Vec<BlockId>,
}

/// Finds the role of every block, and puts the place of every page into `entries`.
///
/// # Errors
/// More blocks of a logical block are needed than there can be, as where pages were lost.
fn assign_roles<M: Medium>(medium: &M, versions: &[MapEntry], entries: &mut [MapEntry]) -> Result<Roles, DeviceError> {
    let contradiction = |detail: String| DeviceError::Contradiction { detail };
    let mut copies = Copies { medium, versions, count: vec![0; versions.len()] };
    let mut roles = Roles { random: Vec::new(), data: BTreeMap::new(), sequential: None, garbage: Vec::new() };
    let mut aligned: BTreeMap<u32, Vec<BlockId>> = BTreeMap::new();
    for block in (0..medium.geometry().blocks).map(BlockId).filter(|b| !medium.is_bad(*b)) {
        match classify(medium, block) {
            Content::Nothing if medium.programmed_pages(block) == 0 => {}
            Content::Nothing => roles.garbage.push(block),
            Content::Random => roles.random.push(block),
            Content::Aligned(logical) => aligned.entry(logical).or_default().push(block),
        }
        copies.add(block);
    }
    for (logical, mut blocks) in aligned {
        blocks.retain(|block| {
            let redundant = copies.leave_out_if_redundant(*block);
            if redundant {
                roles.garbage.push(*block);
            }
            !redundant
        });
        blocks.sort_by_key(|block| youngest(medium, *block));
        if blocks.len() > 2 {
            return Err(contradiction(format!("{} blocks of logical block {logical} are needed", blocks.len())));
        }
        if let [_, block] = blocks[..] {
            if roles.sequential.is_some() {
                return Err(contradiction("two sequential-write blocks are needed".to_owned()));
            }
            roles.sequential = Some((logical, block));
        }
        roles.data.extend(blocks.first().map(|block| (logical, *block)));
    }
    // Later blocks win where a page has several copies: the SW block must stay in order, and what lies in a data block
    // needs no merge.
    roles.random.sort_by_key(|block| youngest(medium, *block));
    let sequential = roles.sequential.map(|(_, block)| block);
    for block in roles.random.iter().copied().chain(roles.data.values().copied()).chain(sequential) {
        for (lpn, at) in copies.current(block) {
            entries[lpn] = MapEntry::page(at);
        }
    }
    Ok(roles)
}

impl<M: Medium, O: LogObserver> FastFtl<M, O> {
    /// Rebuilds the device that `medium` holds.
    ///
    /// # Errors
    /// Faults of the medium.
    ///
    /// # Panics
    /// If the medium does not record sequence numbers but holds data: it cannot be recovered. As [`FastFtl::new`] else.
    pub fn recover(mut medium: M, logical_pages: u32, options: FastOptions, observer: O) -> Result<Self, DeviceError> {
        let Found { mut versions, tombstones, last_sequence, .. } = scan(&mut medium, logical_pages, 0)?;
        let mut ftl =
            Self::over(BlockPool::new(medium, options.wear_threshold), logical_pages, options, observer, last_sequence);
        let live = bury(&mut versions, &tombstones, &ftl.log.pool.medium);
        ftl.entries.copy_from_slice(&versions);
        let roles = assign_roles(&ftl.log.pool.medium, &versions, &mut ftl.entries)?;
        for at in versions.iter().filter_map(|entry| entry.mapped()) {
            assert!(ftl.log.pool.medium.sequence(at) > 0, "this medium records no sequence numbers");
            ftl.mapped_pages += 1;
        }
        ftl.log.pool.valid_pages = ftl.mapped_pages;
        ftl.take_blocks(&roles);
        ftl.take_tombstones(tombstones, live);
        let programmed = ftl.log.pool.medium.counters().programmed().total();
        ftl.log.pool.invalidated_pages = programmed - ftl.log.pool.valid_pages;
        for block in roles.garbage {
            ftl.log.pool.release(block, Cause::Recovery)?;
        }
        // A reclaim that was cut short may have opened a log block beside its victim. A device that is worn out has no room to mend
        // that, and can be read all the same.
        match ftl.keep_to_limit(false) {
            Err(error) if error.is_out_of_room() => Ok(ftl),
            kept => kept.map(|()| ftl),
        }
    }

    fn take_blocks(&mut self, roles: &Roles) {
        let medium = &self.log.pool.medium;
        let pages_per_block = medium.geometry().pages_per_block();
        // The block with the most room is filled on, so that power losses do not use up the log.
        let head = roles.random.iter().copied().min_by_key(|b| medium.programmed_pages(*b));
        let head = head.filter(|b| medium.programmed_pages(*b) < pages_per_block);
        for block in roles.random.iter().copied().filter(|b| Some(*b) != head).chain(head) {
            self.log.adopt(block, Some(block) == head);
        }
        for (logical, block) in &roles.data {
            self.log.pool.assign(*block, Role::Data);
            debug_assert_eq!(self.data_blocks[*logical as usize], NO_BLOCK);
            self.data_blocks[*logical as usize] = *block;
        }
        self.log.sequential = roles.sequential.map(|(logical, block)| {
            let next = self.log.pool.medium.programmed_pages(block);
            self.log.pool.assign(block, Role::Sequential);
            SequentialBlock { block, logical, next }
        });
    }

    fn take_tombstones(&mut self, tombstones: Vec<FoundTombstone>, live: Vec<u32>) {
        for (found, live) in tombstones.into_iter().zip(live).filter(|(_, live)| *live > 0) {
            self.tombstones.restore(found.slot, found.at, found.extents, live);
            self.log.pool.valid_pages += 1;
        }
    }
}
