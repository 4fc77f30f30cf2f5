//! DAC (dynamic data clustering): a page moves one region hotter when it is written again, and one region colder when the
//! collector copies it (Chiang, Lee & Chang, "Using data clustering to improve cleaning performance for flash memory",
//! Software: Practice and Experience 1999).
//!
//! The publication lets a page move only if it is young (up) or old (down) enough for its region, by thresholds that it does
//! not give; `young` restores the condition for promotions. O(1) a write.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::{Entry, Kind, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "dac",
    summary: "one region hotter at every rewrite, one colder at every copy",
    paper: "Chiang, Lee & Chang, Software: Practice and Experience 1999",
    memory: "5 bytes a logical page",
    parameters: &[
        Parameter::integer("regions", 2..=64, "6").help("regions, each a stream"),
        Parameter::any("young", &[Kind::real(0.0..=1e6), Kind::word(&["inf"])], "inf")
            .help("a rewrite promotes only within this time, in multiples of the logical pages (host page writes)"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let young = parameters.real("young") * f64::from(context.logical_pages);
        Ok(AnyPlacement::Dac(Dac {
            regions: memory::zeroed_table(context.logical_pages as usize),
            last_writes: memory::zeroed_table(context.logical_pages as usize),
            hottest: parameters.integer("regions") as u8 - 1,
            young_writes: (young < f64::from(u32::MAX)).then_some(young.round() as u32),
        }))
    }),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Dac {
    /// Region of each page; 0 is the coldest.
    regions: Vec<u8>,
    /// Time of each page's last write, in host page writes modulo 2^32.
    last_writes: Vec<u32>,
    hottest: u8,
    /// `None`: a rewrite always promotes.
    young_writes: Option<u32>,
}

impl Placement for Dac {
    fn streams(&self) -> u16 {
        u16::from(self.hottest) + 1
    }
    fn gc_streams(&self) -> u16 {
        u16::from(self.hottest)
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        let region = &mut self.regions[write.lpn.0 as usize];
        let last = std::mem::replace(&mut self.last_writes[write.lpn.0 as usize], write.now as u32);
        let life = (write.now as u32).wrapping_sub(last);
        if !write.rewrite {
            *region = 0;
        } else if self.young_writes.is_none_or(|young| life <= young) {
            *region = (*region + 1).min(self.hottest);
        }
        StreamId(u16::from(*region))
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        let region = &mut self.regions[copy.lpn.0 as usize];
        *region = region.saturating_sub(1);
        StreamId(u16::from(*region))
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.regions[lpn.0 as usize] = 0;
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.regions, lpn.0 as usize);
            memory::prefetch(&self.last_writes, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        self.regions.len() as u64 * 5
    }
}
