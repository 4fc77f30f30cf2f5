//! What is tried: every change alone, those that cost nothing together, and a placement that knows the future.

use crate::change::{Change, Kind};
use crate::choice::best_change;
use crate::freed::Freed;
use crate::handles;
use crate::question::{Question, Situation};
use crate::search::{Candidate, Tried};
use crate::watch::Watched;
use isotherm::dram::partition::SPLITS;
use isotherm::placement::{PLACEMENTS, needs_future};
use isotherm::registry::PolicyName;
use isotherm::victim::VICTIMS;
use std::sync::Arc;

/// Over-provisionings that are tried.
const SPARES: [f64; 3] = [0.15, 0.28, 0.50];
/// Write buffers that are tried, over the capacity.
const BUFFERS: [f64; 2] = [0.001, 0.01];
/// The map's shares of the DRAM that are tried, in per cent, where a write buffer has the rest.
const MAP_SHARES: [u32; 5] = [10, 25, 50, 75, 90];
/// The split that stays where it is.
const FIXED: &str = "fixed";
/// Handles that are tried.
const HANDLES: [u16; 7] = [2, 3, 4, 6, 8, 12, 16];
/// Placements that need the host's help, or stand for the drive as it is.
const NOT_FIRMWARE: [&str; 4] = ["ranges", "streams", "offline", "single"];
/// Victim policies that each placement is tried with; one that has the placement's name goes with it too.
const VICTIMS_TRIED: [&str; 2] = ["greedy", "cost_benefit"];
/// Victim policies that a combination is tried with, beside the drive's own.
const VICTIMS_OF_COMBINATIONS: [&str; 2] = ["cost_benefit", "isotherm"];

/// Every change that is tried alone; `freed` is what no file of a map holds.
pub fn candidates(
    question: &Question,
    situation: &Situation,
    watched: &Watched,
    regions: &[handles::Region],
    freed: Option<Freed>,
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
    if let Some(freed) = freed {
        let what = "+ trim at once what no file holds at the end (estimate)".to_owned();
        add(Kind::TrimAtOnce, what, Change { discards: Some(true), freed: Some(Arc::new(freed)), ..Change::default() });
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
    // What is given to a buffer is taken from the map where both share the DRAM.
    for buffer in BUFFERS.into_iter().filter(|_| situation.dram_bytes.is_none()) {
        let what = format!("+ write buffer of {} % of the drive, safe from power loss", buffer * 100.0);
        add(Kind::WriteBuffer, what, Change { buffer: Some(buffer), ..Change::default() });
    }
    if situation.dram_bytes.is_some() {
        let fixed = MAP_SHARES.map(|share| (Kind::FixedSplit, PolicyName::plain(&format!("{share}%"))));
        let rules = SPLITS.iter().filter(|entry| entry.name != FIXED);
        let adaptive = rules.map(|entry| (Kind::AdaptiveSplit, PolicyName::plain(entry.name)));
        for (kind, split) in fixed.into_iter().chain(adaptive).filter(|(_, split)| *split != question.split) {
            let what = match kind {
                Kind::FixedSplit => format!("+ {split} of the DRAM for the map, the rest for writes"),
                _ => format!("+ split of the DRAM by {split}"),
            };
            add(kind, what, Change { split: Some(split), ..Change::default() });
        }
    }
    // A log without free space cannot clean.
    if question.fill <= 0.95 {
        let change = Change { file_system: true, ..Change::default() };
        add(
            Kind::FileSystem,
            "+ SFS in place of the file system's updates, by what reaches its log".to_owned(),
            change,
        );
    }
    all
}

/// Changes that cost nothing, together: trim, with handles or firmware, with other victim policies, with another split.
pub fn combinations(tried: &[Tried], situation: &Situation) -> Vec<Candidate> {
    let trim = (!situation.has_trims).then(|| best_change(tried, &[Kind::Trim])).flatten();
    let handles = best_change(tried, &[Kind::HandlesByAddress, Kind::HandlesBySize, Kind::HandlesBySource]);
    let firmware = best_change(tried, &[Kind::Firmware]);
    let split = best_change(tried, &[Kind::FixedSplit, Kind::AdaptiveSplit]);
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
    if let Some(split) = &split {
        for part in [&handles, &firmware].into_iter().flatten() {
            add(&[&trimmed[..], &[part, split]].concat());
        }
    }
    all
}

/// Every change of the host with every other, and with every victim policy: what the search picks from without looking.
pub fn every_combination(candidates: &[Candidate]) -> Vec<Candidate> {
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
    for split in of(&[Kind::FixedSplit, Kind::AdaptiveSplit]) {
        for part in plans.iter().copied().chain(of(&[Kind::Firmware])) {
            add(&[&trim[..], &[part, split]].concat(), None);
        }
    }
    all
}

/// A placement that knows when each page dies, no bound (others may write less), on a drive that hears of all that any change tells it, under
/// the drive's victim policy and the one that suits such a placement.
pub fn knows_future(question: &Question, tried: &[Tried]) -> Vec<Candidate> {
    let discards = tried.iter().any(|tried| tried.candidate.change.discards == Some(true));
    let of = |victim: Option<&str>| Change {
        discards: discards.then_some(true),
        freed: tried.iter().find_map(|tried| tried.candidate.change.freed.clone()),
        placement: Some(PolicyName::plain("offline")),
        victim: victim.map(PolicyName::plain),
        ..Change::default()
    };
    let candidate = |change| Candidate { kind: Kind::KnowsFuture, what: "knows the future".to_owned(), change };
    let suits = "cost_benefit";
    let other = (question.victim != PolicyName::plain(suits)).then_some(Some(suits));
    [None].into_iter().chain(other).map(of).map(candidate).collect()
}
