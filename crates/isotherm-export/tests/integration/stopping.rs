//! The end of a server: what it acknowledged is there, and nothing is left behind.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isotherm_export::{ErrorKind, Export};

use crate::memory::Memory;
use crate::raw::*;
use crate::scripted::{Call, Scripted, error};
use crate::serving::Serving;

#[test]
fn every_acknowledged_write_is_in_the_export_after_a_stop_in_full_flight() {
    let memory = Arc::new(Memory::new(64 << 20));
    let mut serving = Serving::unix(memory.clone());
    // Each client writes its own range, small and large, and reports the offsets that were acknowledged.
    let clients: Vec<_> = (0..4u64)
        .map(|client| {
            let mut raw = serving.ready(false);
            std::thread::spawn(move || {
                let mut writer = raw.stream.try_clone().unwrap();
                let sender = std::thread::spawn(move || {
                    for cookie in 0..u64::MAX {
                        let (offset, length) = place(client, cookie);
                        let header = request_bytes(0, WRITE, cookie, offset, length);
                        let payload = vec![value(cookie); length as usize];
                        if std::io::Write::write_all(&mut writer, &[header, payload].concat()).is_err() {
                            return;
                        }
                    }
                });
                let (mut last, mut reply) = (None, [0; 16]);
                while raw.stream.read_exact(&mut reply).is_ok() {
                    assert_eq!(reply[4..8], [0; 4]);
                    last = Some(u64::from_be_bytes(reply[8..].try_into().unwrap()));
                }
                sender.join().unwrap();
                (client, last.expect("no write was acknowledged"))
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    serving.stop().unwrap();
    for client in clients {
        let (client, last) = client.join().unwrap();
        // Requests of one connection are carried out in order: the last acknowledged ones are there as they were, unless a
        // later request, that was not acknowledged, has come upon one of them.
        for cookie in last.saturating_sub(60)..=last {
            let (offset, length) = place(client, cookie);
            let mut found = vec![0; length as usize];
            memory.read(offset, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == value(cookie)), "client {client}, request {cookie} of {last}");
        }
    }
    assert!(!serving.path().exists());
}

/// Where a client's request goes. Sixty-four places each: one that is acknowledged is not written again for a while.
fn place(client: u64, cookie: u64) -> (u64, u32) {
    (client * (16 << 20) + cookie % 64 * (256 << 10), if cookie.is_multiple_of(3) { 256 << 10 } else { 4096 })
}

fn value(cookie: u64) -> u8 {
    (cookie % 251) as u8 + 1
}

#[test]
fn a_request_that_is_being_carried_out_is_answered_and_then_flushed() {
    let (begun, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let export = {
        let (begun, go) = (begun.clone(), go.clone());
        Scripted::new(4096, move |call| {
            while call == Call::Write(0, 4, false) && !go.load(Ordering::Acquire) {
                begun.store(true, Ordering::Release);
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(None)
        })
    };
    let mut serving = Serving::unix(export.clone());
    let mut raw = serving.ready(false);
    // The second request comes together with the first: it was read, and is answered too.
    raw.send(&[request_bytes(0, WRITE, 1, 0, 4), b"data".to_vec(), request_bytes(0, READ, 2, 0, 4)].concat());
    while !begun.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let client = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        go.store(true, Ordering::Release);
        assert_eq!(raw.simple(), (0, 1));
        assert_eq!(raw.simple(), (0, 2));
        assert_eq!(raw.bytes(4), b"data");
        raw.expect_end();
    });
    serving.stop().unwrap();
    assert_eq!(export.calls(), [Call::Write(0, 4, false), Call::Read(0, 4), Call::Flush]);
    client.join().unwrap();
    assert_eq!(serving.ends(1), ["the server was stopped"]);
}

#[test]
fn idle_and_half_done_clients_do_not_delay_a_stop() {
    for is_unix in [true, false] {
        let exports = vec![crate::serving::named("it", Arc::new(Memory::new(1 << 20)))];
        let mut serving = Serving::with(exports, Default::default(), is_unix);
        let mut streams: Vec<Box<dyn Stream>> = Vec::new();
        for index in 0..9 {
            let stream: Box<dyn Stream> = match is_unix {
                true => Box::new(serving.connect().stream),
                false => Box::new(serving.connect_tcp().stream),
            };
            let mut raw = Raw { stream };
            if index % 3 > 0 {
                raw.greet(FIXED_NEWSTYLE);
                raw.go("");
            }
            if index % 3 > 1 {
                raw.send(&request_bytes(0, WRITE, 1, 0, 100_000));
                raw.send(&[1; 70_000]);
            }
            streams.push(raw.stream);
        }
        let start = Instant::now();
        serving.stop().unwrap();
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert_eq!(serving.ends(9), ["the server was stopped"; 9]);
    }
}

#[test]
fn an_export_that_cannot_be_flushed_is_told_of() {
    let mut serving = Serving::unix(Scripted::new(4096, |_| Err(error(ErrorKind::Io))));
    let error = serving.stop().unwrap_err().to_string();
    assert_eq!(error, "\"it\" could not be flushed when the server stopped: scripted: Io");
}

#[test]
fn an_export_that_panics_costs_its_connection_only() {
    let serving = Serving::unix(Scripted::new(1 << 20, |call| match call {
        Call::Trim(..) => panic!("scripted"),
        _ => Ok(None),
    }));
    let mut raw = serving.ready(false);
    raw.request(0, TRIM, 1, 0, 512, &[]);
    raw.expect_end();
    serving.check_alive();
}
