//! Streams by who writes: the process, stream or volume that a trace names, as a host that hands stream identifiers down to a
//! multi-stream SSD does it. A page stays in the stream of its last writer when it is copied.
//!
//! Sources beyond the streams share them in turn. Without sources in the trace everything is in stream 0.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::registry::{Entry, Parameter, Parameters, SpecError};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "streams",
    summary: "each process, stream or volume of the trace in a stream of its own",
    paper: "multi-stream SSD, Kang et al., HotStorage'14",
    memory: "2 bytes a logical page",
    parameters: &[
        Parameter::integer("count", 2..=64, "8").help("streams of the device; sources beyond them share them in turn")
    ],
    build: BuildPlacement::online(build),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct BySource {
    /// Who wrote each page last.
    sources: Vec<u16>,
    count: u16,
}

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let count = parameters.integer("count") as u16;
    Ok(AnyPlacement::BySource(BySource { sources: vec![0; context.logical_pages as usize], count }))
}

impl BySource {
    #[inline(always)]
    fn stream(&self, lpn: Lpn) -> StreamId {
        StreamId(self.sources[lpn.0 as usize] % self.count)
    }
}

impl Placement for BySource {
    fn streams(&self) -> u16 {
        self.count
    }
    fn gc_streams(&self) -> u16 {
        self.count
    }
    fn wants_sources(&self) -> bool {
        true
    }
    fn attribute(&mut self, lpn: Lpn, source: u16) {
        self.sources[lpn.0 as usize] = source;
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        self.stream(write.lpn)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.stream(copy.lpn)
    }
    fn memory_bytes(&self) -> u64 {
        self.sources.len() as u64 * 2
    }
}
