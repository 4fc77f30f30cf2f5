//! Results with every kind of section filled, made from a fixed seed: two placements, two victim policies, one run that is
//! not valid, and a trace whose name tries to break out of the page.

use isotherm::random::Random;
use isotherm::spec::DeviceSpec;
use isotherm_eval::results::*;
use serde_json::{Map, Value, json};

/// A trace name as a hostile or careless user may give it.
pub const EVIL: &str = "</script><img src=x onerror=\"window.broken=1\">&'\".csv.zst";

const LOGICAL_PAGES: u64 = 65_536;
const WINDOWS: u64 = 60;

/// Six runs of `compare`.
pub fn compare() -> ResultsFile {
    let mut runs = Vec::new();
    for (placement, gain) in [("epoch", 1.0), ("host_gc", 1.25), ("single", 1.7)] {
        for (victim, cost) in [("cost_benefit", 1.0), ("greedy", 1.12)] {
            runs.push(run(placement, victim, gain * cost, runs.len() as u64));
        }
    }
    runs.sort_by(|a, b| a.write_amplification.partial_cmp(&b.write_amplification).unwrap());
    let invalid = runs.last_mut().unwrap();
    invalid.verdict.valid = false;
    invalid.verdict.reasons =
        vec![format!("write amplification still moves under {EVIL}"), "2 lines were skipped".into()];
    ResultsFile {
        schema_version: SCHEMA_VERSION,
        version: "0.1.0".into(),
        command: format!(
            "isotherm compare '{EVIL}' --placement single,host_gc,epoch --victim greedy,cost_benefit --op 7%"
        ),
        traces: vec![trace()],
        experiment: None,
        runs,
    }
}

/// An experiment over the same runs, with published numbers beside them and across them.
pub fn experiment() -> ResultsFile {
    let published = |label: &str, value, x: Option<&str>| Published {
        label: label.into(),
        value,
        unit: "relative to single".into(),
        x: x.map(Value::from),
        series: x.map(|_| Value::from("epoch")),
    };
    let bars = Figure {
        title: "Figure 5: garbage collections".into(),
        kind: FigureKind::Bars,
        x: "victim".into(),
        y: "gc_count".into(),
        y_label: "Victims collected, relative to single".into(),
        series: Some("placement".into()),
        relative_to: Some("single".into()),
        only: Map::new(),
        published: vec![published("Fig. 5, Financial1", 0.672, Some("greedy")), published("abstract", 0.9, None)],
        note: "Ours saves more, because the footprint is smaller.".into(),
    };
    let mut results = compare();
    results.experiment = Some(Experiment {
        title: "Epochs against page mapping".into(),
        description: "How much does the epoch scheme save?".into(),
        figures: vec![bars],
        findings: vec!["It saves a third of the collections.".into()],
    });
    results
}

fn trace() -> TraceSummary {
    TraceSummary {
        name: EVIL.into(),
        format: "isotherm capture".into(),
        requests: 1_234_567,
        reads: 234_567,
        writes: 900_000,
        trims: 90_000,
        flushes: 10_000,
        read_bytes: 5_000_000_000,
        written_bytes: 7_000_000_000,
        trimmed_bytes: 900_000_000,
        span_bytes: LOGICAL_PAGES * 4096,
        footprint_bytes: 200_000_000,
        written_footprint_bytes: 180_000_000,
        unaligned_share: 0.0123,
        page_bytes: 4096,
        duration_ns: 600_000_000_000,
        skipped_lines: 2,
    }
}

fn run(placement: &str, victim: &str, cost: f64, seed: u64) -> RunResult {
    let mut random = Random::new(seed);
    let mut noise = |scale: f64| (random.unit() - 0.5) * scale;
    let host = 3 * LOGICAL_PAGES;
    let gc = (host as f64 * 0.6 * cost) as u64;
    let series_wa: Vec<Option<f64>> =
        (0..WINDOWS).map(|i| Some(1.0 + 0.6 * cost * (1.0 - (-(i as f64) / 8.0).exp()) + noise(0.04))).collect();
    let latency = |scale: f64| LatencySummary {
        count: 900_000,
        mean: Some(310_000.5 * scale),
        p50: Some((250_000.0 * scale) as u64),
        p90: Some((600_000.0 * scale) as u64),
        p99: Some((2_500_000.0 * scale) as u64),
        p999: Some((9_000_000.0 * scale) as u64),
        p9999: Some((20_000_000.0 * scale) as u64),
        max: Some((41_000_000.0 * scale) as u64),
    };
    let buckets = |shift: f64| -> Vec<LatencyBucket> {
        let height = |k: u32| (1e6 * (-(f64::from(k) - 8.0 - shift).abs() * 0.9).exp()) as u64;
        (0..16).map(|k| LatencyBucket { up_to_ns: 1000 << k, count: height(k) }).collect()
    };
    let bell = |middle: f64, width: f64, n: usize| -> Vec<u64> {
        (0..n).map(|i| (1e4 * (-((i as f64 - middle) / width).powi(2)).exp()) as u64).collect()
    };
    RunResult {
        label: format!("{placement}, {victim}, OP 7 %"),
        axes: json!({ "placement": placement, "victim": victim }).as_object().unwrap().clone(),
        trace: EVIL.into(),
        spec: DeviceSpec::default(),
        seed: 1,
        version: "0.1.0".into(),
        workload: workload(),
        device: device(),
        last_window: WindowResult {
            host_pages_written: LOGICAL_PAGES,
            host_pages_read: 100_000,
            pages_programmed: json!({ "host": LOGICAL_PAGES, "gc": gc / 3 }).as_object().unwrap().clone(),
            pages_programmed_total: LOGICAL_PAGES + gc / 3,
            gc_count: gc / 60,
            victim_invalid_share_mean: Some(0.7 / cost),
            blocks_erased: gc / 60,
            flash_time_ns: 30_000_000_000,
            latency_ns: LatencyByOperation::default(),
        },
        host_requests: 1_234_567,
        host_pages_written: host,
        host_pages_read: 400_000,
        host_pages_trimmed: 9_000,
        host_pages_partly_written: 77,
        host_bytes_written: host * 4096,
        host_bytes_read: 400_000 * 4096,
        host_bytes_trimmed: 9_000 * 4096,
        media_bytes_written: (host + gc) * 4096,
        media_bytes_read: (400_000 + gc) * 4096,
        media_bytes_erased: (host + gc) * 4096,
        pages_programmed: json!({ "host": host, "gc": gc, "wear": 0, "trim": 1200 }).as_object().unwrap().clone(),
        pages_programmed_total: host + gc + 1200,
        pages_read: json!({ "host": 400_000, "gc": gc }).as_object().unwrap().clone(),
        gc_pages_copied: gc,
        write_amplification: Some((host + gc + 1200) as f64 / host as f64),
        write_amplification_last: series_wa[WINDOWS as usize - 1],
        write_amplification_bytes: Some((host + gc + 1200) as f64 / host as f64 * 1.01),
        gc_count: gc / 20,
        gc_count_background: 0,
        victim_invalid_share_mean: Some(0.7 / cost),
        displaced_pages: 0,
        erase_count: EraseCount { total: gc / 20, min: 1, mean: gc as f64 / 20.0 / 1096.0, max: 31 },
        retired_blocks: 0,
        flash_time_ns: 90_000_000_000,
        flash_time_parts_ns: json!({ "read": 1, "program": 2, "erase": 3, "transfer": 4 }).as_object().unwrap().clone(),
        flash_time_per_host_page_ns: Some(310_123.25 * cost),
        write_throughput_bytes_per_second: Some(12_345_678.9 / cost),
        latency_ns: LatencyByOperation { read: latency(0.3), write: latency(cost), ..LatencyByOperation::default() },
        dram_bytes: 262_144,
        dram_parts_bytes: json!({ "l2p": 262_144 }).as_object().unwrap().clone(),
        lifetime: Lifetime {
            endurance_erases: 3000,
            endurance_assumed: true,
            terabytes_written_bytes: Some(5e11),
            drive_writes_per_day: Some(1.1),
            warranty_years: 5.0,
            years: None,
            formulas: Vec::new(),
        },
        percent_used: None,
        verdict: Verdict {
            valid: true,
            reasons: Vec::new(),
            drive_writes: 4.0,
            drive_writes_window: 1.0,
            gc_ran: true,
            steady: true,
            write_amplification_quarters: vec![Some(1.5); 4],
        },
        series: Series {
            window_host_pages: host / WINDOWS,
            host_pages_written: (1..=WINDOWS).map(|i| i * host / WINDOWS).collect(),
            write_amplification: series_wa,
            pages_programmed: Map::new(),
            gc_count: vec![100; WINDOWS as usize],
            victim_invalid_share: vec![Some(0.6); WINDOWS as usize],
            flash_time_ns: vec![1_000_000; WINDOWS as usize],
        },
        victim_histogram: VictimHistogram {
            invalid_share_from: (0..=20).map(|i| f64::from(i) / 20.0).collect(),
            count: bell(14.0 / cost, 3.0, 21),
        },
        block_utilisation: BlockHistogram::default(),
        erase_distribution: BlockHistogram {
            from: (0..32).map(f64::from).collect(),
            max: 31.0,
            count: bell(9.0 * cost, 2.0 + cost, 32),
        },
        latency_distribution: LatencyDistribution { read: buckets(-2.0), write: buckets(cost) },
        write_heat: heat(),
        mapping: None,
        asa: None,
        buffer: None,
        split: None,
        merges: None,
        log: None,
        below: None,
        write_amplification_end_to_end: None,
        simulator_elapsed_ns: 5_000_000,
        simulator_host_writes_per_second: 23_456_789.0,
    }
}

fn workload() -> Workload {
    Workload {
        address: "refuse".into(),
        fill_share: 0.0,
        precondition: "sequential".into(),
        precondition_pages_written: LOGICAL_PAGES,
        precondition_steady: None,
        repeat: 2,
        measure_last_pages: Some(LOGICAL_PAGES),
    }
}

fn device() -> DeviceSummary {
    DeviceSummary {
        logical_pages: LOGICAL_PAGES,
        physical_pages: 70_144,
        reserve_blocks: 3,
        blocks: 1099,
        pages_per_block: 64,
        page_bytes: 4096,
        over_provisioning: 0.0703,
        spare: 0.0657,
        simulator_memory_bytes: 800_000,
    }
}

/// A log that sweeps upwards, and a hot band.
fn heat() -> WriteHeat {
    let cell = |row: u64, column: u64| match (row, (column * 64 / 96 + 64 - row) % 64) {
        (8..12, _) => 900 + row * column,
        (_, 0..3) => 60,
        _ if (row * 7 + column * 3).is_multiple_of(5) => 2,
        _ => 0,
    };
    WriteHeat {
        row_bytes: LOGICAL_PAGES * 4096 / 64,
        column_host_pages: 3 * LOGICAL_PAGES / 96,
        counts: (0..64).map(|row| (0..96).map(|column| cell(row, column)).collect()).collect(),
    }
}
