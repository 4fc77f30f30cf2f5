//! Separation by learnt lifetimes: pages that will probably die at the same time share a block.
//!
//! The stream of a page is the octave of its death rate, as pages of the same context and age have died (`hotness/lifetime`); a copy
//! is placed by the same table at the age that it has reached. Cold copies keep away from what the host writes: what was written together
//! often dies together, whatever its rate, and copies of another time would stay behind. The mean rate of all pages, one death in one write of
//! the logical capacity, lies in the middle of a class, so that noise does not divide it; where pages are alike, all go to one stream.
//! Use it with the victim `isotherm`.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Wanted};
use crate::address::StreamId;
use crate::hotness::lifetime::{MEAN_RATE, Signal};
use crate::registry::{Entry, Kind, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "isotherm",
    summary: "by death rate, learnt from the lifetimes of pages with as many rewrites at such intervals, in octaves; cold copies apart",
    paper: "isotherm (docs/placement.md)",
    memory: "4 bytes a logical page and 60 KiB, kept once with the victim isotherm",
    parameters: &[
        Parameter::any("streams", &[Kind::integer(2..=16), Kind::word(&["auto"])], "auto").help(
            "classes of death rate, each a stream: an octave wide, and wider where they are fewer than 16; 5 of 16 are for cold \
             copies; auto is 16, or half of the spare blocks if that is less",
        ),
        Parameter::choice("ignore", &["none", "size", "rewrites", "interval", "age"], "none")
            .help("what death rates do not go by, to see what it is good for; the victim isotherm follows"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let streams = if parameters.is("streams", "auto") {
            let spare = context.blocks.saturating_sub(context.logical_pages.div_ceil(context.pages_per_block));
            (spare / 2).clamp(2, MOST_STREAMS)
        } else {
            parameters.integer("streams") as u32
        };
        Ok(AnyPlacement::ByLifetime(ByLifetime {
            ignored: parameters.choice("ignore", Signal::NAMES),
            ..ByLifetime::new(context.logical_pages, streams)
        }))
    }),
};

const MOST_STREAMS: u32 = 16;
/// Of so many streams these are for copies alone.
const OF_COPIES: u32 = 5;
/// An octave in codes of death rates.
const OCTAVE: u32 = 8;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ByLifetime {
    logical_pages: u32,
    /// The stream of every code of a death rate, of what the host writes and of copies.
    of_writes: Box<[u8; 256]>,
    of_copies: Box<[u8; 256]>,
    count: u16,
    ignored: Option<Signal>,
}

impl ByLifetime {
    fn new(logical_pages: u32, count: u32) -> Self {
        let copies = (count * OF_COPIES / MOST_STREAMS).max(1);
        let writes = count - copies;
        // Classes of codes from the lower end of the coldest one on, which takes what is colder still. What the host writes is told apart
        // from half an octave above the mean rate on; copies, which are colder, from one and a half below it on.
        let class = |code: usize, coldest_ends: i32, width: u32| {
            let above = code as i32 - i32::from(MEAN_RATE) - coldest_ends;
            if above < 0 { 0 } else { above as u32 / width + 1 }
        };
        let width = |octaves: u32, classes: u32| (octaves * OCTAVE).div_ceil(classes).max(OCTAVE);
        let (of_write, of_copy) = (width(MOST_STREAMS - OF_COPIES, writes), width(OF_COPIES, copies));
        let stream_of_write = |code: usize| copies + class(code, of_write as i32 - 4, of_write).min(writes - 1);
        // The coldest copies come first: tombstones are theirs to share.
        let stream_of_copy = |code: usize| match class(code, of_copy as i32 - 20, of_copy) {
            class if class < copies => class,
            _ => stream_of_write(code),
        };
        Self {
            logical_pages,
            of_writes: Box::new(std::array::from_fn(|code| stream_of_write(code) as u8)),
            of_copies: Box::new(std::array::from_fn(|code| stream_of_copy(code) as u8)),
            count: count as u16,
            ignored: None,
        }
    }
}

impl Placement for ByLifetime {
    fn streams(&self) -> u16 {
        self.count
    }
    fn gc_streams(&self) -> u16 {
        self.count
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, history: &mut PageHistory) -> StreamId {
        history.lifetimes_mut().record(write.lpn, write.now);
        StreamId(u16::from(self.of_writes[usize::from(history.lifetimes().eighths(write.lpn))]))
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, history: &PageHistory) -> StreamId {
        let lifetimes = history.lifetimes();
        let streams = if lifetimes.are_alike() { &self.of_writes } else { &self.of_copies };
        StreamId(u16::from(streams[usize::from(lifetimes.eighths(copy.lpn))]))
    }
    fn wanted(&self) -> Wanted {
        Wanted { lifetimes: self.logical_pages, ignored: self.ignored, ..Wanted::default() }
    }
    fn memory_bytes(&self) -> u64 {
        (self.of_writes.len() + self.of_copies.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_streams_is_used_whole_and_copies_that_are_hot_go_with_writes() {
        for count in 2..=MOST_STREAMS {
            let streams = ByLifetime::new(64, count);
            let mut used: Vec<u8> = streams.of_writes.iter().chain(streams.of_copies.iter()).copied().collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, (0..count as u8).collect::<Vec<_>>());
            assert!(streams.of_writes.is_sorted());
            let apart = streams.of_copies.iter().zip(streams.of_writes.iter()).filter(|(copy, write)| copy != write);
            assert!(apart.clone().count() >= usize::from(MEAN_RATE), "cold copies are apart");
            assert!(apart.count() < 128, "hot ones are not");
        }
    }

    #[test]
    fn the_mean_rate_lies_within_a_class() {
        let streams = ByLifetime::new(64, 16);
        let mean = usize::from(MEAN_RATE);
        for table in [&streams.of_writes, &streams.of_copies] {
            assert_eq!(table[mean - 4], table[mean + 3]);
        }
        assert_ne!(streams.of_copies[mean - 5], streams.of_copies[mean]);
    }
}
