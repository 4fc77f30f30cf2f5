//! Runs, comparisons, validation, hot data identification: the verbs of the command line, as functions.

use crate::catalogue::parse;
use crate::errors;
use crate::policies::{Raised, policies, raised};
use crate::results::Results;
use crate::trace::Trace;
use crate::watch::watched;
use isotherm::quantity::ByteSize;
use isotherm::registry::PolicyName;
use isotherm::spec;
use isotherm_eval::compare::{Choice, VARIED, rank, replicates};
use isotherm_eval::comparison::{Comparison, short_names};
use isotherm_eval::hotness as schemes_of;
use isotherm_eval::results::{ResultsFile, Skipped};
use isotherm_eval::validate::{Depth, Validation};
use isotherm_eval::{
    Control, EvalError, Policies, Replay, ReplaySpec, RunSpec, files, needs_survey, prepare, run_each, survey,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// How a trace is brought to the device, from keys that are set.
fn replay(sets: &[String]) -> PyResult<Replay> {
    let ReplaySpec { replay } = spec::parse("", sets).map_err(|error| errors::spec(&error))?;
    Ok(replay)
}

/// An error of a run: what a policy raised comes before what the engine made of it.
fn failed(error: &EvalError, slot: &Raised) -> PyErr {
    raised(slot).unwrap_or_else(|| errors::eval(error))
}

/// Replays one trace on one device.
///
/// # Errors
/// What is wrong with the specification or the trace; what a policy raises; Ctrl-C.
#[pyfunction]
#[pyo3(signature = (trace, text, sets, replay_sets, seed, command, placement=None, victim=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the package's own function of the same name has keywords")]
pub fn run(
    py: Python<'_>,
    trace: &Trace,
    text: &str,
    sets: Vec<String>,
    replay_sets: Vec<String>,
    seed: u64,
    command: &str,
    placement: Option<Bound<'_, PyAny>>,
    victim: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let control = Arc::new(Control::default());
    let slot = Raised::default();
    let spec = RunSpec {
        trace: trace.source(&control),
        device: parse(text, &sets)?,
        replay: replay(&replay_sets)?,
        seed,
        policies: policies(placement.as_ref(), victim.as_ref(), &slot)?,
    };
    let work = || {
        let survey = needs_survey(&spec).then(|| survey(&spec)).transpose()?;
        prepare(&spec, survey.as_ref())?.run(&control)
    };
    let result = watched(py, &control, progress.as_ref(), work)?.map_err(|error| failed(&error, &slot))?;
    Ok(Results::of_runs(vec![result], command))
}

/// The keys that a comparison takes several values of, and their values.
fn axes(given: &[(String, Vec<String>)]) -> PyResult<Vec<Vec<Choice>>> {
    if let Some((key, _)) = given.iter().find(|(key, _)| VARIED.iter().all(|(varied, _)| varied != key)) {
        return Err(PyValueError::new_err(format!("{key}: a comparison does not vary it; give one value")));
    }
    let axis = VARIED.iter().map(|(key, read)| {
        let values = given.iter().filter(|(given, _)| given == key).flat_map(|(_, values)| values);
        values.map(|value| read(value)).collect::<Result<Vec<_>, _>>()
    });
    axis.collect::<Result<_, _>>().map_err(|error| errors::spec(&error))
}

/// The class that a device names where a policy is external.
fn class(name: &PolicyName) -> Option<&str> {
    let of_program = name.name == "external";
    name.parameters.iter().find(|(key, _)| of_program && key == "class").map(|(_, value)| value.as_str())
}

/// Replays traces on every combination, best first; `make` makes the wrapper of an external policy by kind and class.
///
/// # Errors
/// As [`run`], where no combination has a result.
#[pyfunction]
#[pyo3(signature = (traces, text, sets, axes_given, replay_sets, seed, seeds, command, make, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the package's own function of the same name has keywords")]
pub fn compare(
    py: Python<'_>,
    traces: Vec<PyRef<'_, Trace>>,
    text: &str,
    sets: Vec<String>,
    axes_given: Vec<(String, Vec<String>)>,
    replay_sets: Vec<String>,
    seed: u64,
    seeds: u64,
    command: &str,
    make: &Bound<'_, PyAny>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let control = Arc::new(Control::default());
    let slot = Raised::default();
    let device = parse(text, &sets)?;
    let axes = axes(&axes_given)?;
    let replay = replay(&replay_sets)?;
    let names = short_names(&traces.iter().map(|trace| trace.name().to_owned()).collect::<Vec<_>>());
    let many = names.len() > 1;
    let mut plan = Comparison::default();
    for (trace, name) in traces.iter().zip(&names) {
        let base = RunSpec {
            trace: trace.source(&control),
            device: device.clone(),
            replay: replay.clone(),
            seed,
            policies: of_classes(&device, &axes, make, &slot)?,
        };
        let added = watched(py, &control, None, || plan.add(&base, many.then_some(name), seeds, &axes))?;
        added.map_err(|error| failed(&error, &slot))?;
    }
    for job in &mut plan.jobs {
        job.spec.policies = of_device(&job.spec.device, make, &slot)?;
    }
    if plan.jobs.is_empty() {
        return Err(match plan.first_problem.take() {
            Some(problem) => failed(&problem, &slot),
            None => PyValueError::new_err("there is nothing to run"),
        });
    }
    let work = || run_each(&plan.jobs, &plan.surveys, &control, |_, result| Ok(result));
    let results = watched(py, &control, progress.as_ref(), work)?.map_err(|error| failed(&error, &slot))?;
    let (mut runs, mut skipped) = (Vec::new(), std::mem::take(&mut plan.skipped));
    let mut first = None;
    for (result, job) in results.into_iter().zip(&plan.jobs) {
        match result {
            Ok(run) => runs.push(run),
            Err(problem) => {
                skipped.push(Skipped { label: job.label.clone(), reason: problem.to_string() });
                first.get_or_insert(problem);
            }
        }
    }
    // A policy's exception is never a line in a list.
    if let Some(error) = raised(&slot) {
        return Err(error);
    }
    if let Some(problem) = first.filter(|_| runs.is_empty()) {
        return Err(errors::eval(&problem));
    }
    rank(&mut runs);
    let replicates = replicates(&runs);
    let file = ResultsFile { traces: plan.traces, replicates, skipped, ..Results::of_runs(runs, command).into_file() };
    Ok(Results::new(file))
}

/// Policies that a device is planned with before it is known which of several it has: any of them says as much.
fn of_classes(
    device: &isotherm_eval::SystemSpec,
    axes: &[Vec<Choice>],
    make: &Bound<'_, PyAny>,
    slot: &Raised,
) -> PyResult<Policies> {
    let mut any = device.clone();
    for choice in axes.iter().flatten() {
        match choice {
            Choice::Placement(name) | Choice::Victim(name) if class(name).is_some() => choice.apply(&mut any),
            _ => {}
        }
    }
    of_device(&any, make, slot)
}

/// The policies that a device names.
fn of_device(device: &isotherm_eval::SystemSpec, make: &Bound<'_, PyAny>, slot: &Raised) -> PyResult<Policies> {
    let made = |kind: &str, name: &PolicyName| class(name).map(|class| make.call1((kind, class))).transpose();
    let placement = made("placement", &device.placement.name)?;
    let victim = made("victim", &device.gc.victim)?;
    policies(placement.as_ref(), victim.as_ref(), slot)
}

/// Checks the simulator against closed forms; JSON with the cells.
///
/// # Errors
/// Ctrl-C, or a bug of the simulator.
#[pyfunction]
#[pyo3(signature = (quick=true, progress=None))]
pub fn validate(py: Python<'_>, quick: bool, progress: Option<Bound<'_, PyAny>>) -> PyResult<String> {
    let validation = Validation::new(if quick { Depth::Quick } else { Depth::Full });
    let control = Control::default();
    let cells = watched(py, &control, progress.as_ref(), || validation.run(&control))?;
    Ok(files::to_json(&cells.map_err(|error| errors::eval(&error))?))
}

/// Judges the writes of a trace by schemes of hot data identification; JSON as the command line prints it.
///
/// # Errors
/// An unknown scheme, a trace that cannot be read, Ctrl-C.
#[pyfunction]
#[pyo3(signature = (trace, schemes, reference, page_bytes, window=None))]
pub fn hotness(
    py: Python<'_>,
    trace: &Trace,
    schemes: &str,
    reference: &str,
    page_bytes: u64,
    window: Option<u64>,
) -> PyResult<String> {
    let control = Arc::new(Control::default());
    let source = trace.source(&control);
    let schemes = schemes_of::parse_schemes(schemes).map_err(|error| errors::spec(&error))?;
    let reference: PolicyName = reference.parse().map_err(|error| errors::spec(&error))?;
    let work = || {
        let writes = schemes_of::PageWrites::read(&source, ByteSize(page_bytes))?;
        let window = window.unwrap_or((writes.lpns.len() as u64).div_ceil(50));
        let plan = schemes_of::Plan { schemes, reference, window_writes: Some(window) };
        schemes_of::measure(&writes, &plan, &control)
    };
    let measured = watched(py, &control, None, work)?.map_err(|error| errors::eval(&error))?;
    Ok(schemes_of::json(trace.name(), &measured).to_string())
}
