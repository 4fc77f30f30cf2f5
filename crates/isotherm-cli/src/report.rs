//! `isotherm report`: the HTML report of a results file, again.

use crate::output::print;
use clap::Args;
use isotherm_eval::files::{self, ClaimedFolder};
use isotherm_eval::results::ResultsFile;
use std::path::{Path, PathBuf};
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
    /// Write the figures as SVG files too, into a folder beside the report
    #[arg(long)]
    svg: bool,
}

/// Files that are to be written, and the folder that was made for some of them.
type Files = (Vec<(PathBuf, Vec<u8>)>, Option<ClaimedFolder>);

/// The report at `path`, and with `svg` its figures in the folder `figures` beside it, which is made, and goes again with what is
/// returned where nothing was written.
pub fn files_of(results: &ResultsFile, path: &Path, svg: bool) -> anyhow::Result<Files> {
    let mut set = vec![(path.to_owned(), isotherm_report::render(results)?.into_bytes())];
    let mut claimed = None;
    if svg {
        let folder = path.with_file_name("figures");
        claimed = Some(files::claim_folder(&folder)?);
        let pictures = isotherm_report::pictures(results)?;
        set.extend(pictures.into_iter().map(|(name, text)| (folder.join(name), text.into_bytes())));
    }
    Ok((set, claimed))
}

/// Writes the report.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let results = files::read_results(&args.results)?;
    let path = args.out.clone().unwrap_or_else(|| args.results.with_file_name("report.html"));
    let (set, _claimed) = files_of(&results, &path, args.svg)?;
    files::write_set(&set)?;
    print(&set.iter().map(|(path, _)| format!("{}\n", path.display())).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
