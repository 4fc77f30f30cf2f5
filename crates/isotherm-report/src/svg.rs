//! Figures as SVG files, for papers and pages of one's own: the same descriptions that the report's script draws, still and on
//! white. Colours are those of the report's style sheet.

mod labels;

use self::labels::{Place, flags, ridges, without};
use crate::figure::{Axis, BarSeries, Bars, Chart, Figure, HeatMap, Histogram, Mark, Origin, Panel, Plane, Scale};
use crate::ranges::{self, Ranges};
use crate::table::{number, with_half};
use std::fmt::Write as _;

/// Where the colours are named.
const STYLE: &str = include_str!("assets/page.css");
const COLOURS: usize = 8;
const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
/// Height of the plane of a chart.
const PLANE: f64 = 240.0;
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

/// How a series is drawn, in the picture and in the legend beside its name.
#[derive(Clone, Copy)]
struct Sign {
    fill: &'static str,
    frame: &'static str,
    dash: &'static str,
}

impl Sign {
    /// Bars: those of a second round of colours have a frame, published ones nothing else.
    fn of_bars(slot: usize, origin: Origin) -> Self {
        let ink = slot_colour(slot);
        if origin == Origin::Published {
            return Self { fill: "none", frame: ink, dash: "4 2" };
        }
        Self { fill: ink, frame: if slot >= COLOURS { colour("ink") } else { ink }, dash: "none" }
    }

    /// Lines: those of a second round are dashed.
    fn of_lines(slot: usize) -> Self {
        let ink = slot_colour(slot);
        let fill = if slot < COLOURS { ink } else { "none" };
        Self { fill, frame: ink, dash: DASHES[slot / COLOURS % DASHES.len()] }
    }
}

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
                Some(line) if 8.0 + width_of(line) + width_of(word) + LETTER <= WIDTH - RIGHT => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        for line in lines {
            self.text((8.0, self.y + 13.0), "start", ink, &line);
            self.y += LINE;
        }
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
    fn legend(&mut self, keys: &[(&str, Sign)]) {
        let mut x = LEFT;
        for (name, sign) in keys {
            let width = 22.0 + width_of(name);
            if x > LEFT && x + width > WIDTH - RIGHT {
                (x, self.y) = (LEFT, self.y + LINE);
            }
            let more = format!("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"", sign.frame, sign.dash);
            self.rect((x, self.y + 4.0), (10.0, 10.0), sign.fill, &more);
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

    /// Round numbers along it.
    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Logarithmic {
            let (low, high) = (self.least.log10().ceil() as i32, self.most.log10().floor() as i32);
            return (low..=high).map(|power| 10f64.powi(power)).collect();
        }
        let power = 10f64.powf(((self.most - self.least) / 5.0).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
        let step = steps.into_iter().find(|step| (self.most - self.least) / step <= 6.0).unwrap_or(10.0 * power);
        let (first, last) = ((self.least / step).ceil() as i64, (self.most / step + 1e-9).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A round number, without the digits that it does not have.
fn tick(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn title_of(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// The frame of a plane: axes, their names, round numbers.
fn plane(picture: &mut Picture, (x, x_name): (&Reach, &str), (y, y_name): (&Reach, &str)) {
    picture.text((8.0, y.to - 8.0), "start", "soft", y_name);
    for at in y.ticks() {
        picture.line((x.from, y.at(at)), (x.to, y.at(at)), colour("line"));
        picture.text((LEFT - 6.0, y.at(at) + 4.0), "end", "soft", &tick(at));
    }
    for at in x.ticks() {
        picture.line((x.at(at), y.from), (x.at(at), y.from + 4.0), colour("soft"));
        picture.text((x.at(at), y.from + 17.0), "middle", "soft", &tick(at));
    }
    picture.line((x.from, y.from), (x.to, y.from), colour("soft"));
    picture.text(((x.from + x.to) / 2.0, y.from + 36.0), "middle", "soft", x_name);
    picture.y = y.from + 48.0;
}

fn draw_plane(picture: &mut Picture, chart: &Plane, ranges: Ranges) {
    let (top, bottom) = (picture.y + 24.0, picture.y + 24.0 + PLANE);
    let x = Reach::new(&chart.x, ranges.x, LEFT, WIDTH - RIGHT);
    let y = Reach::new(&chart.y, ranges.y, bottom, top);
    plane(picture, (&x, &title_of(&chart.x)), (&y, &title_of(&chart.y)));
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

fn draw_histogram(picture: &mut Picture, chart: &Histogram, ranges: Ranges) {
    let (top, bottom) = (picture.y + 24.0, picture.y + 24.0 + PLANE);
    let x = Reach::new(&chart.x, ranges.x, LEFT, WIDTH - RIGHT);
    let y = Reach::new(&chart.y, ranges.y, bottom, top);
    plane(picture, (&x, &title_of(&chart.x)), (&y, &title_of(&chart.y)));
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
    let in_group = if chart.stacked { 1 } else { chart.series.len() };
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
    let height = (LINE + BAR * in_group as f64 + GAP) * chart.categories.len() as f64;
    for at in x.ticks() {
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
                let Sign { fill, frame, dash } = Sign::of_bars(series.slot, series.origin);
                let more = format!("stroke=\"{frame}\" stroke-dasharray=\"{dash}\" opacity=\"{opacity}\"");
                let size = (x.at(start + value) - x.at(start), BAR - 2.0);
                picture.rect((x.at(start), y), size, fill, &more);
                from = start + value;
                if !chart.stacked {
                    picture.text((x.at(value) + 4.0, y + 10.0), "start", "soft", &number(value));
                    texts.push(Place::of(x.at(value) + 4.0, y + 10.0, &number(value)));
                }
            }
            y += if chart.stacked { 0.0 } else { BAR };
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
    let (top, bottom) = (picture.y + 24.0, picture.y + 24.0 + PLANE);
    let columns = chart.rows.first().map_or(0, Vec::len);
    let ends = |(start, step): (f64, f64), count: usize| Some([start, start + step * count as f64]);
    let x = Reach::new(&chart.x, ends(chart.x_start_step, columns), LEFT, WIDTH - RIGHT);
    let y = Reach::new(&chart.y, ends(chart.y_start_step, chart.rows.len()), bottom, top);
    plane(picture, (&x, &title_of(&chart.x)), (&y, &title_of(&chart.y)));
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

/// The series of a chart: name and place in the palette.
fn keys(chart: &Chart) -> Vec<(&str, Sign)> {
    match chart {
        Chart::Bars(chart) => {
            let sign = |series: &BarSeries| Sign::of_bars(series.slot, series.origin);
            chart.series.iter().map(|series| (series.name.as_str(), sign(series))).collect()
        }
        Chart::Plane(chart) => chart.series.iter().map(|s| (s.name.as_str(), Sign::of_lines(s.slot))).collect(),
        Chart::Histogram(chart) => chart.series.iter().map(|s| (s.name.as_str(), Sign::of_lines(s.slot))).collect(),
        Chart::HeatMap(_) => Vec::new(),
    }
}

/// A figure as the text of one SVG file, its panels one above the other.
pub fn svg(figure: &Figure) -> String {
    let mut picture = Picture { body: String::new(), y: 11.0 };
    picture.paragraph("ink", &figure.title);
    picture.y += 7.0;
    for (Panel { title, chart, .. }, ranges) in figure.panels.iter().zip(ranges::of(figure)) {
        if !title.is_empty() {
            picture.paragraph("soft", title);
            picture.y += 4.0;
        }
        let keys = keys(chart);
        if keys.len() > 1 {
            picture.legend(&keys);
        }
        match chart {
            Chart::Bars(chart) => draw_bars(&mut picture, chart, ranges),
            Chart::Plane(chart) => draw_plane(&mut picture, chart, ranges),
            Chart::Histogram(chart) => draw_histogram(&mut picture, chart, ranges),
            Chart::HeatMap(chart) => draw_heat_map(&mut picture, chart),
        }
        picture.y += 12.0;
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
    use crate::figure::{PlaneSeries, Rule};

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
        for Sign { fill, frame, dash } in signs {
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

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!([0.0, 0.5, 10.0, 1.25, 1e-7].map(tick), ["0", "0.5", "10", "1.25", "1.00e-7"]);
        let ticks = Reach::new(&Axis::linear("", ""), Some([7.03, 28.1]), 0.0, 1.0).ticks();
        assert_eq!(ticks, [10.0, 15.0, 20.0, 25.0]);
        let ticks = Reach::new(&Axis::logarithmic("", ""), Some([0.5, 2000.0]), 0.0, 1.0).ticks();
        assert_eq!(ticks, [1.0, 10.0, 100.0, 1000.0]);
    }
}
