//! The figures of runs: which numbers are drawn, in which panel, under which name and colour.

use crate::arrangement::{Arrangement, Place, of_means, of_one};
use crate::figure::{
    Axis, BarSeries, Bars, Chart, Figure, HeatMap, Histogram, HistogramSeries, Mark, Origin, Panel, Plane, PlaneSeries,
    Rule,
};
use crate::table::number;
use isotherm_eval::comparison::{Device, OnTrace};
use isotherm_eval::results::{BlockHistogram, Estimate, LatencyBucket, RunResult};
use serde_json::Value;

/// How runs that are not valid are drawn.
pub(crate) const PALE: &str = "What is pale comes from runs that are not valid.";
/// The grey of the palette.
const GREY: usize = 6;
/// Its colours for what is written beyond the host's own pages, the strongest first. Causes begin with the host.
const EXTRA: [usize; 7] = [7, 1, 0, 2, 3, 4, 5];

/// Axes that take more than one value over the runs, in the order of the first run.
pub(crate) fn varying_axes(runs: &[&RunResult]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    let varies = |key: &String, value: &Value| runs.iter().any(|run| run.axes.get(key) != Some(value));
    first.axes.iter().filter(|(key, value)| varies(key, value)).map(|(key, _)| key.clone()).collect()
}

/// The value of an axis where nothing else tells which axis it is: a policy's name says so itself, a number does not.
pub(crate) fn axis_title(axis: &str, value: &Value) -> String {
    match value {
        // In experiment files, values are texts.
        Value::String(text) if text.parse::<f64>().is_err() => text.clone(),
        _ => format!("{} {}", axis.replace('_', " "), axis_text(value)),
    }
}

/// The value of an axis for people.
pub(crate) fn axis_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), number),
        other => other.to_string(),
    }
}

/// Where `name` stands in `names`, appended where it is new.
pub(crate) fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn figure(title: &str, caption: &str, panels: Vec<Panel>) -> Option<Figure> {
    let is_pale = |panel: &Panel| match &panel.chart {
        Chart::Bars(bars) => bars.series.iter().any(|series| !series.invalid.is_empty()),
        Chart::Plane(plane) => plane.series.iter().any(|series| !series.invalid.is_empty()),
        Chart::Histogram(histogram) => histogram.series.iter().any(|series| series.invalid),
        Chart::HeatMap(_) => false,
    };
    let caption = if panels.iter().any(is_pale) { format!("{caption} {PALE}") } else { caption.to_owned() };
    (!panels.is_empty()).then(|| Figure { title: title.into(), caption, panels })
}

/// Flags, or none where all of them are false.
pub(crate) fn flags(flags: impl Iterator<Item = bool>) -> Vec<bool> {
    let flags: Vec<bool> = flags.collect();
    if flags.contains(&true) { flags } else { Vec::new() }
}

/// The name of a device, with a mark where its runs are not all valid.
fn marked(device: &Device<'_>) -> String {
    match (device.valid(), device.runs.len()) {
        (valid, all) if valid == all => device.name.to_owned(),
        (0, _) => format!("{} (not valid)", device.name),
        (valid, all) => format!("{} ({valid} of {all} seeds valid)", device.name),
    }
}

/// Intervals, or none where all of them are absent.
fn intervals(intervals: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let intervals: Vec<Option<f64>> = intervals.collect();
    if intervals.iter().any(Option::is_some) { intervals } else { Vec::new() }
}

/// Write amplification against over-provisioning, where several are given: a line for each device.
pub(crate) fn amplification_over_space(parts: &[OnTrace<'_>]) -> Option<Figure> {
    const SPACE: &str = "over_provisioning";
    let runs: Vec<&RunResult> = parts.iter().flat_map(|part| &part.devices).map(|device| device.runs[0]).collect();
    if !varying_axes(&runs).iter().any(|axis| axis == SPACE) {
        return None;
    }
    let line = |places: &[&Place<'_>]| {
        let point = |place: &&Place<'_>| {
            // Devices of different seeds differ a little in size.
            let space = place.device.estimate(|run| Some(run.device.over_provisioning * 100.0))?.mean;
            Some((space, place.device.estimate(|run| run.write_amplification), place.device.is_valid()))
        };
        let mut points: Vec<(f64, Option<Estimate>, bool)> = places.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        PlaneSeries {
            name: places[0].name.clone(),
            slot: places[0].slot,
            points: points.iter().map(|(space, wa, _)| (*space, wa.map(|wa| wa.mean))).collect(),
            intervals: intervals(points.iter().map(|(_, wa, _)| wa.and_then(|wa| wa.confidence_95))),
            invalid: flags(points.iter().map(|(_, _, valid)| !valid)),
            ..PlaneSeries::default()
        }
    };
    let arrangement = Arrangement::along(parts, Some(SPACE));
    let panels = arrangement.panels("", |places| {
        Some(Chart::Plane(Plane {
            x: Axis::linear("Over-provisioning (T\u{2212}U)/U", "%"),
            y: Axis::linear("Write amplification", ""),
            series: places.chunk_by(|a, b| a.slot == b.slot).map(line).collect(),
            rules: Vec::new(),
        }))
    });
    figure(
        "Write amplification against over-provisioning",
        &format!("What more spare space buys under each device, over the whole measured run.{}", of_means(parts)),
        panels,
    )
}

/// Write amplification of each device, split by cause: a panel for each trace.
pub(crate) fn amplification_by_cause(parts: &[OnTrace<'_>]) -> Option<Figure> {
    let mut causes: Vec<String> = Vec::new();
    for run in parts.iter().flat_map(|part| &part.devices).flat_map(|device| &device.runs) {
        for (cause, _) in run.pages_by_cause().iter().filter(|(_, pages)| *pages > 0) {
            position(&mut causes, cause);
        }
    }
    let panels = parts.iter().filter(|_| !causes.is_empty()).map(|part| {
        let chart = Chart::Bars(by_cause(&part.devices, &causes));
        Panel { title: part.trace.to_owned(), group: part.trace.to_owned(), chart }
    });
    let caption = format!(
        "What the flash programmed for each page that the host wrote, over the whole measured run. The parts sum to the write \
         amplification; 1 means that nothing was written twice.{}",
        of_means(parts)
    );
    figure("Write amplification by cause", &caption, panels.collect())
}

fn by_cause(devices: &[Device<'_>], causes: &[String]) -> Bars {
    let share = |device: &Device<'_>, cause: &str| {
        let of_run = |run: &RunResult| {
            let pages = run.pages_by_cause().iter().find(|part| part.0 == *cause).map_or(0, |part| part.1);
            (run.host_pages_written > 0).then(|| pages as f64 / run.host_pages_written as f64)
        };
        device.estimate(of_run).map(|found| found.mean)
    };
    let series = |(index, cause): (usize, &String)| BarSeries {
        name: cause.clone(),
        // The host's own part is the same for all: it is drawn in grey, and the colours go to what differs.
        slot: if cause == "host" { GREY } else { EXTRA[index % EXTRA.len()] },
        origin: Origin::Measured,
        values: devices.iter().map(|device| share(device, cause)).collect(),
        invalid: flags(devices.iter().map(|device| !device.is_valid())),
    };
    let interval = |device: &Device<'_>| device.estimate(|run| run.write_amplification)?.confidence_95;
    Bars {
        category_label: "Device".into(),
        categories: devices.iter().map(marked).collect(),
        value: Axis::linear("Pages programmed per page the host wrote", ""),
        stacked: true,
        series: causes.iter().enumerate().map(series).collect(),
        intervals: intervals(devices.iter().map(interval)),
        rules: vec![Rule { label: "no copies".into(), value: 1.0 }],
    }
}

/// Write amplification of each window over the run.
pub(crate) fn amplification_over_time(arrangement: &Arrangement) -> Option<Figure> {
    let panels = arrangement.panels("", |places| {
        let series: Vec<PlaneSeries> = places
            .iter()
            .filter(|p| !p.run.series.host_pages_written.is_empty())
            .map(|p| PlaneSeries {
                name: p.name.clone(),
                slot: p.slot,
                ..windows(p.run, &p.run.series.write_amplification, p.run.device.logical_pages as f64)
            })
            .collect();
        (!series.is_empty()).then(|| {
            Chart::Plane(Plane {
                x: Axis::linear("Host writes since the measured start", "drive writes"),
                y: Axis::linear("Write amplification", ""),
                series,
                rules: Vec::new(),
            })
        })
    });
    figure(
        "Write amplification over time",
        &format!(
            "Each step is a window of host writes, as long as the step and as high as the write amplification within it. A line that has become level is steady; one that still moves says that the run was too short to judge by.{}",
            arrangement.of_one
        ),
        panels,
    )
}

/// A line over the windows of a run, in `unit` host pages.
pub(crate) fn windows(run: &RunResult, values: &[Option<f64>], unit: f64) -> PlaneSeries {
    let points = steps(run.series.ends_to_draw(), values, unit);
    let invalid = flags(points.iter().map(|_| !run.verdict.valid));
    PlaneSeries { mark: Mark::Steps, points, invalid, ..PlaneSeries::default() }
}

/// A value holds from where its window begins to where it ends.
fn steps(ends: &[u64], values: &[Option<f64>], unit: f64) -> Vec<(f64, Option<f64>)> {
    let mut points: Vec<(f64, Option<f64>)> = Vec::new();
    let mut begin = 0.0;
    for (pages, value) in ends.iter().zip(values) {
        let end = *pages as f64 / unit;
        // A step reaches back to the point before it, which there may not be.
        if value.is_some() && points.last().is_none_or(|before| before.1.is_none()) {
            points.push((begin, *value));
        }
        points.push((end, *value));
        begin = end;
    }
    points
}

/// Victims by their invalid share.
pub(crate) fn victims(arrangement: &Arrangement) -> Option<Figure> {
    let panels = arrangement.panels("", |places| {
        let series: Vec<HistogramSeries> = places
            .iter()
            .filter_map(|p| {
                let histogram = &p.run.victim_histogram;
                let from = histogram.invalid_share_from.iter().map(|e| e * 100.0).collect();
                let (edges, values) = within_a_whole(from, &histogram.count)?;
                Some(HistogramSeries {
                    name: p.name.clone(),
                    slot: p.slot,
                    edges,
                    values,
                    invalid: !p.run.verdict.valid,
                })
            })
            .collect();
        histogram(series, Axis::linear("Invalid pages in the victim", "%"), Axis::linear("Share of victims", "%"))
    });
    figure(
        "Victims by their invalid share",
        &format!(
            "Blocks that garbage collection cleaned, by the share of their pages that was already invalid (one minus their utilisation). Far right is cheap: little was left to copy. Victims without one valid page are in the last step.{}",
            arrangement.of_one
        ),
        panels,
    )
}

/// Blocks by how often they were erased.
pub(crate) fn erases(arrangement: &Arrangement) -> Option<Figure> {
    let panels = arrangement.panels("", |places| {
        let series: Vec<HistogramSeries> =
            places.iter().filter_map(|p| block_series(&p.run.erase_distribution, p)).collect();
        histogram(series, Axis::linear("Erases of a block", ""), Axis::linear("Share of blocks", "%"))
    });
    figure(
        "Erases by block",
        &format!(
            "Blocks by how often they were erased during the measured run. Further left wears less; narrower wears more evenly.{}",
            arrangement.of_one
        ),
        panels,
    )
}

fn block_series(blocks: &BlockHistogram, place: &Place<'_>) -> Option<HistogramSeries> {
    let mut edges = blocks.from.clone();
    edges.push(closing_edge(&edges, blocks.max)?);
    let (name, slot, values) = (place.name.clone(), place.slot, shares(&blocks.count)?);
    Some(HistogramSeries { name, slot, edges, values, invalid: !place.run.verdict.valid })
}

/// Upper edge of the last interval: the largest number in it, or one interval further where that would leave it no width.
fn closing_edge(edges: &[f64], max: f64) -> Option<f64> {
    let last = *edges.last()?;
    let width = edges.len().checked_sub(2).map_or(1.0, |before| last - edges[before]);
    Some(if max > last { max } else { last + width })
}

/// Edges and heights of intervals of a share, which ends at 100 %: what is a whole belongs to the last interval below it.
pub(crate) fn within_a_whole(mut from: Vec<f64>, counts: &[u64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut heights = shares(counts)?;
    let is_whole = from.len() > 1 && from.last().is_some_and(|last| *last >= 100.0);
    if is_whole {
        let whole = heights.pop()?;
        *heights.last_mut()? += whole;
    } else {
        from.push(closing_edge(&from, 100.0)?);
    }
    Some((from, heights))
}

/// Counts as percentages of their sum; none where nothing was counted.
pub(crate) fn shares(counts: &[u64]) -> Option<Vec<f64>> {
    let sum: u64 = counts.iter().sum();
    (sum > 0).then(|| counts.iter().map(|c| *c as f64 / sum as f64 * 100.0).collect())
}

pub(crate) fn histogram(series: Vec<HistogramSeries>, x: Axis, y: Axis) -> Option<Chart> {
    (!series.is_empty()).then_some(Chart::Histogram(Histogram { x, y, series }))
}

/// The share of requests that took longer than a time, for writes and for reads.
pub(crate) fn latency(arrangement: &Arrangement) -> Option<Figure> {
    let mut panels = Vec::new();
    // Axes are named by the operation, so that those of reads, which are faster, end where reads do.
    for (operation, one) in [("Writes", "Write"), ("Reads", "Read")] {
        panels.extend(arrangement.panels(operation, |places| {
            let series: Vec<PlaneSeries> = places
                .iter()
                // Below a log, requests are the log's own, and are not to be compared with those of the host.
                .filter(|p| p.run.below.is_none())
                .filter_map(|p| {
                    let distribution = &p.run.latency_distribution;
                    let buckets = if operation == "Writes" { &distribution.write } else { &distribution.read };
                    let points = slower_than(buckets)?;
                    let invalid = flags(points.iter().map(|_| !p.run.verdict.valid));
                    Some(PlaneSeries { name: p.name.clone(), slot: p.slot, points, invalid, ..PlaneSeries::default() })
                })
                .collect();
            (!series.is_empty()).then(|| {
                Chart::Plane(Plane {
                    x: Axis::logarithmic(format!("{one} latency"), "\u{b5}s"),
                    y: Axis::logarithmic(format!("{operation} that take longer"), "%"),
                    series,
                    rules: Vec::new(),
                })
            })
        }));
    }
    figure(
        "Latency",
        &format!(
            "How many requests take longer than a time: 1 % on the upright axis is the 99th percentile, 0.1 % the 99.9th. Lower and further left is better. Points lie at the edges of the counted intervals, which double in width.{}",
            arrangement.of_one
        ),
        panels,
    )
}

/// The complement of the cumulative distribution at the edges of the buckets, in microseconds and per cent, from the last
/// edge that every request reaches to the last that any reaches. None where one bucket holds all: a point is no curve.
fn slower_than(buckets: &[LatencyBucket]) -> Option<Vec<(f64, Option<f64>)>> {
    let requests: u64 = buckets.iter().map(|b| b.count).sum();
    let mut slower = requests;
    let mut points: Vec<(f64, Option<f64>)> = Vec::new();
    for bucket in buckets {
        slower -= bucket.count;
        if slower == requests {
            points.clear();
        }
        if slower > 0 {
            points.push((bucket.up_to_ns as f64 / 1e3, Some(slower as f64 / requests as f64 * 100.0)));
        }
    }
    (points.len() > 1).then_some(points)
}

/// Host writes by address and time, once for each trace.
pub(crate) fn heat(parts: &[OnTrace<'_>]) -> Option<Figure> {
    let mut panels: Vec<Panel> = Vec::new();
    for part in parts {
        let mut seen: Vec<(&str, &RunResult)> = Vec::new();
        for (name, run) in part.devices.iter().map(|device| (device.name, device.runs[0])) {
            let known = seen.iter().any(|(_, s)| s.write_heat == run.write_heat);
            if !known && run.write_heat.counts.iter().flatten().any(|c| *c > 0) {
                seen.push((name, run));
            }
        }
        // One map is the workload's own; several of one trace differ by the device that folded or repeated it.
        let device = |name: &str| if seen.len() == 1 { String::new() } else { name.to_owned() };
        panels.extend(seen.iter().map(|(name, run)| {
            let title =
                [part.trace, &device(name)].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ");
            Panel::new(title, Chart::HeatMap(heat_map(run)))
        }));
    }
    figure(
        "Host writes by address and time",
        &format!(
            "Each cell is a range of addresses during a stretch of the run; darker (in the dark, brighter) cells were written more, on a logarithmic scale, and empty ones not at all. Level bands are hot ranges, slanting ones are logs and scans.{}",
            of_one(parts)
        ),
        panels,
    )
}

pub(crate) fn heat_map(run: &RunResult) -> HeatMap {
    let heat = &run.write_heat;
    let columns = heat.counts.first().map_or(0, Vec::len);
    let column_bytes = heat.column_host_pages as f64 * run.device.page_bytes as f64;
    let (x_unit, x_size) = byte_unit(column_bytes * columns as f64);
    let (y_unit, y_size) = byte_unit(heat.row_bytes as f64 * heat.counts.len() as f64);
    HeatMap {
        x: Axis::linear("Host data written", x_unit),
        y: Axis::linear("Address", y_unit),
        value: Axis::linear("Page writes", ""),
        x_start_step: (0.0, column_bytes / x_size),
        y_start_step: (0.0, heat.row_bytes as f64 / y_size),
        rows: heat.counts.clone(),
    }
}

/// The largest binary unit of which `bytes` holds at least two.
fn byte_unit(bytes: f64) -> (&'static str, f64) {
    const UNITS: [(&str, f64); 3] = [("TiB", 1_099_511_627_776.0), ("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0)];
    UNITS.into_iter().find(|u| bytes >= 2.0 * u.1).unwrap_or(("KiB", 1024.0))
}

/// What `read` finds at `key` of each run, as JSON has it.
pub(crate) fn values_at<T>(
    runs: &[&RunResult],
    key: &str,
    read: impl Fn(&Value, &str) -> Option<T>,
) -> Result<Vec<Option<T>>, serde_json::Error> {
    runs.iter().map(|run| Ok(read(&serde_json::to_value(run)?, key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_with_what_it_is_of() {
        let told = |value: Value| axis_title("disk_utilisation", &value);
        assert_eq!(
            [told(85.into()), told("85".into()), told("zipf".into())],
            ["disk utilisation 85", "disk utilisation 85", "zipf"]
        );
    }

    #[test]
    fn a_window_has_its_value_from_its_beginning_to_its_end() {
        let points = steps(&[10, 20, 30, 40], &[Some(1.0), Some(2.0), None, Some(3.0)], 10.0);
        let (first, second) = ([(0.0, Some(1.0)), (1.0, Some(1.0))], [(2.0, Some(2.0)), (3.0, None)]);
        let last = [(3.0, Some(3.0)), (4.0, Some(3.0))];
        assert_eq!(points, [first, second, last].concat());
    }

    #[test]
    fn the_share_of_slower_requests_falls_to_none() {
        let bucket = |up_to_ns, count| LatencyBucket { up_to_ns, count, total_ns: 0 };
        let points =
            slower_than(&[bucket(500, 0), bucket(1000, 0), bucket(2000, 90), bucket(4000, 9), bucket(8000, 1)]);
        assert_eq!(points.unwrap(), [(1.0, Some(100.0)), (2.0, Some(10.0)), (4.0, Some(1.0))]);
        assert!(slower_than(&[bucket(1000, 7)]).is_none(), "one bucket holds all");
        assert!(slower_than(&[bucket(1000, 0)]).is_none(), "no request");
    }

    #[test]
    fn the_last_interval_of_a_histogram_always_has_a_width() {
        assert_eq!(closing_edge(&[0.0, 2.0, 4.0], 5.0), Some(5.0));
        assert_eq!(closing_edge(&[0.0, 2.0, 4.0], 4.0), Some(6.0));
        assert_eq!(closing_edge(&[7.0], 7.0), Some(8.0));
        assert_eq!(closing_edge(&[], 7.0), None);
    }

    #[test]
    fn a_share_ends_at_a_hundred() {
        let (edges, heights) = within_a_whole(vec![0.0, 50.0, 100.0], &[1, 1, 2]).unwrap();
        assert_eq!((edges, heights), (vec![0.0, 50.0, 100.0], vec![25.0, 75.0]));
        let (edges, heights) = within_a_whole(vec![0.0, 50.0], &[1, 3]).unwrap();
        assert_eq!((edges, heights), (vec![0.0, 50.0, 100.0], vec![25.0, 75.0]));
    }
}
