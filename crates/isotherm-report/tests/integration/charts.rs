//! Charts of one's own in the browser: where ticks and ends of axes lie, and that nothing is written across anything else.

use super::assert_quiet;
use super::browser::Browser;
use isotherm_report::figure::{Axis, BarSeries, Bars, Chart, Figure, Mark, Panel, Plane, PlaneSeries, Rule};
use isotherm_report::page::{Block, Section};
use isotherm_report::{Page, render_page};
use serde_json::Value;
use std::path::PathBuf;

/// A page of these charts, and a browser for it; none where there is no browser.
fn prepare(name: &str, charts: Vec<Chart>) -> Option<(String, Browser)> {
    let figure = |chart| {
        let panels = vec![Panel::new("", chart)];
        Block::Figure(Figure { title: "A chart".into(), caption: String::new(), panels })
    };
    let sections = vec![Section::new("Charts", charts.into_iter().map(figure).collect())];
    let page = Page { title: "Charts".into(), sections, ..Page::default() };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("page.html");
    std::fs::write(&file, render_page(&page).unwrap()).unwrap();
    Some((format!("file://{}", file.display()), Browser::start(&directory)?))
}

fn rules(values: &[f64]) -> Vec<Rule> {
    values.iter().map(|value| Rule { label: "win7_45GB (published)".into(), value: *value }).collect()
}

fn line(points: &[(f64, f64)], mark: Mark) -> PlaneSeries {
    let points = points.iter().map(|(x, y)| (*x, Some(*y))).collect();
    PlaneSeries { name: "device".into(), mark, points, ..PlaneSeries::default() }
}

fn texts(browser: &mut Browser, figure: usize) -> Vec<String> {
    let texts = format!("[...document.querySelectorAll('#figure-{figure} .chart svg text')].map(t => t.textContent)");
    browser.evaluate(&texts).as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn ticks_are_round_and_axes_end_with_the_data() {
    let space = Plane {
        x: Axis::linear("Over-provisioning", "%"),
        y: Axis::linear("Write amplification", ""),
        series: vec![line(&[(6.988, 4.3), (14.98, 2.84)], Mark::Line)],
        rules: Vec::new(),
    };
    let latency = Plane {
        x: Axis::logarithmic("Latency", ""),
        series: vec![line(&[(0.7, 1.0), (30.0, 2.0)], Mark::Line)],
        ..space.clone()
    };
    // A sum that floating point does not give exactly.
    let parts = [0.1, 0.2, 9.8].map(|part| BarSeries {
        name: part.to_string(),
        values: vec![Some(part), None],
        ..BarSeries::default()
    });
    let bars = Bars {
        categories: vec!["long".into(), "none".into()],
        value: Axis::linear("Pages", ""),
        stacked: true,
        series: parts.to_vec(),
        ..Bars::default()
    };
    let charts = vec![Chart::Plane(space), Chart::Plane(latency), Chart::Bars(bars)];
    let Some((file, mut browser)) = prepare("ticks", charts) else { return };
    for width in [360, 1200] {
        browser.open(&file, width, 900, "light");
        let numbers = |texts: Vec<String>| texts.into_iter().filter(|t| t.parse::<f64>().is_ok()).collect::<Vec<_>>();
        let space = numbers(texts(&mut browser, 0));
        assert!(space.ends_with(&["8", "10", "12", "14"].map(String::from)), "at {width}: {space:?}");
        let latency = numbers(texts(&mut browser, 1));
        assert!(latency.ends_with(&["1", "2", "5", "10", "20"].map(String::from)), "at {width}: {latency:?}");
        let bars = texts(&mut browser, 2);
        let beyond = |text: &&String| text.parse::<f64>().is_ok_and(|number| number > 10.1);
        assert_eq!(bars.iter().find(beyond), None, "the axis goes on behind the data at {width}: {bars:?}");
        assert!(bars.contains(&"10.10".to_owned()), "the longest bar has lost its number at {width}: {bars:?}");
    }
    assert_quiet(&mut browser);
}

/// Pairs of texts of a chart that lie on each other, and texts that a dashed line crosses.
const COLLISIONS: &str = "[...document.querySelectorAll('.chart')].flatMap(chart => { \
    const box = e => e.getBoundingClientRect(); \
    const texts = [...chart.querySelectorAll('svg text')].filter(t => t.textContent.trim() !== ''); \
    const lines = [...chart.querySelectorAll('svg path[stroke-dasharray]')]; \
    const frame = box(chart); \
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3; \
    const on = texts.flatMap((a, i) => texts.slice(i + 1).filter(b => meet(box(a), box(b))).map(b => a.textContent + ' | ' + b.textContent)); \
    const crossed = texts.filter(t => lines.some(l => meet(box(l), box(t)))).map(t => 'line across ' + t.textContent); \
    const out = texts.filter(t => box(t).right > frame.right + 1 || box(t).left < frame.left - 1).map(t => 'out: ' + t.textContent); \
    return [...on, ...crossed, ...out]; })";

#[test]
fn labels_of_rules_and_names_of_bars_lie_apart() {
    let name = |text: &str| format!("{text}: sepbit, greedy (not valid)");
    let bars = |stacked| Bars {
        categories: vec![name("tpcc-postgres-xfs-after-a-long-preconditioning"), name("varmail-ext4"), "short".into()],
        value: Axis::linear("Pages programmed per page the host wrote", ""),
        stacked,
        series: vec![BarSeries { values: vec![Some(1.2), Some(0.99), Some(1.8)], ..BarSeries::default() }],
        intervals: if stacked { vec![Some(0.15), None, Some(0.25)] } else { Vec::new() },
        rules: rules(&[1.438, 1.102, 1.006, 1.013]),
        ..Bars::default()
    };
    let plane = |values: &[f64]| Plane {
        x: Axis::linear("Host writes since the measured start", "drive writes"),
        y: Axis::linear("Write amplification", ""),
        series: vec![line(&[(0.0, 1.0), (3.0, 2.0)], Mark::Steps)],
        rules: rules(values),
    };
    let charts = vec![
        Chart::Bars(bars(true)),
        Chart::Bars(bars(false)),
        Chart::Plane(plane(&[1.438, 1.102])),
        Chart::Plane(plane(&[1.438, 1.8, 1.8001, 1.81])),
    ];
    let Some((file, mut browser)) = prepare("rules", charts) else { return };
    for width in [360, 1200] {
        browser.open(&file, width, 900, "light");
        let shown = browser.evaluate(
            "[...document.querySelectorAll('.chart')].map(c => [...c.querySelectorAll('svg text')].filter(t => t.textContent.includes('published')).length)",
        );
        assert_eq!(shown, serde_json::json!([4, 4, 2, 4]), "every rule has its label at {width}");
        assert_eq!(browser.evaluate(COLLISIONS), Value::Array(Vec::new()), "at {width}");
        // Names take the lines that they need, and the intervals stand beside the sums.
        let words = |figure, browser: &mut Browser| texts(browser, figure).join(" ");
        let (stacked, single) = (words(0, &mut browser), words(1, &mut browser));
        for told in [&stacked, &single] {
            assert_eq!(told.matches("(not valid)").count(), 2, "names are cut at {width}: {told}");
        }
        for sum in ["1.200 \u{b1} 0.150", "0.9900", "1.800 \u{b1} 0.250"] {
            assert!(stacked.contains(sum), "{sum} at {width}: {stacked}");
        }
        let whiskers = "[...document.querySelectorAll('#figure-0 .chart svg path')].filter(p => p.getAttribute('stroke-width') === '1.25').length";
        assert_eq!(browser.evaluate(whiskers), 2 * 3, "two intervals, each with its two ends, at {width}");
    }
    assert_quiet(&mut browser);
}
