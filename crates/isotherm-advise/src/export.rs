//! The files of an advice: the answer, its page, and each plan in the forms that drives, applications and fio take.

use crate::advice::Advice;
use crate::error::AdviceError;
use crate::page;
use crate::plan::{Plan, Rule};
use isotherm_eval::files;
use std::path::{Path, PathBuf};

/// Writes the files into a folder, which is made if need be: all of them or none. `trace` is what commands call the trace. Returns the paths:
/// the answer first, then the page.
///
/// # Errors
/// The folder cannot be written; the page cannot be made.
pub fn write(advice: &Advice, folder: &Path, trace: &str) -> Result<Vec<PathBuf>, AdviceError> {
    let set = files_of(advice, folder, trace)?;
    let folders = set.iter().filter_map(|(path, _)| path.parent());
    let mut claimed = folders.map(files::claim_folder).collect::<Result<Vec<_>, _>>()?;
    // Where nothing is written, what was made last goes first: it may stand in what was made before.
    claimed.reverse();
    files::write_set(&set)?;
    Ok(set.into_iter().map(|(path, _)| path).collect())
}

/// Name of a plan's folder.
fn name_of(plan: &Plan) -> String {
    let by = match &plan.rule {
        Rule::Address(_) => "address",
        Rule::Size(_) => "size",
        Rule::Source(_) => "source",
    };
    format!("{}-handles-by-{by}", plan.handles)
}

/// Every file: the answer first, then the page, then what each plan is exported to.
fn files_of(advice: &Advice, out: &Path, trace: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, AdviceError> {
    let mut set = vec![
        (out.join("advice.json"), files::to_json(advice).into_bytes()),
        (out.join("advice.html"), page::render(advice)?.into_bytes()),
    ];
    let device_bytes = advice.life_inputs.capacity_bytes.max(advice.trace.span_bytes);
    for (at, plan) in advice.plans.iter().enumerate() {
        let folder = out.join("plans").join(name_of(plan));
        let mut add = |name: &str, text: String| set.push((folder.join(name), text.into_bytes()));
        add("plan.json", plan.to_json());
        add("fdp.json", plan.fdp_json(device_bytes));
        add("hints.md", plan.hints_markdown());
        if let (Some(scheme), Some(job)) = (plan.fio_scheme(device_bytes), plan.fio_job("fio-dp-scheme.txt")) {
            add("fio-dp-scheme.txt", scheme);
            add("write.fio", job);
        }
        if let Some(placement) = plan.placement(device_bytes) {
            add("placement.txt", format!("{placement}\n"));
        }
        let row = advice.rows.iter().find(|row| row.plan == Some(at) && row.replay_options.is_some());
        if let Some((row, options)) = row.and_then(|row| Some((row, row.replay_options.as_ref()?))) {
            add("drive.toml", row.spec_toml.clone());
            let folder = folder.display();
            add(
                "replay.txt",
                format!("isotherm run {trace} --plan {folder}/plan.json --spec {folder}/drive.toml {options}\n"),
            );
        }
    }
    Ok(set)
}
