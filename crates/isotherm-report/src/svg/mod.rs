//! A figure as a picture that stands alone: SVG for a README, a paper, a slide.
//!
//! Colours and type are those of the page ([`crate::html`]), dark ones included: a picture carries the first rules of its style sheet.
//! Panels stand below each other. A panel that a still picture does not show (a heat map) is left out.

mod bars;
mod canvas;
mod plane;

use crate::figure::{Chart, Figure, Histogram, Mark, Panel, Plane, PlaneSeries};
use canvas::{Canvas, Entry, FONT, WIDTH};

/// The colours of the page: its style sheet up to the first rule about an element.
fn colours() -> &'static str {
    let style = include_str!("../assets/page.css");
    style.split_once("\n* {").map_or(style, |(colours, _)| colours)
}

/// `figure` as the text of one SVG file; `None` if no panel of it can be drawn.
pub fn render(figure: &Figure) -> Option<String> {
    let mut canvas = Canvas::default();
    canvas.line(&figure.title, FONT + 2.0, "title");
    let drawn = figure.panels.iter().filter(|panel| draw(&mut canvas, panel)).count();
    (drawn > 0).then(|| canvas.finish(colours(), &figure.title))
}

/// Draws a panel; false if a still picture does not show it.
fn draw(canvas: &mut Canvas, panel: &Panel) -> bool {
    let outlines;
    let plane = match &panel.chart {
        Chart::HeatMap(_) => return false,
        Chart::Bars(_) => None,
        Chart::Plane(plane) => Some(plane),
        Chart::Histogram(histogram) => {
            outlines = as_steps(histogram);
            Some(&outlines)
        }
    };
    if !panel.title.is_empty() {
        canvas.line(&panel.title, FONT, "panel");
    }
    match (&panel.chart, plane) {
        (Chart::Bars(bars), _) => {
            let named = |s: &crate::figure::BarSeries| Entry { name: s.name.clone(), slot: s.slot, origin: s.origin };
            canvas.legend(&bars.series.iter().map(named).collect::<Vec<_>>());
            bars::draw(canvas, bars);
        }
        (_, Some(plane)) => {
            let named = |s: &PlaneSeries| Entry { name: s.name.clone(), slot: s.slot, origin: s.origin };
            canvas.legend(&plane.series.iter().map(named).collect::<Vec<_>>());
            plane::draw(canvas, plane, WIDTH);
        }
        _ => {}
    }
    true
}

/// Distributions as steps over their intervals.
fn as_steps(histogram: &Histogram) -> Plane {
    let steps = |series: &crate::figure::HistogramSeries| {
        let mut points = vec![(series.edges.first().copied().unwrap_or(0.0), Some(0.0))];
        points.extend(series.edges.iter().skip(1).copied().zip(series.values.iter().map(|value| Some(*value))));
        let (name, slot) = (series.name.clone(), series.slot);
        PlaneSeries { name, slot, mark: Mark::Steps, points, ..PlaneSeries::default() }
    };
    let series = histogram.series.iter().map(steps).collect();
    Plane { x: histogram.x.clone(), y: histogram.y.clone(), series, rules: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, BarSeries, Bars, HeatMap, HistogramSeries, Origin, Rule};

    fn figure(chart: Chart) -> Figure {
        Figure { title: "A & B".into(), panels: vec![Panel { title: "p".into(), chart }], ..Figure::default() }
    }

    fn bars(values: [Option<f64>; 2]) -> Chart {
        let series = vec![
            BarSeries { name: "ours <1>".into(), values: values.to_vec(), ..BarSeries::default() },
            BarSeries { name: "theirs".into(), origin: Origin::Published, values: vec![None, Some(2.0)], slot: 1 },
        ];
        let rules = vec![Rule { label: "none".into(), value: 1.0 }];
        Chart::Bars(Bars { categories: vec!["x".into(), "y".into()], series, rules, ..Bars::default() })
    }

    /// Width of every bar, in their order.
    fn widths(svg: &str) -> Vec<f64> {
        let rects = svg.split("<rect class=\"bar").skip(1);
        let width = |rect: &str| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        rects.map(|rect| width(rect).unwrap()).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_numbers_and_missing_ones_are_gaps() {
        let svg = render(&figure(bars([Some(1.0), Some(4.0)]))).unwrap();
        let found = widths(&svg);
        assert_eq!(found.len(), 3);
        assert!((found[1] / found[0] - 4.0).abs() < 0.01 && (found[2] / found[0] - 2.0).abs() < 0.01, "{found:?}");
        assert_eq!(widths(&render(&figure(bars([None, Some(4.0)]))).unwrap()).len(), 2);
        assert!(
            svg.contains("A &amp; B") && svg.contains("ours &lt;1&gt;") && svg.contains("prefers-color-scheme: dark")
        );
    }

    #[test]
    fn lines_are_interrupted_where_a_number_is_missing() {
        let points = vec![(1.0, Some(1.0)), (2.0, Some(2.0)), (3.0, None), (4.0, Some(1.0)), (5.0, Some(3.0))];
        let series = vec![PlaneSeries { name: "a".into(), points, ..PlaneSeries::default() }];
        let svg = render(&figure(Chart::Plane(Plane { series, ..Plane::default() }))).unwrap();
        assert_eq!(svg.matches("<path class=\"line\"").count(), 1);
        let path = svg.split("<path class=\"line\"").nth(1).unwrap();
        assert_eq!(path.split("/>").next().unwrap().matches('M').count(), 2, "{path}");
    }

    #[test]
    fn logarithmic_axes_leave_out_what_they_cannot_show() {
        let points = vec![(0.0, Some(1.0)), (1.0, Some(0.0)), (10.0, Some(10.0)), (100.0, Some(100.0))];
        let series = vec![PlaneSeries { mark: Mark::Points, points, ..PlaneSeries::default() }];
        let (x, y) = (Axis::logarithmic("x", ""), Axis::logarithmic("y", "s"));
        let svg = render(&figure(Chart::Plane(Plane { x, y, series, rules: vec![] }))).unwrap();
        assert_eq!(svg.matches("<circle class=\"point").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn distributions_are_steps_and_a_heat_map_is_no_still_picture() {
        let series = vec![HistogramSeries { edges: vec![0.0, 1.0, 2.0], values: vec![3.0, 1.0], ..Default::default() }];
        let svg = render(&figure(Chart::Histogram(Histogram { series, ..Histogram::default() }))).unwrap();
        assert!(svg.contains("<path class=\"line\""));
        assert_eq!(render(&figure(Chart::HeatMap(HeatMap::default()))), None);
    }
}
