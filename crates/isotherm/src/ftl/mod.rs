//! Flash translation layers: logical pages in, operations on a medium out.

mod design;
mod mapping_space;
mod page_map;
pub mod recover;

pub use design::{
    Design, Found, FtlParts, FtlPlan, MapBytes, MapSizes, MetaArea, ReadDesign, Receive, Reserve, Uses, WishedDram,
    Wishes,
};
pub use mapping_space::{FlashCosts, MapWork, MappingSpace, Profits};

use crate::address::{Geometry, Lpn};
use crate::cause::Cause;
use crate::device::{BlockView, DeviceError};
use crate::nand::{Medium, PageMut, PageRef};
use crate::placement::{AnyPlacement, PlacementContext};
use crate::registry::{Entry, Parameters, PolicyName, SpecError, find};
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
    /// Whether a write looks at so many tables that their lines for a group of requests are more than a processor waits for at once:
    /// then the two hints that follow are given for one page with each request, not for a group of them.
    #[inline(always)]
    fn looks_at_many_tables(&self) -> bool {
        false
    }
    /// First of two hints that pages will be written soon: brings their map entries towards the cache.
    fn prefetch_entries(&self, lpns: &[Lpn]);
    /// Second hint, a few writes later: brings the state of their old pages towards the cache.
    fn prefetch_pages(&self, lpns: &[Lpn]);
    /// Whether anything below asks who writes: then [`attribute`](Ftl::attribute) is called before each write of a page.
    fn wants_sources(&self) -> bool;
    /// The host is about to write a page on behalf of `source`.
    fn attribute(&mut self, lpn: Lpn, source: u16);
    /// A request of the host is about to write so many pages.
    fn begin_write(&mut self, pages: u32);
    /// Whether the placement decides for many pages at a time, and writes reach it in the order of the host.
    fn wants_batches(&self) -> bool;
    /// The host is about to write these pages, in this order, and to trim none between.
    fn announce(&mut self, lpns: &[Lpn]);
    /// Reports a policy that could not decide.
    ///
    /// # Errors
    /// What it said.
    fn check_policies(&self) -> Result<(), DeviceError>;
    /// Whether a page holds data. Touches no flash.
    fn is_mapped(&self, lpn: Lpn) -> bool;
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
    /// Whether [`Ftl::write_run`] is of use: pages hold nothing, host writes neither fail nor take time as long as an open block
    /// has room, and nobody below wants to hear of each by itself.
    fn writes_runs(&self) -> bool;
    /// Writes pages of the host, in order: as many as an open block has room for, from the first on. Returns
    /// how many, which may be none; the next is to be written by [`Ftl::write`]. Only where [`Ftl::writes_runs`].
    fn write_run(&mut self, lpns: &[Lpn]) -> usize;
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
    /// Writes everything to flash: as [`Ftl::flush`], and what a protected buffer holds besides.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn write_out(&mut self) -> Result<(), DeviceError>;
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
    /// Every block.
    fn blocks(&self) -> Vec<BlockView>;
    /// Checks every conservation law.
    ///
    /// # Errors
    /// The law that is broken.
    fn check(&self) -> Result<(), String>;
}

/// Declares every FTL, one line each: its module and its design.
macro_rules! ftls {
    ($($module:ident :: $design:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// An FTL as a user named it, before it is built.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum AnyDesign { $($design($module::$design)),* }

        $(impl From<$module::$design> for AnyDesign {
            fn from(design: $module::$design) -> Self {
                Self::$design(design)
            }
        })*

        impl Design for AnyDesign {
            fn uses(&self) -> Uses {
                match self { $(Self::$design(design) => design.uses()),* }
            }
            fn own_placement(&self, context: &PlacementContext) -> Option<AnyPlacement> {
                match self { $(Self::$design(design) => design.own_placement(context)),* }
            }
            fn meta_area(&self, geometry: &Geometry, logical_pages: u32) -> Result<MetaArea, SpecError> {
                match self { $(Self::$design(design) => design.meta_area(geometry, logical_pages)),* }
            }
            fn reserve(&self, for_copies: u32) -> Reserve {
                match self { $(Self::$design(design) => design.reserve(for_copies)),* }
            }
            fn map_sizes(&self, plan: &FtlPlan) -> Result<Option<MapSizes>, SpecError> {
                match self { $(Self::$design(design) => design.map_sizes(plan)),* }
            }
            fn build<M: Medium + Send + 'static, R: Receive<M>>(
                &self,
                parts: FtlParts<M>,
                receive: R,
            ) -> Result<R::Output, SpecError> {
                match self { $(Self::$design(design) => design.build(parts, receive)),* }
            }
        }

        /// The flash translation layers.
        pub const FTLS: &[Entry<ReadDesign>] = &[$($module::ENTRY),*];
    };
}

ftls! {
    page::PageDesign,
    dftl::DftlDesign,
    asa::AsaDesign,
    fast::FastDesign,
}

/// Reads the design that `name` names.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn read_design(name: &PolicyName, wishes: &Wishes) -> Result<AnyDesign, SpecError> {
    let entry = find(FTLS, "ftl", name)?;
    (entry.build)(&Parameters::new(name, entry.parameters)?, wishes)
}
