//! Which run of the one file is which of the other.

use super::metrics::{Numbers, numbers};
use anyhow::{Context as _, bail};
use isotherm_eval::files;
use isotherm_eval::results::{ResultsFile, RunResult, SCHEMA_VERSION};
use serde_json::Value;
use std::path::Path;

/// A run with its numbers.
pub struct Run {
    /// The run.
    pub result: RunResult,
    /// Its numbers.
    pub numbers: Numbers,
}

/// Two runs of the same.
pub struct Pair {
    /// What they are.
    pub name: String,
    /// The old run.
    pub old: Run,
    /// The new one.
    pub new: Run,
    /// Keys of the specification that differ, with their values.
    pub differing: Vec<String>,
}

/// The runs that both files have, and the names of those that one has alone.
pub struct Matched {
    /// In the order of the new file.
    pub pairs: Vec<Pair>,
    /// Only in the old file.
    pub only_old: Vec<String>,
    /// Only in the new file.
    pub only_new: Vec<String>,
}

/// Reads a file of `compare` or `sweep`, or the object that `run --json` prints.
pub fn read(path: &Path) -> anyhow::Result<Vec<Run>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read; check the path"))?;
    let fix = "name a results.json of compare or sweep, or what run --json prints";
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{name}: it is no JSON; {fix}"))?;
    let file = if value.get("runs").is_some() {
        files::read_results(path)?
    } else {
        let run: RunResult =
            serde_json::from_value(value).with_context(|| format!("{name}: it is no result; {fix}"))?;
        ResultsFile {
            schema_version: SCHEMA_VERSION,
            version: run.version.clone(),
            command: String::new(),
            traces: Vec::new(),
            experiment: None,
            hotness: Vec::new(),
            replicates: Vec::new(),
            skipped: Vec::new(),
            runs: vec![run],
        }
    };
    if file.runs.is_empty() {
        bail!("{name}: it has no runs; {fix}");
    }
    let numbers = numbers(&file);
    Ok(file.runs.into_iter().zip(numbers).map(|(result, numbers)| Run { result, numbers }).collect())
}

/// The trace's file, wherever it lay; a synthetic workload as a whole.
fn trace_of(run: &Run) -> &str {
    let name = run.result.trace.as_str();
    if name.starts_with("synth:") { name } else { name.rsplit('/').next().unwrap_or(name) }
}

/// What two runs of the same have in common.
fn is_same(old: &Run, new: &Run) -> bool {
    trace_of(old) == trace_of(new) && old.result.label == new.result.label && old.result.seed == new.result.seed
}

/// What a run is called beside others.
fn name_of(run: &Run, all: &[Run]) -> String {
    let mut name = run.result.label.clone();
    if all.iter().any(|other| trace_of(other) != trace_of(run)) && !name.contains(": ") {
        name = format!("{}: {name}", trace_of(run));
    }
    if all.iter().any(|other| other.result.label == run.result.label && other.result.seed != run.result.seed) {
        name.push_str(&format!(", seed {}", run.result.seed));
    }
    name
}

/// Matches runs by trace, label and seed, and by the specification where that leaves several. One run in each file is one pair,
/// whatever it is called.
///
/// # Errors
/// Runs that cannot be told apart.
pub fn matched(old: Vec<Run>, new: Vec<Run>) -> anyhow::Result<Matched> {
    let names: Vec<(String, String)> = {
        let of_old = old.iter().map(|run| name_of(run, &old));
        let of_new: Vec<String> = new.iter().map(|run| name_of(run, &new)).collect();
        of_old
            .zip(std::iter::repeat(String::new()))
            .chain(of_new.into_iter().map(|name| (String::new(), name)))
            .collect()
    };
    let (old_names, new_names) = names.split_at(old.len());
    let is_single = old.len() == 1 && new.len() == 1;
    let mut left: Vec<Option<Run>> = old.into_iter().map(Some).collect();
    let like = |left: &[Option<Run>], new: &Run, exactly: bool| -> Vec<usize> {
        let is_like = |old: &Run| is_same(old, new) && (!exactly || old.result.spec == new.result.spec);
        (0..left.len()).filter(|at| left[*at].as_ref().is_some_and(|old| is_single || is_like(old))).collect()
    };
    // Those with the same specification first, so that the order of the runs does not matter.
    let mut partners: Vec<Option<Run>> =
        new.iter().map(|new| like(&left, new, true).first().and_then(|at| left[*at].take())).collect();
    let alone: Vec<&Run> = new.iter().zip(&partners).filter(|(_, old)| old.is_none()).map(|(new, _)| new).collect();
    for run in &alone {
        let rivals = alone.iter().filter(|other| is_same(other, run)).count();
        let several = like(&left, run, false).len();
        if several > 0 && rivals.max(several) > 1 {
            bail!(
                "{}: {several} runs of the old results and {rivals} of the new have this trace, label and seed, and differ in their \
                 specifications; give the runs labels of their own, with an axis of the sweep for each key that varies",
                name_of(run, &new)
            );
        }
    }
    for (new, partner) in new.iter().zip(&mut partners) {
        if partner.is_none() {
            *partner = like(&left, new, false).first().and_then(|at| left[*at].take());
        }
    }
    let (mut pairs, mut only_new) = (Vec::new(), Vec::new());
    for ((new, partner), (_, name)) in new.into_iter().zip(partners).zip(new_names) {
        match partner {
            Some(old) => {
                let differing = differing(&old.result, &new.result);
                pairs.push(Pair { name: name.clone(), old, new, differing });
            }
            None => only_new.push(name.clone()),
        }
    }
    let only_old =
        left.iter().zip(old_names).filter(|(run, _)| run.is_some()).map(|(_, name)| name.0.clone()).collect();
    Ok(Matched { pairs, only_old, only_new })
}

/// Keys that differ between two runs: specification, replay, trace, seed, version.
fn differing(old: &RunResult, new: &RunResult) -> Vec<String> {
    let flat = |run: &RunResult| {
        let mut flat = Vec::new();
        flatten("", &serde_json::to_value(&run.spec).expect("a specification is JSON"), &mut flat);
        let workload = &run.workload;
        flat.push(("trace".to_owned(), run.trace.clone()));
        flat.push(("seed".to_owned(), run.seed.to_string()));
        flat.push(("replay.address".to_owned(), workload.address.clone()));
        flat.push(("replay.precondition".to_owned(), workload.precondition.clone()));
        flat.push(("replay.repeat".to_owned(), workload.repeat.to_string()));
        flat.push(("version of isotherm".to_owned(), run.version.clone()));
        flat
    };
    let (old, new) = (flat(old), flat(new));
    let value = |all: &[(String, String)], key: &str| {
        all.iter().find(|(known, _)| known == key).map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
    };
    let mut keys: Vec<&String> = old.iter().chain(&new).map(|(key, _)| key).collect();
    keys.dedup();
    let mut told: Vec<String> = Vec::new();
    for key in keys {
        let (before, after) = (value(&old, key), value(&new, key));
        let text = format!("{key} {before} -> {after}");
        if before != after && !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

fn flatten(prefix: &str, value: &Value, flat: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            flatten(&key, value, flat);
        }),
        Value::Null => {}
        Value::String(text) => flat.push((prefix.to_owned(), text.clone())),
        other => flat.push((prefix.to_owned(), other.to_string())),
    }
}
