//! Before a run: what it needs to know of its trace, and everything that can be refused without allocating a device.

use super::layout::Layout;
use super::{ReplaySpec, RunSpec};
use crate::error::EvalError;
use crate::fold::{AddressMode, Folding, TouchedPages};
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
    /// Pages that the trace may touch, and filler, of the logical pages that the specification asks for.
    pub(super) layout: Layout,
    /// Logical pages that the trace reads or writes, where that was surveyed, or that the pattern names which it is drawn from.
    pub(super) touched_pages: Option<u64>,
    /// Host page writes of one replay, where that was surveyed.
    pub(super) page_writes: u64,
    /// Host page writes after which the last window starts.
    pub(super) last_window_from: u64,
}

/// Whether a run needs to know the span, the length or the pages of its trace before it starts.
pub fn needs_survey(spec: &RunSpec) -> bool {
    spec.device.device.logical_size.is_none()
        || needs_touched(spec)
        || spec.log_filler() > 0.0
        || spec.replay.measure_last.is_some()
        || needs_future(&spec.device.placement.name)
        || is_by_writer(spec)
}

/// Whether the placement goes by who writes.
fn is_by_writer(spec: &RunSpec) -> bool {
    spec.device.placement.name.name == "streams"
}

/// Whether it needs to know which pages its trace reads or writes: to fold addresses or to fill, and where the trace is read for
/// its span in any case, since what the verdict advises goes by them. A synthetic workload names what it spans.
pub(super) fn needs_touched(spec: &RunSpec) -> bool {
    let is_read_for_its_span = spec.device.device.logical_size.is_none() && !spec.trace.is_synthetic();
    spec.replay.address == AddressMode::Compact || spec.replay.fill.0 > 0.0 || is_read_for_its_span
}

/// What is to be told of a placement by who writes, on a trace that names no more than one.
pub fn writers_note(spec: &RunSpec, survey: Option<&Survey>) -> Option<&'static str> {
    let is_alone = is_by_writer(spec) && survey.is_some_and(|survey| !survey.has_writers);
    is_alone.then_some(
        "the trace names no more than one who asks: everything is in one stream; it needs volumes, processes or a column of streams",
    )
}

/// Surveys the trace of a run. Runs over the same trace, page size and folding may share the survey.
///
/// # Errors
/// The trace cannot be read.
pub fn survey(spec: &RunSpec) -> Result<Survey, EvalError> {
    spec.trace.survey(spec.device.device.page_size.0, needs_touched(spec))
}

/// Checks everything that can be checked before memory is allocated.
///
/// # Errors
/// Wrong options, an impossible device, a trace that does not fit, too little memory.
pub fn prepare<'a>(spec: &'a RunSpec, survey: Option<&Survey>) -> Result<Prepared<'a>, EvalError> {
    let page_bytes = spec.device.device.page_size.0;
    let (fill, log_filler) = (spec.replay.fill.0, spec.log_filler());
    if log_filler > 0.0 && fill > 0.0 {
        let fix = "log.fill_mode=filler derives it from log.utilisation: leave replay.fill out";
        return Err(SpecError::new("replay.fill", "the log's fill mode says how much filler there is", fix).into());
    }
    isotherm::spec::check(&ReplaySpec { replay: spec.replay.clone() })?;
    // What the trace needs of the address space, in bytes.
    let compact = spec.replay.address == AddressMode::Compact;
    let needs = survey.map(|s| match &s.touched {
        Some(touched) if compact => touched.count() * page_bytes,
        _ => s.span_bytes.next_multiple_of(page_bytes),
    });
    if needs == Some(0) && spec.device.device.logical_size.is_none() {
        let fix = "give a device.logical_size for it, or another trace";
        return Err(SpecError::new(
            &spec.trace.name,
            "the trace reads and writes nothing that a drive could be made for",
            fix,
        )
        .into());
    }
    let default_bytes = || ((needs.unwrap_or(0) as f64 / (1.0 - log_filler)) as u64).next_multiple_of(page_bytes);
    let logical_bytes = spec.device.device.logical_size.map_or_else(default_bytes, |size| size.0);
    let mut device_spec = spec.device.clone();
    device_spec.device.logical_size = Some(ByteSize(logical_bytes));
    let mut known = device_spec.clone();
    if needs_future(&known.placement.name) {
        // Its streams follow from the future, which is read when the run starts; all else can be checked now.
        known.placement.name = PolicyName::plain("single");
    }
    let environment = Environment {
        logical_bytes,
        seed: spec.seed,
        future: None,
        placement: spec.policies.placement.clone(),
        victim: spec.policies.victim.clone(),
    };
    let plan = isotherm_sfs::plan(&known, &environment).map_err(|reason| {
        // A device that is possible without the log's filler is made impossible by it.
        let without = Environment { logical_bytes: needs.unwrap_or(0), ..environment.clone() };
        known.device.logical_size = None;
        match spec.device.device.logical_size {
            None if log_filler > 0.0 && isotherm_sfs::plan(&known, &without).is_ok() => {
                EvalError::Filler { share: Share(log_filler), reason }
            }
            _ => reason.into(),
        }
    })?;

    let active_bytes = match spec.device.device.logical_size {
        _ if log_filler == 0.0 => logical_bytes,
        None => needs.unwrap_or(0).max(page_bytes),
        Some(_) => {
            (((logical_bytes / page_bytes) as f64 * (1.0 - log_filler)).floor() as u64 * page_bytes).max(page_bytes)
        }
    };
    if let Some(needs) = needs.filter(|&n| n > active_bytes && spec.replay.address != AddressMode::Wrap) {
        let (problem, fix) = if log_filler > 0.0 {
            (
                format!("the trace needs {needs} bytes, but {active_bytes} are left for it beside the filler"),
                "give a larger device.logical_size, a smaller log.utilisation",
            )
        } else {
            (
                format!("the trace needs {needs} bytes, but the device has {active_bytes}"),
                "give a larger device.logical_size",
            )
        };
        // Whoever is told has not chosen wrap. A pattern leaves none of its pages out.
        let is_compact = spec.replay.address == AddressMode::Compact || spec.trace.is_synthetic();
        let others = if is_compact { "wrap" } else { "wrap or compact" };
        let fix = format!("{fix}, or fold addresses with replay.address {others}");
        return Err(SpecError::new(&spec.trace.name, problem, fix).into());
    }
    let folding = match (spec.replay.address, survey.and_then(|s| s.touched.clone())) {
        (AddressMode::Refuse, _) => Folding::Refuse,
        (AddressMode::Compact, Some(touched)) => Folding::Compact(touched),
        _ => Folding::Wrap(active_bytes),
    };
    let layout = match survey.and_then(|s| s.touched.as_ref()).filter(|_| fill > 0.0) {
        Some(touched) => filled(spec, touched, &folding, logical_bytes / page_bytes)?,
        // A device that a trace uses in place of a log is larger.
        None => Layout::split(active_bytes / page_bytes, u64::from(plan.logical_pages)),
    };
    let page_writes = survey.map_or(0, |s| s.page_writes);
    let total = page_writes * u64::from(spec.replay.repeat);
    let last_window_from = match spec.replay.measure_last {
        Some(last) => total.saturating_sub(last),
        None => 0,
    };
    memory::admit("the device", plan.memory_bytes, "give a smaller device.logical_size, or replay.address compact")?;
    let surveyed = survey.and_then(|s| s.touched.as_ref()).map(|touched| touched.count());
    // Folded addresses are no more pages than there are.
    let touched_pages =
        surveyed.or_else(|| spec.trace.pattern_pages(page_bytes)).map(|pages| pages.min(plan.logical_pages.into()));
    Ok(Prepared { spec, device_spec, plan, folding, layout, touched_pages, page_writes, last_window_from })
}

/// The layout with filler beside the trace's pages.
fn filled(spec: &RunSpec, touched: &TouchedPages, folding: &Folding, logical: u64) -> Result<Layout, SpecError> {
    let fill = spec.replay.fill;
    let layout = Layout::around(touched, folding, logical, (logical as f64 * fill.0).round() as u64);
    if layout.filler.count() == 0 {
        let active = layout.active.count();
        let problem = format!(
            "{} % leaves nothing to fill: the trace itself touches {active} of the {logical} logical pages",
            fill.0 * 100.0
        );
        let fix = match active < logical {
            true => "give a larger replay.fill, or a larger device.logical_size",
            false => "give a larger device.logical_size",
        };
        return Err(SpecError::new("replay.fill", problem, fix));
    }
    Ok(layout)
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
