use super::*;
use crate::random::Random;

fn rate(lifetimes: &Lifetimes, lpn: u32) -> f64 {
    lifetimes.rate(Lpn(lpn))
}

#[test]
fn pages_that_die_at_random_have_the_rate_at_which_they_die() {
    let pages = 1 << 16;
    let mut lifetimes = Lifetimes::new(pages);
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
    let mut lifetimes = Lifetimes::new(pages);
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
fn a_write_is_noted_once_and_a_trim_ends_a_version() {
    let mut lifetimes = Lifetimes::new(64);
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
    let mut lifetimes = Lifetimes::new(pages);
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
