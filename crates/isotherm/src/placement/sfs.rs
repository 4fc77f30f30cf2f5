//! The groups of SFS as a placement (Min et al., "SFS: random write considered harmful in solid state drives", FAST'12):
//! every page goes to the group whose centre of hotness is nearest to its own, host writes and copies alike.
//!
//! Hotness, segment hotness and quantisation are those of the log (crate `isotherm-sfs`): write count over age for a page, that of
//! its file before its second write, and mean count over mean age of the live pages for a segment. Each group is a stream.
//!
//! Departures: a device writes page by page, so nothing waits until its group fills a segment. Segments are what a
//! stream wrote between two fillings of a block, which is a block but for the pages that the FTL adds of its own.
//! Segments of a device are far smaller than the paper's 32 MB, and more: quantising as many as the log does before each
//! of them would cost hundreds of times the write itself, so that `sample` is smaller here.
//!
//! O(groups) a page, and as much as a part of the sample takes for each segment.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::hotness::heat::{AgeFrom, Files, Heat, HeatSums, Time};
use crate::hotness::quantise::{Criterion, Quantiser, QuantiserOptions};
use crate::memory;
use crate::registry::{Entry, Parameter};

const QUANTISER: [Parameter; 6] = QuantiserOptions::parameters(&["iterative", "equi_width", "equi_height"], "1000");

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "sfs",
    summary: "by hotness (writes over age), in groups whose centres are refined over the segments",
    paper: "Min et al., SFS, FAST'12",
    memory: "12 bytes a logical page, 20 bytes a block",
    parameters: &[
        QUANTISER[0],
        QUANTISER[1],
        QUANTISER[2],
        QUANTISER[3],
        QUANTISER[4],
        QUANTISER[5],
        Parameter::choice("age", &["created", "modified"], "created").help("what the age of a page counts from"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let quantiser = QuantiserOptions::read(parameters, Criterion::NAMES);
        // A file is a mebibyte of consecutive addresses: all that a device can know of it.
        let log2_file_pages = (FILE_BYTES / context.page_bytes).max(1).ilog2();
        Ok(AnyPlacement::SfsGroups(SfsGroups {
            age: parameters.choice("age", AgeFrom::NAMES),
            pages: memory::table(context.logical_pages as usize, Page::default()),
            files: Files::new(context.logical_pages, log2_file_pages),
            quantiser: Quantiser::new(quantiser, context.seed),
            segments: SegmentSums::new(context.blocks, context.pages_per_block),
            open: vec![NOWHERE; quantiser.groups],
            now: 0,
        }))
    }),
};

const FILE_BYTES: u32 = 1 << 20;

/// Mark of no segment.
const NOWHERE: u32 = u32::MAX;

/// What is known of a page: on one line of the processor's cache, since all of it is needed at once.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Page {
    heat: Heat,
    /// The segment that it lies in, or [`NOWHERE`].
    segment: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { heat: Heat::default(), segment: NOWHERE }
    }
}

/// Live pages of one segment.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Pages written to it so far.
    written: u32,
    live: u32,
    heat: HeatSums,
}

/// The segments that hold live pages.
#[derive(Clone, Debug)]
struct SegmentSums {
    pages_per_segment: u32,
    segments: Vec<Segment>,
    free: Vec<u32>,
}

impl SegmentSums {
    fn new(blocks: u32, pages_per_segment: u32) -> Self {
        Self { pages_per_segment, segments: Vec::with_capacity(blocks as usize), free: Vec::new() }
    }

    fn open(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.segments.push(Segment::default());
            self.segments.len() as u32 - 1
        })
    }

    /// Adds a page. Returns whether the segment is full now.
    #[inline(always)]
    fn add(&mut self, segment: u32, heat: Heat) -> bool {
        let segment = &mut self.segments[segment as usize];
        segment.written += 1;
        segment.live += 1;
        segment.heat.add(heat);
        segment.written == self.pages_per_segment
    }

    /// Takes out a page that was added with this heat; a full segment without pages is free.
    #[inline(always)]
    fn remove(&mut self, index: u32, heat: Heat) {
        let segment = &mut self.segments[index as usize];
        segment.live -= 1;
        segment.heat.remove(heat);
        if segment.live == 0 && segment.written == self.pages_per_segment {
            *segment = Segment::default();
            self.free.push(index);
        }
    }

    fn hotness(&self, index: usize, now: u64) -> Option<f64> {
        let segment = &self.segments[index];
        (segment.live > 0 && segment.written == self.pages_per_segment).then(|| segment.heat.hotness(segment.live, now))
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SfsGroups {
    age: AgeFrom,
    pages: Vec<Page>,
    files: Files,
    quantiser: Quantiser,
    segments: SegmentSums,
    /// The segment that each group fills, or [`NOWHERE`].
    open: Vec<u32>,
    /// Host page writes so far.
    now: u64,
}

impl SfsGroups {
    /// Takes a page out of the segment where it lies.
    #[inline(always)]
    fn leave(&mut self, lpn: Lpn) {
        let page = &mut self.pages[lpn.0 as usize];
        let segment = std::mem::replace(&mut page.segment, NOWHERE);
        if segment != NOWHERE {
            self.segments.remove(segment, page.heat);
        }
    }

    /// Puts a page into its group's segment.
    #[inline(always)]
    fn enter(&mut self, lpn: Lpn) -> StreamId {
        let (page, now) = (&mut self.pages[lpn.0 as usize], self.now as Time);
        let hotness = if page.heat.writes <= 1 { self.files.hotness(lpn.0, now) } else { page.heat.hotness(now) };
        let group = self.quantiser.group(hotness);
        if self.open[group] == NOWHERE {
            self.open[group] = self.segments.open();
        }
        let segment = self.open[group];
        page.segment = segment;
        if self.segments.add(segment, page.heat) {
            self.fill(group);
        }
        StreamId(group as u16)
    }

    /// A group has filled its segment.
    #[inline(never)]
    fn fill(&mut self, group: usize) {
        self.open[group] = NOWHERE;
        let (segments, now) = (&self.segments, self.now);
        self.quantiser.update(segments.segments.len(), now, |index| segments.hotness(index, now));
    }
}

impl Placement for SfsGroups {
    fn streams(&self) -> u16 {
        self.open.len() as u16
    }
    fn learns_for(&self) -> u32 {
        128
    }
    fn gc_streams(&self) -> u16 {
        self.open.len() as u16
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        self.leave(write.lpn);
        self.now = write.now;
        self.pages[write.lpn.0 as usize].heat.on_write(write.now as Time, self.age);
        self.files.on_write(write.lpn.0, write.now as Time, self.age);
        self.enter(write.lpn)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.leave(copy.lpn);
        self.enter(copy.lpn)
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.leave(lpn);
        self.pages[lpn.0 as usize].heat = Heat::default();
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.pages, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        let pages = self.pages.len() * (size_of::<Heat>() + 4);
        let segments = self.segments.segments.capacity() * size_of::<Segment>() + self.segments.free.capacity() * 4;
        (pages + segments) as u64 + self.files.bytes()
    }
    fn simulator_bytes(&self) -> u64 {
        self.memory_bytes() + (self.pages.len() * (size_of::<Page>() - size_of::<Heat>() - 4)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlacementContext, build_placement};
    use super::*;
    use crate::random::Random;

    fn build(text: &str, pages: u32) -> SfsGroups {
        let context = PlacementContext {
            logical_pages: pages,
            pages_per_block: 16,
            page_bytes: 4096,
            blocks: 2 * pages / 16,
            seed: 1,
            future: None,
            external: None,
        };
        match build_placement(&text.parse().unwrap(), &context).unwrap() {
            AnyPlacement::SfsGroups(placement) => placement,
            _ => unreachable!("the name is sfs"),
        }
    }

    fn write(placement: &mut SfsGroups, lpn: u32, now: u64) -> u16 {
        placement
            .host(
                &HostWrite { lpn: Lpn(lpn), now, rewrite: placement.pages[lpn as usize].heat.writes > 0 },
                &mut PageHistory::default(),
            )
            .0
    }

    #[test]
    fn hot_pages_and_cold_ones_come_to_streams_of_their_own() {
        let mut placement = build("sfs:groups=2", 1024);
        let mut random = Random::new(3);
        for page in 0..1024 {
            write(&mut placement, page, u64::from(page));
        }
        let (mut hot, mut cold) = ([0; 2], [0; 2]);
        for now in 1024..60_000 {
            let is_hot = random.chance(0.9);
            let page = if is_hot { random.below(64) } else { 64 + random.below(960) } as u32;
            let stream = usize::from(write(&mut placement, page, now));
            if now > 30_000 {
                (if is_hot { &mut hot } else { &mut cold })[stream] += 1;
            }
        }
        assert!(hot[1] > 20 * hot[0] && cold[0] > 20 * cold[1], "{hot:?} {cold:?}");
        assert_eq!(
            placement.gc(&GcCopy { lpn: Lpn(3), now: 60_000, from: StreamId(0), stamp: 0 }, &PageHistory::default()),
            StreamId(1)
        );
    }

    #[test]
    fn sums_of_segments_equal_those_of_their_pages() {
        let mut placement = build("sfs:age=modified", 512);
        let mut random = Random::new(4);
        for now in 0..20_000 {
            let lpn = random.below(512) as u32;
            let kind = random.below(20);
            if kind == 0 {
                placement.on_trim(Lpn(lpn));
            } else if kind == 1 && placement.pages[lpn as usize].heat.writes > 0 {
                placement.gc(&GcCopy { lpn: Lpn(lpn), now, from: StreamId(0), stamp: 0 }, &PageHistory::default());
            } else {
                write(&mut placement, lpn, now);
            }
        }
        let mut found = vec![(0, HeatSums::default()); placement.segments.segments.len()];
        for page in placement.pages.iter().filter(|page| page.segment != NOWHERE) {
            found[page.segment as usize].0 += 1;
            found[page.segment as usize].1.add(page.heat);
        }
        for (segment, found) in placement.segments.segments.iter().zip(found) {
            assert_eq!((segment.live, segment.heat), found);
        }
        assert!(placement.segments.segments.len() < 512, "empty segments are used again");
    }
}
