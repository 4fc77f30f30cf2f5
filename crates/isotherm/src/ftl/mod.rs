//! Flash translation layers: logical pages in, operations on a medium out.

pub mod asa;
pub mod dftl;
pub mod fast;
pub mod page;
mod page_map;
pub mod recover;

use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Medium, PageMut, PageRef};
use crate::placement::asa::AsaOptions;
use crate::registry::{Entry, Parameters, SpecError};
use crate::spec::DeviceSpec;
use crate::stats::{Snapshot, WearSummary};

/// A flash translation layer. Buffers decorate it: there are no default methods, so that none is forgotten.
///
/// # Contract
/// - A read returns the last write of the page, or nothing if it was never written or trimmed since.
/// - A write is durable when it returns, behind a write buffer after the next flush; a trim after the next flush. After a loss
///   of power, an unflushed trim may bring back the newest data before it, never older data.
/// - LPNs are below `logical_pages()`; the caller has checked that.
pub trait Ftl {
    /// The medium below.
    type Medium: Medium;

    /// Logical pages.
    fn logical_pages(&self) -> u32;
    /// First of two hints that pages will be written soon: brings their map entries towards the cache.
    fn prefetch_entries(&self, lpns: &[Lpn]);
    /// Second hint, a few writes later: brings the state of their old pages towards the cache.
    fn prefetch_pages(&self, lpns: &[Lpn]);
    /// Reads a page; false if it holds no data, and then `out` is left alone.
    ///
    /// # Errors
    /// Faults of the medium.
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, Self::Medium>, cause: Cause) -> Result<bool, DeviceError>;
    /// Writes a page; `cause` is the host, or padding that a write buffer adds.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, Self::Medium>, cause: Cause) -> Result<(), DeviceError>;
    /// Forgets the content of `pages` pages from `lpn` on.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError>;
    /// Makes everything so far durable.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn flush(&mut self) -> Result<(), DeviceError>;
    /// A request of the host was carried out: layers that tune themselves count them.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn end_request(&mut self) -> Result<(), DeviceError>;
    /// Cleans in the background for `budget_ns`.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError>;
    /// The medium, to read it.
    fn medium(&self) -> &Self::Medium;
    /// The medium, to mark where requests begin and end.
    fn medium_mut(&mut self) -> &mut Self::Medium;
    /// Gives the medium back and forgets everything in memory, as a loss of power does.
    fn into_medium(self) -> Self::Medium;
    /// Adds what the FTL counted to `snapshot`.
    fn fill_snapshot(&self, snapshot: &mut Snapshot);
    /// Erase counts over the blocks.
    fn wear(&self) -> WearSummary;
    /// Valid pages of every closed block.
    fn block_valid_pages(&self) -> Vec<u32>;
    /// Checks every conservation law.
    ///
    /// # Errors
    /// The law that is broken.
    fn check(&self) -> Result<(), String>;
}

/// What a specification asks of a flash translation layer; [`crate::build`] names the types.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FtlOptions {
    /// The whole map in DRAM.
    Page,
    /// Data mapped by block, the log by page.
    Hybrid(fast::HybridOptions),
    /// The map on flash, a part of it in DRAM.
    Demand {
        /// How the map is kept.
        map: dftl::DemandOptions,
        /// The placement that the FTL brings along, its hotness kept in the translation pages.
        asa: Option<AsaOptions>,
    },
}

/// Reads a flash translation layer's checked parameters.
pub type ReadFtl = fn(&Parameters<'_>, &DeviceSpec) -> Result<FtlOptions, SpecError>;

/// The flash translation layers.
pub const FTLS: &[Entry<ReadFtl>] = &[page::ENTRY, dftl::ENTRY, asa::ENTRY, fast::ENTRY];
