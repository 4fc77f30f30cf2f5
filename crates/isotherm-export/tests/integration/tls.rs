//! TLS: what is agreed on before it is void, who must use it, and that real clients come through.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use isotherm_export::nbd::{Listen, Server, ServerOptions, TlsMode, TlsOptions};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::certificates::certificates;
use crate::memory::Memory;
use crate::raw::*;
use crate::serving::{Serving, named};
use crate::tools;

fn options(folder: &Path, mode: TlsMode, verify_clients: bool) -> ServerOptions {
    ServerOptions { tls: TlsOptions { mode, certificates: folder.into(), verify_clients }, ..ServerOptions::default() }
}

fn serve(folder: &Path, mode: TlsMode, verify_clients: bool, is_unix: bool) -> Serving {
    let export = named("it", Arc::new(Memory::new(8 << 20)));
    Serving::with(vec![export], options(folder, mode, verify_clients), is_unix)
}

/// The client's end of TLS, with its certificate or without.
fn client(folder: &Path, has_certificate: bool) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("ca-cert.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if has_certificate {
        let certificate = CertificateDer::from_pem_file(folder.join("client-cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("client-key.pem")).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

/// Ends the plain part of a connection: what follows is within TLS, with the client's certificate or without.
fn encrypt(
    raw: Raw<UnixStream>,
    folder: &Path,
    has_certificate: bool,
) -> Raw<StreamOwned<ClientConnection, UnixStream>> {
    Raw { stream: StreamOwned::new(client(folder, has_certificate), raw.stream) }
}

fn greeted(serving: &Serving) -> Raw<UnixStream> {
    let mut raw = serving.connect();
    raw.greet(FIXED_NEWSTYLE | NO_ZEROES);
    raw
}

#[test]
fn what_was_agreed_on_in_the_open_is_void_and_what_was_sent_with_starttls_is_not_read() {
    // Whoever sits between client and server could put requests of his own before the client's, as if they had come within TLS.
    let folder = certificates();
    let serving = serve(folder.path(), TlsMode::On, false, true);
    let mut raw = greeted(&serving);
    raw.agree_on_structure();
    let injected = [option_bytes(LIST, &[]), option_bytes(GO, &info_data("it", &[]))].concat();
    raw.send(&[option_bytes(STARTTLS, &[]), injected].concat());
    assert_eq!(raw.option_reply(STARTTLS), (ACK, vec![]));
    let mut raw = encrypt(raw, folder.path(), false);
    // The first reply within TLS is that to the first option within TLS: a selection that needs structured replies.
    raw.option(SET_META_CONTEXT, &context_data("", &["base:allocation"]), ERR_INVALID);
    assert_eq!(raw.option(STARTTLS, &[], ERR_INVALID), []);
    assert_eq!(raw.go("").1 & (1 << 7), 0, "no DF without structured replies");
    raw.request(0, BLOCK_STATUS, 1, 0, 512, &[]);
    assert_eq!(raw.simple(), (22, 1));
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i % 249) as u8).collect();
    raw.write(99, &data);
    assert!(raw.read_simple(99, data.len() as u32) == data);
    raw.request(0, DISC, 0, 0, 0, &[]);
    raw.expect_end();
}

#[test]
fn where_tls_is_required_nothing_else_is_to_be_had_without_it() {
    let folder = certificates();
    let serving = serve(folder.path(), TlsMode::Require, false, true);
    let mut raw = greeted(&serving);
    for option in [LIST, INFO, GO, STRUCTURED_REPLY, LIST_META_CONTEXT, SET_META_CONTEXT, 99] {
        assert_eq!(raw.option(option, &info_data("it", &[]), ERR_TLS_REQD), []);
    }
    assert_eq!(raw.option(STARTTLS, b"x", ERR_INVALID), []);
    raw.option(STARTTLS, &[], ACK);
    let mut raw = encrypt(raw, folder.path(), false);
    assert_eq!(raw.option(99, &[], ERR_UNSUP), []);
    assert_eq!(raw.go("it").0, 8 << 20);
    let mut raw = greeted(&serving);
    raw.send_option(EXPORT_NAME, b"it");
    raw.expect_end();
    let mut raw = greeted(&serving);
    raw.option(ABORT, &[], ACK);
    raw.expect_end();
}

#[test]
fn clients_are_verified_where_asked_for() {
    let (folder, stranger) = (certificates(), certificates());
    let serving = serve(folder.path(), TlsMode::Require, true, true);
    fs::copy(folder.path().join("ca-cert.pem"), stranger.path().join("ca-cert.pem")).unwrap();
    for (certificates, has_certificate, is_welcome) in
        [(&folder, true, true), (&folder, false, false), (&stranger, true, false)]
    {
        let mut raw = greeted(&serving);
        raw.option(STARTTLS, &[], ACK);
        let mut raw = encrypt(raw, certificates.path(), has_certificate);
        if is_welcome {
            raw.go("");
            raw.write(0, b"welcome");
        } else {
            let _ = std::io::Write::write_all(&mut raw.stream, &option_bytes(LIST, &[]));
            assert!(std::io::Read::read(&mut raw.stream, &mut [0; 1]).is_err());
        }
    }
    assert!(serving.ends(3).iter().filter(|end| end.contains("connection failed")).count() == 2);
}

#[test]
fn garbage_in_place_of_tls_ends_the_connection_only() {
    let folder = certificates();
    let serving = serve(folder.path(), TlsMode::On, false, true);
    for garbage in [&[0u8; 100][..], b"IHAVEOPT", &[0x16, 3, 1, 0xff, 0xff, 1], &option_bytes(LIST, &[])] {
        let mut raw = greeted(&serving);
        raw.option(STARTTLS, &[], ACK);
        raw.send(garbage);
        raw.stream.end_writes();
        let _ = std::io::copy(&mut raw.stream, &mut std::io::sink());
    }
    serving.ends(4);
    serving.check_alive();
}

/// Arbitrary bytes after STARTTLS, half of them as records of TLS with arbitrary content, some after a real hello of a client.
#[test]
fn arbitrary_bytes_in_place_of_tls_end_the_connection_only() {
    const CLIENTS: usize = 200;
    let folder = certificates();
    let serving = serve(folder.path(), TlsMode::On, false, true);
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut hello = Vec::new();
    client(folder.path(), false).write_tls(&mut hello).unwrap();
    for _ in 0..CLIENTS {
        let mut bytes = if draw(4) == 0 { hello.clone() } else { Vec::new() };
        for _ in 0..draw(4) + 1 {
            let content: Vec<u8> = (0..draw(300)).map(|_| draw(256) as u8).collect();
            if draw(2) == 0 {
                bytes.extend([20 + draw(5) as u8, 3, draw(5) as u8, (content.len() >> 8) as u8, content.len() as u8]);
            }
            bytes.extend(content);
        }
        if draw(3) == 0 && bytes.len() > 9 {
            let at = draw(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << draw(8);
        }
        let mut raw = greeted(&serving);
        raw.option(STARTTLS, &[], ACK);
        raw.send(&bytes);
        raw.stream.end_writes();
        let _ = std::io::copy(&mut raw.stream, &mut std::io::sink());
    }
    serving.ends(CLIENTS);
    serving.check_alive();
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let folder = certificates();
    let refuse = |verify_clients| {
        let exports = vec![named("it", Arc::new(Memory::new(4096)))];
        Server::new(exports, options(folder.path(), TlsMode::On, verify_clients)).unwrap_err().to_string()
    };
    fs::write(folder.path().join("ca-cert.pem"), "").unwrap();
    assert!(refuse(true).contains("ca-cert.pem: the file holds no certificate"), "{}", refuse(true));
    fs::copy(folder.path().join("client-key.pem"), folder.path().join("server-key.pem")).unwrap();
    assert!(refuse(false).contains("server-cert.pem"), "{}", refuse(false));
    fs::remove_file(folder.path().join("server-key.pem")).unwrap();
    assert!(refuse(false).contains("server-key.pem"), "{}", refuse(false));
}

#[test]
fn tcp_beyond_this_machine_is_served_where_tls_is_required() {
    let folder = certificates();
    let address = Listen::Tcp("0.0.0.0:0".parse().unwrap());
    for (mode, is_allowed) in [(TlsMode::On, false), (TlsMode::Require, true)] {
        let exports = vec![named("it", Arc::new(Memory::new(4096)))];
        let server = Server::new(exports, options(folder.path(), mode, true)).unwrap();
        assert_eq!(server.listen(&address).is_ok(), is_allowed);
    }
}

#[test]
fn real_clients_come_through_over_unix_and_tcp() {
    let (Some(nbdinfo), Some(nbdcopy)) = (tools::find("nbdinfo"), tools::find("nbdcopy")) else { return };
    let folder = certificates();
    let shown = folder.path().display();
    let data: Vec<u8> = (0..8u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::write(&source, &data).unwrap();
    for verify_clients in [false, true] {
        for is_unix in [true, false] {
            let serving = serve(folder.path(), TlsMode::Require, verify_clients, is_unix);
            let uri = match is_unix {
                true => format!("nbds+unix:///?socket={}&tls-certificates={shown}", serving.path().display()),
                false => {
                    let port = serving.handle().address().unwrap().port();
                    format!("nbds://localhost:{port}/?tls-certificates={shown}")
                }
            };
            let facts = tools::run(&nbdinfo, &[&uri]);
            assert!(facts.contains("newstyle-fixed with TLS"), "{facts}");
            tools::run(&nbdcopy, &[source.to_str().unwrap(), &uri]);
            tools::run(&nbdcopy, &[&uri, target.to_str().unwrap()]);
            assert!(fs::read(&target).unwrap() == data);
        }
    }
}
