//! Separation by update rate as MDC does it (Lomet & Luo, "Efficiently reclaiming space in a log structured store",
//! ICDE'21): the rate of a page is two updates over the time since its last update but one, for host writes and copies alike.
//!
//! The publication sorts a buffer of pages by that time and cuts it into segments. A device writes page by page: here the
//! order is cut into fixed classes by powers of two of the interval between updates. Use it with the victim `mdc`.

use super::rate_classes::RateClasses;
use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Wanted};
use crate::address::{Lpn, StreamId};
use crate::bits::Bits;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "mdc",
    summary: "by update rate, estimated from the last update but one, in classes by powers of two",
    paper: "Lomet & Luo, ICDE'21",
    memory: "8 bytes a logical page, kept once with the victim mdc",
    parameters: &[Parameter::integer("classes", 2..=32, "8").help("classes of update rate, each a stream")],
    build: BuildPlacement::online(|parameters, context| {
        Ok(AnyPlacement::MdcRates(MdcRates {
            created: Bits::new(context.logical_pages as usize),
            logical_pages: context.logical_pages,
            classes: RateClasses::new(context, parameters.integer("classes")),
        }))
    }),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MdcRates {
    /// Pages whose last update was their first, or the first after a trim: what the history knows before it does not count.
    created: Bits,
    logical_pages: u32,
    classes: RateClasses,
}

impl MdcRates {
    /// The last update of a page but one.
    #[inline(always)]
    fn before(&self, lpn: Lpn, history: &PageHistory) -> u32 {
        let updates = history.of(lpn);
        if self.created.contains(lpn.0) { updates.last } else { updates.before }
    }

    #[inline(always)]
    fn stream(&self, before: u32, now: u64) -> StreamId {
        self.classes.stream(u64::from((now as u32).wrapping_sub(before)) / 2)
    }
}

impl Placement for MdcRates {
    fn streams(&self) -> u16 {
        self.classes.streams()
    }
    fn gc_streams(&self) -> u16 {
        self.classes.streams()
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, history: &mut PageHistory) -> StreamId {
        if !write.rewrite {
            // Nothing is known of a page before its second write: it is cold.
            history.record(write.lpn, write.now);
            self.created.insert(write.lpn.0);
            return StreamId(0);
        }
        let before = self.before(write.lpn, history);
        history.record(write.lpn, write.now);
        self.created.remove(write.lpn.0);
        self.stream(before, write.now)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, history: &PageHistory) -> StreamId {
        self.stream(self.before(copy.lpn, history), copy.now)
    }
    fn wanted(&self) -> Wanted {
        Wanted { updates: self.logical_pages, ..Wanted::default() }
    }
    fn memory_bytes(&self) -> u64 {
        // A drive marks a page as created by two equal times.
        0
    }
    fn simulator_bytes(&self) -> u64 {
        u64::from(self.logical_pages).div_ceil(8)
    }
}
