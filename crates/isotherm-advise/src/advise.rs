//! From a question to its answer: the drive as it is, changes one by one, the best of them together, the bound.

use crate::advice::{ADVICE_VERSION, Advice, PROMISE_TOLERANCE, Promise, Row, recommend};
use crate::change::{Change, Kind};
use crate::copies::Copies;
use crate::files::FileMap;
use crate::groups::{self, Group};
use crate::handles;
use crate::life::LifeInputs;
use crate::plan::Plan;
use crate::question::{PAGE_BYTES, Question, Situation};
use crate::search::{Candidate, Search, Tried};
use crate::smart::Calibration;
use crate::view::View;
use crate::watch::{Watched, watch};
use isotherm::nand::timing::TimeMode;
use isotherm::placement::{PLACEMENTS, needs_future};
use isotherm::registry::PolicyName;
use isotherm::victim::VICTIMS;
use isotherm_eval::results::TraceSummary;
use isotherm_eval::{Control, EvalError, Policies, Survey, SurveyKey, prepare};
use std::sync::{Arc, Mutex, PoisonError};

/// Over-provisionings that are tried.
const SPARES: [f64; 3] = [0.15, 0.28, 0.50];
/// Write buffers that are tried, over the capacity.
const BUFFERS: [f64; 2] = [0.001, 0.01];
/// Handles that are tried.
const HANDLES: [u16; 7] = [2, 3, 4, 6, 8, 12, 16];
/// Placements that need the host's help, or stand for the drive as it is.
const NOT_FIRMWARE: [&str; 4] = ["ranges", "streams", "offline", "single"];
/// Victim policies that each placement is tried with; one that has the placement's name goes with it too.
const VICTIMS_TRIED: [&str; 2] = ["greedy", "cost_benefit"];
/// Victim policies that a combination is tried with, beside the drive's own.
const VICTIMS_OF_COMBINATIONS: [&str; 2] = ["cost_benefit", "isotherm"];
/// Fewest handles within this of the best are told: more handles cost the application more.
const ENOUGH: f64 = 0.01;
/// Files that are told.
const FILES_MAX: usize = 24;
/// Drive writes of a trace that would be enough.
const DRIVE_WRITES_ENOUGH: f64 = 1.0;
/// Over-provisionings that are tried to explain what a real drive measured.
const SPARES_OF_CALIBRATION: [f64; 6] = [0.04, 0.07, 0.15, 0.28, 0.50, 1.0];

/// What may be given beside the question.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Which file lies where.
    pub file_map: Option<FileMap>,
    /// Counters of a real drive.
    pub calibration: Option<Calibration>,
}

/// Answers a question.
///
/// # Errors
/// The trace cannot be read, says too little or holds more than the drive; the drive's firmware does not exist; the user stopped.
pub fn advise(question: &Question, beside: Beside, control: &Control) -> Result<Advice, EvalError> {
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
    let base = search.in_full(vec![as_it_is])?;
    let candidates = candidates(question, &situation, &watched, &regions);
    let every_plan = question.exhaustive.then(|| every_combination(&candidates));
    let chosen = search.screen(candidates)?;
    let tried = search.in_full(chosen)?;
    let mut told = best_of_each_kind(&tried);
    let combinations = every_plan.unwrap_or_else(|| combinations(&tried, &situation));
    // The best of the host alone, and the best of all.
    let (by_host, by_both): (Vec<Tried>, Vec<Tried>) = search.in_full(combinations)?.into_iter().partition(|tried| {
        let change = &tried.candidate.change;
        change.placement.is_none() && change.victim.is_none()
    });
    told.extend([best(&by_host), best(&by_both)].into_iter().flatten());
    let bound = Change { placement: Some(PolicyName::plain("offline")), ..clairvoyant(&tried) };
    let (timed, mode) = search.latencies(&base.iter().chain(&told).collect::<Vec<_>>())?;
    let bound = Candidate { kind: Kind::Bound, what: "bound: knows when each page dies".to_owned(), change: bound };
    told.extend(search.in_full(vec![bound])?);
    let latencies = timed.into_iter().chain([None]);

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
        firmware: format!("{}, {}", question.placement, question.victim),
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

/// Every change that is tried alone.
fn candidates(
    question: &Question,
    situation: &Situation,
    watched: &Watched,
    regions: &[handles::Region],
) -> Vec<Candidate> {
    let mut all = Vec::new();
    let mut add = |kind, what: String, change| all.push(Candidate { kind, what, change });
    match situation.has_trims {
        true => {
            let change = Change { discards: Some(false), ..Change::default() };
            add(Kind::Trim, "- trim (as without discards)".to_owned(), change);
        }
        false if situation.stale_share > 0.0 => {
            let change = Change { discards: Some(true), ..Change::default() };
            add(Kind::Trim, "+ trim what the file system frees".to_owned(), change);
        }
        false => {}
    }
    let kinds = [
        (Kind::HandlesByAddress, "address", handles::by_address(watched, regions, question.handles_max)),
        (Kind::HandlesBySize, "size of request", handles::by_size(watched, question.handles_max)),
        (Kind::HandlesBySource, "who writes", handles::by_source(watched, question.handles_max)),
    ];
    for (kind, by, plans) in kinds {
        for plan in plans.into_iter().filter(|plan| HANDLES.contains(&plan.handles)) {
            let plan = Arc::new(plan);
            for (copies_apart, how) in [(false, ""), (true, ", copies apart")] {
                let what = format!("+ {} handles by {by}{how}", plan.handles);
                add(kind, what, Change { plan: Some(plan.clone()), copies_apart, ..Change::default() });
            }
        }
    }
    for placement in PLACEMENTS.iter().map(|entry| entry.name) {
        let name = PolicyName::plain(placement);
        if NOT_FIRMWARE.contains(&placement) || needs_future(&name) {
            continue;
        }
        let own = VICTIMS.iter().map(|entry| entry.name).find(|victim| *victim == placement);
        for victim in VICTIMS_TRIED.into_iter().chain(own) {
            let victim = PolicyName::plain(victim);
            if (&name, &victim) == (&question.placement, &question.victim) {
                continue;
            }
            let what = format!("+ firmware: {placement}, {victim}");
            let change = Change { placement: Some(name.clone()), victim: Some(victim), ..Change::default() };
            add(Kind::Firmware, what, change);
        }
    }
    let own = question.drive.over_provisioning();
    for spare in SPARES.into_iter().filter(|spare| *spare > 1.1 * own) {
        let change = Change { over_provisioning: Some(spare), ..Change::default() };
        let price = change.price(question);
        // Capacity that is not used is spare space already, where the drive hears of what is deleted.
        if price.capacity < 0.0 && situation.has_trims {
            continue;
        }
        let cost = match price.capacity < 0.0 {
            true => format!("capacity {:+.0} %", price.capacity * 100.0),
            false => format!("flash {:+.0} %", price.flash * 100.0),
        };
        add(Kind::OverProvisioning, format!("+ OP {:.0} % ({cost})", spare * 100.0), change);
    }
    for buffer in BUFFERS {
        let what = format!("+ write buffer of {} % of the drive, safe from power loss", buffer * 100.0);
        add(Kind::WriteBuffer, what, Change { buffer: Some(buffer), ..Change::default() });
    }
    // A log without free space cannot clean.
    if question.fill <= 0.95 {
        let change = Change { file_system: true, ..Change::default() };
        add(Kind::FileSystem, "+ SFS in place of the file system's updates".to_owned(), change);
    }
    all
}

/// The run that writes least, of those that are valid, or of all where none is.
fn best(tried: &[Tried]) -> Option<Tried> {
    let wa = Tried::write_amplification_bytes;
    tried.iter().min_by(|a, b| b.run.verdict.valid.cmp(&a.run.verdict.valid).then(wa(a).total_cmp(&wa(b)))).cloned()
}

/// What is told of each kind, in the order of the kinds: of firmware the best, of handles two, and the fewest that are about as
/// good as the best; of all others each.
fn best_of_each_kind(tried: &[Tried]) -> Vec<Tried> {
    let mut told = Vec::new();
    let mut kinds: Vec<Kind> = tried.iter().map(|tried| tried.candidate.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of_kind: Vec<Tried> = tried.iter().filter(|tried| tried.candidate.kind == kind).cloned().collect();
        let Some(best) = best(&of_kind) else { continue };
        match kind {
            Kind::Firmware => told.push(best),
            Kind::HandlesByAddress | Kind::HandlesBySize | Kind::HandlesBySource => {
                let handles = |tried: &Tried| tried.candidate.change.plan.as_ref().map_or(0, |plan| plan.handles);
                let enough = of_kind
                    .iter()
                    .filter(|tried| tried.run.verdict.valid == best.run.verdict.valid)
                    .filter(|tried| {
                        tried.write_amplification_bytes() <= best.write_amplification_bytes() * (1.0 + ENOUGH)
                    })
                    .min_by_key(|tried| handles(tried))
                    .unwrap_or(&best);
                let two: Vec<Tried> = of_kind.iter().filter(|tried| handles(tried) == 2).cloned().collect();
                told.extend(self::best(&two).filter(|_| handles(enough) > 2));
                told.push(enough.clone());
            }
            _ => told.extend(of_kind),
        }
    }
    told
}

/// The best valid change of a kind, if it makes anything better than `than`.
fn best_change(tried: &[Tried], kinds: &[Kind]) -> Option<(String, Change)> {
    let of_kinds: Vec<Tried> =
        best_of_each_kind(tried).into_iter().filter(|tried| kinds.contains(&tried.candidate.kind)).collect();
    let best = best(&of_kinds)?;
    let what = best.candidate.what.trim_start_matches("+ ").to_owned();
    Some((what, best.candidate.change))
}

/// Changes that cost nothing, together: trim, with handles or firmware, with other victim policies.
fn combinations(tried: &[Tried], situation: &Situation) -> Vec<Candidate> {
    let trim = (!situation.has_trims).then(|| best_change(tried, &[Kind::Trim])).flatten();
    let handles = best_change(tried, &[Kind::HandlesByAddress, Kind::HandlesBySize, Kind::HandlesBySource]);
    let firmware = best_change(tried, &[Kind::Firmware]);
    let mut all = Vec::new();
    let mut add = |parts: &[&(String, Change)]| {
        let what = parts.iter().map(|part| part.0.as_str()).collect::<Vec<_>>().join(", ");
        let change = parts.iter().fold(Change::default(), |all, part| all.and(&part.1));
        all.push(Candidate { kind: Kind::Combination, what: format!("+ {what}"), change });
    };
    let trimmed: Vec<&(String, Change)> = trim.iter().collect();
    if let (Some(firmware), Some(_)) = (&firmware, &trim) {
        add(&[&trimmed[..], &[firmware]].concat());
    }
    if let Some(handles) = &handles {
        if trim.is_some() {
            add(&[&trimmed[..], &[handles]].concat());
        }
        for victim in VICTIMS_OF_COMBINATIONS {
            let change = Change { victim: Some(PolicyName::plain(victim)), ..Change::default() };
            add(&[&trimmed[..], &[handles, &(format!("victim policy {victim}"), change)]].concat());
        }
    }
    all
}

/// Every change of the host with every other, and with every victim policy: what the search picks from without looking.
fn every_combination(candidates: &[Candidate]) -> Vec<Candidate> {
    let of = |kinds: &[Kind]| candidates.iter().filter(|candidate| kinds.contains(&candidate.kind)).collect::<Vec<_>>();
    let plans = of(&[Kind::HandlesByAddress, Kind::HandlesBySize, Kind::HandlesBySource]);
    let frees = |candidate: &&Candidate| candidate.change.discards == Some(true);
    let trim: Vec<&Candidate> = of(&[Kind::Trim]).into_iter().filter(frees).collect();
    let mut all = Vec::new();
    let mut add = |parts: &[&Candidate], victim: Option<&str>| {
        let mut what: Vec<String> = parts.iter().map(|part| part.what.trim_start_matches("+ ").to_owned()).collect();
        what.extend(victim.map(|victim| format!("victim policy {victim}")));
        let mut change = parts.iter().fold(Change::default(), |all, part| all.and(&part.change));
        change.victim = victim.map(PolicyName::plain).or(change.victim);
        all.push(Candidate { kind: Kind::Combination, what: format!("+ {}", what.join(", ")), change });
    };
    for plan in &plans {
        trim.iter().for_each(|trim| add(&[trim, plan], None));
        for victim in VICTIMS_OF_COMBINATIONS {
            match trim.first() {
                Some(trim) => add(&[trim, plan], Some(victim)),
                None => add(&[plan], Some(victim)),
            }
        }
    }
    for firmware in of(&[Kind::Firmware]) {
        trim.iter().for_each(|trim| add(&[trim, firmware], None));
    }
    all
}

/// What the bound takes over: what the drive hears of.
fn clairvoyant(tried: &[Tried]) -> Change {
    let discards = tried.iter().any(|tried| tried.candidate.change.discards == Some(true));
    Change { discards: discards.then_some(true), ..Change::default() }
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
