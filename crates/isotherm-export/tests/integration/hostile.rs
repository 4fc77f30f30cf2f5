//! Clients that do whatever they like: each loses its own connection at most, and a good client is served afterwards.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isotherm_export::nbd::ServerOptions;
use proptest::prelude::*;

use crate::memory::Memory;
use crate::raw::*;
use crate::serving::{Serving, impatient, named};

fn serve() -> Serving {
    Serving::with(vec![named("it", Arc::new(Memory::new(1 << 20)))], impatient(), true)
}

/// Bytes up to a state of the connection: before the flags, among the options, or in the transmission with or without
/// structured replies.
fn prefix(state: usize) -> Vec<u8> {
    let flags = (FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes().to_vec();
    let structure =
        [option_bytes(STRUCTURED_REPLY, &[]), option_bytes(SET_META_CONTEXT, &context_data("", &["base:allocation"]))]
            .concat();
    let go = option_bytes(GO, &info_data("", &[]));
    match state {
        0 => vec![],
        1 => flags,
        2 => [flags, structure].concat(),
        3 => [flags, go].concat(),
        _ => [flags, structure, go].concat(),
    }
}

/// Bytes that begin as the protocol has it, so that they get further than the first check.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let data = || prop::collection::vec(any::<u8>(), 0..80);
    let length = || prop_oneof![8 => 0u32..5000, 1 => any::<u32>()];
    let option = (0u32..13, data()).prop_map(|(option, data)| option_bytes(option, &data));
    let cut_option = (0u32..13, length(), data()).prop_map(|(option, length, data)| {
        [&b"IHAVEOPT"[..], &option.to_be_bytes(), &length.to_be_bytes(), &data].concat()
    });
    let offset = || prop_oneof![4 => 0u64..(1 << 20), 1 => any::<u64>()];
    let request = (any::<u16>(), 0u16..10, any::<u64>(), offset(), length(), data()).prop_map(
        |(flags, command, cookie, offset, length, data)| {
            [request_bytes(flags & 31, command, cookie, offset, length), data].concat()
        },
    );
    prop_oneof![1 => data(), 3 => option, 1 => cut_option, 4 => request]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn garbage_in_any_state_ends_and_hurts_nobody(
        state in 0usize..5, messages in prop::collection::vec(message(), 0..12), is_half_open in any::<bool>()
    ) {
        let serving = serve();
        let mut raw = serving.connect();
        // The server may close before it has read everything.
        let _ = raw.stream.write_all(&[prefix(state), messages.concat()].concat());
        if !is_half_open {
            raw.stream.end_writes();
            let _ = std::io::copy(&mut raw.stream, &mut std::io::sink());
            serving.ends(1);
        }
        serving.check_alive();
    }
}

#[test]
fn a_client_that_breaks_off_in_a_payload_has_written_nothing() {
    let memory = Arc::new(Memory::new(1 << 20));
    let serving = Serving::with(vec![named("it", memory)], impatient(), true);
    for (length, sent) in [(1000, 999), (100_000, 99_999), (300_000, 70_000)] {
        let mut cut = serving.ready(false);
        cut.request(0, WRITE, 1, 0, length, &vec![1; sent]);
        cut.stream.end_writes();
        cut.expect_end();
        let mut silent = serving.ready(false);
        silent.request(0, WRITE, 1, 0, length, &vec![1; sent]);
        silent.expect_end();
    }
    let ends = serving.ends(6);
    assert_eq!(ends.iter().filter(|end| end.contains("in the midst")).count(), 3);
    assert_eq!(ends.iter().filter(|end| end.contains("took too long")).count(), 3);
    assert!(serving.ready(false).read_simple(0, 300_000).iter().all(|byte| *byte == 0));
}

#[test]
fn a_client_may_be_idle_between_requests_for_longer_than_the_server_waits_within_one() {
    let serving = serve();
    let mut raw = serving.ready(false);
    raw.write(0, b"before");
    std::thread::sleep(impatient().patience * 3);
    assert_eq!(raw.read_simple(0, 6), b"before");
}

#[test]
fn a_client_that_reads_no_replies_is_ended_and_others_are_served_meanwhile() {
    let serving = serve();
    let mut slow = serving.ready(false);
    let mut writer = slow.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let request = request_bytes(0, READ, 1, 0, 1 << 20);
        while writer.write_all(&request).is_ok() {}
    });
    let mut good = serving.ready(false);
    let start = Instant::now();
    while serving.ends(0).is_empty() {
        good.write(0, b"served");
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(serving.ends(1), ["the client took too long"]);
    sender.join().unwrap();
    // What was on the way still arrives; then the connection is closed.
    let _ = std::io::copy(&mut slow.stream, &mut std::io::sink());
    good.write(0, b"served");
}

#[test]
fn a_request_without_its_magic_number_ends_the_connection() {
    let serving = serve();
    let mut raw = serving.ready(true);
    raw.write(0, b"good");
    raw.send(&[7; 28]);
    raw.expect_end();
    assert!(serving.ends(1)[0].contains("no magic number before a request"));
    serving.check_alive();
}

#[test]
fn many_clients_that_vanish_leave_room_for_others() {
    // None is turned away: each is to end by itself.
    let options = ServerOptions { connections_max: 1000, ..impatient() };
    let serving = Serving::with(vec![named("it", Arc::new(Memory::new(1 << 20)))], options, true);
    for round in 0..200 {
        let mut raw = serving.connect();
        if round % 2 == 0 {
            raw.send(&prefix(3));
        }
    }
    serving.ends(200);
    serving.check_alive();
}
