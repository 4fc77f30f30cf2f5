//! `isotherm trace`: look at traces, convert them, make synthetic ones.

use crate::reading::TraceOptions;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use isotherm_trace::{OpenOptions, Split, Spool, TraceWriter, open, profile_pages, push_csv_line, split};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Requests handled at once.
const BATCH: usize = 4096;

/// Arguments of `isotherm trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Read a trace once and describe it: format, mix, span, footprint, sizes, times
    Info {
        /// Trace file, `-` for standard input, or synth:PATTERN,key=value,...
        trace: String,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
        /// Size of the pages that the footprint is counted in
        #[arg(long, value_name = "BYTES", default_value = "4Ki", value_parser = page_size)]
        page_size: u64,
        #[command(flatten)]
        reading: TraceOptions,
    },
    /// Print the first requests as canonical CSV
    Head {
        /// Trace file, `-` for standard input, or synth:PATTERN,key=value,...
        trace: String,
        /// Number of requests
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        requests: usize,
        #[command(flatten)]
        reading: TraceOptions,
    },
    /// Convert a trace into a canonical form
    Convert {
        /// Trace file, `-` for standard input, or synth:PATTERN,key=value,...
        trace: String,
        /// File to write, ending in .csv, .csv.gz, .csv.zst or .parquet
        output: String,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
        /// Write who asks too: the process, stream or volume, numbered in the order of appearance, as a fifth column. What a
        /// canonical trace says in such a column is kept without it, where the form of the output has one
        #[arg(long)]
        streams: bool,
        #[command(flatten)]
        reading: TraceOptions,
    },
    /// Write each volume of a trace to a file of its own, from its own address 0 on
    Split {
        /// Trace file, or `-` for standard input
        trace: String,
        /// Folder to make, with a file a volume, called as the volume is
        folder: PathBuf,
        /// Form of the files: csv, csv.gz or csv.zst
        #[arg(long, value_name = "FORM", default_value = "csv.zst")]
        form: String,
        #[command(flatten)]
        reading: TraceOptions,
    },
    /// Write a synthetic workload as a trace
    #[command(after_help = patterns_help())]
    Gen {
        /// synth:PATTERN,key=value,...
        workload: String,
        /// File to write, ending in .csv, .csv.gz, .csv.zst or .parquet
        output: String,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
}

fn page_size(text: &str) -> Result<u64, String> {
    let allowed = |bytes: &u64| (512..=1 << 24).contains(bytes) && bytes.is_power_of_two();
    isotherm::registry::parse_integer(text).filter(allowed).ok_or_else(|| "a power of two from 512 to 16Mi".to_owned())
}

/// The patterns and their parameters, from the tables that parse them.
fn patterns_help() -> String {
    use isotherm_trace::synth::{COMMON, PATTERNS};
    let parameter = |p: &isotherm::registry::Parameter| {
        format!("    {:<12}{} [{}; default {}]\n", p.key, p.help, p.allowed(), p.default)
    };
    let mut help =
        "Patterns (join them with + to mix, share=WEIGHT; append @WRITES,PATTERN,... to change at a page write):\n"
            .to_owned();
    for entry in PATTERNS {
        help += &format!("  {:<12}{}\n", entry.name, entry.summary);
        entry.parameters.iter().for_each(|p| help += &parameter(p));
    }
    help += "  every workload takes\n";
    COMMON.iter().for_each(|p| help += &parameter(p));
    help
}

/// Runs the verb.
///
/// # Errors
/// The trace cannot be read or the output not written; the message names the place and the fix.
pub fn run(args: TraceArgs) -> Result<ExitCode> {
    match args.verb {
        Verb::Info { trace, json, page_size, reading } => {
            let profile = profile_pages(&trace, &reading.open_options(), page_size)?;
            let mut text = if json { serde_json::to_string_pretty(&profile)? } else { profile.to_string() };
            text.push('\n');
            print(text.as_bytes())?;
        }
        Verb::Head { trace, requests, reading } => head(&trace, requests, &reading.lossless_options())?,
        Verb::Convert { trace, output, force, streams, reading } => {
            let mut writer = TraceWriter::create(&output, force)?;
            if streams {
                writer = writer.with_streams()?;
            }
            convert(&trace, &output, writer, &reading.lossless_options())?;
        }
        Verb::Split { trace, folder, form, reading } => {
            anyhow::ensure!(
                !trace.starts_with("synth:"),
                "{trace}: a synthetic workload has no volumes; name a trace file"
            );
            let options = OpenOptions { spool: Spool::of(&trace)?, ..reading.lossless_options() };
            anyhow::ensure!(options.volume.is_none(), "--volume: splitting writes every volume; leave it out");
            let Split { volumes, requests, skipped, reordered, format } = split(&trace, &options, &folder, &form)?;
            let plural = if volumes == 1 { "" } else { "s" };
            let place = format!("{}: {volumes} volume{plural}", folder.display());
            report(&place, requests, format, skipped, reordered);
        }
        Verb::Gen { workload, output, force } => {
            anyhow::ensure!(
                workload.starts_with("synth:"),
                "{workload}: not a workload; write synth:PATTERN,key=value,..."
            );
            convert(&workload, &output, TraceWriter::create(&output, force)?, &OpenOptions::default())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output; false if nobody reads it any more, which is no error.
fn print(bytes: &[u8]) -> Result<bool> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("standard output: cannot write"),
    }
}

fn head(trace: &str, mut requests: usize, options: &OpenOptions) -> Result<()> {
    let mut reader = open(trace, options)?;
    let (mut batch, mut text) = (Vec::new(), b"ts_ns,op,offset,length\n".to_vec());
    while requests > 0 {
        let count = reader.fill(&mut batch, requests.min(BATCH))?;
        batch.drain(..).for_each(|request| push_csv_line(&mut text, &request, false));
        if !print(&text)? || count == 0 {
            break;
        }
        text.clear();
        requests -= count;
    }
    Ok(())
}

fn convert(trace: &str, output: &str, mut writer: TraceWriter, options: &OpenOptions) -> Result<()> {
    let mut reader = open(trace, options)?;
    let mut batch = Vec::with_capacity(BATCH);
    let mut requests = 0;
    while reader.fill(&mut batch, BATCH)? > 0 {
        // The first requests are read by now, and with them the heading.
        if requests == 0 && reader.names_streams() {
            writer = writer.with_streams()?;
        }
        writer.write(&batch)?;
        requests += batch.len() as u64;
        batch.clear();
    }
    writer.finish()?;
    report(output, requests, reader.format(), reader.skipped(), reader.reordered());
    Ok(())
}

/// Tells people what was done; data never goes here.
fn report(output: &str, requests: u64, format: &str, skipped: u64, reordered: u64) {
    let mut line = format!("{output}: {requests} requests from {format}");
    if skipped > 0 {
        line += &format!(", {skipped} rows skipped");
    }
    if reordered > 0 {
        line += &format!(", {reordered} put in order of time");
    }
    eprintln!("{line}");
}
