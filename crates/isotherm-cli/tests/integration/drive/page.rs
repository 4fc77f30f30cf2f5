//! The live page of a real drive under load, in a real browser: its numbers are those of `drive stats`.

use super::browser::Browser;
use super::stage::{Server, Stage};
use super::tools::{client, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DEVICE: &[&str] = &["--logical-size", "8MiB", "--op", "15%", "--placement", "host_gc"];

/// What the page shows: tiles, the latencies by request, the slowest requests, and the last victims.
const SHOWN: &str = "(() => { const tile = key => { const dd = document.querySelector(`[data-tile='${key}'] dd`); \
    return dd && dd.dataset.value !== '' ? Number(dd.dataset.value) : null; }; \
    const rows = id => [...document.querySelectorAll(`#${id} tbody tr`)]; \
    const numbers = row => [...row.cells].slice(1).map(cell => Number(cell.dataset.value)); \
    return { wa: tile('wa-total'), \
    latencies: Object.fromEntries(rows('latencies').map(row => [row.cells[0].textContent, numbers(row)])), \
    slowest: rows('slowest').map(row => [row.cells[0].textContent, Number(row.cells[1].dataset.value), row.cells[5].textContent]), \
    victims: rows('victims').map(row => row.cells[3].textContent), status: document.getElementById('status').textContent }; })()";

/// Fills the drive, so that whatever is written next makes it clean.
fn fill(server: &Server, fio: &Path) {
    let uri = format!("--uri={}", server.uri());
    run(fio, &["--name=fill", "--ioengine=nbd", "--rw=write", "--bs=64k", "--size=8m", "--iodepth=4", &uri]);
}

fn load(server: &Server, fio: &Path, seconds: u32) -> std::process::Child {
    let uri = format!("--uri={}", server.uri());
    let mut command = Command::new(fio);
    command.args(["--name=load", "--ioengine=nbd", "--rw=randrw", "--rwmixread=30", "--bs=4k", "--size=8m", &uri]);
    command.args(["--iodepth=2", "--norandommap", "--time_based", &format!("--runtime={seconds}"), "--fsync=64"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("fio starts")
}

/// Requests of one kind, as the page and as `stats` count them.
fn counts(shown: &Value, stats: &Value, op: &str) -> (u64, u64) {
    (shown["latencies"][op][0].as_u64().unwrap_or(0), stats["latency_ns"][op]["count"].as_u64().unwrap_or(0))
}

#[test]
fn its_numbers_are_those_of_stats_under_load_and_after_it() {
    let Some(fio) = client("fio") else { return };
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("drive-page");
    std::fs::create_dir_all(&scratch).unwrap();
    let Some(mut browser) = Browser::start(&scratch) else { return };
    let stage = Stage::with(DEVICE);
    let server = stage.serve(&["--ui", "127.0.0.1:0", "--latency", "emulated,x0.1"]);
    let end = Instant::now() + Duration::from_secs(30);
    let address = loop {
        // It is there a moment after the control socket.
        let said = server.said();
        if let Some(address) = said.lines().find_map(|line| line.strip_prefix("live page: ")) {
            break address.to_owned();
        }
        assert!(Instant::now() < end, "it does not say where: {said}");
        std::thread::sleep(Duration::from_millis(5));
    };
    browser.open(&address, 1280, 900, "light");

    fill(&server, &fio);
    let mut fio = load(&server, &fio, 4);
    let end = Instant::now() + Duration::from_secs(60);
    let mut compared = 0;
    while fio.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "the load does not end");
        let before = server.json(&["stats"], &[]);
        // Samples come twice a second: what is shown then is of a moment between the two answers.
        std::thread::sleep(Duration::from_millis(1200));
        let shown = browser.evaluate(SHOWN);
        let after = server.json(&["stats"], &[]);
        if before["latency_ns"]["write"]["count"].as_u64().unwrap_or(0) == 0 {
            continue;
        }
        assert_eq!(shown["status"], "live");
        for op in ["read", "write", "flush"] {
            let ((shown, least), (_, most)) = (counts(&shown, &before, op), counts(&shown, &after, op));
            assert!((least..=most).contains(&shown), "{op}: {shown} is shown, and stats counted {least} to {most}");
        }
        compared += 1;
    }
    assert!(fio.wait().unwrap().success());
    assert!(compared > 0, "nothing was compared under load");

    let stats = server.json(&["stats"], &[]);
    let near = |shown: &Value, said: &Value| {
        let (shown, said) = (shown.as_f64().unwrap_or(f64::NAN), said.as_f64().unwrap());
        assert!((shown - said).abs() <= 1e-6 * said, "{shown} is shown, and stats says {said}");
    };
    let writes = stats["latency_ns"]["write"]["count"].as_u64().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let shown = loop {
        let shown = browser.evaluate(SHOWN);
        if counts(&shown, &stats, "write") == (writes, writes) {
            break shown;
        }
        assert!(Instant::now() < end, "the page never shows {writes} writes: {shown}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(stats["gc_count"].as_u64().unwrap() > 0, "nothing was cleaned");
    near(&shown["wa"], &stats["write_amplification"]);
    for op in ["read", "write", "flush"] {
        let of = &stats["latency_ns"][op];
        for (at, key) in ["count", "p50", "p90", "p99", "p999", "max"].into_iter().enumerate() {
            near(&shown["latencies"][op][at], &of[key]);
        }
    }
    let slowest = shown["slowest"].as_array().unwrap();
    let longest = ["read", "write", "flush"].map(|op| stats["latency_ns"][op]["max"].as_u64().unwrap());
    // The page has the request's own latency, and stats the greatest that its histogram of three digits takes for equal.
    let (own, greatest) = (slowest[0][1].as_f64().unwrap(), *longest.iter().max().unwrap() as f64);
    assert!((greatest * 0.999..=greatest).contains(&own), "{own} is the slowest, and stats says {greatest}");
    // Which causes delay the slowest is for the machine's scheduler to decide; that some are delayed is not.
    let causes: Vec<&str> = slowest.iter().filter_map(|row| row[2].as_str()).flat_map(|row| row.split(", ")).collect();
    let known = ["block erase", "page cop", "metadata page", " behind other requests", " of the write buffer"];
    let is_known = |cause: &&str| known.iter().any(|word| cause.contains(word));
    assert!(causes.iter().any(is_known), "nothing delayed the slowest requests: {slowest:?}");
    assert!(causes.iter().all(|cause| cause.is_empty() || is_known(cause)), "{slowest:?}");
    // All ended more than a second ago, by the wall clock, of which that of this drive is ten times as fast.
    std::thread::sleep(Duration::from_millis(1600));
    let ended =
        browser.evaluate("[...document.querySelectorAll('#slowest tbody tr')].map(row => row.cells[2].textContent)");
    let is_of_now = |ended: &Value| ended.as_str().is_none_or(|text| text.starts_with("0\u{a0}s"));
    assert!(!ended.as_array().unwrap().iter().any(is_of_now), "{ended}");
    let streams = shown["victims"].as_array().unwrap();
    assert!(!streams.is_empty());
    for stream in streams {
        assert!(stream == "0 (host writes)" || stream == "1 (copies)", "{stream}");
    }
    assert_eq!(browser.console, Vec::<String>::new(), "the console must stay empty");
    server.stop();
}
