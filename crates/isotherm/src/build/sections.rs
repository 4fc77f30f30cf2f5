//! The counters that parts of a device add to those of every device, in the order of results.

use crate::dram::BufferCounters;
use crate::dram::partition::SplitCounters;
use crate::ftl::dftl::MappingCounters;
use crate::ftl::fast::MergeCounters;
use crate::placement::AsaCounters;
use crate::stats::SectionEntry;

/// The sections of the core. One that is not named here stands in results all the same, behind these.
pub const SECTIONS: &[SectionEntry] = &[
    SectionEntry::of::<MappingCounters>(),
    SectionEntry::of::<AsaCounters>(),
    SectionEntry::of::<BufferCounters>(),
    SectionEntry::of::<SplitCounters>(),
    SectionEntry::of::<MergeCounters>(),
];
