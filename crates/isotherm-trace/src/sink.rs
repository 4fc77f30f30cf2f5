//! Where decoders put requests: one place that checks every limit and lays volumes end to end.

use crate::row::{Fault, Field};
use crate::volumes::{VolumeId, Volumes};
use isotherm::request::{Op, Request};
use std::collections::HashMap;

/// Largest address that a request may reach (4 PiB): beyond it a unit was mistaken.
pub const END_BYTES_MAX: u64 = 1 << 52;

/// Largest read or write (4 GiB): the block layers that wrote these traces cannot issue a larger one.
pub const TRANSFER_BYTES_MAX: u64 = 1 << 32;

/// Numbers those who ask in the order in which they appear. Beyond 65,535 of them, the rest share the last number.
#[derive(Default)]
pub(crate) struct Sources {
    /// Looked up, never iterated: its order cannot reach a result.
    index: HashMap<u64, u16>,
    latest: Option<(u64, u16)>,
}

impl Sources {
    /// The number of the process, stream or user that the trace calls `name`.
    #[inline(always)]
    pub(crate) fn number(&mut self, name: u64) -> u16 {
        match self.latest {
            Some((known, number)) if known == name => number,
            _ => {
                let next = u16::try_from(self.index.len()).unwrap_or(u16::MAX);
                let number = *self.index.entry(name).or_insert(next);
                self.latest = Some((name, number));
                number
            }
        }
    }
}

/// What a decoder needs beside the row itself.
pub(crate) struct Sink<'a> {
    pub(crate) requests: &'a mut Vec<Request>,
    pub(crate) volumes: &'a mut Volumes,
    /// Who asks, where a row says so: its number by [`Sources`]; else the volume is taken for it.
    pub(crate) source: Option<u16>,
    /// Whether the request is to be durable when it is done.
    pub(crate) durable: bool,
    /// The time of the request before, where going back is an error; else 0.
    pub(crate) not_before_ns: u64,
}

impl Sink<'_> {
    /// Takes a request on the only volume of a trace.
    #[inline(always)]
    pub(crate) fn push(&mut self, op: Op, arrival_ns: u64, offset: u64, length: u64) -> Result<(), Box<Fault>> {
        let request =
            Request { arrival_ns, offset, length, op, source: self.source.unwrap_or(0), durable: self.durable };
        let end = offset.saturating_add(length);
        let empty = length == 0 && op != Op::Flush;
        let long = length > TRANSFER_BYTES_MAX && !op.discards();
        if empty || long || end > END_BYTES_MAX || arrival_ns < self.not_before_ns {
            return Err(self.refuse(request));
        }
        self.requests.push(request);
        Ok(())
    }

    /// Takes a request on one of several volumes.
    #[inline(always)]
    pub(crate) fn push_on(
        &mut self,
        volume: VolumeId,
        op: Op,
        arrival_ns: u64,
        offset: u64,
        length: u64,
    ) -> Result<(), Box<Fault>> {
        if self.volumes.leaves_out(volume) {
            return Ok(());
        }
        self.source.get_or_insert(volume.number());
        let base = self.volumes.base(volume, offset.saturating_add(length).min(END_BYTES_MAX));
        self.push(op, arrival_ns, offset.saturating_add(base), length)
    }

    #[cold]
    fn refuse(&self, request: Request) -> Box<Fault> {
        let skip = "correct the row, or skip it with --skip-bad N";
        let Request { arrival_ns, offset, length, op, .. } = request;
        if length == 0 && op != Op::Flush {
            Fault::new(Field::Length, "is 0", skip)
        } else if length > TRANSFER_BYTES_MAX && !op.discards() {
            Fault::new(
                Field::Length,
                format!("of {length} bytes is over the limit of {TRANSFER_BYTES_MAX} for a read or write"),
                skip,
            )
        } else if arrival_ns < self.not_before_ns {
            Fault::new(
                Field::Time,
                format!("runs backwards by {} ns", self.not_before_ns - arrival_ns),
                "sort the trace: open it with --sort memory, or with a window such as --sort 65536",
            )
        } else {
            Fault::new(
                Field::Offset,
                format!("{offset} plus length {length} passes the limit of {END_BYTES_MAX} bytes (4 PiB)"),
                "check the units, or skip the row with --skip-bad N",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_numbered_as_they_appear() {
        let mut sources = Sources::default();
        assert_eq!([77, 5, 77, 0, 5].map(|name| sources.number(name)), [0, 1, 0, 2, 1]);
        let numbers: Vec<u16> = (0..100_000).map(|name| sources.number(name)).collect();
        assert_eq!(numbers.last(), Some(&u16::MAX));
        assert_eq!(sources.number(1 << 40), u16::MAX);
    }
}
