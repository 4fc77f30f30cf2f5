//! Fixed ranges: the user names hot address ranges, and each gets a stream of its own, for writes and copies alike; ranges that
//! name the same stream (`@`) share it. With ranges that match the workload this is perfect separation by place.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::quantity::ByteSize;
use crate::registry::{Entry, Parameter, Parameters, SpecError};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "ranges",
    summary: "named address ranges, each in a stream of its own; the rest in another",
    paper: "multi-stream SSD, Kang et al., HotStorage'14",
    memory: "12 bytes a range",
    parameters: &[
        Parameter::text("hot", "START-END[@STREAM][+START-END...] in bytes or % of the device", "0-10%")
            .help("ranges of addresses, each a stream, from 1 on, unless it names one"),
        Parameter::choice("gc", &["same", "apart"], "same")
            .help("copies stay in their range's stream, or go to one stream of their own"),
    ],
    build: BuildPlacement::online(build),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// First page, one past the last page, and stream of each range, ascending.
    ranges: Vec<(u32, u32, u16)>,
    /// Streams of ranges, the rest aside.
    count: u16,
    gc_apart: bool,
}

/// Highest stream that a range may name.
const STREAM_MAX: u16 = 63;

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let mut ranges = Vec::new();
    for part in parameters.text("hot").split('+') {
        let (text, named) = part.split_once('@').map_or((part, None), |(text, stream)| (text, Some(stream)));
        let refuse = |problem: &str| {
            SpecError::new(
                "placement ranges:hot",
                format!("\"{text}\" {problem}"),
                "write START-END, as 0-1GiB or 0-10%",
            )
        };
        let stream = match named.map(str::parse) {
            None => None,
            Some(Ok(stream @ 1..=STREAM_MAX)) => Some(stream),
            Some(_) => return Err(refuse("names no stream from 1 to 63")),
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
            (Some(start), Some(end)) if start < end && end <= context.logical_pages => {
                ranges.push((start, end, stream))
            }
            _ => return Err(refuse("is empty, reaches past the device or is no range")),
        }
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(SpecError::new("placement ranges:hot", "ranges overlap", "name ranges that do not"));
    }
    if ranges.iter().any(|range| range.2.is_some() != ranges[0].2.is_some()) {
        return Err(SpecError::new(
            "placement ranges:hot",
            "some ranges name a stream, others do not",
            "name all or none",
        ));
    }
    let ranges: Vec<_> =
        (1..).zip(ranges).map(|(at, (start, end, stream))| (start, end, stream.unwrap_or(at))).collect();
    let count = ranges.iter().map(|range| range.2).max().unwrap_or(0);
    let gc_apart = parameters.is("gc", "apart");
    Ok(AnyPlacement::Ranges(Ranges { ranges, count, gc_apart }))
}

impl Ranges {
    /// Stream 0 holds what is in no range.
    #[inline(always)]
    fn stream(&self, lpn: Lpn) -> StreamId {
        let after = self.ranges.partition_point(|range| range.0 <= lpn.0);
        let inside = after > 0 && lpn.0 < self.ranges[after - 1].1;
        StreamId(if inside { self.ranges[after - 1].2 } else { 0 })
    }
}

impl Placement for Ranges {
    fn streams(&self) -> u16 {
        self.count + 1 + u16::from(self.gc_apart)
    }
    fn gc_streams(&self) -> u16 {
        if self.gc_apart { 1 } else { self.count + 1 }
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
        self.ranges.len() as u64 * 12
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::build_placement;

    fn build(hot: &str) -> Result<AnyPlacement, SpecError> {
        let context = super::super::PlacementContext {
            logical_pages: 1000,
            pages_per_block: 16,
            page_bytes: 4096,
            blocks: 100,
            seed: 1,
            future: None,
            external: None,
        };
        build_placement(&format!("ranges:hot={hot}").parse()?, &context)
    }

    fn streams_at(hot: &str, pages: &[u32]) -> (u16, Vec<u16>) {
        let AnyPlacement::Ranges(ranges) = build(hot).unwrap() else { panic!("ranges were asked for") };
        (ranges.streams(), pages.iter().map(|page| ranges.stream(Lpn(*page)).0).collect())
    }

    #[test]
    fn ranges_that_name_a_stream_share_it() {
        assert_eq!(streams_at("0-10%+50%-60%", &[0, 99, 100, 500, 600]), (3, vec![1, 1, 0, 2, 0]));
        assert_eq!(streams_at("0-10%@2+20%-30%@1+50%-60%@2", &[0, 150, 250, 550, 999]), (3, vec![2, 0, 1, 2, 0]));
        let problem = |hot: &str| build(hot).unwrap_err().to_string();
        assert!(problem("0-10%@0").contains("1 to 63"));
        assert!(problem("0-10%@x").contains("1 to 63"));
        assert!(problem("0-10%@1+20%-30%").contains("name all or none"));
        assert!(problem("0-10%@1+5%-30%@1").contains("overlap"));
    }
}
