//! Streams by who writes: the process, stream or volume that a trace names, as a host that hands stream identifiers down to a
//! multi-stream SSD does it. A page stays in the stream of its last writer when it is copied (NVMe's flexible data placement calls
//! such reclaim unit handles persistently isolated), or all copies share a stream of their own (initially isolated).
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
        Parameter::integer("count", 2..=64, "8").help("streams of the device; sources beyond them share them in turn"),
        Parameter::choice("gc", &["same", "apart"], "same")
            .help("copies stay in their page's stream, or go to one stream of their own"),
    ],
    build: BuildPlacement::online(build),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct BySource {
    /// Who wrote each page last.
    sources: Vec<u16>,
    count: u16,
    gc_apart: bool,
}

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let count = parameters.integer("count") as u16;
    let sources = vec![0; context.logical_pages as usize];
    Ok(AnyPlacement::BySource(BySource { sources, count, gc_apart: parameters.is("gc", "apart") }))
}

impl BySource {
    #[inline(always)]
    fn stream(&self, lpn: Lpn) -> StreamId {
        StreamId(self.sources[lpn.0 as usize] % self.count)
    }
}

impl Placement for BySource {
    fn streams(&self) -> u16 {
        self.count + u16::from(self.gc_apart)
    }
    fn gc_streams(&self) -> u16 {
        if self.gc_apart { 1 } else { self.count }
    }
    fn copies_to(&self) -> Option<StreamId> {
        self.gc_apart.then_some(StreamId(self.count))
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
