//! The conservation laws of the hybrid map.

use super::block_pool::Role;
use super::{FastFtl, LogObserver, NO_BLOCK};
use crate::address::{BlockId, Lpn, Ppn};
use crate::cause::Cause;
use crate::device::{BlockPhase, BlockView};
use crate::nand::{Kind, Medium, Owner};

impl<M: Medium, O: LogObserver> FastFtl<M, O> {
    /// Checks every law; see the functions below.
    pub(super) fn check_laws(&self) -> Result<(), String> {
        self.log.pool.check()?;
        self.check_map()?;
        self.check_blocks()?;
        self.check_merges()
    }

    /// Every mapped page lies where the map of its kind of block can find it, and all valid pages are accounted for.
    fn check_map(&self) -> Result<(), String> {
        let (pool, mut mapped) = (&self.log.pool, 0);
        for (lpn, entry) in self.entries.iter().enumerate() {
            let Some(at) = entry.mapped() else { continue };
            mapped += 1;
            let lpn = Lpn(lpn as u32);
            let (logical, offset) = (self.logical_block(lpn), self.offset(lpn));
            let (block, index) = (pool.medium.geometry().block_of(at), pool.medium.geometry().index_in_block(at));
            let found = match pool.role(block) {
                Role::Data => self.data_blocks[logical as usize] == block && index == offset,
                Role::Sequential => {
                    self.log.sequential.is_some_and(|s| s.block == block && s.logical == logical) && index == offset
                }
                Role::Random => true,
                Role::Free | Role::Retired => false,
            };
            if !found || pool.medium.owner(at) != Owner::new(Kind::Data, lpn.0) {
                return Err(format!(
                    "{lpn} maps to {at:?} in a block of {:?}, which does not hold it",
                    pool.role(block)
                ));
            }
        }
        let pages = mapped + self.tombstones.pages() as u64;
        if mapped != self.mapped_pages || pages != pool.valid_pages {
            return Err(format!(
                "{mapped} pages are mapped, {} counted; {pages} expected valid, {} counted",
                self.mapped_pages, pool.valid_pages
            ));
        }
        Ok(())
    }

    /// Every block has one role, and each role as many blocks as its table says.
    fn check_blocks(&self) -> Result<(), String> {
        let pool = &self.log.pool;
        let of = |role| (0..pool.medium.geometry().blocks).filter(|b| pool.role(BlockId(*b)) == role).count();
        let mut data: Vec<BlockId> = self.data_blocks.iter().copied().filter(|b| *b != NO_BLOCK).collect();
        data.sort_unstable();
        let listed = data.len();
        data.dedup();
        let sequential = usize::from(self.log.sequential.is_some());
        for (role, expected) in
            [(Role::Data, data.len()), (Role::Sequential, sequential), (Role::Random, self.log.random().count())]
        {
            if of(role) != expected {
                return Err(format!("{} blocks have the role {role:?}, {expected} are expected", of(role)));
            }
        }
        if listed != data.len() || data.iter().any(|b| pool.role(*b) != Role::Data) {
            return Err("the block map names a block twice, or one that is no data block".to_owned());
        }
        if let Some(block) = self.log.random().find(|b| pool.role(*b) != Role::Random) {
            return Err(format!("{block} is in the log but has the role {:?}", pool.role(block)));
        }
        // A merge may have ended after it wrote trims, or before it could free the block that they took.
        let unfinished = u32::from(self.beyond_limit || pool.free_blocks() == 0);
        let most = self.options.log_blocks + pool.failing_blocks() + unfinished;
        if self.log.random_blocks() > most {
            return Err(format!("{} log blocks are in use, {most} are allowed", self.log.random_blocks()));
        }
        match self.log.sequential {
            Some(s) if pool.medium.programmed_pages(s.block) != s.next => Err(format!(
                "the sequential block is filled to {}, its next page is {}",
                pool.medium.programmed_pages(s.block),
                s.next
            )),
            _ => Ok(()),
        }
    }

    /// Pages programmed by merges, as merges counted them, equal what the medium counted.
    fn check_merges(&self) -> Result<(), String> {
        let programmed = self.log.pool.medium.counters().programmed().since(&self.counted_from);
        for (cause, pages) in [
            (Cause::SwitchMerge, self.merges.switch_pages),
            (Cause::PartialMerge, self.merges.partial_pages),
            (Cause::FullMerge, self.merges.full_pages),
        ] {
            if programmed[cause] != pages {
                return Err(format!("{} pages programmed under {cause:?}, {pages} counted", programmed[cause]));
            }
        }
        Ok(())
    }

    /// Every block, for those who watch. Counts valid pages by a look at the whole map.
    pub(super) fn views(&self) -> Vec<BlockView> {
        let geometry = self.log.pool.medium.geometry();
        let mut valid = vec![0; geometry.blocks as usize];
        for at in self.entries.iter().filter_map(|e| e.mapped()) {
            valid[geometry.block_of(at).0 as usize] += 1;
        }
        for block in self.log.random() {
            let first = geometry.first_page(block).0;
            let pages = (first..first + self.log.pool.medium.programmed_pages(block)).map(Ppn);
            valid[block.0 as usize] += pages
                .map(|at| (at, self.log.pool.medium.owner(at)))
                .filter(|(at, owner)| owner.kind() == Kind::Tombstone && self.tombstones.is_at(owner.address(), *at))
                .count() as u32;
        }
        let head = self.log.head();
        let view = |block: BlockId| BlockView {
            phase: match self.log.pool.role(block) {
                Role::Free => BlockPhase::Free,
                Role::Retired => BlockPhase::Retired,
                Role::Sequential => BlockPhase::Open,
                Role::Random if Some(block) == head => BlockPhase::Open,
                Role::Data | Role::Random => BlockPhase::Closed,
            },
            valid: valid[block.0 as usize],
            erases: self.log.pool.medium.erase_count(block),
            ..BlockView::default()
        };
        (0..geometry.blocks).map(BlockId).map(view).collect()
    }
}
