//! Separation by learnt lifetimes: pages that will probably die at the same time share a block.
//!
//! The stream of a page is the octave of its death rate, as pages of the same context and age have died (`hotness/lifetime`); a copy
//! is placed by the same table at the age that it has reached. The mean rate of all pages, one death in one write of
//! the logical capacity, lies in the middle of a class, so that noise does not divide it; where pages are alike, all go to one stream.
//!
//! Where what was written together dies together, whatever its rate, copies of another time would stay behind in its blocks: there cold
//! copies keep away from what the host writes, and from copies of other ages.
//!
//! A block that stays open without being written to holds free pages that nobody gets. So a stream whose block is full takes the nearest
//! one that another stream has left open for a sixteenth of a drive write, and fills that first ([`IdleBlocks`]).
//! Use it with the victim `isotherm`.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Wanted};
use crate::address::{BlockId, StreamId};
use crate::hotness::lifetime::{LifetimeOptions, MEAN_RATE, Signal};
use crate::registry::{Entry, Kind, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "isotherm",
    summary: "by death rate, learnt from the lifetimes of pages with as many rewrites at such intervals, in octaves; copies by age where pages die together",
    paper: "isotherm (docs/placement.md)",
    memory: "4 bytes a logical page and 60 KiB, kept once with the victim isotherm",
    parameters: &[
        Parameter::any("streams", &[Kind::integer(2..=16), Kind::word(&["auto"])], "auto").help(
            "classes of death rate, each a stream: an octave wide, and wider where they are fewer than 16; auto is 16, or half of the spare blocks if that is less",
        ),
        Parameter::choice("ignore", &["none", "size", "rewrites", "interval", "age", "together"], "none")
            .help("what it does not go by, to see what it is good for; the victim isotherm follows"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let lifetimes = LifetimeOptions {
            ignored: parameters.choice("ignore", Signal::NAMES),
            ..LifetimeOptions::of_drive(context.logical_pages, context.blocks, context.pages_per_block)
        };
        let streams = if parameters.is("streams", "auto") {
            (lifetimes.spare_pages / context.pages_per_block / 2).clamp(2, MOST_STREAMS)
        } else {
            parameters.integer("streams") as u32
        };
        Ok(AnyPlacement::ByLifetime(ByLifetime::new(lifetimes, streams)))
    }),
};

const MOST_STREAMS: u32 = 16;
/// Where pages die together, of so many streams these are for copies alone, and part this many octaves of age.
const OF_COPIES: u32 = 5;
/// Codes above that of the mean rate at which pages are no longer cold.
const COLD_ENDS: u32 = 20;
/// With fewer streams cold pages and hot ones are told apart, and the mean rate has no class of its own.
const FEWEST_WITH_A_MEAN: u32 = 4;
/// Parts of a drive write after which an open block that was not written to is idle.
const IDLE_PARTS: u64 = 16;
/// Later than any host page write.
const NONE_OPEN: u64 = u64::MAX;
/// An octave in codes of death rates.
const OCTAVE: u32 = 8;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ByLifetime {
    lifetimes: LifetimeOptions,
    /// The stream of every code of a death rate.
    of_all: Box<[u8; 256]>,
    /// The same where pages die together, of what the host writes, and of copies that are hot; cold ones have [`BY_AGE`] here.
    of_writes: Box<[u8; 256]>,
    of_copies: Box<[u8; 256]>,
    count: u16,
    /// Streams of copies by their ages, the oldest first, and octaves of age in each.
    copies: u32,
    copy_octaves: u32,
    idle: IdleBlocks,
}

/// A copy that is placed by its age.
const BY_AGE: u8 = u8::MAX;

impl ByLifetime {
    fn new(lifetimes: LifetimeOptions, count: u32) -> Self {
        let copies = (count * OF_COPIES / MOST_STREAMS).max(1);
        let writes = count - copies;
        // Classes of codes from the upper end of the coldest one on, which takes what is colder still.
        let class = |code: usize, coldest_ends: i32, width: u32| {
            let above = code as i32 - i32::from(MEAN_RATE) - coldest_ends;
            if above < 0 { 0 } else { above as u32 / width + 1 }
        };
        let width = |octaves: u32, classes: u32| (octaves * OCTAVE).div_ceil(classes).max(OCTAVE);
        let middle_of = |classes_below: u32, width: u32| width as i32 / 2 - (classes_below * width) as i32;
        let all = width(MOST_STREAMS, count);
        // A quarter of the classes lie below that of the mean rate.
        let coldest_ends = if count < FEWEST_WITH_A_MEAN { COLD_ENDS as i32 } else { middle_of(count / 4, all) };
        let stream_of_any = |code: usize| class(code, coldest_ends, all).min(count - 1);
        // What the host writes is told apart from half an octave above the mean rate on.
        let of_write = width(MOST_STREAMS - OF_COPIES, writes);
        let stream_of_write = |code: usize| copies + class(code, of_write as i32 - 4, of_write).min(writes - 1);
        let cold_ends = usize::from(MEAN_RATE) + COLD_ENDS as usize;
        Self {
            lifetimes,
            of_all: Box::new(std::array::from_fn(|code| stream_of_any(code) as u8)),
            of_writes: Box::new(std::array::from_fn(|code| stream_of_write(code) as u8)),
            of_copies: Box::new(std::array::from_fn(|code| {
                if code < cold_ends { BY_AGE } else { stream_of_write(code) as u8 }
            })),
            count: count as u16,
            copies,
            copy_octaves: OF_COPIES.div_ceil(copies),
            idle: IdleBlocks::new(u64::from(lifetimes.logical_pages) / IDLE_PARTS),
        }
    }
}

/// Open blocks that nobody writes to any more, and who fills them instead.
#[derive(Clone, Debug)]
struct IdleBlocks {
    /// The stream in whose block the pages of a stream go.
    goes_to: [u8; MOST_STREAMS as usize],
    /// The host page write before which the open block of a stream was written to last; [`NONE_OPEN`] where there is none.
    used: [u64; MOST_STREAMS as usize],
    /// Host page writes so far, and those after which a block is idle.
    now: u64,
    idle_after: u64,
}

impl IdleBlocks {
    fn new(idle_after: u64) -> Self {
        let itself = std::array::from_fn(|stream| stream as u8);
        Self { goes_to: itself, used: [NONE_OPEN; MOST_STREAMS as usize], now: 0, idle_after }
    }

    /// Where a page of `stream` goes.
    #[inline(always)]
    fn open_for(&mut self, stream: u8) -> StreamId {
        let taken = self.goes_to[usize::from(stream)];
        self.used[usize::from(taken)] = self.now;
        StreamId(taken.into())
    }

    /// The open block of `closed` is full: whoever wrote there goes elsewhere, its own stream to the nearest idle block.
    fn close(&mut self, closed: usize) {
        self.used[closed] = NONE_OPEN;
        for (stream, goes_to) in self.goes_to.iter_mut().enumerate() {
            if usize::from(*goes_to) == closed {
                *goes_to = stream as u8;
            }
        }
        let is_idle =
            |other: &usize| self.now.checked_sub(self.used[*other]).is_some_and(|unused| unused > self.idle_after);
        let nearest = (0..self.used.len()).filter(is_idle).min_by_key(|other| other.abs_diff(closed));
        if let Some(idle) = nearest {
            self.goes_to[closed] = idle as u8;
            self.used[idle] = self.now;
        }
    }
}

impl Placement for ByLifetime {
    fn streams(&self) -> u16 {
        self.count
    }
    fn learns_for(&self) -> u32 {
        16
    }
    fn gc_streams(&self) -> u16 {
        self.count
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, history: &mut PageHistory) -> StreamId {
        history.lifetimes_mut().record(write.lpn, write.now);
        let lifetimes = history.lifetimes();
        let streams = if lifetimes.die_together() { &self.of_writes } else { &self.of_all };
        let stream = streams[usize::from(lifetimes.eighths(write.lpn))];
        self.idle.now = write.now;
        self.idle.open_for(stream)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, history: &PageHistory) -> StreamId {
        let lifetimes = history.lifetimes();
        let streams = match lifetimes.die_together() {
            false => &self.of_all,
            true if lifetimes.are_alike() => &self.of_writes,
            true => &self.of_copies,
        };
        let stream = match streams[usize::from(lifetimes.eighths(copy.lpn))] {
            // The coldest come first: tombstones are theirs to share.
            BY_AGE => {
                let class = (lifetimes.octaves_old(copy.lpn) / self.copy_octaves).min(self.copies - 1);
                (self.copies - 1 - class) as u8
            }
            stream => stream,
        };
        self.idle.open_for(stream)
    }
    fn on_close(&mut self, _: BlockId, stream: StreamId) {
        self.idle.close(usize::from(stream.0));
    }
    fn wanted(&self) -> Wanted {
        Wanted { lifetimes: self.lifetimes, ..Wanted::default() }
    }
    fn memory_bytes(&self) -> u64 {
        (self.of_all.len() + self.of_writes.len() + self.of_copies.len() + size_of::<IdleBlocks>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32) -> ByLifetime {
        ByLifetime::new(LifetimeOptions { logical_pages: 64, ..LifetimeOptions::default() }, count)
    }

    #[test]
    fn every_number_of_streams_is_used_whole_and_copies_that_are_hot_go_with_writes() {
        for count in 2..=MOST_STREAMS {
            let streams = of(count);
            assert!(streams.of_all.is_sorted() && streams.of_writes.is_sorted());
            let used = |streams: &mut dyn Iterator<Item = u8>| {
                let mut used: Vec<u8> = streams.collect();
                used.sort_unstable();
                used.dedup();
                used
            };
            let every: Vec<u8> = (0..count as u8).collect();
            assert_eq!(used(&mut streams.of_all.iter().copied()), every);
            assert_eq!(used(&mut (0..streams.copies as u8).chain(streams.of_writes.iter().copied())), every);
            assert!(streams.copies * streams.copy_octaves >= OF_COPIES);
            let by_age = streams.of_copies.iter().take_while(|stream| **stream == BY_AGE).count();
            assert!(by_age > usize::from(MEAN_RATE) && by_age < 128, "cold copies are apart, hot ones are not");
            assert_eq!(streams.of_copies[by_age..], streams.of_writes[by_age..]);
        }
    }

    #[test]
    fn a_block_that_is_left_open_is_filled_by_the_nearest_stream_that_needs_one() {
        let mut blocks = IdleBlocks::new(100);
        for stream in [2, 5, 6, 9] {
            assert_eq!(blocks.open_for(stream), StreamId(stream.into()));
        }
        blocks.now = 80;
        blocks.open_for(6);
        blocks.now = 150;
        blocks.open_for(9);
        // 5 lies nearer to 9 than 2 does; 6 is not idle yet, 7 has no block.
        blocks.close(9);
        assert_eq!([9, 6, 5, 2].map(|stream| blocks.open_for(stream).0), [5, 6, 5, 2]);
        // Once that is full, each has a new block of its own; by then 6 is idle too.
        blocks.now = 260;
        blocks.open_for(2);
        blocks.close(5);
        assert_eq!([9, 5, 6, 2].map(|stream| blocks.open_for(stream).0), [9, 6, 6, 2]);
        blocks.close(6);
        assert_eq!([9, 5, 6, 2].map(|stream| blocks.open_for(stream).0), [9, 5, 6, 2]);
    }

    #[test]
    fn the_mean_rate_lies_within_a_class() {
        let mean = usize::from(MEAN_RATE);
        for count in 2..=MOST_STREAMS {
            let streams = of(count);
            for table in [&streams.of_all, &streams.of_writes] {
                assert_eq!(table[mean - 4], table[mean + 3], "{count} streams");
            }
        }
        assert_ne!(of(16).of_all[mean - 5], of(16).of_all[mean]);
        assert_ne!(of(16).of_all[mean + 4], of(16).of_all[mean]);
    }
}
