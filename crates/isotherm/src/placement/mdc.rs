//! Separation by update rate as MDC does it (Lomet & Luo, "Efficiently reclaiming space in a log structured store",
//! ICDE'21): the rate of a page is two updates over the time since its last update but one, for host writes and copies alike.
//!
//! The publication sorts a buffer of pages by that time and cuts it into segments. A device writes page by page: here the
//! order is cut into fixed classes by powers of two of the interval between updates. Use it with the victim `mdc`.

use super::rate_classes::RateClasses;
use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, Placement};
use crate::address::StreamId;
use crate::memory;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "mdc",
    summary: "by update rate, estimated from the last update but one, in classes by powers of two",
    paper: "Lomet & Luo, ICDE'21",
    memory: "8 bytes a logical page",
    parameters: &[Parameter {
        key: "classes",
        default: "8",
        allowed: "2..=32",
        help: "classes of update rate, each a stream",
    }],
    build: |parameters, context| {
        Ok(AnyPlacement::MdcRates(MdcRates {
            updates: memory::zeroed_table(context.logical_pages as usize),
            classes: RateClasses::new(context, parameters.integer("classes", 2..=32)?),
        }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MdcRates {
    /// Last and last but one update of each page, in host page writes modulo 2^32.
    updates: Vec<(u32, u32)>,
    classes: RateClasses,
}

impl MdcRates {
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
    fn host(&mut self, write: &HostWrite) -> StreamId {
        let (last, before) = &mut self.updates[write.lpn.0 as usize];
        if write.rewrite {
            let sooner = *before;
            *before = *last;
            *last = write.now as u32;
            return self.stream(sooner, write.now);
        }
        // Nothing is known of a page before its second write: it is cold.
        (*last, *before) = (write.now as u32, write.now as u32);
        StreamId(0)
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy) -> StreamId {
        self.stream(self.updates[copy.lpn.0 as usize].1, copy.now)
    }
    fn memory_bytes(&self) -> u64 {
        self.updates.len() as u64 * 8
    }
}
