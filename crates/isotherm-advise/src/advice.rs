//! The answer: what each change would do, which one to make, and why it can be trusted.

use crate::change::{Kind, Price};
use crate::groups::Group;
use crate::life::LifeInputs;
use crate::plan::Plan;
use crate::question::Situation;
use crate::search::{Dropped, Tried};
use crate::smart::Calibration;
use isotherm_eval::lifetime::Life;
use isotherm_eval::results::TraceSummary;
use serde::Serialize;

/// Version of the file. It moves when a key changes its meaning or goes away.
pub const ADVICE_VERSION: u32 = 1;
/// A change that saves less than this share of the flash writes is not worth making.
pub const WORTH: f64 = 0.05;
/// What host and drive do together is told where it saves this much more than either alone.
const TELLING: f64 = 0.01;
/// Why what takes another firmware is told and not recommended.
const NOT_OF_THE_HOST: &str = " A host cannot choose the drive's placement or its victim policy";
/// How far a plan may miss its promise on the last third of the trace.
pub const PROMISE_TOLERANCE: f64 = 0.02;

/// What a plan promised on the first two thirds of the trace, and what became of that on the last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// Write amplification over that of the drive as it is, on the first two thirds.
    pub ratio: f64,
    /// The same on the last third, which the plan never saw.
    pub ratio_kept: f64,
    /// Whether it is at most 2 % above.
    pub is_kept: bool,
}

/// One change and what it does.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What is changed.
    pub what: String,
    /// Kind of change.
    pub kind: Kind,
    /// Whether the host does something differently.
    pub is_host: bool,
    /// Whether the drive does, at the same price of flash.
    pub is_drive: bool,
    /// Pages programmed for each page that the host wrote, steady.
    pub write_amplification: Option<f64>,
    /// Bytes programmed for each byte that the host wrote.
    pub write_amplification_bytes: Option<f64>,
    /// Life of the real drive.
    pub life: Option<Life>,
    /// 99.9 % of the writes are at most this slow, on a drive of 64 planes that work side by side, at the trace's own times; none
    /// where the trace has no times, or the drive cannot keep up.
    pub write_p999_ns: Option<u64>,
    /// What it costs in capacity or flash.
    pub price: Price,
    /// Whether the run is valid.
    pub valid: bool,
    /// Why it can be trusted, or cannot.
    pub trust: String,
    /// Where a plan is followed, whether what it promised was kept.
    pub promise: Option<Promise>,
    /// The plan, by number.
    pub plan: Option<usize>,
    /// Specification of the run, as `run --spec` takes it.
    pub spec_toml: String,
    /// The replay, as options of `run`; none where it has no options for it.
    pub replay_options: Option<String>,
}

impl Row {
    /// A row of what was tried.
    pub fn new(tried: &Tried, life: &LifeInputs, price: Price) -> Self {
        let run = &tried.run;
        let wa = Some(tried.write_amplification()).filter(|wa| wa.is_finite());
        let bytes = wa.map(|_| tried.write_amplification_bytes());
        let verdict = &run.verdict;
        let valid = verdict.valid;
        let steady = format!("{:.1} drive writes, steady", verdict.drive_writes);
        let trust = match verdict.reasons.first() {
            Some(reason) => format!("not valid: {reason}"),
            None if verdict.light.is_some() => {
                format!("valid ({steady}, {:.0} % live)", verdict.live_share_peak * 100.0)
            }
            None => format!("valid ({steady})"),
        };
        let change = &tried.candidate.change;
        // Discards that are dropped, or a log above, are not options of a replay.
        let replay_options = (change.discards.is_none() && !change.file_system).then(|| {
            let replay = &tried.replay;
            let mut options = format!(
                "--address {} --fill {} --precondition {} --repeat {} --seed {}",
                replay.address.name(),
                replay.fill,
                replay.precondition.name(),
                replay.repeat,
                run.seed
            );
            if let Some(last) = replay.measure_last {
                options.push_str(&format!(" --measure-last {last}"));
            }
            options
        });
        Self {
            what: tried.candidate.what.clone(),
            kind: tried.candidate.kind,
            is_host: change.plan.is_some() || change.discards.is_some() || change.file_system,
            is_drive: change.is_of_drive(),
            write_amplification: wa,
            write_amplification_bytes: bytes,
            life: bytes.map(|bytes| life.life(bytes)),
            write_p999_ns: None,
            price,
            valid,
            trust,
            promise: None,
            plan: None,
            spec_toml: isotherm::spec::to_toml(&run.spec),
            replay_options,
        }
    }

    /// Whether it can be trusted, in two words.
    pub fn verdict(&self) -> &'static str {
        match (self.valid, self.promise) {
            (false, _) => "not valid",
            (true, Some(promise)) if !promise.is_kept => "not kept",
            (true, Some(_)) => "valid, kept",
            (true, None) => "valid",
        }
    }

    /// Whether it may be recommended at all: it is valid, and keeps what it promises.
    pub fn is_sound(&self) -> bool {
        self.valid && self.promise.is_none_or(|promise| promise.is_kept)
    }
}

/// What to do.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The row that the host should follow; none where nothing that it can do helps, or nothing can be said.
    pub row: Option<usize>,
    /// The row that says what the drive could do alone; none where that does not help.
    pub firmware_row: Option<usize>,
    /// The row that says what host and drive could do together; none where that is no better than either.
    pub together_row: Option<usize>,
    /// The row that says what more spare space would do; none where that does not help.
    pub spare_row: Option<usize>,
    /// What the host should do, and what that does.
    pub text: String,
    /// What else would help, a sentence each.
    pub others: Vec<String>,
}

/// The whole answer.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// [`ADVICE_VERSION`].
    pub advice_version: u32,
    /// Version of isotherm.
    pub version: String,
    /// The trace.
    pub trace: TraceSummary,
    /// Class of the drive.
    pub drive: String,
    /// The firmware that the drive is taken to have: placement and victim policy.
    pub firmware: String,
    /// How the trace relates to the drive.
    pub situation: Situation,
    /// What lives are computed from.
    pub life_inputs: LifeInputs,
    /// Every change, the drive as it is first, what knows the future last.
    pub rows: Vec<Row>,
    /// What to do.
    pub recommendation: Recommendation,
    /// The plans that rows name.
    pub plans: Vec<Plan>,
    /// Ranges of addresses that live alike, as the first two thirds of the trace show them.
    pub ranges: Vec<Group>,
    /// The files that write most, where a map of them was given.
    pub files: Vec<Group>,
    /// A real drive beside the simulated one.
    pub calibration: Option<Calibration>,
    /// What was tried and dropped.
    pub dropped: Vec<Dropped>,
    /// Runs that were made.
    pub runs: u64,
    /// Host page writes that they replayed.
    pub pages_replayed: u64,
}

/// Bytes of flash for a byte of the host.
fn wa(row: &Row) -> f64 {
    row.write_amplification_bytes.unwrap_or(f64::INFINITY)
}

/// What a change does to the drive's life, and what it costs.
fn effect(row: &Row, base: &Row) -> String {
    let years = |row: &Row| row.life.and_then(|life| life.years);
    let life = match (years(base), years(row)) {
        (Some(before), Some(after)) => format!(" ({} in place of {})", time(after), time(before)),
        _ => String::new(),
    };
    let price = match (row.price.capacity, row.price.flash) {
        (capacity, _) if capacity < 0.0 => format!(" It costs {:.0} % of the capacity.", -capacity * 100.0),
        (_, flash) if flash > 0.0 => format!(" It costs {:.0} % more flash.", flash * 100.0),
        _ => String::new(),
    };
    format!(
        "the drive writes {:.2} bytes of flash for a byte of the host in place of {:.2} and lives {:.2} times as long{life}.{price}",
        wa(row),
        wa(base),
        wa(base) / wa(row)
    )
}

/// What follows from the rows. `wanted_bytes` is how much the host would have to write for an answer.
pub fn recommend(rows: &[Row], situation: &Situation, wanted_bytes: u64) -> Recommendation {
    let nothing = |text: String| Recommendation {
        row: None,
        firmware_row: None,
        together_row: None,
        spare_row: None,
        text,
        others: Vec::new(),
    };
    let Some(base) = rows.first() else { return nothing("The drive as it is cannot be simulated.".to_owned()) };
    if !base.valid {
        return nothing(format!(
            "No recommendation, since the run of the drive as it is is {}. A trace in which the host writes {:.1} GiB of this workload \
             or more would be enough.",
            base.trust,
            wanted_bytes as f64 / (1u64 << 30) as f64
        ));
    }
    let saving = |row: &Row| 1.0 - wa(row) / wa(base);
    let best = |may: &dyn Fn(&Row) -> bool| {
        let sound = rows.iter().enumerate().skip(1).filter(|(_, row)| row.is_sound() && may(row));
        sound.min_by(|(_, a), (_, b)| wa(a).total_cmp(&wa(b)))
    };
    let worth = |found: Option<(usize, &'_ Row)>| found.filter(|(_, row)| saving(row) >= WORTH).map(|(at, _)| at);
    let knows_future = |row: &Row| row.kind == Kind::KnowsFuture;
    // What is estimated is told, and never recommended.
    let is_estimate = |row: &Row| row.kind == Kind::TrimAtOnce;
    let is_host = |row: &Row| {
        !knows_future(row) && !is_estimate(row) && row.is_host && !row.is_drive && row.price == Price::default()
    };
    let row = worth(best(&is_host));
    let firmware_row = worth(best(&|row| row.is_drive && !row.is_host && !knows_future(row)));
    let firmware_alone = firmware_row.map_or(f64::INFINITY, |at| wa(&rows[at]));
    let host_alone = row.map_or(f64::INFINITY, |at| wa(&rows[at]));
    // What only a drive of another firmware gives to a host that tags its writes: beside what the host can do alone, it wants a word.
    let with_firmware = worth(best(&|row| row.is_drive && row.is_host && !knows_future(row)))
        .filter(|at| wa(&rows[*at]) < (1.0 - TELLING) * host_alone);
    let together_row = with_firmware.filter(|at| wa(&rows[*at]) < (1.0 - TELLING) * firmware_alone);
    let spare_row = worth(best(&|row| row.kind == Kind::OverProvisioning));
    let what = |row: &Row| row.what.trim_start_matches("+ ").to_owned();
    let text = match row.map(|at| &rows[at]) {
        Some(row) => format!("Change this: {}. Then {}", what(row), effect(row, base)),
        None => {
            let most = best(&is_host).map_or(0.0, |(_, row)| saving(row)).max(0.0);
            format!(
                "Nothing that the host can do helps: no change of its own that can be trusted saves {:.0} % of the flash writes (the \
                 best saves {:.1} %).",
                WORTH * 100.0,
                most * 100.0
            )
        }
    };
    let mut others = Vec::new();
    match firmware_row.map(|at| &rows[at]) {
        Some(row) => others.push(format!("What the drive could do alone: {}; then {}", what(row), effect(row, base))),
        None => others.push("Nothing that the drive could do alone helps.".to_owned()),
    }
    if let Some(row) = together_row.map(|at| &rows[at]) {
        others.push(format!("Host and drive together: {}; then {}{NOT_OF_THE_HOST}.", what(row), effect(row, base)));
    } else if let Some(row) = with_firmware.map(|at| &rows[at]) {
        others.push(format!(
            "Host and drive together: {}; then {}{NOT_OF_THE_HOST}, and what the drive could do alone saves as much or more.",
            what(row),
            effect(row, base)
        ));
    }
    if let Some(row) = spare_row.map(|at| &rows[at]) {
        others.push(format!("More spare space: {}; then {}", what(row), effect(row, base)));
    }
    if let Some(row) = rows.iter().find(|row| is_estimate(row) && row.valid) {
        others.push(format!(
            "If what no file of the map holds were discarded at once, an estimate: {}",
            effect(row, base)
        ));
    }
    if let Some(ahead) = rows.iter().find(|row| knows_future(row) && row.valid) {
        others.push(format!("A placement that knows when each page dies comes to {:.2}.", wa(ahead)));
    }
    if situation.drive_writes_per_replay < crate::question::DRIVE_WRITES_WANTED {
        others.push("The trace is short for this drive: take this as a hint, and trace for longer.".to_owned());
    }
    Recommendation { row, firmware_row, together_row, spare_row, text, others }
}

/// Years as people say them.
pub fn time(years: f64) -> String {
    match years {
        years if years >= 100.0 => "more than 100 years".to_owned(),
        years if years >= 1.0 => format!("{years:.1} years"),
        years if years >= 0.1 => format!("{:.1} months", years * 12.0),
        years => format!("{:.1} days", years * 365.25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITUATION: Situation = Situation {
        logical_pages: 1,
        touched_pages: 1,
        page_writes: 10,
        drive_writes_per_replay: 10.0,
        scale: 1.0,
        has_trims: false,
        dram_bytes: None,
        stale_share: 0.0,
        replays: 3,
        notes: Vec::new(),
    };

    fn row(what: &str, kind: Kind, [is_host, is_drive]: [bool; 2], wa: f64) -> Row {
        Row {
            what: what.to_owned(),
            kind,
            is_host,
            is_drive,
            write_amplification: Some(wa),
            write_amplification_bytes: Some(wa),
            life: None,
            write_p999_ns: None,
            price: Price::default(),
            valid: true,
            trust: String::new(),
            promise: None,
            plan: None,
            spec_toml: String::new(),
            replay_options: None,
        }
    }

    /// A row of the table that saves more than what is recommended is named, with the reason why it is not.
    #[test]
    fn what_takes_another_firmware_is_told_beside_what_the_host_can_do() {
        let with_firmware_at = |wa| {
            let rows = [
                row("as it is", Kind::AsItIs, [false, false], 1.54),
                row("+ handles", Kind::HandlesByAddress, [true, false], 1.41),
                row("+ handles, cost_benefit", Kind::Combination, [true, true], 1.27),
                row("+ firmware", Kind::Firmware, [false, true], wa),
            ];
            recommend(&rows, &SITUATION, 0)
        };
        for (firmware, together_row) in [(1.10, None), (1.40, Some(2))] {
            let found = with_firmware_at(firmware);
            assert_eq!((found.row, found.firmware_row, found.together_row), (Some(1), Some(3), together_row));
            let told =
                found.others.iter().find(|text| text.starts_with("Host and drive together: handles, cost_benefit"));
            let told = told.unwrap_or_else(|| panic!("{:?}", found.others));
            assert!(told.contains("1.27 bytes") && told.contains("A host cannot choose"), "{told}");
            assert_eq!(told.contains("alone saves as much or more"), together_row.is_none(), "{told}");
        }
    }
}
