//! A client by hand, that can do right and wrong: it sends what it is told, and waits for an answer for 20 s at most.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const FIXED_NEWSTYLE: u32 = 1;
pub const NO_ZEROES: u32 = 2;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const STARTTLS: u32 = 5;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const STRUCTURED_REPLY: u32 = 8;
pub const LIST_META_CONTEXT: u32 = 9;
pub const SET_META_CONTEXT: u32 = 10;

pub const ACK: u32 = 1;
pub const ERR_UNSUP: u32 = (1 << 31) + 1;
pub const ERR_POLICY: u32 = (1 << 31) + 2;
pub const ERR_INVALID: u32 = (1 << 31) + 3;
pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const REQ_ONE: u16 = 8;
pub const FAST_ZERO: u16 = 16;

const PATIENCE: Duration = Duration::from_secs(20);

/// A stream that ends, and that waits no longer than told.
pub trait Stream: Read + Write {
    fn end_writes(&mut self);
}

impl Stream for UnixStream {
    fn end_writes(&mut self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl Stream for TcpStream {
    fn end_writes(&mut self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

/// A client over any stream.
pub struct Raw<S> {
    pub stream: S,
}

/// A chunk of a structured reply.
#[derive(PartialEq, Eq, Debug)]
pub struct Chunk {
    pub is_done: bool,
    pub kind: u16,
    pub cookie: u64,
    pub data: Vec<u8>,
}

impl Raw<UnixStream> {
    pub fn connect(path: &Path) -> Raw<UnixStream> {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Raw { stream }
    }

    /// In the transmission, with the default export; with structured replies and `base:allocation` if asked for.
    pub fn ready(path: &Path, structured: bool) -> Raw<UnixStream> {
        let mut raw = Raw::connect(path);
        raw.greet(FIXED_NEWSTYLE | NO_ZEROES);
        if structured {
            raw.agree_on_structure();
        }
        raw.go("");
        raw
    }
}

impl<S: Read + Write> Raw<S> {
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes(8).try_into().unwrap())
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the server's greeting and answers it with these flags.
    pub fn greet(&mut self, flags: u32) {
        assert_eq!(self.bytes(16), b"NBDMAGICIHAVEOPT");
        assert_eq!(self.u16(), 3, "fixed newstyle, no zeroes");
        self.send(&flags.to_be_bytes());
    }

    pub fn send_option(&mut self, option: u32, data: &[u8]) {
        self.send(&option_bytes(option, data));
    }

    /// The next reply to an option: its kind and data.
    pub fn option_reply(&mut self, option: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.u64(), 0x0003_e889_0455_65a9);
        assert_eq!(self.u32(), option);
        let (kind, length) = (self.u32(), self.u32());
        (kind, self.bytes(length as usize))
    }

    /// Sends an option and reads all replies to it; the last one is of the kind given.
    pub fn option(&mut self, option: u32, data: &[u8], last: u32) -> Vec<(u32, Vec<u8>)> {
        self.send_option(option, data);
        let mut replies = vec![self.option_reply(option)];
        while replies.last().is_some_and(|(kind, _)| *kind != ACK && kind >> 31 == 0) {
            replies.push(self.option_reply(option));
        }
        assert_eq!(replies.pop().unwrap().0, last);
        replies
    }

    pub fn agree_on_structure(&mut self) {
        self.option(STRUCTURED_REPLY, &[], ACK);
        assert_eq!(self.option(SET_META_CONTEXT, &context_data("", &["base:allocation"]), ACK).len(), 1);
    }

    /// Enters the transmission; returns the size and flags of the export.
    pub fn go(&mut self, name: &str) -> (u64, u16) {
        let replies = self.option(GO, &info_data(name, &[]), ACK);
        let facts = &replies.iter().find(|(_, data)| data[..2] == [0, 0]).unwrap().1;
        (u64::from_be_bytes(facts[2..10].try_into().unwrap()), u16::from_be_bytes(facts[10..12].try_into().unwrap()))
    }

    pub fn request(&mut self, flags: u16, command: u16, cookie: u64, offset: u64, length: u32, payload: &[u8]) {
        self.send(&[&request_bytes(flags, command, cookie, offset, length), payload].concat());
    }

    /// The next simple reply: error and cookie.
    pub fn simple(&mut self) -> (u32, u64) {
        assert_eq!(self.u32(), 0x6744_6698);
        (self.u32(), self.u64())
    }

    pub fn chunk(&mut self) -> Chunk {
        assert_eq!(self.u32(), 0x668e_33ef);
        let (flags, kind, cookie, length) = (self.u16(), self.u16(), self.u64(), self.u32());
        assert!(flags <= 1);
        Chunk { is_done: flags == 1, kind, cookie, data: self.bytes(length as usize) }
    }

    /// The error of the next reply, which is a chunk of an error.
    pub fn error_chunk(&mut self, cookie: u64) -> u32 {
        let chunk = self.chunk();
        assert_eq!((chunk.is_done, chunk.kind, chunk.cookie), (true, 0x8001, cookie));
        let length = u16::from_be_bytes(chunk.data[4..6].try_into().unwrap());
        assert!(length > 0 && std::str::from_utf8(&chunk.data[6..]).unwrap().len() == usize::from(length));
        u32::from_be_bytes(chunk.data[..4].try_into().unwrap())
    }

    /// Writes and waits for the answer.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.request(0, WRITE, 77, offset, data.len() as u32, data);
        assert_eq!(self.simple(), (0, 77));
    }

    /// Reads without structured replies.
    pub fn read_simple(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.request(0, READ, 78, offset, length, &[]);
        assert_eq!(self.simple(), (0, 78));
        self.bytes(length as usize)
    }

    /// Waits until the server has closed the connection; it must send nothing before.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.is_empty(), "{rest:?}"),
            // A server may close over bytes it has not read.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

pub fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &option.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

pub fn request_bytes(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend([flags.to_be_bytes(), command.to_be_bytes()].concat());
    bytes.extend([cookie.to_be_bytes(), offset.to_be_bytes()].concat());
    bytes.extend(length.to_be_bytes());
    bytes
}

pub fn string_data(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

pub fn info_data(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = string_data(name);
    data.extend((wanted.len() as u16).to_be_bytes());
    data.extend(wanted.iter().flat_map(|kind| kind.to_be_bytes()));
    data
}

pub fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string_data(name);
    data.extend((queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| string_data(query)));
    data
}
