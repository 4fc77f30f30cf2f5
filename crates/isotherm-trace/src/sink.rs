//! Where decoders put requests: one place that checks every limit and lays volumes end to end.

use crate::row::{Fault, Field};
use crate::volumes::{VolumeId, Volumes};
use isotherm::request::{Op, Request};

/// Largest address that a request may reach (4 PiB): beyond it a unit was mistaken.
pub const END_BYTES_MAX: u64 = 1 << 52;

/// Largest read or write (4 GiB): the block layers that wrote these traces cannot issue a larger one.
pub const TRANSFER_BYTES_MAX: u64 = 1 << 32;

/// What a decoder needs beside the row itself.
pub(crate) struct Sink<'a> {
    pub(crate) requests: &'a mut Vec<Request>,
    pub(crate) volumes: &'a mut Volumes,
    /// The time of the request before, where going back is an error; else 0.
    pub(crate) not_before_ns: u64,
}

impl Sink<'_> {
    /// Takes a request on the only volume of a trace.
    #[inline(always)]
    pub(crate) fn push(&mut self, op: Op, arrival_ns: u64, offset: u64, length: u64) -> Result<(), Box<Fault>> {
        let request = Request { arrival_ns, offset, length, op };
        let end = offset.saturating_add(length);
        let empty = length == 0 && op != Op::Flush;
        let long = length > TRANSFER_BYTES_MAX && op != Op::Trim;
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
        let base = self.volumes.base(volume, offset.saturating_add(length).min(END_BYTES_MAX));
        self.push(op, arrival_ns, offset.saturating_add(base), length)
    }

    #[cold]
    fn refuse(&self, request: Request) -> Box<Fault> {
        let skip = "correct the row, or skip it with --skip-bad N";
        let Request { arrival_ns, offset, length, op } = request;
        if length == 0 && op != Op::Flush {
            Fault::new(Field::Length, "is 0", skip)
        } else if length > TRANSFER_BYTES_MAX && op != Op::Trim {
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
