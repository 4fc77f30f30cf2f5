//! `isotherm hotness`: which pages of a trace are hot, and how well schemes with little memory agree on it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use isotherm::quantity::ByteSize;
use isotherm::registry::PolicyName;
use isotherm_eval::files;
use isotherm_eval::hotness::experiment::Experiment;
use isotherm_eval::hotness::{self, PageWrites, Plan};

use crate::output::print;
use crate::reading::TraceOptions;

/// What `isotherm hotness` takes.
#[derive(clap::Args, Debug)]
#[command(after_help = "`isotherm list schemes` prints every scheme with its parameters.")]
pub struct HotnessArgs {
    /// Trace file, `-` for standard input, or a synthetic workload (`synth:zipf,theta=0.99,pages=256Ki,writes=1M`)
    #[arg(required_unless_present = "experiment", conflicts_with = "experiment")]
    trace: Option<String>,

    /// Schemes to judge: NAME[:key=value,...],NAME ...
    #[arg(long, value_name = "NAME[:k=v,...],...", default_value = "mbf,mhf,dam,two_level_lru,fms")]
    scheme: Vec<String>,

    /// The scheme that is right by definition: wdac or dam (the papers' ideals), oracle (what is really rewritten within
    /// `window` writes; adds precision and recall), or any other
    #[arg(long, value_name = "NAME[:k=v,...]", default_value = "wdac")]
    reference: PolicyName,

    /// Page size; a write counts once for each page that it touches
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    page_size: ByteSize,

    /// Writes in each window of --export-csv; default: a fiftieth of the trace
    #[arg(long, value_name = "WRITES")]
    window: Option<u64>,

    /// Write the rates over time, one line for each window and scheme, to this file
    #[arg(long, value_name = "FILE")]
    export_csv: Option<PathBuf>,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,

    /// Run a described experiment instead of one trace (experiments/mbf.toml) and write its results to --out
    #[arg(long, value_name = "TOML", requires = "out")]
    experiment: Option<PathBuf>,

    /// Directory for the experiment's results; made if it is not there
    #[arg(long, value_name = "DIR", requires = "experiment")]
    out: Option<PathBuf>,

    /// Directory of the experiment's traces
    #[arg(long, value_name = "DIR", default_value = "traces", requires = "experiment")]
    traces: PathBuf,

    #[command(flatten)]
    reading: TraceOptions,
}

/// Runs the verb.
///
/// # Errors
/// A trace cannot be read, a scheme or experiment is specified wrongly, results cannot be written.
pub fn run(args: &HotnessArgs) -> anyhow::Result<ExitCode> {
    match (&args.trace, &args.experiment, &args.out) {
        (Some(trace), None, None) => judge(trace, args)?,
        (None, Some(experiment), Some(out)) => run_experiment(experiment, &args.traces, out)?,
        _ => bail!("give either a trace, or --experiment with --out"),
    }
    Ok(ExitCode::SUCCESS)
}

fn judge(trace: &str, args: &HotnessArgs) -> anyhow::Result<()> {
    let schemes = hotness::parse_schemes(&args.scheme.join(","))?;
    let writes = PageWrites::read(&args.reading.source(trace), args.page_size)?;
    let window = args.window.unwrap_or((writes.lpns.len() as u64).div_ceil(50));
    let plan = Plan { schemes, reference: args.reference.clone(), window_writes: Some(window) };
    let measurement = hotness::measure(&writes, &plan)?;
    if let Some(path) = &args.export_csv {
        files::write_whole(path, hotness::windows_csv(&measurement).as_bytes())?;
    }
    let shown = match args.json {
        true => serde_json::to_string_pretty(&hotness::json(trace, &measurement))? + "\n",
        false => hotness::text(trace, &measurement),
    };
    print(&shown)
}

fn run_experiment(description: &Path, traces: &Path, out: &Path) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(description).with_context(|| format!("cannot read {}", description.display()))?;
    let experiment = Experiment::from_toml(&description.to_string_lossy(), &text)?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let findings = experiment.run(traces, &mut |trace| eprintln!("{trace} ..."))?;
    for skipped in &findings.skipped {
        eprintln!("skipped {}: {}", skipped.trace, skipped.reason);
    }
    files::write_whole(&out.join("results.json"), (serde_json::to_string_pretty(&findings)? + "\n").as_bytes())?;
    files::write_whole(&out.join("agreement.csv"), findings.agreement_csv().as_bytes())?;
    files::write_whole(&out.join("sweeps.csv"), findings.sweeps_csv().as_bytes())?;
    let costs = experiment.run_costs(traces)?;
    if let Some(costs) = &costs {
        files::write_whole(&out.join("costs.json"), (serde_json::to_string_pretty(costs)? + "\n").as_bytes())?;
    }
    files::write_whole(
        &out.join("report.html"),
        isotherm_report::hotness::render(&findings, costs.as_ref())?.as_bytes(),
    )?;
    eprintln!("results in {}", out.display());
    Ok(())
}
