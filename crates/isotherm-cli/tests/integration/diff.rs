//! The gate: what changed between two results, and its exit codes.

use crate::command::isotherm;
use serde_json::Value;
use std::path::{Path, PathBuf};

const ZIPF: &str = "synth:zipf,theta=0.99,pages=16Ki,writes=120k";

/// What `run --json` prints, in a file.
fn result(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let output = isotherm(&[&["run", ZIPF, "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.join(name);
    std::fs::write(&path, output.stdout).unwrap();
    path
}

/// A result with some of its keys changed.
fn changed(folder: &Path, from: &Path, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
    let mut value: Value = serde_json::from_slice(&std::fs::read(from).unwrap()).unwrap();
    change(&mut value);
    let path = folder.join(name);
    std::fs::write(&path, value.to_string()).unwrap();
    path
}

/// Exit code, standard output, standard error.
fn diff(old: &Path, new: &Path, arguments: &[&str]) -> (i32, String, String) {
    let files = [old, new].map(|path| path.to_str().unwrap());
    let output = isotherm(&[&["diff"], &files[..], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_run_against_itself_has_nothing_to_tell() {
    let folder = tempfile::tempdir().unwrap();
    let old = result(folder.path(), "old.json", &[]);
    let (code, said, _) = diff(&old, &old, &["--fail-if", "wa_last > +1000%"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("wa_last") && said.contains("+0.00 %"), "{said}");
    assert_eq!(diff(&old, &old, &[]).1, "1 run without a change in a main number (1 not valid)\n");
}

#[test]
fn the_table_and_the_failures_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let old = result(folder.path(), "old.json", &["--precondition", "trace"]);
    let old = changed(folder.path(), &old, "old2.json", |run| {
        run["write_amplification"] = 2.0.into();
        run["latency_ns"]["write"]["p999"] = 1000.into();
    });
    let new = changed(folder.path(), &old, "new.json", |run| {
        run["write_amplification"] = 2.05.into();
        run["latency_ns"]["write"]["p999"] = 990.into();
        run["spec"]["gc"]["victim"] = "fifo".into();
    });
    let (code, said, _) = diff(&old, &new, &["--fail-if", "wa > +2%", "--fail-if", "p999_write > +5%"]);
    let expected = "\
single, greedy
differs in gc.victim greedy -> fifo
number       old   new   change
-------------------------------
wa             2  2.05  +2.50 %
p999_write  1000   990  -1.00 %

FAILED single, greedy: wa is 2.05 (before 2): wa > +2%
";
    assert_eq!((code, said.as_str()), (1, expected));
    assert_eq!(diff(&old, &new, &["--fail-if", "wa > +3%", "--fail-if", "p999_write > +5%"]).0, 0);
    let (code, said, _) = diff(&old, &new, &["--markdown", "--fail-if", "wa > 2"]);
    let expected = "\
### single, greedy

differs in gc.victim greedy -> fifo

| number | old | new | change |
| --- | ---: | ---: | ---: |
| wa | 2 | 2.05 | +2.50 % |
| p999_write | 1000 | 990 | -1.00 % |

- **FAILED** single, greedy: wa is 2.05 (before 2): wa > 2
";
    assert_eq!((code, said.as_str()), (1, expected));
    let (code, said, _) = diff(&old, &new, &["--json", "--fail-if", "erases > +0"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, 0);
    assert_eq!(value["pairs"][0]["numbers"]["write_amplification"]["new"], 2.05);
    assert_eq!(value["pairs"][0]["numbers"]["erase_count.total"]["relative_change"], 0.0);
    assert_eq!(value["failures"], Value::Array(Vec::new()));
}

#[test]
fn a_run_that_is_valid_no_more_fails() {
    let folder = tempfile::tempdir().unwrap();
    let old = result(folder.path(), "old.json", &["--precondition", "trace"]);
    let new = result(folder.path(), "new.json", &["--precondition", "trace"]);
    let new = changed(folder.path(), &new, "worse.json", |run| {
        run["verdict"]["valid"] = false.into();
        run["verdict"]["reasons"] = vec!["too short"].into();
    });
    let (code, said, _) = diff(&old, &new, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("valid no more: too short"), "{said}");
    let (code, said, _) = diff(&new, &old, &["--all"]);
    assert_eq!(code, 0);
    assert!(said.contains("the old run is not valid, the new one is"), "{said}");
    let (code, said, _) = diff(&new, &new, &["--fail-if", "wa > +2%"]);
    assert_eq!(code, 0);
    assert!(said.contains("neither run is valid"), "{said}");
    let value: Value = serde_json::from_str(&diff(&new, &old, &["--json"]).1).unwrap();
    assert_eq!(value["pairs"][0]["valid"], serde_json::json!({"old": false, "new": true}));
}

#[test]
fn a_run_that_became_light_or_a_first_replay_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let old = result(folder.path(), "run.json", &["--precondition", "trace"]);
    let old = changed(folder.path(), &old, "old.json", |run| {
        run["verdict"]["light"] = Value::Null;
        run["verdict"]["first_replay"] = Value::Null;
    });
    let new = changed(folder.path(), &old, "new.json", |run| {
        run["verdict"]["light"] = "at most half full".into();
        run["verdict"]["first_replay"] = "it fills the device".into();
    });
    let (code, said, _) = diff(&old, &new, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the new run is light, the old one was not: at most half full\n"), "{said}");
    assert!(said.contains("the new run is a first replay, the old one was not: it fills the device\n"), "{said}");
    let (_, said, _) = diff(&new, &old, &[]);
    assert!(said.contains("the old run was light, the new one is not"), "{said}");
    assert!(diff(&new, &new, &[]).1.starts_with("1 run without a change"), "both are");
}

#[test]
fn comparisons_are_matched_run_by_run() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |name: &str, placements: &str| {
        let out = folder.path().join(name);
        let arguments = ["compare", ZIPF, "--placement", placements, "--out", out.to_str().unwrap()];
        assert_eq!(isotherm(&arguments).status.code(), Some(0));
        out.join("results.json")
    };
    let (old, new) = (compare("old", "single,host_gc"), compare("new", "host_gc,sepbit"));
    let (code, _, error) = diff(&old, &new, &[]);
    assert_eq!(code, 2);
    assert!(error.contains("alone has single") && error.contains("--only-common"), "{error}");
    let (code, said, _) = diff(&old, &new, &["--only-common"]);
    assert_eq!(code, 0);
    assert!(said.contains("1 run without a change") && said.contains("only in the new results: sepbit"), "{said}");
}

/// Runs of one label that differ in their specification: each is compared with its own, whatever the order.
#[test]
fn the_order_of_the_runs_does_not_decide_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("one");
    let arguments = ["compare", ZIPF, "--placement", "single", "--out", out.to_str().unwrap()];
    assert_eq!(isotherm(&arguments).status.code(), Some(0));
    let old = changed(folder.path(), &out.join("results.json"), "old.json", |file| {
        file["runs"].as_array_mut().unwrap().truncate(1);
        file["runs"][0]["write_amplification"] = 2.0.into();
    });
    for reversed in [false, true] {
        let new = changed(folder.path(), &old, "new.json", |file| {
            let mut same = file["runs"][0].clone();
            let mut other = same.clone();
            same["write_amplification"] = 4.0.into();
            other["write_amplification"] = 1.0.into();
            other["spec"]["gc"]["victim"] = "fifo".into();
            file["runs"] = if reversed { vec![same, other] } else { vec![other, same] }.into();
        });
        let (code, said, _) = diff(&old, &new, &["--only-common", "--fail-if", "wa > +2%"]);
        assert_eq!(code, 1, "{said}");
        // Two that changed, and one before: nobody knows which it became.
        let neither = changed(folder.path(), &new, "neither.json", |file| {
            file["runs"].as_array_mut().unwrap().iter_mut().for_each(|run| run["spec"]["gc"]["floor"] = 9.into());
        });
        let (code, _, error) = diff(&old, &neither, &["--only-common"]);
        assert_eq!(code, 2);
        assert!(error.contains("labels of their own"), "{error}");
    }
}

#[test]
fn wrong_input_is_told_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let old = result(folder.path(), "old.json", &[]);
    let problem = |arguments: &[&str]| {
        let (code, _, error) = diff(&old, &old, arguments);
        assert_eq!(code, 2, "{error}");
        error
    };
    assert!(problem(&["--fail-if", "wax > +2%"]).contains("choose from wa,"));
    assert!(problem(&["--fail-if", "wa"]).contains("'wa > +2%'"));
    assert!(problem(&["--fail-if", "wa > 2%"]).contains("+2%"));
    // A device that cannot be amplified has no number to judge.
    let none = changed(folder.path(), &old, "none.json", |run| run["write_amplification"] = Value::Null);
    let (code, said, error) = diff(&none, &old, &["--fail-if", "wa > +2%"]);
    assert_eq!(code, 2);
    assert!(error.contains("no value in the old results"), "{error}");
    assert!(said.contains("number") && said.contains("NOT CHECKED single, greedy: --fail-if \"wa > +2%\""), "{said}");
    // What can be judged is: a failure is a failure.
    let (code, said, _) = diff(&none, &old, &["--json", "--fail-if", "wa > +2%", "--fail-if", "erases >= +0"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, 1);
    assert_eq!((value["failures"].as_array().unwrap().len(), value["unchecked"].as_array().unwrap().len()), (1, 1));
    let text = folder.path().join("text.json");
    std::fs::write(&text, "nothing").unwrap();
    assert!(diff(&text, &old, &[]).2.contains("text.json: it is no JSON"));
    std::fs::write(&text, "{}").unwrap();
    assert!(diff(&text, &old, &[]).2.contains("text.json: it is no result"));
    assert!(diff(&folder.path().join("nowhere"), &old, &[]).2.contains("check the path"));
}
