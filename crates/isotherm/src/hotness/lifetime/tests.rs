use super::*;
use crate::random::Random;

/// Of a drive with a tenth of spare space.
fn lifetimes_of(pages: u32, ignored: Option<Signal>) -> Lifetimes {
    Lifetimes::new(LifetimeOptions { logical_pages: pages, spare_pages: pages / 10, ignored })
}

fn rate(lifetimes: &Lifetimes, lpn: u32) -> f64 {
    lifetimes.rate(Lpn(lpn))
}

#[test]
fn pages_that_die_at_random_have_the_rate_at_which_they_die() {
    let pages = 1 << 16;
    let mut lifetimes = lifetimes_of(pages, None);
    let mut random = Random::new(1);
    // A tenth of the pages receives nine tenths of the writes.
    let hot = pages / 10;
    (0..u64::from(pages)).for_each(|now| lifetimes.record(Lpn(now as u32), now));
    for now in u64::from(pages)..12 * u64::from(pages) {
        let lpn = if random.chance(0.9) {
            random.below(u64::from(hot))
        } else {
            u64::from(hot) + random.below(u64::from(pages - hot))
        };
        lifetimes.record(Lpn(lpn as u32), now);
    }
    let mean = |range: std::ops::Range<u32>| {
        range.clone().map(|lpn| rate(&lifetimes, lpn).ln()).sum::<f64>() / range.len() as f64
    };
    let (hot_rate, cold_rate) = (mean(0..hot).exp(), mean(hot..pages).exp());
    // 9 writes a page in one write of the capacity, and a ninth.
    assert!((hot_rate / 9.0).ln().abs() < 0.2, "{hot_rate}");
    assert!((cold_rate * 9.0).ln().abs() < 0.4, "{cold_rate}");
}

#[test]
fn a_page_of_a_cycle_is_cold_until_its_turn_comes_near() {
    let pages = 1 << 14;
    let mut lifetimes = lifetimes_of(pages, None);
    let cycle = u64::from(pages) / 2;
    for now in 0..40 * cycle {
        lifetimes.record(Lpn((now % cycle) as u32), now);
    }
    // Written just now, and about to be written again.
    let (young, old) = (rate(&lifetimes, cycle as u32 - 1), rate(&lifetimes, 8));
    assert!(young < 0.3 && old > 2.0, "{young} {old}");
    // Both will die within half of a write of the capacity: for the placement they are hotter than the mean.
    assert!(lifetimes.eighths(Lpn(cycle as u32 - 1)) > 48, "{}", lifetimes.eighths(Lpn(cycle as u32 - 1)));
}

#[test]
fn a_victim_policy_looks_as_far_ahead_as_the_spare_space_lasts() {
    let pages = 1 << 14;
    let cycle = u64::from(pages) / 2;
    // The rate of a page that dies after a third of a write of the capacity, and not before.
    let rate_with = |spare_pages: u32| {
        let mut lifetimes = Lifetimes::new(LifetimeOptions { logical_pages: pages, spare_pages, ignored: None });
        for now in 0..40 * cycle {
            lifetimes.record(Lpn((now % cycle) as u32), now);
        }
        rate(&lifetimes, (2 * cycle / 3) as u32)
    };
    let (little, much) = (rate_with(pages / 20), rate_with(pages / 2));
    assert!(little < 0.3 && much > 1.0, "{little} {much}");
}

#[test]
fn a_write_is_noted_once_and_a_trim_ends_a_version() {
    let mut lifetimes = lifetimes_of(64, None);
    lifetimes.record(Lpn(3), 0);
    lifetimes.record(Lpn(3), 0);
    assert_eq!(lifetimes.pages[3].class(), 0);
    lifetimes.trim(Lpn(3));
    assert!(!lifetimes.pages[3].is_live());
    lifetimes.trim(Lpn(3));
    lifetimes.record(Lpn(3), 20);
    // One rewrite, after twenty units of one write each but one: the trim came with the write before it.
    assert_eq!(lifetimes.pages[3].class(), 1);
}

#[test]
fn pages_never_look_younger_than_they_are() {
    let pages = 4096;
    let mut lifetimes = lifetimes_of(pages, None);
    lifetimes.record(Lpn(7), 0);
    for now in 1..100 * u64::from(pages) {
        lifetimes.record(Lpn(9 + (now % 3) as u32), now);
        let age = lifetimes.pages[7].age(lifetimes.now);
        assert!(u64::from(age) >= (now / 2).min(u64::from(SETTLED_AGE)), "{age} at {now}");
    }
}

#[test]
fn the_state_of_a_page_takes_four_bytes() {
    assert_eq!(Lifetimes::bytes_of(1000), 4000 + TABLE_BYTES);
    assert_eq!(Lifetimes::bytes_of(0), 0);
}

#[test]
fn a_signal_that_is_ignored_tells_no_pages_apart() {
    // Half of the pages are written by large requests, at a ninth of the rate of the others.
    let pages = 1 << 12;
    let told_apart = |ignored: Option<Signal>, drive_writes: u64| {
        let mut lifetimes = lifetimes_of(pages, ignored);
        let mut random = Random::new(5);
        for now in 0..drive_writes * u64::from(pages) {
            let is_large = random.chance(0.1);
            let lpn = random.below(u64::from(pages / 2)) as u32 + if is_large { 0 } else { pages / 2 };
            lifetimes.begin_write(if is_large { 64 } else { 1 });
            lifetimes.record(Lpn(lpn), now);
        }
        let contexts: std::collections::HashSet<usize> =
            lifetimes.pages.iter().map(|page| lifetimes.contexts.of(*page)).collect();
        let rates: std::collections::HashSet<u8> = (0..pages).map(|lpn| lifetimes.eighths(Lpn(lpn))).collect();
        (contexts.len(), rates.len())
    };
    let (contexts, _) = told_apart(None, 4);
    for signal in [Signal::Size, Signal::Rewrites, Signal::Interval] {
        let (fewer, _) = told_apart(Some(signal), 4);
        assert!(fewer < contexts, "{signal:?}: {fewer} contexts of {contexts}");
    }
    let ((_, rates), (_, fewer)) = (told_apart(None, 40), told_apart(Some(Signal::Age), 40));
    assert!(fewer < rates, "{fewer} rates of {rates}");
}

#[test]
fn pages_die_together_where_they_are_overwritten_in_the_order_in_which_they_were_written() {
    let pages = 1 << 14;
    let together = |ignored: Option<Signal>, next: &mut dyn FnMut(u64) -> u64| {
        let mut lifetimes = lifetimes_of(pages, ignored);
        for now in 0..6 * u64::from(pages) {
            lifetimes.record(Lpn(next(now) as u32), now);
        }
        lifetimes.die_together()
    };
    let mut in_order = |now: u64| now % u64::from(pages);
    assert!(together(None, &mut in_order));
    assert!(!together(Some(Signal::Together), &mut in_order));
    let mut random = Random::new(3);
    assert!(!together(None, &mut |_| random.below(pages.into())));
    // Hot pages that are overwritten in order die young: they are not asked.
    let mut random = Random::new(3);
    assert!(!together(None, &mut |now| if now % 2 == 0 { now / 2 % 64 } else { random.below(pages.into()) }));
}

#[test]
fn an_age_counts_in_octaves_from_an_eighth_of_a_drive_write_on() {
    let pages = 1 << 14;
    let mut lifetimes = lifetimes_of(pages, None);
    lifetimes.record(Lpn(7), 0);
    for (eighths, octaves) in [(0, 0), (1, 0), (2, 1), (7, 2), (8, 3), (33, 5)] {
        while lifetimes.noted < eighths * u64::from(pages / 8) + 1 {
            lifetimes.record(Lpn(9), lifetimes.noted);
        }
        assert_eq!(lifetimes.octaves_old(Lpn(7)), octaves, "{eighths}");
    }
}

#[test]
fn an_interval_that_began_before_the_workload_did_counts_as_a_longer_one() {
    let pages = 1 << 14;
    // The drive is filled in order; then a sixth of the writes goes to all pages in another order, which is repeated, and the others to few.
    let every = 6;
    let mut random = Random::new(7);
    let mut order: Vec<u32> = (64..pages).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let filled_then = |next: &mut dyn FnMut(u64) -> u32, rounds: u64| {
        let mut lifetimes = lifetimes_of(pages, None);
        for now in 0..u64::from(pages) {
            lifetimes.record(Lpn(now as u32), now);
        }
        for turn in 0..rounds * order.len() as u64 * every {
            let lpn = if turn.is_multiple_of(every) { next(turn / every) } else { (turn % 64) as u32 };
            lifetimes.record(Lpn(lpn), u64::from(pages) + turn);
        }
        lifetimes
    };
    let repeated = filled_then(&mut |turn| order[turn as usize % order.len()], 3);
    assert!((384..512).contains(&repeated.first_parts), "{}", repeated.first_parts);
    // Pages have the mean of the interval that is repeated, on average; with first intervals as they are it would lie 14 % below.
    let sum: u64 = order.iter().map(|lpn| u64::from(ages::of_eighths(repeated.pages[*lpn as usize].mean()))).sum();
    let mean = sum as f64 / order.len() as f64 / f64::from(ages::SCALE) / (UNITS_PER_DRIVE_WRITE * every) as f64;
    assert!(mean > 0.95, "{mean}");
    let at_random = filled_then(&mut |_| 64 + random.below(u64::from(pages - 64)) as u32, 6);
    assert!(at_random.first_parts < 288 && at_random.first_intervals.count > LEAST_FIRST_INTERVALS);
}

#[test]
fn sums_of_first_intervals_make_room_and_stand_for_the_same() {
    let mut intervals = FirstIntervals { count: 1 << 33, first: 1 << 60, second: 3 << 60 };
    let parts = intervals.parts();
    intervals.keep_in_range();
    assert_eq!((parts, intervals.parts(), intervals.count), (768, 768, 1 << 32));
    intervals.keep_in_range();
    assert_eq!(intervals.count, 1 << 32, "there is room");
}
