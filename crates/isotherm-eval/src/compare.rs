//! The comparison: every placement with every victim policy at every over-provisioning, best first.

use crate::pool::Job;
use crate::results::RunResult;
use crate::run::RunSpec;
use isotherm::quantity::Share;
use isotherm::registry::{PolicyName, SpecError};
use isotherm::spec::DeviceSpec;
use serde_json::{Map, Value};

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
    pub fn apply(self, spec: &mut DeviceSpec) {
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

/// What is compared. An empty list means what the base specification says.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Placements.
    pub placements: Vec<PolicyName>,
    /// Victim policies.
    pub victims: Vec<PolicyName>,
    /// Over-provisionings.
    pub spares: Vec<Spare>,
}

/// Parses a comma list of policies. Parameters use commas too: a part with `=` and no `:` before it belongs to the policy
/// before it, as in `epoch:length=2,gc=extra,host_gc`.
///
/// # Errors
/// An empty list, or a policy that cannot be parsed.
pub fn policy_list(option: &str, text: &str) -> Result<Vec<PolicyName>, SpecError> {
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
        return Err(SpecError::new(option, "the list is empty", "name at least one, see isotherm list"));
    }
    policies.iter().map(|p| p.parse()).collect()
}

/// The cartesian product of `grid` over `base`.
pub fn jobs(base: &RunSpec, grid: &Grid) -> Vec<Job> {
    let or_base =
        |list: &[PolicyName], base: &PolicyName| if list.is_empty() { vec![base.clone()] } else { list.to_vec() };
    let placements = or_base(&grid.placements, &base.device.placement.name);
    let victims = or_base(&grid.victims, &base.device.gc.victim);
    let spares: Vec<Option<Spare>> =
        if grid.spares.is_empty() { vec![None] } else { grid.spares.iter().copied().map(Some).collect() };
    let mut jobs = Vec::new();
    for placement in &placements {
        for victim in &victims {
            for spare in &spares {
                let mut spec = base.clone();
                spec.device.placement.name = placement.clone();
                spec.device.gc.victim = victim.clone();
                let mut axes = Map::new();
                axes.insert("placement".to_owned(), Value::from(placement.to_string()));
                axes.insert("victim".to_owned(), Value::from(victim.to_string()));
                let mut label = vec![placement.to_string()];
                if victims.len() > 1 {
                    label.push(victim.to_string());
                }
                if let Some(spare) = spare {
                    spare.apply(&mut spec.device);
                    axes.insert("over_provisioning".to_owned(), Value::from(spare.text()));
                    if spares.len() > 1 {
                        label.push(spare.text());
                    }
                }
                jobs.push(Job { spec, label: label.join(", "), axes });
            }
        }
    }
    jobs
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

    fn names(text: &str) -> Vec<String> {
        policy_list("--placement", text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commas_separate_policies_and_their_parameters() {
        assert_eq!(names("single,host_gc, epoch"), ["single", "host_gc", "epoch"]);
        assert_eq!(names("epoch:length=2,gc=extra,host_gc"), ["epoch:length=2,gc=extra", "host_gc"]);
        assert_eq!(names("hotness:mbf,filters=8,single"), ["hotness:mbf,filters=8", "single"]);
        assert_eq!(names("a:x=1,b:y=2,z=3"), ["a:x=1", "b:y=2,z=3"]);
        assert_eq!(names("ranges:hot=0:1GiB,x=2"), ["ranges:hot=0:1GiB,x=2"]);
        assert!(policy_list("--placement", " , ").is_err());
    }

    #[test]
    fn the_product_names_what_varies() {
        let base = RunSpec {
            trace: crate::source::TraceSource::new("synth:uniform"),
            device: DeviceSpec::default(),
            replay: crate::run::Replay::default(),
            seed: 1,
        };
        let grid = Grid {
            placements: policy_list("--placement", "single,host_gc").unwrap(),
            victims: Vec::new(),
            spares: vec![Spare::OverProvisioning(Share(0.07)), Spare::SpareFactor(Share(0.15))],
        };
        let jobs = jobs(&base, &grid);
        let labels: Vec<_> = jobs.iter().map(|j| j.label.as_str()).collect();
        assert_eq!(labels, ["single, OP 7 %", "single, spare 15 %", "host_gc, OP 7 %", "host_gc, spare 15 %"]);
        assert_eq!(jobs[1].spec.device.device.spare, Some(Share(0.15)));
        assert_eq!(jobs[1].spec.device.device.over_provisioning, None);
        assert_eq!(jobs[3].axes["victim"], "greedy");
    }
}
