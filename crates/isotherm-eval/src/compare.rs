//! The comparison: every combination of the policies that are named, best first.

use crate::estimate::estimate;
use crate::pool::Job;
use crate::results::{Replicates, RunResult};
use crate::run::RunSpec;
use isotherm::build::ftl_design;
use isotherm::ftl::Design as _;
use isotherm::quantity::Share;
use isotherm::registry::{PolicyName, SpecError};
use isotherm::spec::FtlSection;
use isotherm_sfs::{NO_DEVICE, SystemSpec, check_below, check_names};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Over-provisioning in one of its two definitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spare {
    /// (T-U)/U.
    OverProvisioning(Share),
    /// (T-U)/T.
    SpareFactor(Share),
}

impl Spare {
    /// Puts it into a specification, in place of whatever stood there.
    pub fn apply(self, spec: &mut SystemSpec) {
        (spec.device.over_provisioning, spec.device.spare) = match self {
            Self::OverProvisioning(share) => (Some(share), None),
            Self::SpareFactor(share) => (None, Some(share)),
        };
    }

    fn text(self) -> String {
        let per_cent = |share: Share| format!("{} %", (share.0 * 1e6).round() / 1e4);
        match self {
            Self::OverProvisioning(share) => format!("OP {}", per_cent(share)),
            Self::SpareFactor(share) => format!("spare {}", per_cent(share)),
        }
    }
}

/// One way to make one part of the device.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// The log-structured file system on top.
    Log(PolicyName),
    /// The FTL below the log.
    Below(PolicyName),
    /// The FTL.
    Ftl(PolicyName),
    /// The write buffer's policy.
    Buffer(PolicyName),
    /// How the DRAM is split.
    Split(PolicyName),
    /// The placement.
    Placement(PolicyName),
    /// The victim policy.
    Victim(PolicyName),
    /// The over-provisioning.
    Spare(Spare),
}

/// Makes a choice of a value as the user writes it.
type ReadChoice = fn(&str) -> Result<Choice, SpecError>;

/// Keys that a comparison takes several values of, in the order in which they multiply: whoever asks for values of a key asks
/// here whether it is one of them.
pub const VARIED: [(&str, ReadChoice); 9] = [
    ("log.name", |text| text.parse().map(Choice::Log)),
    ("log.below", |text| text.parse().map(Choice::Below)),
    ("ftl.name", |text| text.parse().map(Choice::Ftl)),
    ("dram.buffer", |text| text.parse().map(Choice::Buffer)),
    ("dram.split", |text| text.parse().map(Choice::Split)),
    ("placement.name", |text| text.parse().map(Choice::Placement)),
    ("gc.victim", |text| text.parse().map(Choice::Victim)),
    ("device.over_provisioning", |text| share(text).map(|share| Choice::Spare(Spare::OverProvisioning(share)))),
    ("device.spare", |text| share(text).map(|share| Choice::Spare(Spare::SpareFactor(share)))),
];

fn share(text: &str) -> Result<Share, SpecError> {
    text.parse().map_err(|problem: String| SpecError::new(text, problem, "write for example 7%"))
}

impl Choice {
    /// The axis along which it varies.
    fn axis(&self) -> &'static str {
        match self {
            Self::Log(_) => "log",
            Self::Below(_) => "below",
            Self::Ftl(_) => "ftl",
            Self::Buffer(_) => "buffer",
            Self::Split(_) => "split",
            Self::Placement(_) => "placement",
            Self::Victim(_) => "victim",
            Self::Spare(_) => "over_provisioning",
        }
    }

    /// It, as labels have it.
    pub fn text(&self) -> String {
        match self {
            Self::Log(name)
            | Self::Below(name)
            | Self::Ftl(name)
            | Self::Buffer(name)
            | Self::Split(name)
            | Self::Placement(name)
            | Self::Victim(name) => name.to_string(),
            Self::Spare(spare) => spare.text(),
        }
    }

    /// Puts it into a specification.
    pub fn apply(&self, spec: &mut SystemSpec) {
        match self {
            Self::Log(name) => spec.log.get_or_insert_default().name = name.clone(),
            Self::Below(name) => spec.log.get_or_insert_default().below = name.clone(),
            Self::Ftl(name) => spec.ftl.name = name.clone(),
            Self::Buffer(name) => spec.dram.buffer = Some(name.clone()),
            Self::Split(name) => spec.dram.split = Some(name.clone()),
            Self::Placement(name) => spec.placement.name = name.clone(),
            Self::Victim(name) => spec.gc.victim = name.clone(),
            Self::Spare(spare) => spare.apply(spec),
        }
    }

    /// Takes it out of a specification that has no use for it and would refuse it.
    fn withdraw(&self, spec: &mut SystemSpec) {
        if matches!(self, Self::Split(_)) {
            spec.dram.split = None;
        }
    }

    /// Whether it is only ever given on purpose: then some device should have a use for it.
    fn is_given(&self) -> bool {
        matches!(self, Self::Buffer(_) | Self::Split(_) | Self::Spare(_))
    }

    /// Who decides instead, where the device of `spec` has no use for this choice: FTLs that bring their own policies, and a
    /// log over nothing, have one run where others have one for each choice.
    fn decided_by(&self, spec: &SystemSpec) -> Result<Option<String>, SpecError> {
        let below = spec.log.as_ref().map(|log| &log.below);
        if below.is_some_and(|below| below.name == NO_DEVICE) {
            let is_below = !matches!(self, Self::Log(_) | Self::Below(_) | Self::Ftl(_));
            return Ok(is_below.then(|| "nothing below".to_owned()));
        }
        if matches!(self, Self::Split(_)) && !spec.dram.has_buffer() {
            return Ok(Some("no buffer".to_owned()));
        }
        let name = below.unwrap_or(&spec.ftl.name);
        // With the default policies, which every FTL takes.
        let plain = SystemSpec { ftl: FtlSection { name: name.clone() }, ..SystemSpec::default() };
        let uses = ftl_design(&plain.ssd())?.uses();
        let has_own = match self {
            Self::Placement(_) => !uses.placement,
            Self::Victim(_) => !uses.victim,
            Self::Split(_) => !uses.shared_dram,
            _ => false,
        };
        Ok(has_own.then(|| format!("own of {name}")))
    }
}

/// A comma list of policies. Parameters use commas too: a part with `=` and no `:` before it belongs to the policy before it, as
/// in `epoch:length=2,gc=extra,host_gc`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyList(pub Vec<PolicyName>);

impl FromStr for PolicyList {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut policies: Vec<String> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let continues = part.find('=').is_some_and(|equals| !part[..equals].contains(':'));
            match policies.last_mut() {
                Some(last) if continues => {
                    last.push(if last.contains(':') { ',' } else { ':' });
                    last.push_str(part);
                }
                _ => policies.push(part.to_owned()),
            }
        }
        if policies.is_empty() {
            return Err(SpecError::new(text, "the list is empty", "name at least one, see isotherm list"));
        }
        policies.iter().map(|p| p.parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// What is compared, and what cannot be.
#[derive(Debug, Default)]
pub struct Combinations {
    /// The combinations, in the order of the axes.
    pub jobs: Vec<Job<RunSpec>>,
    /// Combinations that were named and cannot be, with the reason.
    pub impossible: Vec<(String, SpecError)>,
}

/// Every combination of one choice from each of `axes` over `base`. A choice that the earlier ones make idle is left out, and a
/// combination that is then the same as one before it; axes without a choice say nothing. A log that cannot be over anything
/// that is named (a disk without a device) is impossible; over something else, it is left out.
///
/// # Errors
/// An unknown name, parameters that an FTL refuses, a choice that no device has a use for, or nothing that is possible.
pub fn combine(base: &RunSpec, axes: &[Vec<Choice>]) -> Result<Combinations, SpecError> {
    for choice in axes.iter().flatten() {
        let mut spec = base.device.clone();
        choice.apply(&mut spec);
        check_names(&spec)?;
    }
    let mut rows: Vec<Vec<&Choice>> = vec![Vec::new()];
    for axis in axes.iter().filter(|axis| !axis.is_empty()) {
        rows =
            rows.iter().flat_map(|row| axis.iter().map(move |choice| [row.as_slice(), &[choice]].concat())).collect();
    }
    // What cannot be is left out, unless nothing of a log that was named would remain.
    let cannot_be = |row: &Vec<&Choice>| {
        let mut spec = base.device.clone();
        row.iter().for_each(|choice| choice.apply(&mut spec));
        spec.log.and_then(|log| check_below(&log).err())
    };
    let (rows, impossible): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| cannot_be(row).is_none());
    let remains = |choice: &&Choice| !matches!(choice, Choice::Log(_)) || rows.iter().any(|row| row.contains(choice));
    if let Some(row) = impossible.first().filter(|_| rows.is_empty()) {
        return Err(cannot_be(row).expect("it was found to be impossible"));
    }
    // What lies below, and nothing else, makes a log impossible.
    let named = |row: &[&Choice]| {
        let own = row.iter().filter(|choice| matches!(choice, Choice::Log(_) | Choice::Below(_)));
        own.map(|choice| choice.text()).collect::<Vec<_>>().join(", ")
    };
    let lost = impossible.iter().filter(|row| !row.iter().all(remains));
    let mut impossible: Vec<_> = lost.filter_map(|row| Some((named(row), cannot_be(row)?))).collect();
    impossible.dedup_by(|a, b| a.0 == b.0);
    let varies = |choice: &Choice| axes.iter().any(|axis| axis.len() > 1 && axis.contains(choice));
    let mut used: Vec<&'static str> = Vec::new();
    let mut jobs: Vec<Job<RunSpec>> = Vec::new();
    for row in rows {
        let mut job = Job { spec: base.clone(), label: String::new(), axes: Map::new() };
        let mut label = Vec::new();
        for choice in row {
            let other = choice.decided_by(&job.spec.device)?;
            if other.is_some() {
                choice.withdraw(&mut job.spec.device);
            } else {
                used.push(choice.axis());
                choice.apply(&mut job.spec.device);
                // The placement stands for the device where nothing before it does.
                if varies(choice) || matches!(choice, Choice::Placement(_)) && label.is_empty() {
                    label.push(choice.text());
                }
            }
            let value = other.unwrap_or_else(|| choice.text());
            job.axes.insert(choice.axis().to_owned(), Value::from(value));
        }
        job.label = label.join(", ");
        if job.label.is_empty() {
            let device = &job.spec.device;
            job.label = device.log.as_ref().map_or(&device.ftl.name, |log| &log.name).to_string();
        }
        if jobs.iter().all(|earlier| earlier.label != job.label) {
            jobs.push(job);
        }
    }
    if let Some(idle) = axes.iter().flatten().find(|choice| choice.is_given() && !used.contains(&choice.axis())) {
        let problem = format!("no device that is compared has a use for {}", idle.text());
        return Err(SpecError::new(idle.axis(), problem, "leave it out, or compare devices that have"));
    }
    // An axis of one value, which some devices have no use for, tells no device from another. Placement, victim policy and
    // over-provisioning are told all the same.
    for only in axes.iter().filter(|axis| axis.len() == 1).map(|axis| &axis[0]) {
        let is_told = matches!(only, Choice::Placement(_) | Choice::Victim(_) | Choice::Spare(_));
        if !is_told || jobs.iter().any(|job| job.axes[only.axis()] != only.text()) {
            jobs.iter_mut().for_each(|job| drop(job.axes.shift_remove(only.axis())));
        }
    }
    Ok(Combinations { jobs, impossible })
}

/// Sorts runs best first: least write amplification of the last window, then of the whole run, as means over the seeds of a
/// device. Runs that stopped early or wrote nothing come last; ties keep their order.
pub fn rank(runs: &mut [RunResult]) {
    let mut keys: BTreeMap<String, (bool, f64, f64)> = BTreeMap::new();
    for run in runs.iter() {
        let seeds: Vec<&RunResult> = runs.iter().filter(|other| other.label == run.label).collect();
        let mean = |wa: fn(&RunResult) -> Option<f64>| {
            let sum: f64 = seeds.iter().map(|run| wa(run).unwrap_or(f64::INFINITY)).sum();
            sum / seeds.len() as f64
        };
        let is_stopped = seeds.iter().any(|run| run.stopped.is_some());
        let key = (is_stopped, mean(|run| run.write_amplification_last), mean(|run| run.write_amplification));
        keys.insert(run.label.clone(), key);
    }
    runs.sort_by(|a, b| {
        let (a, b) = (keys[&a.label], keys[&b.label]);
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    });
}

/// Numbers of a run whose means over seeds are told.
const REPLICATED: [&str; 13] = [
    "write_amplification",
    "write_amplification_last",
    "write_amplification_bytes",
    "gc_count",
    "gc_pages_copied",
    "victim_invalid_share_mean",
    "erase_count.total",
    "flash_time_per_host_page_ns",
    "write_throughput_bytes_per_second",
    "latency_ns.read.p99",
    "latency_ns.write.p99",
    "lifetime.terabytes_written_bytes",
    "lifetime.drive_writes_per_day",
];

/// Runs of one label taken together, in the order of the runs; nothing where every device ran once.
///
/// # Panics
/// If a result is no JSON (a bug).
pub fn replicates(runs: &[RunResult]) -> Vec<Replicates> {
    let mut groups: Vec<(&str, Vec<&RunResult>)> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|(label, _)| *label == run.label) {
            Some((_, group)) => group.push(run),
            None => groups.push((&run.label, vec![run])),
        }
    }
    if groups.iter().all(|(_, group)| group.len() == 1) {
        return Vec::new();
    }
    let taken_together = |(label, group): (&str, Vec<&RunResult>)| {
        let results: Vec<Value> =
            group.iter().map(|run| serde_json::to_value(run).expect("results have string keys")).collect();
        let number = |result: &Value, key: &str| key.split('.').try_fold(result, |at, part| at.get(part))?.as_f64();
        let of = |key: &&str| {
            let values: Vec<f64> = results.iter().filter_map(|result| number(result, key)).collect();
            Some(((*key).to_owned(), estimate(&values)?))
        };
        let mut axes = group[0].axes.clone();
        axes.shift_remove("seed");
        Replicates {
            label: label.to_owned(),
            axes,
            seeds: group.iter().map(|run| run.seed).collect(),
            values: REPLICATED.iter().filter_map(of).collect(),
        }
    };
    groups.into_iter().map(taken_together).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<PolicyName> {
        text.parse::<PolicyList>().unwrap().0
    }

    fn names(text: &str) -> Vec<String> {
        list(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commas_separate_policies_and_their_parameters() {
        assert_eq!(names("single,host_gc, epoch"), ["single", "host_gc", "epoch"]);
        assert_eq!(names("epoch:length=2,gc=extra,host_gc"), ["epoch:length=2,gc=extra", "host_gc"]);
        assert_eq!(names("hotness:mbf,filters=8,single"), ["hotness:mbf,filters=8", "single"]);
        assert_eq!(names("a:x=1,b:y=2,z=3"), ["a:x=1", "b:y=2,z=3"]);
        assert_eq!(names("ranges:hot=0:1GiB,x=2"), ["ranges:hot=0:1GiB,x=2"]);
        assert!(" , ".parse::<PolicyList>().is_err());
    }

    fn base() -> RunSpec {
        RunSpec {
            trace: crate::source::TraceSource::new("synth:uniform"),
            device: SystemSpec::default(),
            replay: crate::run::Replay::default(),
            seed: 1,
            policies: crate::run::Policies::default(),
        }
    }

    fn choices(text: &str, choice: fn(PolicyName) -> Choice) -> Vec<Choice> {
        list(text).into_iter().map(choice).collect()
    }

    fn labels(jobs: &[Job<RunSpec>]) -> Vec<&str> {
        jobs.iter().map(|job| job.label.as_str()).collect()
    }

    #[test]
    fn the_product_names_what_varies() {
        let spares = [Spare::OverProvisioning(Share(0.07)), Spare::SpareFactor(Share(0.15))].map(Choice::Spare);
        let axes = [choices("single,host_gc", Choice::Placement), choices("greedy", Choice::Victim), spares.to_vec()];
        let jobs = combine(&base(), &axes).unwrap().jobs;
        assert_eq!(labels(&jobs), ["single, OP 7 %", "single, spare 15 %", "host_gc, OP 7 %", "host_gc, spare 15 %"]);
        assert_eq!(jobs[1].spec.device.device.spare, Some(Share(0.15)));
        assert_eq!(jobs[1].spec.device.device.over_provisioning, None);
        assert_eq!(jobs[3].axes["victim"], "greedy");
    }

    #[test]
    fn an_ftl_that_brings_its_own_policies_runs_once() {
        let axes = [
            choices("page,asa,fast", Choice::Ftl),
            choices("single,host_gc", Choice::Placement),
            choices("greedy,fifo", Choice::Victim),
        ];
        let jobs = combine(&base(), &axes).unwrap().jobs;
        assert_eq!(
            labels(&jobs),
            [
                "page, single, greedy",
                "page, single, fifo",
                "page, host_gc, greedy",
                "page, host_gc, fifo",
                "asa, greedy",
                "asa, fifo",
                "fast"
            ]
        );
        assert_eq!(jobs[6].spec.device.placement.name, SystemSpec::default().placement.name);
        assert_eq!(jobs[5].axes["placement"], "own of asa");
        let alike = [axes[0].clone(), choices("single", Choice::Placement), choices("greedy", Choice::Victim)];
        let jobs = combine(&base(), &alike).unwrap().jobs;
        assert_eq!(labels(&jobs), ["page", "asa", "fast"]);
        assert!(jobs.iter().all(|job| job.axes.keys().eq(["ftl"])), "{:?}", jobs[2].axes);
        let unknown = [choices("paeg", Choice::Ftl), choices("single", Choice::Placement)];
        assert!(combine(&base(), &unknown).unwrap_err().to_string().contains("paeg"));
    }

    #[test]
    fn a_log_that_lies_over_nothing_it_can_is_told_and_the_others_run() {
        let axes = [choices("sfs,in_place", Choice::Log), choices("none", Choice::Below)];
        let found = combine(&base(), &axes).unwrap();
        assert_eq!(labels(&found.jobs), ["sfs"]);
        assert_eq!(found.impossible.len(), 1);
        assert_eq!(found.impossible[0].0, "in_place, none");
        assert!(combine(&base(), &[choices("in_place", Choice::Log), choices("none", Choice::Below)]).is_err());
    }

    #[test]
    fn a_log_over_nothing_runs_once_whatever_lies_below_elsewhere() {
        let axes = [
            choices("sfs,in_place", Choice::Log),
            choices("none,page", Choice::Below),
            choices("single,host_gc", Choice::Placement),
        ];
        let jobs = combine(&base(), &axes).unwrap().jobs;
        assert_eq!(
            labels(&jobs),
            [
                "sfs, none",
                "sfs, page, single",
                "sfs, page, host_gc",
                "in_place, page, single",
                "in_place, page, host_gc"
            ]
        );
    }
}
