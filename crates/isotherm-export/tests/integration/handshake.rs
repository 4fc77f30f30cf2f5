//! Every option of the handshake, right and wrong, and in which state it leaves the connection.

use std::sync::Arc;
use std::time::Duration;

use isotherm_export::nbd::{NamedExport, Server, ServerOptions};

use crate::memory::Memory;
use crate::raw::*;
use crate::serving::{Serving, impatient, named};

fn two() -> Serving {
    let exports = vec![named("first", Arc::new(Memory::new(1 << 20))), named("second", Arc::new(Memory::new(1000)))];
    Serving::with(exports, ServerOptions::default(), true)
}

fn greeted(serving: &Serving) -> Raw<std::os::unix::net::UnixStream> {
    let mut raw = serving.connect();
    raw.greet(FIXED_NEWSTYLE | NO_ZEROES);
    raw
}

#[test]
fn export_name_ends_the_handshake_with_or_without_zeroes() {
    let serving = two();
    for (flags, zeroes) in [(FIXED_NEWSTYLE, 124), (FIXED_NEWSTYLE | NO_ZEROES, 0), (0, 124), (NO_ZEROES, 0)] {
        for (name, size) in [("", 1u64 << 20), ("first", 1 << 20), ("second", 1000)] {
            let mut raw = serving.connect();
            raw.greet(flags);
            raw.send_option(EXPORT_NAME, name.as_bytes());
            assert_eq!(raw.bytes(8), size.to_be_bytes());
            assert_eq!(raw.bytes(2), 0x0d6du16.to_be_bytes(), "no DF without structured replies");
            assert!(raw.bytes(zeroes).iter().all(|byte| *byte == 0));
            assert_eq!(raw.read_simple(512, 100), [0; 100]);
        }
    }
}

#[test]
fn export_name_knows_no_error_but_the_end() {
    let serving = two();
    for name in ["third", &"x".repeat(5000)] {
        let mut raw = greeted(&serving);
        raw.send_option(EXPORT_NAME, name.as_bytes());
        raw.expect_end();
    }
    assert!(serving.ends(2).iter().all(|end| end.contains("a name that")));
}

#[test]
fn list_names_and_describes_every_export() {
    let serving = two();
    let mut raw = greeted(&serving);
    let expected: Vec<_> = ["first", "second"]
        .map(|name| (2, [string_data(name), format!("what {name} holds").into_bytes()].concat()))
        .into();
    assert_eq!(raw.option(LIST, &[], ACK), expected);
    assert_eq!(raw.option(LIST, b"x", ERR_INVALID), []);
    raw.go("second");
}

#[test]
fn info_and_go_tell_what_was_asked_for() {
    let serving = two();
    let mut raw = greeted(&serving);
    let block = |minimum: u32| [&[0, 3], &minimum.to_be_bytes()[..], &[0, 0, 16, 0, 2, 0, 0, 0]].concat();
    let replies = raw.option(INFO, &info_data("second", &[1, 2, 9]), ACK);
    let facts = [&[0, 0], &1000u64.to_be_bytes()[..], &0x0d6du16.to_be_bytes()].concat();
    // 1000 is no multiple of 512: then every byte can be addressed.
    let expected = [facts, block(1), b"\0\x01second".to_vec(), b"\0\x02what second holds".to_vec()];
    assert_eq!(replies, expected.map(|data| (3, data)));
    assert_eq!(raw.option(INFO, &info_data("", &[]), ACK)[1].1, block(512));
    assert_eq!(raw.option(GO, &info_data("third", &[]), ERR_UNKNOWN), []);
    raw.option(STRUCTURED_REPLY, &[], ACK);
    assert_eq!(raw.go(""), (1 << 20, 0x0ded));
}

#[test]
fn malformed_data_is_refused_and_the_handshake_goes_on() {
    let serving = two();
    let mut raw = greeted(&serving);
    raw.option(STRUCTURED_REPLY, &[], ACK);
    let whole = info_data("first", &[1]);
    for option in [INFO, GO] {
        for end in 0..whole.len() {
            assert_eq!(raw.option(option, &whole[..end], ERR_INVALID), []);
        }
        assert_eq!(raw.option(option, &[&whole[..], b"x"].concat(), ERR_INVALID), []);
        assert_eq!(raw.option(option, &[0xff; 40], ERR_INVALID), []);
        assert_eq!(raw.option(option, &info_data(&"x".repeat(5000), &[]), ERR_INVALID), []);
    }
    let whole = context_data("first", &["base:allocation"]);
    for option in [LIST_META_CONTEXT, SET_META_CONTEXT] {
        for end in 0..whole.len() {
            assert_eq!(raw.option(option, &whole[..end], ERR_INVALID), []);
        }
        let many = [string_data(""), vec![0xff; 4]].concat();
        assert_eq!(raw.option(option, &many, ERR_INVALID), []);
    }
    assert_eq!(raw.option(STRUCTURED_REPLY, b"x", ERR_INVALID), []);
    assert_eq!(raw.option(4, &[], ERR_UNSUP), []);
    assert_eq!(raw.option(0xffff_ffff, &[1; 300], ERR_UNSUP), []);
    assert_eq!(raw.option(STARTTLS, &[], ERR_POLICY), []);
    assert_eq!(raw.option(LIST, &vec![7; 300_000], ERR_TOO_BIG), []);
    raw.go("first");
}

#[test]
fn contexts_are_listed_and_selected() {
    let serving = two();
    let mut raw = greeted(&serving);
    for option in [LIST_META_CONTEXT, SET_META_CONTEXT] {
        assert_eq!(raw.option(option, &context_data("", &["base:allocation"]), ERR_INVALID), []);
    }
    raw.option(STRUCTURED_REPLY, &[], ACK);
    let context = |id: u8| vec![(4, [&[0, 0, 0, id], &b"base:allocation"[..]].concat())];
    for (queries, is_listed, is_set) in [
        (&[][..], true, false),
        (&["base:"], true, false),
        (&["base:allocation"], true, true),
        (&["x-other:thing", "base:allocation", "base:allocation"], true, true),
        (&["base:other", ""], false, false),
    ] {
        let data = context_data("second", queries);
        assert_eq!(raw.option(LIST_META_CONTEXT, &data, ACK), if is_listed { context(0) } else { vec![] });
        assert_eq!(raw.option(SET_META_CONTEXT, &data, ACK), if is_set { context(1) } else { vec![] });
    }
    assert_eq!(raw.option(SET_META_CONTEXT, &context_data("third", &[]), ERR_UNKNOWN), []);
}

#[test]
fn a_context_holds_for_its_export_and_until_the_next_selection() {
    let serving = two();
    for (selected, chosen, queries, holds) in [
        ("first", "", &["base:allocation"][..], true),
        ("", "first", &["base:allocation"], true),
        ("second", "first", &["base:allocation"], false),
        ("first", "first", &[], false),
    ] {
        let mut raw = greeted(&serving);
        raw.agree_on_structure();
        raw.option(SET_META_CONTEXT, &context_data(selected, queries), ACK);
        raw.go(chosen);
        raw.request(0, BLOCK_STATUS, 5, 0, 512, &[]);
        if holds {
            assert_eq!(raw.chunk().kind, 5);
        } else {
            assert_eq!(raw.error_chunk(5), 22);
        }
    }
}

#[test]
fn abort_is_acknowledged() {
    let serving = two();
    let mut raw = greeted(&serving);
    raw.option(ABORT, &[], ACK);
    raw.expect_end();
    assert_eq!(serving.ends(1), ["the client disconnected"]);
}

#[test]
fn what_cannot_be_answered_ends_the_connection() {
    let serving = two();
    // Flags that were not offered; an option without fixed newstyle; no magic number.
    for (flags, bytes) in [(4, vec![]), (0, option_bytes(LIST, &[])), (1, vec![b'x'; 16])] {
        let mut raw = serving.connect();
        raw.greet(flags);
        raw.send(&bytes);
        raw.expect_end();
    }
    assert!(serving.ends(3).iter().all(|end| end.contains("broke the protocol")));
    serving.check_alive();
}

#[test]
fn options_are_counted() {
    let serving = two();
    let mut raw = greeted(&serving);
    let mut replies = raw.stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut replies, &mut std::io::sink()));
    // The server may have closed the connection already.
    let _ = std::io::Write::write_all(&mut raw.stream, &option_bytes(LIST, &[]).repeat(5000));
    let _ = reader.join().unwrap();
    assert!(serving.ends(1)[0].contains("too many options"));
}

#[test]
fn a_handshake_that_takes_too_long_is_ended_also_where_bytes_come() {
    let serving = Serving::with(vec![named("it", Arc::new(Memory::new(4096)))], impatient(), true);
    let mut silent = serving.connect();
    let mut halfway = greeted(&serving);
    halfway.send(&option_bytes(LIST, &[])[..9]);
    let mut endless = greeted(&serving);
    endless.send(&[&b"IHAVEOPT"[..], &LIST.to_be_bytes(), &u32::MAX.to_be_bytes()].concat());
    // Bytes of the endless option, until the server has enough.
    while std::io::Write::write_all(&mut endless.stream, &[0; 1000]).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(serving.ends(3), ["the client took too long"; 3]);
    assert_eq!(silent.bytes(18)[..8], *b"NBDMAGIC");
    silent.expect_end();
    serving.check_alive();
}

#[test]
fn exports_that_cannot_be_served_are_refused() {
    let export = |name: &str| named(name, Arc::new(Memory::new(4096)));
    let long = NamedExport { description: "x".repeat(4097), ..export("a") };
    for (exports, message) in [
        (vec![], "nothing to serve"),
        (vec![export("a"), export("b"), export("a")], "two exports are called \"a\""),
        (vec![export(&"x".repeat(4097))], "longer than 4096 bytes"),
        (vec![long], "longer than 4096 bytes"),
    ] {
        let error = Server::new(exports, ServerOptions::default()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn options_that_no_server_can_keep_to_are_refused() {
    let base = ServerOptions::default;
    for (options, message) in [
        (ServerOptions { connections_max: 0, ..base() }, "connections_max is 0"),
        (ServerOptions { patience: Duration::ZERO, ..base() }, "above 0 and at most a day"),
        (ServerOptions { handshake_time_max: Duration::MAX, ..base() }, "above 0 and at most a day"),
    ] {
        let error = Server::new(vec![named("it", Arc::new(Memory::new(4096)))], options).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
