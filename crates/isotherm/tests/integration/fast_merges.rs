//! Merges of the hybrid map against examples worked out by hand, operation by operation.

use isotherm::address::{BlockId, Geometry, Lpn, PageSet, Ppn};
use isotherm::cause::Cause;
use isotherm::ftl::Ftl;
use isotherm::ftl::fast::{FastFtl, FastOptions, MergeCounters, RESERVE_BLOCKS};
use isotherm::nand::array::NandArray;
use isotherm::nand::clock::NoClock;
use isotherm::nand::content::Nothing;
use isotherm::nand::payload::NoBytes;
use isotherm::nand::{Medium, MediumError, Move, Oob, Owner, PageMut, PageRef, copy_each};
use isotherm::stats::{MediumCounters, Snapshot};

/// One operation that changes the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Program { page: u32, lpn: u32, cause: Cause },
    Filler { page: u32, cause: Cause },
    Copy { from: u32, to: u32, cause: Cause },
    Erase { block: u32, cause: Cause },
}

use Operation::{Erase, Filler, Program};

/// A medium that writes down what is done to it.
struct Recorder {
    inner: NandArray<NoBytes>,
    operations: Vec<Operation>,
}

impl Medium for Recorder {
    type Content = Nothing;
    type Clock = NoClock;
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn program(&mut self, at: Ppn, oob: Oob, page: PageRef<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.operations.push(Program { page: at.0, lpn: oob.owner.address(), cause });
        self.inner.program(at, oob, page, cause)
    }
    fn program_meta(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<(), MediumError> {
        self.operations.push(Filler { page: at.0, cause });
        self.inner.program_meta(at, oob, content, cause)
    }
    fn read(&mut self, at: Ppn, out: PageMut<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.inner.read(at, out, cause)
    }
    fn read_meta(&mut self, at: Ppn, out: &mut Vec<u8>, cause: Cause) -> Result<(), MediumError> {
        self.inner.read_meta(at, out, cause)
    }
    fn counts_meta_reads(&self) -> bool {
        self.inner.counts_meta_reads()
    }
    fn count_meta_reads(&mut self, pages: u64, cause: Cause) {
        self.inner.count_meta_reads(pages, cause);
    }
    fn copy(&mut self, source: Ppn, target: Ppn, cause: Cause) -> Result<(), MediumError> {
        self.operations.push(Operation::Copy { from: source.0, to: target.0, cause });
        self.inner.copy(source, target, cause)
    }
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<(), MediumError> {
        self.operations.push(Erase { block: block.0, cause });
        self.inner.erase(block, cause)
    }
    fn copy_run(&mut self, moves: &[Move], target: Ppn, cause: Cause) -> (usize, Result<(), MediumError>) {
        copy_each(self, moves, target, cause)
    }
    fn copies_owners(&self) -> bool {
        false
    }
    fn holds_data_only(&self, block: BlockId) -> bool {
        self.inner.holds_data_only(block)
    }
    fn copy_data(&mut self, _: PageSet, _: Ppn, _: Cause, _: &mut PageSet, _: impl FnMut(Lpn, Ppn, Option<Owner>)) {
        unreachable!("each copy is written down by itself");
    }
    fn programs_runs(&self) -> bool {
        false
    }
    fn program_run(&mut self, _: &[Lpn], _: Ppn, _: u64, _: Cause) {
        unreachable!("each program is written down by itself");
    }
    fn prefetch_owner(&self, _: Ppn) {}
    fn prefetch_block(&self, _: BlockId) {}
    fn clock(&self) -> &NoClock {
        self.inner.clock()
    }
    fn clock_mut(&mut self) -> &mut NoClock {
        self.inner.clock_mut()
    }
    fn owner(&self, at: Ppn) -> Owner {
        self.inner.owner(at)
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        self.inner.flush()
    }
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, PageRef<'_, Self>)>) -> Result<(), MediumError> {
        self.inner.save_frame(frame, held)
    }
    fn keeps_content(&self) -> bool {
        self.inner.keeps_content()
    }
    fn sequence(&self, at: Ppn) -> u64 {
        self.inner.sequence(at)
    }
    fn programmed_pages(&self, block: BlockId) -> u32 {
        self.inner.programmed_pages(block)
    }
    fn erase_count(&self, block: BlockId) -> u32 {
        self.inner.erase_count(block)
    }
    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block)
    }
    fn counters(&self) -> &MediumCounters {
        self.inner.counters()
    }
    fn table_bytes(&self) -> u64 {
        self.inner.table_bytes()
    }
    fn spoil_page(&mut self, at: Ppn) {
        self.inner.spoil_page(at);
    }
    fn spoil_block(&mut self, block: BlockId) {
        self.inner.spoil_block(block);
    }
}

type Device = FastFtl<Recorder>;

/// Four logical blocks of four pages, two random-write log blocks, one sequential one and the reserve: ten blocks.
fn device(in_place_first_write: bool) -> Device {
    let geometry = Geometry::simple(4 + 1 + 2 + RESERVE_BLOCKS, 4, 512);
    let medium = Recorder { inner: NandArray::without_bytes(geometry, 0, true), operations: Vec::new() };
    let options = FastOptions { log_blocks: 2, reserve: RESERVE_BLOCKS, in_place_first_write, wear_threshold: None };
    FastFtl::new(medium, 16, options, ())
}

/// Writes `lpns` and returns the operations that this made.
fn write(ftl: &mut Device, lpns: impl IntoIterator<Item = u32>) -> Vec<Operation> {
    ftl.medium_mut().operations.clear();
    for lpn in lpns {
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
        ftl.check().unwrap();
    }
    std::mem::take(&mut ftl.medium_mut().operations)
}

fn snapshot(ftl: &Device) -> Snapshot {
    let mut snapshot = Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    snapshot
}

fn merges(ftl: &Device) -> MergeCounters {
    *snapshot(ftl).sections.get().expect("a hybrid map counts merges")
}

fn host(page: u32, lpn: u32) -> Operation {
    Program { page, lpn, cause: Cause::Host }
}

fn copy(from: u32, to: u32) -> Operation {
    Operation::Copy { from, to, cause: Cause::FullMerge }
}

#[test]
fn sequential_fill_makes_switch_merges_only() {
    let mut ftl = device(false);
    let first = write(&mut ftl, 0..16);
    assert_eq!(first, (0..16).map(|page| host(page, page)).collect::<Vec<_>>());
    let counted = merges(&ftl);
    assert_eq!((counted.switch, counted.partial, counted.full), (3, 0, 0), "the fourth block is still the log block");
    // Filled again: each block switches when the next begins, and its old data block is erased.
    let again = write(&mut ftl, 0..16);
    let erases: Vec<_> = again.iter().filter(|o| !matches!(o, Program { .. })).copied().collect();
    let erase = |block| Erase { block, cause: Cause::SwitchMerge };
    assert_eq!(erases, [erase(0), erase(1), erase(2)]);
    let counted = merges(&ftl);
    assert_eq!((counted.switch, counted.partial, counted.full, counted.full_pages), (7, 0, 0, 0));
    assert_eq!(snapshot(&ftl).medium.programmed().total(), 32, "not a page more than the host wrote");
}

#[test]
fn reclaim_makes_one_full_merge_for_each_logical_block_in_the_victim() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    // Logical block 3 owns the sequential block 3. Random-write block 4 takes 1 5 1 6, block 5 takes 9 10 2 9.
    let log = write(&mut ftl, [1, 5, 1, 6, 9, 10, 2, 9]);
    assert_eq!(log[..4], [host(16, 1), host(17, 5), host(18, 1), host(19, 6)]);
    assert_eq!(log[4..], [host(20, 9), host(21, 10), host(22, 2), host(23, 9)]);
    assert_eq!(merges(&ftl).log_hits, 2);
    // No room: block 4 holds valid pages of logical blocks 1 (5 and 6) and 0 (1, whose first version is stale).
    let reclaim = write(&mut ftl, [10]);
    let erase = |block, cause| Erase { block, cause };
    assert_eq!(
        reclaim,
        [
            // Logical block 1 into block 6: 4 and 7 from its data block, 5 and 6 from the victim.
            copy(4, 24),
            copy(17, 25),
            copy(19, 26),
            copy(7, 27),
            erase(1, Cause::FullMerge),
            // Logical block 0 into block 7: 1 from the victim, 2 from the other log block, the rest from its data block.
            copy(0, 28),
            copy(18, 29),
            copy(22, 30),
            copy(3, 31),
            erase(0, Cause::FullMerge),
            erase(4, Cause::Gc),
            host(32, 10),
        ]
    );
    let (counted, snapshot) = (merges(&ftl), snapshot(&ftl));
    assert_eq!((counted.full, counted.full_of_reclaims, counted.full_pages, counted.filler_pages), (2, 2, 8, 0));
    let collector = snapshot.collector;
    assert_eq!((collector.collections, collector.victim_invalid_pages, collector.victim_pages), (1, 1, 4));
    assert_eq!(ftl.log_blocks_in_use(), 2);
}

#[test]
fn distinct_logical_blocks_of_a_victim_set_the_number_of_merges() {
    for (victim, distinct) in [([1, 2, 3, 1], 1), ([1, 2, 5, 6], 2), ([1, 5, 9, 2], 3), ([1, 1, 1, 1], 1)] {
        let mut ftl = device(false);
        write(&mut ftl, 0..16);
        write(&mut ftl, victim);
        // The other log block rewrites nothing of it.
        write(&mut ftl, [11, 11, 11, 11]);
        let before = merges(&ftl).full;
        write(&mut ftl, [11]);
        assert_eq!(merges(&ftl).full - before, distinct, "victim {victim:?}");
    }
}

#[test]
fn a_victim_with_nothing_valid_costs_one_erase() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    write(&mut ftl, [1, 2, 1, 2, 1, 2, 1, 1]);
    assert_eq!(write(&mut ftl, [5]), [Erase { block: 4, cause: Cause::Gc }, host(24, 5)]);
    assert_eq!(merges(&ftl).full, 0);
    assert_eq!(snapshot(&ftl).collector.victim_invalid_pages, 4);
}

#[test]
fn a_write_that_skips_ahead_makes_a_partial_merge_first() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    write(&mut ftl, [0, 1]); // Block 4 is the sequential block of logical block 0 now.
    let partial = |from, to| Operation::Copy { from, to, cause: Cause::PartialMerge };
    let erase = Erase { block: 0, cause: Cause::PartialMerge };
    assert_eq!(write(&mut ftl, [3]), [partial(2, 18), partial(3, 19), erase, host(20, 3)]);
    let counted = merges(&ftl);
    assert_eq!((counted.switch, counted.partial, counted.partial_pages, counted.full), (4, 1, 2, 0));
}

#[test]
fn a_partial_merge_takes_the_newest_version_from_the_log() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    write(&mut ftl, [3]); // Page 16, in the first random-write block.
    write(&mut ftl, [0, 1]);
    let partial = |from, to| Operation::Copy { from, to, cause: Cause::PartialMerge };
    let erase = Erase { block: 0, cause: Cause::PartialMerge };
    assert_eq!(write(&mut ftl, [4]), [partial(2, 22), partial(16, 23), erase, host(24, 4)]);
}

#[test]
fn a_rewrite_of_the_sequential_block_makes_a_full_merge_first() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    write(&mut ftl, [0, 1]);
    let erase = |block| Erase { block, cause: Cause::FullMerge };
    assert_eq!(
        write(&mut ftl, [1]),
        [copy(16, 20), copy(17, 21), copy(2, 22), copy(3, 23), erase(4), erase(0), host(24, 1)]
    );
    let counted = merges(&ftl);
    assert_eq!((counted.full, counted.full_of_reclaims, counted.full_pages), (1, 0, 4));
}

#[test]
fn holes_are_filled_up_to_the_last_mapped_page_and_no_further() {
    let mut ftl = device(false);
    // Logical block 1 holds page 6 alone; the log blocks 0 and 1 are filled with it and with pages of logical block 2.
    write(&mut ftl, [6, 9, 9, 9, 9, 9, 9, 9]);
    let filler = |page| Filler { page, cause: Cause::FullMerge };
    assert_eq!(
        write(&mut ftl, [9]),
        [filler(8), filler(9), copy(0, 10), Erase { block: 0, cause: Cause::Gc }, host(12, 9)]
    );
    let counted = merges(&ftl);
    assert_eq!((counted.full, counted.full_pages, counted.filler_pages), (1, 3, 2));
}

#[test]
fn first_writes_go_in_place_where_the_switch_is_on() {
    let mut ftl = device(true);
    let first = write(&mut ftl, [0, 1, 2, 3, 4, 6]);
    // Page 5 is missing, so that page 6 cannot be programmed in place.
    assert_eq!(first, [host(0, 0), host(1, 1), host(2, 2), host(3, 3), host(4, 4), host(8, 6)]);
    assert_eq!(write(&mut ftl, [5, 0]), [host(5, 5), host(12, 0)]);
    assert_eq!(merges(&ftl), MergeCounters::default());
}

#[test]
fn the_log_shrinks_by_merging_and_grows_at_once() {
    let mut ftl = device(false);
    write(&mut ftl, 0..16);
    write(&mut ftl, [1, 5, 1, 6, 9]);
    assert_eq!((ftl.log_blocks(), ftl.log_blocks_in_use(), ftl.log_blocks_max()), (2, 2, 2));
    assert_eq!(ftl.set_log_blocks(1), Ok(1));
    assert_eq!((ftl.log_blocks_in_use(), merges(&ftl).full), (1, 2), "the older block held two logical blocks");
    ftl.check().unwrap();
    assert_eq!(ftl.set_log_blocks(100), Ok(2));
    write(&mut ftl, [9, 10, 11, 1]);
    assert_eq!(
        (ftl.log_blocks_in_use(), merges(&ftl).full),
        (2, 2),
        "a larger log takes the next block without a merge"
    );
    assert_eq!(ftl.set_log_blocks(0), Ok(1), "one random-write block is the least");
}
