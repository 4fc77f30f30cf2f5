//! The flash array: strict about order, exact about wear, small in memory.
//!
//! Lean mode keeps four bytes a page (the owner). With recovery it also keeps the sequence number (eight bytes a page) and
//! the content of pages that the FTL composed.

use super::clock::NoClock;
use super::content::Content as _;
use super::payload::{HeapBytes, NoBytes, Payload};
use super::{Kind, Medium, MediumError, Move, Oob, Owner, PageMut, PageRef, copy_each};
use crate::address::{BlockId, Geometry, Lpn, PageSet, Ppn};
use crate::cause::Cause;
use crate::memory;
use crate::stats::MediumCounters;
use std::collections::BTreeMap;

/// A simulated NAND array.
///
/// # Panics
/// Every method that changes pages panics on a broken rule of NAND (out of order, programmed twice, bad block): such a
/// call is a bug of the FTL and no result after it could be trusted.
#[derive(Clone, Debug)]
pub struct NandArray<P> {
    geometry: Geometry,
    owners: Vec<Owner>,
    blocks: Vec<Block>,
    /// Erases that a block endures; `u32::MAX` for no limit.
    endurance: u32,
    recovery: Option<RecoveryData>,
    counters: MediumCounters,
    payload: P,
    clock: NoClock,
}

/// What is known of a block: side by side, since an erase needs all of it at a place that no cache foresees.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    erases: u32,
    /// Next page to program. Fits, since a block has at most 2^15 pages.
    next_page: u16,
    bad: bool,
}

/// What only a rebuild of the map needs.
#[derive(Clone, Debug)]
struct RecoveryData {
    sequences: Vec<u64>,
    meta: BTreeMap<u32, Box<[u8]>>,
}

/// What an array that was left consists of, beside the content of its pages.
#[derive(Clone, Debug)]
pub struct ArrayState {
    /// Owner of every page that is programmed; pages that hold nothing to read are [`Kind::Unreadable`].
    pub owners: Vec<Owner>,
    /// Sequence number of every page.
    pub sequences: Vec<u64>,
    /// Pages programmed in each block.
    pub next_pages: Vec<u16>,
    /// Erases of each block.
    pub erase_counts: Vec<u32>,
    /// What was counted before. Pages programmed and not erased since are among the programs.
    pub counters: MediumCounters,
}

impl NandArray<NoBytes> {
    /// An array without payload; `recovery` keeps what a rebuild of the map needs; `endurance` 0 is no limit.
    pub fn without_bytes(geometry: Geometry, endurance: u32, recovery: bool) -> Self {
        Self::new(geometry, endurance, recovery, NoBytes)
    }
}

impl NandArray<HeapBytes> {
    /// An array that keeps every byte, and always what recovery needs.
    pub fn with_bytes(geometry: Geometry, endurance: u32) -> Self {
        Self::new(geometry, endurance, true, HeapBytes::new(geometry.pages(), geometry.log2_page_bytes))
    }
}

impl<P: Payload> NandArray<P> {
    /// An array whose pages' content `payload` keeps; `endurance` 0 is no limit; `recovery` keeps what a rebuild of the map
    /// needs.
    ///
    /// # Panics
    /// If a block has more than 2^15 pages.
    pub fn new(geometry: Geometry, endurance: u32, recovery: bool, payload: P) -> Self {
        assert!(geometry.log2_pages_per_block <= 15, "a block has at most 2^15 pages");
        let (pages, blocks) = (geometry.pages() as usize, geometry.blocks as usize);
        Self {
            geometry,
            owners: memory::zeroed_table(pages),
            blocks: memory::table(blocks, Block::default()),
            endurance: if endurance == 0 { u32::MAX } else { endurance },
            recovery: recovery.then(|| RecoveryData { sequences: memory::zeroed_table(pages), meta: BTreeMap::new() }),
            counters: MediumCounters::default(),
            payload,
            clock: NoClock,
        }
    }

    /// An array that was left, as `state` tells it.
    ///
    /// # Panics
    /// As [`NandArray::new`], and if the tables of `state` have another size than the geometry.
    pub fn restore(geometry: Geometry, endurance: u32, payload: P, state: ArrayState) -> Self {
        let mut array = Self::new(geometry, endurance, false, payload);
        let (pages, blocks) = (geometry.pages() as usize, geometry.blocks as usize);
        assert!(state.owners.len() == pages && state.sequences.len() == pages, "tables of another array");
        assert!(state.next_pages.len() == blocks && state.erase_counts.len() == blocks, "tables of another array");
        for (block, (erases, next_page)) in
            array.blocks.iter_mut().zip(state.erase_counts.iter().zip(&state.next_pages))
        {
            *block = Block { erases: *erases, next_page: *next_page, bad: *erases >= array.endurance };
        }
        array.owners = state.owners;
        array.recovery = Some(RecoveryData { sequences: state.sequences, meta: BTreeMap::new() });
        array.counters = state.counters;
        array
    }

    /// What keeps the content of pages.
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// What keeps the content of pages.
    pub fn payload_mut(&mut self) -> &mut P {
        &mut self.payload
    }

    /// The OOB area of a page that was programmed.
    #[inline(always)]
    fn oob(&self, at: Ppn) -> Oob {
        Oob { owner: self.owners[at.0 as usize], sequence: self.sequence(at) }
    }

    /// Claims the next page of a block for `owner`, checking NAND's order.
    #[inline(always)]
    fn claim(&mut self, at: Ppn, owner: Owner) {
        let block = self.geometry.block_of(at).0 as usize;
        let next = &mut self.blocks[block].next_page;
        assert!(self.geometry.index_in_block(at) == u32::from(*next), "NAND order broken at {at:?}: next is {next}");
        *next += 1;
        self.owners[at.0 as usize] = owner;
    }

    /// Claims the next `count` pages of a block, and gives room for their owners: one check of the order for all of them, which
    /// stay in the block and begin at its next page.
    #[inline(always)]
    fn claim_run(&mut self, first: Ppn, count: usize) -> &mut [Owner] {
        let next = &mut self.blocks[self.geometry.block_of(first).0 as usize].next_page;
        let index = self.geometry.index_in_block(first);
        let fits = index as usize + count <= self.geometry.pages_per_block() as usize;
        assert!(fits && index == u32::from(*next), "NAND order broken at {first:?}: next is {next}");
        *next += count as u16;
        &mut self.owners[first.0 as usize..][..count]
    }

    fn must_be_programmed(&self, at: Ppn) {
        let next = self.blocks[self.geometry.block_of(at).0 as usize].next_page;
        assert!(self.geometry.index_in_block(at) < u32::from(next), "read of unprogrammed {at:?}");
    }
}

impl<P: Payload> Medium for NandArray<P> {
    type Content = P::Content;
    type Clock = NoClock;

    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline(always)]
    fn program(&mut self, at: Ppn, oob: Oob, page: PageRef<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.payload.program(at, oob, page, cause).map_err(MediumError::Payload)?;
        self.claim(at, oob.owner);
        self.counters.programs[cause] += 1;
        if let Some(recovery) = &mut self.recovery {
            recovery.sequences[at.0 as usize] = oob.sequence;
        }
        Ok(())
    }

    fn program_meta(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<(), MediumError> {
        assert!(content.len() <= self.geometry.page_bytes() as usize, "metadata larger than a page");
        let kept = self.payload.program_bytes(at, oob, content, cause).map_err(MediumError::Payload)?;
        self.claim(at, oob.owner);
        self.counters.programs[cause] += 1;
        if let Some(recovery) = &mut self.recovery {
            recovery.sequences[at.0 as usize] = oob.sequence;
            if !kept {
                recovery.meta.insert(at.0, content.into());
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn read(&mut self, at: Ppn, out: PageMut<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.must_be_programmed(at);
        self.counters.reads[cause] += 1;
        if self.owners[at.0 as usize].kind() == Kind::Unreadable {
            return Err(MediumError::Unreadable(at));
        }
        self.payload.read(at, self.oob(at), out).map_err(|kind| unreadable(at, kind))
    }

    fn read_meta(&mut self, at: Ppn, out: &mut Vec<u8>, cause: Cause) -> Result<(), MediumError> {
        self.must_be_programmed(at);
        self.counters.reads[cause] += 1;
        out.clear();
        if self.owners[at.0 as usize].kind() == Kind::Unreadable {
            return Err(MediumError::Unreadable(at));
        }
        if !self.payload.read_bytes(at, self.oob(at), out).map_err(|kind| unreadable(at, kind))?
            && let Some(content) = self.recovery.as_ref().and_then(|r| r.meta.get(&at.0))
        {
            out.extend_from_slice(content);
        }
        Ok(())
    }

    #[inline(always)]
    fn counts_meta_reads(&self) -> bool {
        P::Content::HOLDS_NOTHING && self.recovery.is_none()
    }

    #[inline(always)]
    fn count_meta_reads(&mut self, pages: u64, cause: Cause) {
        self.counters.reads[cause] += pages;
    }

    #[inline(always)]
    fn copy(&mut self, source: Ppn, target: Ppn, cause: Cause) -> Result<(), MediumError> {
        let oob = self.oob(source);
        self.payload.copy(source, target, oob, cause).map_err(MediumError::Payload)?;
        self.claim(target, oob.owner);
        self.counters.copies[cause] += 1;
        if let Some(recovery) = &mut self.recovery {
            recovery.sequences[target.0 as usize] = oob.sequence;
            if let Some(content) = recovery.meta.get(&source.0).cloned() {
                recovery.meta.insert(target.0, content);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn copy_run(&mut self, moves: &[Move], target: Ppn, cause: Cause) -> (usize, Result<(), MediumError>) {
        if self.recovery.is_some() {
            return copy_each(self, moves, target, cause);
        }
        let (copied, result) = copy_content(&mut self.payload, moves, target, cause);
        let moves = &moves[..copied];
        for (owner, entry) in self.claim_run(target, moves.len()).iter_mut().zip(moves) {
            *owner = entry.owner;
        }
        self.counters.copies[cause] += moves.len() as u64;
        (copied, result)
    }

    #[inline(always)]
    fn copies_owners(&self) -> bool {
        P::Content::HOLDS_NOTHING && self.recovery.is_none()
    }

    #[inline(always)]
    fn holds_data_only(&self, block: BlockId) -> bool {
        let (first, pages) = (self.geometry.first_page(block).0 as usize, self.geometry.pages_per_block() as usize);
        Owner::are_data(&self.owners[first..][..pages])
    }

    #[inline(always)]
    fn copy_data(
        &mut self,
        pages: PageSet,
        target: Ppn,
        cause: Cause,
        others: &mut PageSet,
        mut moved: impl FnMut(Lpn, Ppn, Option<Owner>),
    ) {
        let count = pages.len();
        self.claim_run(target, count);
        let owners = &mut self.owners[..];
        for (to, from) in (target.0..).zip(pages) {
            let owner = owners[from.0 as usize];
            owners[to as usize] = owner;
            moved(Lpn(owner.address()), Ppn(to), others.next().map(|at| owners[at.0 as usize]));
        }
        self.counters.copies[cause] += count as u64;
    }

    #[inline(always)]
    fn programs_runs(&self) -> bool {
        P::Content::HOLDS_NOTHING
    }

    #[inline(always)]
    fn program_run(&mut self, lpns: &[Lpn], target: Ppn, sequence: u64, cause: Cause) {
        for (owner, lpn) in self.claim_run(target, lpns.len()).iter_mut().zip(lpns) {
            *owner = Owner::new(Kind::Data, lpn.0);
        }
        self.counters.programs[cause] += lpns.len() as u64;
        if let Some(recovery) = &mut self.recovery {
            let sequences = &mut recovery.sequences[target.0 as usize..][..lpns.len()];
            sequences.iter_mut().zip(sequence..).for_each(|(kept, number)| *kept = number);
        }
    }

    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<(), MediumError> {
        let record = &mut self.blocks[block.0 as usize];
        assert!(!record.bad, "erase of a bad {block}");
        self.payload.erase(block, record.erases + 1, cause).map_err(MediumError::Payload)?;
        self.counters.erases[cause] += 1;
        record.erases += 1;
        record.next_page = 0;
        record.bad = record.erases >= self.endurance;
        if let Some(recovery) = &mut self.recovery {
            let first = self.geometry.first_page(block).0;
            let mut rest = recovery.meta.split_off(&first);
            recovery.meta.append(&mut rest.split_off(&(first + self.geometry.pages_per_block())));
        }
        if record.bad { Err(MediumError::EraseFailed(block)) } else { Ok(()) }
    }

    #[inline(always)]
    fn owner(&self, at: Ppn) -> Owner {
        self.owners[at.0 as usize]
    }

    fn sequence(&self, at: Ppn) -> u64 {
        self.recovery.as_ref().map_or(0, |r| r.sequences[at.0 as usize])
    }

    #[inline(always)]
    fn programmed_pages(&self, block: BlockId) -> u32 {
        u32::from(self.blocks[block.0 as usize].next_page)
    }

    #[inline(always)]
    fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks[block.0 as usize].erases
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks[block.0 as usize].bad
    }

    fn counters(&self) -> &MediumCounters {
        &self.counters
    }

    fn table_bytes(&self) -> u64 {
        let per_page = size_of::<Owner>() + if self.recovery.is_some() { size_of::<u64>() } else { 0 };
        self.owners.len() as u64 * per_page as u64
            + self.blocks.len() as u64 * size_of::<Block>() as u64
            + self.payload.bytes()
    }

    fn keeps_content(&self) -> bool {
        self.recovery.is_some()
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.payload.flush().map_err(MediumError::Payload)
    }

    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, PageRef<'_, Self>)>) -> Result<(), MediumError> {
        self.payload.save_frame(frame, held).map_err(MediumError::Payload)
    }

    #[inline(always)]
    fn prefetch_owner(&self, at: Ppn) {
        memory::prefetch(&self.owners, at.0 as usize);
    }

    #[inline(always)]
    fn prefetch_block(&self, block: BlockId) {
        memory::prefetch(&self.blocks, block.0 as usize);
    }

    fn spoil_page(&mut self, at: Ppn) {
        self.claim(at, Owner::new(Kind::Unreadable, 0));
    }

    fn spoil_block(&mut self, block: BlockId) {
        let first = self.geometry.first_page(block).0;
        for index in 0..self.geometry.pages_per_block() {
            self.owners[(first + index) as usize] = Owner::new(Kind::Unreadable, 0);
        }
        self.blocks[block.0 as usize].next_page = self.geometry.pages_per_block() as u16;
    }

    #[inline(always)]
    fn clock(&self) -> &NoClock {
        &self.clock
    }

    #[inline(always)]
    fn clock_mut(&mut self) -> &mut NoClock {
        &mut self.clock
    }
}

/// What a failed read says: a damaged page is unreadable, anything else ends the device.
#[cold]
fn unreadable(at: Ppn, kind: std::io::ErrorKind) -> MediumError {
    match kind {
        std::io::ErrorKind::InvalidData => MediumError::Unreadable(at),
        kind => MediumError::Payload(kind),
    }
}

/// Copies the content of pages, which no rebuild needs, in order, and says how many were copied before a failure.
#[inline(always)]
fn copy_content(
    payload: &mut impl Payload,
    moves: &[Move],
    target: Ppn,
    cause: Cause,
) -> (usize, Result<(), MediumError>) {
    for (done, entry) in moves.iter().enumerate() {
        let oob = Oob { owner: entry.owner, sequence: 0 };
        if let Err(kind) = payload.copy(entry.from, Ppn(target.0 + done as u32), oob, cause) {
            return (done, Err(MediumError::Payload(kind)));
        }
    }
    (moves.len(), Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oob(address: u32) -> Oob {
        Oob { owner: Owner::new(Kind::Data, address), sequence: u64::from(address) }
    }

    fn small() -> NandArray<NoBytes> {
        NandArray::without_bytes(Geometry::simple(4, 4, 4096), 3, true)
    }

    #[test]
    fn copies_keep_owner_and_sequence_and_count_apart() {
        let mut array = small();
        array.program(Ppn(0), oob(7), (), Cause::Host).unwrap();
        array.copy(Ppn(0), Ppn(4), Cause::Gc).unwrap();
        assert_eq!(array.owner(Ppn(4)), Owner::new(Kind::Data, 7));
        assert_eq!(array.sequence(Ppn(4)), 7);
        assert_eq!(array.counters().programs[Cause::Host], 1);
        assert_eq!(array.counters().copies[Cause::Gc], 1);
    }

    #[test]
    #[should_panic(expected = "NAND order broken")]
    fn programming_out_of_order_panics() {
        let _ = small().program(Ppn(1), oob(0), (), Cause::Host);
    }

    #[test]
    #[should_panic(expected = "NAND order broken")]
    fn programming_twice_panics() {
        let mut array = small();
        array.program(Ppn(0), oob(0), (), Cause::Host).unwrap();
        let _ = array.program(Ppn(0), oob(0), (), Cause::Host);
    }

    #[test]
    #[should_panic(expected = "unprogrammed")]
    fn reading_an_erased_page_panics() {
        let _ = small().read(Ppn(0), (), Cause::Host);
    }

    #[test]
    fn endurance_ends_in_a_bad_block() {
        let mut array = small();
        assert_eq!(array.erase(BlockId(2), Cause::Gc), Ok(()));
        assert_eq!(array.erase(BlockId(2), Cause::Gc), Ok(()));
        assert_eq!(array.erase(BlockId(2), Cause::Gc), Err(MediumError::EraseFailed(BlockId(2))));
        assert!(array.is_bad(BlockId(2)));
    }

    #[test]
    fn composed_pages_come_back_until_erased() {
        let mut array = small();
        let tombstone = Oob { owner: Owner::new(Kind::Tombstone, 3), sequence: 9 };
        array.program_meta(Ppn(0), tombstone, b"trim", Cause::Trim).unwrap();
        let mut out = Vec::new();
        array.read_meta(Ppn(0), &mut out, Cause::Recovery).unwrap();
        assert_eq!(out, b"trim");
        array.erase(BlockId(0), Cause::Gc).unwrap();
        assert!(array.recovery.as_ref().unwrap().meta.is_empty());
    }
}
