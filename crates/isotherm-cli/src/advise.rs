//! `isotherm advise`: what to change about a workload and its drive.

use crate::output::{self, print};
use crate::progress;
use crate::reading::TraceOptions;
use crate::table::{Column, NOTHING, Table};
use anyhow::{Context as _, anyhow};
use clap::Args;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::PolicyName;
use isotherm_advise::{Advice, Beside, DriveClass, FileMap, Plan, Question, Row, Rule, advise, calibrate, page, time};
use isotherm_eval::files;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `advise`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct AdviseArgs {
    /// Trace file, `-` for standard input, or a synthetic workload such as synth:zipf,theta=0.99,pages=1Mi,writes=10M,seed=1
    #[arg(value_name = "TRACE")]
    trace: String,
    /// Class of the drive (see `isotherm list drive-classes`)
    #[arg(long, value_name = "CLASS", default_value = "tlc-1.92t", value_parser = DriveClass::find, help_heading = "The drive")]
    drive: DriveClass,
    /// Capacity of the drive, in place of that of its class
    #[arg(long, value_name = "SIZE", help_heading = "The drive")]
    capacity: Option<ByteSize>,
    /// Over-provisioning (T-U)/U of the drive, in place of that of its class
    #[arg(long, value_name = "SHARE", help_heading = "The drive")]
    op: Option<Share>,
    /// Erases that a block endures, from the drive's data sheet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "The drive")]
    pe_cycles: Option<u32>,
    /// Years over which drive writes per day are counted
    #[arg(long, value_name = "YEARS", value_parser = positive, help_heading = "The drive")]
    warranty_years: Option<f64>,
    /// FTL of the drive: page holds its whole map in memory, dftl a part of it (see `isotherm list ftls`)
    #[arg(long, value_name = "NAME", default_value = "page", help_heading = "The drive")]
    ftl: PolicyName,
    /// DRAM of the real drive that a map held in part and a write buffer share
    #[arg(long, value_name = "SIZE", help_heading = "The drive")]
    dram: Option<ByteSize>,
    /// The map's share of --dram in the drive as it is, or a rule that adapts it (see `isotherm list splits`)
    #[arg(long, value_name = "SPLIT", default_value = "50%", requires = "dram", help_heading = "The drive")]
    split: PolicyName,
    /// Placement of the drive as it is (see `isotherm list placements`)
    #[arg(long, value_name = "NAME", default_value = "host_gc", help_heading = "The drive")]
    placement: PolicyName,
    /// Victim policy of the drive as it is (see `isotherm list victims`)
    #[arg(long, value_name = "NAME", default_value = "greedy", help_heading = "The drive")]
    victim: PolicyName,
    /// Handles (streams, placement identifiers) that the drive offers, or that the application can tag
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=16), help_heading = "The drive")]
    handles: u16,
    /// Share of the capacity that holds data, as the file system counts it
    #[arg(long, value_name = "SHARE", default_value = "85%", help_heading = "The workload")]
    fill: Share,
    /// Share of that data that the trace neither reads nor writes
    #[arg(long, value_name = "SHARE", default_value = "0%", help_heading = "The workload")]
    untouched: Share,
    /// How many times as fast as in the trace the host writes; life is counted so
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = positive, help_heading = "The workload")]
    scale_rate: f64,
    /// Which file lies where: the output of `filefrag -v FILE...` on ext4 or xfs, or of `isotherm sfs files`
    #[arg(long, value_name = "FILE", help_heading = "The workload")]
    file_map: Option<PathBuf>,
    /// Where the file system of --file-map begins on what was traced
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "file_map", help_heading = "The workload")]
    partition_offset: ByteSize,
    /// Counters of the real drive when tracing began: JSON of nvme-cli (smart-log, ocp smart-add-log, fdp stats; several in one file)
    #[arg(long, value_name = "FILE", requires = "smart_after", help_heading = "The workload")]
    smart_before: Option<PathBuf>,
    /// The same when it ended
    #[arg(long, value_name = "FILE", requires = "smart_before", help_heading = "The workload")]
    smart_after: Option<PathBuf>,
    #[command(flatten)]
    reading: TraceOptions,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "The search")]
    seed: u64,
    /// Simulate every candidate in full, and every combination of them, where else samples and the best alone choose
    #[arg(long, help_heading = "The search")]
    exhaustive: bool,
    /// Folder for advice.json, advice.html and the plans, made if need be
    #[arg(long, value_name = "DIR", default_value = "isotherm-advice", help_heading = "Results")]
    out: PathBuf,
    /// Print advice.json instead of the table, and nothing else
    #[arg(long, help_heading = "Results")]
    json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "give a number above 0".to_owned())
}

/// What follows the options.
const AFTER_HELP: &str = "The drive is simulated as large as the trace needs, with the proportions of the real one. Plans are learnt on the first two \
     thirds of the trace, and checked on the last.\n\nExamples:\n  isotherm advise traces/sqlite-wal-ext4.csv.zst --drive tlc-1.92t --fill \
     85%\n  isotherm advise db.csv.zst --drive client-tlc-1t --ftl dftl --dram 64MiB\n  isotherm advise db.csv.zst --file-map map.txt \
     --partition-offset 1MiB --smart-before a.json --smart-after b.json";

/// Advises.
pub fn run(args: &AdviseArgs) -> anyhow::Result<ExitCode> {
    let question = question(args)?;
    let beside = Beside { file_map: file_map(args)?, calibration: calibration(args)? };
    files::writable_folder(&args.out)?;
    let control = progress::interruptible()?;
    let advice = progress::with_bar(&control, None, || advise(&question, beside, &control))?;
    let set = files_of(&advice, &args.out, &args.trace)?;
    let shown = if args.json { print(&set[0].1) } else { print(&text(&advice, output::width())) };
    let bytes: Vec<(PathBuf, Vec<u8>)> =
        set.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
    for (path, _) in &bytes {
        files::writable_folder(path.parent().unwrap_or(Path::new(".")))?;
    }
    files::write_set(&bytes)?;
    shown?;
    if !args.json {
        let plans = match advice.plans.len() {
            0 => String::new(),
            count => format!("{}/ ({count} plans, with what they are exported to)\n", args.out.join("plans").display()),
        };
        print(&format!("\n{}\n{}\n{plans}", set[0].0.display(), set[1].0.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn question(args: &AdviseArgs) -> anyhow::Result<Question> {
    let mut drive = args.drive;
    if let Some(capacity) = args.capacity {
        let over_provisioning = drive.over_provisioning();
        anyhow::ensure!(capacity.0 >= 1 << 24, "--capacity: give at least 16MiB");
        drive.capacity_bytes = capacity.0;
        drive.flash_bytes = (capacity.0 as f64 * (1.0 + over_provisioning)) as u64;
    }
    if let Some(Share(share)) = args.op {
        anyhow::ensure!((0.02..=10.0).contains(&share), "--op: {} is out of range; give 2% to 1000%", Share(share));
        drive.flash_bytes = (drive.capacity_bytes as f64 * (1.0 + share)) as u64;
    }
    drive.pe_cycles = args.pe_cycles.unwrap_or(drive.pe_cycles);
    drive.warranty_years = args.warranty_years.unwrap_or(drive.warranty_years);
    let (fill, untouched) = (args.fill.0, args.untouched.0);
    anyhow::ensure!(fill > 0.0 && fill <= 1.0, "--fill: {} is out of range; give above 0% to 100%", args.fill);
    anyhow::ensure!(untouched < 1.0, "--untouched: {} is out of range; give 0% to below 100%", args.untouched);
    Ok(Question {
        trace: args.reading.source(&args.trace)?,
        drive,
        fill,
        untouched,
        ftl: args.ftl.clone(),
        dram_bytes: args.dram.map(|size| size.0),
        split: args.split.clone(),
        placement: args.placement.clone(),
        victim: args.victim.clone(),
        handles_max: usize::from(args.handles),
        scale_rate: args.scale_rate,
        exhaustive: args.exhaustive,
        seed: args.seed,
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read; check the path", path.display()))
}

fn file_map(args: &AdviseArgs) -> anyhow::Result<Option<FileMap>> {
    let Some(path) = &args.file_map else { return Ok(None) };
    let map = FileMap::parse(&read(path)?, args.partition_offset.0);
    map.map(Some).map_err(|problem| anyhow!("{}: {problem}", path.display()))
}

fn calibration(args: &AdviseArgs) -> anyhow::Result<Option<isotherm_advise::Calibration>> {
    let (Some(before), Some(after)) = (&args.smart_before, &args.smart_after) else { return Ok(None) };
    calibrate(&read(before)?, &read(after)?).map(Some).map_err(anyhow::Error::msg)
}

/// The columns of the table.
const COLUMNS: [Column; 6] = [
    Column::new("what"),
    Column { header: "WA", note: "bytes of flash written for a byte of the host, steady", rank: 0 },
    Column { header: "saves", note: "", rank: 2 },
    Column { header: "life", note: "until the flash is worn out, at the trace's rate", rank: 0 },
    Column { header: "P99.9 write", note: "", rank: 3 },
    Column { header: "trust", note: "", rank: 1 },
];

fn cells(row: &Row, base: &Row) -> Vec<String> {
    let wa = row.write_amplification_bytes;
    let saving = wa.zip(base.write_amplification_bytes).map(|(wa, base)| 1.0 - wa / base);
    vec![
        row.what.clone(),
        output::real(wa, 2),
        saving
            .filter(|_| !std::ptr::eq(row, base))
            .map_or_else(|| NOTHING.to_owned(), |share| output::per_cent(Some(share), 0)),
        row.life.and_then(|life| life.years).map_or_else(|| NOTHING.to_owned(), time),
        row.write_p999_ns.map_or_else(|| NOTHING.to_owned(), |ns| output::time(Some(ns as f64))),
        row.verdict().to_owned(),
    ]
}

/// The answer for a terminal.
fn text(advice: &Advice, width: usize) -> String {
    let mut text = String::new();
    let life = &advice.life_inputs;
    let rate = life
        .wanted_drive_writes_per_day()
        .map_or(String::new(), |dwpd| format!(", {} drive writes a day", output::significant(Some(dwpd))));
    let line = format!(
        "{}: {} written, {} trims{rate}; drive {} ({}), {} logical in the simulation",
        advice.trace.name,
        output::bytes(advice.trace.written_bytes as f64),
        output::whole(advice.trace.trims),
        advice.drive,
        advice.firmware,
        output::bytes((advice.situation.logical_pages * isotherm_advise::PAGE_BYTES) as f64),
    );
    text.push_str(&output::wrapped(&line, width, 2));
    for note in &advice.situation.notes {
        text.push_str(&output::wrapped(&format!("  {note}"), width, 2));
    }
    text.push('\n');
    if let Some(base) = advice.rows.first() {
        let mut table = Table::new(&COLUMNS);
        advice.rows.iter().for_each(|row| table.row(cells(row, base)));
        text.push_str(&table.render(width));
        for row in advice.rows.iter().filter(|row| !row.is_sound()) {
            text.push_str(&output::wrapped(&format!("{}: {}", row.what.trim_start_matches("+ "), row.trust), width, 2));
        }
    }
    text.push('\n');
    text.push_str(&output::wrapped(&advice.recommendation.text, width, 0));
    for other in &advice.recommendation.others {
        text.push_str(&output::wrapped(&format!("- {other}"), width, 2));
    }
    if let Some(calibration) = &advice.calibration {
        text.push_str(&output::wrapped(&calibration.text, width, 0));
    }
    text.push_str(&output::wrapped(
        &format!(
            "{} runs over {} host page writes; {} candidates were dropped (advice.json says why)",
            advice.runs,
            output::count(advice.pages_replayed as f64),
            advice.dropped.len()
        ),
        width,
        2,
    ));
    text
}

/// Name of a plan's folder.
fn name_of(plan: &Plan) -> String {
    let by = match &plan.rule {
        Rule::Address(_) => "address",
        Rule::Size(_) => "size",
        Rule::Source(_) => "source",
    };
    format!("{}-handles-by-{by}", plan.handles)
}

/// Every file: the advice first, then the page, then what each plan is exported to.
fn files_of(advice: &Advice, out: &Path, trace: &str) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let json = files::to_json(advice);
    let mut set = vec![(out.join("advice.json"), json), (out.join("advice.html"), page::render(advice)?)];
    let device_bytes = advice.life_inputs.capacity_bytes.max(advice.trace.span_bytes);
    for (at, plan) in advice.plans.iter().enumerate() {
        let folder = out.join("plans").join(name_of(plan));
        let mut add = |name: &str, text: String| set.push((folder.join(name), text));
        add("plan.json", plan.to_json());
        add("fdp.json", plan.fdp_json(device_bytes));
        add("hints.md", plan.hints_markdown());
        if let (Some(scheme), Some(job)) = (plan.fio_scheme(device_bytes), plan.fio_job("fio-dp-scheme.txt")) {
            add("fio-dp-scheme.txt", scheme);
            add("write.fio", job);
        }
        if let Some(placement) = plan.placement(device_bytes) {
            add("placement.txt", format!("{placement}\n"));
        }
        let row = advice.rows.iter().find(|row| row.plan == Some(at) && row.replay_options.is_some());
        if let Some((row, options)) = row.and_then(|row| Some((row, row.replay_options.as_ref()?))) {
            add("drive.toml", row.spec_toml.clone());
            let folder = folder.display();
            add(
                "replay.txt",
                format!("isotherm run {trace} --plan {folder}/plan.json --spec {folder}/drive.toml {options}\n"),
            );
        }
    }
    Ok(set)
}
