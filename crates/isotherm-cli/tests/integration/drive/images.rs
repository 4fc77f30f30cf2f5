//! Images and the verbs on them: made, described, checked, served and stopped; and what is refused.

use super::stage::Stage;
use super::tools::{both, client, python, run};
use crate::command::isotherm;
use std::os::unix::fs::FileExt as _;

const SMALL: &[&str] = &["--logical-size", "8MiB", "--op", "20%"];

/// Runs `isotherm drive`, which must fail with exit code 2 and say all of `expected`.
#[track_caller]
fn refused(arguments: &[&str], expected: &[&str]) {
    let output = isotherm(&[&["drive"], arguments].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    says(&error, expected);
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
}

#[track_caller]
fn says(error: &str, expected: &[&str]) {
    assert!(!error.contains("panicked"), "{error}");
    for text in expected {
        assert!(error.contains(text), "this does not say \"{text}\": {error}");
    }
}

#[test]
fn an_image_is_made_described_served_stopped_and_checked() {
    let stage = Stage::new();
    let image = stage.image();
    let made = stage.ok(&["create", &image, "--logical-size", "8MiB", "--op", "20%", "--placement", "sepbit"]);
    assert!(made.contains("8.00 MiB") && made.contains("d.flash"), "{made}");
    let about = stage.ok(&["info", &image]);
    says(&about, &["8.00 MiB logical", "0 cycles, 0 of them after a loss of power", "placement", "sepbit", "in order"]);
    assert!(stage.ok(&["check", &image]).contains("0 pages read, nothing is damaged"));

    // A part of a page is served as a page.
    let odd = stage.path("odd.flash");
    assert!(stage.ok(&["create", &odd, "--logical-size", "5000B"]).contains("a drive of 8.00 KiB"));
    assert!(stage.ok(&["info", &odd]).contains("8.00 KiB logical"));

    let server = stage.serve(&[]);
    assert!(server.said().contains("opened in"), "{}", server.said());
    assert!(stage.ok(&["info", &image]).contains("in use"));
    assert!(server.stop().contains("the drive was shut down"));
    let about = stage.ok(&["info", &image]);
    says(&about, &["in order", "1 cycles, 0 of them after a loss of power"]);

    assert!(stage.serve(&[]).cut().contains("the drive lost power"));
    let server = stage.serve(&[]);
    assert!(server.said().contains("ended by a loss of power"), "{}", server.said());
    let smart = server.json(&["smart-log"], &["-o", "json"]);
    assert_eq!((smart["power_cycles"].as_u64(), smart["unsafe_shutdowns"].as_u64()), (Some(3), Some(1)), "{smart}");
    server.stop();
}

#[test]
fn wrong_use_is_refused_with_the_place_and_the_fix() {
    let stage = Stage::with(SMALL);
    let image = stage.image();
    refused(&[&["create", &image], SMALL].concat(), &["d.flash", "exists", "choose another name"]);
    refused(&["create", &stage.path("none/e.flash"), "--logical-size", "8MiB"], &["e.flash", "check the name"]);
    refused(&["create", &stage.path("e.flash")], &["logical_size"]);
    refused(&["create", &stage.path("e.flash"), "--logical-size", "8MiB", "--log", "sfs"], &["--log", "leave it out"]);
    // Such devices can be planned, and not built.
    for device in [
        "--logical-size 16MiB --op 7% --ftl fast:log_blocks=20",
        "--logical-size 8MiB --op 100% --ftl dftl --page-size 16KiB --dram 32KiB",
        "--logical-size 2MiB --op 7% --ftl fast:in_place_first_write=true --page-size 16KiB --pages-per-block 64",
    ] {
        let options: Vec<&str> = device.split(' ').collect();
        refused(
            &[&["create", &stage.path("e.flash")], &options[..]].concat(),
            &["e.flash", "correct the specification"],
        );
    }
    assert!(!std::path::Path::new(&stage.path("e.flash")).exists(), "a refusal leaves a file");
    refused(&["info", &stage.path("e.flash")], &["e.flash", "check the name"]);
    refused(&["check", &stage.path("e.flash")], &["e.flash", "check the name"]);
    refused(&["serve"], &["<IMAGE>"]);
    refused(&["serve", &image, "--op", "7%"], &["d.flash", "leave the device's options out"]);
    refused(&["serve", "--ram"], &["logical_size"]);
    refused(&["serve", &stage.path("e.flash")], &["e.flash", "check the name"]);
    refused(&["serve", &image, "--nbd", "udp:1"], &["--nbd", "unix:PATH or tcp:ADDRESS:PORT"]);
    refused(&["serve", &image, "--nbd", "tcp:localhost"], &["--nbd", "tcp:127.0.0.1:10809"]);
    refused(&["serve", &image, "--latency", "slow"], &["--latency", "emulated,x10"]);
    refused(&["serve", &image, "--ui", "0.0.0.0:8080"], &["--ui", "write 127.0.0.1:8080 or [::1]:8080"]);
    refused(&["serve", &image, "--ui", "localhost"], &["--ui", "such as 127.0.0.1:8080"]);
    refused(&["serve", &image, "--handles", "0"], &["--handles", "1..=128"]);
    refused(&["serve", &image, "--tls-require"], &["--tls <DIR>"]);
    refused(&["serve", &image, "--record", &stage.path("trace.doc")], &["trace.doc", ".csv"]);
    let plan = stage.path("plan.json");
    std::fs::write(&plan, "{}").unwrap();
    refused(&["serve", &image, "--handles", "2", "--plan", &plan], &["plan.json", "\"ranges\""]);
    for verb in ["stats", "smart-log", "stop", "power-cut", "reset-stats"] {
        refused(&[verb, &image], &["d.ctl", "isotherm drive serve"]);
    }
    // Nobody listens on a socket that a dead server left.
    let left = stage.path("left.ctl");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    refused(&["stats", &left], &["left.ctl", "no drive is served", "isotherm drive serve"]);
}

#[test]
fn foreign_damaged_and_busy_images_are_refused() {
    let stage = Stage::with(SMALL);
    let image = stage.image();
    let foreign = stage.path("foreign");
    for bytes in [&b"short"[..], &vec![7; 1 << 20]] {
        std::fs::write(&foreign, bytes).unwrap();
        for verb in ["serve", "info", "check"] {
            refused(&[verb, &foreign], &["foreign", "flash image", "isotherm drive create"]);
        }
    }
    let server = stage.serve(&[]);
    refused(
        &["serve", &image, "--control", &stage.path("other.ctl")],
        &["d.flash", "another process", "control socket"],
    );
    refused(&["check", &image], &["d.flash", "another process has it open"]);
    refused(&["stats", &stage.path("nbd.sock")], &["nbd.sock", "no control socket"]);
    refused(&["snapshot", &image, &foreign], &["foreign", "choose another name"]);
    refused(&["trim", &image, "--offset", "8MiB", "--length", "4KiB"], &["d.flash", "past the drive's 8388608 bytes"]);
    server.stop();
    // Both copies of the header.
    let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
    let about = stage.ok(&["info", &image]);
    file.write_all_at(&[0xff; 64], 64).unwrap();
    assert_eq!(stage.ok(&["info", &image]), about, "the copy of the header says the same");
    file.write_all_at(&vec![0xff; 128 << 10], 64).unwrap();
    refused(&["serve", &image], &["d.flash", "header is damaged", "from a copy"]);
}

#[test]
fn check_finds_what_was_damaged() {
    let Some(python) = python() else { return };
    let stage = Stage::with(SMALL);
    let server = stage.serve(&[]);
    server.script(&python, "h.pwrite(b'isotherm' * 512 * 16, 0)\nh.flush()");
    server.stop();
    let image = stage.image();
    assert!(stage.ok(&["check", &image]).contains("16 pages read, nothing is damaged"));
    let bytes = std::fs::read(&image).unwrap();
    let pattern = b"isotherm".repeat(512);
    let at = (0..bytes.len()).step_by(512).find(|at| bytes[*at..].starts_with(&pattern)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(b"!", at as u64 + 100).unwrap();
    let output = isotherm(&["drive", "check", &image]);
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    says(&both(&output), &["damaged: ", "data of LPN", "16 pages read, 1 damaged"]);
    // A client hears of it, and the log counts it; all else can be read.
    let server = stage.serve(&[]);
    let script = "
found = []
for page in range(16):
    try:
        assert h.pread(4096, page * 4096) == b'isotherm' * 512
    except nbd.Error as error:
        assert error.errnum == errno.EIO, error
        found.append(page)
assert len(found) == 1, found
";
    server.script(&python, &format!("import errno{script}"));
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["media_errors"], 1);
    server.stop();
}

#[test]
fn logs_have_the_keys_of_nvme_cli_and_counters_begin_anew() {
    let Some(python) = python() else { return };
    let stage = Stage::with(SMALL);
    let server = stage.serve(&[]);
    server.script(&python, "h.pwrite(b'x' * (1 << 20), 0)\nh.pread(4096, 0)\nh.flush()");
    let smart = server.json(&["smart-log"], &["-o", "json"]);
    // 1 MiB are three data units of 512 000 bytes, the last one begun.
    for (key, value) in [
        ("critical_warning", 0),
        ("avail_spare", 100),
        ("data_units_written", 3),
        ("data_units_read", 1),
        ("host_read_commands", 1),
        ("power_cycles", 1),
        ("unsafe_shutdowns", 0),
        ("media_errors", 0),
    ] {
        assert_eq!(smart[key], value, "{key}");
    }
    let fdp = server.json(&["fdp", "stats"], &["-o", "json"]);
    assert_eq!(
        (fdp["hbmw"].as_u64(), fdp["mbmw"].as_u64(), fdp["mbe"].as_u64()),
        (Some(1 << 20), Some(1 << 20), Some(0))
    );
    assert_eq!(server.json(&["fdp", "configs"], &["-o", "json"])["configs"][0]["runs"], 64 * 4096);
    assert_eq!(server.json(&["fdp", "usage"], &["-o", "json"])["nruh"], 1);
    let extended = server.json(&["ocp-smart-add-log"], &["-o", "json"]);
    assert_eq!(extended["Physical media units written"]["lo"], 1 << 20);
    // A part of a page is written with the rest of it, which flash reads.
    server.script(&python, "h.pread(512, 0)\nh.pwrite(b'z' * 512, 8192)\nh.flush()");
    let extended = server.json(&["ocp-smart-add-log"], &["-o", "json"]);
    assert_eq!(extended["Physical media units read"]["lo"], 3 * 4096);
    assert_eq!(extended["Physical media units read"]["lo"], server.json(&["stats"], &[])["media_bytes_read"]);
    assert!(server.ask(&["smart-log"], &[]).lines().any(|line| line.starts_with("data_units_written ")));

    assert_eq!(server.json(&["stats"], &[])["host_pages_written"], 257);
    server.ask(&["reset-stats"], &[]);
    let stats = server.json(&["stats"], &[]);
    assert_eq!((&stats["host_pages_written"], &stats["pages_programmed_total"]), (&0.into(), &0.into()));
    server.script(&python, "h.pwrite(b'y' * 4096, 0)");
    assert_eq!(server.json(&["stats"], &[])["host_pages_written"], 1);
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["data_units_written"], 3, "logs count the whole life");
    server.stop();
    assert!(stage.ok(&["info", &stage.image()]).contains("host             1.00 MiB written"));
}

#[test]
fn a_drive_in_memory_is_served_and_a_trim_by_hand_makes_zeros() {
    let (Some(python), Some(nbdinfo)) = (python(), client("nbdinfo")) else { return };
    let stage = Stage::new();
    let control = stage.path("d.ctl");
    let server = stage.start(&["--ram", "--logical-size", "8MiB", "--control", &control]);
    assert_eq!(run(&nbdinfo, &["--size", &server.uri()]).trim(), "8388608");
    server.script(&python, "h.pwrite(b'x' * 65536, 0)\nassert h.pread(65536, 0) == b'x' * 65536");
    let ask = |arguments: &[&str]| stage.ok(&[&[arguments[0], control.as_str()], &arguments[1..]].concat());
    ask(&["trim", "--offset", "4KiB", "--length", "8KiB"]);
    let script = "assert h.pread(65536, 0) == b'x' * 4096 + bytes(8192) + b'x' * (65536 - 12288)";
    server.script(&python, script);
    let stats: serde_json::Value = serde_json::from_str(&ask(&["stats"])).unwrap();
    assert_eq!(stats["host_pages_trimmed"], 2, "{stats}");
    refused(&["snapshot", &control, &stage.path("copy")], &["lies in memory", "serve an image"]);
    ask(&["stop"]);
    assert!(server.ended().contains("the drive was shut down"));
}

#[test]
fn a_drive_that_is_worn_out_is_read_only_and_says_so() {
    let Some(python) = python() else { return };
    let stage = Stage::with(&["--logical-size", "2MiB", "--op", "20%", "--set", "device.endurance=6"]);
    let server = stage.serve(&[]);
    let wear_out = "
import errno, random
held = {}
def refused(change):
    try:
        change()
    except nbd.Error as error:
        assert error.errnum == errno.EPERM or error.errnum == errno.EROFS, error
        return True
    return False
for version in range(1_000_000):
    page = random.randrange(512)
    data = version.to_bytes(4, 'little') * 1024
    if refused(lambda: h.pwrite(data, page * 4096)):
        break
    held[page] = data
held.pop(page, None)
assert len(held) > 100
";
    // A discard would be gone at the restart.
    let read_only = "
page = min(held)
assert refused(lambda: h.trim(4096, page * 4096))
assert refused(lambda: h.zero(4096, page * 4096))
assert all(h.pread(4096, page * 4096) == data for page, data in held.items())
";
    server.script(&python, &format!("{wear_out}{read_only}"));
    // Bit 0: there is little spare; bit 3: the media is read-only.
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["critical_warning"], 1 | 1 << 3);
}
