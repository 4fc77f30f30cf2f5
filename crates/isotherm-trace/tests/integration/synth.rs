//! Synthetic workloads: what is asked for is what comes, to within chance.

use isotherm::registry::{audit, audit_parameters};
use isotherm_trace::synth::{COMMON, MIX, PATTERNS, Workload};
use isotherm_trace::{Op, Request, TraceReader};

fn requests(spec: &str) -> Vec<Request> {
    let mut reader = Workload::parse(spec).unwrap_or_else(|error| panic!("{error}")).reader();
    let mut requests = Vec::new();
    while reader.fill(&mut requests, 1234).unwrap() > 0 {}
    requests
}

fn page(request: &Request) -> usize {
    (request.offset / 4096) as usize
}

/// `count` of `of` draws with probability `p`, to five standard deviations.
#[track_caller]
fn near(count: usize, of: usize, p: f64) {
    let (mean, deviation) = (of as f64 * p, (of as f64 * p * (1.0 - p)).sqrt());
    assert!((count as f64 - mean).abs() <= 5.0 * deviation, "{count} of {of}, expected {mean} +- {deviation}");
}

/// Pearson's statistic of page counts against equal shares, and its limit at six standard deviations.
fn uniformity(pages: impl Iterator<Item = usize>, bins: usize) -> (f64, f64) {
    let mut counts = vec![0usize; bins];
    pages.for_each(|page| counts[page] += 1);
    let mean = counts.iter().sum::<usize>() as f64 / bins as f64;
    let statistic = counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    (statistic, bins as f64 + 6.0 * (2.0 * bins as f64).sqrt())
}

#[test]
fn uniform_hits_every_page_alike() {
    let all = requests("uniform,pages=1000,writes=200000,seed=3");
    assert_eq!(all.len(), 200_000);
    assert!(all.iter().all(|r| r.op == Op::Write && r.length == 4096 && r.arrival_ns == 0));
    let (statistic, limit) = uniformity(all.iter().map(page), 1000);
    assert!(statistic < limit, "{statistic} against {limit}");
    let skewed = requests("zipf:0.2,pages=1000,writes=200000,seed=3");
    let (statistic, limit) = uniformity(skewed.iter().map(page), 1000);
    assert!(statistic > limit, "a slight skew is not seen: {statistic} against {limit}");
}

#[test]
fn same_seed_same_bytes_and_another_seed_others() {
    for entry in PATTERNS.iter().filter(|entry| entry.name != "counts") {
        let spec =
            |seed| format!("{},pages=4096,writes=5000,reads=0.2,size=1/50:4/50,rate=1000,seed={seed}", entry.name);
        assert!(requests(&spec(1)) == requests(&spec(1)), "{}", entry.name);
        assert!(requests(&spec(1)) != requests(&spec(2)), "{}", entry.name);
    }
}

/// The first requests of a stated specification, so that no change of the generator goes unnoticed.
#[test]
fn draws_are_pinned() {
    let pages: Vec<usize> = requests("zipf:0.99,pages=1000000,writes=6,seed=42").iter().map(page).collect();
    assert_eq!(pages, PINNED_ZIPF);
    let pages: Vec<usize> = requests("uniform,pages=1000000,writes=6,seed=42").iter().map(page).collect();
    assert_eq!(pages, PINNED_UNIFORM);
}

const PINNED_ZIPF: [usize; 6] = [92951, 204562, 393704, 770217, 392389, 565054];
const PINNED_UNIFORM: [usize; 6] = [814305, 318821, 983894, 701135, 793504, 588098];

#[test]
fn hot_pages_get_their_share_evenly() {
    let all = requests("hotcold:0.1/0.9,pages=10000,writes=300000,order=ranked");
    let hot = all.iter().filter(|r| page(r) < 1000).count();
    near(hot, all.len(), 0.9);
    let (statistic, limit) = uniformity(all.iter().map(page).filter(|&page| page < 1000), 1000);
    assert!(statistic < limit);
    // Scattered, the same shares lie elsewhere.
    let all = requests("hotcold,hot=0.1,hot_writes=0.9,pages=10000,writes=300000");
    let mut counts = vec![0usize; 10_000];
    all.iter().for_each(|r| counts[page(r)] += 1);
    let hot: Vec<usize> = (0..10_000).filter(|&page| counts[page] > 100).collect();
    assert_eq!(hot.len(), 1000);
    assert!(hot.iter().any(|&page| page > 9000) && hot.iter().any(|&page| page < 1000));
}

#[test]
fn sequential_wraps_round_without_crossing_the_end() {
    let pages: Vec<usize> = requests("sequential,pages=10,writes=24,size=3").iter().map(page).collect();
    assert_eq!(pages, [0, 3, 6, 0, 3, 6, 0, 3]);
}

#[test]
fn shares_of_operations_sizes_and_parts() {
    let all = requests("uniform,pages=100000,writes=100000,reads=0.3,trims=0.1,size=1/75:8/25");
    let of = |op| all.iter().filter(|r| r.op == op).count();
    near(of(Op::Read), all.len(), 0.3);
    near(of(Op::Trim), all.len(), 0.1);
    near(all.iter().filter(|r| r.length == 8 * 4096).count(), all.len(), 0.25);
    let written: u64 = all.iter().filter(|r| r.op == Op::Write).map(|r| r.length / 4096).sum();
    assert_eq!(written, 100_000, "the last write is cut to end exactly");
    let all = requests("hotcold:0.5/1,pages=1000,writes=100000,order=ranked,share=3+sequential,share=1");
    let high = all.iter().filter(|r| page(r) >= 500).count();
    near(high, all.len(), 0.125);
}

#[test]
fn arrivals_come_at_the_rate() {
    let even = requests("uniform,writes=30001,rate=3000,pages=10");
    assert_eq!(even[30_000].arrival_ns, 10_000_000_000, "an even rate does not drift");
    assert_eq!(even[1].arrival_ns, 333_333);
    let poisson = requests("uniform,writes=100001,rate=1000,arrivals=poisson,pages=10");
    let total_s = poisson[100_000].arrival_ns as f64 / 1e9;
    assert!((total_s - 100.0).abs() < 5.0 * 0.1f64.sqrt(), "{total_s}");
    let gaps: Vec<u64> = poisson.windows(2).map(|pair| pair[1].arrival_ns - pair[0].arrival_ns).collect();
    near(gaps.iter().filter(|&&gap| gap > 1_000_000).count(), gaps.len(), (-1f64).exp());
}

#[test]
fn popularity_shifts_at_the_stated_write() {
    let all = requests("hotcold:0.1/1,pages=1000,writes=20000,order=ranked,shift_at=5000");
    assert!(all[..5000].iter().all(|r| page(r) < 100));
    assert!(all[5000..].iter().all(|r| (500..600).contains(&page(r))));
    let all = requests("hotcold:0.1/1,pages=1000,writes=20000,order=ranked@5000,sequential@5010,uniform");
    assert!(all[..5000].iter().all(|r| page(r) < 100));
    assert!(all[5000..5010].iter().map(page).eq(0..10));
    assert!(all[5010..].iter().any(|r| page(r) > 900));
}

#[test]
fn counts_of_a_file_are_followed() {
    let file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    std::fs::write(file.path(), "LBA,Frequency\n8192,30\n1048576,10\n8704,10\n4096,50\n").unwrap();
    let path = file.path().to_str().unwrap();
    let all = requests(&format!("counts,counts={path},writes=100000"));
    let mut counts = [0usize; 3];
    all.iter().for_each(|r| counts[page(r)] += 1);
    for (count, p) in counts.into_iter().zip([0.5, 0.4, 0.1]) {
        near(count, all.len(), p);
    }
    assert_eq!(Workload::parse(&format!("counts,counts={path}")).unwrap().pages(), 3);
    let error = |spec: &str| Workload::parse(spec).err().unwrap().to_string();
    assert!(error(&format!("counts,counts={path},pages=2")).contains("set pages=3 or more"));
    std::fs::write(file.path(), "LBA,Frequency\n8192,x\n").unwrap();
    assert!(error(&format!("counts,counts={path}")).contains("line 2, column 6"));
    assert!(error("counts,counts=/no/such/file").contains("check the path"));
    assert!(error("counts").contains("counts=FILE"));
}

#[test]
fn wrong_specifications_say_what_is_right() {
    for (spec, part) in [
        ("", "no name"),
        ("zipff,pages=10", "choose from uniform, zipf, hotcold"),
        ("zipf,thetta=1", "it takes theta, order, share, pages"),
        ("zipf,theta=eleven", "allowed: 0..=10"),
        ("zipf,theta=11", "allowed: 0..=10"),
        ("uniform,pages=0", "allowed: 1..=1073741824"),
        ("uniform,pages=2Gi", "allowed: 1..=1073741824"),
        ("uniform,writes=0", "allowed: 1.."),
        ("uniform,page_size=5000", "power of two"),
        ("uniform,reads=0.6,trims=0.5", "leave at least"),
        ("uniform,reads=1", "0..=0.999"),
        ("uniform,reads=NaN", "0..=0.999"),
        ("uniform,size=0", "write PAGES"),
        ("uniform,size=1/x", "write PAGES"),
        ("uniform,pages=8,size=9", "1..=8 pages"),
        ("uniform,pages=5,pages=6", "given twice"),
        ("hotcold:0/0.5", "leaves no page"),
        ("hotcold:1/0.5", "leaves no page"),
        ("sequential:5", "has no key"),
        ("zipf,share=0", "above 0"),
        ("zipf+uniform,seed=4", "give it in the first part"),
        ("zipf@x,uniform", "@WRITES"),
        ("zipf@5", "no name"),
    ] {
        let error = Workload::parse(spec).err().unwrap_or_else(|| panic!("\"{spec}\" is taken")).to_string();
        assert!(error.contains(part), "{spec}: \"{part}\" is not in: {error}");
    }
}

#[test]
fn every_range_of_a_pattern_is_enforced_as_it_is_declared() {
    let own = audit(PATTERNS);
    assert_eq!([own, audit_parameters("common", COMMON), audit_parameters("mix", MIX)].concat(), Vec::<String>::new());
}
