//! Replies that are held back until they are due. Times are bounded from below only: a busy machine is late.

use std::time::{Duration, Instant};

use isotherm_export::Due;

use crate::raw::*;
use crate::scripted::{Call, Scripted};
use crate::serving::Serving;

const SIZE: usize = 1 << 20;

/// Requests are done as many milliseconds later as their offset says.
fn delayed() -> Serving {
    Serving::unix(Scripted::new(SIZE, |call| {
        let due = |milliseconds: u64| -> Due { Some(Instant::now() + Duration::from_millis(milliseconds)) };
        Ok(match call {
            Call::Read(0, _) | Call::Write(0, ..) => None,
            Call::Read(offset, _) | Call::Write(offset, ..) | Call::Trim(offset, ..) => due(offset),
            Call::Zeroes(..) | Call::Extents(..) => None,
            Call::Flush => due(100),
        })
    }))
}

#[test]
fn replies_wait_until_they_are_due_and_others_pass_them() {
    let serving = delayed();
    for structured in [false, true] {
        let (mut raw, start) = (serving.ready(structured), Instant::now());
        // Together, so that they are carried out at about one time, and far apart in when they are due.
        let write = |cookie, offset| [&request_bytes(0, WRITE, cookie, offset, 4)[..], b"data"].concat();
        let (trim, flush) = (request_bytes(0, TRIM, 1, 1000, 4), request_bytes(0, FLUSH, 3, 0, 0));
        raw.send(&[trim, write(2, 500), flush, write(4, 0)].concat());
        for (cookie, after) in [(4, 0), (3, 100), (2, 500), (1, 1000)] {
            assert_eq!(raw.simple(), (0, cookie));
            assert!(start.elapsed() >= Duration::from_millis(after), "{cookie}");
        }
        // A read's data is that of the time at which it was carried out.
        raw.send(&[request_bytes(0, READ, 5, 600, 4), request_bytes(0, WRITE, 6, 0, 700), vec![9; 700]].concat());
        assert_eq!(raw.simple(), (0, 6));
        if structured {
            let chunk = raw.chunk();
            assert_eq!((chunk.cookie, &chunk.data[8..]), (5, &[0; 4][..]));
        } else {
            assert_eq!(raw.simple(), (0, 5));
            assert_eq!(raw.bytes(4), [0; 4]);
        }
        raw.write(0, &[0; 700]);
    }
}

#[test]
fn a_reply_leaves_while_the_payload_of_a_later_request_is_awaited() {
    let serving = delayed();
    let mut raw = serving.ready(false);
    raw.request(0, WRITE, 1, 50, 4, b"data");
    raw.send(&request_bytes(0, WRITE, 2, 0, 100_000));
    raw.send(&[1; 50_000]);
    assert_eq!(raw.simple(), (0, 1));
    raw.send(&[1; 50_000]);
    assert_eq!(raw.simple(), (0, 2));
}

#[test]
fn replies_that_are_held_back_leave_before_the_connection_ends() {
    let mut serving = delayed();
    let (mut left, mut stopped, mut silent) = (serving.ready(false), serving.ready(false), serving.ready(false));
    for (raw, cookie) in [(&mut left, 1), (&mut stopped, 2), (&mut silent, 3)] {
        raw.request(0, WRITE, cookie, 400, 4, b"data");
        // Its answer says that the request before it was read.
        raw.write(0, b"read");
    }
    left.request(0, DISC, 0, 0, 0, &[]);
    silent.stream.end_writes();
    serving.stop().unwrap();
    for (raw, cookie) in [(&mut left, 1), (&mut stopped, 2), (&mut silent, 3)] {
        assert_eq!(raw.simple(), (0, cookie));
        raw.expect_end();
    }
}

#[test]
fn more_replies_than_are_held_back_wait_their_turn() {
    let serving = delayed();
    let (mut raw, count) = (serving.ready(false), 6000u64);
    let bytes: Vec<u8> = (0..count).flat_map(|cookie| request_bytes(0, TRIM, cookie, 100, 1)).collect();
    let mut writer = raw.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &bytes).unwrap());
    let mut is_answered = vec![false; count as usize];
    for _ in 0..count {
        let (errno, cookie) = raw.simple();
        assert_eq!(errno, 0);
        assert!(!std::mem::replace(&mut is_answered[cookie as usize], true), "{cookie} is answered twice");
    }
    sender.join().unwrap();
}
