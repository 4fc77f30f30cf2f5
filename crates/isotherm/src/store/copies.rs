//! What a collection copies: the valid pages of its victim, to the streams that the placement names.

use super::BlockStore;
use super::tombstones::MapEntry;
use crate::address::{BlockId, Lpn, PageSet, Ppn, StreamId};
use crate::bits::lowest_bits;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::memory;
use crate::nand::{Kind, Medium, Move, Owner};
use crate::placement::{GcCopy, Placement};
use crate::victim::VictimPolicy;

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// The stream that takes every page of `victim`, if they all hold data and nobody wants to hear of each.
    #[inline(always)]
    pub(super) fn moves_data_only(&self, victim: BlockId) -> Option<StreamId> {
        let is_plain = self.medium.copies_owners() && !self.watches_pages && self.medium.holds_data_only(victim);
        if is_plain { self.placement.copies_to() } else { None }
    }

    /// The valid pages of `block`, in order.
    #[inline(always)]
    pub(super) fn list_valid(&self, block: BlockId, moves: &mut Vec<Move>) {
        self.blocks
            .validity
            .for_each_valid(block, |from| moves.push(Move { owner: self.medium.owner(from), from, to: Ppn::NONE }));
    }

    /// Copies the pages of `moves` to the streams that the placement names, in runs of one stream and one cause.
    pub(super) fn copy_moves(&mut self, victim: BlockId, moves: &mut [Move], cause: Cause) -> Result<(), DeviceError> {
        let (from, stamp) = (self.blocks.stream(victim), self.blocks.stamp(victim));
        let all_to = self.placement.copies_to();
        if let Some(stream) = all_to
            && moves.iter().fold(true, |all, entry| all & (entry.owner.kind() == Kind::Data))
        {
            self.copy_run(stream, moves, stamp, cause)?;
            self.drop_all(victim);
            return Ok(());
        }
        if all_to.is_none() && self.placement.wants_batches() {
            let data = moves.iter().filter(|entry| entry.owner.kind() == Kind::Data);
            let lpns: Vec<Lpn> = data.map(|entry| Lpn(entry.owner.address())).collect();
            self.placement.announce_copies(&lpns, self.now, from, stamp);
        }
        let mut rest = &mut *moves;
        let mut next = rest.first().map(|first| self.destination(first.owner, all_to, from, stamp, cause));
        while let Some((stream, cause_here)) = next {
            let mut length = 1;
            next = None;
            while let Some(entry) = rest.get(length) {
                let destination = self.destination(entry.owner, all_to, from, stamp, cause);
                if destination != (stream, cause_here) {
                    next = Some(destination);
                    break;
                }
                length += 1;
            }
            let (run, others) = rest.split_at_mut(length);
            self.copy_run(stream, run, stamp, cause_here)?;
            rest = others;
        }
        self.drop_all(victim);
        Ok(())
    }

    /// Copies a run of pages to one stream, over as many open blocks as it takes.
    pub(super) fn copy_run(
        &mut self,
        mut stream: StreamId,
        run: &mut [Move],
        stamp: u64,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < run.len() {
            if !self.has_room(stream) {
                stream = self.open_block(stream)?;
            }
            let open = &mut self.open[usize::from(stream.0)];
            let target = Ppn(open.next);
            let fitting = (run.len() - done).min((open.end - open.next) as usize);
            let fitting = &mut run[done..done + fitting];
            let (copied, result) = self.medium.copy_run(fitting, target, cause);
            for (entry, at) in fitting[..copied].iter_mut().zip(target.0..) {
                entry.to = Ppn(at);
            }
            if self.watches_pages {
                self.victim.on_copies(&fitting[..copied]);
            }
            done += copied;
            let block = self.medium.geometry().block_of(target);
            let is_full = self.count_copies(stream, target, copied as u32, stamp);
            match result {
                Ok(()) if is_full => self.close_block(stream, block, self.closed_state(stream)),
                Ok(()) => {}
                Err(error) => match error.stop() {
                    Some(stop) => return Err(stop),
                    None => self.abandon(stream, block),
                },
            }
        }
        Ok(())
    }

    /// So many pages with this stamp were copied to the open block of `stream`, from `target` on; whether it is full.
    #[inline(always)]
    fn count_copies(&mut self, stream: StreamId, target: Ppn, copied: u32, stamp: u64) -> bool {
        let pages = u64::from(copied);
        let open = &mut self.open[usize::from(stream.0)];
        open.next += copied;
        open.copied += pages;
        open.copied_stamps += stamp * pages;
        open.youngest = open.youngest.max(stamp);
        let is_full = open.next == open.end;
        self.blocks.validity.set_run(target, copied);
        self.valid_pages += pages;
        self.used_pages += pages;
        is_full
    }

    /// Moves what is valid in `victim`, which holds nothing but data, to `stream`, and changes the entries of the map on the way: the same
    /// as to list, copy and relocate, without a list.
    #[inline(always)]
    pub(super) fn move_data(
        &mut self,
        victim: BlockId,
        mut stream: StreamId,
        entries: &mut [MapEntry],
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let stamp = self.blocks.stamp(victim);
        let mut first = self.medium.geometry().first_page(victim);
        for word in 0..self.blocks.validity.bits(victim).len() {
            let mut left = self.blocks.validity.bits(victim)[word];
            while left != 0 {
                let target = match self.next_page(&mut stream) {
                    Ok(target) => target,
                    Err(error) => {
                        self.drop_moved(victim, first, left);
                        return Err(error);
                    }
                };
                let chosen = lowest_bits(left, self.open[usize::from(stream.0)].end - target.0);
                left ^= chosen;
                self.take_up_coming();
                self.medium.copy_data(
                    PageSet::new(first, chosen),
                    target,
                    cause,
                    &mut self.coming.pages,
                    |lpn, at, coming| {
                        entries[lpn.0 as usize] = MapEntry::page(at);
                        if let Some(owner) = coming {
                            memory::prefetch(entries, owner.address() as usize);
                        }
                    },
                );
                if self.count_copies(stream, target, chosen.count_ones(), stamp) {
                    self.close_block(stream, self.medium.geometry().block_of(target), self.closed_state(stream));
                }
            }
            first.0 += 64;
        }
        self.drop_all(victim);
        Ok(())
    }

    /// Of `victim`, the pages below `first` have moved, and of the 64 from there on all but those of `left`.
    #[cold]
    fn drop_moved(&mut self, victim: BlockId, first: Ppn, left: u64) {
        let is_left = |at: &Ppn| at.0 >= first.0 + 64 || at.0 >= first.0 && left >> (at.0 - first.0) & 1 == 1;
        let moved: Vec<Ppn> = self.blocks.validity.valid_pages(victim).filter(|at| !is_left(at)).collect();
        self.valid_pages -= moved.len() as u64;
        self.counters.invalidated_pages += moved.len() as u64;
        moved.into_iter().for_each(|at| {
            self.blocks.validity.clear(at);
        });
    }

    /// Nothing in `block` is valid any more: its pages have moved.
    pub(super) fn drop_all(&mut self, block: BlockId) {
        let dropped = u64::from(self.blocks.validity.clear_block(block));
        self.valid_pages -= dropped;
        self.counters.invalidated_pages += dropped;
    }

    /// Where a moved page goes, and under which cause.
    #[inline(always)]
    fn destination(
        &mut self,
        owner: Owner,
        all_to: Option<StreamId>,
        from: StreamId,
        stamp: u64,
        cause: Cause,
    ) -> (StreamId, Cause) {
        match owner.kind() {
            Kind::Data => {
                let Some(stream) = all_to else {
                    let copy = GcCopy { lpn: Lpn(owner.address()), now: self.now, from, stamp };
                    return (self.placement.gc(&copy, &self.history), cause);
                };
                (stream, cause)
            }
            Kind::Translation => {
                let cause = if cause == Cause::Gc { Cause::TranslationGc } else { cause };
                (self.meta_stream(0), cause)
            }
            Kind::Tombstone | Kind::Unreadable => (StreamId(0), cause),
        }
    }
}
