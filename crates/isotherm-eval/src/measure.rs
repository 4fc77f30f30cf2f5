//! From counters to results: what happened between two snapshots, in the words of [`crate::results`].

use crate::recorder::ratio;
use crate::results::{
    BlockHistogram, EraseCount, LatencyBucket, LatencyByOperation, LatencyDistribution, LatencySummary,
    VictimHistogram, WindowResult,
};
use hdrhistogram::Histogram;
use isotherm::cause::{ByCause, Cause};
use isotherm::device::{BlockPhase, BlockView};
use isotherm::stats::{Counter, FlashTime, Latencies, MemoryItem, Snapshot, VICTIM_BUCKETS};
use serde_json::{Map, Value};

/// Counters by cause as an object; causes that never occurred are left out, except the host's.
pub fn by_cause(counters: &ByCause) -> Map<String, Value> {
    let rows = counters.by_key().into_iter().filter(|(key, count)| *count > 0 || *key == Cause::Host.key());
    rows.map(|(key, count)| (key.to_owned(), Value::from(count))).collect()
}

/// Pages read between two snapshots by cause, copies inside the array included.
pub fn pages_read(from: &Snapshot, to: &Snapshot) -> ByCause {
    to.medium.read().since(&from.medium.read())
}

/// Pages programmed between two snapshots, by cause.
pub fn programmed(from: &Snapshot, to: &Snapshot) -> ByCause {
    to.medium.programmed().since(&from.medium.programmed())
}

/// Pages that collections copied, or merges where the map is hybrid.
pub fn pages_copied(programmed: &ByCause) -> u64 {
    [Cause::Gc, Cause::SwitchMerge, Cause::PartialMerge, Cause::FullMerge].map(|cause| programmed[cause]).iter().sum()
}

/// Mean share of invalid pages in the victims between two snapshots.
pub fn victim_invalid_share(from: &Snapshot, to: &Snapshot) -> Option<f64> {
    let invalid = to.collector.victim_invalid_pages - from.collector.victim_invalid_pages;
    ratio(invalid as f64, (to.collector.victim_pages - from.collector.victim_pages) as f64)
}

/// Flash time by kind of operation.
pub fn time_parts(time: &FlashTime) -> Map<String, Value> {
    let parts = [
        ("read", time.read_ns),
        ("program", time.program_ns),
        ("erase", time.erase_ns),
        ("transfer", time.transfer_ns),
    ];
    parts.into_iter().map(|(key, ns)| (key.to_owned(), Value::from(ns))).collect()
}

/// Flash time by what it was spent for: reads and programs for the host, for collections (merges of a hybrid map included),
/// for the map (hotness samples included) and for all else, erases and transfers. Operations of one kind take the same time
/// whatever their cause, so that their counts divide it; what division leaves stands with the last part.
pub fn time_by_work(time: &FlashTime, read: &ByCause, programmed: &ByCause) -> Map<String, Value> {
    const WORK: [(&str, &[Cause]); 3] = [
        ("host", &[Cause::Host, Cause::Modify]),
        ("gc", &[Cause::Gc, Cause::SwitchMerge, Cause::PartialMerge, Cause::FullMerge]),
        ("map", &[Cause::Translation, Cause::TranslationGc, Cause::Sampling]),
    ];
    let mut parts = Map::new();
    for (operation, counts, total_ns) in [("read", read, time.read_ns), ("program", programmed, time.program_ns)] {
        let mut left_ns = total_ns;
        for (work, causes) in WORK {
            let count: u64 = causes.iter().map(|cause| counts[*cause]).sum();
            let ns = u128::from(total_ns) * u128::from(count) / u128::from(counts.total().max(1));
            left_ns -= ns as u64;
            parts.insert(format!("{work}_{operation}"), Value::from(ns as u64));
        }
        parts.insert(format!("other_{operation}"), Value::from(left_ns));
    }
    parts.insert("erase".to_owned(), Value::from(time.erase_ns));
    parts.insert("transfer".to_owned(), Value::from(time.transfer_ns));
    parts
}

/// DRAM by table.
pub fn memory_parts(items: &[MemoryItem]) -> Map<String, Value> {
    items.iter().map(|(key, bytes)| ((*key).to_owned(), Value::from(*bytes))).collect()
}

/// Latencies of two stretches of a run, together.
pub fn joined(mut first: Latencies, second: &Latencies) -> Latencies {
    let pairs = [
        (&mut first.read, &second.read),
        (&mut first.write, &second.write),
        (&mut first.trim, &second.trim),
        (&mut first.flush, &second.flush),
    ];
    for (sum, part) in pairs {
        sum.add(part).expect("histograms that grow by themselves can be added");
    }
    first.read_unmapped += second.read_unmapped;
    first
}

/// The last window of a run.
pub fn window(from: &Snapshot, to: &Snapshot, latencies: &Latencies) -> WindowResult {
    let programmed = programmed(from, to);
    WindowResult {
        host_pages_written: to.host.pages_written - from.host.pages_written,
        host_pages_read: to.host.pages_read - from.host.pages_read,
        pages_programmed: by_cause(&programmed),
        pages_programmed_total: programmed.total(),
        gc_count: to.collector.collections - from.collector.collections,
        victim_invalid_share_mean: victim_invalid_share(from, to),
        blocks_erased: to.medium.erases.since(&from.medium.erases).total(),
        flash_time_ns: to.time.since(&from.time).total_ns(),
        latency_ns: latency(latencies),
    }
}

/// Latency by operation.
pub fn latency(latencies: &Latencies) -> LatencyByOperation {
    LatencyByOperation {
        read: summary(&latencies.read),
        read_unmapped_count: latencies.read_unmapped,
        write: summary(&latencies.write),
        trim: summary(&latencies.trim),
        flush: summary(&latencies.flush),
    }
}

fn summary(histogram: &Histogram<u64>) -> LatencySummary {
    if histogram.is_empty() {
        return LatencySummary::default();
    }
    let quantile = |q| Some(histogram.value_at_quantile(q));
    LatencySummary {
        count: histogram.len(),
        mean: Some(histogram.mean()),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max: Some(histogram.max()),
    }
}

/// Requests by latency, in powers of two from a microsecond.
pub fn latency_distribution(latencies: &Latencies) -> LatencyDistribution {
    LatencyDistribution { read: buckets(&latencies.read), write: buckets(&latencies.write) }
}

fn buckets(histogram: &Histogram<u64>) -> Vec<LatencyBucket> {
    let mut result = Vec::new();
    let (mut up_to_ns, mut below) = (1000u64, (0, 0));
    while below.0 < histogram.len() {
        let recorded = histogram.iter_recorded().take_while(|v| v.value_iterated_to() <= up_to_ns);
        let now = recorded.fold((0, 0), |(count, total_ns), v| {
            let time_ns = histogram.median_equivalent(v.value_iterated_to()) * v.count_at_value();
            (count + v.count_at_value(), total_ns + time_ns)
        });
        if !(result.is_empty() && now.0 == 0) {
            result.push(LatencyBucket { up_to_ns, count: now.0 - below.0, total_ns: now.1 - below.1 });
        }
        below = now;
        // The last bucket may reach past the largest number.
        up_to_ns = up_to_ns.saturating_mul(2);
    }
    result
}

/// Erases of each block between two moments: their summary and distribution.
pub fn erases(before: &[u32], after: &[u32]) -> (EraseCount, BlockHistogram) {
    let each: Vec<u32> = after.iter().enumerate().map(|(i, &a)| a - before.get(i).copied().unwrap_or(0)).collect();
    let total: u64 = each.iter().map(|&e| u64::from(e)).sum();
    let min = each.iter().copied().min().unwrap_or(0);
    let max = each.iter().copied().max().unwrap_or(0);
    let least_and_most = after.iter().min().zip(after.iter().max());
    let count = EraseCount {
        total,
        min: u64::from(min),
        mean: total as f64 / each.len().max(1) as f64,
        max: u64::from(max),
        spread: least_and_most.map_or(0, |(least, most)| u64::from(most - least)),
    };
    // Whole numbers of erases per bucket, so that no bucket is favoured.
    let width = (u64::from(max - min) + 1).div_ceil(32);
    let buckets = (u64::from(max - min) / width + 1) as usize;
    let mut histogram = BlockHistogram {
        from: (0..buckets as u64).map(|i| (u64::from(min) + i * width) as f64).collect(),
        max: f64::from(max),
        count: vec![0; buckets],
    };
    for erases in each {
        histogram.count[(u64::from(erases - min) / width) as usize] += 1;
    }
    (count, histogram)
}

/// Closed blocks by the share of their pages that is valid, in twenty buckets.
pub fn utilisation(blocks: &[BlockView], pages_per_block: u32) -> BlockHistogram {
    const BUCKETS: u32 = 20;
    let mut count = vec![0; BUCKETS as usize];
    for block in blocks.iter().filter(|block| block.phase == BlockPhase::Closed) {
        let bucket = (u64::from(block.valid) * u64::from(BUCKETS) / u64::from(pages_per_block)) as usize;
        count[bucket.min(BUCKETS as usize - 1)] += 1;
    }
    BlockHistogram { from: (0..BUCKETS).map(|i| f64::from(i) / f64::from(BUCKETS)).collect(), max: 1.0, count }
}

/// Victims between two snapshots by their share of invalid pages.
pub fn victims(from: &Snapshot, to: &Snapshot) -> VictimHistogram {
    VictimHistogram {
        invalid_share_from: (0..VICTIM_BUCKETS).map(|i| i as f64 / (VICTIM_BUCKETS - 1) as f64).collect(),
        count: to.collector.since(&from.collector).victim_histogram.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erases_are_those_of_the_run_and_their_spread_is_since_new() {
        let (count, histogram) = erases(&[100, 90, 40], &[103, 91, 42]);
        assert_eq!((count.total, count.min, count.max, count.mean, count.spread), (6, 1, 3, 2.0, 61));
        assert_eq!(histogram.count.iter().sum::<u64>(), 3);
        assert_eq!(erases(&[], &[]).0.spread, 0);
    }

    #[test]
    fn latency_buckets_are_powers_of_two_of_a_microsecond_and_hold_every_request() {
        let mut latencies = Latencies::default();
        for ns in [900, 72_800, 252_800, 252_800, 20_000_000] {
            latencies.read.record(ns).unwrap();
        }
        let distribution = latency_distribution(&latencies);
        assert_eq!(distribution.read.iter().map(|b| b.count).sum::<u64>(), 5);
        let of = |up_to_ns| distribution.read.iter().find(|b| b.up_to_ns == up_to_ns).unwrap().count;
        assert_eq!((of(1000), of(128_000), of(256_000), of(32_768_000)), (1, 1, 2, 1));
        let total_ns: u64 = distribution.read.iter().map(|b| b.total_ns).sum();
        assert!((total_ns as f64 / 20_579_300.0 - 1.0).abs() < 1e-3, "{total_ns} ns of 20,579,300");
        assert!(distribution.write.is_empty());
        assert_eq!(latency(&latencies).write.p50, None);
    }

    #[test]
    fn flash_time_is_divided_by_work_and_nothing_is_lost() {
        let (mut read, mut programmed) = (ByCause::default(), ByCause::default());
        (read[Cause::Host], read[Cause::Gc], read[Cause::Sampling]) = (3, 5, 2);
        (programmed[Cause::Host], programmed[Cause::FullMerge], programmed[Cause::Checkpoint]) = (7, 6, 1);
        let time = FlashTime { read_ns: 10 * 73, program_ns: 14 * 253, erase_ns: 1500, transfer_ns: 9 };
        let parts = time_by_work(&time, &read, &programmed);
        let of = |key: &str| parts[key].as_u64().unwrap();
        assert_eq!((of("host_read"), of("gc_read"), of("map_read"), of("other_read")), (3 * 73, 5 * 73, 2 * 73, 0));
        assert_eq!((of("host_program"), of("gc_program"), of("other_program")), (7 * 253, 6 * 253, 253));
        assert_eq!(parts.values().map(|ns| ns.as_u64().unwrap()).sum::<u64>(), time.total_ns());
    }

    #[test]
    fn erase_counts_are_those_of_the_measured_time() {
        let (count, histogram) = erases(&[5, 5, 0], &[5, 105, 7]);
        assert_eq!((count.total, count.min, count.max), (107, 0, 100));
        assert_eq!(histogram.count.iter().sum::<u64>(), 3);
        assert_eq!(histogram.count[0], 1);
        assert_eq!(*histogram.count.last().unwrap(), 1);
        let (_, flat) = erases(&[], &[4, 4]);
        assert_eq!((flat.from, flat.count), (vec![4.0], vec![2]));
    }

    #[test]
    fn full_blocks_fall_into_the_last_bucket() {
        let closed = |valid| BlockView { phase: BlockPhase::Closed, valid, ..BlockView::default() };
        let free = BlockView::default();
        let histogram = utilisation(&[closed(64), closed(0), free, closed(3), closed(32)], 64);
        assert_eq!((histogram.count[19], histogram.count[0], histogram.count[10]), (1, 2, 1));
    }
}
