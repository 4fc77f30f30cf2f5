//! Lines that coincide over a stretch, which would hide each other: there they are drawn in stripes, each in its own for a little way in
//! turn, so that every one of them can be followed. O(lines² points).

use super::reach::Reach;
use crate::figure::{Mark, Origin, Plane, PlaneSeries};
use crate::ranges::Ranges;

/// Lines nearer than this share of the plane's height cannot be told apart: two to three units of the picture.
const NEAR: f64 = 0.012;
/// Lines that coincide over less than this share of the plane's width, as where they cross, are left alone.
const LONG: f64 = 0.08;

/// Steps take turns after about this share of the plane's width.
const TURN: f64 = 0.012;

/// The stripes of one line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Stripes {
    /// For each point, whether the line is drawn once more from the point before to this one, above those that it coincides with.
    pub(super) is_drawn: Vec<bool>,
    /// Which of so many lines it is whose dashes take turns there; none of steps, which are drawn or not as a whole.
    pub(super) dash: Option<(usize, usize)>,
}

/// Where the points of a series lie, in shares of the plane, and none where one is absent.
fn places(series: &PlaneSeries, x: &Reach, y: &Reach) -> Vec<Option<(f64, f64)>> {
    series.points.iter().map(|(px, py)| Some((x.at(*px), y.at((*py)?)))).collect()
}

/// For each point, the share of the width over which two lines coincide from the point before to this one.
fn shared(a: &[Option<(f64, f64)>], b: &[Option<(f64, f64)>], steps: bool) -> Vec<f64> {
    let are_near = |at: usize| match (a.get(at), b.get(at)) {
        (Some(Some(a)), Some(Some(b))) => (a.0 - b.0).abs() < 1e-3 && (a.1 - b.1).abs() < NEAR,
        _ => false,
    };
    let along = |at: usize| {
        // A step is level where it ends, wherever the one before was.
        let begins = at > 0 && (are_near(at - 1) || steps && a[at - 1].is_some());
        if begins && are_near(at) { a[at].zip(a[at - 1]).map_or(0.0, |(to, from)| to.0 - from.0) } else { 0.0 }
    };
    (0..a.len()).map(along).collect()
}

/// The stripes of each series of a chart, where it has some.
pub(super) fn stripes(chart: &Plane, ranges: Ranges) -> Vec<Option<Stripes>> {
    let (x, y) = (Reach::new(&chart.x, ranges.x, 0.0, 1.0), Reach::new(&chart.y, ranges.y, 0.0, 1.0));
    let count = chart.series.len();
    let placed: Vec<_> = chart.series.iter().map(|series| places(series, &x, &y)).collect();
    let is_line = |at: usize| chart.series[at].mark != Mark::Points && chart.series[at].origin != Origin::Theory;
    // Which series each belongs with: those that coincide with each other have the same first one.
    let mut first: Vec<usize> = (0..count).collect();
    let mut is_shared: Vec<Vec<bool>> = placed.iter().map(|points| vec![false; points.len()]).collect();
    for a in 0..count {
        for b in (a + 1..count).filter(|b| is_line(a) && is_line(*b) && chart.series[a].mark == chart.series[*b].mark) {
            let along = shared(&placed[a], &placed[b], chart.series[a].mark == Mark::Steps);
            if along.iter().sum::<f64>() < LONG {
                continue;
            }
            for (at, _) in along.iter().enumerate().filter(|(_, along)| **along > 0.0) {
                (is_shared[a][at], is_shared[b][at]) = (true, true);
            }
            let (one, other) = (first[a].min(first[b]), first[a].max(first[b]));
            first.iter_mut().filter(|first| **first == other).for_each(|first| *first = one);
        }
    }
    let members = |at: usize| -> Vec<usize> { (0..count).filter(|other| first[*other] == first[at]).collect() };
    let of_line = |line: usize| {
        let members = members(line);
        // The last lies above the others as it is.
        let turn = members.iter().position(|other| *other == line).filter(|turn| turn + 1 < members.len())?;
        let shared = &is_shared[line];
        if chart.series[line].mark != Mark::Steps {
            return Some(Stripes { is_drawn: shared.clone(), dash: Some((turn, members.len())) });
        }
        let stride = (TURN * shared.len() as f64).ceil().max(1.0) as usize;
        let is_turn = |at: usize| {
            let here: Vec<usize> =
                members.iter().copied().filter(|other| is_shared[*other].get(at) == Some(&true)).collect();
            shared[at] && here[at / stride % here.len()] == line
        };
        Some(Stripes { is_drawn: (0..shared.len()).map(is_turn).collect(), dash: None })
    };
    (0..count).map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    fn of(lines: &[[f64; 5]], mark: Mark) -> Vec<Option<Stripes>> {
        let line = |ys: &[f64; 5]| {
            let points = ys.iter().enumerate().map(|(x, y)| (x as f64, Some(*y))).collect();
            PlaneSeries { points, mark, ..PlaneSeries::default() }
        };
        let series = lines.iter().map(line).collect();
        let chart = Plane { x: Axis::linear("", ""), y: Axis::linear("", ""), series, rules: Vec::new() };
        stripes(&chart, Ranges { x: Some([0.0, 4.0]), y: Some([0.0, 100.0]) })
    }

    #[test]
    fn lines_that_coincide_for_long_take_turns_there() {
        let found = of(&[[10.0, 10.0, 10.0, 50.0, 90.0], [80.0; 5], [10.1, 10.0, 10.9, 70.0, 89.5]], Mark::Line);
        let is_drawn = vec![false, true, true, false, false];
        assert_eq!(found, [Some(Stripes { is_drawn, dash: Some((0, 2)) }), None, None], "the last lies above");
    }

    #[test]
    fn steps_coincide_where_they_are_level_and_each_has_its_turn() {
        let found = of(
            &[[0.0, 10.0, 40.0, 40.0, 40.0], [0.0, 20.0, 40.0, 40.0, 40.0], [0.0, 90.0, 40.0, 40.0, 90.0]],
            Mark::Steps,
        );
        let drawn = |turns: [bool; 5]| Some(Stripes { is_drawn: turns.to_vec(), dash: None });
        let turns = [[false, false, false, true, true], [false; 5]];
        assert_eq!(found, [drawn(turns[0]), drawn(turns[1]), None]);
    }

    #[test]
    fn lines_that_cross_are_left_alone() {
        let found = of(&[[0.0, 25.0, 50.0, 75.0, 100.0], [100.0, 75.0, 50.0, 25.0, 0.0]], Mark::Line);
        assert_eq!(found, [None, None]);
    }
}
