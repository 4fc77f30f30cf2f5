//! `isotherm advise`: what to change about a workload and its drive.

use crate::options::seed;
use crate::output::{self, print};
use crate::progress;
use crate::reading::TraceOptions;
use crate::table::{Column, NOTHING, Table};
use clap::Args;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::PolicyName;
use isotherm_advise::{Advice, Beside, DriveClass, KnownOfDrive, Question, Row, advise, export, time};
use isotherm_eval::files;
use std::path::PathBuf;
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
    #[arg(long, value_name = "N", help_heading = "The drive")]
    pe_cycles: Option<u32>,
    /// Years over which drive writes per day are counted
    #[arg(long, value_name = "YEARS", help_heading = "The drive")]
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
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "The drive")]
    handles: u16,
    /// Share of the capacity that holds data, as the file system counts it
    #[arg(long, value_name = "SHARE", default_value = "85%", help_heading = "The workload")]
    fill: Share,
    /// Share of that data that the trace neither reads nor writes
    #[arg(long, value_name = "SHARE", default_value = "0%", help_heading = "The workload")]
    untouched: Share,
    /// How many times as fast as in the trace the host writes; life is counted so
    #[arg(long, value_name = "FACTOR", default_value = "1", help_heading = "The workload")]
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
    /// Seed of every random choice of the device; a synthetic workload has its own (synth:...,seed=2)
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = seed, help_heading = "The search")]
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

/// What follows the options.
const AFTER_HELP: &str = "The drive is simulated as large as the trace needs, with the proportions of the real one. Plans are learnt on the first two \
     thirds of the trace, and checked on the last.\n\nExamples:\n  isotherm advise traces/sqlite-wal-ext4.csv.zst --drive tlc-1.92t --fill \
     85%\n  isotherm advise db.csv.zst --drive client-tlc-1t --ftl dftl --dram 64MiB\n  isotherm advise db.csv.zst --file-map map.txt \
     --partition-offset 1MiB --smart-before a.json --smart-after b.json";

/// Advises.
pub fn run(args: &AdviseArgs) -> anyhow::Result<ExitCode> {
    let question = question(args)?;
    let map = args.file_map.as_deref().map(|path| (path, args.partition_offset.0));
    let beside = Beside::read(map, args.smart_before.as_deref().zip(args.smart_after.as_deref()))?;
    let _claimed = files::claim_folder(&args.out)?;
    let control = progress::interruptible()?;
    let advice = progress::with_bar(&control, None, || advise(&question, beside, &control))?;
    let shown = if args.json { print(&files::to_json(&advice)) } else { print(&text(&advice, output::width())) };
    let written = export::write(&advice, &args.out, &args.trace)?;
    shown?;
    if !args.json {
        let plans = match advice.plans.len() {
            0 => String::new(),
            count => format!("{}/ ({count} plans, with what they are exported to)\n", args.out.join("plans").display()),
        };
        print(&format!("\n{}\n{}\n{plans}", written[0].display(), written[1].display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn question(args: &AdviseArgs) -> anyhow::Result<Question> {
    let known = KnownOfDrive {
        capacity_bytes: args.capacity.map(|size| size.0),
        over_provisioning: args.op.map(|share| share.0),
        pe_cycles: args.pe_cycles,
        warranty_years: args.warranty_years,
    };
    let question = Question {
        trace: args.reading.source(&args.trace)?,
        drive: args.drive.with(&known)?,
        fill: args.fill.0,
        untouched: args.untouched.0,
        ftl: args.ftl.clone(),
        dram_bytes: args.dram.map(|size| size.0),
        split: args.split.clone(),
        placement: args.placement.clone(),
        victim: args.victim.clone(),
        handles_max: usize::from(args.handles),
        scale_rate: args.scale_rate,
        exhaustive: args.exhaustive,
        seed: args.seed,
    };
    // Before anything is read or made.
    question.check()?;
    Ok(question)
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
