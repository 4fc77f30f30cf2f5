//! One stream for everything: the page-mapped FTL without separation, the baseline of every comparison.

use super::{AnyPlacement, BuildPlacement, HostWrite, PageHistory, Placement};
use crate::address::StreamId;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "single",
    summary: "one stream for host writes and copies alike",
    paper: "Ban, US patent 5937425 (page mapping)",
    memory: "none",
    parameters: &[],
    build: BuildPlacement::online(|_, _| Ok(AnyPlacement::Single(Single))),
};

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub struct Single;

impl Placement for Single {
    fn streams(&self) -> u16 {
        1
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    #[inline(always)]
    fn host(&mut self, _: &HostWrite, _: &mut PageHistory) -> StreamId {
        StreamId(0)
    }
    fn host_to(&self) -> Option<StreamId> {
        Some(StreamId(0))
    }
    fn copies_to(&self) -> Option<StreamId> {
        Some(StreamId(0))
    }
    fn memory_bytes(&self) -> u64 {
        0
    }
}
