//! `isotherm figures`: the published numbers of several experiments with ours beside them, and their pictures.

use crate::output::print;
use anyhow::Context as _;
use clap::Args;
use isotherm_eval::files;
use isotherm_report::summary;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `figures`.
#[derive(Args)]
#[command(after_help = "Example:\n  isotherm figures isotherm-out/*/results.json --into experiments")]
pub struct FiguresArgs {
    /// What sweeps wrote, each in a folder with the name of its experiment
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,
    /// Folder for README.md, and for the pictures in its folder figures
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

/// Writes the table and the pictures.
pub fn run(args: &FiguresArgs) -> anyhow::Result<ExitCode> {
    let mut experiments = Vec::new();
    for path in &args.results {
        let name = path.parent().and_then(|folder| folder.file_name());
        let name = name.with_context(|| format!("{}: give it as NAME/results.json", path.display()))?;
        experiments.push((name.to_string_lossy().into_owned(), files::read_results(path)?));
    }
    let summary = summary::of(&experiments)?;
    let folder = args.into.join("figures");
    let _claimed = files::claim_folder(&folder)?;
    for (name, picture) in &summary.pictures {
        files::write_whole(&folder.join(name), picture.as_bytes())?;
    }
    let page = args.into.join("README.md");
    files::write_whole(&page, summary.page.as_bytes())?;
    print(&format!("{}\n", page.display()))?;
    Ok(ExitCode::SUCCESS)
}
