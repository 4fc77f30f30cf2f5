//! Separation by learnt lifetimes: pages that will probably die at the same time share a block.
//!
//! The stream of a page is the octave of its death rate, as pages of the same context and age have died (`hotness/lifetime`); a copy
//! is placed by the same table at the age that it has reached. The mean rate of all pages, one death in one write of the logical capacity, lies
//! in the middle of a class, so that the noise of uniform traffic does not divide it. Use it with the victim `isotherm`.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Wanted};
use crate::address::{Lpn, StreamId};
use crate::registry::{Entry, Kind, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "isotherm",
    summary: "by death rate, learnt from the lifetimes of pages with as many rewrites at such intervals, in octaves",
    paper: "isotherm (docs/placement.md)",
    memory: "4 bytes a logical page and 60 KiB, kept once with the victim isotherm",
    parameters: &[Parameter::any("streams", &[Kind::integer(2..=16), Kind::word(&["auto"])], "auto").help(
        "classes of death rate, each a stream: an octave wide, and wider where they are fewer than 14; auto is 14, or a \
         quarter of the spare blocks if that is less",
    )],
    build: BuildPlacement::online(|parameters, context| {
        let streams = if parameters.is("streams", "auto") {
            let spare = context.blocks.saturating_sub(context.logical_pages.div_ceil(context.pages_per_block));
            (spare / 4).clamp(2, OCTAVES) as u16
        } else {
            parameters.integer("streams") as u16
        };
        Ok(AnyPlacement::ByLifetime(ByLifetime::new(context.logical_pages, streams)))
    }),
};

/// Code of a death rate of one death in one write of the logical capacity.
const MEAN_RATE: u32 = 48;
/// Octaves from the coldest class to the hottest.
const OCTAVES: u32 = 14;
/// Octaves from the lower end of the coldest class to the mean rate, in eighths.
const BELOW_MEAN: u32 = 20;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ByLifetime {
    logical_pages: u32,
    /// The stream of every code of a death rate.
    streams: Box<[u8; 256]>,
    count: u16,
}

impl ByLifetime {
    fn new(logical_pages: u32, count: u16) -> Self {
        // Eighths of octaves to a class.
        let width = (8 * OCTAVES).div_ceil(u32::from(count)).max(8);
        let stream = |code: usize| {
            let above = (code as u32 + BELOW_MEAN).saturating_sub(MEAN_RATE);
            (above / width).min(u32::from(count) - 1) as u8
        };
        Self { logical_pages, streams: Box::new(std::array::from_fn(stream)), count }
    }

    #[inline(always)]
    fn stream(&self, lpn: Lpn, history: &PageHistory) -> StreamId {
        StreamId(u16::from(self.streams[usize::from(history.lifetimes().eighths(lpn))]))
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
        self.stream(write.lpn, history)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, history: &PageHistory) -> StreamId {
        self.stream(copy.lpn, history)
    }
    fn wanted(&self) -> Wanted {
        Wanted { updates: 0, lifetimes: self.logical_pages }
    }
    fn memory_bytes(&self) -> u64 {
        self.streams.len() as u64
    }
}
