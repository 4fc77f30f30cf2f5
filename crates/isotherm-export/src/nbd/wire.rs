//! Numbers of the protocol, named as its text names them (proto.md, "Values"), and the header of a request. Big-endian
//! throughout.

use crate::ErrorKind;

/// The first 8 bytes of a server: "NBDMAGIC".
pub(super) const NBD_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// What follows in newstyle, and what every option begins with: "IHAVEOPT".
pub(super) const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(super) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// The longest string that the protocol allows, in bytes.
pub(super) const STRING_BYTES_MAX: usize = 4096;
/// The largest payload of a read or a write, in bytes.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// Flags of the handshake; the client's have the same values.
pub(super) mod handshake_flag {
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// What an export can do.
pub(super) mod transmission_flag {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options of the handshake.
pub(super) mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub(super) mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    const ERROR: u32 = 1 << 31;
    pub const ERR_UNSUP: u32 = ERROR + 1;
    pub const ERR_POLICY: u32 = ERROR + 2;
    pub const ERR_INVALID: u32 = ERROR + 3;
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// What an `INFO` reply tells.
pub(super) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Requests of the transmission.
pub(super) mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub(super) mod command_flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of a structured reply.
pub(super) mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
    /// The flag of a reply's last chunk.
    pub const DONE: u16 = 1;
}

/// Errors of replies.
pub(super) mod errno {
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const EINVAL: u32 = 22;
    pub const ENOSPC: u32 = 28;
    pub const EOVERFLOW: u32 = 75;
    pub const ENOTSUP: u32 = 95;
    pub const ESHUTDOWN: u32 = 108;
}

/// `NBD_STATE_HOLE | NBD_STATE_ZERO`: nothing is kept there, and it reads as zeros.
pub(super) const STATE_HOLE_ZERO: u32 = 0b11;

/// The one metadata context that is served.
pub(super) const BASE_ALLOCATION: &str = "base:allocation";
/// Its number on the wire.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;

/// What the protocol calls an error of an export.
pub(super) fn errno_of(kind: ErrorKind) -> u32 {
    match kind {
        ErrorKind::Io => errno::EIO,
        ErrorKind::NoSpace => errno::ENOSPC,
        ErrorKind::Invalid => errno::EINVAL,
        ErrorKind::Unsupported => errno::ENOTSUP,
        ErrorKind::ReadOnly => errno::EPERM,
        ErrorKind::Stopped => errno::ESHUTDOWN,
    }
}

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub flags: u16,
    pub command: u16,
    /// The client's name for the request; its reply carries it back.
    pub cookie: u64,
    /// In bytes, as is the length.
    pub offset: u64,
    pub length: u32,
}

impl Request {
    /// Bytes of a header.
    pub const BYTES: usize = 28;

    /// Reads a header; none where it does not begin as one.
    pub fn parse(header: &[u8; Request::BYTES]) -> Option<Request> {
        let mut fields = Fields(header);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Request {
            flags: fields.u16()?,
            command: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }
}

/// Takes fields from the front of a message; none where it ends too early.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string behind its length of 32 bits; none where it is longer than the protocol allows, or no text.
    pub fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        if length > STRING_BYTES_MAX {
            return None;
        }
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_field_by_field() {
        let mut header = [0; Request::BYTES];
        header[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        header[4..8].copy_from_slice(&[0, 1, 0, 4]);
        header[8..16].copy_from_slice(&7u64.to_be_bytes());
        header[16..24].copy_from_slice(&(1u64 << 40).to_be_bytes());
        header[24..].copy_from_slice(&512u32.to_be_bytes());
        let expected = Request { flags: 1, command: command::TRIM, cookie: 7, offset: 1 << 40, length: 512 };
        assert_eq!(Request::parse(&header), Some(expected));
        header[0] ^= 1;
        assert_eq!(Request::parse(&header), None);
    }

    #[test]
    fn strings_end_within_their_message() {
        assert_eq!(Fields(&[0, 0, 0, 2, b'a', b'b', b'c']).string(), Some("ab"));
        assert_eq!(Fields(&[0, 0, 0, 4, b'a', b'b', b'c']).string(), None);
        assert_eq!(Fields(&[0, 0, 0, 1, 0xff]).string(), None);
        let long = [&5000u32.to_be_bytes()[..], &[b'a'; 5000]].concat();
        assert_eq!(Fields(&long).string(), None);
    }
}
