//! Placement with knowledge of the future: pages that die together lie together, because the whole trace was read first.
//! It is no bound: another policy may write less, on small devices above all.
//!
//! Time ahead is cut into windows, and a page goes to the stream of the window in which it will be overwritten or trimmed. Near windows are
//! narrow; with each doubling of the distance they become twice as wide, or all have one width. A page that is copied is nearer to its
//! death than when it was written, and goes to a narrower window. Pages that die beyond the reach of the windows lie together with those
//! that never die. A stream is used again once its window has passed.
//!
//! A window of w blocks holds w/2 blocks of dead pages while it passes, and an open block is half empty. Windows that widen with the
//! distance need a stream for each of a few parts of each doubling, where windows of one width need one for each part of the longest life;
//! dead pages are in proportion to the pages that live, since the mean life is the number of live pages (Little's law). What is best depends
//! on how lives are distributed and how many open blocks the spare space bears, so that [`lookaheads`] are tried.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::future::{Future, NEVER};
use crate::memory;
use crate::registry::{Entry, Parameter, Parameters, PolicyName, SpecError};
use std::sync::Arc;

const NAME: &str = "offline";

/// The most that `window` and `reach` may be.
const BLOCKS_MAX: u64 = 1 << 24;

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: NAME,
    summary: "by the time of the next write, which it reads ahead in the trace: the best of several lookaheads that fit the spare space; tends to a WA of 1 as the device grows, and is no bound on a small one",
    paper: "known future",
    memory: "4 bytes a logical page, 4 bytes a host page write",
    parameters: &[
        Parameter::integer("window", 0..=BLOCKS_MAX, "0").help("blocks in the nearest window; 0 takes the narrowest that half the spare space has streams for, or, with nothing else given, tries several lookaheads and keeps what writes least"),
        Parameter::integer("per_doubling", 0..=64, "0").help("windows in each doubling of the distance, each twice as wide as those of the one before; 0 makes all as wide as the nearest"),
        Parameter::integer("reach", 0..=BLOCKS_MAX, "0").help("blocks of host writes ahead that windows cover; 0 covers the longest life"),
    ],
    build: BuildPlacement { build, needs_future: |_| true },
};

/// How time ahead is cut into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lookahead {
    /// Blocks in the nearest windows.
    window: u64,
    /// Windows of each doubling of the distance; 0: all are as wide as the nearest.
    per_doubling: u64,
    /// Blocks ahead that windows cover, the last of them excluded.
    reach: u64,
}

impl Lookahead {
    /// Streams of the nearest windows: those that are ahead, the one that is passing, and one that has passed and may have an open block.
    fn near_streams(self) -> u64 {
        match self.per_doubling {
            0 => self.reach.div_ceil(self.window) + 2,
            per => 2 * per + 2,
        }
    }

    /// Doublings of the distance beyond the nearest windows.
    fn doublings(self) -> u64 {
        match self.per_doubling {
            0 => 0,
            per => u64::from(self.reach.div_ceil(2 * per * self.window).next_power_of_two().ilog2()),
        }
    }

    /// Streams of all windows, and the one of what lives longer.
    fn streams(self) -> u64 {
        1 + self.near_streams() + self.doublings() * (self.per_doubling + 2)
    }

    /// The lookahead with the narrowest windows that needs no more than so many streams.
    fn narrowest(per_doubling: u64, reach: u64, most_streams: u64) -> Option<Self> {
        (0..=reach.next_power_of_two().ilog2())
            .map(|log2| Self { window: 1 << log2, per_doubling, reach })
            .find(|lookahead| lookahead.streams() <= most_streams)
    }

    fn name(self) -> PolicyName {
        let Self { window, per_doubling, reach } = self;
        let parameters = [("window", window), ("per_doubling", per_doubling), ("reach", reach)];
        let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_string())).to_vec();
        PolicyName { name: NAME.to_owned(), parameters }
    }
}

/// The longest life, in blocks of host writes.
fn longest_life(future: &Future, pages_per_block: u32) -> u64 {
    let lives = future.deaths.iter().enumerate().filter(|(_, death)| **death != NEVER);
    let longest = lives.map(|(born, death)| u64::from(*death) - born as u64).max();
    longest.unwrap_or(0).div_ceil(pages_per_block.into()).max(1)
}

/// Blocks of the spare space.
fn spare_blocks(logical_pages: u32, pages_per_block: u32, blocks: u32) -> u64 {
    blocks.saturating_sub(logical_pages.div_ceil(pages_per_block)).into()
}

/// Lookaheads that fit a device, each of which may be the best: windows that widen with the distance or do not, over all lives or as far as a
/// few drive writes, with streams for half the spare space or nearly all of it.
fn fitting(longest: u64, logical_pages: u32, pages_per_block: u32, blocks: u32) -> Vec<Lookahead> {
    let logical = u64::from(logical_pages.div_ceil(pages_per_block));
    let spare = spare_blocks(logical_pages, pages_per_block, blocks);
    let mut found: Vec<Lookahead> = Vec::new();
    for most_streams in [spare / 2, spare.saturating_sub(1)] {
        for (per_doubling, drive_writes) in [(2, None), (0, None), (1, Some(4)), (2, Some(2)), (4, None), (0, Some(1))]
        {
            let reach = drive_writes.map_or(longest, |drive_writes| longest.min(drive_writes * logical));
            let lookahead = Lookahead::narrowest(per_doubling, reach, most_streams.min(u64::from(u16::MAX)));
            found.extend(lookahead.filter(|lookahead| !found.contains(lookahead)));
        }
    }
    found
}

/// The names of the lookaheads that `name` leaves open on a device of so many blocks, one of which is the best; `name` alone where it
/// says how wide windows are, or is another placement.
pub fn lookaheads(
    name: &PolicyName,
    future: &Future,
    logical_pages: u32,
    pages_per_block: u32,
    blocks: u32,
) -> Vec<PolicyName> {
    if name.name != NAME || name.parameters.iter().any(|(_, value)| value != "0") {
        return vec![name.clone()];
    }
    let longest = longest_life(future, pages_per_block);
    let names: Vec<_> =
        fitting(longest, logical_pages, pages_per_block, blocks).into_iter().map(Lookahead::name).collect();
    if names.is_empty() { vec![name.clone()] } else { names }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Offline {
    future: Arc<Future>,
    /// Death of the version that each page holds now.
    deaths: Vec<u32>,
    /// Host page writes in the nearest windows, and as far as windows reach.
    window_writes: u64,
    reach_writes: u64,
    per_doubling: u64,
    /// Streams of the nearest windows, and of all; stream 0 is for pages that live beyond them.
    near_streams: u64,
    streams: u16,
}

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let future = context.future.clone().ok_or_else(|| {
        SpecError::new(
            "placement offline",
            "the future is not known here",
            "use it with a trace that can be read twice",
        )
    })?;
    let longest = longest_life(&future, context.pages_per_block);
    let reach = match parameters.integer("reach") {
        0 => longest,
        given => given.min(longest),
    };
    let per_doubling = parameters.integer("per_doubling");
    let (logical_pages, pages_per_block, blocks) = (context.logical_pages, context.pages_per_block, context.blocks);
    let chosen = match parameters.integer("window") {
        0 if per_doubling == 0 && parameters.integer("reach") == 0 => {
            fitting(longest, logical_pages, pages_per_block, blocks).first().copied()
        }
        0 => Lookahead::narrowest(per_doubling, reach, spare_blocks(logical_pages, pages_per_block, blocks) / 2),
        window => Some(Lookahead { window, per_doubling, reach }),
    };
    // On a device without room for two windows there is nothing to choose.
    let lookahead = chosen.unwrap_or(Lookahead { window: reach, per_doubling: 0, reach });
    let streams = lookahead.streams();
    let streams = u16::try_from(streams).map_err(|_| {
        SpecError::new("offline:window", format!("{streams} windows exceed 65535 streams"), "give a larger window")
    })?;
    let block = u64::from(pages_per_block);
    Ok(AnyPlacement::Offline(Offline {
        future,
        deaths: vec![NEVER; logical_pages as usize],
        window_writes: lookahead.window * block,
        reach_writes: lookahead.reach * block,
        per_doubling: lookahead.per_doubling,
        near_streams: lookahead.near_streams(),
        streams,
    }))
}

impl Offline {
    #[inline(always)]
    fn stream(&self, death: u32, now: u64) -> StreamId {
        let distance = u64::from(death).saturating_sub(now);
        if death == NEVER || distance >= self.reach_writes {
            return StreamId(0);
        }
        let (ahead, window) = (distance / self.window_writes, u64::from(death) / self.window_writes);
        if self.per_doubling == 0 || ahead < 2 * self.per_doubling {
            return StreamId(1 + (window % self.near_streams) as u16);
        }
        let doubling = (ahead / self.per_doubling).ilog2();
        let streams = self.per_doubling + 2;
        let before = 1 + self.near_streams + u64::from(doubling - 1) * streams;
        StreamId((before + (window >> doubling) % streams) as u16)
    }
}

impl Placement for Offline {
    fn streams(&self) -> u16 {
        self.streams
    }
    fn gc_streams(&self) -> u16 {
        // Copies are rare and spread over the windows; the block store falls back to another stream's block if need be.
        2
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        let death = self.future.deaths.get(write.now as usize).copied().unwrap_or(NEVER);
        self.deaths[write.lpn.0 as usize] = death;
        self.stream(death, write.now)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.stream(self.deaths[copy.lpn.0 as usize], copy.now)
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.deaths, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        (self.deaths.len() + self.future.deaths.len()) as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offline(lookahead: Lookahead) -> Offline {
        Offline {
            future: Arc::default(),
            deaths: Vec::new(),
            window_writes: lookahead.window,
            reach_writes: lookahead.reach,
            per_doubling: lookahead.per_doubling,
            near_streams: lookahead.near_streams(),
            streams: lookahead.streams() as u16,
        }
    }

    #[test]
    fn what_shares_a_stream_at_one_time_dies_within_one_window() {
        for (window, per_doubling, reach) in [(8, 0, 200), (4, 1, 1000), (4, 2, 1000), (16, 4, 5000), (1, 3, 77)] {
            let lookahead = Lookahead { window, per_doubling, reach };
            let offline = offline(lookahead);
            for now in 0..300u32 {
                let mut deaths = vec![Vec::new(); usize::from(offline.streams)];
                for death in now..now + reach as u32 {
                    deaths[usize::from(offline.stream(death, now.into()).0)].push(death - now);
                }
                assert!(deaths[0].is_empty(), "{lookahead:?}: all of it is within reach");
                for near in deaths.iter().filter(|deaths| !deaths.is_empty()) {
                    let (first, last) = (near[0], near[near.len() - 1]);
                    let width = window.max(u64::from(first).checked_div(per_doubling).unwrap_or(0));
                    assert!(u64::from(last - first) < width, "{lookahead:?} at {now}: {first} to {last}");
                }
                assert_eq!(offline.stream(now + reach as u32, now.into()), StreamId(0));
            }
        }
    }

    #[test]
    fn lookaheads_fit_the_spare_space() {
        for spare in [8u32, 18, 70, 1000] {
            let fits = fitting(12_000, 64_000, 64, 1000 + spare);
            assert!(fits.iter().all(|lookahead| lookahead.streams() < u64::from(spare)), "{spare}: {fits:?}");
            assert!(fits.len() >= 3, "{spare}: {fits:?}");
        }
        assert_eq!(fitting(100, 640, 64, 11), []);
    }
}
