//! What the axes of a figure show: one rule for the page and for pictures, so that panels which may be compared can be compared
//! by eye.

use crate::figure::{Axis, Bars, Chart, Figure, Histogram, Mark, Panel, Plane, Scale};
use serde::Serialize;

/// Nought belongs into the picture where the least number is a smaller part of the largest; elsewhere the differences do.
const NEAR: f64 = 0.4;

/// The least and the largest number along each axis of a panel; absent where there are none. Bars have their values along x.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Ranges {
    pub x: Option<[f64; 2]>,
    pub y: Option<[f64; 2]>,
}

/// One axis of a panel.
struct Along<'a> {
    axis: &'a Axis,
    /// The least and the largest number along it.
    range: Option<[f64; 2]>,
    /// Whether it ends where the numbers of its own panel do, whatever others hold.
    is_own: bool,
    /// Whether nought is shown where it is near.
    shows_nought: bool,
}

impl<'a> Along<'a> {
    fn new(axis: &'a Axis, numbers: impl Iterator<Item = f64>) -> Self {
        let is_shown = |n: &f64| n.is_finite() && (axis.scale == Scale::Linear || *n > 0.0);
        let range = numbers.filter(is_shown).map(|n| [n, n]).reduce(join);
        Self { axis, range, is_own: false, shows_nought: false }
    }
}

fn join(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// The axes of a chart, x first; a grid of cells has edges of its own.
fn axes(chart: &Chart) -> Vec<Along<'_>> {
    match chart {
        Chart::Bars(bars) => vec![of_bars(bars)],
        Chart::Plane(plane) => of_plane(plane),
        Chart::Histogram(histogram) => of_histogram(histogram),
        Chart::HeatMap(_) => Vec::new(),
    }
}

fn of_bars(bars: &Bars) -> Along<'_> {
    let stacks = (0..bars.categories.len()).filter(|_| bars.stacked).map(|at| {
        let interval = bars.intervals.get(at).copied().flatten().unwrap_or(0.0);
        bars.series.iter().filter_map(|series| *series.values.get(at)?).sum::<f64>() + interval
    });
    let single = bars.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let rules = bars.rules.iter().map(|rule| rule.value);
    Along::new(&bars.value, [0.0].into_iter().chain(stacks).chain(single).chain(rules))
}

fn of_plane(plane: &Plane) -> Vec<Along<'_>> {
    let points = plane.series.iter().flat_map(|series| {
        let ends = |(at, (x, y)): (usize, &(f64, Option<f64>))| {
            let half = series.intervals.get(at).copied().flatten().unwrap_or(0.0);
            y.map(|y| (*x, [y - half, y + half]))
        };
        series.points.iter().enumerate().filter_map(ends)
    });
    let points: Vec<(f64, [f64; 2])> = points.collect();
    let marked = |mark: Mark| !plane.series.is_empty() && plane.series.iter().all(|series| series.mark == mark);
    let mut x = Along::new(&plane.x, points.iter().map(|point| point.0));
    // A run ends where it ends: beyond that an axis would show time that never was.
    x.is_own = marked(Mark::Steps);
    x.shows_nought = marked(Mark::Points);
    let rules = plane.rules.iter().map(|rule| rule.value);
    let mut y = Along::new(&plane.y, points.iter().flat_map(|point| point.1).chain(rules));
    y.shows_nought = true;
    vec![x, y]
}

fn of_histogram(histogram: &Histogram) -> Vec<Along<'_>> {
    let edges = histogram.series.iter().flat_map(|series| series.edges.iter().copied());
    let heights = histogram.series.iter().flat_map(|series| series.values.iter().copied());
    vec![Along::new(&histogram.x, edges), Along::new(&histogram.y, heights.chain([0.0]))]
}

/// What the axes of each panel show.
pub(crate) fn of(figure: &Figure) -> Vec<Ranges> {
    let panels: Vec<(&Panel, Vec<Along<'_>>)> = figure.panels.iter().map(|panel| (panel, axes(&panel.chart))).collect();
    let same = |a: &Axis, b: &Axis| (&a.label, &a.unit) == (&b.label, &b.unit);
    let all = || panels.iter().flat_map(|(panel, axes)| axes.iter().map(move |along| (*panel, along)));
    let of_group = |panel: &Panel, along: &Along<'_>| {
        let is_shared =
            |(other, axis): &(&Panel, &Along<'_>)| other.group == panel.group && same(axis.axis, along.axis);
        let shared = || all().filter(is_shared).filter_map(|(_, axis)| axis.range).reduce(join);
        if along.is_own { along.range } else { shared() }
    };
    let is_near = |[least, most]: [f64; 2]| least > 0.0 && least < NEAR * most;
    let shown = |panel: &Panel, along: &Along<'_>| {
        let [least, most] = of_group(panel, along)?;
        // Panels of other groups differ in their range, and not in where it begins.
        let likewise = all().filter(|(_, axis)| same(axis.axis, along.axis));
        let near = likewise.filter_map(|(panel, axis)| of_group(panel, axis)).any(is_near);
        let shows_nought = along.shows_nought && along.axis.scale == Scale::Linear && near && least > 0.0;
        Some([if shows_nought { 0.0 } else { least }, most])
    };
    let ranges = |(panel, axes): &(&Panel, Vec<Along<'_>>)| Ranges {
        x: axes.first().and_then(|along| shown(panel, along)),
        y: axes.get(1).and_then(|along| shown(panel, along)),
    };
    panels.iter().map(ranges).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::PlaneSeries;

    fn panel(group: &str, mark: Mark, points: &[(f64, f64)]) -> Panel {
        let points = points.iter().map(|(x, y)| (*x, Some(*y))).collect();
        let series = vec![PlaneSeries { mark, points, ..PlaneSeries::default() }];
        let plane = Plane { x: Axis::linear("x", ""), y: Axis::linear("y", ""), series, rules: Vec::new() };
        Panel { title: String::new(), group: group.to_owned(), chart: Chart::Plane(plane) }
    }

    fn ranges(panels: Vec<Panel>) -> Vec<([f64; 2], [f64; 2])> {
        let figure = Figure { panels, ..Figure::default() };
        of(&figure).into_iter().map(|ranges| (ranges.x.unwrap(), ranges.y.unwrap())).collect()
    }

    #[test]
    fn panels_share_their_ranges_within_a_group() {
        let panels = vec![
            panel("a", Mark::Line, &[(7.0, 1.9), (28.0, 1.1)]),
            panel("a", Mark::Line, &[(8.0, 1.5)]),
            panel("b", Mark::Line, &[(7.0, 6.0), (20.0, 4.0)]),
        ];
        let [a, b] = [([7.0, 28.0], [1.1, 1.9]), ([7.0, 20.0], [4.0, 6.0])];
        assert_eq!(ranges(panels), [a, a, b]);
    }

    #[test]
    fn nought_is_shown_in_all_panels_or_in_none() {
        let low = panel("a", Mark::Line, &[(7.0, 1.9), (28.0, 1.1)]);
        let wide = panel("b", Mark::Line, &[(7.0, 8.0), (28.0, 1.5)]);
        let ys: Vec<[f64; 2]> = ranges(vec![low, wide]).into_iter().map(|range| range.1).collect();
        assert_eq!(ys, [[0.0, 1.9], [0.0, 8.0]]);
    }

    #[test]
    fn time_ends_where_each_panel_does() {
        let steps = |end| panel("", Mark::Steps, &[(0.0, 1.0), (end, 2.0)]);
        let xs: Vec<[f64; 2]> = ranges(vec![steps(15.7), steps(27.5)]).into_iter().map(|range| range.0).collect();
        assert_eq!(xs, [[0.0, 15.7], [0.0, 27.5]]);
    }

    #[test]
    fn intervals_are_within() {
        let mut with = panel("", Mark::Line, &[(1.0, 5.0), (2.0, 9.0)]);
        let Chart::Plane(plane) = &mut with.chart else { unreachable!() };
        plane.series[0].intervals = vec![Some(0.5), Some(2.0)];
        assert_eq!(ranges(vec![with])[0].1, [4.5, 11.0]);
    }
}
