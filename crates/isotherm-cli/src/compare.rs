//! `isotherm compare`: one trace on every combination of what is named, best first.

use crate::options::{self, DeviceOptions, ReplayOptions};
use crate::output::{self, print};
use crate::progress;
use crate::reading::TraceOptions;
use crate::run::verdict;
use crate::table::Table;
use clap::Args;
use isotherm::registry::PolicyName;
use isotherm_eval::compare::{Choice, jobs, rank};
use isotherm_eval::results::{LatencySummary, ResultsFile, RunResult, SCHEMA_VERSION, TraceSummary};
use isotherm_eval::{Job, RunSpec, Surveys, columns, files, prepare, run_all};
use isotherm_sfs::SystemSpec;
use std::path::PathBuf;
use std::process::ExitCode;

/// What is compared where nothing is named.
const DEFAULT_PLACEMENTS: [&str; 3] = ["single", "host_gc", "epoch"];

/// Arguments of `compare`.
#[derive(Args)]
#[command(
    after_help = "Every combination runs. Without --placement, that of --spec or --set is compared, or single, host_gc and epoch. asa and fast ignore --placement and run once (fast ignores --victim too); with --below none, \
    device options do not multiply runs.\n\nExamples:\n  isotherm compare traces/sqlite-wal-ext4.csv.zst --placement single,host_gc,epoch:length=1 \
    --victim greedy,cost_benefit --op 7%,15%\n  isotherm compare traces/tpcc-postgres-xfs.csv.zst \
    --ftl page,dftl,asa,fast --cache-bytes 256KiB --placement single\n  isotherm compare traces/sqlite-wal-ext4.csv.zst --log sfs,lfs,in_place --below page --placement single"
)]
pub struct CompareArgs {
    /// Trace file, or a synthetic workload such as synth:zipf,theta=0.99,pages=1Mi,writes=10M,seed=1
    #[arg(value_name = "TRACE", required_unless_present = "print_config")]
    trace: Option<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    replay: ReplayOptions,
    #[command(flatten)]
    reading: TraceOptions,
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
    let trace = match &args.trace {
        Some(trace) if !args.device.print_config => trace,
        _ => {
            print(&args.device.config(&device)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let base = args.replay.run_spec(args.reading.source(trace), device)?;
    let jobs = jobs(&base, &axes(args, &base.device)?)?;
    files::writable_folder(&args.out)?;

    let profile = base.trace.profile(base.device.device.page_size.0)?;
    if !args.json {
        print(&format!("{}\n", profile.sanity_line()))?;
    }
    let surveys = Surveys::of(&jobs)?;
    if !args.json {
        print(&device_lines(&jobs, &surveys)?)?;
    }
    let control = progress::interruptible()?;
    let total = surveys.pages(&jobs);
    let work = || run_all(&jobs, &surveys, &control, |_, _| Ok(()));
    let mut runs = progress::with_bar(&control, total, work)?;
    rank(&mut runs);

    let file = ResultsFile {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options::command_line(),
        traces: vec![TraceSummary::from(&profile)],
        experiment: None,
        hotness: Vec::new(),
        runs,
    };
    let written = write(args, &file)?;
    if args.json {
        print(&files::to_json(&file))?;
    } else {
        print(&format!("\n{}\n{}", tables(&file.runs), written))?;
    }
    Ok(crate::run::exit_code(&file.runs))
}

/// Everything that is compared, axis by axis. Placement and victim policy always are axes.
fn axes(args: &CompareArgs, base: &SystemSpec) -> anyhow::Result<Vec<Vec<Choice>>> {
    let named = args.device.gives("placement.name")?;
    let mut axes = Vec::new();
    for (key, given) in args.device.keys.axes() {
        axes.push(match key {
            _ if !given.is_empty() => given,
            "placement.name" if named => vec![Choice::Placement(base.placement.name.clone())],
            "placement.name" => DEFAULT_PLACEMENTS.map(|name| Choice::Placement(PolicyName::plain(name))).to_vec(),
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
        let line = format!(
            "{name}: {} logical ({chosen}), {} pages of {} in blocks of {}, over-provisioning (T-U)/U {}, spare (T-U)/T {}\n",
            output::bytes((device.logical_pages * device.page_bytes) as f64),
            output::whole(device.logical_pages),
            output::bytes(device.page_bytes as f64),
            device.pages_per_block,
            output::per_cent(Some(device.over_provisioning), 2),
            output::per_cent(Some(device.spare), 2),
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines.concat())
}

/// Writes what was asked for, and says where.
fn write(args: &CompareArgs, file: &ResultsFile) -> anyhow::Result<String> {
    let mut said = String::new();
    let mut one = |name: &str, bytes: &[u8]| -> anyhow::Result<()> {
        let path = args.out.join(name);
        files::write_whole(&path, bytes)?;
        said.push_str(&format!("{}\n", path.display()));
        Ok(())
    };
    one("results.json", files::to_json(file).as_bytes())?;
    if args.csv {
        one("results.csv", columns::to_csv(&columns::columns(file)).as_bytes())?;
    }
    #[cfg(feature = "parquet")]
    if args.parquet {
        one("results.parquet", &files::to_parquet(&columns::columns(file)))?;
    }
    one("report.html", isotherm_report::render(file)?.as_bytes())?;
    Ok(said)
}

/// Pages that were programmed for the host, and those that were copied, by the device or by the log above it.
fn host_and_copies(run: &RunResult) -> (u64, u64) {
    let parts = run.pages_by_cause();
    let pages = |cause: &str| parts.iter().find(|part| part.0 == cause).map_or(0, |part| part.1);
    (pages("host"), pages("log cleaning") + run.gc_pages_copied)
}

/// The comparison for people: what is written, what it costs in time, whether it can be trusted.
fn tables(runs: &[RunResult]) -> String {
    let mut writes = Table::new(&[
        "writes",
        "WA",
        "last",
        "host pages",
        "copies",
        "other",
        "GC count",
        "invalid",
        "erases",
        "min/mean/max",
    ]);
    let mut times = Table::new(&[
        "time",
        "flash/page",
        "per flash s",
        "per s",
        "read P50",
        "P99",
        "P99.9",
        "max",
        "write P50",
        "P99",
        "P99.9",
        "max",
        "sim writes/s",
    ]);
    let mut verdicts = String::new();
    let rate = |bytes: Option<f64>| bytes.map_or_else(|| "-".to_owned(), output::bytes);
    for run in runs {
        let (host, gc) = host_and_copies(run);
        let erases = &run.erase_count;
        writes.row(vec![
            run.label.clone(),
            output::real(run.write_amplification, 3),
            output::real(run.write_amplification_last, 3),
            output::whole(host),
            output::whole(gc),
            output::whole(run.pages_programmed_total - host - gc),
            output::whole(run.gc_count),
            output::per_cent(run.victim_invalid_share_mean, 1),
            output::whole(erases.total),
            format!("{}/{:.1}/{}", erases.min, erases.mean, erases.max),
        ]);
        let at = |latency: &LatencySummary| {
            [latency.p50, latency.p99, latency.p999, latency.max].map(|ns| output::time(ns.map(|n| n as f64)))
        };
        let mut cells = vec![
            run.label.clone(),
            output::time(run.flash_time_per_host_page_ns),
            rate(run.write_throughput_bytes_per_second),
            rate(run.elapsed_write_throughput_bytes_per_second),
        ];
        // Below a log, requests are the log's own, and are not to be compared with those of the host.
        let none = LatencySummary::default();
        let latency = |own| if run.below.is_some() { &none } else { own };
        cells.extend(at(latency(&run.latency_ns.read)));
        cells.extend(at(latency(&run.latency_ns.write)));
        cells.push(output::count(run.simulator_host_writes_per_second));
        times.row(cells);
        verdicts.push_str(&format!("{}: {}\n", run.label, verdict(run)));
    }
    format!("{}\n{}\n{verdicts}", writes.render(), times.render())
}
