//! Figures as SVG files, for papers and pages of one's own: the same descriptions that the report's script draws, still, on white
//! and, where the reader's screen is dark, on dark. What stands where in a picture is decided here.

mod canvas;
mod charts;
mod labels;
mod reach;
mod signs;
mod stripes;

use self::canvas::{Entry, Picture, SHOWN, WIDTH};
use self::charts::{PLANE, draw_bars, draw_heat_map, draw_histogram, draw_plane};
use self::reach::title_of;
use self::signs::{Sign, colour, dark_style};
use self::stripes::{Stripes, stripes};
use crate::figure::{Chart, Figure, Histogram, Mark, Origin, Panel, Plane, PlaneSeries};
use crate::ranges::{self, Ranges};

/// Height of the plane of a chart where panels stand beside each other.
const SMALL_PLANE: f64 = 130.0;
/// Distributions in one plane that can be told apart by eye.
const OUTLINES_MAX: usize = 3;
/// Lines that have their names at their ends.
const NAMED_MAX: usize = 8;

/// The lines that have their names at their ends instead of in the legend, and where each ends.
fn named(chart: &Plane) -> Vec<(&PlaneSeries, f64)> {
    let is_line = |series: &&PlaneSeries| series.mark != Mark::Points && series.origin != Origin::Theory;
    let last = |series: &PlaneSeries| series.points.iter().rev().find_map(|(_, y)| *y);
    let lines: Vec<_> = chart.series.iter().filter(is_line).filter_map(|s| Some((s, last(s)?))).collect();
    if chart.series.len() > 1 && lines.len() <= NAMED_MAX { lines } else { Vec::new() }
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

/// What is drawn in stripes, in each panel.
fn striped(figure: &Figure, ranges: &[Ranges]) -> Vec<Vec<Option<Stripes>>> {
    let of_panel = |(panel, ranges): (&Panel, &Ranges)| match &panel.chart {
        Chart::Plane(chart) => stripes(chart, *ranges),
        _ => Vec::new(),
    };
    figure.panels.iter().zip(ranges).map(of_panel).collect()
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
    let ranges = ranges::of(figure);
    let striped = striped(figure, &ranges);
    if striped.iter().flatten().any(Option::is_some) {
        legend.push(("in stripes: lines that coincide".to_owned(), Sign::stripes()));
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
    let of_panel = |(((panel, ranges), legend), striped)| {
        let (legend, striped): (&Vec<Entry>, &Vec<Option<Stripes>>) = (legend, striped);
        (panel, ranges, if is_clear { &[][..] } else { legend.as_slice() }, striped.as_slice())
    };
    let panels: Vec<_> = figure.panels.iter().zip(ranges).zip(&legends).zip(&striped).map(of_panel).collect();
    for row in panels.chunks(columns) {
        let top = picture.y;
        let place = |picture: &mut Picture, column: usize| {
            picture.left = WIDTH / columns as f64 * column as f64;
            picture.right = picture.left + WIDTH / columns as f64;
        };
        // Charts of a row begin at one height, whatever stands above them.
        let mut begin = top;
        for (column, (panel, _, legend, _)) in row.iter().enumerate() {
            place(&mut picture, column);
            picture.y = top;
            head(&mut picture, panel, legend);
            begin = begin.max(picture.y);
        }
        let mut end = begin;
        let height = if are_small { SMALL_PLANE } else { PLANE };
        for (column, (panel, ranges, _, striped)) in row.iter().enumerate() {
            place(&mut picture, column);
            picture.y = begin;
            match &panel.chart {
                Chart::Bars(chart) => draw_bars(&mut picture, chart, *ranges),
                Chart::Plane(chart) => draw_plane(&mut picture, chart, *ranges, height, &names, striped),
                Chart::Histogram(chart) => draw_histogram(&mut picture, chart, *ranges, height),
                Chart::HeatMap(chart) => draw_heat_map(&mut picture, chart),
            }
            end = end.max(picture.y);
        }
        picture.y = end + 12.0;
    }
    let paper = format!("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>", colour("paper"));
    let body = format!("{paper}\n{}", picture.body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{SHOWN}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         {}\n{body}</svg>\n",
        picture.y,
        dark_style(&body)
    )
}

#[cfg(test)]
mod tests {
    use super::canvas::width_of;
    use super::labels::Place;
    use super::signs::COLOURS;
    use super::*;
    use crate::figure::{Axis, BarSeries, Bars, HistogramSeries, Rule};

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

    /// A page shows the picture as it is: a colour without a dark one would be dark on dark.
    #[test]
    fn every_colour_has_a_dark_one() {
        let bars = |slot, origin| BarSeries { slot, origin, values: vec![Some(1.0)], ..BarSeries::default() };
        let series = (0..=COLOURS).map(|slot| bars(slot, Origin::Measured)).chain([bars(0, Origin::Published)]);
        let (value, categories) = (Axis::linear("x", ""), vec!["all".into()]);
        let rules = rules(&[0.5]);
        let bars = Bars { categories, value, series: series.collect(), rules, ..Bars::default() };
        let heat = crate::figure::HeatMap { rows: vec![vec![1, 9]], ..Default::default() };
        let panels = vec![Panel::new("", Chart::Bars(bars)), Panel::new("", Chart::HeatMap(heat))];
        let text = svg(&Figure { panels, ..Figure::default() });
        let style = text.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let begins = "@media screen and (prefers-color-scheme: dark){";
        assert!(style.starts_with(begins) && style.len() < 1500, "{style}");
        let mut used: Vec<&str> = Vec::new();
        for attribute in [" fill=\"#", " stroke=\"#"] {
            used.extend(text.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap()));
        }
        assert!(used.len() > 40);
        for colour in used {
            let dark =
                style.split(&format!("=\"#{colour}\"]{{")).nth(1).map(|rest| rest.split([':', '}']).nth(1).unwrap());
            assert!(dark.is_some_and(|dark| dark != format!("#{colour}")), "{colour}: {style}");
        }
        assert!(
            style.contains("[fill=\"#ffffff\"]{fill:#12161d}")
                && style.contains("[stroke=\"#3e89f9\"]{stroke:#50cbff}")
        );
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
        // What is wider than its column stands on two lines.
        assert_eq!((of("host pages written").len(), of("start").len()), (3, 3), "{picture}");
        let [a, b, c] = ["a, a", "b, a", "c, a"].map(|title| of(title)[0]);
        assert!(a.y == b.y && a.x[1] < b.x[0] && a.x == c.x && a.y[1] < c.y[0], "{a:?}, {b:?}, {c:?}");
    }

    /// A page scales a picture down to its own width, and the letters with it.
    #[test]
    fn letters_can_be_read_on_a_telephone() {
        let picture =
            svg(&Figure { panels: vec![Panel::new("", plane_of(vec![line("", 0, [1.0; 3])]))], ..Figure::default() });
        let number = |key: &str| -> f64 {
            let rest = picture.split(key).nth(1).unwrap();
            rest.split([' ', '"']).next().unwrap().parse().unwrap()
        };
        assert!(number("font-size=\"") * 360.0 / number("viewBox=\"0 0 ") > 8.0, "{picture}");
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

    /// Of two lines of one course, the later hid the earlier.
    #[test]
    fn lines_that_coincide_are_both_seen() {
        let drawn = |second: [f64; 3]| {
            let lines = vec![line("first", 0, [1e7, 2e7, 5e7]), line("second", 1, second)];
            svg(&Figure { panels: vec![Panel::new("", plane_of(lines))], ..Figure::default() })
        };
        let (together, apart) = (drawn([1e7, 2e7, 5.01e7]), drawn([3e7, 5e7, 9e7]));
        let of_first = |picture: &str, what: &str| {
            let is_of = |line: &&str| line.contains(what) && line.contains(&format!("stroke=\"{}\"", colour("s0")));
            picture.lines().filter(is_of).map(str::to_owned).collect::<Vec<_>>()
        };
        let stripes = of_first(&together, "stroke-dashoffset");
        assert!(stripes.len() == 1 && stripes[0].contains("stroke-dasharray=\"7 7\""), "{together}");
        assert!(together.contains(">in stripes: lines that coincide<") && !apart.contains("stripes"));
        // And of two points in one place, the lower is a ring around the upper.
        let radii =
            |picture: &str| of_first(picture, "<circle").iter().filter(|circle| circle.contains("r=\"5.5\"")).count();
        assert_eq!((radii(&together), radii(&apart)), (3, 0), "{together}");
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
}
