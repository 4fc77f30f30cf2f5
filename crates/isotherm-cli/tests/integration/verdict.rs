//! What a verdict advises helps: following it changes what it complains about.

use crate::command::{isotherm, run};
use serde_json::Value;

/// What the verdict says: why it is not valid, why it is light, and that it is the first replay.
fn complaints(result: &Value) -> String {
    let verdict = &result["verdict"];
    format!("{} {} {}", verdict["reasons"], verdict["light"], verdict["first_replay"])
}

/// The run with `arguments` complains about `problem` and advises each of `advice`; with it, it complains no more.
fn helps(arguments: &[&str], problem: &str, advice: &[&[&str]]) {
    let before = complaints(&run(arguments));
    assert!(before.contains(problem), "{before}");
    for followed in advice {
        assert!(before.contains(followed[0]), "{before} does not advise {followed:?}");
        let after = complaints(&run(&[arguments, followed].concat()));
        assert!(!after.contains(problem), "{followed:?} changes nothing: {after}");
    }
}

#[test]
fn a_run_that_is_too_short_is_repeated() {
    let short = ["synth:uniform,pages=16Ki,writes=20k"];
    helps(&short, "too short", &[&["--repeat", "4"], &["--precondition", "random"]]);
}

#[test]
fn a_device_that_never_cleans_is_filled_or_made_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let sparse = folder.path().join("sparse.csv");
    let rows: String = (0..20_000u64).map(|i| format!("{i},W,{},4096\n", (i * 7919 % 1000) << 18)).collect();
    std::fs::write(&sparse, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    let sparse = [sparse.to_str().unwrap()];
    helps(&sparse, "never ran", &[&["--address", "compact"], &["--fill", "90%"]]);
    helps(&sparse, "cleaning was cheap", &[&["--address", "compact"], &["--fill", "90%"]]);
}

#[test]
fn a_device_that_was_filling_is_preconditioned_or_the_trace_is_repeated() {
    let filling = ["synth:uniform,pages=16Ki,writes=40k"];
    assert!(complaints(&run(&filling)).contains("--repeat 8"), "what is tried is what is advised");
    helps(&filling, "not steady", &[&["--repeat", "8"], &["--precondition", "trace"]]);
}

/// What such a placement does later cannot be seen in the window; a placement that does not learn is told nothing.
#[test]
fn a_placement_that_may_still_learn_sees_the_workload_first() {
    let told = |placement: &str, precondition: &str| {
        let pattern = "synth:hotcold,hot=0.5,hot_writes=0.95,pages=16Ki,writes=32Ki";
        let says =
            complaints(&run(&[pattern, "--op", "28%", "--placement", placement, "--precondition", precondition]));
        assert!(!says.contains("early") || says.contains("--precondition trace"), "{says}");
        says.contains("early for a placement that learns")
    };
    assert!(told("multilog", "random"));
    assert!(!told("multilog", "trace"), "what is advised is done");
    assert!(!told("host_gc", "random"));
}

/// What preconditioning left weighs on the first replay alone, and no advice makes the next run count it in again.
#[test]
fn a_first_replay_unlike_the_others_is_left_out_by_what_is_advised() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sqlite-wal-ext4.csv.zst");
    for (precondition, repeat) in [("sequential", "2"), ("random", "2")] {
        let common = [trace, "--address", "compact"];
        let before = complaints(&run(&[&common[..], &["--precondition", precondition, "--repeat", repeat]].concat()));
        assert!(before.contains("not steady"), "{before}");
        let advised = options(&before);
        assert!(matches!(advised[..], [["--precondition", "trace"], ["--repeat", _], ..]), "{before}");
        for followed in [advised[0], advised[1]] {
            let kept = if followed[0] == "--repeat" { ["--precondition", precondition] } else { ["--repeat", repeat] };
            let after = complaints(&run(&[&common[..], &kept, &followed].concat()));
            assert!(!after.contains("not steady"), "{precondition}, {repeat} times, then {followed:?}: {after}");
        }
    }
}

/// Nor does an even number of replays count it in where an odd one does not: what later ones cost is the same, and a mean that the first
/// one changes says so.
#[test]
fn replays_of_a_full_device_agree_however_many_there_are() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sqlite-wal-ext4.csv.zst");
    for repeat in ["3", "4", "5", "6"] {
        let result = run(&[trace, "--address", "compact", "--precondition", "sequential", "--repeat", repeat]);
        let replays: Vec<f64> =
            serde_json::from_value(result["verdict"]["write_amplification_replays"].clone()).unwrap();
        let later = replays[1..].iter().sum::<f64>() / (replays.len() - 1) as f64;
        assert!(later > 1.2 * replays[0], "the first replay is unlike the others: {replays:?}");
        let counts = (1.0 - result["write_amplification"].as_f64().unwrap() / later).abs() > 0.05;
        let verdict = &result["verdict"];
        assert_eq!(verdict["valid"], true, "{repeat} replays: {verdict}");
        assert_eq!(verdict["first_replay"].is_string(), counts, "{repeat} replays: {verdict}");
    }
}

#[test]
fn pages_that_are_only_read_are_written_by_preconditioning() {
    let folder = tempfile::tempdir().unwrap();
    let reads = folder.path().join("reads.csv");
    let row = |i: u64| match i % 2 {
        0 => format!("{i},W,{},4096\n", (i * 7919 % 1000) << 12),
        _ => format!("{i},R,{},4096\n", (1000 + i * 7919 % 1000) << 12),
    };
    let rows: String = (0..20_000).map(row).collect();
    std::fs::write(&reads, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    helps(
        &[reads.to_str().unwrap(), "--address", "compact"],
        "cleaning was cheap",
        &[&["--precondition", "sequential"]],
    );
}

/// A capture that begins with the discard of the whole device gives what it gives without it, whatever came before.
#[test]
fn the_discard_at_the_head_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, head: &str| {
        let path = folder.path().join(name);
        let rows: String = (1..60_000u64).map(|i| format!("{i},W,{},4096\n", (i * i % 7919) << 12)).collect();
        std::fs::write(&path, format!("ts_ns,op,offset,length\n{head}{rows}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (with, without) = (file("with.csv", "0,D,0,1073741824\n"), file("without.csv", ""));
    let wa = |trace: &str, more: &[&str]| {
        run(&[&[trace, "--address", "compact"], more].concat())["write_amplification"].clone()
    };
    for precondition in ["none", "sequential", "random", "trace"] {
        let more = ["--precondition", precondition];
        assert_eq!(wa(&with, &more), wa(&without, &more), "{precondition}");
    }
    let kept = wa(&with, &["--precondition", "random", "--keep-leading-trim"]);
    assert!(kept.as_f64().unwrap() < 0.98 * wa(&with, &["--precondition", "random"]).as_f64().unwrap());
}

#[test]
fn a_report_says_which_runs_are_light() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let arguments = ["compare", "synth:uniform,pages=16Ki,writes=300k", "--placement", "single", "--out", out];
    let report = |more: &[&str]| {
        let output = isotherm(&[&arguments, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(folder.path().join("report.html")).unwrap()
    };
    let light = "light: at most 50 % of the logical pages held data";
    assert!(report(&["--logical-size", "128MiB"]).contains(light));
    assert!(!report(&["--logical-size", "128MiB", "--fill", "90%"]).contains(light));
    // Beside a run that is not valid, too.
    let both = report(&["--logical-size", "128MiB", "--op", "7%,60%", "--measure-last", "9000"]);
    assert!(both.contains("not valid: do not judge") && both.contains(light), "{both}");
}

/// A trace that keeps about half of what it touches: each write is trimmed after some thousand more.
fn trimming(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("trimming.csv");
    let page = |i: u64| (i * i % 7919) << 12;
    let row = |i: u64| match i.checked_sub(4000) {
        Some(old) if i % 2 == 1 => format!("{i},W,{},4096\n{i},D,{},4096\n", page(i), page(old)),
        _ => format!("{i},W,{},4096\n", page(i)),
    };
    let rows: String = (0..30_000).map(row).collect();
    std::fs::write(&path, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The options that a text names, each with its value.
fn options(text: &str) -> Vec<[&str; 2]> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of = |at: usize| Some([words[at], words.get(at + 1)?.trim_end_matches([',', ';', '"', ']'])]);
    (0..words.len()).filter(|at| words[*at].starts_with("--")).filter_map(of).collect()
}

/// Advice on what is too empty is computed: it names nothing that is in force, and what it names is enough.
#[test]
fn a_light_device_is_told_a_size_that_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trimming(&folder);
    let cases: [&[[&str; 2]]; 6] = [
        &[],
        &[["--fill", "90%"], ["--logical-size", "40MiB"]],
        &[["--address", "compact"]],
        &[["--address", "compact"], ["--precondition", "sequential"]],
        &[["--address", "compact"], ["--precondition", "trace"]],
        &[["--address", "compact"], ["--logical-size", "40MiB"], ["--fill", "90%"]],
    ];
    for case in cases {
        let run = |options: &[[&str; 2]]| {
            let words: Vec<&str> = [trace.as_str(), "--repeat", "4"].into_iter().chain(options.concat()).collect();
            run(&words)["verdict"].clone()
        };
        let before = run(case);
        let light = before["light"].as_str().unwrap_or_else(|| panic!("{case:?} is not light: {before}"));
        let advised = options(light);
        assert!(
            !advised.is_empty()
                && advised.iter().all(|option| !case.contains(option)
                    || option[0] == "--fill" && advised.iter().any(|other| other[0] == "--logical-size")),
            "{case:?}: {light}"
        );
        let kept = case.iter().filter(|[name, _]| advised.iter().all(|[new, _]| new != name));
        let followed: Vec<[&str; 2]> = kept.chain(&advised).copied().collect();
        let after = run(&followed);
        assert!(after["light"].is_null(), "{case:?}, then {followed:?}: {after}");
    }
    // The peak alone would call it full: every page was written before.
    let full = run(&[&trace, "--repeat", "4", "--address", "compact", "--precondition", "sequential"]);
    assert_eq!(full["verdict"]["live_share_peak"], 1.0);
    let said = isotherm(&["run", &trace, "--repeat", "4", "--address", "compact", "--precondition", "sequential"]);
    let said = String::from_utf8(said.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("100 % live at the peak, ") && said.contains(" % on the mean"), "{said}");
}

/// A trace of a file system that keeps a third of its 32 MiB, and trims all the rest now and then, whoever wrote it.
fn fstrim(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("fstrim.csv");
    let row = |i: u64| match i % 5000 {
        0 => format!("{i},W,33550336,4096\n{i},D,12582912,20971520\n"),
        _ => format!("{i},W,{},4096\n", (i * i % 2777) << 12),
    };
    let rows: String = (0..40_000).map(row).collect();
    std::fs::write(&path, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Filler that the trace trims is not counted on, and the first replay alone shows what later ones keep.
#[test]
fn a_trace_that_trims_everything_else_is_told_a_size_that_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    for trace in [fstrim(&folder), trimming(&folder)] {
        for given in [&[][..], &["--precondition", "trace"], &["--fill", "90%"], &["--address", "compact"]] {
            let before = run(&[&[trace.as_str()], given].concat())["verdict"].clone();
            let Some(light) = before["light"].as_str() else { continue };
            let advised = options(light);
            let kept = given.chunks(2).filter(|option| advised.iter().all(|[new, _]| *new != option[0]));
            let followed: Vec<&str> =
                kept.flatten().copied().chain(advised.iter().flatten().copied()).chain(["--repeat", "6"]).collect();
            let after = run(&[&[trace.as_str()], followed.as_slice()].concat())["verdict"].clone();
            assert!(after["light"].is_null(), "{given:?}, {light}, then {followed:?}: {after}");
        }
        assert!(run(&[&trace])["verdict"]["light"].is_string());
    }
}

/// What is written while an empty device fills up makes a mean lower than what comes later, and the verdict says so.
#[test]
fn a_mean_that_counts_the_filling_in_is_never_just_valid() {
    let folder = tempfile::tempdir().unwrap();
    let skewed = folder.path().join("skewed.csv");
    let page = |i: u64| {
        let drawn = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 50;
        (drawn * drawn) >> 14
    };
    let rows: String = (0..60_000).map(|i| format!("{i},W,{},4096\n", page(i) << 12)).collect();
    std::fs::write(&skewed, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    let said = |more: &[&str]| {
        let result = run(&[&[skewed.to_str().unwrap(), "--address", "compact"], more].concat());
        assert_eq!(result["verdict"]["valid"], true, "{}", result["verdict"]);
        (result["verdict"]["first_replay"].clone(), result["write_amplification"].as_f64().unwrap())
    };
    let (none, steady) = said(&["--precondition", "trace"]);
    assert!(none.is_null(), "{none}");
    for repeat in ["3", "4"] {
        let (caveat, mean) = said(&["--repeat", repeat]);
        assert!(mean < 0.95 * steady);
        let caveat = caveat.as_str().unwrap();
        let later: f64 = caveat.split(" with it and ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((later / steady - 1.0).abs() < 0.02, "{later} beside {steady}: {caveat}");
    }
    // One pass over a pattern fills the device too.
    let once = run(&["synth:zipf,pages=16Ki,writes=300k"]);
    assert!(once["verdict"]["first_replay"].as_str().unwrap().contains("second half"), "{}", once["verdict"]);
    // So does what was written before in another order than the workload's.
    let hot_cold = "synth:hotcold,pages=64Ki,writes=150k,hot=0.05,hot_writes=0.95";
    let ours = ["--precondition", "random", "--placement", "isotherm", "--victim", "isotherm"];
    let begun = run(&[&[hot_cold], &ours[..]].concat());
    assert_eq!(begun["verdict"]["valid"], true, "{}", begun["verdict"]);
    assert!(begun["verdict"]["first_replay"].as_str().unwrap().contains("the beginning"), "{}", begun["verdict"]);
    // The more replays, the less the first one counts.
    assert!(run(&["synth:uniform,pages=4Ki,writes=40k", "--repeat", "30"])["verdict"]["first_replay"].is_null());
}

/// A device that is worn out is no steadier after more of what wore it out.
#[test]
fn nothing_is_advised_to_who_wore_the_device_out() {
    let worn = isotherm(&["run", "synth:zipf,pages=8Ki,writes=60k", "--set", "device.endurance=3"]);
    let said = String::from_utf8(worn.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("stopped before the trace ended") && said.contains("not steady"), "{said}");
    assert!(!said.contains("--repeat"), "{said}");
}

/// How full a log is does not depend on what stands below it.
#[test]
fn a_log_is_as_full_over_a_drive_as_over_nothing() {
    let log = ["synth:zipf,pages=8Ki,writes=60k", "--log", "sfs:segment=256KiB", "--utilisation", "70%"];
    let live = |more: &[&str]| {
        let result = run(&[&log, more].concat());
        ["live_share_peak", "live_share_mean"].map(|key| result["verdict"][key].as_f64().unwrap())
    };
    assert_eq!(live(&["--below", "page"]), live(&[]));
}

/// A trace that writes at random and ends in order: its quarters are not alike, and its replays are.
fn phases(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("phases.csv");
    let page = |i: u64| if i < 45_000 { i * i % 7919 } else { i % 7919 };
    let rows: String = (0..60_000u64).map(|i| format!("{i},W,{},4096\n", page(i) << 12)).collect();
    std::fs::write(&path, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_replay_after_replays_is_compared_with_them_and_not_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let trace = phases(&folder);
    let verdict = |more: &[&str]| run(&[&[trace.as_str(), "--address", "compact"], more].concat())["verdict"].clone();
    let once = verdict(&[]);
    assert!(once["reasons"].to_string().contains("third quarter"), "its quarters differ: {once}");
    let after = verdict(&["--precondition", "trace"]);
    assert_eq!((&after["valid"], &after["first_replay"]), (&Value::from(true), &Value::Null), "{after}");
    // A window that is a part of a replay, too.
    let part = verdict(&["--repeat", "4", "--measure-last", "50000"]);
    assert_eq!(part["valid"], true, "{part}");
}

#[test]
fn the_first_replay_of_an_empty_device_is_never_just_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("even.csv");
    let rows: String = (0..90_000u64).map(|i| format!("{i},W,{},4096\n", (i * i % 7919) << 12)).collect();
    std::fs::write(&path, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    let trace = path.to_str().unwrap();
    let verdict = |more: &[&str]| run(&[&[trace, "--address", "compact"], more].concat())["verdict"].clone();
    let once = verdict(&[]);
    assert_eq!(once["valid"], true, "{once}");
    assert!(once["first_replay"].as_str().unwrap().contains("--precondition trace"), "{once}");
    // Of three replays the first counts little here.
    for more in [["--repeat", "3"], ["--precondition", "trace"], ["--precondition", "sequential"]] {
        assert!(verdict(&more)["first_replay"].is_null(), "{more:?}");
    }
    assert!(run(&["synth:uniform,pages=4Ki,writes=2M"])["verdict"]["first_replay"].is_null());
    let said = isotherm(&["run", trace, "--address", "compact"]);
    let said = String::from_utf8(said.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("valid, but the first replay of an empty device ("), "{said}");
    assert!(said.starts_with("csv trace: 90.0 k requests"), "the line about the trace comes first: {said}");
}

/// What is refused is told what would be accepted, and nothing that is in force.
#[test]
fn a_drive_that_the_trace_does_not_fit_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let writes: String = (0..2000u64).map(|i| format!("{i},W,{},4096\n", i << 12)).collect();
    let (writes, trims) = (file("writes.csv", &writes), file("trims.csv", "1,D,0,4096\n2,D,8192,4096\n"));
    let said = |arguments: &[&str]| {
        let refused = isotherm(&[&["run"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2));
        String::from_utf8(refused.stderr).unwrap()
    };
    let short = [writes.as_str(), "--logical-size", "4MiB"];
    let compact = said(&[&short[..], &["--address", "compact"]].concat());
    assert!(
        said(&short).contains("wrap or compact") && compact.contains("wrap") && !compact.contains("or compact"),
        "{compact}"
    );
    // No page of a pattern can be left out, so that compacting does not help.
    let pattern = said(&["synth:uniform,pages=2Ki,writes=20k", "--logical-size", "4MiB", "--measure-last", "1k"]);
    assert!(pattern.contains("replay.address (--address) wrap") && !pattern.contains("compact"), "{pattern}");
    for more in [&[][..], &["--address", "compact"]] {
        let nothing = said(&[&[trims.as_str()], more].concat());
        assert!(nothing.contains("reads and writes nothing"), "{nothing}");
    }
}

/// A small drive has what whole blocks make of the spare space that was asked for, and that is said.
#[test]
fn spare_space_that_whole_blocks_do_not_make_is_told() {
    let said = |arguments: &[&str]| {
        let output = isotherm(&[arguments, &["synth:uniform,pages=1Ki,writes=20k"]].concat());
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let told = "(3.00 % was asked for, which whole blocks of 64 pages do not make)";
    assert!(
        said(&["run", "--op", "3%"])
            .contains(&format!("over-provisioning (T-U)/U 6.25 %, spare (T-U)/T 5.88 % {told}"))
    );
    assert!(said(&["compare", "--placement", "single", "--op", "3%", "--out", out]).contains(told));
    assert!(!said(&["run", "--op", "12.5%"]).contains("asked for") && !said(&["run"]).contains("7.00 % was"));
}
