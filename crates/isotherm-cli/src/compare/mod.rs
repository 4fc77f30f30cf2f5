//! `isotherm compare`: traces on every combination of what is named, best first.

mod export;
mod numbers;
mod tables;

use self::export::Export;
use crate::options::{self, DeviceOptions, ReplayOptions};
use crate::output::{self, note, print};
use crate::progress;
use crate::reading::TraceOptions;
use crate::report;
use clap::Args;
use isotherm::registry::PolicyName;
use isotherm_eval::compare::{Choice, rank, replicates};
use isotherm_eval::comparison::{Comparison, OnTrace, short_names};
use isotherm_eval::results::{ResultsFile, SCHEMA_VERSION};
use isotherm_eval::{EvalError, Job, RunSpec, Surveys, columns, files, prepare, run_each, writers_note};
use isotherm_sfs::SystemSpec;
use std::path::PathBuf;
use std::process::ExitCode;

/// What is compared where nothing is named.
const DEFAULT_PLACEMENTS: [&str; 4] = ["isotherm", "single", "host_gc", "epoch"];
/// The victim policy that is compared with the specification's where neither placement nor victim policy is named.
const DEFAULT_VICTIM: &str = "isotherm";

/// Arguments of `compare`.
#[derive(Args)]
#[command(
    after_help = "Every combination runs on every trace; one that cannot is skipped with a note. Without --placement, that of --spec or --set is compared, or isotherm, single, host_gc and epoch; without --victim too, isotherm and greedy. asa and fast ignore --placement and run once (fast ignores --victim too); with --below none, \
    device options do not multiply runs.\n\nExamples:\n  isotherm compare traces/sqlite-wal-ext4.csv.zst --placement single,host_gc,epoch \
    --victim greedy,cost_benefit --op 7%,15% --address compact --precondition trace\n  isotherm compare traces/tpcc-postgres-xfs.csv.zst \
    --ftl page,dftl,asa,fast --cache-bytes 256KiB --placement single --address compact --precondition trace\n  isotherm compare traces/sqlite-wal-ext4.csv.zst --log sfs,lfs,in_place --below page --utilisation 80% --placement single --address compact --precondition trace"
)]
pub struct CompareArgs {
    /// Trace files, `-` for standard input, or synthetic workloads such as synth:zipf,theta=0.99,pages=1Mi,writes=10M,seed=1
    #[arg(value_name = "TRACE", required_unless_present = "print_config")]
    traces: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    replay: ReplayOptions,
    #[command(flatten)]
    reading: TraceOptions,
    /// Run each device with N seeds, from --seed on (synthetic workloads are drawn anew with each): means, and 95 %
    /// confidence intervals by Student's t
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "The replay")]
    seeds: u64,
    /// Show every column, however wide the tables get, and write them by --export too
    #[arg(long, help_heading = "Results")]
    wide: bool,
    /// Write the tables to a file too, as LaTeX, CSV or Markdown by its ending (.tex, .csv, .md); may be repeated. LaTeX and
    /// Markdown have the columns that fit a page, and all with --wide; CSV has all of them
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    export: Vec<Export>,
    /// Write the report's figures as SVG files too, into the folder `figures` beside it
    #[arg(long, help_heading = "Results")]
    svg: bool,
    /// Folder for results.json and report.html, made if need be
    #[arg(long, value_name = "DIR", default_value = "isotherm-out", help_heading = "Results")]
    out: PathBuf,
    /// Write results.csv too
    #[arg(long, help_heading = "Results")]
    csv: bool,
    /// Write results.parquet too
    #[cfg(feature = "parquet")]
    #[arg(long, help_heading = "Results")]
    parquet: bool,
    /// Print results.json instead of the table, and nothing else
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// Compares.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let device = args.device.spec()?;
    if args.device.print_config || args.traces.is_empty() {
        print(&args.device.config(&device)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let axes = axes(args, &device)?;
    let names = short_names(&args.traces);
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        anyhow::bail!("{}: the trace is given twice; name it once", twice.1);
    }
    let folders = args.export.iter().filter_map(|export| export.path().parent()).chain([args.out.as_path()]);
    let _claimed = folders.map(files::claim_folder).collect::<Result<Vec<_>, _>>()?;

    let mut plan = Comparison::default();
    let many = names.len() > 1;
    // A trace that cannot be read keeps no other from its runs, but not everything that was asked for is there in the end.
    let mut unread = false;
    for (trace, name) in args.traces.iter().zip(&names) {
        let source = match args.reading.source(trace) {
            Ok(source) => source,
            Err(problem) => {
                plan.skip(name.clone(), problem.into());
                unread = true;
                continue;
            }
        };
        let base = args.replay.run_spec(source, device.clone())?;
        let profiles = plan.add(&base, many.then_some(name), args.seeds, &axes)?;
        unread |= (profiles.len() as u64) < args.seeds;
        if let Some(profile) = profiles.first().filter(|_| !args.json) {
            print(&output::wrapped(&profile.sanity_line(), output::width(), 2))?;
        }
    }
    if plan.jobs.is_empty() {
        return Err(plan.first_problem.take().map_or_else(|| anyhow::anyhow!("there is nothing to run"), Into::into));
    }
    plan.skipped.iter().for_each(|skipped| note(&skipped.label, "skipped", &skipped.reason));
    for job in &plan.jobs {
        if let Some(words) = writers_note(&job.spec, plan.surveys.get(&job.spec)) {
            note(&job.label, "placement", words);
        }
    }
    if !args.json {
        print(&device_lines(&plan.jobs, &plan.surveys)?)?;
    }
    let control = progress::interruptible()?;
    let total = plan.surveys.pages(&plan.jobs);
    let results =
        progress::with_bar(&control, total, || run_each(&plan.jobs, &plan.surveys, &control, |_, result| Ok(result)))?;
    let labels: Vec<String> = plan.jobs.iter().map(|job| job.label.clone()).collect();
    let (mut runs, mut failed) = (Vec::new(), None);
    for (result, label) in results.into_iter().zip(labels) {
        match result {
            Ok(run) => runs.push(run),
            Err(problem) => {
                note(&label, "failed", &problem.to_string());
                failed =
                    Some(if matches!(problem, EvalError::Law(_)) { crate::CHECK_FAILED } else { crate::WRONG_INPUT });
                plan.skip(label, problem);
            }
        }
    }
    if runs.is_empty() {
        return Err(plan.first_problem.take().expect("a run that has no result has a reason").into());
    }
    rank(&mut runs);
    let file = ResultsFile {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options::command_line(),
        traces: plan.traces,
        experiment: None,
        hotness: Vec::new(),
        replicates: replicates(&runs),
        skipped: plan.skipped,
        runs,
    };
    let parts = OnTrace::of(&file.runs, &file.traces);
    // What was computed is shown first, whatever becomes of the files; and written, whatever becomes of the terminal.
    let shown = if args.json {
        print(&files::to_json(&file))
    } else {
        print(&tables::text(&parts, output::width(), args.wide))
    };
    let written = write(args, &file, &parts)?;
    shown?;
    if !args.json {
        print(&format!("\n{written}"))?;
    }
    let stopped = crate::run::exit_code(&file.runs);
    let unread = unread.then_some(crate::WRONG_INPUT);
    Ok(failed.or(unread).map_or(stopped, ExitCode::from))
}

/// Everything that is compared, axis by axis. Placement and victim policy always are axes.
fn axes(args: &CompareArgs, base: &SystemSpec) -> anyhow::Result<Vec<Vec<Choice>>> {
    let named = args.device.gives("placement.name")?;
    let all_default = !named
        && !args.device.gives("gc.victim")?
        && args.device.keys.axes().iter().all(|(key, given)| *key != "placement.name" || given.is_empty());
    let mut axes = Vec::new();
    for (key, given) in args.device.keys.axes() {
        axes.push(match key {
            _ if !given.is_empty() => given,
            "placement.name" if named => vec![Choice::Placement(base.placement.name.clone())],
            "placement.name" => DEFAULT_PLACEMENTS.map(|name| Choice::Placement(PolicyName::plain(name))).to_vec(),
            "gc.victim" if all_default => {
                vec![Choice::Victim(PolicyName::plain(DEFAULT_VICTIM)), Choice::Victim(base.gc.victim.clone())]
            }
            "gc.victim" => vec![Choice::Victim(base.gc.victim.clone())],
            _ => Vec::new(),
        });
    }
    Ok(axes)
}

/// The devices chosen: one line for each that differs in size.
fn device_lines(jobs: &[Job<RunSpec>], surveys: &Surveys) -> anyhow::Result<String> {
    let mut lines: Vec<String> = Vec::new();
    for job in jobs {
        let device = prepare(&job.spec, surveys.get(&job.spec))?.device_summary();
        let chosen = if job.spec.device.device.logical_size.is_some() { "given" } else { "from the trace" };
        let name = match &job.spec.device.log {
            Some(log) => format!("{} over {}", log.name, log.below),
            None => "device".to_owned(),
        };
        let line = &format!(
            "{name}: {} logical ({chosen}), {} pages of {} in blocks of {}, {}",
            output::bytes((device.logical_pages * device.page_bytes) as f64),
            output::whole(device.logical_pages),
            output::bytes(device.page_bytes as f64),
            device.pages_per_block,
            output::spare_space(&device, &job.spec.device),
        );
        let line = output::wrapped(line, output::width(), 2);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines.concat())
}

/// Writes what was asked for, all of it or nothing, and says where.
fn write(args: &CompareArgs, file: &ResultsFile, parts: &[OnTrace<'_>]) -> anyhow::Result<String> {
    let mut set: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut one = |name: &str, bytes: Vec<u8>| set.push((args.out.join(name), bytes));
    one("results.json", files::to_json(file).into_bytes());
    if args.csv {
        one("results.csv", columns::to_csv(&columns::columns(file)).into_bytes());
    }
    #[cfg(feature = "parquet")]
    if args.parquet {
        one("results.parquet", files::to_parquet(&columns::columns(file)));
    }
    let (report, _claimed) = report::files_of(file, &args.out.join("report.html"), args.svg)?;
    set.extend(report);
    set.extend(args.export.iter().map(|export| (export.path().to_owned(), export.text(parts, args.wide).into_bytes())));
    files::write_set(&set)?;
    Ok(set.iter().map(|(path, _)| format!("{}\n", path.display())).collect())
}
