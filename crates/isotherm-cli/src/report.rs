//! `isotherm report`: the HTML report of a results file, again.

use crate::output::print;
use clap::Args;
use isotherm_eval::files;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `report`.
#[derive(Args)]
pub struct ReportArgs {
    /// A results.json that `compare` or `sweep` wrote
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// Where the report goes [default: report.html beside the results]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the report.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let results = files::read_results(&args.results)?;
    let path = args.out.clone().unwrap_or_else(|| args.results.with_file_name("report.html"));
    files::write_whole(&path, isotherm_report::render(&results)?.as_bytes())?;
    print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
