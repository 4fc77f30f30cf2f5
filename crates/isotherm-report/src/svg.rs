//! Figures as SVG files, for papers and pages of one's own: the same descriptions that the report's script draws, still and on
//! white. Colours are those of the report's style sheet.

mod labels;

use self::labels::{Place, apart, flags, ridges, without};
use crate::figure::{
    Axis, BarSeries, Bars, Chart, Figure, HeatMap, Histogram, Mark, Origin, Panel, Plane, PlaneSeries, Scale,
};
use crate::ranges::{self, Ranges};
use crate::table::{number, with_half};
use std::fmt::Write as _;

/// Where the colours are named.
const STYLE: &str = include_str!("assets/page.css");
const COLOURS: usize = 8;
/// So narrow that the letters can still be read on a telephone.
const WIDTH: f64 = 640.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
/// Height of the plane of a chart.
const PLANE: f64 = 240.0;
/// The same where panels stand beside each other.
const SMALL_PLANE: f64 = 130.0;
/// Distributions in one plane that can be told apart by eye.
const OUTLINES_MAX: usize = 3;
/// Lines that have their names at their ends.
const NAMED_MAX: usize = 8;
/// Room that a number takes at a level axis and at an upright one.
const TICKS: [f64; 2] = [46.0, 26.0];
/// Height of a line of text.
const LINE: f64 = 18.0;
/// About how wide a letter is.
const LETTER: f64 = 6.6;
const PALE: f64 = 0.4;
const DASHES: [&str; 3] = ["none", "6 3", "2 2"];

/// The light colour that the style sheet calls `name`.
fn colour(name: &str) -> &'static str {
    let start = STYLE.find(&format!("--{name}: ")).map(|at| at + name.len() + 4).expect("the style sheet names it");
    STYLE[start..].split(';').next().unwrap_or_default()
}

fn slot_colour(slot: usize) -> &'static str {
    colour(&format!("s{}", slot % COLOURS))
}

/// What stands for a series in the legend.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    Box,
    Line,
    Point,
}

/// How a series is drawn, in the picture and in the legend beside its name.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Sign {
    shape: Shape,
    fill: &'static str,
    frame: &'static str,
    dash: &'static str,
}

impl Sign {
    /// Bars: those of a second round of colours have a frame, published ones nothing else.
    fn of_bars(slot: usize, origin: Origin) -> Self {
        let ink = slot_colour(slot);
        if origin == Origin::Published {
            return Self { shape: Shape::Box, fill: "none", frame: ink, dash: "4 2" };
        }
        Self { shape: Shape::Box, fill: ink, frame: if slot >= COLOURS { colour("ink") } else { ink }, dash: "none" }
    }

    /// Lines: those of a second round are dashed.
    fn of_outlines(slot: usize) -> Self {
        let ink = slot_colour(slot);
        Self { shape: Shape::Line, fill: "none", frame: ink, dash: DASHES[slot / COLOURS % DASHES.len()] }
    }

    /// Lines and points: published ones are hollow.
    fn of_plane(series: &PlaneSeries) -> Self {
        let sign = Self::of_outlines(series.slot);
        match (series.origin, series.mark) {
            (Origin::Theory, _) => Self { dash: "2 2", ..sign },
            (Origin::Published, _) => Self { shape: Shape::Point, dash: "none", ..sign },
            (_, Mark::Points) => Self { shape: Shape::Point, fill: sign.frame, dash: "none", ..sign },
            _ => sign,
        }
    }

    /// Of what comes from runs that are not valid.
    fn pale() -> Self {
        Self { shape: Shape::Box, fill: colour("line"), frame: colour("line"), dash: "none" }
    }
}

/// A name in a legend and what stands for it.
type Entry = (String, Sign);

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// About how wide a text is.
fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// A picture that grows downwards.
struct Picture {
    body: String,
    /// Where the next thing begins.
    y: f64,
    /// Between what things lie: the picture's edges, or those of one of several columns.
    left: f64,
    right: f64,
}

impl Picture {
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("writing to a string cannot fail");
        self.body.push('\n');
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, ink: &str, text: &str) {
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
            colour(ink),
            escaped(text)
        ));
    }

    /// A text over as many lines as it takes.
    fn paragraph(&mut self, ink: &str, text: &str) {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if self.left + 8.0 + width_of(line) + width_of(word) + LETTER <= self.right - RIGHT => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        for line in lines {
            self.text((self.left + 8.0, self.y + 13.0), "start", ink, &line);
            self.y += LINE;
        }
    }

    /// A text around `x`, or as near as it stays between the edges.
    fn middle(&mut self, x: f64, y: f64, text: &str) {
        let half = width_of(text) / 2.0;
        let x = x.min(self.right - 2.0 - half).max(self.left + 2.0 + half);
        self.text((x, y), "middle", "soft", text);
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        self.add(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, more: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\" {more}/>"
        ));
    }

    /// Names beside their signs, over as many lines as they take.
    fn legend(&mut self, keys: &[Entry]) {
        let start = self.left + 8.0;
        let mut x = start;
        for (name, sign) in keys {
            let width = 22.0 + width_of(name);
            if x > start && x + width > self.right - RIGHT {
                (x, self.y) = (start, self.y + LINE);
            }
            let Sign { shape, fill, frame, dash } = *sign;
            let middle = self.y + 9.0;
            match shape {
                Shape::Box => {
                    let more = format!("stroke=\"{frame}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"");
                    self.rect((x, middle - 5.0), (10.0, 10.0), fill, &more);
                }
                Shape::Line => self.add(format_args!(
                    "<path d=\"M{:.1} {middle:.1}h14\" stroke=\"{frame}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
                    x - 2.0
                )),
                Shape::Point => self.add(format_args!(
                    "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{frame}\"/>",
                    x + 5.0
                )),
            }
            self.text((x + 16.0, self.y + 13.0), "start", "ink", name);
            x += width + 12.0;
        }
        self.y += LINE + 6.0;
    }
}

/// An axis: what it shows, and where that lies.
struct Reach {
    scale: Scale,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Reach {
    fn new(axis: &Axis, range: Option<[f64; 2]>, from: f64, to: f64) -> Self {
        let [least, mut most] = range.unwrap_or([1.0, 2.0]);
        if least == most {
            most = if axis.scale == Scale::Logarithmic { least * 10.0 } else { least + 1.0 };
        }
        Self { scale: axis.scale, least, most, from, to }
    }

    fn at(&self, number: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (number - self.least) / (self.most - self.least),
            Scale::Logarithmic => (number / self.least).ln() / (self.most / self.least).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round numbers along it, each with at least `room`, up to six.
    fn ticks(&self, room: f64) -> Vec<f64> {
        let most = ((self.to - self.from).abs() / room).clamp(2.0, 6.0);
        if self.scale == Scale::Logarithmic {
            let (low, high) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
            let within = |steps: &[f64]| -> Vec<f64> {
                let all = (low..=high).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
                all.filter(|tick| self.least <= *tick * (1.0 + 1e-9) && *tick <= self.most * (1.0 + 1e-9)).collect()
            };
            let fine = within(&[1.0, 2.0, 5.0]);
            return if fine.len() as f64 <= most { fine } else { within(&[1.0]) };
        }
        let power = 10f64.powf(((self.most - self.least) / most).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
        let step = steps.into_iter().find(|step| (self.most - self.least) / step <= most).unwrap_or(20.0 * power);
        let (first, last) = ((self.least / step).ceil() as i64, (self.most / step + 1e-9).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A round number, without the digits that it does not have.
fn tick(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, " G"),
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = number(value);
    let text = if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text + unit
}

fn title_of(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// The frame of a plane: axes, the name of x, round numbers.
fn plane(picture: &mut Picture, (x, x_name): (&Reach, &str), y: &Reach) {
    for at in y.ticks(TICKS[1]) {
        picture.line((x.from, y.at(at)), (x.to, y.at(at)), colour("line"));
        picture.text((x.from - 6.0, y.at(at) + 4.0), "end", "soft", &tick(at));
    }
    for at in x.ticks(TICKS[0]) {
        picture.line((x.at(at), y.from), (x.at(at), y.from + 4.0), colour("soft"));
        picture.middle(x.at(at), y.from + 17.0, &tick(at));
    }
    picture.line((x.from, y.from), (x.to, y.from), colour("soft"));
    picture.middle((x.from + x.to) / 2.0, y.from + 34.0, x_name);
    picture.y = y.from + 42.0;
}

/// Where x and y of a plane lie that begins at the height where the picture is, with so much room for names at its right.
fn reaches(picture: &Picture, axes: [&Axis; 2], ranges: Ranges, height: f64, names: f64) -> (Reach, Reach) {
    let top = picture.y + 8.0;
    let y = Reach::new(axes[1], ranges.y, top + height, top);
    let widest = y.ticks(TICKS[1]).into_iter().map(|at| width_of(&tick(at))).fold(0.0, f64::max);
    let x = Reach::new(axes[0], ranges.x, picture.left + 8.0 + widest + 6.0, picture.right - f64::max(RIGHT, names));
    (x, y)
}

/// The lines that have their names at their ends instead of in the legend, and where each ends.
fn named(chart: &Plane) -> Vec<(&PlaneSeries, f64)> {
    let is_line = |series: &&PlaneSeries| series.mark != Mark::Points && series.origin != Origin::Theory;
    let last = |series: &PlaneSeries| series.points.iter().rev().find_map(|(_, y)| *y);
    let lines: Vec<_> = chart.series.iter().filter(is_line).filter_map(|s| Some((s, last(s)?))).collect();
    if chart.series.len() > 1 && lines.len() <= NAMED_MAX { lines } else { Vec::new() }
}

fn draw_plane(picture: &mut Picture, chart: &Plane, ranges: Ranges, height: f64, named: &[(&PlaneSeries, f64)]) {
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
    for series in &chart.series {
        let ink = slot_colour(series.slot);
        let is_shown = |n: f64, reach: &Reach| n.is_finite() && (reach.scale == Scale::Linear || n > 0.0);
        let pale = !series.invalid.is_empty() && series.invalid.iter().all(|pale| *pale);
        // A line is interrupted where a number is absent.
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for (px, py) in &series.points {
            let Some(py) = py.filter(|py| is_shown(*py, &y) && is_shown(*px, &x)) else {
                before = None;
                continue;
            };
            let (px, py) = (x.at(*px), y.at(py));
            match before {
                None => path.push_str(&format!("M{px:.1} {py:.1}")),
                Some(_) if series.mark == Mark::Steps => path.push_str(&format!("V{py:.1}H{px:.1}")),
                Some(_) => path.push_str(&format!("L{px:.1} {py:.1}")),
            }
            before = Some(py);
        }
        let dash = if series.origin == Origin::Theory { "2 2" } else { DASHES[series.slot / COLOURS % DASHES.len()] };
        if series.mark != Mark::Points {
            let opacity = if pale { PALE } else { 1.0 };
            picture.add(format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"/>"
            ));
        }
        let few = series.points.len() <= 24 && series.origin != Origin::Theory && series.mark != Mark::Steps;
        if series.mark == Mark::Points || few {
            let fill = if series.origin == Origin::Published { "none" } else { ink };
            for (at, (px, py)) in series.points.iter().enumerate() {
                let Some(py) = py.filter(|py| is_shown(*py, &y) && is_shown(*px, &x)) else { continue };
                let opacity = if series.invalid.get(at) == Some(&true) { PALE } else { 1.0 };
                if let Some(half) = series.intervals.get(at).copied().flatten() {
                    picture.line((x.at(*px), y.at(py - half)), (x.at(*px), y.at(py + half)), ink);
                }
                picture.add(format_args!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{ink}\" opacity=\"{opacity}\"/>",
                    x.at(*px),
                    y.at(py)
                ));
            }
        }
    }
}

fn draw_histogram(picture: &mut Picture, chart: &Histogram, ranges: Ranges, height: f64) {
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
        let dash = DASHES[series.slot / COLOURS % DASHES.len()];
        picture.add(format_args!(
            "<path d=\"{path}V{bottom:.1}\" fill=\"{ink}\" fill-opacity=\"0.08\" stroke=\"{ink}\" stroke-width=\"1.75\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"/>"
        ));
    }
}

/// Bars lie level under their names.
fn draw_bars(picture: &mut Picture, chart: &Bars, ranges: Ranges) {
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
    picture.text(((x.from + x.to) / 2.0, top + height + 34.0), "middle", "soft", &title_of(&chart.value));
    picture.y = top + height + 44.0;
}

fn draw_heat_map(picture: &mut Picture, chart: &HeatMap) {
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

/// What the legend says of a chart: the names of its series, but those that stand in the chart.
fn keys(chart: &Chart, named: &[(&PlaneSeries, f64)]) -> Vec<Entry> {
    let is_named = |series: &PlaneSeries| named.iter().any(|(other, _)| other.name == series.name);
    match chart {
        Chart::Bars(chart) => chart.series.iter().map(|s| (s.name.clone(), Sign::of_bars(s.slot, s.origin))).collect(),
        Chart::Plane(chart) => {
            let others = chart.series.iter().filter(|series| !is_named(series));
            others.map(|series| (series.name.clone(), Sign::of_plane(series))).collect()
        }
        Chart::Histogram(chart) => chart.series.iter().map(|s| (s.name.clone(), Sign::of_outlines(s.slot))).collect(),
        Chart::HeatMap(_) => Vec::new(),
    }
}

/// Whether anything in a chart is pale.
fn has_pale(chart: &Chart) -> bool {
    match chart {
        Chart::Bars(chart) => chart.series.iter().any(|series| series.invalid.contains(&true)),
        Chart::Plane(chart) => chart.series.iter().any(|series| series.invalid.contains(&true)),
        Chart::Histogram(chart) => chart.series.iter().any(|series| series.invalid),
        Chart::HeatMap(_) => false,
    }
}

/// The panels of a figure, those with more distributions than can be told apart as one panel for each.
fn spread(figure: &Figure) -> Figure {
    let mut panels = Vec::new();
    for panel in &figure.panels {
        match &panel.chart {
            Chart::Histogram(chart) if chart.series.len() > OUTLINES_MAX => {
                panels.extend(chart.series.iter().map(|series| {
                    let parts = [panel.title.as_str(), series.name.as_str()];
                    let title = parts.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ");
                    let chart = Histogram { series: vec![series.clone()], ..chart.clone() };
                    Panel { title, group: panel.group.clone(), chart: Chart::Histogram(chart) }
                }));
            }
            _ => panels.push(panel.clone()),
        }
    }
    Figure { panels, ..figure.clone() }
}

/// What stands above a chart: its panel's title, its own legend, and where y is upright, what y is.
fn head(picture: &mut Picture, panel: &Panel, legend: &[Entry]) {
    if !panel.title.is_empty() {
        picture.paragraph("ink", &panel.title);
    }
    if !legend.is_empty() {
        picture.legend(legend);
    }
    let y = match &panel.chart {
        Chart::Bars(_) => return,
        Chart::Plane(chart) => &chart.y,
        Chart::Histogram(chart) => &chart.y,
        Chart::HeatMap(chart) => &chart.y,
    };
    picture.paragraph("soft", &title_of(y));
}

/// A figure as the text of one SVG file: its panels one above the other, those with two axes in two columns.
pub fn svg(figure: &Figure) -> String {
    let figure = &spread(figure);
    let mut picture = Picture { body: String::new(), y: 11.0, left: 0.0, right: WIDTH };
    picture.paragraph("ink", &figure.title);
    picture.y += 7.0;
    let are_small = figure.panels.len() > 1
        && figure.panels.iter().all(|panel| matches!(panel.chart, Chart::Plane(_) | Chart::Histogram(_)));
    let names: Vec<_> = match figure.panels.as_slice() {
        [Panel { chart: Chart::Plane(chart), .. }] => named(chart),
        _ => Vec::new(),
    };
    let legends: Vec<Vec<Entry>> = figure.panels.iter().map(|panel| keys(&panel.chart, &names)).collect();
    // One legend for all panels, unless one sign stands for several series.
    let mut legend: Vec<Entry> = Vec::new();
    for key in legends.iter().flatten() {
        if !legend.contains(key) {
            legend.push(key.clone());
        }
    }
    let is_clear = legend.iter().enumerate().all(|(at, key)| legend[..at].iter().all(|other| other.1 != key.1));
    if !is_clear || legend.len() == 1 && names.is_empty() {
        legend.clear();
    }
    if figure.panels.iter().any(|panel| has_pale(&panel.chart)) {
        legend.push(("pale: a run that is not valid".to_owned(), Sign::pale()));
    }
    if !legend.is_empty() {
        picture.legend(&legend);
    }
    // What changes over time needs width.
    let is_long = figure.panels.len() <= 2
        && figure.panels.iter().any(
            |panel| matches!(&panel.chart, Chart::Plane(chart) if chart.series.iter().any(|s| s.mark == Mark::Steps)),
        );
    let columns = if are_small && !is_long { 2 } else { 1 };
    let ranges = ranges::of(figure);
    let panels: Vec<(&Panel, Ranges, &[Entry])> = figure
        .panels
        .iter()
        .zip(ranges)
        .zip(&legends)
        .map(|((panel, ranges), legend)| (panel, ranges, if is_clear { &[][..] } else { legend.as_slice() }))
        .collect();
    for row in panels.chunks(columns) {
        let top = picture.y;
        let place = |picture: &mut Picture, column: usize| {
            picture.left = WIDTH / columns as f64 * column as f64;
            picture.right = picture.left + WIDTH / columns as f64;
        };
        // Charts of a row begin at one height, whatever stands above them.
        let mut begin = top;
        for (column, (panel, _, legend)) in row.iter().enumerate() {
            place(&mut picture, column);
            picture.y = top;
            head(&mut picture, panel, legend);
            begin = begin.max(picture.y);
        }
        let mut end = begin;
        let height = if are_small { SMALL_PLANE } else { PLANE };
        for (column, (panel, ranges, _)) in row.iter().enumerate() {
            place(&mut picture, column);
            picture.y = begin;
            match &panel.chart {
                Chart::Bars(chart) => draw_bars(&mut picture, chart, *ranges),
                Chart::Plane(chart) => draw_plane(&mut picture, chart, *ranges, height, &names),
                Chart::Histogram(chart) => draw_histogram(&mut picture, chart, *ranges, height),
                Chart::HeatMap(chart) => draw_heat_map(&mut picture, chart),
            }
            end = end.max(picture.y);
        }
        picture.y = end + 12.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{}</svg>\n",
        picture.y,
        colour("paper"),
        picture.body
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{HistogramSeries, Rule};

    #[test]
    fn gaps_are_gaps_and_what_is_not_valid_is_pale() {
        let points = vec![(1.0, Some(2.0)), (2.0, Some(3.0)), (3.0, None), (4.0, Some(1.0)), (5.0, Some(2.0))];
        let series = PlaneSeries { name: "a <b>".into(), points, invalid: vec![true; 5], ..PlaneSeries::default() };
        let (x, y) = (Axis::linear("x", ""), Axis::linear("y", "%"));
        let other = PlaneSeries { name: "c".into(), slot: 9, points: vec![(1.0, Some(1.0))], ..PlaneSeries::default() };
        let chart = Chart::Plane(Plane { x, y, series: vec![series, other], rules: Vec::new() });
        let panels = vec![Panel::new("", chart)];
        let text = svg(&Figure { title: "T & U".into(), caption: String::new(), panels });
        let path = text.lines().find(|line| line.starts_with("<path")).unwrap();
        assert_eq!(path.matches('M').count(), 2, "the line begins again behind the gap: {path}");
        assert!(path.contains("opacity=\"0.4\"") && path.contains(colour("s0")), "{path}");
        assert!(text.contains("T &amp; U") && text.contains("a &lt;b&gt;"));
    }

    #[test]
    fn the_legend_shows_bars_as_they_are_drawn() {
        let series = |name: &str, slot, origin| BarSeries {
            name: name.into(),
            slot,
            origin,
            values: vec![Some(1.0)],
            ..BarSeries::default()
        };
        let (own, published) = (Origin::default(), Origin::Published);
        let series = vec![series("a", 0, own), series("of a second round", COLOURS, own), series("b", 1, published)];
        let signs: Vec<Sign> = series.iter().map(|series| Sign::of_bars(series.slot, series.origin)).collect();
        let bars = Bars { categories: vec!["all".into()], value: Axis::linear("x", ""), series, ..Bars::default() };
        let panels = vec![Panel::new("", Chart::Bars(bars))];
        let text = svg(&Figure { title: String::new(), caption: String::new(), panels });
        for Sign { fill, frame, dash, .. } in signs {
            let is_drawn = |line: &&str| {
                line.starts_with("<rect")
                    && [("fill", fill), ("stroke", frame), ("stroke-dasharray", dash)]
                        .iter()
                        .all(|(key, value)| line.contains(&format!("{key}=\"{value}\"")))
            };
            assert_eq!(text.lines().filter(is_drawn).count(), 2, "{fill}, {frame}, {dash}: {text}");
        }
    }

    fn rules(values: &[f64]) -> Vec<Rule> {
        values.iter().map(|value| Rule { label: "winXP_55GB (published)".into(), value: *value }).collect()
    }

    #[test]
    fn the_line_of_a_rule_crosses_no_text() {
        let bars = Bars {
            categories: vec!["a name that reaches far across the picture".into(), "short".into()],
            value: Axis::linear("x", ""),
            series: vec![BarSeries { values: vec![Some(10.0), Some(0.9)], ..Default::default() }],
            rules: rules(&[1.0]),
            ..Bars::default()
        };
        let panels = vec![Panel::new("", Chart::Bars(bars))];
        let text = svg(&Figure { title: String::new(), caption: String::new(), panels });
        let number = |line: &str, key: &str| -> f64 {
            line.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let drawn = |tag: &'static str| text.lines().filter(move |line| line.starts_with(tag));
        let soft = colour("soft");
        let pieces: Vec<(f64, [f64; 2])> = drawn("<line")
            .filter(|line| line.contains(soft) && line.contains("stroke=") && number(line, "x1") == number(line, "x2"))
            .map(|line| (number(line, "x1"), [number(line, "y1"), number(line, "y2")]))
            .collect();
        assert_eq!(pieces.len(), 3, "above the name, across its bar, below the number: {text}");
        for line in drawn("<text").filter(|line| line.contains("\"start\"")) {
            let written = line.split('>').nth(1).unwrap().split('<').next().unwrap();
            let place = Place::of(number(line, "x"), number(line, "y"), written);
            let crosses = |(x, y): &(f64, [f64; 2])| place.meets(&Place { x: [*x, *x], y: *y });
            assert!(!pieces.iter().any(crosses), "a line crosses {written:?}");
            // Between the bar before and the name that it would cross, a line does not begin again.
            let (y, is_long) = (number(line, "y"), written.starts_with("a name"));
            let begins = |piece: &(f64, [f64; 2])| piece.1[0] < y + 4.0 && y - 18.0 < piece.1[1];
            assert!(!is_long || !pieces.iter().any(begins), "a line touches {written:?}");
        }
    }

    #[test]
    fn titles_take_the_lines_that_they_need_and_axes_of_panels_begin_alike() {
        let panel = |title: &str, group: &str, ys: [f64; 2]| {
            let points = vec![(7.0, Some(ys[0])), (28.0, Some(ys[1]))];
            let series = vec![PlaneSeries { points, ..PlaneSeries::default() }];
            let chart = Plane { x: Axis::linear("x", ""), y: Axis::linear("y", ""), series, rules: Vec::new() };
            Panel { title: title.into(), group: group.into(), chart: Chart::Plane(chart) }
        };
        let long = "raw-ext4-sqlite, a placement of many words ".repeat(6);
        let panels = vec![panel(&long, "a", [1.9, 1.1]), panel("short", "b", [8.0, 1.5])];
        let text = svg(&Figure { title: long.clone(), caption: String::new(), panels });
        let written = |line: &str| line.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned();
        let starts = text.lines().filter(|line| line.contains("text-anchor=\"start\"")).map(written);
        let longest = starts.map(|words| 8.0 + width_of(&words)).fold(0.0, f64::max);
        assert!(longest <= WIDTH, "{longest}: {text}");
        let noughts = text.lines().filter(|line| line.contains("text-anchor=\"end\"") && written(line) == "0").count();
        assert_eq!(noughts, 2, "both panels begin at nought: {text}");
    }

    #[test]
    fn a_stack_has_its_interval_and_says_it() {
        let bars = Bars {
            categories: vec!["single".into()],
            value: Axis::linear("x", ""),
            stacked: true,
            series: vec![BarSeries { values: vec![Some(5.451)], ..Default::default() }],
            intervals: vec![Some(0.236)],
            ..Bars::default()
        };
        let text = svg(&Figure { panels: vec![Panel::new("", Chart::Bars(bars))], ..Figure::default() });
        assert!(text.contains(">5.451 \u{b1} 0.236<"), "{text}");
        let whisker = |ink: &str| text.lines().any(|line| line.starts_with("<path") && line.contains(colour(ink)));
        assert!(whisker("ink") && whisker("paper"), "{text}");
    }

    /// Every text of a picture with its place.
    fn texts(picture: &str) -> Vec<(String, Place)> {
        let attribute = |line: &str, key: &str| {
            line.split(&format!(" {key}=\"")).nth(1).map(|rest| rest.split('"').next().unwrap().to_owned())
        };
        let place = |line: &str| {
            let written = line.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned();
            let number = |key: &str| attribute(line, key).unwrap().parse::<f64>().unwrap();
            let before = match attribute(line, "text-anchor").as_deref() {
                Some("middle") => 0.5,
                Some("end") => 1.0,
                _ => 0.0,
            };
            let place = Place::of(number("x") - before * width_of(&written), number("y"), &written);
            (written, place)
        };
        picture.lines().filter(|line| line.starts_with("<text")).map(place).collect()
    }

    fn assert_no_text_is_cut_or_covered(picture: &str) {
        let texts = texts(picture);
        for (at, (text, place)) in texts.iter().enumerate() {
            assert!(place.x[0] >= 0.0 && place.x[1] <= WIDTH, "{text:?} is cut: {place:?}");
            for (other, place_of_other) in &texts[..at] {
                assert!(!place.meets(place_of_other), "{text:?} lies on {other:?}");
            }
        }
    }

    fn line(name: &str, slot: usize, ys: [f64; 3]) -> PlaneSeries {
        let points = [10_000.0, 1e6, 2_500_000.0].into_iter().zip(ys.map(Some)).collect();
        PlaneSeries { name: name.into(), slot, points, ..PlaneSeries::default() }
    }

    fn plane_of(series: Vec<PlaneSeries>) -> Chart {
        let (x, y) =
            (Axis::linear("host pages written since the measured start", ""), Axis::linear("bytes a second", ""));
        Chart::Plane(Plane { x, y, series, rules: Vec::new() })
    }

    #[test]
    fn small_panels_stand_in_two_columns_under_one_legend() {
        let panel = |title: &str| {
            let lines = vec![line("dftl, fixed split", 0, [4e7, 5e7, 1e8]), line("asa", 1, [3e7, 1e8, 9e7])];
            Panel::new(format!("{title}, a title that is wider than half of the picture is"), plane_of(lines))
        };
        let panels = ["a", "b", "c"].map(panel).to_vec();
        let picture = svg(&Figure { title: "T".into(), caption: String::new(), panels });
        assert_no_text_is_cut_or_covered(&picture);
        let texts = texts(&picture);
        let of = |start: &str| {
            texts.iter().filter(|(text, _)| text.starts_with(start)).map(|(_, at)| *at).collect::<Vec<_>>()
        };
        assert_eq!(of("asa").len(), 1, "one legend: {picture}");
        let [a, b, c] = ["a, a", "b, a", "c, a"].map(|title| of(title)[0]);
        assert!(a.y == b.y && a.x[1] < b.x[0] && a.x == c.x && a.y[1] < c.y[0], "{a:?}, {b:?}, {c:?}");
    }

    #[test]
    fn lines_have_their_names_at_their_ends() {
        let lines = [("first", 5.0e7), ("second, a longer name", 5.1e7), ("third", 5.05e7), ("fourth", 0.0)];
        let lines: Vec<_> =
            lines.iter().enumerate().map(|(slot, (name, end))| line(name, slot, [1e7, 2e7, *end])).collect();
        let picture = svg(&Figure { panels: vec![Panel::new("", plane_of(lines))], ..Figure::default() });
        assert_no_text_is_cut_or_covered(&picture);
        let texts = texts(&picture);
        let height = |name: &str| texts.iter().find(|(text, _)| text == name).unwrap().1.y[0];
        assert!(height("second, a longer name") < height("third") && height("third") < height("first"));
        assert!(height("first") + 100.0 < height("fourth"), "each stands where its line ends");
        assert_eq!(texts.iter().filter(|(text, _)| text == "third").count(), 1, "and not in a legend");
    }

    #[test]
    fn many_distributions_have_a_panel_each() {
        let chart = |count: usize| {
            let one = |slot: usize| HistogramSeries {
                name: format!("policy {slot}"),
                slot,
                edges: vec![0.0, 50.0, 100.0],
                values: vec![20.0 + slot as f64, 80.0],
                invalid: slot == 1,
            };
            let (x, y) = (Axis::linear("invalid pages", "%"), Axis::linear("share", "%"));
            Chart::Histogram(Histogram { x, y, series: (0..count).map(one).collect() })
        };
        let drawn = |count| svg(&Figure { panels: vec![Panel::new("trace", chart(count))], ..Figure::default() });
        let (few, many) = (drawn(OUTLINES_MAX), drawn(8));
        assert_no_text_is_cut_or_covered(&many);
        let titles = |picture: &str| texts(picture).iter().filter(|(text, _)| text.starts_with("trace")).count();
        assert_eq!((titles(&few), titles(&many)), (1, 8));
        assert!(many.contains(">trace, policy 7<"), "{many}");
        assert!(many.contains("pale: a run that is not valid") && drawn(1).find("pale").is_none());
    }

    #[test]
    fn panels_whose_signs_mean_different_things_have_legends_of_their_own() {
        let panel = |names: [&str; 2]| {
            Panel::new(names[0], plane_of(vec![line(names[0], 0, [1.0; 3]), line(names[1], 1, [2.0; 3])]))
        };
        let legends = |panels: Vec<Panel>| {
            let picture = svg(&Figure { panels, ..Figure::default() });
            texts(&picture).iter().filter(|(text, _)| text == "FAST").count()
        };
        assert_eq!(legends(vec![panel(["page map", "FAST"]), panel(["page map", "FAST"])]), 1);
        assert_eq!(legends(vec![panel(["page map", "FAST"]), panel(["in place", "FAST"]), panel(["x", "FAST"])]), 3);
    }

    #[test]
    fn a_bar_that_is_not_there_takes_no_room() {
        let bars = |second: Option<f64>| {
            let series = [vec![Some(1.0), Some(1.0)], vec![Some(2.0), second]];
            let one = |(slot, values)| BarSeries { name: format!("{slot}"), slot, values, ..BarSeries::default() };
            let categories = vec!["a".into(), "b".into()];
            let series = series.into_iter().enumerate().map(one).collect();
            Chart::Bars(Bars { categories, value: Axis::linear("x", ""), series, ..Bars::default() })
        };
        let height = |second| {
            let picture = svg(&Figure { panels: vec![Panel::new("", bars(second))], ..Figure::default() });
            let view = picture.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap().to_owned();
            view.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
        };
        assert_eq!(height(Some(2.0)) - height(None), 14.0);
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!([0.0, 0.5, 10.0, 1.25, 1e-7].map(tick), ["0", "0.5", "10", "1.25", "1.00e-7"]);
        assert_eq!([5000.0, 5e4, 1.5e6, -2e9].map(tick), ["5000", "50 k", "1.5 M", "-2 G"]);
        let ticks = |axis: Axis, range, to| Reach::new(&axis, Some(range), 0.0, to).ticks(46.0);
        let linear = |to| ticks(Axis::linear("", ""), [7.03, 28.1], to);
        assert_eq!(linear(300.0), [10.0, 15.0, 20.0, 25.0]);
        assert_eq!(linear(100.0), [10.0, 20.0], "no more than there is room for");
        let logarithmic = |range| ticks(Axis::logarithmic("", ""), range, 300.0);
        assert_eq!(logarithmic([0.5, 2000.0]), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(logarithmic([128.0, 4096.0]), [200.0, 500.0, 1000.0, 2000.0], "less than two powers of ten");
    }
}
