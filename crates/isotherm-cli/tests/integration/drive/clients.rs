//! Programs of others on the real drive.

use super::stage::Stage;
use super::tools::{client, python, run};
use std::path::Path;
use std::time::{Duration, Instant};

const DEVICE: &[&str] =
    &["--logical-size", "64MiB", "--op", "15%", "--placement", "sepbit", "--victim", "cost_benefit"];

#[test]
fn nbdcopy_brings_back_what_it_took_also_after_the_drive_was_off() {
    let Some(nbdcopy) = client("nbdcopy") else { return };
    let stage = Stage::with(DEVICE);
    let (source, target) = (stage.path("source"), stage.path("target"));
    // Data, a hole, and data again; another content each time, so that blocks are cleaned.
    for round in 1..=3_u32 {
        let data: Vec<u8> =
            (0..20_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761 + 2 * round) >> 24) as u8).collect();
        let mut bytes = vec![0; 64 << 20];
        bytes[..data.len()].copy_from_slice(&data);
        bytes[(64 << 20) - data.len()..].copy_from_slice(&data);
        std::fs::write(&source, &bytes).unwrap();
        let server = stage.serve(&[]);
        run(&nbdcopy, &["--flush", &source, &server.uri()]);
        server.stop();
        let server = stage.serve(&[]);
        run(&nbdcopy, &[&server.uri(), &target]);
        assert!(std::fs::read(&target).unwrap() == bytes, "round {round}: the copy differs");
        assert!(round == 1 || server.json(&["ocp-smart-add-log"], &["-o", "json"])["Max User data erase counts"] != 0);
        server.stop();
    }
    assert!(stage.ok(&["check", &stage.image()]).contains("nothing is damaged"));
}

#[test]
fn qemu_io_reads_patterns_discards_and_zeros() {
    let Some(qemu_io) = client("qemu-io") else { return };
    let stage = Stage::with(DEVICE);
    let server = stage.serve(&[]);
    let commands = [
        "write -P 7 1M 3M",
        "read -P 7 1M 3M",
        "write -f -P 9 700 5000",
        "read -P 9 700 5000",
        "read -P 0 5700 2000",
        "discard 3M 1M",
        "read -P 0 3M 1M",
        "write -z 1M 64k",
        "read -P 0 1M 64k",
        "write -z -u 2M 64k",
        "read -P 0 2M 64k",
        "read -P 7 1114112 512k",
        "aio_write -P 5 10M 1M",
        "aio_write -P 6 12M 1M",
        "aio_flush",
        "flush",
        "read -P 5 10M 1M",
        "read -P 6 12M 1M",
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    let uri = server.uri();
    arguments.push(&uri);
    let text = run(&qemu_io, &arguments);
    assert!(!text.contains("failed"), "{text}");
    assert_eq!(server.json(&["stats"], &[])["host_pages_trimmed"], (1 << 20 | 64 << 10) / 4096);
    server.stop();
}

#[test]
fn block_status_follows_writes_and_trims_also_after_a_loss_of_power() {
    let Some(python) = python() else { return };
    let stage = Stage::with(DEVICE);
    let server = stage.serve(&[]);
    let status = "
def status(offset, length):
    found = []
    h.block_status(length, offset, lambda context, at, entries, error: found.extend(entries))
    return found
";
    let script = "
h.pwrite(b'x' * 65536, 65536)
assert status(0, 1 << 20) == [65536, 3, 65536, 0, 917504, 3], status(0, 1 << 20)
h.trim(8192, 69632)
# A part of a page is made zero, and is still data.
h.trim(512, 65536)
assert h.pread(4096, 65536) == bytes(512) + b'x' * 3584
h.flush()
";
    server.script(&python, &format!("{status}{script}"));
    let expected = "assert status(0, 1 << 20) == [65536, 3, 4096, 0, 8192, 3, 53248, 0, 917504, 3], status(0, 1 << 20)";
    server.script(&python, &format!("{status}{expected}"));
    server.cut();
    let server = stage.serve(&[]);
    server.script(&python, &format!("{status}{expected}"));
    server.stop();
}

#[test]
fn a_read_takes_at_least_the_simulated_time() {
    let Some(python) = python() else { return };
    // Ten times slower, so that the time is well above that of the way to the client and back.
    for (mode, slowdown) in [("emulated", 1.0), ("emulated,x10", 10.0)] {
        let stage = Stage::with(DEVICE);
        let server = stage.serve(&["--latency", mode]);
        server.script(&python, "h.pwrite(b'x' * 4096, 0)\nh.flush()");
        server.ask(&["reset-stats"], &[]);
        let script = "
import time
begin = time.monotonic_ns()
assert h.pread(4096, 0) == b'x' * 4096
print('took', time.monotonic_ns() - begin)
";
        let text = server.script(&python, script);
        let took: f64 = text.split_whitespace().last().and_then(|word| word.parse().ok()).unwrap();
        let simulated = server.json(&["stats"], &[])["latency_ns"]["read"]["max"].as_f64().unwrap();
        assert!(simulated >= 50_000.0, "a read of MLC flash takes 50 us and more: {simulated} ns");
        assert!(took >= simulated * slowdown, "{mode}: {took} ns, of which flash takes {}", simulated * slowdown);
        server.stop();
    }
}

/// The array counts its flash time over its life, and the clock of a server begins anew: neither may stand for the other.
#[test]
fn elapsed_time_counts_from_where_measuring_began() {
    let Some(python) = python() else { return };
    let stage = Stage::with(DEVICE);
    for opened in ["for the first time", "again"] {
        let mut begin = Instant::now();
        let server = stage.serve(&["--latency", "emulated"]);
        for since in ["serving", "the reset"] {
            server.script(&python, "h.pwrite(b'x' * (1 << 20), 0)\nh.flush()");
            let stats = server.json(&["stats"], &[]);
            let wall_ns = begin.elapsed().as_nanos() as u64;
            let (elapsed_ns, flash_ns) = (&stats["elapsed_ns"], &stats["flash_time_ns"]);
            let what =
                format!("opened {opened}, since {since}: {elapsed_ns} ns of {wall_ns}, of which flash {flash_ns}");
            // The device has one plane, and the client waits for it.
            assert!(elapsed_ns.as_u64().unwrap() >= flash_ns.as_u64().unwrap(), "{what}");
            assert!(elapsed_ns.as_u64().unwrap() <= wall_ns, "{what}");
            assert!(stats["elapsed_write_throughput_bytes_per_second"].as_f64().unwrap() > 0.0, "{what}");
            begin = Instant::now();
            server.ask(&["reset-stats"], &[]);
        }
        server.stop();
    }
}

#[test]
fn a_server_over_tcp_and_the_file_of_fuse_serve_one_drive() {
    let Some(python) = python() else { return };
    let Some(()) = super::tools::can_attach(&[]) else { return };
    let stage = Stage::with(DEVICE);
    let folder = stage.path("mnt");
    std::fs::create_dir(&folder).unwrap();
    let server = stage.serve(&["--nbd", "tcp:127.0.0.1:0", "--fuse", &folder]);
    let said = server.said();
    let uri = said.lines().find_map(|line| line.strip_prefix("NBD: ").filter(|uri| uri.contains("127.0.0.1"))).unwrap();
    run(&python, &["-m", "nbd", "--uri", uri, "-c", "h.pwrite(b'over tcp' * 64, 4096)\nh.flush()"]);
    let disk = Path::new(&folder).join("disk");
    assert_eq!(&std::fs::read(&disk).unwrap()[4096..4104], b"over tcp");
    let begin = Instant::now();
    server.stop();
    assert!(begin.elapsed() < Duration::from_secs(20), "nobody has the file open");
    assert!(!disk.exists(), "the file is still mounted");
}
