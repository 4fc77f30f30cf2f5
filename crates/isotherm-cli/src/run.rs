//! `isotherm run`: one trace on one device.

use crate::options::{DeviceOptions, ReplayOptions};
use crate::output::{self, print};
use crate::progress;
use crate::reading::TraceOptions;
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use isotherm::cause::Cause;
use isotherm::nand::timing::TIMINGS;
use isotherm::quantity::ByteSize;
use isotherm_advise::{Plan, View};
use isotherm_eval::results::{LatencySummary, RunResult};
use isotherm_eval::{RunSpec, files, needs_survey, prepare, survey, writers_note};
use isotherm_sfs::SystemSpec;
use isotherm_sfs::snapshot::LogSnapshot;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments of `run`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  isotherm run traces/sqlite-wal-ext4.csv.zst --address compact --precondition trace\n  isotherm run synth:zipf,theta=0.99,pages=1Mi,writes=10M --op 7% --victim cost_benefit --json"
)]
pub struct RunArgs {
    /// Trace file, `-` for standard input, or a synthetic workload such as synth:zipf,theta=0.99,pages=1Mi,writes=10M,seed=1
    #[arg(value_name = "TRACE", required_unless_present = "print_config")]
    trace: Option<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    replay: ReplayOptions,
    #[command(flatten)]
    reading: TraceOptions,
    /// Tag every write with a handle, as a plan of `isotherm advise` says; the placement is `streams` then
    #[arg(long, value_name = "FILE", help_heading = "The replay")]
    plan: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// Columns of the names before the values.
const NAMES: usize = 21;

/// Runs.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let device = args.device.single()?;
    let trace = match &args.trace {
        Some(trace) if !args.device.print_config => trace,
        _ => {
            print(&args.device.config(&device)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let spec = planned(args, args.replay.run_spec(args.reading.source(trace)?, device)?)?;
    let survey = needs_survey(&spec).then(|| survey(&spec)).transpose()?;
    let prepared = prepare(&spec, survey.as_ref())?;
    if let Some(words) = writers_note(&spec, survey.as_ref()) {
        output::note(&spec.device.placement.name.to_string(), "placement", words);
    }
    if !args.json {
        let profile = spec.trace.profile(spec.device.device.page_size.0)?;
        print(&output::wrapped(&profile.sanity_line(), output::width(), 2))?;
    }
    let control = progress::interruptible()?;
    let total = survey.map(|s| s.page_writes * u64::from(spec.replay.repeat));
    let result = progress::with_bar(&control, total, || prepared.run(&control))?;
    if args.json {
        print(&files::to_json(&result))?;
    } else {
        let lines = text(&result);
        print(&lines.lines().map(|line| output::wrapped(line, output::width(), NAMES)).collect::<String>())?;
    }
    Ok(exit_code(std::slice::from_ref(&result)))
}

/// The run with its writes tagged, where a plan was given. A placement of streams that is given stays: it says what becomes of copies.
fn planned(args: &RunArgs, spec: RunSpec) -> anyhow::Result<RunSpec> {
    let Some(path) = &args.plan else { return Ok(spec) };
    let name = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("{name}: the plan cannot be read; check the path"))?;
    let plan = Plan::from_json(&text).map_err(|problem| anyhow!("{name}: {problem}"))?;
    let mut device = spec.device.clone();
    let streams = format!("streams:count={}", plan.handles.max(2));
    if !args.device.gives("placement.name")? {
        device.placement.name = streams.parse()?;
    } else if device.placement.name.name != "streams" {
        bail!("--plan: handles are streams, and the placement is {}; use --placement {streams}", device.placement.name);
    }
    let trace = View { plan: Some(Arc::new(plan)), ..View::default() }.of(&spec.trace);
    Ok(RunSpec { trace, device, ..spec })
}

/// A device that stopped, full or worn out, has results up to there, but not those that were asked for.
pub fn exit_code(runs: &[RunResult]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for run in runs {
        if let Some(reason) = &run.stopped {
            eprintln!("isotherm: {}: {}: the run stopped before the trace ended: {reason}", run.trace, run.label);
            code = ExitCode::from(crate::WRONG_INPUT);
        }
    }
    code
}

/// `host 1 000 + gc 500`.
fn parts(result: &RunResult) -> String {
    let part = |(cause, pages): (String, u64)| format!("{cause} {}", output::whole(pages));
    result.pages_by_cause().into_iter().map(part).collect::<Vec<_>>().join(" + ")
}

fn latency_line(name: &str, latency: &LatencySummary) -> String {
    let at = |ns: Option<u64>| output::time(ns.map(|n| n as f64));
    format!(
        "{:<NAMES$}mean {}, P50 {}, P90 {}, P99 {}, P99.9 {}, P99.99 {}, max {}\n",
        format!("{name} latency"),
        output::time(latency.mean),
        at(latency.p50),
        at(latency.p90),
        at(latency.p99),
        at(latency.p999),
        at(latency.p9999),
        at(latency.max)
    )
}

/// The result for people, write amplification first.
fn text(result: &RunResult) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<NAMES$}{value}").expect("writing to a string cannot fail");
    };
    let wa = output::real(result.write_amplification, 3);
    let of_pages = format!("{wa} = ({}) / {} host pages", parts(result), output::whole(result.host_pages_written));
    // Where requests are smaller than pages, a page counts for more than the host wrote of it.
    if result.host_pages_partly_written > 0 {
        let of_bytes = output::real(result.write_amplification_bytes, 3);
        let (media, host) = (result.media_bytes_written as f64, result.host_bytes_written as f64);
        let sizes = format!("{} programmed / {} written", output::bytes(media), output::bytes(host));
        line("write amplification", format!("{of_bytes} in bytes, {sizes}"));
        line("  in pages", of_pages);
    } else {
        line("write amplification", of_pages);
    }
    if result.workload.measure_last_pages.is_some() {
        let last = output::real(result.write_amplification_last, 3);
        line(
            "  in the last window",
            format!("{last} over {} host pages", output::whole(result.last_window.host_pages_written)),
        );
    }
    if let Some(wa) = result.write_amplification_known_rates {
        line("  by known rates", output::known_rates_note(wa));
    }
    let log = result.sections.get::<LogSnapshot>();
    if let Some(log) = &log {
        line(
            "log",
            format!(
                "write amplification {} ({} host, {} cleaned, {} metadata blocks; {} host blocks absorbed), end to end {}",
                output::real(log.write_amplification, 3),
                output::whole(log.host_blocks_logged),
                output::whole(log.blocks_cleaned),
                output::whole(log.metadata_blocks),
                output::whole(log.host_blocks_absorbed),
                output::real(result.write_amplification_end_to_end, 3)
            ),
        );
        line(
            "  cleaning",
            format!(
                "{} segments of {} live on average, write cost {}",
                output::whole(log.segments_cleaned),
                output::per_cent(log.victim_utilisation_mean, 1),
                output::real(log.write_cost, 2)
            ),
        );
    }
    line(
        if log.is_some() { "files and device" } else { "device" },
        format!(
            "{} logical, {}",
            output::bytes((result.device.logical_pages * result.device.page_bytes) as f64),
            output::spare_space(&result.device, &result.spec),
        ),
    );
    if log.is_some() && result.below.is_none() {
        // Nothing lies below that would be erased, take time or wear out.
        return text + &last_lines(result);
    }
    line("placement, victim", format!("{}, {}", result.spec.placement.name, result.spec.gc.victim));
    line(
        "collections",
        format!(
            "{}, victims {} invalid on average, {} pages copied",
            output::whole(result.gc_count),
            output::per_cent(result.victim_invalid_share_mean, 1),
            output::whole(result.gc_pages_copied)
        ),
    );
    let erases = &result.erase_count;
    line(
        "erases",
        format!(
            "{} in total; per block {} / {:.1} / {} (min/mean/max)",
            output::whole(erases.total),
            erases.min,
            erases.mean,
            erases.max
        ),
    );
    let wear = &result.spec.wear;
    let levelled = result.pages_programmed.get(Cause::Wear.key()).and_then(|pages| pages.as_u64()).unwrap_or(0);
    if wear.leveling && levelled == 0 {
        // A longer run also pays for it.
        let (threshold, spread) = (wear.threshold, erases.spread);
        line(
            "",
            format!(
                "wear levelling moved nothing: blocks are {spread} erases apart since new, {threshold} are allowed"
            ),
        );
    }
    line(
        "flash time",
        format!(
            "{}, {} per host page, {} written per second of flash time",
            output::time(Some(result.flash_time_ns as f64)),
            output::time(result.flash_time_per_host_page_ns),
            result.write_throughput_bytes_per_second.map_or_else(|| "-".to_owned(), output::bytes)
        ),
    );
    if let Some(note) = other_pages(&result.spec) {
        line("", note);
    }
    if let Some(elapsed_ns) = result.elapsed_ns {
        let rate = result.elapsed_write_throughput_bytes_per_second.map_or_else(|| "-".to_owned(), output::bytes);
        line("elapsed time", format!("{}, {rate} written per second", output::time(Some(elapsed_ns as f64))));
    }
    for (name, latency) in [("read", &result.latency_ns.read), ("write", &result.latency_ns.write)] {
        if latency.count > 0 {
            // Below a log, requests are the log's own.
            let name = if result.below.is_some() { format!("log's {name}") } else { name.to_owned() };
            text.push_str(&latency_line(&name, latency));
        }
    }
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<NAMES$}{value}").expect("writing to a string cannot fail");
    };
    result.latency_notes().into_iter().for_each(|note| line("", note));
    let life = &result.lifetime;
    let terabytes = output::significant(life.terabytes_written_bytes.map(|bytes| bytes / 1e12));
    let years = match life.years {
        Some(years) => format!("{} years at the trace's rate", output::significant(Some(years))),
        None => "no years, which need times and writes".to_owned(),
    };
    line(
        "lifetime",
        format!(
            "TBW {terabytes} TB, DWPD {} over {} years, {years} ({} erases of a block{})",
            output::significant(life.drive_writes_per_day),
            life.warranty_years,
            output::whole(life.endurance_erases),
            if life.endurance_assumed { ", assumed" } else { "" }
        ),
    );
    if let Some(used) = result.percent_used {
        line("  used by this run", format!("{} %", output::significant(Some(used))));
    }
    // Without an endurance that was given, there is no percentage, and its formula says nothing.
    let is_told = |formula: &&String| result.percent_used.is_some() || !formula.starts_with("percent used");
    life.formulas.iter().filter(is_told).for_each(|formula| line("", formula.clone()));
    text + &last_lines(result)
}

/// What is to be known of latencies that were measured on pages of another size than the device has.
fn other_pages(spec: &SystemSpec) -> Option<String> {
    let (timing, page_bytes) = (&spec.timing, spec.device.page_size.0);
    let is_all_given = timing.read_ns.is_some() && timing.program_ns.is_some() && timing.transfer_ns.is_some();
    let preset = TIMINGS.iter().find(|preset| preset.name == timing.preset && !is_all_given)?;
    let measured = preset.build.page_bytes.map(u64::from).filter(|bytes| *bytes != page_bytes)?;
    let [measured, ours] = [measured, page_bytes].map(ByteSize);
    Some(format!(
        "timing {} was measured on pages of {measured}, and the device's have {ours}: --page-size {measured} is what it fits",
        preset.name
    ))
}

/// What every result ends with.
fn last_lines(result: &RunResult) -> String {
    let rate = output::count(result.simulator_host_writes_per_second);
    format!("{:<NAMES$}{rate} host writes/s\n{:<NAMES$}{}\n", "simulator", "verdict", verdict(result))
}

/// The verdict in words.
pub fn verdict(result: &RunResult) -> String {
    let verdict = &result.verdict;
    let drives = format!("{:.1} drive writes, {}", verdict.drive_writes, verdict.live());
    if !verdict.valid {
        let light = verdict.light.as_ref().map(|text| format!("; and light: {text}")).unwrap_or_default();
        return format!("not valid ({drives}): {}{light}", verdict.reasons.join("; "));
    }
    let steady = match verdict.swing() {
        Some([least, most]) => format!("steady as a whole, between {least:.2} and {most:.2} within"),
        None => "steady".to_owned(),
    };
    let (names, texts): (Vec<&str>, Vec<&str>) = verdict.caveats().into_iter().unzip();
    if names.is_empty() {
        return format!("valid ({drives}, {steady})");
    }
    format!("valid, but {} ({drives}, {steady}): {}", names.join(", and "), texts.join("; "))
}
