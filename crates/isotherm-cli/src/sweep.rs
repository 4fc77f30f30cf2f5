//! `isotherm sweep`: every point of an experiment file.

use crate::options;
use crate::output::{self, note, print};
use crate::progress;
use crate::report;
use crate::run::verdict;
use crate::table::{Column, Table};
use anyhow::Context as _;
use clap::Args;
use isotherm_eval::results::{ResultsFile, RunResult, Verdict};
use isotherm_eval::sweep::{ExperimentFile, Shard, Sweep};
use isotherm_eval::{Surveys, columns, files};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `sweep`.
#[derive(Args)]
#[command(
    after_help = "A point that cannot run is skipped with a note, and tried again by the next sweep.\n\nExample:\n  isotherm sweep experiments/epoch.toml --resume"
)]
pub struct SweepArgs {
    /// Experiment file: traces, a base device, axes, figures
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// Go on where an earlier sweep into the same folder stopped
    #[arg(long)]
    resume: bool,
    /// Run one share of the points only, for job arrays: 3/64 is the third of 64. All shares go to one folder; points that are there
    /// are taken (as with --resume), and the share that finds all of them combines the results
    #[arg(long, value_name = "N/M")]
    shard: Option<Shard>,
    /// Folder for the results [default: isotherm-out/NAME of the experiment]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the report's figures as SVG files too, into the folder `figures` beside it
    #[arg(long)]
    svg: bool,
    /// Show the points that would run (with --resume, those that are missing), without running any
    #[arg(long)]
    dry_run: bool,
}

/// Sweeps.
pub fn run(args: &SweepArgs) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(&args.experiment)
        .with_context(|| format!("{}: cannot read the experiment; check the path", args.experiment.display()))?;
    let experiment = ExperimentFile::parse(&args.experiment, &text)?;
    let name = args.experiment.file_stem().unwrap_or_default();
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("isotherm-out").join(name));
    let mut sweep = Sweep::plan(&experiment, &folder, args.resume || args.shard.is_some())?;
    let shard = args.shard.unwrap_or(Shard::ALL);
    sweep.take(shard);
    let (total, missing) = (sweep.jobs.len(), sweep.missing.len());
    print(&format!("{}: {total} points, {missing} to run, into {}\n", experiment.title, folder.display()))?;
    for sentence in &sweep.left_out {
        print(&format!("{sentence}\n"))?;
    }
    if args.dry_run {
        let mark = |at: usize| if sweep.missing.contains(&at) { "to run  " } else { "finished" };
        let lines = sweep.jobs.iter().enumerate().map(|(at, job)| format!("{}  {}\n", mark(at), job.label));
        print(&lines.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = sweep.missing_jobs();
    let surveys = Surveys::of(&jobs)?;
    let control = progress::interruptible()?;
    progress::with_bar(&control, surveys.pages(&jobs), || sweep.run(&surveys, &control))?;

    let part = sweep.part(shard, &options::command_line());
    part.skipped.iter().for_each(|skipped| note(&skipped.label, "skipped", &skipped.reason));
    write_part(&folder, shard, &part)?;
    if !sweep.look_again() {
        print(&format!("share {shard} is there; others are not yet\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = sweep.combine(&experiment, &options::command_line())?;
    let table = columns::columns(&results);
    let summary = if results.hotness.is_empty() { summary(&results) } else { hotness_summary(&results) };
    // What was computed is shown whatever becomes of the files, and written whatever becomes of the terminal.
    let shown = print(&format!("\n{summary}"));
    let mut set = vec![
        (folder.join("results.json"), files::to_json(&results).into_bytes()),
        (folder.join("results.csv"), columns::to_csv(&table).into_bytes()),
    ];
    let (report, _claimed) = report::files_of(&results, &folder.join("report.html"), args.svg)?;
    set.extend(report);
    files::write_set(&set)?;
    shown?;
    print(&format!("\n{}\n", folder.join("report.html").display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the file of a share in the data set that all shares form.
#[cfg(feature = "parquet")]
fn write_part(folder: &Path, shard: Shard, part: &ResultsFile) -> anyhow::Result<()> {
    let folder = folder.join("dataset");
    files::writable_folder(&folder)?;
    // What another division of the same points left would count them twice.
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| shard.is_of_another(name)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(files::write_whole(&folder.join(shard.file_name()), &files::to_parquet(&columns::columns(part)))?)
}

/// Without Parquet there is no data set.
#[cfg(not(feature = "parquet"))]
fn write_part(_: &Path, _: Shard, _: &ResultsFile) -> anyhow::Result<()> {
    Ok(())
}

/// One line a point.
fn summary(results: &ResultsFile) -> String {
    let column = |header, note, rank| Column { header, note, rank };
    let mut table = Table::new(&[
        Column::new("point"),
        column("WA", "write amplification: pages programmed for each page that the host wrote", 0),
        column("WA at end", "the same in the last window (replay.measure_last)", 1),
        column("victims", "blocks that cleaning took", 2),
        column("dead", "mean share of a victim's pages that held nothing valid", 3),
        column("erases", "", 4),
        column("flash/page", "flash time for each page that the host wrote or read", 1),
        column("valid", Verdict::legend(results.runs.iter().map(|run| &run.verdict)), 0),
    ]);
    for run in &results.runs {
        table.row(vec![
            run.label.clone(),
            output::real(run.write_amplification, 3),
            output::real(run.write_amplification_last.filter(|_| run.workload.measure_last_pages.is_some()), 3),
            output::whole(run.gc_count),
            output::per_cent(run.victim_invalid_share_mean, 1),
            output::whole(run.erase_count.total),
            output::time(run.flash_time_per_host_page_ns),
            run.verdict.words().join(", "),
        ]);
    }
    let room = output::width();
    table.render(room) + "\n" + &judgements(&results.runs, room)
}

/// Judgements that are told, and points that one is told of by name; results.json has the rest.
const JUDGEMENTS_MAX: usize = 12;
const NAMES_MAX: usize = 6;

/// The verdicts, each once with the points it is on: first those on points that are not valid, then those with a caveat.
fn judgements(runs: &[RunResult], room: usize) -> String {
    let mut ordered: Vec<&RunResult> = runs.iter().collect();
    ordered.sort_by_key(|run| (run.verdict.valid, run.verdict.caveats().is_empty()));
    let said = output::each_once(ordered.into_iter().map(|run| (run.label.as_str(), verdict(run))));
    let line = |(text, points): &(String, Vec<&str>)| {
        let mut names = points[..points.len().min(NAMES_MAX)].join("; ");
        if points.len() > NAMES_MAX {
            names.push_str(&format!(" and {} more", points.len() - NAMES_MAX));
        }
        output::wrapped(&format!("{names}: {text}"), room, 2)
    };
    let mut lines: String = said.iter().take(JUDGEMENTS_MAX).map(line).collect();
    if let Some(more) = said.len().checked_sub(JUDGEMENTS_MAX).filter(|more| *more > 0) {
        lines.push_str(&format!("and {more} more in results.json, under `verdict` of each run\n"));
    }
    lines
}

/// One line for each scheme that an experiment compares at a point.
fn hotness_summary(results: &ResultsFile) -> String {
    let mut table = Table::plain(&["point", "scheme", "bytes", "hot", "false", "false hot", "false cold"]);
    let asked = results.experiment.as_ref().and_then(|experiment| experiment.hotness.as_ref());
    for point in &results.hotness {
        for scheme in point.schemes.iter().take(asked.map_or(usize::MAX, |asked| asked.schemes.len())) {
            table.row(vec![
                point.label.clone(),
                scheme.name.clone(),
                output::whole(scheme.memory_bytes),
                output::per_cent(Some(scheme.hot_ratio), 2),
                output::per_cent(Some(scheme.false_identification_rate), 3),
                output::per_cent(Some(scheme.false_hot_rate), 3),
                output::per_cent(Some(scheme.false_cold_rate), 3),
            ]);
        }
    }
    table.render(output::width())
}
