//! What must hold for the schemes: the papers' facts and worked examples, and agreement with the plain models.

use std::sync::Arc;

use proptest::prelude::*;

use super::model::{PlainMbf, PlainMhf, PlainTwoLevelLru, PlainWdac};
use super::*;
use crate::future::Future;
use crate::random::Random;

/// Builds the scheme that `text` names, for 4096 pages.
fn build(text: &str) -> AnyHotness {
    build_scheme(&text.parse().unwrap(), &HotnessContext { logical_pages: 4096, future: None }).unwrap()
}

/// The message with which `text` is refused.
fn refusal(text: &str) -> String {
    let context = HotnessContext { logical_pages: 4096, future: None };
    build_scheme(&text.parse().unwrap(), &context).expect_err(text).to_string()
}

fn wdac(text: &str) -> wdac::Wdac {
    match build(text) {
        AnyHotness::Wdac(scheme) => scheme,
        other => panic!("{other:?}"),
    }
}

/// `n` page numbers below `pages`, half of them among the lowest eighth.
fn skewed(n: usize, pages: u32, seed: u64) -> Vec<Lpn> {
    let mut random = Random::new(seed);
    let mut draw = || {
        let bound = if random.chance(0.5) { pages.div_ceil(8) } else { pages };
        Lpn(random.below(u64::from(bound)) as u32)
    };
    (0..n).map(|_| draw()).collect()
}

#[test]
fn every_scheme_of_the_table_builds_and_keeps_the_contract() {
    let writes = skewed(20_000, 4096, 1);
    let future = Some(Arc::new(Future::of(&writes, 4096)));
    for entry in SCHEMES {
        let mut scheme = build_scheme(
            &crate::registry::PolicyName::plain(entry.name),
            &HotnessContext { logical_pages: 4096, future: future.clone() },
        )
        .unwrap();
        let mut in_batches = scheme.clone();
        let mut verdicts = vec![Temperature::COLD; writes.len()];
        in_batches.observe_all(&writes, &mut verdicts);
        let memory_bytes = scheme.memory_bytes();
        for (&lpn, &verdict) in writes.iter().zip(&verdicts) {
            assert_eq!(scheme.observe(lpn), verdict, "{}: a batch judges as single writes do", entry.name);
            assert!(verdict.0 < scheme.temperatures(), "{}", entry.name);
            assert_eq!(scheme.peek(lpn), scheme.peek(lpn), "{}: peek changes nothing", entry.name);
        }
        assert_eq!(scheme.memory_bytes(), memory_bytes, "{}: memory does not grow", entry.name);
        assert!(verdicts.iter().any(|v| v.is_hot(scheme.temperatures())), "{}: nothing is ever hot", entry.name);
        assert!(verdicts.iter().any(|v| !v.is_hot(scheme.temperatures())), "{}: nothing is ever cold", entry.name);
    }
}

#[test]
fn firmware_memory_is_that_of_table_1() {
    assert_eq!(build("mbf").memory_bytes(), 1024);
    assert_eq!(build("mhf").memory_bytes(), 2048);
    assert_eq!(build("mbf:filters=8,threshold=scaled").memory_bytes(), 2048);
    assert_eq!(build("mbf:filters=5,threshold=scaled").memory_bytes(), 2048, "lanes of 5 bits take 8");
    assert_eq!(build("wdac").memory_bytes(), 8 * 4096 + 4 * 4096);
}

/// Figure 7 of the MBF paper: a window of 10. The text of the figure gives the indices and the requests (10, 24, 3), not
/// the window; these are the only two windows that give the printed indices.
#[test]
fn wdac_reproduces_the_worked_example_of_figure_7() {
    for newest_first in [[5, 11, 3, 30, 11, 24, 11, 5, 30, 11], [11, 5, 3, 30, 11, 24, 5, 11, 30, 11]] {
        let mut scheme = wdac("wdac:window=10,threshold=4");
        for &lpn in newest_first.iter().rev() {
            scheme.observe(Lpn(lpn));
        }
        let steps = [
            (None, vec![(11, 4.0), (30, 1.8), (5, 2.6), (24, 1.0), (3, 1.6)]),
            (Some(10), vec![(11, 3.2), (30, 1.4), (5, 2.2), (24, 0.8), (3, 1.4), (10, 2.0)]),
            (Some(24), vec![(11, 2.6), (30, 1.0), (5, 1.8), (24, 2.6), (3, 1.2), (10, 1.8)]),
            (Some(3), vec![(11, 2.0), (30, 0.8), (5, 1.4), (24, 2.2), (3, 3.0), (10, 1.6)]),
        ];
        for (request, expected) in steps {
            if let Some(lpn) = request {
                scheme.observe(Lpn(lpn));
            }
            for (lpn, index) in expected {
                assert_eq!(format!("{:.1}", scheme.index(Lpn(lpn))), format!("{index:.1}"), "{lpn} after {request:?}");
            }
            // The threshold is 4, and an index of exactly 4 is hot.
            assert_eq!(scheme.peek(Lpn(11)), Temperature::hot_if(request.is_none()));
        }
    }
}

#[test]
fn mhf_threshold_comes_from_its_most_significant_bits() {
    for (bits, significant, threshold) in [(4, 2, 4), (4, 1, 8), (4, 3, 2), (4, 4, 1), (8, 2, 64), (2, 1, 2), (1, 1, 1)]
    {
        let mut scheme = build(&format!("mhf:counter_bits={bits},significant_bits={significant}"));
        for write in 1..=threshold + 2 {
            let hot = scheme.observe(Lpn(7)) == Temperature::HOT;
            assert_eq!(hot, write >= threshold, "{bits} bits, {significant} significant, write {write}");
        }
    }
}

#[test]
fn a_full_counter_freezes_or_halves_all() {
    let counts = |text: &str| {
        let AnyHotness::Mhf(mut scheme) = build(text) else { unreachable!() };
        for _ in 0..16 {
            scheme.observe(Lpn(7));
        }
        scheme.count(Lpn(7))
    };
    assert_eq!(counts("mhf:hashes=1"), 15);
    // The sixteenth write finds 15, halves it to 7 and counts.
    assert_eq!(counts("mhf:hashes=1,overflow=halve"), 8);
}

/// A decay happens at the end of the write that completes the interval: neither one write before nor one after.
#[test]
fn decay_schedules_hold_to_the_write() {
    // One write of the page makes it hot; the halving of the count 1 to 0 makes it cold again.
    for text in [
        "mhf:decay=8,counter_bits=1,significant_bits=1",
        "dam:decay=8,threshold=1",
        "mbf:decay=8,filters=1,threshold=2",
    ] {
        for written_at in 1..=24u32 {
            let mut scheme = build(text);
            assert_eq!(scheme.decay_interval(), Some(8));
            for write in 1..=32u32 {
                scheme.observe(Lpn(if write == written_at { 7 } else { 1000 }));
                let until = written_at.next_multiple_of(8);
                let hot = (written_at..until).contains(&write);
                assert_eq!(
                    scheme.peek(Lpn(7)) == Temperature::HOT,
                    hot,
                    "{text}: written at {written_at}, now {write}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_hot_right_after_a_reset_until_it_is_rewritten() {
    let mut scheme = build("mbf");
    // 511 writes of 64 pages put each of them into all four filters; the 512th write ends the interval.
    for write in 0..511u32 {
        scheme.observe(Lpn(write % 64));
    }
    assert!((0..64).all(|lpn| scheme.peek(Lpn(lpn)) == Temperature::HOT), "in all four filters");
    scheme.observe(Lpn(63));
    assert!((0..4096).all(|lpn| scheme.peek(Lpn(lpn)) == Temperature::COLD), "the newest filter is empty");
    for lpn in 0..64 {
        assert_eq!(scheme.observe(Lpn(lpn)), Temperature::HOT, "the only filter without it is the newest");
    }
}

#[test]
fn two_level_lru_promotes_demotes_and_forgets() {
    let mut scheme = build("two_level_lru:hot=1,candidates=2");
    let mut write = |lpn| scheme.observe(Lpn(lpn)) == Temperature::HOT;
    assert!(!write(1), "new: a candidate");
    assert!(!write(1), "promoted by this write, so not in the hot list already");
    assert!(write(1));
    assert!(!write(2) && !write(2), "2 displaces 1, which becomes a candidate again");
    assert!(!write(1), "1 is promoted again, 2 goes back");
    assert!(!write(3) && !write(4), "two new candidates push 2 out");
    assert!(!write(2) && write(1));
}

#[test]
fn dac_climbs_on_writes_and_descends_on_copies() {
    let mut scheme = build("dac:regions=3");
    let climb: Vec<_> = (0..4).map(|_| scheme.observe(Lpn(7)).0).collect();
    assert_eq!(climb, [0, 1, 2, 2]);
    scheme.on_gc_copy(Lpn(7));
    assert_eq!(scheme.peek(Lpn(7)).0, 1);
    (0..5).for_each(|_| scheme.on_gc_copy(Lpn(7)));
    assert_eq!(scheme.peek(Lpn(7)).0, 0);

    let mut scheme = build("dac:regions=3,promote_within=2,demote_after=2");
    scheme.observe(Lpn(7));
    assert_eq!(scheme.observe(Lpn(7)).0, 1);
    scheme.on_gc_copy(Lpn(7));
    assert_eq!(scheme.peek(Lpn(7)).0, 1, "written just now");
    scheme.observe(Lpn(8));
    scheme.observe(Lpn(9));
    assert_eq!(scheme.observe(Lpn(7)).0, 1, "three writes later is too late to climb");
}

#[test]
fn fms_and_oracle_judge_by_the_interval_on_either_side() {
    let writes: Vec<_> = [1, 2, 1, 3, 3, 2, 2].map(Lpn).to_vec();
    let context = HotnessContext { logical_pages: 4, future: Some(Arc::new(Future::of(&writes, 4))) };
    let verdicts = |text: &str| -> Vec<u8> {
        let mut scheme = build_scheme(&text.parse().unwrap(), &context).unwrap();
        writes.iter().map(|&lpn| scheme.observe(lpn).0).collect()
    };
    assert_eq!(verdicts("fms:window=1"), [0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(verdicts("fms:window=1,classes=3,ratio=4"), [0, 0, 1, 0, 2, 1, 2]);
    assert_eq!(verdicts("oracle:window=1"), [0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(verdicts("oracle:window=1,classes=3,ratio=4"), [1, 1, 0, 2, 0, 2, 0]);
}

#[test]
fn the_oracle_still_knows_a_page_that_is_copied_later() {
    let writes: Vec<_> = [1, 2, 3, 1].map(Lpn).to_vec();
    let context = HotnessContext { logical_pages: 4, future: Some(Arc::new(Future::of(&writes, 4))) };
    let mut scheme = build_scheme(&"oracle:window=2".parse().unwrap(), &context).unwrap();
    assert_eq!(scheme.observe(Lpn(1)), Temperature::COLD, "three writes ahead");
    scheme.observe(Lpn(2));
    assert_eq!(scheme.peek(Lpn(1)), Temperature::HOT, "two writes ahead now");
    assert_eq!(scheme.peek(Lpn(0)), Temperature::COLD, "never written");
}

#[test]
fn wrong_parameters_are_refused_with_the_allowed_range() {
    for (text, allowed) in [
        ("mbf:filters=0", "allowed: 1..=16"),
        ("mbf:filters=17", "allowed: 1..=16"),
        ("mbf:filter_bits=63", "allowed: 64..=16777216"),
        ("mbf:hashes=0", "allowed: 1..=8"),
        ("mbf:decay=0", "allowed: 1..=4294967295"),
        ("mbf:threshold=0", "allowed: above 0"),
        ("mbf:threshold=-1", "allowed: above 0"),
        ("mbf:threshold=nan", "allowed: above 0"),
        ("mbf:threshold=5.1", "allowed: above 0, up to 5"),
        ("mbf:filters=2", "allowed: above 0, up to 3"),
        ("mhf:counters=0", "allowed: 16..=16777216"),
        ("mhf:counter_bits=3", "allowed: 1 | 2 | 4 | 8"),
        ("mhf:significant_bits=5", "allowed: 1..=4"),
        ("mhf:overflow=wrap", "allowed: freeze | halve"),
        ("wdac:window=0", "allowed: 1..=1048576"),
        ("wdac:window=10,threshold=11.5", "allowed: above 0, up to 11"),
        ("wdac:threshold=inf", "allowed: above 0"),
        ("dam:decay=0", "allowed: 1..=4194304"),
        ("dam:decay=2,threshold=4", "allowed: 1..=3"),
        ("two_level_lru:hot=0", "allowed: 1..=16777216"),
        ("fms:window=0", "allowed: 1..=2147483648"),
        ("dac:regions=1", "allowed: 2..=64"),
        ("oracle", "the writes to come are not known here"),
        ("lru", "choose from mbf, mhf, wdac"),
        ("mbf:filter=4", "it takes filters, filter_bits"),
    ] {
        let message = refusal(text);
        assert!(message.contains(allowed), "{text}: {message}");
    }
}

/// The threshold at the edge of reach is reached, and no later than the rules allow.
#[test]
fn thresholds_at_the_edge_of_reach_are_reached() {
    for (text, writes) in [("mbf:threshold=5", 4), ("wdac:window=10,threshold=11", 10), ("dam:decay=2,threshold=3", 4)]
    {
        let mut scheme = build(text);
        let first = (1..=1000).find(|_| scheme.observe(Lpn(7)) == Temperature::HOT);
        assert_eq!(first, Some(writes), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn wdac_in_constant_time_equals_the_whole_window(
        window in 1usize..50, pages in 1u32..40, threshold_tenths in 1u32..100, seed: u64,
    ) {
        let threshold = (f64::from(threshold_tenths) / 10.0).min((window + 1) as f64);
        let mut scheme = wdac(&format!("wdac:window={window},threshold={threshold}"));
        let mut plain = PlainWdac { window, writes: Default::default() };
        for lpn in skewed(400, pages, seed) {
            let verdict = scheme.observe(lpn);
            plain.observe(lpn);
            for lpn in (0..pages).map(Lpn) {
                prop_assert!((scheme.index(lpn) - plain.index(lpn)).abs() < 1e-9);
            }
            // Where rounding of the model's sum could decide, the exact verdict is right and the model says nothing.
            if (plain.index(lpn) - threshold).abs() > 1e-9 {
                prop_assert_eq!(verdict == Temperature::HOT, plain.index(lpn) >= threshold);
            }
        }
    }

    #[test]
    fn mbf_in_lanes_equals_separate_filters(
        filters in 1usize..=16, bits in 64usize..300, hashes in 1usize..=8, decay in 1u64..80,
        before: bool, shortcut: bool, pages in 1u32..200, seed: u64,
    ) {
        let units = filters - filters / 2;
        let sum = (0..filters).map(|age| 2.0 - age as f64 / units as f64).sum::<f64>();
        let threshold = (sum * 0.8 * units as f64 - 1e-9).ceil() / units as f64;
        let decide = if before { "before" } else { "after" };
        let mut scheme = build(&format!(
            "mbf:filters={filters},filter_bits={bits},hashes={hashes},decay={decay},threshold=scaled,decide={decide},shortcut={shortcut}"
        ));
        let mut plain = PlainMbf::new(filters, bits, hashes, decay, threshold, before);
        for lpn in skewed(600, pages, seed) {
            prop_assert_eq!(scheme.observe(lpn) == Temperature::HOT, plain.observe(lpn));
            let AnyHotness::Mbf(mbf) = &scheme else { unreachable!() };
            for lpn in (0..pages.min(20)).map(Lpn) {
                prop_assert!((mbf.index(lpn) - plain.index(lpn)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn mhf_in_words_and_by_counters_equals_plain_counters(
        counters in 16usize..200, log2_bits in 0u32..4, hashes in 1usize..=8, decay in 1u64..80,
        halve_on_overflow: bool, minimum_only: bool, pages in 1u32..200, seed: u64,
    ) {
        let bits = 1 << log2_bits;
        let significant = 1 + (seed % u64::from(bits)) as u32;
        let text = format!(
            "mhf:counters={counters},counter_bits={bits},significant_bits={significant},hashes={hashes},decay={decay},overflow={},increment={}",
            if halve_on_overflow { "halve" } else { "freeze" },
            if minimum_only { "minimum" } else { "plain" },
        );
        let mut by_words = build(&text);
        let mut by_counters = build(&format!("{text},decay_by=counters"));
        let mut plain = PlainMhf {
            counters: vec![0; counters], bits, significant, hashes, decay, halve_on_overflow, minimum_only, writes: 0,
        };
        for lpn in skewed(600, pages, seed) {
            let expected = Temperature::hot_if(plain.observe(lpn));
            prop_assert_eq!(by_words.observe(lpn), expected);
            prop_assert_eq!(by_counters.observe(lpn), expected);
        }
    }

    #[test]
    fn dam_decayed_when_looked_at_equals_halving_all(decay in 1u64..200, pages in 1u32..60, seed: u64) {
        let mut scheme = build(&format!("dam:decay={decay},threshold=1"));
        let mut plain = vec![0u64; pages as usize];
        for (i, lpn) in skewed(2000, pages, seed).into_iter().enumerate() {
            scheme.observe(lpn);
            plain[lpn.0 as usize] += 1;
            if (i as u64 + 1).is_multiple_of(decay) {
                plain.iter_mut().for_each(|count| *count /= 2);
            }
            let AnyHotness::Dam(dam) = &scheme else { unreachable!() };
            for lpn in (0..pages).map(Lpn) {
                prop_assert_eq!(dam.count(lpn), plain[lpn.0 as usize]);
            }
        }
    }

    #[test]
    fn two_level_lru_equals_plain_lists(hot in 1usize..20, candidates in 1usize..20, pages in 1u32..80, seed: u64) {
        let mut scheme = build(&format!("two_level_lru:hot={hot},candidates={candidates}"));
        let mut plain = PlainTwoLevelLru {
            hot: vec![], candidates: vec![], hot_capacity: hot, candidate_capacity: candidates,
        };
        for lpn in skewed(1000, pages, seed) {
            prop_assert_eq!(scheme.observe(lpn) == Temperature::HOT, plain.observe(lpn));
            let hottest = plain.hot.first().copied();
            prop_assert_eq!(hottest.is_none_or(|lpn| scheme.peek(lpn) == Temperature::HOT), true);
        }
    }
}
