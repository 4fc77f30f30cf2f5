//! Every request, right and wrong, by a client by hand.

use std::sync::Arc;

use isotherm_export::nbd::{NamedExport, ServerOptions};
use isotherm_export::{ErrorKind, Zeroes};

use crate::memory::Memory;
use crate::raw::*;
use crate::scripted::{Call, Scripted, error};
use crate::serving::{Serving, named};

const SIZE: usize = 1 << 20;

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|i| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn what_was_written_is_read_at_any_size_and_alignment() {
    let serving = Serving::memory(40 << 20);
    for structured in [false, true] {
        let mut raw = serving.ready(structured);
        // Around the sizes at which payloads are received, and replies sent, in other ways.
        for (seed, length) in
            [1, 511, 4096, 65_535, 65_536, 65_537, 262_144, 300_000, 5 << 20, 32 << 20].into_iter().enumerate()
        {
            let (offset, data) = (seed as u64 * 777, pattern(length, seed as u64));
            raw.write(offset, &data);
            if structured {
                raw.request(DF, READ, 9, offset, length as u32, &[]);
                let chunk = raw.chunk();
                assert_eq!((chunk.is_done, chunk.kind, &chunk.data[..8]), (true, 1, &offset.to_be_bytes()[..]));
                assert!(chunk.data[8..] == data, "{length}");
            } else {
                assert!(raw.read_simple(offset, length as u32) == data, "{length}");
            }
        }
    }
}

#[test]
fn requests_that_come_together_are_answered_one_by_one() {
    let serving = Serving::memory(SIZE);
    let mut raw = serving.ready(false);
    let mut bytes = Vec::new();
    for cookie in 0..200u64 {
        bytes.extend(request_bytes(0, WRITE, cookie, cookie * 4096, 4096));
        bytes.extend(pattern(4096, cookie));
        bytes.extend(request_bytes(0, READ, cookie + 1000, cookie * 4096, 4096));
    }
    let mut writer = raw.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &bytes).unwrap());
    for cookie in 0..200u64 {
        assert_eq!(raw.simple(), (0, cookie));
        assert_eq!(raw.simple(), (0, cookie + 1000));
        assert_eq!(raw.bytes(4096), pattern(4096, cookie));
    }
    sender.join().unwrap();
}

#[test]
fn each_command_reaches_the_export_with_its_flags() {
    let export = Scripted::new(SIZE, |_| Ok(None));
    let serving = Serving::unix(export.clone());
    let mut raw = serving.ready(true);
    let zeroes = |may_trim, fast_only| Zeroes { may_trim, fast_only };
    for (flags, command, expected) in [
        (0, TRIM, vec![Call::Trim(512, 4096, false)]),
        (FUA, TRIM, vec![Call::Trim(512, 4096, true)]),
        (0, WRITE_ZEROES, vec![Call::Zeroes(512, 4096, zeroes(true, false), false)]),
        (FUA | NO_HOLE, WRITE_ZEROES, vec![Call::Zeroes(512, 4096, zeroes(false, false), true)]),
        (FAST_ZERO, WRITE_ZEROES, vec![Call::Zeroes(512, 4096, zeroes(true, true), false)]),
        (0, CACHE, vec![]),
        (FUA, CACHE, vec![]),
    ] {
        raw.request(flags, command, 3, 512, 4096, &[]);
        assert_eq!(raw.simple(), (0, 3));
        assert_eq!(export.calls(), expected);
    }
    for (flags, is_durable) in [(0, false), (FUA, true)] {
        raw.request(flags, WRITE, 4, 100, 3, b"abc");
        assert_eq!(raw.simple(), (0, 4));
        assert_eq!(export.calls(), [Call::Write(100, 3, is_durable)]);
        raw.request(flags, FLUSH, 5, 0, 0, &[]);
        assert_eq!(raw.simple(), (0, 5));
        assert_eq!(export.calls(), [Call::Flush]);
    }
    raw.request(FAST_ZERO | NO_HOLE, WRITE_ZEROES, 6, 0, 512, &[]);
    assert_eq!(raw.error_chunk(6), 95);
}

#[test]
fn requests_of_nothing_succeed_and_do_not_reach_the_export() {
    let export = Scripted::new(SIZE, |_| Ok(None));
    let serving = Serving::unix(export.clone());
    for structured in [false, true] {
        let mut raw = serving.ready(structured);
        for command in [READ, WRITE, TRIM, WRITE_ZEROES, CACHE] {
            raw.request(0, command, 1, SIZE as u64, 0, &[]);
            if command == READ && structured {
                let none = Chunk { is_done: true, kind: 0, cookie: 1, data: vec![] };
                assert_eq!(raw.chunk(), none);
            } else {
                assert_eq!(raw.simple(), (0, 1));
            }
        }
    }
    assert_eq!(export.calls(), []);
}

#[test]
fn wrong_requests_are_refused_and_the_next_is_served() {
    let export = Scripted::new(SIZE, |_| Ok(None));
    let serving = Serving::unix(export.clone());
    let end = SIZE as u64;
    let wrong = [
        (0, READ, end - 1, 2, 22),
        (0, READ, u64::MAX, 2, 22),
        (0, WRITE, end - 1, 2, 28),
        (0, WRITE, u64::MAX - 1, 7, 28),
        (0, TRIM, end, 1, 22),
        (0, WRITE_ZEROES, 0, SIZE as u32 + 1, 28),
        (0, CACHE, end, 512, 22),
        (0, BLOCK_STATUS, end - 512, 513, 22),
        (0, BLOCK_STATUS, 0, 0, 22),
        (0, FLUSH, 0, 512, 22),
        (0, FLUSH, 512, 0, 22),
        (0, READ, 0, (32 << 20) + 1, 22),
        (0, WRITE, 0, (32 << 20) + 1, 22),
        (DF, READ, 0, u32::MAX, 75),
        (0, 8, 0, 0, 22),
        (0, 0xffff, 0, 0, 22),
        (NO_HOLE, READ, 0, 512, 22),
        (DF, WRITE, 0, 512, 22),
        (1 << 5, WRITE, 0, 512, 22),
        (REQ_ONE, TRIM, 0, 512, 22),
        (DF, WRITE_ZEROES, 0, 512, 22),
        (FAST_ZERO, BLOCK_STATUS, 0, 512, 22),
        (1 << 15, FLUSH, 0, 0, 22),
    ];
    for structured in [false, true] {
        let mut raw = serving.ready(structured);
        for (cookie, (flags, command, offset, length, errno)) in wrong.into_iter().enumerate() {
            let payload = if command == WRITE { vec![1; length as usize] } else { vec![] };
            raw.request(flags, command, cookie as u64, offset, length, &payload);
            if structured {
                assert_eq!(raw.error_chunk(cookie as u64), errno, "{cookie}");
            } else {
                // Without structured replies, there is no flag DF.
                let errno = if errno == 75 { 22 } else { errno };
                let errno = if (flags, command) == (DF, READ) { 22 } else { errno };
                assert_eq!(raw.simple(), (errno, cookie as u64));
            }
        }
        assert_eq!(export.calls(), []);
        raw.write(0, b"next");
        assert_eq!(export.calls().len(), 1);
    }
}

#[test]
fn errors_of_the_export_have_the_protocol_s_numbers() {
    let kinds = [
        (ErrorKind::Io, 5),
        (ErrorKind::NoSpace, 28),
        (ErrorKind::Invalid, 22),
        (ErrorKind::Unsupported, 95),
        (ErrorKind::ReadOnly, 1),
        (ErrorKind::Stopped, 108),
    ];
    // The offset says which error.
    let export = Scripted::new(SIZE, move |call| match call {
        Call::Read(offset, _) | Call::Write(offset, ..) | Call::Trim(offset, ..) | Call::Extents(offset, ..) => {
            Err(error(kinds[offset as usize].0))
        }
        Call::Zeroes(offset, ..) => Err(error(kinds[offset as usize].0)),
        Call::Flush => Err(error(ErrorKind::Io)),
    });
    let serving = Serving::unix(export);
    for structured in [false, true] {
        let mut raw = serving.ready(structured);
        for (offset, (_, errno)) in kinds.into_iter().enumerate() {
            for command in [READ, WRITE, TRIM, WRITE_ZEROES, BLOCK_STATUS] {
                if command == BLOCK_STATUS && !structured {
                    continue;
                }
                let payload: &[u8] = if command == WRITE { b"x" } else { &[] };
                raw.request(0, command, 8, offset as u64, 1, payload);
                let found = if structured { raw.error_chunk(8) } else { raw.simple().0 };
                assert_eq!(found, errno, "{command}");
            }
        }
        raw.request(0, FLUSH, 8, 0, 0, &[]);
        assert_eq!(if structured { raw.error_chunk(8) } else { raw.simple().0 }, 5);
    }
}

#[test]
fn block_status_tells_data_from_holes() {
    let serving = Serving::memory(SIZE);
    let mut raw = serving.ready(true);
    raw.write(8192, &[1; 4096]);
    raw.write(65_536, &[1; 100]);
    let status = |raw: &mut Raw<_>, flags, offset, length| {
        raw.request(flags, BLOCK_STATUS, 2, offset, length, &[]);
        let chunk = raw.chunk();
        assert_eq!((chunk.is_done, chunk.kind, &chunk.data[..4]), (true, 5, &[0, 0, 0, 1][..]));
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        chunk.data[4..].chunks(8).map(|extent| (number(&extent[..4]), number(&extent[4..]))).collect::<Vec<_>>()
    };
    let rest = SIZE as u32 - 65_536 - 4096;
    assert_eq!(status(&mut raw, 0, 0, SIZE as u32), [(8192, 3), (4096, 0), (53_248, 3), (4096, 0), (rest, 3)]);
    assert_eq!(status(&mut raw, REQ_ONE, 0, SIZE as u32), [(8192, 3)]);
    assert_eq!(status(&mut raw, 0, 8000, 1000), [(192, 3), (808, 0)]);
    raw.request(0, TRIM, 1, 0, SIZE as u32, &[]);
    assert_eq!(raw.simple(), (0, 1));
    assert_eq!(status(&mut raw, 0, 0, SIZE as u32), [(SIZE as u32, 3)]);
}

#[test]
fn large_reads_leave_out_holes_unless_they_must_not_be_cut() {
    let serving = Serving::memory(SIZE);
    let mut raw = serving.ready(true);
    let data = pattern(10_000, 5);
    raw.write(300_000, &data);
    let (start, length) = (1000u64, 400_000u32);
    let mut expected = vec![0; length as usize];
    expected[299_000..309_000].copy_from_slice(&data);
    let (mut found, mut kinds, mut is_done) = (vec![7; length as usize], Vec::new(), false);
    raw.request(0, READ, 6, start, length, &[]);
    while !is_done {
        let chunk = raw.chunk();
        let at = (u64::from_be_bytes(chunk.data[..8].try_into().unwrap()) - start) as usize;
        match chunk.kind {
            1 => found[at..at + chunk.data.len() - 8].copy_from_slice(&chunk.data[8..]),
            2 => {
                let hole = u32::from_be_bytes(chunk.data[8..].try_into().unwrap()) as usize;
                found[at..at + hole].fill(0);
            }
            kind => panic!("chunk {kind}"),
        }
        kinds.push(chunk.kind);
        is_done = chunk.is_done;
    }
    assert!(found == expected);
    assert_eq!(kinds, [2, 1, 2]);
    raw.request(DF, READ, 7, start, length, &[]);
    let chunk = raw.chunk();
    assert!(chunk.is_done && chunk.data[8..] == expected);
}

#[test]
fn read_only_exports_refuse_changes() {
    let export = Scripted::new(SIZE, |_| Ok(None));
    let exports = vec![NamedExport { read_only: true, ..named("it", export.clone()) }];
    let serving = Serving::with(exports, ServerOptions::default(), true);
    let mut raw = serving.connect();
    raw.greet(FIXED_NEWSTYLE);
    assert_eq!(raw.go("it").1 & 2, 2);
    for command in [WRITE, TRIM, WRITE_ZEROES] {
        raw.request(0, command, 1, 0, 4, if command == WRITE { b"data" } else { &[] });
        assert_eq!(raw.simple(), (1, 1));
    }
    assert_eq!(raw.read_simple(0, 512), [0; 512]);
    assert_eq!(export.calls(), [Call::Read(0, 512)]);
}

#[test]
fn connections_see_each_other_s_writes_and_exports_may_share_a_drive() {
    let drive = Arc::new(Memory::new(SIZE));
    let exports = vec![named("one", drive.clone()), named("same", drive), named("other", Arc::new(Memory::new(SIZE)))];
    let serving = Serving::with(exports, ServerOptions::default(), true);
    let mut clients = ["one", "same", "other"].map(|name| {
        let mut raw = serving.connect();
        raw.greet(FIXED_NEWSTYLE);
        assert_ne!(raw.go(name).1 & (1 << 8), 0, "several connections are allowed");
        raw
    });
    clients[0].write(5, b"seen");
    assert_eq!(clients[1].read_simple(5, 4), b"seen");
    assert_eq!(clients[2].read_simple(5, 4), [0; 4]);
}
