//! Segments that stand for all, where there are more than are looked at.
//!
//! Each place of the sample stands for as many neighbouring segments as the others do, and holds the hotness of one of them, drawn at
//! random. Between two times that lines are drawn little changes, so that a part of the places is asked for anew each time, in
//! turn: what is a [`TURNS`]th of the cost moves centres by less than another sample would, and centres do not jump from one
//! sample's to the next one's. Hotness is kept to seven binary digits, the middle of an interval standing for all of it: segments are counted by
//! interval, and where a line moves, only the intervals that it passes change their group. The figures that are added up have so few digits
//! that sums are exact, in whatever order numbers come and go, as long as those of one group lie within thirty octaves.

use super::{MAX_GROUPS, Scale, Segments, Sum};
use crate::random::Random;

/// Times after which every place has been asked for anew.
const TURNS: usize = 64;

/// Segments are asked for so many at a time, before the first is counted: they lie anywhere in a table, and are fetched side by side.
const ASKED_AT_ONCE: usize = 16;

/// Intervals: the exponents and the seven first digits of all positive numbers of single precision.
const INTERVALS: usize = 1 << 15;
/// Bits of single precision below them.
const DROPPED: u32 = 16;

/// Mark of a place whose segment holds nothing.
const NOTHING: u16 = u16::MAX;

/// The interval of a hotness. A larger one is never in a lower interval.
#[inline(always)]
fn interval(hotness: f64) -> u16 {
    ((hotness as f32).to_bits() >> DROPPED) as u16
}

/// The middle of an interval.
#[inline(always)]
fn middle(interval: u16) -> f32 {
    f32::from_bits(u32::from(interval) << DROPPED | 1 << (DROPPED - 1))
}

/// The first interval whose middle is not below a bound: an interval goes where its middle goes.
#[inline(always)]
fn line(bound: f64) -> u16 {
    (((bound as f32).to_bits() + (1 << (DROPPED - 1)) - 1) >> DROPPED) as u16
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    scale: Scale,
    /// The interval of each place, or [`NOTHING`].
    places: Vec<u16>,
    /// Places that are asked for at the next time begin here.
    next: usize,
    /// Places by interval.
    counts: Box<[u16]>,
    /// First intervals of groups 1, 2, ...; ascending.
    lines: Vec<u16>,
    /// What lies between them.
    sums: [Sum; MAX_GROUPS],
}

impl Sample {
    pub(super) fn new(scale: Scale) -> Self {
        Self {
            scale,
            places: Vec::new(),
            next: 0,
            counts: vec![0; INTERVALS].into(),
            lines: Vec::new(),
            sums: [Sum::default(); MAX_GROUPS],
        }
    }

    /// Asks for a part of the places anew; for all of them the first time.
    pub(super) fn look(
        &mut self,
        places: usize,
        segments: usize,
        random: &mut Random,
        hotness: impl Fn(usize) -> Option<f64>,
    ) {
        let mut left = if self.places.is_empty() { places } else { places.div_ceil(TURNS) };
        self.places.resize(places, NOTHING);
        let mut found = [NOTHING; ASKED_AT_ONCE];
        while left > 0 {
            let asked = left.min(ASKED_AT_ONCE).min(places - self.next);
            let own = self.next..self.next + asked;
            for (place, found) in own.clone().zip(&mut found) {
                let (first, end) = (place * segments / places, (place + 1) * segments / places);
                let segment = first + random.below((end - first) as u64) as usize;
                *found = hotness(segment).map_or(NOTHING, interval);
            }
            for (place, new) in own.zip(found) {
                let old = std::mem::replace(&mut self.places[place], new);
                if old != new {
                    self.recount(old, new);
                }
            }
            left -= asked;
            self.next = (self.next + asked) % places;
        }
    }

    #[inline(always)]
    fn recount(&mut self, old: u16, new: u16) {
        if old != NOTHING {
            self.counts[usize::from(old)] -= 1;
            let (group, measure) = (self.group(old), self.measure(old));
            self.sums[group] -= Sum { sum: measure, count: 1 };
        }
        if new != NOTHING {
            self.counts[usize::from(new)] += 1;
            let (group, measure) = (self.group(new), self.measure(new));
            self.sums[group] += Sum { sum: measure, count: 1 };
        }
    }

    #[inline(always)]
    fn group(&self, interval: u16) -> usize {
        self.lines.iter().map(|line| usize::from(interval >= *line)).sum()
    }

    /// What is summed up of an interval.
    #[inline(always)]
    fn measure(&self, interval: u16) -> f64 {
        const LOGARITHM_STEPS: f64 = (1 << 20) as f64;
        let middle = middle(interval).into();
        match self.scale {
            Scale::Raw => middle,
            Scale::Log => libm::round(self.scale.measure(middle) * LOGARITHM_STEPS) / LOGARITHM_STEPS,
        }
    }

    /// What lies in some intervals.
    fn within(&self, intervals: std::ops::Range<u16>) -> Sum {
        let mut within = Sum::default();
        for interval in intervals {
            let count = self.counts[usize::from(interval)];
            if count > 0 {
                within += Sum { sum: self.measure(interval) * f64::from(count), count: count.into() };
            }
        }
        within
    }

    /// Moves the line below group `at + 1`.
    #[inline(always)]
    fn move_line(&mut self, at: usize, to: u16) {
        let from = std::mem::replace(&mut self.lines[at], to);
        if to < from {
            let passed = self.within(to..from);
            self.sums[at] -= passed;
            self.sums[at + 1] += passed;
        } else if to > from {
            let passed = self.within(from..to);
            self.sums[at] += passed;
            self.sums[at + 1] -= passed;
        }
    }
}

impl Segments for Sample {
    fn count(&self) -> usize {
        self.sums.iter().map(|sum| sum.count as usize).sum()
    }

    fn any(&self, random: &mut Random) -> f64 {
        let (before, from) = self.places.split_at(random.below(self.places.len() as u64) as usize);
        let found = from.iter().chain(before).find(|interval| **interval != NOTHING);
        self.measure(*found.expect("a segment that is picked is one of some"))
    }

    /// Lines move in an order in which none passes another, so that what a line passes is in one of its two groups.
    fn parted(&mut self, bounds: &[f64]) -> [Sum; MAX_GROUPS] {
        // Below the first line there was nothing, so that all lay in the last group.
        if self.lines.is_empty() {
            self.lines = vec![0; bounds.len()];
            self.sums.swap(0, bounds.len());
        }
        let mut to = [0; MAX_GROUPS];
        for (to, bound) in to.iter_mut().zip(bounds) {
            *to = line(self.scale.hotness(*bound));
        }
        for at in (0..bounds.len()).rev() {
            self.move_line(at, to[at].max(self.lines[at]));
        }
        for (at, to) in to.into_iter().enumerate().take(bounds.len()) {
            self.move_line(at, to);
        }
        self.sums
    }

    fn measures(&self) -> Vec<f64> {
        self.places.iter().filter(|interval| **interval != NOTHING).map(|interval| self.measure(*interval)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_hold_what_lies_between_their_lines_however_lines_and_places_move(
            seed in any::<u64>(),
            scale in prop_oneof![Just(Scale::Raw), Just(Scale::Log)],
            steps in prop::collection::vec(prop::collection::vec(1e-6f64..1e3, 3), 1..40),
        ) {
            let mut random = Random::new(seed);
            let mut sample = Sample::new(scale);
            for mut bounds in steps {
                let hotnesses: Vec<f64> = (0..1000).map(|_| libm::exp(14.0 * random.unit() - 10.0)).collect();
                sample.look(100, 1000, &mut random, |i| (i % 7 > 0).then(|| hotnesses[i]));
                bounds.sort_unstable_by(f64::total_cmp);
                let bounds: Vec<f64> = bounds.iter().map(|bound| scale.measure(*bound)).collect();
                let parted = sample.parted(&bounds);
                let mut expected = [Sum::default(); MAX_GROUPS];
                for at in sample.places.iter().filter(|at| **at != NOTHING) {
                    let group = bounds.iter().filter(|bound| middle(*at) >= scale.hotness(**bound) as f32).count();
                    expected[group] += Sum { sum: sample.measure(*at), count: 1 };
                }
                prop_assert_eq!(parted, expected);
                prop_assert_eq!(sample.count(), sample.measures().len());
            }
        }
    }

    #[test]
    fn every_place_is_asked_for_anew_in_turn() {
        let mut random = Random::new(1);
        let mut sample = Sample::new(Scale::Raw);
        sample.look(200, 1000, &mut random, |_| Some(1.0));
        for time in 1..=TURNS {
            sample.look(200, 1000, &mut random, |_| Some(2.0));
            let old = sample.places.iter().filter(|at| **at == interval(1.0)).count();
            assert_eq!(old, 200usize.saturating_sub(4 * time));
        }
    }

    #[test]
    fn a_place_stands_for_its_segments_alone() {
        let mut random = Random::new(2);
        let mut sample = Sample::new(Scale::Raw);
        let asked = std::cell::RefCell::new(Vec::new());
        let ask = |i: usize| {
            asked.borrow_mut().push(i);
            Some(1.0)
        };
        sample.look(100, 1055, &mut random, ask);
        let asked = asked.into_inner();
        assert!(asked.windows(2).all(|pair| pair[0] < pair[1]) && asked[99] < 1055);
    }
}
