//! Where texts lie in a picture, so that none lies on another and no line crosses one.

use super::canvas::{LINE, WIDTH, width_of};
use super::reach::Reach;
use crate::figure::Rule;

/// The place of a text: its left and right end, its top and bottom.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) x: [f64; 2],
    pub(super) y: [f64; 2],
}

impl Place {
    /// Of a text that begins at `x` on the line at `y`.
    pub(super) fn of(x: f64, y: f64, text: &str) -> Self {
        Self { x: [x, x + width_of(text)], y: [y - 11.0, y + 3.0] }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        let overlap = |a: [f64; 2], b: [f64; 2]| a[0] < b[1] && b[0] < a[1];
        overlap(self.x, other.x) && overlap(self.y, other.y)
    }
}

/// What is left of a stretch without those that are taken.
pub(super) fn without(stretch: [f64; 2], mut taken: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    taken.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let mut pieces = Vec::new();
    let mut start = stretch[0];
    for [low, high] in taken {
        pieces.push([start, low.min(stretch[1])]);
        start = start.max(high);
    }
    pieces.push([start, stretch[1]]);
    pieces.retain(|[low, high]| low < high);
    pieces
}

/// Where the labels of upright lines stand: each beside the top of its line, on the lowest line of text above `top` on which it
/// meets no other label and no line to one above it.
pub(super) fn flags(rules: &[Rule], at: &Reach, top: f64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by(|a, b| rules[*b].value.total_cmp(&rules[*a].value));
    let mut places: Vec<(usize, Place)> = Vec::new();
    for rule in order {
        let (x, label) = (at.at(rules[rule].value), rules[rule].label.as_str());
        let fits = x + 3.0 + width_of(label) <= WIDTH;
        let start = if fits { x + 3.0 } else { x - 3.0 - width_of(label) };
        let mut place = Place::of(start, top - 4.0, label);
        let is_crossed = |place: &Place, (rule, other): &(usize, Place)| {
            let line = at.at(rules[*rule].value);
            other.y[0] < place.y[0] && place.x[0] < line && line < place.x[1]
        };
        while places.iter().any(|other| other.1.meets(&place) || is_crossed(&place, other)) {
            place.y = place.y.map(|y| y - LINE);
        }
        places.push((rule, place));
    }
    places.sort_by_key(|(rule, _)| *rule);
    places.into_iter().map(|(_, place)| place).collect()
}

/// Where the labels of level lines stand: each on its line, as far to the right as it meets no other, and higher where there is no
/// room.
pub(super) fn ridges(rules: &[Rule], at: &Reach, across: &Reach) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for rule in rules {
        let width = width_of(&rule.label);
        let mut place = Place::of(across.to - width, at.at(rule.value) - 4.0, &rule.label);
        while let Some(other) = places.iter().find(|other| other.meets(&place)) {
            place.x = [other.x[0] - 10.0 - width, other.x[0] - 10.0];
            if place.x[0] < across.from {
                place = Place { x: [across.to - width, across.to], y: place.y.map(|y| y - LINE) };
            }
        }
        places.push(place);
    }
    places
}

/// Heights of texts at the ends of lines that end at `ends`: as near to these as they lie a line of text apart, between the bounds
/// where there is room.
pub(super) fn apart(ends: &[f64], [top, bottom]: [f64; 2]) -> Vec<f64> {
    const STEP: f64 = 14.0;
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    // Texts that meet are one stack, with its middle where the middle of their ends is.
    let mut stacks: Vec<(Vec<usize>, f64)> = Vec::new();
    for at in order {
        stacks.push((vec![at], ends[at].min(bottom).max(top)));
        while let [.., (above, start), (below, next)] = stacks.as_mut_slice() {
            if *start + STEP * above.len() as f64 <= *next {
                break;
            }
            above.append(below);
            let count = above.len() as f64;
            let middle = above.iter().map(|at| ends[*at]).sum::<f64>() / count;
            *start = (middle - STEP * (count - 1.0) / 2.0).min(bottom - STEP * (count - 1.0)).max(top);
            stacks.pop();
        }
    }
    let mut heights = vec![0.0; ends.len()];
    for (stack, start) in stacks {
        for (place, at) in stack.into_iter().enumerate() {
            heights[at] = start + STEP * place as f64;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    fn rules(values: &[f64]) -> Vec<Rule> {
        values.iter().map(|value| Rule { label: "winXP_55GB (published)".into(), value: *value }).collect()
    }

    fn assert_apart(places: &[Place]) {
        for (at, place) in places.iter().enumerate() {
            assert!(place.x[0] >= 0.0 && place.x[1] <= WIDTH, "{place:?} is in the picture");
            assert!(places[..at].iter().all(|other| !other.meets(place)), "{place:?} lies on another");
        }
    }

    #[test]
    fn labels_of_rules_lie_apart() {
        let close = rules(&[1.438, 1.102, 1.006, 1.013, 1.0131, 1.8]);
        let x = Reach::new(&Axis::linear("", ""), Some([0.0, 1.8]), 16.0, WIDTH - 80.0);
        assert_apart(&flags(&close, &x, 90.0));
        let y = Reach::new(&Axis::linear("", ""), Some([0.0, 1.8]), 300.0, 60.0);
        let places = ridges(&close, &y, &x);
        assert_apart(&places);
        assert_eq!(
            places[2].y,
            Place::of(0.0, y.at(1.006) - 4.0, "").y,
            "a label stands on its line where there is room"
        );
    }

    #[test]
    fn names_at_the_ends_of_lines_lie_apart_and_in_order() {
        assert_eq!(apart(&[10.0, 100.0], [0.0, 240.0]), [10.0, 100.0], "where there is room, each at its end");
        let heights = apart(&[120.0, 118.0, 122.0, 240.0, 239.0], [0.0, 240.0]);
        let order = [heights[1], heights[0], heights[2], heights[4], heights[3]];
        assert!(order.windows(2).all(|pair| pair[0] + 13.9 < pair[1]), "{heights:?}");
        assert!((heights[0] - 120.0).abs() < 0.1 && heights[3] <= 240.0, "{heights:?}");
    }

    #[test]
    fn what_is_taken_is_left_out_of_a_stretch() {
        assert_eq!(without([0.0, 10.0], vec![[8.0, 12.0], [2.0, 4.0], [3.0, 5.0]]), [[0.0, 2.0], [5.0, 8.0]]);
        assert_eq!(without([0.0, 10.0], vec![[-1.0, 11.0]]), [[0.0; 2]; 0]);
        assert_eq!(without([0.0, 10.0], Vec::new()), [[0.0, 10.0]]);
        assert_eq!(without([0.0, 10.0], vec![[12.0, 14.0], [-3.0, -1.0]]), [[0.0, 10.0]]);
    }
}
