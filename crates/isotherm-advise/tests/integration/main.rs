//! Workloads whose right answer is known, and the page that tells it, in a real headless Chromium.

#[path = "../../../isotherm-report/tests/integration/browser.rs"]
mod browser;

use browser::Browser;
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm_advise::{
    Advice, Beside, DriveClass, FileMap, Kind, PAGE_BYTES, Plan, Question, Row, Rule, View, advise, page,
};
use isotherm_eval::{Control, RunResult, RunSpec, SystemSpec, TraceSource, prepare, survey};
use std::sync::{Arc, OnceLock};
use tempfile::NamedTempFile;

/// Milliseconds between writes.
const STEP_NS: u64 = 1_000_000;

/// A trace of page writes: of each the first page and the number.
fn trace(writes: impl Iterator<Item = (u64, u64)>) -> (NamedTempFile, TraceSource) {
    requests(writes.map(|(page, pages)| ('W', page, pages)))
}

/// A trace of requests: of each what it does, the first page and the number.
fn requests(all: impl Iterator<Item = (char, u64, u64)>) -> (NamedTempFile, TraceSource) {
    let file = NamedTempFile::new().unwrap();
    let mut text = String::from("ts_ns,op,offset,length\n");
    for (at, (op, page, pages)) in (0u64..).zip(all) {
        text.push_str(&format!("{},{op},{},{}\n", at * STEP_NS, page * PAGE_BYTES, pages * PAGE_BYTES));
    }
    std::fs::write(file.path(), text).unwrap();
    let source = TraceSource::new(file.path().to_str().unwrap());
    (file, source)
}

fn question(trace: &TraceSource, fill: f64) -> Question {
    Question {
        trace: trace.clone(),
        drive: DriveClass::find("client-tlc-1t").unwrap(),
        fill,
        untouched: 0.0,
        ftl: PolicyName::plain("page"),
        dram_bytes: None,
        split: PolicyName::plain("50%"),
        placement: PolicyName::plain("host_gc"),
        victim: PolicyName::plain("greedy"),
        handles_max: 8,
        scale_rate: 1.0,
        exhaustive: true,
        seed: 1,
    }
}

fn answer(trace: &TraceSource, fill: f64) -> Advice {
    advise(&question(trace, fill), Beside::default(), &Control::default()).unwrap()
}

fn wa(row: &Row) -> f64 {
    row.write_amplification.unwrap()
}

fn best(advice: &Advice, kind: Kind) -> &Row {
    let rows = advice.rows.iter().filter(|row| row.kind == kind && row.is_sound());
    rows.min_by(|a, b| wa(a).total_cmp(&wa(b))).unwrap_or_else(|| panic!("no row of {kind:?} is sound"))
}

/// Replays a row's plan as `run --plan` does.
fn replayed(advice: &Advice, row: &Row, trace: &TraceSource) -> RunResult {
    let plan = Plan::from_json(&advice.plans[row.plan.unwrap()].to_json()).unwrap();
    let device = SystemSpec::from_toml(&row.spec_toml, &[]).unwrap();
    let options = row.replay_options.as_ref().unwrap();
    let words: Vec<&str> = options.split(' ').collect();
    let option = |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1];
    let sets = ["address", "fill", "precondition", "repeat", "measure-last"]
        .map(|name| format!("replay.{}={}", name.replace('-', "_"), option(&format!("--{name}"))));
    let replay: isotherm_eval::ReplaySpec = isotherm::spec::parse("", &sets).unwrap();
    let trace = View { plan: Some(Arc::new(plan)), ..View::default() }.of(trace);
    let spec = RunSpec {
        trace,
        device,
        replay: replay.replay,
        seed: option("--seed").parse().unwrap(),
        policies: Default::default(),
    };
    let survey = survey(&spec).unwrap();
    prepare(&spec, Some(&survey)).unwrap().run(&Control::default()).unwrap()
}

/// A log of 1024 pages that is written around, and a tree of 16384 pages that is overwritten at random: half of the writes each.
fn wal_and_tree() -> (NamedTempFile, TraceSource) {
    let mut random = Random::new(7);
    trace((0..240_000u64).map(move |at| match at % 2 {
        0 => (at / 2 % 1024, 1),
        _ => (1024 + random.below(16_384), 1),
    }))
}

/// What is advised for it: the trace, and the answer, which several tests look at.
fn advised_wal_and_tree() -> &'static (NamedTempFile, TraceSource, Advice) {
    static ADVISED: OnceLock<(NamedTempFile, TraceSource, Advice)> = OnceLock::new();
    ADVISED.get_or_init(|| {
        let (file, trace) = wal_and_tree();
        let advice = answer(&trace, 1.0);
        (file, trace, advice)
    })
}

#[test]
fn a_log_is_told_from_a_tree_and_the_promise_is_met() {
    let (_, trace, advice) = advised_wal_and_tree();
    let base = wa(&advice.rows[0]);
    // Greedy cleaning takes the log's block that is just dying, and so gains nothing from handles; other victim policies do.
    let row = best(advice, Kind::Combination);
    assert!(wa(row) < 0.92 * base, "{} against {base}", wa(row));
    assert!(advice.recommendation.together_row.is_some(), "{}", advice.recommendation.text);
    let Rule::Address(ranges) = &advice.plans[row.plan.unwrap()].rule else { panic!("the plan goes by address") };
    let boundary = 1024 * PAGE_BYTES;
    assert!(ranges.iter().any(|range| range.start_bytes.abs_diff(boundary) <= 32 * PAGE_BYTES), "{ranges:?}");
    let promise = row.promise.unwrap();
    assert!((promise.ratio_kept / promise.ratio - 1.0).abs() < 0.02, "{promise:?}");
    let replayed = replayed(advice, row, trace).write_amplification_last.unwrap();
    assert!((replayed / wa(row) - 1.0).abs() < 1e-9, "{replayed} against {}", wa(row));
    let log = &advice.ranges[0];
    assert!((log.write_share - 0.5).abs() < 0.02 && log.copy_share < Some(0.1), "{log:?}");
    // What lies in the log is overwritten after 2048 writes.
    assert!((log.lifetime_mean_bytes.unwrap() / (2048 * PAGE_BYTES) as f64 - 1.0).abs() < 0.1, "{log:?}");
}

/// An answer that cannot be written leaves none of the folders of its plans.
#[test]
fn what_cannot_be_written_leaves_no_folders() {
    let (_, _, advice) = advised_wal_and_tree();
    assert!(!advice.plans.is_empty());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("advice.json")).unwrap();
    assert!(isotherm_advise::export::write(advice, folder.path(), "trace.csv").is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_page_shows_what_the_advice_holds_and_fetches_nothing() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(mut browser) = Browser::start(folder.path()) else { return };
    let (_, _, advice) = advised_wal_and_tree();
    let file = folder.path().join("advice.html");
    std::fs::write(&file, page::render(advice).unwrap()).unwrap();
    let address = format!("file://{}", file.display());
    for (width, scheme) in [(1280, "light"), (360, "dark")] {
        browser.open(&address, width, 900, scheme);
        let shown = browser.evaluate(
            "[...document.querySelectorAll('[data-key]')].filter(cell => cell.dataset.key.endsWith('write_amplification_bytes'))\
             .map(cell => Number(cell.dataset.value))",
        );
        let shown: Vec<f64> = shown.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        let held: Vec<f64> = advice.rows.iter().map(|row| row.write_amplification_bytes.unwrap()).collect();
        assert_eq!(shown, held);
        let lead = browser.evaluate("document.querySelector('.lead').textContent");
        assert_eq!(lead, advice.recommendation.text);
        assert_eq!(browser.evaluate("figures.length"), 2);
        let charts = "[...document.querySelectorAll('.chart')].every(c => c.clientHeight >= 100 && c.querySelectorAll('svg path').length > 3)";
        assert_eq!(browser.evaluate(charts), true);
        assert_eq!(browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, "at {width}");
    }
    browser.evaluate("0");
    assert_eq!((&browser.console, &browser.requests), (&Vec::new(), &Vec::new()));
}

#[test]
fn two_tenants_are_told_apart() {
    // Nine writes of ten go to a tenth of the addresses, which lie in the middle.
    let mut random = Random::new(3);
    let (_file, trace) = trace((0..240_000).map(move |_| match random.below(10) {
        0 => (random.below(8192) / 4096 * 6144 + random.below(4096), 1),
        _ => (4096 + random.below(2048), 1),
    }));
    let advice = answer(&trace, 1.0);
    let row = best(&advice, Kind::HandlesByAddress);
    assert!(wa(row) < 0.95 * wa(&advice.rows[0]), "{} against {}", wa(row), wa(&advice.rows[0]));
    let recommended = &advice.rows[advice.recommendation.row.expect("the host can help")];
    assert!(recommended.plan.is_some(), "{}", recommended.what);
    let Rule::Address(ranges) = &advice.plans[row.plan.unwrap()].rule else { panic!("the plan goes by address") };
    let hot = |page: u64| advice.plans[row.plan.unwrap()].handle_at(page * PAGE_BYTES);
    assert!(hot(5000) != hot(1000) && hot(5000) != hot(9000), "{ranges:?}");
    let replayed = replayed(&advice, row, &trace).write_amplification_last.unwrap();
    assert!((replayed / wa(row) - 1.0).abs() < 0.02, "{replayed} against {}", wa(row));
    assert!(row.promise.unwrap().is_kept);
}

#[test]
fn where_nothing_helps_nothing_is_recommended() {
    let mut random = Random::new(5);
    let (_uniform, uniform) = trace((0..160_000).map(move |_| (random.below(16_384), 1)));
    let (_append, append) = trace((0..20_000u64).map(|at| (at * 8 % 16_384, 8)));
    for trace in [&uniform, &append] {
        let advice = answer(trace, 1.0);
        assert!(advice.rows[0].valid, "{}", advice.rows[0].trust);
        let text = &advice.recommendation.text;
        assert!(advice.recommendation.row.is_none(), "{text}");
        assert!(text.contains("Nothing that the host can do helps"), "{text}");
        let html = page::render(&advice).unwrap();
        assert!(html.contains(" Nothing that the host can do helps.</p>"), "the box has a sentence of its own");
        assert!(!html.contains("-0 %"), "what rounds to nought has no sign");
    }
}

#[test]
fn deleted_data_that_is_not_discarded_costs_and_trim_is_recommended() {
    let mut random = Random::new(9);
    let (_file, trace) = trace((0..160_000).map(move |_| (random.below(16_384), 1)));
    let advice = answer(&trace, 0.8);
    let trimmed = best(&advice, Kind::Trim);
    // Free space of 25 % of the data joins the spare space of 10 %.
    assert!(wa(trimmed) < 0.6 * wa(&advice.rows[0]), "{} against {}", wa(trimmed), wa(&advice.rows[0]));
    let recommended = &advice.rows[advice.recommendation.row.unwrap()];
    assert!(recommended.what.contains("trim"), "{}", recommended.what);
}

/// Pages of a database that are overwritten at random, and files of 64 pages that are written, read 10,000 requests later, and
/// deleted then: discarded, or not.
fn database_and_temporary_files(discards: bool) -> (NamedTempFile, TraceSource) {
    const PAGES: u64 = 8192;
    let mut random = Random::new(11);
    requests((0..160_000u64).flat_map(move |at| {
        let mut all = vec![('W', random.below(PAGES), 1)];
        let file = |at: u64| PAGES + at / 1000 * 64;
        if at % 1000 == 0 {
            all.push(('W', file(at), 64));
        }
        if let Some(then) = at.checked_sub(10_000).filter(|then| then % 1000 == 0) {
            all.push(('R', file(then), 64));
            all.extend(discards.then_some(('D', file(then), 64)));
        }
        all
    }))
}

#[test]
fn what_no_file_holds_costs_what_its_discards_would_have_cost() {
    let map = "File size of /db is 33554432 (8192 blocks of 4096 bytes)\n0: 0..8191: 0..8191: 8192:\n\
               File size of /last is 2621440 (640 blocks of 4096 bytes)\n0: 0..639: 17792..18431: 640:\n";
    let beside =
        |map: Option<&str>| Beside { file_map: map.map(|map| FileMap::parse(map, 0).unwrap()), ..Beside::default() };
    let ask = |trace: &TraceSource, map| {
        let question = Question { exhaustive: false, ..question(trace, 1.0) };
        advise(&question, beside(map), &Control::default()).unwrap()
    };
    let (_kept, kept) = database_and_temporary_files(false);
    let (_discarded, discarded) = database_and_temporary_files(true);
    let advice = ask(&kept, Some(map));
    let estimate = advice.rows.iter().find(|row| row.kind == Kind::TrimAtOnce).unwrap();
    let with_discards = ask(&discarded, None);
    let right = wa(&with_discards.rows[0]);
    assert!(right < 0.8 * wa(&advice.rows[0]), "{right} against {}", wa(&advice.rows[0]));
    // The last files are deleted by nobody: they are in the map.
    assert!((wa(estimate) / right - 1.0).abs() < 1e-9, "{} against {right}", wa(estimate));
    let notes = advice.situation.notes.join("; ");
    assert!(
        notes.contains("52 % of what the trace touches belongs to no file") && notes.contains("an estimate"),
        "{notes}"
    );
    let told = advice.recommendation.others.join("; ");
    assert!(told.contains("If what no file of the map holds were discarded at once"), "{told}");
    assert_ne!(advice.recommendation.row.map(|row| advice.rows[row].kind), Some(Kind::TrimAtOnce));
    assert!(with_discards.rows.iter().all(|row| row.kind != Kind::TrimAtOnce), "there is no map");
}

#[test]
fn the_dram_of_a_drive_with_a_mapping_cache_goes_to_whom_it_helps() {
    // Random pages need the map; few pages that are written again and again need the buffer, which holds them all at a map of 10 %.
    let mut random = Random::new(13);
    let (_spread, spread) = trace((0..100_000).map(move |_| (random.below(32_768), 1)));
    let mut random = Random::new(13);
    let (_few, few) = trace((0..400_000u64).map(move |at| match at % 10 {
        0 => (random.below(32_768), 1),
        _ => (32_768 + random.below(256), 1),
    }));
    let simulated = |trace: &TraceSource, bytes: u64| {
        let question = question(trace, 0.9);
        let pages = if std::ptr::eq(trace, &spread) { 32_768u64 } else { 33_024 };
        let share = (pages as f64 / 0.9).ceil() * PAGE_BYTES as f64 / question.drive.capacity_bytes as f64;
        let dram_bytes = Some((bytes as f64 / share) as u64);
        Question { ftl: PolicyName::plain("dftl"), dram_bytes, exhaustive: false, ..question }
    };
    for (question, split) in [(simulated(&spread, 64 << 10), "90%"), (simulated(&few, 1400 << 10), "10%")] {
        let advice = advise(&question, Beside::default(), &Control::default()).unwrap();
        let fixed = best(&advice, Kind::FixedSplit);
        assert!(fixed.what.contains(split), "{}", fixed.what);
        assert!(fixed.spec_toml.contains(&format!("split = \"{split}\"")), "{}", fixed.spec_toml);
        assert!(wa(fixed) < 0.99 * wa(&advice.rows[0]), "{} against {}", wa(fixed), wa(&advice.rows[0]));
        let adaptive = best(&advice, Kind::AdaptiveSplit);
        assert!(wa(adaptive) < wa(&advice.rows[0]), "{} against {}", wa(adaptive), wa(&advice.rows[0]));
        // A buffer takes from the map; what it lets through has a future of its own.
        assert!(advice.rows.iter().all(|row| !matches!(row.kind, Kind::WriteBuffer | Kind::KnowsFuture)));
    }
    let ask = |question: &Question| advise(question, Beside::default(), &Control::default());
    let whole = Question { dram_bytes: Some(2 << 30), exhaustive: false, ..question(&spread, 0.9) };
    let advice = ask(&whole).unwrap();
    assert!(advice.situation.notes.iter().any(|note| note.contains("no split to search")), "{:?}", advice.situation);
    assert!(!advice.rows.iter().any(|row| matches!(row.kind, Kind::FixedSplit | Kind::AdaptiveSplit)));
    let dftl = Question { ftl: PolicyName::plain("dftl"), ..whole.clone() };
    let problem = |question: Question| ask(&question).unwrap_err().to_string();
    assert!(problem(Question { dram_bytes: None, ..dftl.clone() }).contains("--dram 256MiB"));
    let little = problem(Question { dram_bytes: Some(4 << 20), ..dftl });
    assert!(little.starts_with("--dram: on the drive as it is simulated, at 1:"), "{little}");
    assert!(problem(Question { ftl: PolicyName::plain("fast"), ..whole }).starts_with("--ftl: fast places"));
}

#[test]
fn a_trace_that_is_too_short_gets_no_recommendation() {
    let mut random = Random::new(9);
    let (_file, trace) = trace((0..24_000u64).map(move |at| (if at < 16_384 { at } else { random.below(16_384) }, 1)));
    // The drive is 50 times as large as what is traced of it.
    let advice =
        advise(&Question { untouched: 0.98, ..question(&trace, 1.0) }, Beside::default(), &Control::default()).unwrap();
    assert!(!advice.rows[0].valid);
    let text = &advice.recommendation.text;
    assert!(advice.recommendation.row.is_none() && text.contains("GiB of this workload"), "{text}");
}

#[test]
fn the_same_question_has_the_same_answer_to_the_byte() {
    let (_, trace, advice) = advised_wal_and_tree();
    let text = |advice: &Advice| serde_json::to_string(advice).unwrap();
    assert_eq!(text(&answer(trace, 1.0)), text(advice));
}
