//! From a question to its answer: the drive as it is, changes one by one, the best of them together, a placement that knows the future.

use crate::advice::{ADVICE_VERSION, Advice, PROMISE_TOLERANCE, Promise, Row, recommend};
use crate::beside::Beside;
use crate::candidates::{candidates, combinations, every_combination, knows_future};
use crate::change::{Change, Kind};
use crate::choice::{best, best_of_each_kind};
use crate::copies::Copies;
use crate::files::FileMap;
use crate::freed::Freed;
use crate::groups::{self, Group};
use crate::handles;
use crate::life::LifeInputs;
use crate::plan::Plan;
use crate::question::{PAGE_BYTES, Question, Situation};
use crate::search::{Candidate, Dropped, Search, Tried};
use crate::smart::Calibration;
use crate::view::View;
use crate::watch::{Watched, watch};
use isotherm::nand::timing::TimeMode;
use isotherm::registry::{PolicyName, SpecError};
use isotherm_eval::results::TraceSummary;
use isotherm_eval::{Control, EvalError, Policies, Survey, SurveyKey, prepare};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that are told.
const FILES_MAX: usize = 24;
/// Drive writes of a trace that would be enough.
const DRIVE_WRITES_ENOUGH: f64 = 1.0;
/// Over-provisionings that are tried to explain what a real drive measured.
const SPARES_OF_CALIBRATION: [f64; 6] = [0.04, 0.07, 0.15, 0.28, 0.50, 1.0];

/// Answers a question.
///
/// # Errors
/// A value is out of range; the trace cannot be read, says too little or holds more than the drive; the drive's firmware does not exist;
/// the user stopped.
pub fn advise(question: &Question, beside: Beside, control: &Control) -> Result<Advice, EvalError> {
    question.check()?;
    control.begin("reading the trace");
    let profile = question.trace.profile(PAGE_BYTES)?;
    let trace = TraceSummary::from(&profile);
    let survey = SurveyKey { trace: question.trace.clone(), page_bytes: PAGE_BYTES, touched: true }.survey()?;
    let mut situation = question.situation(&survey, trace.trims > 0)?;
    control.go_on()?;
    let two_thirds = trace.requests - trace.requests / 3;
    let learnt = View { part: Some(0..two_thirds), ..View::default() }.of(&question.trace);
    let watched = watch(&learnt, &survey, PAGE_BYTES)?;
    let regions = handles::regions(&watched);
    let mut search =
        Search { question, situation: &situation, survey: &survey, control, dropped: Vec::new(), runs: 0, pages: 0 };

    let as_it_is = Candidate { kind: Kind::AsItIs, what: "as it is".to_owned(), change: Change::default() };
    // The drive as it is has to be possible: what is wrong with it is wrong with the question.
    prepare(&as_it_is.change.run(question, &situation, &question.trace, &survey), Some(&survey))?;
    control.begin("the drive as it is");
    let base = search.in_full(vec![as_it_is])?;
    if base.is_empty() {
        return Err(impossible(&situation, &search.dropped).into());
    }
    let freed = match (&beside.file_map, survey.touched.as_deref()) {
        (Some(map), Some(touched)) => Freed::of(&question.trace, touched, PAGE_BYTES, map)?,
        _ => None,
    };
    let freed_share = freed.as_ref().map(|freed| freed.pages as f64 / situation.touched_pages as f64);
    let candidates = candidates(question, &situation, &watched, &regions, freed);
    let every_plan = question.exhaustive.then(|| every_combination(&candidates));
    control.begin(format!("{} changes", candidates.len()));
    let chosen = search.screen(candidates)?;
    let tried = search.in_full(chosen)?;
    let mut told = best_of_each_kind(&tried);
    let combinations = every_plan.unwrap_or_else(|| combinations(&tried, &situation));
    control.begin(format!("{} combinations of the best changes", combinations.len()));
    // The best of the host alone, and the best of all.
    let (by_both, by_host): (Vec<Tried>, Vec<Tried>) =
        search.in_full(combinations)?.into_iter().partition(|tried| tried.candidate.change.is_of_drive());
    told.extend([best(&by_host), best(&by_both)].into_iter().flatten());
    control.begin("latencies of the best changes");
    let (timed, mode) = search.latencies(&base.iter().chain(&told).collect::<Vec<_>>())?;
    // What a buffer lets through, and when, depends on more than the trace: its future is not known.
    if situation.dram_bytes.is_none() {
        control.begin("a placement that knows the future");
        told.extend(best(&search.in_full(knows_future(question, &tried))?));
    }
    let latencies = timed.into_iter().chain([None]);
    control.begin("what plans keep of their promises");

    let drive_life = LifeInputs::new(&question.drive, trace.written_bytes, trace.duration_ns, question.scale_rate);
    let mut plans: Vec<Plan> = Vec::new();
    let mut rows = Vec::new();
    for (tried, write_p999_ns) in base.iter().chain(&told).zip(latencies) {
        let mut row = Row::new(tried, &drive_life, tried.candidate.change.price(question));
        row.write_p999_ns = write_p999_ns;
        if let Some(plan) = &tried.candidate.change.plan {
            let known = plans.iter().position(|known| known == &**plan);
            row.plan = Some(known.unwrap_or_else(|| {
                plans.push((**plan).clone());
                plans.len() - 1
            }));
            row.promise = promise(&mut search, &base[0], tried, &watched)?;
            if let Some(promise) = row.promise.filter(|promise| !promise.is_kept) {
                row.trust = format!(
                    "not kept: {:.2} of the writes on the first two thirds of the trace, {:.2} on the last",
                    promise.ratio, promise.ratio_kept
                );
            }
        }
        rows.push(row);
    }
    let wanted = (DRIVE_WRITES_ENOUGH * situation.logical_pages as f64) as u64 * PAGE_BYTES;
    let recommendation = recommend(&rows, &situation, wanted);
    let plan = recommendation.row.and_then(|row| rows[row].plan).map(|plan| &plans[plan]);
    let (ranges, files) = describe(&mut search, beside.file_map.as_ref(), &watched, &regions, plan)?;
    let calibration = match beside.calibration {
        Some(calibration) => Some(calibrated(&mut search, calibration, &rows)?),
        None => None,
    };
    let (runs, pages_replayed, dropped) = (search.runs, search.pages, search.dropped);
    if situation.has_trims && rows.iter().all(|row| row.price.capacity == 0.0) {
        situation.notes.push(
            "the trace has discards, so that what is free is spare space already: to export less of the drive would change nothing"
                .to_owned(),
        );
    }
    if let Some(map) = &beside.file_map {
        situation.notes.extend(notes_of_map(map, &situation, freed_share));
    }
    situation.notes.extend(match mode {
        Some(TimeMode::Open) => Some("P99.9 is at the trace's own times, on 64 planes that work side by side".to_owned()),
        Some(_) => Some(
            "P99.9 is with 32 requests outstanding, on 64 planes that work side by side: the drive cannot keep up with the trace's own \
             times"
                .to_owned(),
        ),
        None => None,
    });
    Ok(Advice {
        advice_version: ADVICE_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        drive: question.drive.name.to_owned(),
        firmware: format!("{}, {}, {}", question.ftl, question.placement, question.victim),
        life_inputs: drive_life,
        rows,
        recommendation,
        plans,
        ranges,
        files,
        calibration,
        runs,
        pages_replayed,
        dropped,
        trace,
        situation,
    })
}

/// Why the drive as it is cannot be built: what it was dropped for.
fn impossible(situation: &Situation, dropped: &[Dropped]) -> SpecError {
    let reason = dropped.last().map_or("it cannot be built", |dropped| dropped.reason.as_str());
    match situation.dram_bytes {
        Some(_) => SpecError::new(
            "--dram",
            format!("on the drive as it is simulated, at 1:{:.0}, {reason}", 1.0 / situation.scale),
            "all of this is at the drive's scale: give a trace that touches more of it, or more DRAM",
        ),
        None => SpecError::new("the drive as it is", reason, "choose another --placement, --victim or --drive"),
    }
}

/// How far a map of the files can be trusted, and what is made of it.
fn notes_of_map(map: &FileMap, situation: &Situation, freed_share: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    if map.is_of_log {
        let last = (situation.touched_pages as f64 / situation.page_writes as f64).min(1.0);
        notes.push(format!(
            "the map is that of a log, whose files move with every write: it says what lay where at one moment, and at most {:.0} % of \
             what the trace wrote still lay there then; the rest is told of the files that took its place",
            last * 100.0
        ));
    }
    if let Some(share) = freed_share {
        notes.push(format!(
            "{:.0} % of what the trace touches belongs to no file of the map; \"trim at once\" takes it as deleted, and as discarded after \
             the trace's last use of it. That is an estimate: the map is taken to be complete and of the end of the trace, so that \
             metadata of the file system and files that are left out count as deleted, and what was deleted and written again \
             within the trace does not",
            share * 100.0
        ));
    }
    notes
}

/// What a plan promises on the first two thirds of the trace, and what becomes of it on the last: on a drive that has come to a
/// steady state under it.
fn promise(
    search: &mut Search<'_>,
    base: &Tried,
    tried: &Tried,
    watched: &Watched,
) -> Result<Option<Promise>, EvalError> {
    let whole = search.situation.page_writes;
    let last = whole.saturating_sub(watched.page_writes);
    if last == 0 {
        return Ok(None);
    }
    let both = search.last_third(&[base, tried], last)?;
    let [Some(base_last), Some(tried_last)] = both[..] else { return Ok(None) };
    // The first two thirds are what is left of the last replay.
    let first = |tried: &Tried, last_third: f64| {
        let replay = tried.run.verdict.write_amplification_replays.last().copied().flatten()?;
        Some((replay * whole as f64 - last_third * last as f64) / (whole - last) as f64)
    };
    let (Some(base_first), Some(tried_first)) = (first(base, base_last), first(tried, tried_last)) else {
        return Ok(None);
    };
    let (ratio, ratio_kept) = (tried_first / base_first, tried_last / base_last);
    Ok(Some(Promise { ratio, ratio_kept, is_kept: ratio_kept <= ratio * (1.0 + PROMISE_TOLERANCE) }))
}

/// The ranges and the files, with the copies that the drive as it is makes of them.
fn describe(
    search: &mut Search<'_>,
    map: Option<&FileMap>,
    watched: &Watched,
    regions: &[handles::Region],
    plan: Option<&Plan>,
) -> Result<(Vec<Group>, Vec<Group>), EvalError> {
    let survey: &Survey = search.survey;
    let Some(touched) = survey.touched.as_deref() else { return Ok((Vec::new(), Vec::new())) };
    let (mut ranges, of_page) = groups::of_regions(watched, regions, touched);
    let (mut files, of_file) =
        map.map_or_else(Default::default, |map| groups::of_files(watched, map, touched, FILES_MAX));
    let is_apart = search.question.placement.name == "host_gc";
    if is_apart || search.question.placement.name == "single" {
        for (groups, of_page) in [(&mut ranges, of_page), (&mut files, of_file)] {
            if groups.is_empty() {
                continue;
            }
            let copies = Arc::new(Mutex::new(Copies::new(of_page, groups.len(), is_apart)));
            let mut spec = Change::default().run(search.question, search.situation, &search.question.trace, survey);
            spec.device.placement.name = PolicyName::plain("external");
            spec.policies = Policies { placement: Some(copies.clone()), victim: None };
            prepare(&spec, Some(survey))?.run(search.control)?;
            search.runs += 1;
            let counted = copies.lock().unwrap_or_else(PoisonError::into_inner);
            // Those of preconditioning and of the first replays too: all are copies of the drive as it is.
            groups::add_copies(groups, &counted, counted.all);
        }
    }
    if let Some(plan) = plan {
        for group in &mut ranges {
            group.handle = group.start_bytes.and_then(|start| plan.handle_at(start));
        }
    }
    Ok((ranges, files))
}

/// A real drive beside the simulated one, with other spare space.
fn calibrated(search: &mut Search<'_>, calibration: Calibration, rows: &[Row]) -> Result<Calibration, EvalError> {
    let simulated = rows.first().and_then(|row| row.write_amplification_bytes);
    if calibration.write_amplification.is_none() {
        return Ok(calibration.beside(simulated, &[]));
    }
    let spares = SPARES_OF_CALIBRATION.map(|spare| {
        // A drive of the same capacity: more spare space is more flash.
        let change = Change { over_provisioning: Some(spare), ..Change::default() };
        Candidate { kind: Kind::OverProvisioning, what: format!("OP {:.0} %", spare * 100.0), change }
    });
    let tried = search.in_full(spares.to_vec())?;
    let others: Vec<(f64, f64)> = tried
        .iter()
        .filter_map(|tried| Some((tried.candidate.change.over_provisioning?, tried.write_amplification_bytes())))
        .collect();
    Ok(calibration.beside(simulated, &others))
}
