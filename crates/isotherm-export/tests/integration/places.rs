//! Where a server listens: who may come, and what is replaced.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isotherm_export::nbd::{Listen, Server, ServerOptions};

use crate::memory::Memory;
use crate::raw::*;
use crate::serving::{Serving, named};

fn server() -> Server {
    Server::new(vec![named("it", Arc::new(Memory::new(4096)))], ServerOptions::default()).unwrap()
}

#[test]
fn a_unix_socket_is_open_to_its_owner_only_and_goes_with_the_server() {
    let mut serving = Serving::memory(4096);
    assert_eq!(fs::metadata(serving.path()).unwrap().permissions().mode() & 0o7777, 0o600);
    serving.check_alive();
    serving.stop().unwrap();
    assert!(!serving.path().exists());
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_and_that_of_a_live_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listen = Listen::Unix(path.clone());
    drop(UnixListener::bind(&path).unwrap());
    let handle = server().listen(&listen).unwrap();
    assert_eq!(Raw::ready(&path, false).read_simple(0, 3), [0; 3]);
    let error = server().listen(&listen).unwrap_err().to_string();
    assert!(error.contains("another server listens there"), "{error}");
    assert_eq!(Raw::ready(&path, false).read_simple(0, 3), [0; 3]);
    // A server that was pushed aside leaves the place to the one that took it.
    fs::remove_file(&path).unwrap();
    let other = server().listen(&listen).unwrap();
    handle.stop().unwrap();
    assert_eq!(Raw::ready(&path, false).read_simple(0, 3), [0; 3]);
    drop(other);
    assert!(!path.exists());
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    fs::write(&path, "data").unwrap();
    let error = server().listen(&Listen::Unix(path.clone())).unwrap_err().to_string();
    assert!(error.contains("something else than a socket"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"data");
    for (path, message) in
        [(folder.path().join("x".repeat(200)), "too long"), (folder.path().join("no/s"), "lock the folder")]
    {
        let error = server().listen(&Listen::Unix(path)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn tcp_beyond_this_machine_is_refused_without_tls() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = server().listen(&Listen::Tcp(address.parse().unwrap())).unwrap_err().to_string();
        assert!(error.contains("require TLS"), "{error}");
    }
}

#[test]
fn one_server_listens_in_several_places_and_each_is_stopped_alone() {
    let mut serving = Serving::memory(4096);
    let tcp = serving.server.listen(&Listen::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let mut over_unix = serving.ready(false);
    let stream = std::net::TcpStream::connect(tcp.address().unwrap()).unwrap();
    let mut over_tcp = Raw { stream };
    over_tcp.greet(FIXED_NEWSTYLE);
    over_tcp.go("");
    over_tcp.write(7, b"both");
    assert_eq!(over_unix.read_simple(7, 4), b"both");
    tcp.stop().unwrap();
    over_tcp.expect_end();
    assert_eq!(over_unix.read_simple(7, 4), b"both");
    serving.stop().unwrap();
    over_unix.expect_end();
}

#[test]
fn connections_beyond_the_limit_are_turned_away_until_one_ends() {
    let options = ServerOptions { connections_max: 2, ..ServerOptions::default() };
    let serving = Serving::with(vec![named("it", Arc::new(Memory::new(4096)))], options, true);
    let mut first = serving.ready(false);
    let _second = serving.ready(false);
    serving.connect().expect_end();
    first.request(0, DISC, 0, 0, 0, &[]);
    first.expect_end();
    drop(first);
    // The place is free a moment after the end.
    let until = Instant::now() + Duration::from_secs(20);
    while UnixStream::connect(serving.path()).unwrap().read(&mut [0]).unwrap() == 0 {
        assert!(Instant::now() < until, "the place of a connection that ended is not free");
    }
}
