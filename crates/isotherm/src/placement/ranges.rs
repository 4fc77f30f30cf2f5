//! Fixed ranges: the user names hot address ranges, and each gets a stream of its own, for writes and copies alike. With
//! ranges that match the workload this is perfect separation by place.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::quantity::ByteSize;
use crate::registry::{Entry, Parameter, Parameters, SpecError};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "ranges",
    summary: "named address ranges, each in a stream of its own; the rest in another",
    paper: "multi-stream SSD, Kang et al., HotStorage'14",
    memory: "8 bytes a range",
    parameters: &[
        Parameter::text("hot", "START-END[+START-END...] in bytes or % of the device", "0-10%")
            .help("ranges of addresses, each a stream"),
        Parameter::choice("gc", &["same", "apart"], "same")
            .help("copies stay in their range's stream, or go to one stream of their own"),
    ],
    build: BuildPlacement::online(build),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// First page and one past the last page of each range, ascending.
    ranges: Vec<(u32, u32)>,
    gc_apart: bool,
}

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let mut ranges = Vec::new();
    for text in parameters.text("hot").split('+') {
        let refuse = |problem: &str| {
            SpecError::new(
                "placement ranges:hot",
                format!("\"{text}\" {problem}"),
                "write START-END, as 0-1GiB or 0-10%",
            )
        };
        let (start, end) = text.split_once('-').ok_or_else(|| refuse("is not a range"))?;
        let percent = end.ends_with('%');
        let page = |bound: &str| -> Option<u32> {
            if percent {
                let share: f64 = bound.trim_end_matches('%').parse().ok()?;
                (0.0..=100.0)
                    .contains(&share)
                    .then(|| (share / 100.0 * f64::from(context.logical_pages)).round() as u32)
            } else {
                let bytes: ByteSize = bound.parse().ok()?;
                u32::try_from(bytes.0 / u64::from(context.page_bytes)).ok()
            }
        };
        match (page(start), page(end)) {
            (Some(start), Some(end)) if start < end && end <= context.logical_pages => ranges.push((start, end)),
            _ => return Err(refuse("is empty, reaches past the device or is no range")),
        }
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(SpecError::new("placement ranges:hot", "ranges overlap", "name ranges that do not"));
    }
    let gc_apart = parameters.is("gc", "apart");
    Ok(AnyPlacement::Ranges(Ranges { ranges, gc_apart }))
}

impl Ranges {
    /// Stream 0 holds what is in no range.
    #[inline(always)]
    fn stream(&self, lpn: Lpn) -> StreamId {
        let after = self.ranges.partition_point(|range| range.0 <= lpn.0);
        let inside = after > 0 && lpn.0 < self.ranges[after - 1].1;
        StreamId(if inside { after as u16 } else { 0 })
    }
}

impl Placement for Ranges {
    fn streams(&self) -> u16 {
        self.ranges.len() as u16 + 1 + u16::from(self.gc_apart)
    }
    fn gc_streams(&self) -> u16 {
        if self.gc_apart { 1 } else { self.ranges.len() as u16 + 1 }
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        self.stream(write.lpn)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        if self.gc_apart { StreamId(self.streams() - 1) } else { self.stream(copy.lpn) }
    }
    fn memory_bytes(&self) -> u64 {
        self.ranges.len() as u64 * 8
    }
}
