//! MiDAS: a chain of groups through which survivors of collections pass, with a group of its own for hot pages in front (Oh
//! et al., "MiDAS: minimizing write amplification in log-structured systems through adaptive group number and size
//! configuration", FAST'24).
//!
//! A host write of a page that was overwritten while still in the hot group or the first one, twice in a row, is hot; any other
//! enters the first group. A page that survives a collection moves to the next group, the last one keeps its own survivors;
//! pages that survive in the hot group were misjudged and enter the first.
//!
//! Departure: the publication sizes the groups by a model of their valid shares and cleans each in FIFO order at its size. Here
//! sizes follow from the victim policy, which looks at all blocks: with `mdc` or `cost_benefit` the hot groups stay short by
//! themselves. The number of groups is fixed.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, Placement, Reclaim};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "midas",
    summary: "a chain of groups that survivors of collections pass through, behind a group of hot pages",
    paper: "Oh et al., MiDAS, FAST'24",
    memory: "8 bytes a logical page",
    parameters: &[Parameter {
        key: "groups",
        default: "6",
        allowed: "2..=64",
        help: "groups of the chain, each a stream; the hot group is one more",
    }],
    build: |parameters, context| {
        Ok(AnyPlacement::Midas(Midas {
            pages: memory::zeroed_table(context.logical_pages as usize),
            last_group: parameters.integer("groups", 2..=64)? as u16,
            first_life: 0,
        }))
    },
};

const HOT: StreamId = StreamId(0);
const FIRST: StreamId = StreamId(1);

#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Time of the last write, in host page writes modulo 2^32.
    last_write: u32,
    /// Whether the life before the last one was short.
    was_short: bool,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Midas {
    pages: Vec<PageState>,
    last_group: u16,
    /// How long blocks of the first group live until they are collected, in host page writes: a moving mean, the newest
    /// weighing an eighth.
    first_life: u64,
}

impl Placement for Midas {
    fn streams(&self) -> u16 {
        self.last_group + 1
    }
    fn gc_streams(&self) -> u16 {
        self.last_group
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite) -> StreamId {
        let page = &mut self.pages[write.lpn.0 as usize];
        let life = (write.now as u32).wrapping_sub(std::mem::replace(&mut page.last_write, write.now as u32));
        let is_short = write.rewrite && u64::from(life) <= self.first_life;
        let was_short = std::mem::replace(&mut page.was_short, is_short);
        if is_short && was_short { HOT } else { FIRST }
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy) -> StreamId {
        if copy.from == HOT {
            self.pages[copy.lpn.0 as usize].was_short = false;
        }
        StreamId((copy.from.0 + 1).min(self.last_group))
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.pages[lpn.0 as usize].was_short = false;
    }
    fn on_reclaim(&mut self, reclaim: &Reclaim) {
        if reclaim.stream == FIRST {
            let life = reclaim.now - reclaim.opened_at;
            self.first_life =
                if self.first_life == 0 { life } else { self.first_life - self.first_life / 8 + life / 8 };
        }
    }
    fn memory_bytes(&self) -> u64 {
        self.pages.len() as u64 * size_of::<PageState>() as u64
    }
}
