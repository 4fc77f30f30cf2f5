//! What is left of a drive after each kind of end, by a client that knows what the drive owes it (`stamps.py`).
//!
//! `ISOTHERM_KILLS` says how many losses of power each device goes through; the default takes seconds.

use super::stage::{Server, Stage};
use super::tools::{both, client, python, run};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const STAMPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/drive/stamps.py");
/// Losses of power of each device where nobody asks for more.
const KILLS: u64 = 3;
/// Map, buffer and placement differ; each loses something else with its DRAM.
const DEVICES: &[&[&str]] = &[
    &["--placement", "sepbit", "--victim", "cost_benefit", "--dram", "1MiB"],
    &["--ftl", "dftl:cache=16KiB", "--placement", "host_gc"],
    &["--ftl", "fast"],
];
const SIZE: &[&str] = &["--logical-size", "16MiB", "--op", "25%"];

/// The client at work.
struct Writer {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Writer {
    fn start(python: &Path, server: &Server, ledger: &str, seed: u64, options: &[&str]) -> Self {
        let mut command = Command::new(python);
        command.args([STAMPS, "write", &server.uri(), ledger, &seed.to_string()]).args(options);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the client starts");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, said }
    }

    /// Waits until it has flushed something, and a moment more.
    fn flushed(&mut self, moment: Duration) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the client can be heard");
        assert_eq!(line.trim(), "flushed");
        std::thread::sleep(moment);
    }

    /// Waits until it has left its ledger.
    fn end(mut self) -> String {
        let text = std::io::read_to_string(&mut self.said).expect("the client can be heard");
        assert!(self.child.wait().expect("a child").success(), "{text}");
        text
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn verify(python: &Path, server: &Server, ledger: &str, options: &[&str]) -> String {
    run(python, &[&[STAMPS, "verify", &server.uri(), ledger], options].concat())
}

fn kills() -> u64 {
    std::env::var("ISOTHERM_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// Losses of power of a device while it is written to, by turns.
fn loses_nothing_flushed(python: &Path, device: &[&str]) {
    let stage = Stage::with(&[SIZE, device].concat());
    let ledger = stage.path("ledger");
    for round in 0..kills() {
        let server = stage.serve(&[]);
        assert_eq!(server.said().contains("loss of power"), round > 0, "{}", server.said());
        if round > 0 {
            verify(python, &server, &ledger, &[]);
        }
        let mut writer = Writer::start(python, &server, &ledger, round, &["--flush-every", "60"]);
        writer.flushed(Duration::from_millis(100 + 83 * round % 300));
        match round % 2 {
            0 => server.kill(),
            _ => drop(server.cut()),
        }
        let said = writer.end();
        assert!(said.contains("the drive went away"), "it ended before the drive did: {said}");
    }
    let server = stage.serve(&[]);
    verify(python, &server, &ledger, &[]);
    server.stop();
    assert!(stage.ok(&["check", &stage.image()]).contains("nothing is damaged"));
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_flushed_page_mapped() {
    let Some(python) = python() else { return };
    loses_nothing_flushed(&python, DEVICES[0]);
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_flushed_dftl() {
    let Some(python) = python() else { return };
    loses_nothing_flushed(&python, DEVICES[1]);
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_flushed_fast() {
    let Some(python) = python() else { return };
    loses_nothing_flushed(&python, DEVICES[2]);
}

/// The ledger can tell: what lay in the DRAM of a drive that lost power, acknowledged but not flushed, is missed.
#[test]
fn what_was_not_flushed_is_lost_with_the_dram_and_the_client_sees_it() {
    let Some(python) = python() else { return };
    let stage = Stage::with(&[SIZE, DEVICES[0]].concat());
    let ledger = stage.path("ledger");
    let server = stage.serve(&[]);
    Writer::start(&python, &server, &ledger, 1, &["--flush-every", "0", "--count", "2000", "--no-trims"]).end();
    server.cut();
    let server = stage.serve(&[]);
    let arguments = [STAMPS, "verify", &server.uri(), &ledger, "--acknowledged"];
    let output = Command::new(&python).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(both(&output).contains("owed is one of"), "{}", both(&output));
    verify(&python, &server, &ledger, &[]);
    server.stop();
}

/// By another's oracle: a region that fio wrote and flushed holds the pattern of its round while fio writes another region.
#[test]
fn fio_finds_the_region_that_it_flushed_before() {
    let Some(fio) = client("fio") else { return };
    let stage = Stage::with(&["--logical-size", "32MiB", "--op", "15%", "--dram", "1MiB"]);
    let job = |server: &Server, options: &[&str]| {
        let mut command = Command::new(&fio);
        let uri = format!("--uri={}", server.uri());
        command.args(["--name=x", "--ioengine=nbd", "--bs=4k", "--rw=randwrite", &uri]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for round in 0..kills() {
        let server = stage.serve(&[]);
        // The round and the offset of each block, over and over.
        let pattern = format!("--verify_pattern=\"round{round}\"%o");
        let kept = ["--size=8m", "--iodepth=32", "--verify=pattern", &pattern, "--verify_state_save=0"];
        let written = job(&server, &[&kept[..], &["--do_verify=0", "--end_fsync=1"]].concat()).output().unwrap();
        assert!(written.status.success(), "{}", both(&written));
        let other = ["--offset=8m", "--size=24m", "--iodepth=16", "--fsync=16", "--time_based", "--runtime=60"];
        let mut writing = Job(job(&server, &other).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(700));
        // Beside other tests it may take long to begin.
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while server.json(&["stats"], &[])["host_pages_written"].as_u64().unwrap() <= 2048 {
            assert!(std::time::Instant::now() < deadline, "fio writes nothing");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(writing.0.try_wait().unwrap().is_none(), "fio ended before the drive did");
        match round % 2 {
            0 => server.kill(),
            _ => drop(server.cut()),
        }
        drop(writing);
        let server = stage.serve(&[]);
        let verified = job(&server, &[&kept[..], &["--verify_only"]].concat()).output().unwrap();
        assert!(verified.status.success() && both(&verified).contains("err= 0"), "{}", both(&verified));
        server.stop();
    }
}

/// A program that runs beside the test.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nothing was flushed by anybody: a drive that is told to end keeps what it acknowledged.
#[test]
fn an_end_in_order_under_load_keeps_all_that_was_acknowledged() {
    let Some(python) = python() else { return };
    for device in DEVICES {
        let stage = Stage::with(&[SIZE, device].concat());
        let ledger = stage.path("ledger");
        for end in [Server::terminate, Server::stop] {
            let server = stage.serve(&[]);
            let writer = Writer::start(&python, &server, &ledger, 1, &["--flush-every", "0"]);
            while server.json(&["stats"], &[])["host_pages_written"].as_u64().unwrap() < 2000 {
                std::thread::sleep(Duration::from_millis(20));
            }
            let said = end(server);
            assert!(said.contains("the drive was shut down"), "{said}");
            assert!(writer.end().contains("the drive went away"));
            let server = stage.serve(&[]);
            assert!(!server.said().contains("loss of power"), "{}", server.said());
            verify(&python, &server, &ledger, &["--acknowledged"]);
            server.stop();
        }
    }
}

#[test]
fn a_snapshot_under_load_holds_all_that_was_flushed_before() {
    let Some(python) = python() else { return };
    // A large buffer: what a flush left there would still be missing from the copy.
    let stage = Stage::with(&[SIZE, &["--placement", "sepbit", "--dram", "4MiB"]].concat());
    let (ledger, copy) = (stage.path("ledger"), stage.path("copy.flash"));
    let server = stage.serve(&[]);
    let image = stage.image();
    let snapshot = [env!("CARGO_BIN_EXE_isotherm"), "drive", "snapshot", &image, &copy];
    let options = ["--count", "12000", "--flush-every", "60", "--then"];
    let said = Writer::start(&python, &server, &ledger, 1, &[&options[..], &snapshot].concat()).end();
    assert!(said.contains("12000 requests"), "{said}");
    verify(&python, &server, &ledger, &["--acknowledged"]);
    server.stop();
    // The copy is a drive of its own, which lost power.
    assert!(stage.ok(&["check", &copy]).contains("nothing is damaged; it ended by a loss of power"));
    std::fs::rename(&copy, &image).unwrap();
    let server = stage.serve(&[]);
    let found = verify(&python, &server, &format!("{ledger}.then"), &[]);
    assert!(found.contains(" 0 are wrong"), "{found}");
    server.stop();
}
