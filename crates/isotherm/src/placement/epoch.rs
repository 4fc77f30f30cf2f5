//! The epoch scheme: a page is hot if it is rewritten within an epoch of its last write; first writes and late rewrites
//! are cold (Hwang, Jung & Shin, "Write pattern based hot/cold separation for flash translation layer", Proposed System).
//!
//! The paper gives neither the length of the epoch nor its unit: here it is counted in host page writes and given as a
//! multiple of the logical pages. Copies go to the cold working block, as two working blocks imply, or to a third one
//! (`gc=extra`), as the paper's introduction may be read. O(1) a write.

use super::{AnyPlacement, BuildPlacement, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::{Entry, Kind, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "epoch",
    summary: "hot if rewritten within an epoch of the last write, else cold",
    paper: "Hwang, Jung & Shin, Write pattern based hot/cold separation",
    memory: "4 bytes a logical page",
    parameters: &[
        Parameter::any("length", &[Kind::real(0.0..=1e6), Kind::word(&["inf"])], "0.5")
            .help("length of the epoch, in multiples of the logical pages (host page writes)"),
        Parameter::choice("gc", &["cold", "extra"], "cold").help("copies go to the cold block, or to one of their own"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let length = parameters.real("length");
        let gc_stream = parameters.choice("gc", &[("cold", COLD), ("extra", EXTRA)]);
        Ok(AnyPlacement::Epoch(Epoch::new(context.logical_pages, length, gc_stream)))
    }),
};

const COLD: StreamId = StreamId(0);
const HOT: StreamId = StreamId(1);
const EXTRA: StreamId = StreamId(2);

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Time of each page's last write, in host page writes modulo 2^32 (see [`Epoch::host`]).
    last_writes: Vec<u32>,
    /// Host page writes within which a rewrite is hot; `None` for ever.
    length_writes: Option<u64>,
    gc_stream: StreamId,
}

impl Epoch {
    fn new(logical_pages: u32, length: f64, gc_stream: StreamId) -> Self {
        let writes = length * f64::from(logical_pages);
        // Times are kept modulo 2^32: an interval longer than that is aliased, so an epoch cannot be told from for ever.
        let length_writes = (writes < f64::from(u32::MAX)).then_some(writes.round() as u64);
        Self { last_writes: memory::zeroed_table(logical_pages as usize), length_writes, gc_stream }
    }
}

impl Placement for Epoch {
    fn streams(&self) -> u16 {
        self.gc_stream.0.max(HOT.0) + 1
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        let last = std::mem::replace(&mut self.last_writes[write.lpn.0 as usize], write.now as u32);
        let since = u64::from((write.now as u32).wrapping_sub(last));
        let within = self.length_writes.is_none_or(|length| since <= length && length > 0);
        if write.rewrite && within { HOT } else { COLD }
    }
    fn copies_to(&self) -> Option<StreamId> {
        Some(self.gc_stream)
    }
    fn on_trim(&mut self, _: Lpn) {
        // The map forgets the page, so its next write is a first write.
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.last_writes, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        self.last_writes.len() as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(epoch: &mut Epoch, lpn: u32, now: u64, rewrite: bool) -> StreamId {
        epoch.host(&HostWrite { lpn: Lpn(lpn), now, rewrite }, &mut PageHistory::default())
    }

    #[test]
    fn first_writes_and_late_rewrites_are_cold() {
        let mut epoch = Epoch::new(10, 1.0, COLD);
        assert_eq!(write(&mut epoch, 3, 0, false), COLD);
        assert_eq!(write(&mut epoch, 3, 10, true), HOT);
        assert_eq!(write(&mut epoch, 3, 21, true), COLD);
        assert_eq!(write(&mut epoch, 3, 22, true), HOT);
    }

    #[test]
    fn epoch_zero_never_separates_and_an_infinite_one_heats_every_rewrite() {
        let mut never = Epoch::new(10, 0.0, COLD);
        let mut always = Epoch::new(10, f64::INFINITY, EXTRA);
        assert_eq!(write(&mut never, 1, 5, true), COLD);
        assert_eq!(write(&mut always, 1, 1 << 40, true), HOT);
        assert_eq!(write(&mut always, 1, 1 << 41, false), COLD);
        assert_eq!((never.streams(), always.streams()), (2, 3));
    }
}
