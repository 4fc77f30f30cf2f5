//! The experiments of the project: each file can be planned, point by point.

use std::path::Path;
use std::process::Command;

#[test]
fn every_experiment_can_be_planned() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut planned = 0;
    for entry in root.join("experiments").read_dir().unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let mut sweep = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let output = sweep.current_dir(&root).arg("sweep").arg(&file).arg("--dry-run").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", file.display());
        planned += 1;
    }
    assert!(planned > 10, "{planned} experiments were found");
}

/// The pictures of the page beside the experiments are checked in, and each is one that an experiment still names.
#[test]
fn every_picture_of_the_page_is_there_and_still_asked_for() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let experiments = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let texts: String = experiments.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut pictures = 0;
    for rest in page.split("](figures/").skip(1) {
        let name = rest.split(".svg)").next().unwrap();
        assert!(folder.join(format!("figures/{name}.svg")).exists(), "{name}.svg is missing; `make figures` draws it");
        assert!(texts.contains(&format!("picture = \"{name}\"")), "no experiment asks for {name}.svg any more");
        pictures += 1;
    }
    assert!(pictures >= 1, "the page has no picture");
}

/// A small sweep, its published numbers and its picture.
#[test]
fn published_numbers_and_ours_stand_side_by_side() {
    const EXPERIMENT: &str = r#"
        title = "A test"
        paper = "Desnoyers"
        [base]
        device.over_provisioning = "10%"
        [[traces]]
        label = "uniform"
        source = "synth:uniform,pages=4096,writes=20000"
        [[axes]]
        name = "victim"
        values = [{ label = "greedy", set = ["gc.victim=greedy"] }, { label = "fifo", set = ["gc.victim=fifo"] }]
        [[figures]]
        title = "WA by victim"
        kind = "bars"
        picture = "victims"
        x = "victim"
        y = "write_amplification"
        [[published]]
        figure = "Figure 1"
        what = "FIFO relative to greedy"
        value = 0.5
        ours = { y = "write_amplification", at = { victim = "fifo" }, relative_to = { victim = "greedy" } }
    "#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, EXPERIMENT).unwrap();
    let isotherm = |args: &[&std::ffi::OsStr]| {
        let output = Command::new(env!("CARGO_BIN_EXE_isotherm")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (out, into) = (folder.path().join("small"), folder.path().join("into"));
    let results = out.join("results.json");
    let swept = isotherm(&["sweep".as_ref(), file.as_ref(), "--out".as_ref(), out.as_ref()]);
    assert_eq!(swept.0, Some(0), "{}", swept.1);
    let drawn = isotherm(&["figures".as_ref(), results.as_ref(), "--into".as_ref(), into.as_ref()]);
    assert_eq!(drawn.0, Some(0), "{}", drawn.1);
    let page = std::fs::read_to_string(into.join("README.md")).unwrap();
    let row = page.lines().find(|line| line.contains("FIFO relative to greedy")).expect("a row");
    assert!(row.starts_with("| [Desnoyers](small.toml) | Figure 1 |"), "{row}");
    assert!(
        row.contains("uniform, 16 MiB, spare 8.6 %, seed 1")
            && row.contains("| unproven, 2 of 2 runs not valid (opposite)"),
        "{row}"
    );
    assert!(page.contains("![WA by victim](figures/victims.svg)"));
    assert!(std::fs::read_to_string(into.join("figures/victims.svg")).unwrap().starts_with("<svg"));

    // Another experiment with a picture of that name: nothing is written, neither page nor picture.
    let twin = folder.path().join("twin/results.json");
    std::fs::create_dir(twin.parent().unwrap()).unwrap();
    std::fs::copy(&results, &twin).unwrap();
    let nowhere = folder.path().join("not-made");
    let refused = |second: &Path| {
        let (code, error) =
            isotherm(&["figures".as_ref(), results.as_ref(), second.as_ref(), "--into".as_ref(), nowhere.as_ref()]);
        assert!(code == Some(2) && !nowhere.exists(), "{error}");
        error
    };
    let error = refused(&twin);
    let told = ["figures/victims.svg", "\"small\" and one of \"twin\"", "another name, as `picture`", "--resume"];
    assert!(told.iter().all(|words| error.contains(words)), "{error}");
    let error = refused(&results);
    assert!(error.contains("two pictures of the experiment \"small\"") && error.contains("results once"), "{error}");

    let missing = folder.path().join("nowhere/results.json");
    let (code, error) = isotherm(&["figures".as_ref(), missing.as_ref(), "--into".as_ref(), into.as_ref()]);
    assert_eq!(code, Some(2));
    assert!(error.contains("nowhere/results.json"), "{error}");
}

/// Nothing else is to blame, and nothing is to be run first: the folder of the captures is to be named.
#[test]
fn an_experiment_whose_traces_are_all_left_out_says_which_variable_names_their_folder() {
    const EXPERIMENT: &str = r#"
        title = "A test"
        [[traces]]
        label = "capture"
        source = "$ISOTHERM_TRACES/capture.csv.zst"
        [[traces]]
        label = "another"
        source = "$ISOTHERM_TRACES/another.csv.zst"
        [[axes]]
        name = "victim"
        values = [{ label = "greedy", set = ["gc.victim=greedy"] }]
    "#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("captures.toml");
    std::fs::write(&file, EXPERIMENT).unwrap();
    let sweep = |more: &[&str]| {
        let mut sweep = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        sweep.env_remove("ISOTHERM_TRACES").arg("sweep").arg(&file).arg("--out").arg(folder.path().join("out"));
        let output = sweep.args(more).output().unwrap();
        let [said, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), said, errors)
    };
    for more in [&[][..], &["--resume"], &["--shard", "1/2"]] {
        let (code, said, errors) = sweep(more);
        assert_eq!(code, Some(2), "{more:?}: {errors}");
        assert!(said.contains("Trace \"capture\" is left out"), "{said}");
        let told =
            ["no trace of the experiment is at hand", "does not set ISOTHERM_TRACES;", "ISOTHERM_TRACES=captures"];
        assert!(told.iter().all(|words| errors.contains(words)) && !errors.contains("compare"), "{more:?}: {errors}");
    }
    assert!(!folder.path().join("out/results.json").exists(), "no results of nothing");
    let (code, said, errors) = sweep(&["--dry-run"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "a plan can be shown: {said}");
}

/// One point of an experiment asks for a drive that is too small for the trace.
#[test]
fn a_point_that_cannot_run_is_skipped_with_a_note() {
    const EXPERIMENT: &str = r#"
        title = "A test"
        [[traces]]
        label = "uniform"
        source = "synth:uniform,pages=4096,writes=20000"
        [[axes]]
        name = "size"
        values = [{ label = "large", set = ["device.logical_size=16MiB"] }, { label = "small", set = ["device.logical_size=1MiB"] }]
    "#;
    let folder = tempfile::tempdir().unwrap();
    let sweep = |text: &str| {
        let file = folder.path().join("small.toml");
        std::fs::write(&file, text).unwrap();
        let mut sweep = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let output =
            sweep.arg("sweep").arg(&file).arg("--resume").arg("--out").arg(folder.path().join("out")).output().unwrap();
        let [said, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), said, errors)
    };
    let (code, said, errors) = sweep(EXPERIMENT);
    assert_eq!(code, Some(0), "{errors}");
    // The table's word on validity is explained below it, with how full the drive was.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("uniform, large: not valid (") && said.contains("live at the peak"), "{said}");
    assert!(said.contains("use --precondition trace"), "what to change is told: {said}");
    assert!(errors.contains("isotherm: uniform, small: skipped: ") && errors.contains("logical_size"), "{errors}");
    let text = std::fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["runs"].as_array().unwrap().len(), 1);
    assert_eq!(results["skipped"][0]["label"], "uniform, small");
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(report.contains("One combination could not be run"), "the report tells it");

    let (code, _, errors) = sweep(&EXPERIMENT.replace("16MiB", "2MiB"));
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("uniform, large: skipped") && errors.contains("no point can run"), "{errors}");
}
