//! Host writes in one stream, the collector's copies in another: what survived a collection is colder than what just came.

use super::{AnyPlacement, BuildPlacement, HostWrite, PageHistory, Placement};
use crate::address::StreamId;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "host_gc",
    summary: "host writes and the collector's copies in streams of their own",
    paper: "Van Houdt, Performance Evaluation 2013 (double write frontier)",
    memory: "none",
    parameters: &[],
    build: BuildPlacement::online(|_, _| Ok(AnyPlacement::HostGc(HostGc))),
};

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub struct HostGc;

impl Placement for HostGc {
    fn streams(&self) -> u16 {
        2
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
        Some(StreamId(1))
    }
    fn memory_bytes(&self) -> u64 {
        0
    }
}
