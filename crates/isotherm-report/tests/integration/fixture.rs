//! Results to report: small real runs, one of them judged invalid, under a trace whose name tries to break out of the page.

use isotherm_eval::compare::{Choice, PolicyList, combine, rank};
use isotherm_eval::results::*;
use isotherm_eval::{Control, Policies, Replay, RunSpec, Surveys, TraceSource, run_all};
use isotherm_sfs::SystemSpec;
use serde_json::{Map, Value};

/// A trace name as a hostile or careless user may give it.
pub const EVIL: &str = "</script><img src=x onerror=\"window.broken=1\">&'\".csv.zst";

const TRACE: &str = "synth:zipf,theta=0.99,pages=8192,writes=100000,reads=0.2,trims=0.01,seed=1";

/// Six runs of `compare`: three placements with two victim policies.
pub fn compare() -> ResultsFile {
    // Only a model with queues gives requests a latency.
    let device = SystemSpec::from_toml("", &["timing.mode=closed".to_owned()]).unwrap();
    let base = RunSpec {
        trace: TraceSource::new(TRACE),
        device,
        replay: Replay::default(),
        seed: 1,
        policies: Policies::default(),
    };
    let list = |text: &str| text.parse::<PolicyList>().unwrap().0;
    let placements = list("single,host_gc,epoch").into_iter().map(Choice::Placement).collect();
    let victims = list("greedy,cost_benefit").into_iter().map(Choice::Victim).collect();
    let jobs = combine(&base, &[placements, victims]).unwrap().jobs;
    let surveys = Surveys::of(&jobs).unwrap();
    let mut runs = run_all(&jobs, &surveys, &Control::default(), |_, _| Ok(())).unwrap();
    rank(&mut runs);
    // Short runs are judged invalid, rightly; the pages must be seen with both judgements.
    for run in &mut runs {
        run.trace = EVIL.to_owned();
        (run.verdict.valid, run.verdict.reasons) = (true, Vec::new());
    }
    let verdict = &mut runs.last_mut().unwrap().verdict;
    verdict.valid = false;
    verdict.reasons = vec![format!("write amplification still moves under {EVIL}"), "2 lines were skipped".into()];
    let mut trace = TraceSummary::from(&base.trace.profile(4096).unwrap());
    trace.name = EVIL.to_owned();
    ResultsFile {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: format!("isotherm compare '{EVIL}' --placement single,host_gc,epoch --victim greedy,cost_benefit"),
        traces: vec![trace],
        experiment: None,
        hotness: Vec::new(),
        replicates: Vec::new(),
        skipped: Vec::new(),
        runs,
    }
}

/// An experiment over the same runs, with a published number beside ours and one across them.
pub fn experiment() -> ResultsFile {
    let published = |label: &str, value, x: Option<&str>| Published {
        label: label.into(),
        value,
        unit: "relative to single".into(),
        x: x.map(Value::from),
        series: x.map(|_| Value::from("epoch")),
        upright: false,
        only: Map::new(),
    };
    let row = |figure: &str, published: f64, ours: Option<f64>| PublishedRow {
        figure: figure.into(),
        what: "Financial1: collections | page mapping".into(),
        published,
        ours,
        ratio: ours.map(|ours| ours / published),
        found: serde_json::from_value(serde_json::json!({ "y": "gc_count" })).unwrap(),
        runs: 4,
        runs_valid: 3,
        difference: "Another trace.".into(),
    };
    let bars = Figure {
        title: "Figure 5: garbage collections".into(),
        kind: FigureKind::Bars,
        picture: Some("collections".into()),
        picture_only: Map::new(),
        x_label: String::new(),
        x_logarithmic: false,
        mean: false,
        x: "victim".into(),
        y: "gc_count".into(),
        y_label: "Victims collected, relative to single".into(),
        series: Some("placement".into()),
        joined: None,
        relative_to: Some("single".into()),
        only: Map::new(),
        published: vec![published("Fig. 5, Financial1", 0.672, Some("greedy")), published("abstract", 0.9, None)],
        note: "Ours saves more, because the footprint is smaller.".into(),
    };
    let histogram = Figure {
        title: "Victims".into(),
        kind: FigureKind::Histogram,
        y: "victim_histogram.count".into(),
        y_label: "Invalid pages of a victim".into(),
        relative_to: None,
        published: Vec::new(),
        picture: None,
        ..bars.clone()
    };
    let agreement = Figure {
        title: "All and the last".into(),
        kind: FigureKind::Agreement,
        x: "last_window.pages_programmed_total".into(),
        y: "pages_programmed_total".into(),
        ..histogram.clone()
    };
    let mut results = compare();
    results.experiment = Some(Experiment {
        title: "Epochs against page mapping".into(),
        paper: "Epoch".into(),
        description: "How much does the epoch scheme save?".into(),
        figures: vec![bars, histogram, agreement],
        published: vec![row("Figure 5", 0.672, Some(0.7)), row("Figure 6", 0.9, None)],
        findings: vec!["It saves a third of the collections.".into()],
        traces: Vec::new(),
        hotness: None,
    });
    results
}
