//! What write amplification would tend to if the rates of all pages were known: the reference beside runs of synthetic workloads.

use super::Prepared;
use crate::closed_form::{alpha_of_spare, known_rates};
use crate::fold::Folding;
use crate::run_spec::Precondition;
use isotherm::build::Plan;

/// See [`RunResult::write_amplification_known_rates`](crate::results::RunResult::write_amplification_known_rates).
pub fn of(prepared: &Prepared<'_>, plan: &Plan) -> Option<f64> {
    let spec = &prepared.device_spec;
    let passes_writes_on = spec.ftl.name.name == "page" && spec.log.is_none() && !spec.dram.has_buffer();
    let workload = passes_writes_on.then(|| prepared.spec.trace.pattern()).flatten()?;
    let pages = u64::from(workload.pages());
    // Pages that share an address have other rates than the workload says.
    let is_whole = match &prepared.folding {
        Folding::Refuse | Folding::Compact(_) => true,
        Folding::Wrap(bytes) => *bytes >= pages * workload.page_bytes(),
    };
    if !is_whole || workload.page_bytes() != u64::from(plan.geometry.page_bytes()) {
        return None;
    }
    let logical = u64::from(plan.logical_pages);
    // Beside its pages, filler and what preconditioning wrote stay as they are. Filler also lies in pages that are drawn next to never.
    let live = match prepared.spec.replay.precondition {
        Precondition::Sequential | Precondition::Random => logical,
        Precondition::None | Precondition::Trace => (pages + prepared.layout.filler.count()).min(logical),
    };
    let share = (pages.min(live)) as f64 / live as f64;
    let mut groups: Vec<(f64, f64)> =
        workload.stationary_rates()?.into_iter().map(|(pages, writes)| (share * pages, writes)).collect();
    groups.push((1.0 - share, 0.0));
    let alpha = alpha_of_spare(plan.spare) * logical as f64 / live as f64;
    // With much spare space the correction for the size of blocks falls below what is possible.
    let wa = known_rates(&groups, alpha, plan.geometry.pages_per_block());
    wa.is_finite().then_some(wa.max(1.0))
}
