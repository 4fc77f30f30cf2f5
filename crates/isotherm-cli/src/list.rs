//! `isotherm list`: everything that can be named, from the registries.

use crate::output::{self, print};
use crate::{reference, schema};
use anyhow::bail;
use clap::{Args, ValueEnum};
use isotherm::dram::buffer::BUFFERS;
use isotherm::dram::partition::SPLITS;
use isotherm::ftl::FTLS;
use isotherm::hotness::SCHEMES;
use isotherm::nand::timing::TIMINGS;
use isotherm::placement::PLACEMENTS;
use isotherm::registry::{Entry, Parameter};
use isotherm::spec::Specification as _;
use isotherm::stats::SectionEntry;
use isotherm::victim::VICTIMS;
use isotherm_advise::DriveClass;
use isotherm_eval::ReplaySpec;
use isotherm_sfs::SystemSpec;
use isotherm_sfs::drive::DRIVES;
use isotherm_sfs::options::LOGS;
use isotherm_trace::FORMATS;
use isotherm_trace::synth::{COMMON, MIX, PATTERNS};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `list`.
#[derive(Args)]
pub struct ListArgs {
    /// What to list; without it, what can be listed
    kind: Option<Kind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Of the parameters, print the JSON Schema of a specification
    #[arg(long, conflicts_with = "json")]
    schema: bool,
    /// Of the parameters, print a page in Markdown
    #[arg(long, conflicts_with_all = ["json", "schema"])]
    markdown: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Which stream a page goes to
    Placements,
    /// Which block is cleaned
    Victims,
    /// Flash translation layers
    Ftls,
    /// Policies of a write buffer in the drive's DRAM
    Buffers,
    /// How write buffer and map share the DRAM
    Splits,
    /// Hot data identification schemes
    Schemes,
    /// Formats of trace files
    Formats,
    /// Synthetic workloads
    Patterns,
    /// Sets of flash latencies
    Timings,
    /// Log-structured file systems
    Logs,
    /// What parts of a device count: sections of results, and their keys
    Counters,
    /// Drives that a log's write cost is counted in
    Drives,
    /// Classes of drives that advice is given for
    DriveClasses,
    /// Every key of a specification, as --set, TOML files and experiments take it
    Parameters,
}

/// One line of any registry.
struct Row {
    name: &'static str,
    summary: String,
    /// Further facts: a label and a text.
    facts: Vec<(&'static str, String)>,
    parameters: &'static [Parameter],
}

/// Lists.
pub fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    if args.schema || args.markdown {
        if !matches!(args.kind, Some(Kind::Parameters)) {
            bail!("--schema and --markdown are about the keys of a specification: write isotherm list parameters");
        }
        let page = if args.schema { format!("{:#}\n", schema::schema()) } else { reference::markdown() };
        print(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(kind) = args.kind else {
        print(&kinds(args.json))?;
        return Ok(ExitCode::SUCCESS);
    };
    let rows = listed(kind);
    print(&if args.json { format!("{:#}\n", Value::from_iter(rows.iter().map(to_json))) } else { to_text(&rows) })?;
    Ok(ExitCode::SUCCESS)
}

/// The names of a registry, by the word that lists it.
pub fn names(list: &str) -> Option<Vec<&'static str>> {
    Some(listed(Kind::from_str(list, false).ok()?).iter().map(|row| row.name).collect())
}

/// What can be listed: the words that are taken, with their help.
fn kinds(as_json: bool) -> String {
    let words: Vec<(String, String)> = Kind::value_variants()
        .iter()
        .filter_map(Kind::to_possible_value)
        .map(|word| (word.get_name().to_owned(), word.get_help().map(ToString::to_string).unwrap_or_default()))
        .collect();
    if as_json {
        let object = |(name, summary): &(String, String)| json!({"name": name, "summary": summary});
        return format!("{:#}\n", words.iter().map(object).collect::<Value>());
    }
    words.iter().map(|(name, summary)| format!("isotherm list {name}\n    {summary}\n")).collect()
}

fn listed(kind: Kind) -> Vec<Row> {
    match kind {
        Kind::Placements => rows(PLACEMENTS),
        Kind::Victims => rows(VICTIMS),
        Kind::Ftls => rows(FTLS),
        Kind::Buffers => rows(BUFFERS),
        Kind::Splits => rows(SPLITS),
        Kind::Schemes => rows(SCHEMES),
        Kind::Timings => rows(TIMINGS),
        Kind::Logs => rows(LOGS),
        Kind::Drives => rows(DRIVES),
        Kind::DriveClasses => isotherm_advise::DRIVES.iter().map(drive_class).collect(),
        Kind::Counters => isotherm_eval::results::sections().map(counters).collect(),
        Kind::Formats => formats(),
        Kind::Patterns => patterns(),
        Kind::Parameters => keys(),
    }
}

fn rows<B>(table: &'static [Entry<B>]) -> Vec<Row> {
    let row = |entry: &'static Entry<B>| Row {
        name: entry.name,
        summary: entry.summary.to_owned(),
        facts: vec![("paper", entry.paper.to_owned()), ("memory", entry.memory.to_owned())],
        parameters: entry.parameters,
    };
    table.iter().map(row).collect()
}

fn drive_class(drive: &'static DriveClass) -> Row {
    let facts = vec![
        ("capacity", output::bytes(drive.capacity_bytes as f64)),
        (
            "flash",
            format!(
                "{}, an over-provisioning of {:.1} %; a power of two in GiB, as drives hold (ATP)",
                output::bytes(drive.flash_bytes as f64),
                drive.over_provisioning() * 100.0
            ),
        ),
        ("P/E cycles", format!("{}; {}", output::whole(drive.pe_cycles.into()), drive.pe_cycles_source)),
        ("latencies", format!("{} (isotherm list timings)", drive.timing)),
        ("warranty", format!("{} years", drive.warranty_years)),
        (
            "promised",
            drive
                .rated_dwpd
                .map_or_else(String::new, |dwpd| format!("{dwpd} drive writes a day, as vendors name the class")),
        ),
    ];
    Row { name: drive.name, summary: drive.summary.to_owned(), facts, parameters: &[] }
}

/// A section of results: its keys are its facts.
fn counters(entry: &'static SectionEntry) -> Row {
    let facts = entry.description.keys.iter().map(|key| (key.name, key.text())).collect();
    Row { name: entry.name, summary: entry.description.text(), facts, parameters: &[] }
}

fn formats() -> Vec<Row> {
    let row = |entry: &'static isotherm_trace::FormatEntry| Row {
        name: entry.name,
        summary: entry.summary.to_owned(),
        facts: vec![
            ("time", entry.time_unit.to_owned()),
            ("address", entry.address_unit.to_owned()),
            ("source", entry.source.to_owned()),
        ],
        parameters: &[],
    };
    FORMATS.iter().map(row).collect()
}

/// The keys of a specification, from the table that parses them.
fn keys() -> Vec<Row> {
    let row = |key: &'static Parameter| Row {
        name: key.key,
        summary: key.help.to_owned(),
        facts: vec![
            ("kind", key.kind.name().to_owned()),
            ("allowed", key.kind.allowed()),
            ("unit", key.unit.to_owned()),
            ("default", key.default_words().to_owned()),
            ("option", key.option.map_or_else(String::new, |option| format!("--{option}"))),
        ],
        parameters: &[],
    };
    SystemSpec::rows().chain(ReplaySpec::rows()).map(row).collect()
}

fn patterns() -> Vec<Row> {
    let mut rows = rows(PATTERNS);
    rows.push(Row {
        name: "(every pattern)",
        summary: "parameters that all synthetic workloads have".to_owned(),
        facts: Vec::new(),
        parameters: COMMON,
    });
    rows.push(Row {
        name: "(every pattern of a mix)",
        summary: "parameters of each of several patterns that are joined by +".to_owned(),
        facts: Vec::new(),
        parameters: MIX,
    });
    rows
}

fn to_text(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&format!("{}\n    {}\n", row.name, row.summary));
        for (label, fact) in row.facts.iter().filter(|f| !f.1.is_empty()) {
            text.push_str(&format!("    {label}: {fact}\n"));
        }
        for p in row.parameters {
            let default = if p.default.is_empty() { "none" } else { p.default };
            text.push_str(&format!("    {}={default}  ({})  {}\n", p.key, p.allowed(), p.help));
        }
    }
    text
}

fn to_json(row: &Row) -> Value {
    let to_value = |p: &Parameter| {
        let (kind, allowed) = (p.kind.name(), p.kind.allowed());
        json!({"key": p.key, "kind": kind, "unit": p.unit, "default": p.default, "allowed": allowed, "help": p.help})
    };
    let parameters: Vec<Value> = row.parameters.iter().map(to_value).collect();
    let mut object = json!({"name": row.name, "summary": row.summary});
    for (label, fact) in &row.facts {
        object[*label] = Value::from(fact.as_str());
    }
    object["parameters"] = Value::from(parameters);
    object
}
