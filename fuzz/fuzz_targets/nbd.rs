//! Arbitrary bytes as a client of the block server, in the handshake and in the transmission: the connection ends without a
//! panic, what is sent is a bounded multiple of what could have been asked for, and the export hears of ranges within it only.
#![no_main]

use std::io;
use std::sync::Arc;

use isotherm_export::nbd::{NamedExport, Server, ServerOptions, Socket, Wait};
use isotherm_export::{Due, Export, ExportError, Extent, Zeroes};
use libfuzzer_sys::fuzz_target;

/// A size that is no multiple of 512, so that its end is met in all sorts of ways.
const SIZE_BYTES: u64 = 200_001;

// The first byte says how far a fixed client goes before the arbitrary bytes, and the second in which portions these arrive.
fuzz_target!(|data: &[u8]| {
    let [state, portion, bytes @ ..] = data else { return };
    let mut client = prefix(state % 4);
    client.extend(bytes);
    let portion = if *portion == 0 { usize::MAX } else { usize::from(*portion) };
    let export = |name: &str, read_only| NamedExport {
        name: name.into(),
        description: name.into(),
        read_only,
        export: Arc::new(Checked),
    };
    let server = Server::new(vec![export("a", false), export("b", true)], ServerOptions::default()).unwrap();
    server.serve(Stream { client, at: 0, portion });
});

fn prefix(state: u8) -> Vec<u8> {
    let option = |kind: u8, data: &[u8]| [&b"IHAVEOPT\0\0\0"[..], &[kind, 0, 0, 0, data.len() as u8], data].concat();
    let flags = [0, 0, 0, 3];
    let structure = [option(8, &[]), option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation")].concat();
    let go = option(7, &[0; 6]);
    match state {
        0 => Vec::new(),
        1 => [&flags[..], &structure].concat(),
        2 => [&flags[..], &go].concat(),
        _ => [&flags[..], &structure, &go].concat(),
    }
}

/// Hands out the client's bytes, then ends; forgets what is sent.
struct Stream {
    client: Vec<u8>,
    at: usize,
    portion: usize,
}

impl Socket for Stream {
    fn receive(&mut self, into: &mut [u8], _: Wait) -> io::Result<usize> {
        assert!(!into.is_empty());
        let rest = &self.client[self.at..];
        let count = rest.len().min(into.len()).min(self.portion);
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(bytes.len() <= (64 << 20));
        Ok(bytes.len())
    }

    fn end(&mut self) {}
}

/// Every other page holds something.
struct Checked;

fn check(offset: u64, length: u64) {
    assert!(length > 0 && offset.checked_add(length).is_some_and(|end| end <= SIZE_BYTES));
}

impl Export for Checked {
    fn size_bytes(&self) -> u64 {
        SIZE_BYTES
    }

    fn page_bytes(&self) -> u32 {
        4096
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        check(offset, out.len() as u64);
        out.fill(1);
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, ExportError> {
        check(offset, data.len() as u64);
        Ok(None)
    }

    fn trim(&self, offset: u64, length: u64, _: bool) -> Result<Due, ExportError> {
        check(offset, length);
        Ok(None)
    }

    fn write_zeroes(&self, offset: u64, length: u64, _: Zeroes, _: bool) -> Result<Due, ExportError> {
        check(offset, length);
        Ok(None)
    }

    fn flush(&self) -> Result<Due, ExportError> {
        Ok(None)
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        check(offset, length);
        let (mut extents, mut at) = (Vec::new(), offset);
        while at < offset + length && extents.len() < most {
            let next = (offset + length).min((at / 4096 + 1) * 4096);
            extents.push(Extent { length: next - at, is_data: at / 4096 % 2 == 0 });
            at = next;
        }
        Ok(extents)
    }
}
