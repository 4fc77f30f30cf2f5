//! Before a run: what it needs to know of its trace, and everything that can be refused without allocating a device.

use super::{ReplaySpec, RunSpec};
use crate::error::EvalError;
use crate::fold::{AddressMode, Folding};
use crate::memory;
use crate::results::DeviceSummary;
use crate::source::Survey;
use isotherm::build::{Environment, Plan};
use isotherm::placement::needs_future;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::{PolicyName, SpecError};
use isotherm_sfs::SystemSpec;

/// A run that is ready to start: everything that can be refused has been looked at.
pub struct Prepared<'a> {
    pub(super) spec: &'a RunSpec,
    pub(super) device_spec: SystemSpec,
    pub(super) plan: Plan,
    pub(super) folding: Folding,
    pub(super) active_bytes: u64,
    /// Host page writes of one replay, where that was surveyed.
    pub(super) page_writes: u64,
    /// Host page writes after which the last window starts.
    pub(super) last_window_from: u64,
}

/// Whether a run needs to know the span, the length or the pages of its trace before it starts.
pub fn needs_survey(spec: &RunSpec) -> bool {
    spec.device.device.logical_size.is_none()
        || spec.fill() > 0.0
        || spec.replay.measure_last.is_some()
        || spec.replay.address == AddressMode::Compact
        || needs_future(&spec.device.placement.name)
}

/// Surveys the trace of a run. Runs over the same trace, page size and folding may share the survey.
///
/// # Errors
/// The trace cannot be read.
pub fn survey(spec: &RunSpec) -> Result<Survey, EvalError> {
    spec.trace.survey(spec.device.device.page_size.0, spec.replay.address == AddressMode::Compact)
}

/// Checks everything that can be checked before memory is allocated.
///
/// # Errors
/// Wrong options, an impossible device, a trace that does not fit, too little memory.
pub fn prepare<'a>(spec: &'a RunSpec, survey: Option<&Survey>) -> Result<Prepared<'a>, EvalError> {
    let page_bytes = spec.device.device.page_size.0;
    let fill = spec.fill();
    let filler = spec.device.log.as_ref().is_some_and(|log| log.filler_share() > 0.0);
    if filler && spec.replay.fill.0 > 0.0 {
        let fix = "--fill-mode filler derives it from --utilisation: leave --fill out";
        return Err(SpecError::new("--fill", "the log's fill mode says how much filler there is", fix).into());
    }
    isotherm::spec::check(&ReplaySpec { replay: spec.replay.clone() })?;
    // What the trace needs of the address space, in bytes.
    let needs = survey.map(|s| match &s.touched {
        Some(touched) => touched.count() * page_bytes,
        None => s.span_bytes.next_multiple_of(page_bytes),
    });
    let default_bytes = || ((needs.unwrap_or(0) as f64 / (1.0 - fill)) as u64).next_multiple_of(page_bytes);
    let logical_bytes = spec.device.device.logical_size.map_or_else(default_bytes, |size| size.0);
    let mut device_spec = spec.device.clone();
    device_spec.device.logical_size = Some(ByteSize(logical_bytes));
    let mut known = device_spec.clone();
    if needs_future(&known.placement.name) {
        // Its streams follow from the future, which is read when the run starts; all else can be checked now.
        known.placement.name = PolicyName::plain("single");
    }
    let environment = Environment { logical_bytes, seed: spec.seed, future: None };
    let plan = isotherm_sfs::plan(&known, &environment).map_err(|reason| {
        // A device that is possible without the filler is made impossible by it.
        let without = Environment { logical_bytes: needs.unwrap_or(0), ..environment.clone() };
        known.device.logical_size = None;
        match spec.device.device.logical_size {
            None if fill > 0.0 && isotherm_sfs::plan(&known, &without).is_ok() => {
                EvalError::Filler { share: Share(fill), reason }
            }
            _ => reason.into(),
        }
    })?;

    let active_bytes = match spec.device.device.logical_size {
        _ if fill == 0.0 => logical_bytes,
        None => needs.unwrap_or(0).max(page_bytes),
        Some(_) => (((logical_bytes / page_bytes) as f64 * (1.0 - fill)).floor() as u64 * page_bytes).max(page_bytes),
    };
    if let Some(needs) = needs.filter(|&n| n > active_bytes && spec.replay.address != AddressMode::Wrap) {
        let problem = format!("the trace needs {needs} bytes, but {active_bytes} are left for it beside the filler");
        let fix = "give a larger --logical-size, a smaller --fill, or fold addresses with --address wrap or compact";
        return Err(SpecError::new(&spec.trace.name, problem, fix).into());
    }
    let folding = match (spec.replay.address, survey.and_then(|s| s.touched.clone())) {
        (AddressMode::Refuse, _) => Folding::Refuse,
        (AddressMode::Compact, Some(touched)) => Folding::Compact(touched),
        _ => Folding::Wrap(active_bytes),
    };
    let page_writes = survey.map_or(0, |s| s.page_writes);
    let total = page_writes * u64::from(spec.replay.repeat);
    let last_window_from = match spec.replay.measure_last {
        Some(last) => total.saturating_sub(last),
        None => 0,
    };
    memory::admit("the device", plan.memory_bytes, "give a smaller --logical-size, or --address compact")?;
    Ok(Prepared { spec, device_spec, plan, folding, active_bytes, page_writes, last_window_from })
}

impl Prepared<'_> {
    /// Memory that the device will take.
    pub fn memory_bytes(&self) -> u64 {
        self.plan.memory_bytes
    }

    /// The device in numbers.
    pub fn device_summary(&self) -> DeviceSummary {
        summary(&self.plan)
    }
}

/// A plan, in the words of results.
pub(super) fn summary(plan: &Plan) -> DeviceSummary {
    DeviceSummary {
        logical_pages: u64::from(plan.logical_pages),
        physical_pages: u64::from(plan.physical_pages),
        reserve_blocks: u64::from(plan.reserve_blocks),
        blocks: u64::from(plan.geometry.blocks),
        pages_per_block: u64::from(plan.geometry.pages_per_block()),
        page_bytes: u64::from(plan.geometry.page_bytes()),
        streams: u64::from(plan.streams),
        over_provisioning: plan.over_provisioning,
        spare: plan.spare,
        simulator_memory_bytes: plan.memory_bytes,
    }
}
