//! TLS through the command line, with real clients.

use super::certificates::certificates;
use super::stage::{Server, Stage};
use super::tools::{both, client, run};
use std::path::Path;
use std::process::Command;

/// The URI of the place over TCP, as the server says it, with TLS and these certificates.
fn uri_of(server: &Server, certificates: &Path) -> String {
    let said = server.said();
    let port = said.lines().find_map(|line| line.strip_prefix("NBD: nbd://127.0.0.1:")).expect("it listens on TCP");
    format!("nbds://localhost:{port}/disk?tls-certificates={}", certificates.display())
}

#[test]
fn clients_with_a_certificate_come_through_and_no_others() {
    let (Some(nbdinfo), Some(nbdcopy)) = (client("nbdinfo"), client("nbdcopy")) else { return };
    let (ours, foreign) = (certificates(), certificates());
    // A stranger knows the authority, and shows a certificate of another one.
    std::fs::copy(ours.path().join("ca-cert.pem"), foreign.path().join("ca-cert.pem")).unwrap();
    let stage = Stage::with(&["--logical-size", "16MiB"]);
    let tls = ours.path().to_str().unwrap();
    let server = stage.serve(&["--nbd", "tcp:127.0.0.1:0", "--tls", tls, "--tls-require", "--tls-verify"]);
    let uri = uri_of(&server, ours.path());
    assert!(run(&nbdinfo, &[&uri]).contains("newstyle-fixed with TLS"));
    let over_unix =
        server.uri().replacen("nbd+unix", "nbds+unix", 1) + "&tls-hostname=localhost&tls-certificates=" + tls;
    assert!(run(&nbdinfo, &[&over_unix]).contains("newstyle-fixed with TLS"));
    let (source, target) = (stage.path("source"), stage.path("target"));
    let data: Vec<u8> = (0..16_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&source, &data).unwrap();
    run(&nbdcopy, &["--flush", &source, &uri]);
    for refused in [server.uri(), uri_of(&server, foreign.path()), uri.replacen("nbds:", "nbd:", 1)] {
        let output = Command::new(&nbdinfo).arg(&refused).output().unwrap();
        assert!(!output.status.success(), "{refused}: {}", both(&output));
    }
    run(&nbdcopy, &[&uri, &target]);
    assert!(std::fs::read(&target).unwrap() == data, "the copy differs");
    server.stop();
}
