//! The medium: blocks of pages that are programmed in order, read at will and erased whole.
//!
//! [`Medium`] is the contract that flash arrays ([`array::NandArray`]) and segments of a block device share, so that one
//! block store serves flash translation layers and log-structured file systems. Time ([`timing`]) and faults ([`fault`])
//! are decorators: whoever writes to a medium knows neither. A decorator forwards every method: the trait has no defaults, so
//! that none is forgotten.

pub mod array;
pub mod clock;
pub mod content;
pub mod fault;
pub mod payload;
pub mod timing;

use crate::address::{BlockId, Geometry, Lpn, MAX_PAGES, PageSet, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::memory::Zero;
use crate::stats::MediumCounters;
use clock::Clock;
use content::Content;

/// What a page on the medium holds, as its OOB area says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Data of the host; the address is an LPN.
    Data,
    /// A translation page; the address is its number in the translation directory.
    Translation,
    /// A log of trims; the address is the number of its slot.
    Tombstone,
    /// Holds nothing to read: a failed program, one that a loss of power tore, or a page programmed as filler.
    Unreadable,
}

/// The address that a page's OOB area records, with its kind: 30 bits of address below 2 bits of kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Owner(u32);

// SAFETY: it is a number and nothing else: zero is page 0 of the host's data.
#[allow(unsafe_code)]
unsafe impl Zero for Owner {}

impl Owner {
    /// An owner of `kind` at `address`, which is below [`MAX_PAGES`].
    #[inline(always)]
    pub fn new(kind: Kind, address: u32) -> Self {
        debug_assert!(address < MAX_PAGES);
        Self((kind as u32) << 30 | address)
    }

    /// What the page holds.
    #[inline(always)]
    pub fn kind(self) -> Kind {
        match self.0 >> 30 {
            0 => Kind::Data,
            1 => Kind::Translation,
            2 => Kind::Tombstone,
            _ => Kind::Unreadable,
        }
    }

    /// Whether all of these pages hold data: all of them are looked at, which takes less than to stop at one that does not.
    #[inline(always)]
    fn are_data(owners: &[Self]) -> bool {
        owners.iter().fold(0, |all, owner| all | owner.0) < MAX_PAGES
    }

    /// The address: an LPN for data.
    #[inline(always)]
    pub fn address(self) -> u32 {
        self.0 & (MAX_PAGES - 1)
    }
}

/// The OOB area of a page: whose it is, and when it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oob {
    /// Kind and address.
    pub owner: Owner,
    /// Rises with every page written by the FTL. A copy keeps the number of its source: it is the same version.
    pub sequence: u64,
}

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

/// A failure of the medium itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// The page could not be programmed; it is spoiled, and its block should be retired.
    #[error("page {0:?} cannot be programmed")]
    ProgramFailed(Ppn),
    /// The block could not be erased, and is never usable again.
    #[error("{0} cannot be erased")]
    EraseFailed(BlockId),
    /// The page holds nothing readable.
    #[error("page {0:?} is unreadable")]
    Unreadable(Ppn),
    /// Power was lost before the operation took effect.
    #[error("power was lost")]
    PowerLost,
    /// What keeps the content of pages failed, before the operation took effect.
    #[error("the content of the page cannot be kept or read: {0}")]
    Payload(std::io::ErrorKind),
}

impl MediumError {
    /// What the device says of a failure that is not the page's or the block's own: nothing is to be marked as failed.
    pub fn stop(self) -> Option<DeviceError> {
        match self {
            Self::PowerLost => Some(DeviceError::PowerLost),
            Self::Payload(kind) => Some(DeviceError::Payload(kind)),
            _ => None,
        }
    }
}

/// A page as a medium receives it: `()` without content, `&[u8]` with bytes.
pub type PageRef<'a, M> = <<M as Medium>::Content as Content>::Page<'a>;
/// Where a medium puts a page that it reads: `()` without content, `&mut [u8]` with bytes.
pub type PageMut<'a, M> = <<M as Medium>::Content as Content>::PageMut<'a>;

/// Blocks of pages with an OOB area.
///
/// # Contract
/// - Pages of a block are programmed in order, each once after an erase. A violation is a bug of the caller and panics.
/// - A copy keeps owner, sequence and payload. It counts as one read and one program.
/// - Every operation is counted under its cause exactly once, also when it fails on a fault.
/// - After [`MediumError::PowerLost`] nothing changes any more; after [`MediumError::Payload`] nothing more is asked for.
pub trait Medium: Sized {
    /// What pages hold.
    type Content: Content;
    /// The clock beside the medium.
    type Clock: Clock;

    /// Shape of the medium.
    fn geometry(&self) -> &Geometry;
    /// Programs a page of data.
    ///
    /// # Errors
    /// Faults of the medium.
    fn program(&mut self, at: Ppn, oob: Oob, page: PageRef<'_, Self>, cause: Cause) -> Result<(), MediumError>;
    /// Programs a page whose content the FTL itself composed (translation pages, tombstones). Media without payload keep
    /// it only where recovery is asked for.
    ///
    /// # Errors
    /// Faults of the medium.
    fn program_meta(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<(), MediumError>;
    /// Reads a page of data.
    ///
    /// # Errors
    /// Faults of the medium, or a page that is unreadable.
    fn read(&mut self, at: Ppn, out: PageMut<'_, Self>, cause: Cause) -> Result<(), MediumError>;
    /// Reads a page written by [`Medium::program_meta`] into `out` (emptied first; left empty where content is not kept).
    ///
    /// # Errors
    /// Faults of the medium, or a page that is unreadable.
    fn read_meta(&mut self, at: Ppn, out: &mut Vec<u8>, cause: Cause) -> Result<(), MediumError>;
    /// Whether reads of what [`Medium::program_meta`] wrote give nothing, do not fail and take no time, so that
    /// [`Medium::count_meta_reads`] may stand for many.
    fn counts_meta_reads(&self) -> bool;
    /// Counts so many reads of pages written by [`Medium::program_meta`]. Only where [`Medium::counts_meta_reads`].
    fn count_meta_reads(&mut self, pages: u64, cause: Cause);
    /// Copies a page inside the medium.
    ///
    /// # Errors
    /// Faults of the medium.
    fn copy(&mut self, source: Ppn, target: Ppn, cause: Cause) -> Result<(), MediumError>;
    /// Copies the pages of `moves` to consecutive pages of one block from `target` on, and says how many were copied before
    /// a failure. [`copy_each`] serves media that can do no better than one page at a time.
    fn copy_run(&mut self, moves: &[Move], target: Ppn, cause: Cause) -> (usize, Result<(), MediumError>);
    /// Whether a copy moves nothing but the owner, and never fails, so that [`Medium::copy_data`] may be used.
    fn copies_owners(&self) -> bool;
    /// Whether every page of a full block holds data.
    fn holds_data_only(&self, block: BlockId) -> bool;
    /// Copies pages of data to consecutive pages of another block from `target` on, and tells `moved` of each, together with the owner of
    /// one of `others` as long as there are any. Only where [`Medium::copies_owners`].
    fn copy_data(
        &mut self,
        pages: PageSet,
        target: Ppn,
        cause: Cause,
        others: &mut PageSet,
        moved: impl FnMut(Lpn, Ppn, Option<Owner>),
    );
    /// Whether pages hold nothing and programs neither fail nor take time, so that [`Medium::program_run`] may stand for many.
    fn programs_runs(&self) -> bool;
    /// Programs pages of data: those of `lpns` go to consecutive pages of one block from `target` on, with sequence numbers from
    /// `sequence` on. Only where [`Medium::programs_runs`].
    fn program_run(&mut self, lpns: &[Lpn], target: Ppn, sequence: u64, cause: Cause);
    /// Erases a block.
    ///
    /// # Errors
    /// Faults of the medium, or the end of the block's endurance.
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<(), MediumError>;

    /// Owner of a programmed page. Costs no flash operation: the controller keeps it, or recovery's scan pays for it.
    fn owner(&self, at: Ppn) -> Owner;
    /// Sequence of a programmed page; 0 where sequences are not recorded.
    fn sequence(&self, at: Ppn) -> u64;
    /// Pages programmed in a block since its last erase.
    fn programmed_pages(&self, block: BlockId) -> u32;
    /// Times that a block was erased.
    fn erase_count(&self, block: BlockId) -> u32;
    /// Whether a block has failed for good.
    fn is_bad(&self, block: BlockId) -> bool;
    /// Operations so far.
    fn counters(&self) -> &MediumCounters;
    /// Bytes of tables that the simulator holds for the medium.
    fn table_bytes(&self) -> u64;
    /// Whether what [`Medium::program_meta`] is given can be read again.
    fn keeps_content(&self) -> bool;
    /// Hands on what only this process knows of the content of pages (see [`payload::Payload::flush`]).
    ///
    /// # Errors
    /// What keeps the content failed.
    fn flush(&mut self) -> Result<(), MediumError>;
    /// Keeps what a frame of a protected write buffer holds (see [`payload::Payload::save_frame`]): no operation of the medium.
    ///
    /// # Errors
    /// What keeps the content failed.
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, PageRef<'_, Self>)>) -> Result<(), MediumError>;
    /// Brings the owner of a page towards the cache.
    fn prefetch_owner(&self, at: Ppn);
    /// Brings what is kept of a block towards the cache.
    fn prefetch_block(&self, block: BlockId);
    /// Makes the next page of a block unreadable, as a failed or torn program does.
    fn spoil_page(&mut self, at: Ppn);
    /// Makes all pages of a block unreadable, as a torn erase does.
    fn spoil_block(&mut self, block: BlockId);
    /// The clock.
    fn clock(&self) -> &Self::Clock;
    /// The clock, to mark where requests begin and end.
    fn clock_mut(&mut self) -> &mut Self::Clock;
}

/// [`Medium::copy_run`] one page at a time.
pub fn copy_each<M: Medium>(
    medium: &mut M,
    moves: &[Move],
    target: Ppn,
    cause: Cause,
) -> (usize, Result<(), MediumError>) {
    for (done, entry) in moves.iter().enumerate() {
        if let Err(error) = medium.copy(entry.from, Ppn(target.0 + done as u32), cause) {
            return (done, Err(error));
        }
    }
    (moves.len(), Ok(()))
}
