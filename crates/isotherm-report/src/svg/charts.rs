//! The charts of a figure, each drawn where the picture stands.

use super::canvas::{LINE, Picture, RIGHT, WIDTH, escaped, width_of};
use super::labels::{Place, apart, flags, ridges, without};
use super::reach::{Reach, TICKS, plane, reaches, tick, title_of};
use super::signs::{Sign, colour, slot_colour};
use super::stripes::Stripes;
use crate::figure::{BarSeries, Bars, HeatMap, Histogram, Mark, Origin, Plane, PlaneSeries, Scale};
use crate::ranges::Ranges;
use crate::table::{number, with_half};

const LEFT: f64 = 64.0;
/// Height of the plane of a chart.
pub(super) const PLANE: f64 = 240.0;
const PALE: f64 = 0.4;
/// How far one of several lines that coincide is seen before it is the next one's turn.
const STRIPE: usize = 7;
/// Radius of a marker, how much wider the one below another is, and how many can be told apart in one place.
const MARKER: f64 = 3.5;
const RING: f64 = 2.0;
const RINGS_MAX: usize = 3;

pub(super) fn draw_plane(
    picture: &mut Picture,
    chart: &Plane,
    ranges: Ranges,
    height: f64,
    named: &[(&PlaneSeries, f64)],
    striped: &[Option<Stripes>],
) {
    let widest = named.iter().map(|(series, _)| width_of(&series.name)).fold(0.0, f64::max);
    let (x, y) =
        reaches(picture, [&chart.x, &chart.y], ranges, height, if named.is_empty() { 0.0 } else { widest + 16.0 });
    plane(picture, (&x, &title_of(&chart.x)), &y);
    let heights = apart(&named.iter().map(|(_, last)| y.at(*last)).collect::<Vec<_>>(), [y.to, y.from - 4.0]);
    for ((series, _), at) in named.iter().zip(heights) {
        let ink = slot_colour(series.slot);
        let place = (x.to + 8.0, at + 4.0);
        picture.add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{ink}\">{}</text>",
            place.0,
            place.1,
            escaped(&series.name)
        ));
    }
    let labels = ridges(&chart.rules, &y, &x);
    for (rule, label) in chart.rules.iter().zip(&labels) {
        let at = y.at(rule.value);
        let crossed = labels.iter().filter(|label| label.y[0] < at && at < label.y[1]).map(|label| label.x);
        for [from, to] in without([x.from, x.to], crossed.collect()) {
            picture.line((from, at), (to, at), colour("soft"));
        }
        picture.text((label.x[0], label.y[1] - 3.0), "start", "soft", &rule.label);
    }
    draw_lines(picture, chart, &x, &y, striped);
    draw_markers(picture, chart, &x, &y);
}

/// Where a point lies, unless an axis cannot show it.
fn place_of((px, py): (f64, Option<f64>), x: &Reach, y: &Reach) -> Option<(f64, f64)> {
    let is_shown = |n: f64, reach: &Reach| n.is_finite() && (reach.scale == Scale::Linear || n > 0.0);
    let py = py.filter(|py| is_shown(*py, y) && is_shown(px, x))?;
    Some((x.at(px), y.at(py)))
}

/// The way through `places` where `is_drawn` says so of a point and the one before it. It is interrupted where a place is absent.
fn way(places: &[Option<(f64, f64)>], mark: Mark, is_drawn: impl Fn(usize) -> bool) -> String {
    let mut way = String::new();
    // Where the pen is, while it is down.
    let mut pen: Option<(f64, f64)> = None;
    for (at, place) in places.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| places[before]);
        let (Some((px, py)), true) = (*place, at == 0 || before.is_none() || is_drawn(at)) else {
            pen = None;
            continue;
        };
        let steps = mark == Mark::Steps;
        // Where the way begins again, a step does so at its own height.
        let begins = before.filter(|_| pen.is_none());
        if let Some((bx, by)) = begins {
            way.push_str(&format!("M{bx:.1} {:.1}", if steps { py } else { by }));
        }
        match pen.or(begins) {
            None => way.push_str(&format!("M{px:.1} {py:.1}")),
            Some(_) if steps && begins.is_some() => way.push_str(&format!("H{px:.1}")),
            Some(_) if steps => way.push_str(&format!("V{py:.1}H{px:.1}")),
            Some(_) => way.push_str(&format!("L{px:.1} {py:.1}")),
        }
        pen = Some((px, py));
    }
    way
}

/// Lines in their order, then the stripes of those that others hide.
fn draw_lines(picture: &mut Picture, chart: &Plane, x: &Reach, y: &Reach, striped: &[Option<Stripes>]) {
    let places =
        |series: &PlaneSeries| -> Vec<_> { series.points.iter().map(|point| place_of(*point, x, y)).collect() };
    let is_pale = |series: &PlaneSeries| !series.invalid.is_empty() && series.invalid.iter().all(|pale| *pale);
    for series in chart.series.iter().filter(|series| series.mark != Mark::Points) {
        let (path, ink) = (way(&places(series), series.mark, |_| true), slot_colour(series.slot));
        let (dash, opacity) = (Sign::of_plane(series).dash, if is_pale(series) { PALE } else { 1.0 });
        picture.add(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"/>"
        ));
    }
    let striped = chart.series.iter().zip(striped).filter_map(|(series, stripes)| Some((series, stripes.as_ref()?)));
    for (series, Stripes { is_drawn, dash }) in striped {
        let path = way(&places(series), series.mark, |at| is_drawn[at]);
        let dash = dash.map(|(turn, of)| {
            format!(" stroke-dasharray=\"{STRIPE} {}\" stroke-dashoffset=\"-{}\"", STRIPE * (of - 1), STRIPE * turn)
        });
        let dash = dash.unwrap_or_default();
        let ink = slot_colour(series.slot);
        // A pale stripe is seen on paper, not on what it lies on.
        let layers = if is_pale(series) { vec![(colour("paper"), 1.0), (ink, PALE)] } else { vec![(ink, 1.0)] };
        for (ink, opacity) in layers {
            picture.add(format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\"{dash} opacity=\"{opacity}\"/>"
            ));
        }
    }
}

/// Points, of which the lower ones are rings around those that lie on them.
fn draw_markers(picture: &mut Picture, chart: &Plane, x: &Reach, y: &Reach) {
    let has_markers = |series: &&PlaneSeries| {
        let few = series.points.len() <= 24 && series.origin != Origin::Theory && series.mark != Mark::Steps;
        series.mark == Mark::Points || few
    };
    let mut markers: Vec<(&PlaneSeries, usize, (f64, f64))> = Vec::new();
    for series in chart.series.iter().filter(has_markers) {
        let places = series.points.iter().enumerate().map(|(at, point)| (at, place_of(*point, x, y)));
        markers.extend(places.filter_map(|(at, place)| Some((series, at, place?))));
    }
    for (index, (series, at, place)) in markers.iter().enumerate() {
        let ink = slot_colour(series.slot);
        let fill = if series.origin == Origin::Published { "none" } else { ink };
        let opacity = if series.invalid.get(*at) == Some(&true) { PALE } else { 1.0 };
        if let (Some(half), (px, Some(py))) = (series.intervals.get(*at).copied().flatten(), series.points[*at]) {
            picture.line((x.at(px), y.at(py - half)), (x.at(px), y.at(py + half)), ink);
        }
        let lies_on_it = |other: &&(&PlaneSeries, usize, (f64, f64))| {
            other.0.slot != series.slot && (place.0 - other.2.0).hypot(place.1 - other.2.1) < RING
        };
        let rings = markers[index + 1..].iter().filter(lies_on_it).count().min(RINGS_MAX);
        picture.add(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\" fill=\"{fill}\" stroke=\"{ink}\" opacity=\"{opacity}\"/>",
            place.0,
            place.1,
            MARKER + RING * rings as f64
        ));
    }
}

pub(super) fn draw_histogram(picture: &mut Picture, chart: &Histogram, ranges: Ranges, height: f64) {
    let (x, y) = reaches(picture, [&chart.x, &chart.y], ranges, height, 0.0);
    plane(picture, (&x, &title_of(&chart.x)), &y);
    let bottom = y.from;
    for series in &chart.series {
        let Some(first) = series.edges.first() else { continue };
        let mut path = format!("M{:.1} {bottom:.1}", x.at(*first));
        for (height, end) in series.values.iter().zip(&series.edges[1..]) {
            path.push_str(&format!("V{:.1}H{:.1}", y.at(*height), x.at(*end)));
        }
        let ink = slot_colour(series.slot);
        let opacity = if series.invalid { PALE } else { 1.0 };
        let dash = Sign::of_outlines(series.slot).dash;
        picture.add(format_args!(
            "<path d=\"{path}V{bottom:.1}\" fill=\"{ink}\" fill-opacity=\"0.08\" stroke=\"{ink}\" stroke-width=\"1.75\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"/>"
        ));
    }
}

/// Bars lie level under their names.
pub(super) fn draw_bars(picture: &mut Picture, chart: &Bars, ranges: Ranges) {
    const BAR: f64 = 14.0;
    /// Between a group of bars and the name of the next.
    const GAP: f64 = 6.0;
    // A series without a number at a category takes no room there.
    let is_there = |series: &BarSeries, at: usize| series.values.get(at).copied().flatten().is_some();
    let in_group = |at: usize| {
        if chart.stacked { 1 } else { chart.series.iter().filter(|series| is_there(series, at)).count() }
    };
    let sum = |at: usize| chart.series.iter().filter_map(|series| *series.values.get(at)?).sum::<f64>();
    let half = |at: usize| chart.intervals.get(at).copied().flatten();
    let told = |at: usize| with_half(sum(at), half(at));
    // The numbers at the ends of the bars stand within the picture.
    let widest =
        (0..chart.categories.len()).filter(|_| chart.stacked).map(|at| width_of(&told(at))).fold(0.0, f64::max);
    let x = Reach::new(&chart.value, ranges.x, 16.0, WIDTH - f64::max(80.0, widest + 12.0));
    // Labels of rules stand above the bars, on as many lines as they take.
    let highest = flags(&chart.rules, &x, 0.0).into_iter().map(|label| label.y[0]).fold(-12.0, f64::min);
    let top = picture.y - highest;
    let labels = flags(&chart.rules, &x, top);
    let mut texts: Vec<Place> = labels.clone();
    let height: f64 = (0..chart.categories.len()).map(|at| LINE + BAR * in_group(at) as f64 + GAP).sum();
    for at in x.ticks(TICKS[0]) {
        picture.line((x.at(at), top), (x.at(at), top + height), colour("line"));
        picture.text((x.at(at), top + height + 15.0), "middle", "soft", &tick(at));
    }
    let mut y = top;
    for (at, category) in chart.categories.iter().enumerate() {
        picture.text((x.from, y + 13.0), "start", "ink", category);
        // Between bars a line that begins again for a moment would look as if it went through the name.
        let name = Place::of(x.from, y + 13.0, category);
        texts.push(Place { y: [y - GAP, y + LINE], ..name });
        y += LINE;
        let mut from = 0.0;
        for series in &chart.series {
            let value = series.values.get(at).copied().flatten();
            let start = if chart.stacked { from } else { 0.0 };
            if let Some(value) = value {
                let opacity = if series.invalid.get(at) == Some(&true) { PALE } else { 1.0 };
                let Sign { fill, frame, dash, .. } = Sign::of_bars(series.slot, series.origin);
                let more = format!("stroke=\"{frame}\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"");
                let size = (x.at(start + value) - x.at(start), BAR - 2.0);
                picture.rect((x.at(start), y), size, fill, &more);
                from = start + value;
                if !chart.stacked {
                    picture.text((x.at(value) + 4.0, y + 10.0), "start", "soft", &number(value));
                    texts.push(Place::of(x.at(value) + 4.0, y + 10.0, &number(value)));
                }
            }
            y += if chart.stacked || value.is_none() { 0.0 } else { BAR };
        }
        if chart.stacked {
            if let Some(half) = half(at) {
                let (low, high, middle) = (x.at(from - half), x.at(from + half), y + BAR / 2.0 - 1.0);
                let path = format!("M{low:.1} {middle:.1}H{high:.1}");
                let ends = [low, high].map(|end| format!("M{end:.1} {:.1}v8", middle - 4.0)).concat();
                // In the colour of the paper around, so that it can be seen on the bar.
                for (ink, width) in [("paper", 3.5), ("ink", 1.25)] {
                    let ink = colour(ink);
                    picture.add(format_args!("<path d=\"{path}{ends}\" stroke=\"{ink}\" stroke-width=\"{width}\"/>"));
                }
            }
            let end = x.at(from + half(at).unwrap_or(0.0)) + 4.0;
            picture.text((end, y + 10.0), "start", "ink", &told(at));
            texts.push(Place::of(end, y + 10.0, &told(at)));
            y += BAR;
        }
        y += GAP;
    }
    for (rule, label) in chart.rules.iter().zip(&labels) {
        let at = x.at(rule.value);
        // The line leaves out what is written across it.
        let crossed = texts.iter().filter(|text| text.x[0] < at && at < text.x[1]).map(|text| text.y);
        for [from, to] in without([label.y[0], top + height], crossed.collect()) {
            picture.line((at, from), (at, to), colour("soft"));
        }
        picture.text((label.x[0], label.y[1] - 3.0), "start", "soft", &rule.label);
    }
    picture.y = picture.name((x.from + x.to) / 2.0, top + height + 34.0, &title_of(&chart.value)) + 10.0;
}

pub(super) fn draw_heat_map(picture: &mut Picture, chart: &HeatMap) {
    let (top, bottom) = (picture.y + 8.0, picture.y + 8.0 + PLANE);
    let columns = chart.rows.first().map_or(0, Vec::len);
    let ends = |(start, step): (f64, f64), count: usize| Some([start, start + step * count as f64]);
    let x = Reach::new(&chart.x, ends(chart.x_start_step, columns), LEFT, WIDTH - RIGHT);
    let y = Reach::new(&chart.y, ends(chart.y_start_step, chart.rows.len()), bottom, top);
    plane(picture, (&x, &title_of(&chart.x)), &y);
    let most = chart.rows.iter().flatten().copied().max().unwrap_or(1).max(2) as f64;
    let size = ((x.to - x.from) / columns.max(1) as f64, (y.from - y.to) / chart.rows.len().max(1) as f64);
    for (row, cells) in chart.rows.iter().enumerate() {
        for (column, count) in cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            let place = (x.from + size.0 * column as f64, y.from - size.1 * (row + 1) as f64);
            let opacity = 0.12 + 0.88 * (*count as f64).ln() / most.ln();
            picture.rect(place, size, colour("heat3"), &format!("fill-opacity=\"{opacity:.2}\""));
        }
    }
}
