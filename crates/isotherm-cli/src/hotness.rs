//! `isotherm hotness`: which pages of a trace are hot, and how well schemes with little memory agree on it.

use std::path::PathBuf;
use std::process::ExitCode;

use isotherm::quantity::ByteSize;
use isotherm::registry::PolicyName;
use isotherm_eval::files;
use isotherm_eval::hotness::{self, PageWrites, Plan};

use crate::output::print;
use crate::progress;
use crate::reading::TraceOptions;

/// What `isotherm hotness` takes.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "`isotherm list schemes` prints every scheme with its parameters; isotherm sweep experiments/mbf.toml measures them over many traces."
)]
pub struct HotnessArgs {
    /// Trace file, `-` for standard input, or a synthetic workload (`synth:zipf,theta=0.99,pages=256Ki,writes=1M`)
    trace: String,

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

    #[command(flatten)]
    reading: TraceOptions,
}

/// Runs the verb.
///
/// # Errors
/// A trace cannot be read, a scheme is specified wrongly, results cannot be written.
pub fn run(args: &HotnessArgs) -> anyhow::Result<ExitCode> {
    let schemes = hotness::parse_schemes(&args.scheme.join(","))?;
    let writes = PageWrites::read(&args.reading.source(&args.trace)?, args.page_size)?;
    let window = args.window.unwrap_or((writes.lpns.len() as u64).div_ceil(50));
    let plan = Plan { schemes, reference: args.reference.clone(), window_writes: Some(window) };
    let measurement = hotness::measure(&writes, &plan, &*progress::interruptible()?)?;
    if let Some(path) = &args.export_csv {
        files::write_whole(path, hotness::windows_csv(&measurement).as_bytes())?;
    }
    let shown = match args.json {
        true => serde_json::to_string_pretty(&hotness::json(&args.trace, &measurement))? + "\n",
        false => hotness::text(&args.trace, &measurement),
    };
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}
