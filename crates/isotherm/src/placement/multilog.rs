//! MultiLog: several logs, each for pages of about one update frequency (Stoica & Ailamaki, "Improving flash write
//! performance by using update frequency", VLDB'13).
//!
//! The frequency of a page is estimated from an average of the intervals between its updates, the newest weighing a half; a copy
//! whose age exceeds that average shows that the page has cooled, and counts as an update at its age. Logs hold frequencies
//! by powers of two.
//!
//! Departure: the publication also divides the spare space among the logs by theory and cleans each log by itself. Here the
//! victim policy looks at all blocks; with the victim `mdc`, which reaches the optimal split by itself, the division follows.

use super::rate_classes::RateClasses;
use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, Placement};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "multilog",
    summary: "by the page's average interval between updates, in logs by powers of two",
    paper: "Stoica & Ailamaki, VLDB'13",
    memory: "8 bytes a logical page",
    parameters: &[Parameter { key: "logs", default: "8", allowed: "2..=32", help: "logs, each a stream" }],
    build: |parameters, context| {
        Ok(AnyPlacement::MultiLog(MultiLog {
            pages: memory::zeroed_table(context.logical_pages as usize),
            classes: RateClasses::new(context, parameters.integer("logs", 2..=32)?),
        }))
    },
};

#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Time of the last write, in host page writes modulo 2^32.
    last_write: u32,
    /// Average interval; 0 before the second write.
    interval: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MultiLog {
    pages: Vec<PageState>,
    classes: RateClasses,
}

impl Placement for MultiLog {
    fn streams(&self) -> u16 {
        self.classes.streams()
    }
    fn gc_streams(&self) -> u16 {
        self.classes.streams()
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite) -> StreamId {
        let page = &mut self.pages[write.lpn.0 as usize];
        let since = (write.now as u32).wrapping_sub(std::mem::replace(&mut page.last_write, write.now as u32)).max(1);
        if !write.rewrite {
            page.interval = 0;
            return StreamId(0);
        }
        page.interval = if page.interval == 0 { since } else { (page.interval / 2 + since / 2).max(1) };
        self.classes.stream(page.interval.into())
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy) -> StreamId {
        let page = self.pages[copy.lpn.0 as usize];
        let age = (copy.now as u32).wrapping_sub(page.last_write);
        match page.interval {
            0 => StreamId(0),
            interval if age > interval => self.classes.stream(u64::from(interval / 2 + age / 2)),
            interval => self.classes.stream(interval.into()),
        }
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.pages[lpn.0 as usize].interval = 0;
    }
    fn memory_bytes(&self) -> u64 {
        self.pages.len() as u64 * 8
    }
}
