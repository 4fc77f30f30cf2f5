//! The command as scripts use it: its output, its exit codes, its files.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

pub fn isotherm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm")).args(arguments).output().expect("the binary was built for this test")
}

/// The object that `run --json` prints, which must be all that it prints.
pub fn run(arguments: &[&str]) -> Value {
    let output = isotherm(&[&["run"], arguments, &["--json"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}"))
}

const ZIPF: &str = "synth:zipf,theta=0.99,pages=16Ki,writes=200k";

#[test]
fn run_prints_the_stable_keys_and_parts_that_sum() {
    let result = run(&[ZIPF, "--op", "10%", "--measure-last", "50000"]);
    let stable = [
        "/trace",
        "/spec",
        "/seed",
        "/version",
        "/host_pages_written",
        "/host_pages_read",
        "/pages_programmed/host",
        "/write_amplification",
        "/write_amplification_last",
        "/gc_count",
        "/victim_invalid_share_mean",
        "/erase_count/total",
        "/erase_count/min",
        "/erase_count/mean",
        "/erase_count/max",
        "/flash_time_ns",
        "/latency_ns/read",
        "/latency_ns/write/mean",
        "/latency_ns/write/p50",
        "/latency_ns/write/p90",
        "/latency_ns/write/p99",
        "/latency_ns/write/p999",
        "/latency_ns/write/max",
        "/dram_bytes",
        "/simulator_host_writes_per_second",
        "/verdict/valid",
        "/verdict/reasons",
    ];
    for path in stable {
        assert!(result.pointer(path).is_some(), "no {path}");
    }
    assert_eq!(result["host_pages_written"], 200_000);
    let parts: u64 = result["pages_programmed"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(result["pages_programmed_total"], parts);
    assert!((number(&result, "/write_amplification") - parts as f64 / 200_000.0).abs() < 1e-12);
    assert!(number(&result, "/gc_count") > 0.0);
    assert!(number(&result, "/latency_ns/write/max") >= 905_600.0, "a program takes 905.6 us on the default flash");
    assert!((number(&result, "/device/over_provisioning") - 0.10).abs() < 0.005);
}

#[test]
fn the_same_inputs_give_the_same_bytes_but_for_the_simulators_own_speed() {
    let strip = |mut value: Value| {
        value.as_object_mut().unwrap().retain(|key, _| !key.starts_with("simulator_"));
        value.to_string()
    };
    let arguments = [ZIPF, "--victim", "random", "--seed", "7", "--precondition", "random"];
    assert_eq!(strip(run(&arguments)), strip(run(&arguments)));
    let other = [ZIPF, "--victim", "random", "--seed", "8", "--precondition", "random"];
    assert_ne!(strip(run(&arguments)), strip(run(&other)));
}

#[test]
fn the_last_window_is_exact_even_within_a_request() {
    let trace = "synth:uniform,pages=8Ki,writes=100k,size=7";
    let result = run(&[trace, "--measure-last", "33333"]);
    assert_eq!(result["last_window"]["host_pages_written"], 33_333);
    let whole = run(&[trace, "--measure-last", "1000000000"]);
    assert_eq!(whole["last_window"]["host_pages_written"], whole["host_pages_written"]);
}

#[test]
fn filler_fills_the_rest_of_a_drive_and_never_grows_it() {
    // Every page of it is touched, so that its span is all of its 16 Ki pages.
    const UNIFORM: &str = "synth:uniform,pages=16Ki,writes=300k";
    let empty = run(&[UNIFORM, "--logical-size", "128MiB"]);
    let filled = run(&[UNIFORM, "--logical-size", "128MiB", "--fill", "90%"]);
    assert_eq!(filled["device"], empty["device"]);
    assert_eq!(
        filled["workload"]["precondition_pages_written"],
        29_491 - 16_384,
        "90 % of 32 Ki pages, less the trace's"
    );
    assert_eq!(filled["host_pages_written"], 300_000, "the filler is not measured");
    assert!(number(&filled, "/write_amplification") > 1.5 * number(&empty, "/write_amplification"));
    let share = number(&filled, "/verdict/live_share_peak");
    assert!((share - 0.9).abs() < 1e-4, "{share}");
    let as_key = run(&[UNIFORM, "--set", "device.logical_size=128MiB", "--fill", "90%"]);
    assert_eq!(as_key["pages_programmed"], filled["pages_programmed"], "both ways of giving the size");
}

#[test]
fn addresses_are_wrapped_or_compacted_when_asked() {
    let wrapped = run(&[ZIPF, "--logical-size", "32MiB", "--address", "wrap"]);
    assert_eq!(wrapped["device"]["logical_pages"], 8192);
    assert_eq!(wrapped["host_pages_written"], 200_000);
    let folder = tempfile::tempdir().unwrap();
    let sparse = folder.path().join("sparse.csv");
    let rows: String = (0..20_000u64).map(|i| format!("{i},W,{},4096\n", (i * 7919 % 1000) << 30)).collect();
    std::fs::write(&sparse, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    let compacted = run(&[sparse.to_str().unwrap(), "--address", "compact"]);
    assert_eq!(compacted["device"]["logical_pages"], 1000);
    assert!(number(&compacted, "/gc_count") > 0.0);
    let spread = run(&[sparse.to_str().unwrap()]);
    assert_eq!(spread["verdict"]["valid"], false, "on the span nothing is ever cleaned, and the verdict says so");
    let reasons = spread["verdict"]["reasons"].to_string();
    assert!(reasons.contains("never ran") && reasons.contains("compact"), "{reasons}");
}

/// A device that wears out in the middle of a run has results up to there, and the verdict says where it ended.
/// A run that is too short for wear levelling to act does not tell what it costs, and says how far from that it is.
#[test]
fn a_run_that_wear_levelling_left_alone_says_so() {
    let said = |wear: &str| {
        let output = isotherm(&["run", ZIPF, "--set", wear]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let short = said("wear.threshold=200");
    assert!(
        short.contains("wear levelling moved nothing: blocks are ") && short.contains("200 are allowed"),
        "{short}"
    );
    for other in ["wear.threshold=1", "wear.leveling=false"] {
        assert!(!said(other).contains("wear levelling"), "{other}");
    }
}

#[test]
fn a_worn_out_device_has_results_and_says_so() {
    for options in [&[][..], &["--ftl", "dftl"], &["--ftl", "fast"], &["--dram", "1MiB", "--buffer", "lru"]] {
        let asked = ["run", "synth:uniform,pages=4Ki,writes=400k", "--set", "device.endurance=5", "--json"];
        let output = isotherm(&[&asked[..], options].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {error}");
        assert!(error.contains("worn out"), "{options:?}: {error}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object on standard output");
        assert_eq!(result["verdict"]["valid"], false, "{options:?}");
        let reasons = result["verdict"]["reasons"].to_string();
        assert!(reasons.contains("worn out"), "{options:?}: {reasons}");
        let written = result["host_pages_written"].as_u64().unwrap();
        assert!((1..400_000).contains(&written), "{options:?}: {written} pages written");
    }
}

#[test]
fn foresight_beats_every_placement_that_has_none() {
    let trace = "synth:zipf,theta=0.99,pages=32Ki,writes=300k";
    let wa = |placement: &str| number(&run(&[trace, "--op", "20%", "--placement", placement]), "/write_amplification");
    let bound = wa("offline");
    for placement in ["single", "host_gc", "epoch"] {
        assert!(bound < wa(placement), "{placement}");
    }
}

#[test]
fn compare_writes_whole_files_that_agree_best_first() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("made/here");
    let output = isotherm(&[
        "compare",
        ZIPF,
        "--placement",
        "single,host_gc,epoch:length=1,gc=extra",
        "--victim",
        "greedy,fifo",
        "--op",
        "7%,15%",
        "--out",
        out.to_str().unwrap(),
        "--csv",
        "--parquet",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for expected in ["synth trace: 200.0 k requests", "over-provisioning (T-U)/U 7.0", "epoch:length=1,gc=extra, fifo,"]
    {
        assert!(text.contains(expected), "no \"{expected}\" in:\n{text}");
    }
    let results: Value = serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
    let runs = results["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 12);
    let was: Vec<f64> = runs.iter().map(|r| number(r, "/write_amplification")).collect();
    assert!(was.is_sorted(), "{was:?}");
    assert_eq!(std::fs::read_to_string(out.join("results.csv")).unwrap().lines().count(), 13);
    assert_eq!(&std::fs::read(out.join("results.parquet")).unwrap()[..4], b"PAR1");
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("<html"));

    // The report can be written again from the results alone.
    let again = out.join("again.html");
    let output = isotherm(&["report", out.join("results.json").to_str().unwrap(), "--out", again.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let same = std::fs::read(again).unwrap() == std::fs::read(out.join("report.html")).unwrap();
    assert!(same, "numbers must survive being written and read");
}

#[test]
fn compare_takes_several_of_any_part_and_runs_once_what_has_no_use_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let compared = |options: &[&str]| {
        let out = ["--out", folder.path().to_str().unwrap(), "--json"];
        let output = isotherm(&[&["compare", ZIPF], options, &out[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        let labels = results["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap().to_owned());
        let mut labels: Vec<String> = labels.collect();
        labels.sort_unstable();
        labels
    };
    let ftls = ["--ftl", "page,dftl,asa,fast", "--placement", "single,epoch", "--cache-bytes", "64KiB", "--op", "25%"];
    assert_eq!(compared(&ftls), ["asa", "dftl, epoch", "dftl, single", "fast", "page, epoch", "page, single"]);
    let logs = ["--log", "sfs:segment=256KiB,lfs:segment=256KiB,in_place", "--below", "page", "--placement", "single"];
    assert_eq!(compared(&logs), ["in_place", "lfs:segment=256KiB", "sfs:segment=256KiB"]);
    assert_eq!(compared(&["--log", "sfs:segment=256KiB"]), ["sfs:segment=256KiB"]);
    let over = ["--log", "sfs:segment=256KiB,in_place", "--below", "none,page", "--placement", "single"];
    let buffers = ["--dram", "256KiB", "--buffer", "none,lru"];
    let name = "sfs:segment=256KiB";
    let expected = ["in_place, page, lru", "in_place, page, none"].map(str::to_owned);
    let expected =
        expected.into_iter().chain(["none", "page, lru", "page, none"].map(|rest| format!("{name}, {rest}")));
    assert_eq!(compared(&[&over[..], &buffers].concat()), expected.collect::<Vec<_>>());
    let splits = ["--ftl", "page,dftl", "--dram", "256KiB", "--split", "30%,least_cost", "--placement", "single"];
    assert_eq!(compared(&splits), ["dftl, 30%", "dftl, least_cost", "page"]);
    let split =
        ["--ftl", "dftl", "--dram", "256KiB", "--split", "30%", "--buffer", "none,lru", "--placement", "single"];
    assert_eq!(compared(&split), ["lru", "none"]);
}

#[test]
fn compare_takes_policies_from_the_specification_too() {
    let folder = tempfile::tempdir().unwrap();
    let compared = |options: &[&str]| {
        let out = ["--out", folder.path().to_str().unwrap(), "--json"];
        let output = isotherm(&[&["compare", ZIPF], options, &out[..]].concat());
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        let runs = results["runs"].as_array().unwrap().clone();
        runs.iter()
            .map(|run| {
                [&run["spec"]["placement"]["name"], &run["spec"]["gc"]["victim"]].map(ToString::to_string).join(" ")
            })
            .collect::<Vec<_>>()
    };
    let named = ["--set", "gc.victim=fifo", "--set", "placement=host_gc"];
    assert_eq!(compared(&named), [r#""host_gc" "fifo""#]);
    assert_eq!(compared(&named[..2]).len(), 4);
    let file = folder.path().join("device.toml");
    std::fs::write(&file, "[placement]\nname = \"host_gc\"\n").unwrap();
    let from_file = ["--spec", file.to_str().unwrap()];
    assert_eq!(compared(&from_file), [r#""host_gc" "greedy""#]);
    // Options go before the file; beside --set they are refused where they differ.
    let options = ["--placement", "single", "--victim", "fifo"];
    assert_eq!(compared(&[from_file, options[..2].try_into().unwrap()].concat()), [r#""single" "greedy""#]);
    let both = isotherm(&[&["compare", ZIPF][..], &named, &options].concat());
    let message = String::from_utf8(both.stderr).unwrap();
    assert!(message.contains("placement.name (--placement)") && message.contains("give one"), "{message}");
}

#[test]
fn a_device_that_stops_counts_what_it_has_carried_out() {
    let stopped = |workload: &str, options: &[&str]| -> Value {
        let output = isotherm(&[&["run", workload, "--set", "device.endurance=20", "--json"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let heat = |result: &Value| {
        let rows = result["write_heat"]["counts"].as_array().unwrap().iter();
        rows.flat_map(|row| row.as_array().unwrap()).map(|count| count.as_f64().unwrap()).sum::<f64>()
    };
    let result = stopped("synth:zipf,theta=0.9,pages=8192,writes=400000,seed=3", &[]);
    let pages = number(&result, "/host_pages_written");
    assert!(pages > 10_000.0 && pages < 400_000.0);
    assert_eq!(number(&result, "/host_requests"), pages);
    assert_eq!(number(&result, "/latency_ns/write/count"), pages);
    assert!(result["lifetime"]["years"].is_null(), "a workload without times has no rate");
    // Requests of 16 pages, the last of them carried out in part; the last window begins within one.
    let large = "synth:uniform,pages=8192,writes=400000,size=16,rate=1000";
    // Within the write before the one that fails, and within that one: both are cut where the window begins.
    let pages = number(&stopped(large, &[]), "/host_pages_written") as u64;
    let [before, within] = [pages / 16 * 16 - 5, pages - 1].map(|page| (400_000 - page).to_string());
    for options in [
        &[][..],
        &["--measure-last", before.as_str()],
        &["--measure-last", within.as_str()],
        &["--log", "lfs:segment=256KiB", "--below", "page"],
    ] {
        let result = stopped(large, options);
        let pages = number(&result, "/host_pages_written");
        assert_eq!(number(&result, "/host_bytes_written"), pages * 4096.0, "{options:?}");
        assert_eq!(heat(&result), pages, "{options:?}");
        assert_eq!(number(&result, "/host_requests"), (pages / 16.0).floor(), "{options:?}");
        // A thousand requests a second: so many pages in that time.
        let life = number(&result, "/lifetime/terabytes_written_bytes") / number(&result, "/lifetime/years");
        let rate = life / (365.25 * 86_400.0) / 4096.0;
        assert!((rate / 16_000.0 - 1.0).abs() < 0.01, "{options:?}: {rate} pages a second");
    }
}

#[test]
fn a_trace_in_sectors_is_not_judged_as_one_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let reasons = |unit: u64| {
        let rows: String = (0..20_000u64).map(|i| format!("{i},W,{},{}\n", i * 7 % 512 * unit * 8, unit * 8)).collect();
        let file = folder.path().join(format!("{unit}.csv"));
        std::fs::write(&file, rows).unwrap();
        run(&[file.to_str().unwrap(), "--op", "28%"])["verdict"]["reasons"].to_string()
    };
    assert!(reasons(1).contains("100 % of the requests do not begin and end at multiples of 512 bytes"));
    assert!(!reasons(512).contains("512 bytes"));
}

#[test]
fn throughput_of_a_closed_loop_follows_from_its_latency() {
    // Little's law: requests under way are their rate times their latency.
    let mut rates = Vec::new();
    for channels in ["1", "4"] {
        let sets = [format!("device.channels={channels}"), "timing.mode=closed".into(), "timing.queue_depth=32".into()];
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set.as_str()]).collect();
        let result = run(&[&["synth:uniform,pages=16384,writes=100000", "--op", "28%"], &sets[..]].concat());
        let per_second = number(&result, "/elapsed_write_throughput_bytes_per_second") / 4096.0;
        let under_way = per_second * number(&result, "/latency_ns/write/mean") / 1e9;
        assert!((under_way / 32.0 - 1.0).abs() < 0.01, "{channels} channels: {under_way}");
        rates.push(per_second);
    }
    assert!(rates[1] > 2.0 * rates[0], "{rates:?}");
    assert!(run(&[ZIPF])["elapsed_ns"].is_null());
    // When a trace began is no time that it took.
    let folder = tempfile::tempdir().unwrap();
    let elapsed = |first_ns: u64| {
        let rows: String =
            (0..3000).map(|i| format!("{},W,{},4096\n", first_ns + i * 2_000_000, i % 500 * 4096)).collect();
        let file = folder.path().join(format!("{first_ns}.csv"));
        std::fs::write(&file, rows).unwrap();
        number(&run(&[file.to_str().unwrap(), "--set", "timing.mode=open"]), "/elapsed_ns")
    };
    assert_eq!(elapsed(0), elapsed(1_000_000_000_000_000));
}

#[test]
fn a_log_and_its_device_are_told_as_one_and_nothing_wears_nothing() {
    let over =
        |below: &str| run(&["synth:uniform,pages=4Ki,writes=40k", "--log", "sfs:segment=64KiB", "--below", below]);
    for (below, has_device) in [("none", false), ("page", true)] {
        let result = over(below);
        let (used, logical) = (number(&result, "/device/physical_pages"), number(&result, "/device/logical_pages"));
        assert_eq!(logical, 4096.0);
        assert!((number(&result, "/device/over_provisioning") - (used - logical) / logical).abs() < 1e-9);
        assert_eq!(result["lifetime"]["terabytes_written_bytes"].is_number(), has_device);
    }
}

#[test]
fn what_the_log_moves_is_told_apart_from_what_the_host_wrote() {
    let arguments = ["synth:uniform,pages=4Ki,writes=40k", "--log", "lfs:segment=64KiB", "--below", "page"];
    let result = run(&arguments);
    let output = isotherm(&[&["run"], &arguments[..]].concat());
    let text = String::from_utf8(output.stdout).unwrap().replace(['\u{202f}', '\u{a0}'], "");
    let parts = text.split('(').nth(1).unwrap().split(')').next().unwrap();
    let part = |name: &str| -> f64 {
        let part =
            parts.split(" + ").find_map(|part| part.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}: {parts}"));
        part.replace(' ', "").parse().unwrap()
    };
    assert_eq!(part("host "), number(&result, "/log/host_blocks_logged"));
    assert_eq!(part("log cleaning "), number(&result, "/log/blocks_cleaned"));
    let sum: f64 = parts
        .split(" + ")
        .map(|part| part.trim_start_matches(|c: char| !c.is_ascii_digit()).replace(' ', "").parse::<f64>().unwrap())
        .sum();
    assert_eq!(sum, number(&result, "/pages_programmed_total"));
}

#[test]
fn the_log_of_fast_keeps_to_its_dram_with_and_without_a_buffer() {
    let with = |dram: &str| {
        let spec = ["synth:uniform,pages=64Ki,writes=100k", "--ftl", "fast", "--op", "20%"];
        run(&[&spec[..], &["--dram", dram, "--buffer", "none"]].concat())
    };
    let (small, large) = (with("16KiB"), with("1MiB"));
    assert!(number(&small, "/dram_bytes") <= 16384.0, "{}", small["dram_parts_bytes"]);
    assert!(number(&small, "/write_amplification") > number(&large, "/write_amplification"));
    let merged = number(&small, "/pages_programmed/merge");
    assert!(merged > 0.0);
    assert_eq!(number(&small, "/gc_pages_copied"), merged);
}

#[test]
fn a_printed_specification_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--set", "gc.victim=d_choices:d=5", "--op", "12%", "--placement", "host_gc"];
    let printed = isotherm(&[&["run", "--print-config"], &arguments[..]].concat());
    let file = folder.path().join("device.toml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let from_file = run(&[ZIPF, "--spec", file.to_str().unwrap()]);
    let from_options = run(&[&[ZIPF], &arguments[..]].concat());
    assert_eq!(from_file["spec"], from_options["spec"]);
    assert_eq!(from_file["pages_programmed"], from_options["pages_programmed"]);
}

#[test]
fn a_printed_specification_names_every_key_with_its_range_and_origin_and_prints_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let device = file("device.toml", b"[gc]\nage = \"sealed\"\n");
    let arguments =
        ["--spec", &device, "--set", "gc.victim=fifo", "--log", "sfs", "--below", "dftl,page", "--op", "150%"];
    let text = |arguments: &[&str]| String::from_utf8(isotherm(arguments).stdout).unwrap();
    let printed = text(&[&["compare", "--print-config"], &arguments[..]].concat());
    let comment = |key: &str| {
        let at =
            printed.lines().position(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key}: {printed}"));
        printed.lines().nth(at - 1).unwrap().to_owned()
    };
    for (key, expected) in [
        ("age = \"sealed\"", "device.toml"),
        ("victim = \"fifo\"", "from --set"),
        ("over_provisioning = \"150%\"", "from --op"),
        ("below = \"dftl\"", "from --below, the first of 2 values"),
        ("queue_depth = 32", "Takes 1..=65536 requests; the default"),
        ("# floor =", "not given: the streams"),
    ] {
        assert!(comment(key).contains(expected), "{key}: {}", comment(key));
    }
    // The values are the same when they are read again; the comments then name the file.
    let values = |text: &str| text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let again = text(&["run", "--print-config", "--spec", &file("printed.toml", printed.as_bytes())]);
    assert_eq!(values(&again), values(&printed));
    let keys: Value = serde_json::from_str(&text(&["list", "parameters", "--json"])).unwrap();
    let of_device = |name: &&str| !name.starts_with("replay.");
    for name in keys.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).filter(of_device) {
        let field = format!("{} =", name.split('.').nth(1).unwrap());
        assert!(printed.lines().any(|line| line.trim_start_matches("# ").starts_with(&field)), "{name}");
    }
}

/// What a preset stands for is printed where it is in force, and nothing that was given over it.
#[test]
fn a_printed_specification_shows_the_latencies_of_its_preset() {
    let printed = isotherm(&["run", "--print-config", "--timing", "tlc", "--set", "timing.read_ns=70000"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    for line in ["read_ns = 70000", "# program_ns = 2926500", "# erase_ns = 3000000", "# transfer_ns = 52400"] {
        assert!(printed.lines().any(|found| found == line), "{line}: {printed}");
    }
}

/// Latencies are of pages of a size, and a device may have others.
#[test]
fn a_preset_of_other_pages_than_the_devices_is_told() {
    let said = |more: &[&str]| {
        let output = isotherm(&[&["run", "synth:uniform,pages=8Ki,writes=20k"], more].concat());
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let tlc = said(&["--timing", "tlc"]);
    assert!(tlc.contains("timing tlc was measured on pages of 16KiB, and the device's have 4KiB"), "{tlc}");
    for plain in [&[][..], &["--timing", "tlc", "--page-size", "16KiB"], &["--timing", "epoch"]] {
        assert!(!said(plain).contains("was measured on pages"), "{plain:?}");
    }
}

#[test]
fn manual_pages_name_options_and_keys() {
    let page = |arguments: &[&str]| String::from_utf8(isotherm(arguments).stdout).unwrap();
    for arguments in [&["man"][..], &["man", "run"]] {
        let text = page(arguments);
        assert!(text.contains(".TH ") && text.contains("\\fBtiming.queue_depth\\fR"), "{text}");
    }
    assert!(page(&["man", "run"]).contains("print\\-config"));
    assert!(!page(&["man", "report"]).contains("timing.queue_depth"));
}

#[test]
fn every_registry_is_listed_with_its_parameters() {
    for (kind, name) in [
        ("placements", "offline"),
        ("victims", "cost_benefit"),
        ("ftls", "page"),
        ("formats", "csv"),
        ("patterns", "zipf"),
        ("timings", "epoch"),
        ("parameters", "device.over_provisioning"),
    ] {
        let output = isotherm(&["list", kind, "--json"]);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = rows.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        assert!(row["summary"].as_str().is_some_and(|s| s.len() > 10), "{row}");
        let text = String::from_utf8(isotherm(&["list", kind]).stdout).unwrap();
        assert!(text.contains(name));
    }
}

/// Checks that the schema knows every key of results. Whether they meet it is checked by `python/tests/test_schemas.py`.
pub fn known_to_the_schema(results: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/results-v1.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    known_to(results, &schema, &schema, "");
}

/// Checks that every key of `value` stands in `schema`.
fn known_to(value: &Value, schema: &Value, root: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).expect("references resolve"),
        None => schema,
    };
    match value {
        Value::Object(object) => {
            let Some(properties) = schema["properties"].as_object() else { return };
            for (key, value) in object {
                let known = properties.get(key).unwrap_or_else(|| panic!("the schema does not know {at}/{key}"));
                known_to(value, known, root, &format!("{at}/{key}"));
            }
        }
        Value::Array(list) => list.iter().for_each(|value| known_to(value, &schema["items"], root, at)),
        _ => {}
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for verb in [&["hotness", ZIPF][..], &["hotness", ZIPF, "--json"], &["run", ZIPF], &["list", "victims"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .args(verb)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn hotness_writes_its_windows_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("windows.csv");
    let judged = |path: &Path| {
        isotherm(&["hotness", ZIPF, "--scheme", "mbf", "--window", "100000", "--export-csv", path.to_str().unwrap()])
    };
    assert_eq!(judged(&csv).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 3, "a header and two windows");
    let output = judged(&csv.join("below"));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("windows.csv/below") && error.contains("permissions"), "{error}");
    assert!(output.stdout.is_empty(), "what could not be written is not shown either");
}

/// The checked-in experiment on hot data identification over two small workloads, so that every scheme of every sweep runs.
#[test]
fn a_sweep_measures_hot_data_identification() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let whole = std::fs::read_to_string(root.join("experiments/mbf.toml")).unwrap();
    let (head, rest) = whole.split_once("[[traces]]").unwrap();
    let (_, sweeps) = rest.split_once("[[hotness.sweeps]]").unwrap();
    let (sweeps, cost) = sweeps.split_once("[hotness.cost]").unwrap();
    let cost = cost.replace("prxy_0-head-4KiB", "zipf").replace("rounds = 5", "rounds = 2");
    let cost = cost.split("[[hotness.published]]").next().unwrap();
    let published = "[[hotness.published]]\nfigure = \"12\"\nclaim = \"a check\"\npublished_trace = \"MSR\"\ntrace = \"zipf\"\n\
        measure = \"ns_per_check\"\nscheme = \"mbf\"\nagainst = \"mhf\"\nchange = -0.06\ndifference = \"none\"\n\
        [[hotness.published]]\nfigure = \"13\"\nclaim = \"a curve\"\npublished_trace = \"MSR\"\ntrace = \"zipf\"\n\
        measure = \"hot_ratio\"\nscheme = \"mbf\"\nagainst = \"mhf\"\ndifference = \"none\"\n";
    let traces = "[[traces]]\nlabel = \"zipf\"\nsource = \"synth:zipf,theta=1.2,pages=16Ki,writes=20k\"\n\
        summary = \"a small Zipf\"\nset = [\"hotness.page_size=8KiB\"]\n\
        [[traces]]\nlabel = \"absent\"\nsource = \"$ISOTHERM_NOBODY_SETS/a.csv\"\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let text = format!("{head}{traces}[[hotness.sweeps]]{sweeps}[hotness.cost]{cost}{published}");
    std::fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    let sweep = || {
        let output = isotherm(&["sweep", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--resume"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let results: Value = serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
        (String::from_utf8(output.stdout).unwrap(), results)
    };
    let (said, results) = sweep();
    assert!(said.contains("4 points, 4 to run") && said.contains("$ISOTHERM_NOBODY_SETS"), "{said}");
    let points = results["hotness"].as_array().unwrap();
    let labels: Vec<_> = points.iter().map(|point| point["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["zipf, wdac", "zipf, dam", "zipf, oracle:window=4096", "zipf, wdac, costs"]);
    assert_eq!(points[0]["spec"]["page_size"], "8KiB");
    let schemes = |point: &Value| point["schemes"].as_array().unwrap().clone();
    assert_eq!(schemes(&points[1]).len(), 7);
    assert!(schemes(&points[0]).len() > 40, "those of the sweeps are measured too");
    let of = |name: &str| schemes(&points[0]).into_iter().find(|scheme| scheme["name"] == name).unwrap();
    assert_eq!(number(&of("wdac"), "/false_identification_rate"), 0.0, "the reference agrees with itself");
    assert!(number(&of("wdac:window=512"), "/hot_ratio") < number(&of("wdac:window=16384"), "/hot_ratio"));
    assert!(of("mbf")["simulator_ns_per_check"].is_null(), "times belong to the measurement of costs");
    assert!(number(&points[3], "/schemes/0/simulator_ns_per_check") > 0.0);
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    for text in [
        "Figure 6",
        "Figures 8 and 10",
        "Figure 12",
        "Figure 13",
        "Figure 15",
        "a small Zipf",
        "NOBODY_SETS",
        "no number",
    ] {
        assert!(report.contains(text), "{text}");
    }
    let rows = std::fs::read_to_string(out.join("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + points.iter().map(|point| schemes(point).len()).sum::<usize>());

    // Nothing is measured twice, and a lost point alone is measured again, with the same numbers.
    let (said, again) = sweep();
    assert!(said.contains("4 points, 0 to run"), "{said}");
    assert_eq!(again, results);
    let first = std::fs::read_dir(out.join("points")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(first).unwrap();
    let (said, again) = sweep();
    assert!(said.contains("4 points, 1 to run"), "{said}");
    let counted = |results: &Value| {
        let mut results = results.clone();
        forget_times(&mut results);
        results
    };
    assert_eq!(counted(&again), counted(&results));
    known_to_the_schema(&results);
}

/// Takes out what differs from run to run.
fn forget_times(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, _| !key.starts_with("simulator_"));
            object.values_mut().for_each(forget_times);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_times),
        _ => {}
    }
}

#[test]
fn every_verb_has_a_page_and_shells_complete_them() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(isotherm(&["man", "--all", pages.to_str().unwrap()]).status.code(), Some(0));
    for page in
        ["isotherm", "isotherm-run", "isotherm-drive-serve", "isotherm-sfs-mount", "isotherm-diff", "isotherm-advise"]
    {
        let text =
            std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".SH NAME") && text.contains(".SH OPTIONS"), "{page}");
    }
    let one = isotherm(&["man", "drive", "serve"]);
    assert_eq!(
        String::from_utf8(one.stdout).unwrap(),
        std::fs::read_to_string(pages.join("isotherm-drive-serve.1")).unwrap()
    );
    for shell in ["bash", "zsh", "fish"] {
        let output = isotherm(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("compare") && script.contains("advise"), "{shell}");
    }
    if let Ok(bash) = Command::new("bash").args(["-n", "/dev/stdin"]).stdin(std::process::Stdio::piped()).spawn() {
        let mut bash = bash;
        let script = isotherm(&["completions", "bash"]).stdout;
        std::io::Write::write_all(&mut bash.stdin.take().unwrap(), &script).unwrap();
        assert!(bash.wait().unwrap().success(), "bash cannot read its completions");
    }
}

#[test]
fn classes_of_drives_are_listed_with_where_their_numbers_are_from() {
    let listed: Value = serde_json::from_slice(&isotherm(&["list", "drive-classes", "--json"]).stdout).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), isotherm_advise::DRIVES.len());
    for (class, drive) in listed.iter().zip(isotherm_advise::DRIVES) {
        assert_eq!(class["name"], drive.name);
        let cycles = class["P/E cycles"].as_str().unwrap();
        assert!(
            cycles.ends_with(drive.pe_cycles_source) && cycles.len() > drive.pe_cycles_source.len() + 2,
            "{cycles}"
        );
    }
    let qlc = listed.iter().find(|class| class["name"] == "client-qlc-1t").unwrap();
    assert!(qlc["flash"].as_str().unwrap().contains("10.0 %"), "{qlc}");
    assert!(qlc["P/E cycles"].as_str().unwrap().starts_with("1 000; "), "{qlc}");
    let said = String::from_utf8(isotherm(&["list", "drive-classes"]).stdout).unwrap();
    assert!(said.contains("tlc-1.6t") && said.contains("promised: 3 drive writes a day"), "{said}");
}

#[test]
fn doctor_tells_what_there_is_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = isotherm(&["doctor", path]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for word in ["cores", "FUSE", "hole punching", "O_DIRECT", "file locks"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let json: Value = serde_json::from_slice(&isotherm(&["doctor", path, "--json"]).stdout).unwrap();
    let writable = json["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "writable").unwrap();
    assert_eq!(writable["is_there"], true);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let output = isotherm(&["doctor", "/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere"));
}

#[test]
fn a_bare_list_tells_what_can_be_listed() {
    let output = isotherm(&["list"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("isotherm list placements\n    Which stream a page goes to\n"), "{said}");
    let json: Value = serde_json::from_slice(&isotherm(&["list", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["name"], "placements");
}

/// The discard of mkfs that was dropped is in a result, since `run` has no summary of the trace there.
#[test]
fn a_result_says_what_was_dropped_at_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("head.csv");
    let rows: String = (1..9000u64).map(|i| format!("{i},W,{},4096\n", (i * i % 997) << 12)).collect();
    std::fs::write(&file, format!("ts_ns,op,offset,length\n0,D,0,8388608\n{rows}")).unwrap();
    let workload = |more: &[&str]| run(&[&[file.to_str().unwrap()], more].concat())["workload"].clone();
    let dropped = workload(&[]);
    assert_eq!(
        (&dropped["leading_trims_dropped"], &dropped["leading_trimmed_bytes_dropped"]),
        (&1.into(), &8388608.into())
    );
    assert_eq!(workload(&["--keep-leading-trim"])["leading_trims_dropped"], 0);
}

#[test]
fn a_run_with_an_endurance_says_what_it_used_of_it() {
    let said = |more: &[&str]| {
        let output = isotherm(&[&["run", "synth:uniform,pages=4Ki,writes=40k"], more].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let used = said(&["--set", "device.endurance=1000"]);
    assert!(used.contains("\n  used by this run   ") && used.contains("percent used = 100 x mean erases"), "{used}");
    let without = said(&[]);
    assert!(!without.contains("used by this run") && !without.contains("percent used"), "{without}");
}

/// The first example that anyone meets gives figures of a full drive.
#[test]
fn the_first_examples_replay_on_a_full_drive_more_than_once() {
    for words in [&["--help"][..], &["compare", "--help"], &["run", "--help"]] {
        let help = String::from_utf8(isotherm(words).stdout).unwrap();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = help.find("isotherm compare traces").or(help.find("isotherm run traces")).expect("an example");
        let example = help[first..].split(" isotherm ").next().unwrap();
        assert!(example.contains("--address compact --precondition trace"), "{words:?}: {example}");
    }
}
