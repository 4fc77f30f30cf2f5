//! Parsing and generating speed: MB of decompressed text a second on one core, and requests a second.
//!
//! `cargo bench -p isotherm-trace` prints the median of each; criterion calls MiB/s and Melem/s what it prints.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isotherm_trace::{OpenOptions, TraceReader, open, open_bytes};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Reads to the end and gives the number of requests.
fn drain(mut reader: Box<dyn TraceReader + Send>) -> u64 {
    let mut batch = Vec::new();
    let mut requests = 0;
    while reader.fill(&mut batch, 4096).expect("the trace is sound") > 0 {
        requests += batch.len() as u64;
        black_box(&batch);
        batch.clear();
    }
    requests
}

/// Canonical CSV of a Zipf workload with reads and several sizes: rows as long as those of real captures.
fn canonical_text() -> Vec<u8> {
    let spec = "synth:zipf:1.1,pages=4Mi,writes=2M,reads=0.3,size=1/60:8/30:64/10,rate=12345";
    let mut reader = open(spec, &OpenOptions::default()).expect("the specification is sound");
    let mut text = String::from("ts_ns,op,offset,length\n");
    let mut batch = Vec::new();
    while reader.fill(&mut batch, 4096).expect("synthetic") > 0 {
        for request in batch.drain(..) {
            let op = if request.op == isotherm_trace::Op::Read { 'R' } else { 'W' };
            writeln!(text, "{},{op},{},{}", request.arrival_ns, request.offset, request.length).expect("memory");
        }
    }
    text.into_bytes()
}

fn readers(criterion: &mut Criterion) {
    let text = canonical_text();
    let packed = zstd::encode_all(&text[..], 3).expect("memory");
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::BytesDecimal(text.len() as u64));
    group.sample_size(20).measurement_time(Duration::from_secs(5));
    for (name, bytes) in [("csv", text), ("csv.zst", packed)] {
        let bytes: Arc<[u8]> = bytes.into();
        let open = || open_bytes(name, bytes.clone(), &OpenOptions::default()).expect("sound");
        group.bench_function(name, |bencher| bencher.iter(|| drain(open())));
    }
    group.finish();
}

fn generators(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("synth");
    group.throughput(Throughput::Elements(10_000_000));
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for pattern in
        ["uniform", "zipf:0.99", "zipf:1.2", "hotcold:0.1/0.9", "sequential", "zipf:1.1+sequential,share=0.5"]
    {
        let (first, rest) = pattern.split_once('+').map_or((pattern, String::new()), |(a, b)| (a, format!("+{b}")));
        let spec = format!("synth:{first},pages=1Mi,writes=10M{rest}");
        let open = || open(&spec, &OpenOptions::default()).expect("sound");
        group.bench_function(pattern, |bencher| bencher.iter(|| drain(open())));
    }
    group.finish();
}

criterion_group!(benches, readers, generators);
criterion_main!(benches);
