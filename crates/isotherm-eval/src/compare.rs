//! The comparison: every combination of the policies that are named, best first.

use crate::pool::Job;
use crate::results::RunResult;
use crate::run::RunSpec;
use isotherm::build::ftl_design;
use isotherm::ftl::Design as _;
use isotherm::quantity::Share;
use isotherm::registry::{PolicyName, SpecError};
use isotherm::spec::FtlSection;
use isotherm_sfs::{NO_DEVICE, SystemSpec, check_below, check_names};
use serde_json::{Map, Value};
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

/// Every combination of one choice from each of `axes` over `base`. A choice that the earlier ones make idle is left out, and a
/// combination that is then the same as one before it, or that cannot be (a disk without a device); axes without a choice say
/// nothing.
///
/// # Errors
/// An unknown name, parameters that an FTL refuses, or a choice that no device has a use for.
pub fn jobs(base: &RunSpec, axes: &[Vec<Choice>]) -> Result<Vec<Job<RunSpec>>, SpecError> {
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
    if let Some(row) = impossible.iter().find(|row| rows.is_empty() || !row.iter().all(remains)) {
        return Err(cannot_be(row).expect("it was found to be impossible"));
    }
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
    Ok(jobs)
}

/// Sorts runs best first: least write amplification of the last window, then of the whole run. Runs that stopped early or
/// wrote nothing come last; ties keep their order.
pub fn rank(runs: &mut [RunResult]) {
    let key = |run: &RunResult| {
        let or_last = |wa: Option<f64>| wa.unwrap_or(f64::INFINITY);
        (or_last(run.write_amplification_last), or_last(run.write_amplification))
    };
    runs.sort_by(|a, b| {
        let ((a_last, a_whole), (b_last, b_whole)) = (key(a), key(b));
        let stopped = |run: &RunResult| run.stopped.is_some();
        stopped(a).cmp(&stopped(b)).then(a_last.total_cmp(&b_last)).then(a_whole.total_cmp(&b_whole))
    });
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
        let jobs = jobs(&base(), &axes).unwrap();
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
        let jobs = jobs(&base(), &axes).unwrap();
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
        let jobs = super::jobs(&base(), &alike).unwrap();
        assert_eq!(labels(&jobs), ["page", "asa", "fast"]);
        assert!(jobs.iter().all(|job| job.axes.keys().eq(["ftl"])), "{:?}", jobs[2].axes);
        let unknown = [choices("paeg", Choice::Ftl), choices("single", Choice::Placement)];
        assert!(super::jobs(&base(), &unknown).unwrap_err().to_string().contains("paeg"));
    }

    #[test]
    fn a_log_over_nothing_runs_once_whatever_lies_below_elsewhere() {
        let axes = [
            choices("sfs,in_place", Choice::Log),
            choices("none,page", Choice::Below),
            choices("single,host_gc", Choice::Placement),
        ];
        let jobs = jobs(&base(), &axes).unwrap();
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
