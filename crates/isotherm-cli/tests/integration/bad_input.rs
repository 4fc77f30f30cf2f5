//! Wrong input: a clear error that names the place and the fix, exit code 2, never a panic.

use std::path::PathBuf;
use std::process::Command;

/// Runs the command, which must fail with exit code 2 and say all of `expected`.
#[track_caller]
fn refused(arguments: &[&str], expected: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_isotherm")).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(!error.contains("panicked"), "{arguments:?}: {error}");
    for text in expected {
        assert!(error.contains(text), "{arguments:?} does not say \"{text}\": {error}");
    }
    // A line about the trace may come before what goes wrong; a result may not.
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(arguments[0] == "compare" || !printed.contains("verdict"), "{arguments:?} printed a result: {printed}");
    assert!(printed.is_empty() || ["run", "compare"].contains(&arguments[0]), "{arguments:?}: {printed}");
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

const SYNTH: &str = "synth:uniform,pages=4Ki,writes=20k";
const HEADER: &str = "ts_ns,op,offset,length\n";

/// A limit of the process is what the system has for it: the device is refused before its tables are allocated.
#[cfg(target_os = "linux")]
#[test]
fn a_device_beyond_the_limit_of_the_process() {
    let isotherm = env!("CARGO_BIN_EXE_isotherm");
    let limited = |arguments: &str| {
        let command = format!("ulimit -v 1000000; exec {isotherm} {arguments}");
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new("sh").current_dir(folder.path()).args(["-c", &command]).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), out.into_owned(), err.into_owned())
    };
    let (status, _, error) = limited("run synth:uniform,pages=256Mi,writes=1M");
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("the device needs") && error.contains("available"), "{error}");
    let traces = "synth:uniform,pages=256Mi,writes=1M synth:uniform,pages=4Ki,writes=20k";
    let (status, out, error) = limited(&format!("compare {traces} --placement single --victim greedy"));
    assert_eq!(status, Some(0), "{error}");
    assert!(error.contains("skipped") && error.contains("the device needs"), "{error}");
    assert!(out.contains("pages=4Ki"), "{out}");
}

#[test]
fn traces() {
    let folder = Folder::new();
    refused(&["run", "/nowhere/trace.csv", "--json"], &["/nowhere/trace.csv"]);
    let empty = folder.file("empty.csv", b"");
    refused(&["run", &empty], &["empty.csv", "empty"]);
    let header_alone = folder.file("header.csv", HEADER.as_bytes());
    refused(&["run", &header_alone], &["header.csv"]);
    let magic = folder.file("trace.csv.zst", b"this is not zstd at all, whatever its name says\n");
    refused(&["run", &magic], &["trace.csv.zst", "magic"]);
    let noise = folder.file("noise.bin", &[0x13, 0x37, 0, 1, 2, 3, 255, 254, 9, 8, 7]);
    refused(&["run", &noise], &["noise.bin"]);
    let good = format!("{HEADER}0,W,0,4096\n5,W,4096,4096\n");
    let backwards = folder.file("backwards.csv", format!("{good}3,R,0,4096\n").as_bytes());
    refused(&["run", &backwards], &["backwards.csv", "line 4"]);
    let negative = folder.file("negative.csv", format!("{good}9,W,-4096,4096\n").as_bytes());
    refused(&["run", &negative], &["negative.csv", "line 4", "column"]);
    let first = folder.file("first.csv", b"0,W,0,-4096\n");
    refused(&["run", &first], &["first.csv", "line 1", "length \"-4096\" is negative"]);
    let absurd = folder.file("absurd.csv", format!("{good}9,W,0,99999999999999999\n").as_bytes());
    refused(&["run", &absurd], &["absurd.csv", "line 4"]);
}

#[test]
fn devices() {
    for without in [["--ftl", "page"], ["--ftl", "fast"], ["--log", "sfs"]] {
        let arguments = [&["run", SYNTH, "--cache-bytes", "1MiB"], &without[..]].concat();
        refused(&arguments, &["--cache-bytes", "no cache", "dftl or asa"]);
    }
    let twice = ["run", SYNTH, "--op", "7%", "--set", "device.over_provisioning=10%"];
    refused(&twice, &["device.over_provisioning (--op)", "7", "10%", "--set", "give one"]);
    for (given, expected) in [
        (&["--op", "7%", "--set", "device.spare=7%"][..], ["by --op", "by --set"]),
        (&["--set", "device.spare=7%", "--set", "device.over_provisioning=7%"], ["device.spare", "give one"]),
        (
            &["--log", "sfs", "--fill-mode", "filler", "--set", "log.fill_mode=active"],
            ["filler by --fill-mode", "active by --set"],
        ),
        (&["--timing", "mlc", "--set", "timing.preset=slc"], ["mlc by --timing", "slc by --set"]),
        (&["--timing", "none", "--set", "timing.mode=open"], ["none by --timing", "open by --set"]),
        (&["--set", "gc.victim=fifo", "--set", "gc.victim=greedy"], ["fifo by --set", "greedy by --set"]),
    ] {
        refused(&[&["run", SYNTH], given].concat(), &expected);
    }
    for option in ["--op", "--spare", "--fill", "--utilisation"] {
        let log: &[&str] = if option == "--utilisation" { &["--log", "sfs"] } else { &[] };
        refused(&[&["run", SYNTH, option, "7"], log].concat(), &[option, "did you mean 7%"]);
    }
    refused(&["run", SYNTH, "--set", "device.spare=15"], &["device.spare", "did you mean 15%"]);
    for (wrong, named) in [
        ("gc.victim=gredy", "gc.victim"),
        ("log.name=sfs:segmnt=1MiB", "segmnt"),
        ("timing.preset=fast", "timing.preset"),
        ("device.page_size=1", "device.page_size"),
    ] {
        refused(&["run", "--print-config", "--set", wrong], &[named]);
    }
    refused(&["man", "dance"], &["dance", "compare"]);
    let twice = ["run", SYNTH, "--ftl", "dftl:cache=64KiB", "--cache-bytes", "1MiB"];
    refused(&twice, &["dram.cache_bytes (--cache-bytes)", "1MiB", "cache=64KiB", "give one"]);
    refused(&["run", SYNTH, "--set", "gc.victm=fifo"], &["gc.victm", "did you mean gc.victim"]);
    for seed in ["-1", "9999999999999999999999", "one"] {
        for verb in ["run", "compare", "advise"] {
            refused(&[verb, SYNTH, "--seed", seed], &["--seed", seed, "a whole number from 0 to 18446744073709551615"]);
        }
    }
    refused(&["run", SYNTH, "--set", "timing.queue_depth=4"], &["timing.queue_depth", "timing.mode closed"]);
    refused(&["run", SYNTH, "--ftl", "page,dftl"], &["--ftl", "a run has one", "isotherm compare"]);
    refused(&["run", SYNTH, "--ftl", "dftl", "--log", "sfs"], &["--below dftl"]);
    refused(&["run", SYNTH, "--set", "log.name=sfs", "--ftl", "dftl"], &["--below dftl"]);
    refused(&["run", SYNTH, "--below", "page"], &["--below", "--log"]);
    for option in ["--op=7%", "--placement=single", "--timing=mlc", "--dram=1MiB"] {
        let name = option.split('=').next().unwrap();
        refused(&["run", SYNTH, "--log", "sfs:segment=64KiB", option], &[name, "nothing lies below", "--below"]);
    }
    refused(&["compare", SYNTH, "--log", "sfs:segment=64KiB", "--op", "7%,9%"], &["no device", "OP 7 %"]);
    refused(&["compare", SYNTH, "--log", "in_place"], &["in_place", "no device below", "--below"]);
    refused(&["run", SYNTH, "--log", "in_place"], &["in_place", "no device below", "--below"]);
    refused(&["compare", SYNTH, "--dram", "1MiB", "--split", "30%"], &["no device", "30%"]);
    refused(&["compare", SYNTH, "--ftl", "fast", "--victim", "greedy,nonsense"], &["nonsense", "--victim"]);
    refused(&["run", SYNTH, "--log", "sfs:segment=64KiB", "--below", "nonsense"], &["--below", "nonsense"]);
    refused(&["run", SYNTH, "--log", "lfs:segment=64KiB", "--utilisation", "99%"], &["lfs:segment=", "--utilisation"]);
    refused(&["run", SYNTH, "--split", "50%"], &["--split", "--dram"]);
    refused(&["run", SYNTH, "--dram", "1MiB", "--split", "50%"], &["--split", "map of page", "asa"]);
    refused(&["run", SYNTH, "--ftl", "dftl", "--dram", "1MiB", "--buffer", "none", "--split", "50%"], &["--buffer"]);
    refused(&["run", SYNTH, "--ftl", "dftl", "--dram", "1MiB", "--cache-bytes", "8KiB"], &["--cache-bytes", "--dram"]);
    for ftl in ["dftl:cache=32KiB", "asa:cache=32KiB", "fast:log_blocks=2"] {
        let key = &ftl[..ftl.find('=').unwrap()];
        refused(&["run", SYNTH, "--ftl", ftl, "--dram", "1MiB"], &[key, "(--dram)", "its share"]);
        refused(&["compare", SYNTH, "--ftl", ftl, "--dram", "1MiB"], &[key, "its share"]);
    }
    refused(&["run", SYNTH, "--ftl", "fast", "--dram", "256B", "--buffer", "none"], &["--dram", "at least"]);
    refused(&["run", "synth:uniform,pages=64,writes=4000", "--ftl", "asa"], &["asa has 3 open blocks"]);
    for verb in ["run", "compare"] {
        refused(&[verb, SYNTH, "--page-size", "0"], &["--page-size", "power of two"]);
        refused(&[verb, SYNTH, "--seed", "-1"], &["--seed", "-1"]);
    }
    refused(&["run", SYNTH, "--op", "0"], &["--op", "above 0"]);
    refused(&["run", SYNTH, "--op", "-5%"], &["--op"]);
    refused(&["run", SYNTH, "--op", "7%", "--spare", "7%"], &["--op", "--spare"]);
    refused(&["run", SYNTH, "--spare", "100%"], &["spare", "at most 95%"]);
    refused(&["run", SYNTH, "--pages-per-block", "63"], &["--pages-per-block", "power of two"]);
    refused(&["run", SYNTH, "--page-size", "3000B"], &["--page-size", "power of two"]);
    refused(&["run", SYNTH, "--logical-size", "0"], &["--logical-size", "out of range"]);
    refused(&["run", SYNTH, "--logical-size", "4 potatoes"], &["potatoes", "KiB"]);
    refused(&["run", SYNTH, "--logical-size", "500TiB"], &["logical_size"]);
    refused(&["run", SYNTH, "--victim", "gredy"], &["gredy", "greedy", "cost_benefit"]);
    refused(&["run", SYNTH, "--placement", "epoch:lenght=2"], &["lenght", "length"]);
    refused(&["run", SYNTH, "--ftl", "magic"], &["magic", "page"]);
    refused(&["run", SYNTH, "--timing", "fast"], &["fast", "mlc"]);
    refused(&["run", SYNTH, "--set", "gc.victm=fifo"], &["victm", "did you mean gc.victim"]);
    refused(&["run", SYNTH, "--set", "gc.victim"], &["KEY=VALUE"]);
    let folder = Folder::new();
    let spec = folder.file("device.toml", b"[gc]\nvictim = \"fifo\"\ncolour = \"red\"\n");
    refused(&["run", SYNTH, "--spec", &spec], &["device.toml", "colour"]);
    refused(&["run", SYNTH, "--spec", "/nowhere/device.toml"], &["/nowhere/device.toml"]);
}

#[test]
fn the_least_dram_that_is_named_is_enough() {
    for ftl in ["dftl", "fast"] {
        let mut run = vec!["run", SYNTH, "--ftl", ftl, "--split", "adaptive_paper", "--dram"];
        let output =
            |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_isotherm")).args(arguments).output().unwrap();
        let error = String::from_utf8(output(&[&run[..], &["64KiB"]].concat()).stderr).unwrap();
        let least = error.split("give at least ").nth(1).unwrap().split(' ').next().unwrap();
        let less = (least.parse::<u64>().unwrap() - 1).to_string();
        refused(&[&run[..], &[less.as_str()]].concat(), &["--dram"]);
        run.push(least);
        assert_eq!(output(&run).status.code(), Some(0), "{ftl} in {least}");
    }
}

#[test]
fn replays() {
    refused(&["run", SYNTH, "--logical-size", "8MiB"], &["request", "past", "--address"]);
    refused(&["run", SYNTH, "--fill", "50%"], &["--fill", "nothing to fill", "--logical-size"]);
    refused(&["run", SYNTH, "--fill", "50%"], &["50 % leaves nothing"]);
    refused(&["run", SYNTH, "--volume", "3"], &["no volumes", "--volume"]);
    refused(&["run", SYNTH, "--fill", "101%"], &["--fill", "0%..=100%"]);
    refused(&["run", SYNTH, "--repeat", "0"], &["--repeat"]);
    refused(&["run", SYNTH, "--measure-last", "0"], &["--measure-last"]);
    refused(&["run", SYNTH, "--address", "around"], &["wrap", "compact"]);
    refused(&["run", SYNTH, "--precondition", "much"], &["sequential"]);
    refused(&["run", SYNTH, "--placement", "offline", "--precondition", "trace"], &["offline", "none or sequential"]);
    refused(&["run"], &["TRACE"]);
    refused(&["run", SYNTH, "--colour", "red"], &["--colour"]);
}

#[test]
fn outputs_and_experiments() {
    let folder = Folder::new();
    let file = folder.file("file", b"x");
    refused(&["compare", SYNTH, "--out", &file], &["file", "permissions"]);
    refused(&["compare", SYNTH, "--out", &format!("{file}/below")], &["below"]);
    refused(&["compare", SYNTH, "--placement", ",", "--out", &file], &["--placement"]);
    refused(&["compare", SYNTH, "--op", "7%,lots", "--out", &file], &["lots", "7%"]);
    refused(&["compare", SYNTH, "--export", "table.doc"], &["table.doc", ".tex, .csv or .md"]);
    refused(&["compare", SYNTH, "--seeds", "0"], &["--seeds", "1"]);
    refused(&["compare", SYNTH, SYNTH], &["given twice"]);
    refused(&["compare", "/nowhere/a.csv", "/nowhere/b.csv"], &["/nowhere/a.csv", "check the path"]);
    refused(&["report", "/nowhere/results.json"], &["/nowhere/results.json"]);
    refused(&["report", &file], &["file", "results.json"]);
    refused(&["report", folder.0.path().to_str().unwrap()], &["folder", "name a results.json"]);
    let experiment = folder.file("e.toml", b"title = \"x\"\ntraces = []\n");
    refused(&["sweep", &experiment], &["e.toml", "trace"]);
    let by_label = b"title = \"x\"\n[[traces]]\nlabel = \"s\"\nsource = \"synth:uniform\"\n[[axes]]\nname = \"op\"\nvalues = [{ label = \"7%\", set = [\"device.over_provisioning=7%\"] }]\n[[figures]]\ntitle = \"f\"\nkind = \"lines\"\nx = \"op\"\ny = \"write_amplification\"\n";
    let figure = folder.file("l.toml", by_label);
    refused(&["sweep", &figure, "--dry-run"], &["needs numbers along x", "7%", "bars"]);
    let unknown = folder.file("u.toml", b"title = \"x\"\ntraces = []\nspeed = 3\n");
    refused(&["sweep", &unknown], &["u.toml", "speed"]);
}
