//! What a client may not do: send too much, too slowly, read too slowly, be too many. And how a page ends.

use crate::client::{Follower, connect, exchange, get, read_answer, request};
use crate::fake::Fake;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_head_that_is_too_large_is_refused() {
    let (_, page) = Fake::default().serve();
    let head = |bytes: usize| {
        let start = "GET /stats HTTP/1.1\r\nHost: localhost\r\nFiller: ";
        format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
    };
    assert_eq!(exchange(&page, &head(8 * 1024)).status, 200, "8 KiB are allowed");
    assert_eq!(exchange(&page, &head(8 * 1024 + 1)).status, 431);
    assert_eq!(exchange(&page, &head(40_000)).status, 431);
    let fields = "A: b\r\n".repeat(64);
    assert_eq!(exchange(&page, &format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")).status, 431);
    assert_eq!(exchange(&page, "\0\0\0\r\n\r\n").status, 400);
}

#[test]
fn a_head_that_comes_too_slowly_is_refused() {
    let (_, page) = Fake::default().serve();
    let start = Instant::now();
    let mut stream = connect(&page);
    // A byte now and then keeps no connection open. The page closes at some point, after which writing fails.
    let mut writer = stream.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        for byte in request("GET", "/stats").bytes().take(30) {
            if writer.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    });
    assert_eq!(read_answer(&mut stream).status, 408);
    assert!(start.elapsed() >= Duration::from_secs(5), "{:?}", start.elapsed());
    drop(stream);
    trickle.join().unwrap();
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    // More than the buffers of both ends hold.
    let (_, page) = Fake { ballast: 64 << 20, ..Fake::default() }.serve();
    let mut slow = connect(&page);
    slow.write_all(request("GET", "/stats").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(get(&page, "/metrics").status, 200, "others are served meanwhile");
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match slow.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                break;
            }
        }
    }
    assert!(read < 64 << 20, "{read} bytes arrived, though nobody read for longer than the page waits");
}

#[test]
fn the_65th_connection_is_refused_and_others_do_not_feel_it() {
    let (_, page) = Fake::default().serve();
    let mut followers: Vec<Follower> = (0..64).map(|_| Follower::start(&page)).collect();
    let mut refused = connect(&page);
    assert_eq!(read_answer(&mut refused).status, 503);
    for follower in &mut followers {
        follower.next_of("sample");
    }
    followers.pop();
    // The page learns that the client went when it sends it the next sample.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let mut stream = connect(&page);
        // A refused connection may be closed before the request was sent.
        let sent = stream.write_all(request("GET", "/metrics").as_bytes());
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        if sent.is_ok() && read.is_ok() && answer.starts_with(b"HTTP/1.1 200 ") {
            return;
        }
        assert!(Instant::now() < end, "a place that became free is not given away");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_source_that_hangs_is_said_to_and_keeps_nobody() {
    let (fake, page) = Fake::default().serve();
    let gate = fake.gate.lock().unwrap();
    let answer = get(&page, "/stats");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("did not answer within 5 seconds"), "{}", answer.body);
    assert_eq!(get(&page, "/").status, 200);
    drop(gate);
    assert_eq!(get(&page, "/stats").status, 200, "and when it is back, it is back");
}

#[test]
fn a_page_that_stops_lets_go_of_everything() {
    let (fake, page) = Fake::default().serve();
    let mut follower = Follower::start(&page);
    let silent = connect(&page);
    follower.next_of("sample");
    let address = page.address();
    let start = Instant::now();
    page.stop();
    assert!(start.elapsed() < Duration::from_secs(4), "nobody is waited for: {:?}", start.elapsed());
    assert_eq!(Arc::strong_count(&fake), 1, "the source is free");
    let mut rest = Vec::new();
    // It ends, in whatever way.
    let _ = follower.0.read_to_end(&mut rest);
    drop((follower, silent));
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    TcpListener::bind(address).expect("the address is free");
}
