//! Placement with knowledge of the future: pages that die together lie together, because the whole trace was read first.
//! It is no bound: on a small device its windows are few and wide, and an online policy may write less.
//!
//! Time is cut into windows of g blocks' worth of host page writes; a page goes to the stream of the window in which it
//! will be overwritten or trimmed, and pages that never die have a class of their own. With g about the square root of
//! twice the longest remaining life (in blocks), open blocks and half-dead windows cost equally little, and the write
//! amplification tends to 1 as the device grows. Streams are reused round robin: a window's stream is free again once the
//! window has passed.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::future::{Future, NEVER};
use crate::memory;
use crate::registry::{Entry, Parameter, Parameters, SpecError};
use std::sync::Arc;

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "offline",
    summary: "by the time of the next write, which it reads ahead in the trace; tends to a WA of 1 as the device grows, and is no bound on a small one",
    paper: "known future",
    memory: "4 bytes a logical page, 4 bytes a host page write",
    parameters: &[Parameter::integer("window", 0..=1_000_000, "0").help("blocks in a window; 0 chooses the square root of twice the longest life in blocks, or more if streams would take over half the spare space")],
    build: BuildPlacement { build, needs_future: |_| true },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Offline {
    future: Arc<Future>,
    /// Death of the version that each page holds now.
    deaths: Vec<u32>,
    window_writes: u64,
    /// Streams for windows; stream 0 is for pages that never die.
    windows: u16,
}

fn build(parameters: &Parameters<'_>, context: &super::PlacementContext) -> Result<AnyPlacement, SpecError> {
    let future = context.future.clone().ok_or_else(|| {
        SpecError::new(
            "placement offline",
            "the future is not known here",
            "use it with a trace that can be read twice",
        )
    })?;
    let longest =
        future.deaths.iter().enumerate().filter(|(_, d)| **d != NEVER).map(|(i, d)| u64::from(*d) - i as u64).max();
    let block = u64::from(context.pages_per_block);
    let longest_blocks = longest.unwrap_or(0).div_ceil(block).max(1);
    // Half of the spare space may lie in open blocks; on a small device this widens the windows.
    let logical_blocks = context.logical_pages.div_ceil(context.pages_per_block);
    let most_windows = u64::from((context.blocks.saturating_sub(logical_blocks) / 2).max(4)) - 3;
    let window_blocks = match parameters.integer("window") {
        0 => ((2.0 * longest_blocks as f64).sqrt().round() as u64).max(longest_blocks.div_ceil(most_windows)),
        given => given,
    };
    let windows = longest_blocks.div_ceil(window_blocks) + 2;
    let windows = u16::try_from(windows).ok().filter(|w| *w < u16::MAX).ok_or_else(|| {
        SpecError::new("offline:window", format!("{windows} windows exceed 65534 streams"), "give a larger window")
    })?;
    Ok(AnyPlacement::Offline(Offline {
        future,
        deaths: vec![NEVER; context.logical_pages as usize],
        window_writes: window_blocks * block,
        windows,
    }))
}

impl Offline {
    #[inline(always)]
    fn stream(&self, death: u32) -> StreamId {
        if death == NEVER {
            return StreamId(0);
        }
        let window = u64::from(death) / self.window_writes;
        StreamId(1 + (window % u64::from(self.windows)) as u16)
    }
}

impl Placement for Offline {
    fn streams(&self) -> u16 {
        self.windows + 1
    }
    fn gc_streams(&self) -> u16 {
        // Copies are rare and spread over the windows; the block store falls back to another stream's block if need be.
        2
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        let death = self.future.deaths.get(write.now as usize).copied().unwrap_or(NEVER);
        self.deaths[write.lpn.0 as usize] = death;
        self.stream(death)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.stream(self.deaths[copy.lpn.0 as usize])
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
