//! Reads a trace and counts its requests by operation.
//!
//! ```text
//! cargo run --release --example requests -- traces/sqlite-wal-ext4.csv.zst
//! ```

use isotherm_trace::{Op, OpenOptions, TraceError, open};

fn main() -> Result<(), TraceError> {
    // A file in any format that is recognised, packed or not, or a synthetic workload.
    let trace = std::env::args().nth(1).unwrap_or_else(|| "synth:zipf,theta=0.99,pages=4096,writes=100k".to_owned());
    // The options say what a file does not say of itself, such as the unit of its times.
    let mut reader = open(&trace, &OpenOptions::default())?;
    let (mut requests, mut bytes) = ([0u64; 4], [0u64; 4]);
    // Requests come in batches: the reader appends, and the caller clears.
    let mut batch = Vec::with_capacity(4096);
    while reader.fill(&mut batch, 4096)? > 0 {
        for request in batch.drain(..) {
            requests[request.op as usize] += 1;
            bytes[request.op as usize] += request.length;
        }
    }
    println!("{trace} ({})", reader.format());
    for (name, op) in [("reads", Op::Read), ("writes", Op::Write), ("trims", Op::Trim), ("flushes", Op::Flush)] {
        println!("{name:<8} {:>10} requests, {:>14} bytes", requests[op as usize], bytes[op as usize]);
    }
    Ok(())
}
