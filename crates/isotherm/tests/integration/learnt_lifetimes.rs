//! The placement and the victim policy `isotherm`: how near learnt lifetimes come to known ones, and what they cost where there is
//! nothing to learn.

use crate::known_rates::{closed_form, simulated};
use crate::separation::{SteadyRun, two_temperatures, zipf};
use isotherm::random::Random;

/// Cumulative weights of pages by rank under Zipf's law.
fn cumulative_zipf(pages: u32, exponent: f64) -> Vec<f64> {
    (1..=pages)
        .scan(0.0, |sum, rank| {
            *sum += f64::from(rank).powf(-exponent);
            Some(*sum)
        })
        .collect()
}

#[test]
fn two_learnt_temperatures_come_within_three_percent_of_known_ones() {
    for (spare, percent) in [(0.07, "7%"), (0.15, "15%"), (0.28, "28%")] {
        let wa = two_temperatures("isotherm", "isotherm", percent, 1 << 18, 16, 8);
        let known = closed_form(&[(0.1, 0.9), (0.9, 0.1)], spare);
        println!("spare {percent}: {wa:.3}, known rates {known:.3}: {:+.1} %", 100.0 * (wa / known - 1.0));
        assert!(wa < 1.03 * known, "spare {percent}: {wa:.3}, known rates {known:.3}");
    }
}

/// Three references: the closed form's limit of as many groups as there are rates, each with a block of its own to fill; the same engine with as
/// many streams as the learner has, by known rates; and the best rival. The coldest pages are rewritten once in a dozen drive
/// writes, so that the traffic is stationary for the learner, who begins with nothing, after two dozen.
fn learnt_zipf_rates_are_near_known_ones(spare: f64, percent: &str, most: f64) {
    const PAGES: u32 = 1 << 18;
    let cumulative = cumulative_zipf(PAGES, 0.99);
    let sum = cumulative[PAGES as usize - 1];
    // Groups a quarter of an octave of ranks wide, whose rates differ by less than a fifth.
    let mut ranks: Vec<usize> = (0..=72).map(|quarter| 2f64.powf(f64::from(quarter) / 4.0).round() as usize).collect();
    ranks.dedup();
    let share =
        |from: usize, to: usize| (cumulative[to - 1] - if from == 0 { 0.0 } else { cumulative[from - 1] }) / sum;
    let groups: Vec<(f64, f64)> = std::iter::once((0, 1))
        .chain(ranks.windows(2).map(|pair| (pair[0], pair[1])))
        .map(|(from, to)| ((to - from) as f64 / f64::from(PAGES), share(from, to)))
        .collect();
    // An odd factor permutes the pages, so that neighbours have nothing in common.
    let page_of = |rank: u32| rank.wrapping_mul(0x9E37_79B1) % PAGES;
    let mut rates = vec![0.0; PAGES as usize];
    for rank in 0..PAGES as usize {
        rates[page_of(rank as u32) as usize] = share(rank, rank + 1) * f64::from(PAGES);
    }
    // Where to look for the rank of a draw: a search through all ranks would take a fifth of the test.
    let first_of: Vec<u32> = (0..=PAGES)
        .map(|part| cumulative.partition_point(|c| *c <= f64::from(part) / f64::from(PAGES) * sum) as u32)
        .collect();
    let pages = || {
        let mut random = Random::new(11);
        let (cumulative, first_of) = (&cumulative, &first_of);
        move |_| {
            let draw = random.unit();
            let part = (draw * f64::from(PAGES)) as usize;
            let (first, last) = (first_of[part] as usize, first_of[part + 1] as usize);
            let rank = first + cumulative[first..=last.min(PAGES as usize - 1)].partition_point(|c| *c <= draw * sum);
            page_of(rank.min(PAGES as usize - 1) as u32)
        }
    };
    let learnt = by_drive_write(PAGES, percent, ("isotherm", "isotherm"), 32, pages());
    let (early, stationary) = (mean(&learnt[8..16]), mean(&learnt[24..]));
    let limit = closed_form(&groups, spare);
    let known = mean(&simulated(&rates, percent, 16, pages())[8..]);
    let over = |wa: f64, reference: f64| format!("{:+.1} %", 100.0 * (wa / reference - 1.0));
    println!(
        "spare {percent}: limit {limit:.3}, known rates {known:.3}; learnt {early:.3} in drive writes 9 to 16 ({} limit), \
         {stationary:.3} in 25 to 32 ({} limit, {} known rates)",
        over(early, limit),
        over(stationary, limit),
        over(stationary, known),
    );
    assert!(early < most * limit, "spare {percent}: {early:.3}, limit {limit:.3}");
    assert!(stationary < 1.03 * known, "spare {percent}: {stationary:.3}, known rates {known:.3}");
    assert!(known > limit, "spare {percent}: known rates {known:.3}, limit {limit:.3}");
}

#[test]
fn learnt_zipf_rates_come_within_three_percent_of_known_ones_with_little_spare_space() {
    learnt_zipf_rates_are_near_known_ones(0.07, "7%", 1.10);
}

#[test]
fn learnt_zipf_rates_come_within_three_percent_of_known_ones_with_usual_spare_space() {
    learnt_zipf_rates_are_near_known_ones(0.15, "15%", 1.07);
}

#[test]
fn learnt_zipf_rates_come_within_three_percent_of_known_ones_with_much_spare_space() {
    learnt_zipf_rates_are_near_known_ones(0.28, "28%", 1.055);
}

#[test]
fn zipf_costs_less_than_with_the_best_rival() {
    let (learnt, rival) = (zipf("isotherm", 16, "isotherm", "sealed"), zipf("mdc", 8, "mdc", "sealed"));
    println!("{learnt:.3}, mdc with mdc {rival:.3}");
    assert!(learnt < rival, "{learnt:.3} {rival:.3}");
}

/// Write amplification in each drive write of a run of so many pages; `next` knows the drive write it is asked in.
fn by_drive_write(
    pages: u32,
    spare: &str,
    pair: (&str, &str),
    drive_writes: u32,
    next: impl FnMut(u32) -> u32,
) -> Vec<f64> {
    let (placement, victim) = pair;
    let sets = [
        format!("device.spare={spare}"),
        format!("placement.name={placement}"),
        format!("gc.victim={victim}"),
        "wear.leveling=false".to_owned(),
    ];
    SteadyRun::new(&sets, pages).drive_writes(drive_writes, next)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn uniform_traffic_costs_half_a_percent_at_most() {
    let pages = 1u32 << 16;
    let uniform = |pair| {
        let mut random = Random::new(3);
        mean(&by_drive_write(pages, "7%", pair, 12, move |_| random.below(pages.into()) as u32)[8..])
    };
    let (learnt, single) = (uniform(("isotherm", "isotherm")), uniform(("single", "greedy")));
    println!("uniform: {learnt:.3}, single stream and greedy {single:.3}");
    assert!(learnt < 1.005 * single, "{learnt:.3} {single:.3}");
}

#[test]
fn a_hot_set_that_moves_is_followed_within_a_drive_write() {
    let pages = 1u32 << 16;
    let hot = u64::from(pages / 10);
    let mut random = Random::new(5);
    // Nine tenths of the writes go to a tenth of the pages: to another tenth from the twelfth drive write on.
    let wa = by_drive_write(pages, "7%", ("isotherm", "isotherm"), 16, move |turn| {
        let first = if turn < 12 { 0 } else { u64::from(pages) / 2 };
        let page = if random.chance(0.9) { first + random.below(hot) } else { random.below(pages.into()) };
        page as u32
    });
    let steady = mean(&wa[8..12]);
    println!("steady {steady:.3}, from the move on {:.3?}", &wa[12..]);
    assert!(wa[13] < 1.1 * steady, "steady {steady:.3}, from the move on {:.3?}", &wa[12..]);
}

#[test]
fn traffic_that_misleads_costs_five_percent_more_than_copies_apart_at_most() {
    let pages = 1u32 << 16;
    let part = u64::from(pages / 8);
    // Each eighth of the drive is rewritten in quick succession until its pages are known as hot, and left for good: what was learnt
    // in one drive write is wrong in the next.
    let misled = |pair| {
        let mut random = Random::new(9);
        mean(
            &by_drive_write(pages, "7%", pair, 16, move |turn| {
                let first = u64::from(turn % 8) * part;
                let page = if random.chance(0.5) { first + random.below(part) } else { random.below(pages.into()) };
                page as u32
            })[8..],
        )
    };
    let (learnt, apart) = (misled(("isotherm", "isotherm")), misled(("host_gc", "cost_benefit")));
    println!("misled: {learnt:.3}, host_gc with cost_benefit {apart:.3}");
    assert!(learnt < 1.05 * apart, "{learnt:.3} {apart:.3}");
}
