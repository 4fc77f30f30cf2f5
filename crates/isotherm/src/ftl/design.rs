//! What an FTL's entry in the registry owns: the facts by which a device is planned around it, and how it is built.
//!
//! An FTL is one folder with a type that is a [`Design`], and one line in [`super`]. Nothing outside asks which FTL it is.

use super::mapping_space::MappingSpace;
use super::{AnyDesign, Ftl};
use crate::address::Geometry;
use crate::ftl::dftl::MapObserver;
use crate::ftl::fast::LogObserver;
use crate::nand::Medium;
use crate::placement::{AnyPlacement, PlacementContext};
use crate::registry::{Parameters, SpecError};
use crate::store::StoreOptions;
use crate::victim::AnyVictim;

/// Reads the design that a user named, from its checked parameters.
pub type ReadDesign = fn(&Parameters<'_>, &Wishes) -> Result<AnyDesign, SpecError>;

/// What a specification asks of an FTL beside the FTL's own parameters.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wishes {
    /// What a demand-paged map may use, in place of its `cache` parameter (`dram.cache_bytes`).
    pub cache_bytes: Option<u64>,
    /// The DRAM, where its size is given (`dram.size`): the map has what the split gives it, or all of it.
    pub dram: Option<WishedDram>,
}

/// A DRAM, as far as it says how large a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WishedDram {
    /// A write buffer has a share of it.
    pub has_buffer: bool,
}

impl Wishes {
    /// Refuses a size of the map that is given under `key` beside a DRAM, which is what runs.
    ///
    /// # Errors
    /// There is such a DRAM.
    pub fn refuse_beside_dram(&self, key: &str) -> Result<(), SpecError> {
        let Some(dram) = self.dram else { return Ok(()) };
        let has = if dram.has_buffer { "its share of that (dram.split)" } else { "all of that" };
        Err(SpecError::new(key, format!("beside dram.size the map has {has}"), "leave one of them out"))
    }
}

/// Which parts of a specification an FTL has a use for. The others are refused where they are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uses {
    /// The placement; else the FTL places pages itself.
    pub placement: bool,
    /// The victim policy; else the FTL chooses blocks itself.
    pub victim: bool,
    /// A share of the DRAM for its map ([`Design::map_sizes`]).
    pub shared_dram: bool,
}

/// Blocks that hold pages of the FTL's own beside those of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MetaArea {
    /// Blocks of the area, its own spare space included.
    pub blocks: u32,
    /// Of these, how many come on top of T.
    pub on_top: u32,
}

/// Free blocks that the collector keeps, on top of T.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// The least that the FTL can work with.
    pub least: u32,
    /// What it takes where the specification says nothing.
    pub default: u32,
}

/// The device around an FTL, as far as it is planned.
#[derive(Clone, Copy, Debug)]
pub struct FtlPlan {
    /// Shape of the array, reserve and areas on top of T included.
    pub geometry: Geometry,
    /// U: pages that the host sees.
    pub logical_pages: u32,
    /// How the block store behaves: reserve, ages, areas, wear levelling.
    pub store: StoreOptions,
}

/// What a map needs of a DRAM that it shares with a write buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapSizes {
    /// What does not depend on how many entries are cached.
    pub fixed_bytes: u64,
    /// What it must have at least.
    pub least_bytes: u64,
    /// One entry: a cached page's, or a log block's.
    pub entry_bytes: u64,
    /// What one address in a ghost of the map stands for: an entry, or a page's part of the map of a log block.
    pub ghost_entry_bytes: u64,
    /// Translation pages of the map, or logical blocks.
    pub map_pages: u32,
    /// Entries of each of them, or pages.
    pub map_page_entries: u32,
    /// Log blocks that there may be, whatever the DRAM; 0 where there is no log.
    pub log_blocks_max: u32,
    /// Requests between two decisions of the paper's rule for such a map.
    pub paper_interval_requests: u64,
}

/// DRAM of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapBytes {
    /// What it has at first.
    pub now: u64,
    /// What it may be given at most.
    pub most: u64,
}

/// What the medium holds when an FTL takes it over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Found {
    /// Nothing: the device is new.
    #[default]
    Nothing,
    /// What an FTL of the same design wrote: the map is rebuilt from the OOB areas.
    Written,
}

/// What an FTL is built from.
pub struct FtlParts<M> {
    /// The array.
    pub medium: M,
    /// What it holds.
    pub found: Found,
    /// Who places pages.
    pub placement: AnyPlacement,
    /// Who chooses blocks to clean.
    pub victim: AnyVictim,
    /// The device around it.
    pub plan: FtlPlan,
    /// DRAM of the map, where the specification gives a size; else the FTL's own default.
    pub map_bytes: Option<MapBytes>,
}

/// Takes the FTL that a design builds, whatever its type: generic code where there would be a list of types.
pub trait Receive<M: Medium>: Sized {
    /// What becomes of it.
    type Output;
    /// What listens to its map; the unit type where nothing does.
    type Side: MapObserver + LogObserver + Send + 'static;

    /// What listens to the map.
    fn side(&self) -> Self::Side;
    /// Takes an FTL whose map has no share of the DRAM.
    ///
    /// # Errors
    /// What is built around it is specified wrongly.
    fn take(self, ftl: impl Ftl<Medium = M> + Send + 'static) -> Result<Self::Output, SpecError>;
    /// Takes an FTL whose map may share the DRAM with a write buffer.
    ///
    /// # Errors
    /// What is built around it is specified wrongly.
    fn take_space(
        self,
        ftl: impl MappingSpace<Medium = M, Side = Self::Side> + Send + 'static,
    ) -> Result<Self::Output, SpecError>;
}

/// An FTL before it is built.
pub trait Design {
    /// Which parts of a specification it has a use for.
    fn uses(&self) -> Uses;
    /// The placement that it brings along, where it has no use for another.
    fn own_placement(&self, _context: &PlacementContext) -> Option<AnyPlacement> {
        None
    }
    /// Blocks of its own on a device of `logical_pages`, without reserve, of this shape.
    ///
    /// # Errors
    /// A parameter that does not fit the device.
    fn meta_area(&self, _geometry: &Geometry, _logical_pages: u32) -> Result<MetaArea, SpecError> {
        Ok(MetaArea::default())
    }
    /// Free blocks that it needs, where collections write to `for_copies` streams.
    fn reserve(&self, for_copies: u32) -> Reserve;
    /// What its map needs of a shared DRAM; `None` where it has no share.
    ///
    /// # Errors
    /// A parameter that does not fit the device.
    fn map_sizes(&self, _plan: &FtlPlan) -> Result<Option<MapSizes>, SpecError> {
        Ok(None)
    }
    /// Builds it.
    ///
    /// # Errors
    /// A parameter that does not fit the device, or a medium that fails.
    fn build<M: Medium + Send + 'static, R: Receive<M>>(
        &self,
        parts: FtlParts<M>,
        receive: R,
    ) -> Result<R::Output, SpecError>;
}
