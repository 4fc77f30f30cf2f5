//! What a host asks of a device: byte ranges with an arrival time.

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read the range.
    Read,
    /// Write the range.
    Write,
    /// Discard the range: its content is no longer needed.
    Trim,
    /// Make everything acknowledged so far durable; the range is empty.
    Flush,
    /// Make the range zero: whole pages are discarded, parts of pages are written.
    WriteZeroes,
}

impl Op {
    /// Whether whole pages of the range lose their content.
    pub fn discards(self) -> bool {
        matches!(self, Self::Trim | Self::WriteZeroes)
    }
}

/// One request of the host, as traces record it and as a device receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Arrival in nanoseconds since the start of the trace.
    pub arrival_ns: u64,
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range in bytes; 0 only for [`Op::Flush`].
    pub length: u64,
    /// What is asked.
    pub op: Op,
    /// Who asks: processes, streams or volumes of a trace, numbered from 0 in the order in which they appear; 0 where the trace
    /// does not say. It fits where alignment leaves room.
    pub source: u16,
    /// Done only when it is durable (force unit access).
    pub durable: bool,
}

const _: () = assert!(size_of::<Request>() == 32);
