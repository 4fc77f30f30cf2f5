//! ASA-FTL against DFTL at equal spare: what separation may gain under greedy victims, and what it costs.

use isotherm::build::{Environment, build};
use isotherm::cause::Cause;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::stats::Snapshot;

const PAGES: u32 = 1 << 17;

/// Copies by the collector for each host page write of the last third of a run, and the counters at its end.
fn copies(ftl: &str, spare: &str, hot: f64, sets: &[&str]) -> (f64, Snapshot) {
    let mut sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    sets.extend([format!("ftl.name={ftl}"), format!("device.spare={spare}")]);
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, future: None };
    let mut device = build(&spec, &environment).unwrap();
    let mut random = Random::new(11);
    let mut before = device.snapshot();
    const TURNS: u32 = 24;
    for turn in 0..TURNS {
        if turn == TURNS * 2 / 3 {
            before = device.snapshot();
        }
        let tenth = PAGES / 10;
        let batch: Vec<Request> = (0..PAGES)
            .map(|i| {
                let page = match turn {
                    0 => i,
                    _ if hot == 0.0 => random.below(PAGES.into()) as u32,
                    _ if random.chance(hot) => random.below(tenth.into()) as u32,
                    _ => tenth + random.below((PAGES - tenth).into()) as u32,
                };
                Request { arrival_ns: 0, offset: u64::from(page) * 4096, length: 4096, op: Op::Write }
            })
            .collect();
        device.submit(&batch).unwrap();
    }
    device.check().unwrap();
    let end = device.snapshot();
    let copies = end.medium.copies[Cause::Gc] - before.medium.copies[Cause::Gc];
    (copies as f64 / (end.host.pages_written - before.host.pages_written) as f64, end)
}

#[test]
fn uniform_traffic_gains_and_loses_nothing() {
    for spare in ["0.1", "0.2"] {
        let ((dftl, _), (asa, end)) = (copies("dftl", spare, 0.0, &[]), copies("asa", spare, 0.0, &[]));
        println!("uniform, spare {spare}: {dftl:.4} copies a write under dftl, {asa:.4} under asa, {:?}", end.asa);
        assert!((asa / dftl - 1.0).abs() < 0.01, "spare {spare}: {dftl:.4} under dftl, {asa:.4} under asa");
    }
}

#[test]
fn skewed_traffic_saves_copies_but_no_more_than_separation_that_knows() {
    // Greedy victims cap what separation gains: perfect separation of the two temperatures is the ceiling, run beside.
    for spare in ["0.03", "0.1", "0.2"] {
        let (dftl, _) = copies("dftl", spare, 0.9, &[]);
        let (known, _) = copies("dftl", spare, 0.9, &["placement.name=ranges:hot=0-10%"]);
        let (asa, end) = copies("asa", spare, 0.9, &[]);
        let saved = 1.0 - asa / dftl;
        println!("90/10, spare {spare}: copies a write {dftl:.3} under dftl, {known:.3} separated, {asa:.3} under asa");
        println!("    {saved:.3} saved; {:?}; sampling reads {}", end.asa, end.medium.reads[Cause::Sampling]);
        assert!(asa < dftl && asa > known * 0.99, "spare {spare}: {asa:.3} copies a write under asa");
    }
}

#[test]
fn samples_that_are_not_cached_are_charged() {
    let (_, end) = copies("asa", "0.2", 0.9, &["dram.cache_bytes=96KiB"]);
    let asa = end.asa.unwrap();
    let reads = end.medium.reads[Cause::Sampling];
    // 8 bytes an entry: 256 translation pages, each read at most once a clustering.
    assert!(reads > 0 && reads <= asa.clusterings * 256, "{reads} sampling reads, {asa:?}");
    let dram: u64 = end.dram.iter().filter(|(name, _)| *name != "victim" && *name != "blocks").map(|d| d.1).sum();
    assert!(dram <= 96 << 10, "{:?}", end.dram);
}
