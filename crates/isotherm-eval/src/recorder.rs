//! Counters over time, recorded while a run goes on.
//!
//! A run's length is not known in advance, so time is cut into windows that start small; whenever there are too many, the
//! window doubles and those are joined that it spans. In the end 48 to 96 windows cover the run. Windows end at the multiples
//! of their width, each with the request that reaches it, so that their widths differ by a request at most, however large
//! requests are; a snapshot of the device is taken there.

use crate::results::Series;
use isotherm::cause::{ByCause, Cause};
use isotherm::stats::Snapshot;
use serde_json::{Map, Value};

/// Most windows that are kept.
const WINDOWS_MAX: usize = 96;
/// Host pages in a window at the start.
const FIRST_WINDOW: u64 = 64;

/// The counters that are followed over time, cumulated since the device was built.
#[derive(Clone, Copy, Default)]
struct Sample {
    host_pages: u64,
    programmed: ByCause,
    collections: u64,
    victim_invalid_pages: u64,
    victim_pages: u64,
    flash_time_ns: u64,
    mapped_pages: u64,
}

impl Sample {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            host_pages: snapshot.host.pages_written,
            programmed: snapshot.medium.programmed(),
            collections: snapshot.collector.collections,
            victim_invalid_pages: snapshot.collector.victim_invalid_pages,
            victim_pages: snapshot.collector.victim_pages,
            flash_time_ns: snapshot.time.total_ns(),
            mapped_pages: snapshot.mapped_pages,
        }
    }

    /// Write amplification since an earlier sample.
    fn write_amplification_since(&self, earlier: &Self) -> Option<f64> {
        let programmed = self.programmed.since(&earlier.programmed).total();
        ratio(programmed as f64, (self.host_pages - earlier.host_pages) as f64)
    }
}

/// Records one run.
#[derive(Clone)]
pub struct Recorder {
    start: Sample,
    /// One sample at the end of each window.
    samples: Vec<Sample>,
    /// One sample at the end of each whole replay of the trace.
    replays: Vec<Sample>,
    window: u64,
    /// Pages that the host wrote since the start, and the number of them that ends the open window.
    pages: u64,
    window_end: u64,
    log2_page_bytes: u32,
}

impl Recorder {
    /// A recorder that starts at `start`.
    pub fn new(start: &Snapshot, page_bytes: u32) -> Self {
        Self {
            start: Sample::of(start),
            samples: Vec::with_capacity(WINDOWS_MAX),
            replays: Vec::new(),
            window: FIRST_WINDOW,
            pages: 0,
            window_end: FIRST_WINDOW,
            log2_page_bytes: page_bytes.trailing_zeros(),
        }
    }

    /// Host page writes that fill the open window.
    pub fn room(&self) -> u64 {
        self.window_end - self.pages
    }

    /// Counts `pages` that the host wrote. A window that they fill is to be closed before more are counted.
    pub fn count(&mut self, pages: u64) {
        self.pages += pages;
    }

    /// Whether the window is full, so that [`close_window`](Self::close_window) is due.
    pub fn window_is_full(&self) -> bool {
        self.pages >= self.window_end
    }

    /// Ends the open window with the counters as they are now.
    pub fn close_window(&mut self, now: &Snapshot) {
        self.samples.push(Sample::of(now));
        while self.samples.len() >= WINDOWS_MAX {
            self.window *= 2;
            self.join_windows();
        }
        self.window_end = (self.pages / self.window + 1) * self.window;
    }

    /// Keeps the first sample at or behind each multiple of the window.
    fn join_windows(&mut self) {
        let mut reached = 0;
        self.samples.retain(|sample| {
            let whole = (sample.host_pages - self.start.host_pages) / self.window;
            let is_first = whole > reached;
            reached = whole;
            is_first
        });
    }

    /// Marks the end of a whole replay of the trace.
    pub fn end_replay(&mut self, now: &Snapshot) {
        self.replays.push(Sample::of(now));
    }

    /// Ends the recording.
    pub fn finish(mut self, end: &Snapshot) -> Recording {
        let end = Sample::of(end);
        match self.samples.last_mut() {
            // Reads and trims after the last write belong to its window.
            Some(last) if last.host_pages == end.host_pages => *last = end,
            _ if self.pages > 0 => self.samples.push(end),
            // Nobody counted: only the start and the end are known.
            _ => {}
        }
        Recording {
            start: self.start,
            samples: self.samples,
            replays: self.replays,
            window: self.window,
            log2_page_bytes: self.log2_page_bytes,
        }
    }
}

/// What a [`Recorder`] recorded.
pub struct Recording {
    start: Sample,
    samples: Vec<Sample>,
    replays: Vec<Sample>,
    window: u64,
    log2_page_bytes: u32,
}

/// How many logical pages held data, over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Most at any time that was looked at.
    pub peak_pages: u64,
    /// Mean over the host's page writes.
    pub mean_pages: f64,
}

/// `part / whole`, or nothing where the whole is 0.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl Recording {
    /// The counters within each window.
    pub fn series(&self) -> Series {
        let mut series = Series { window_host_pages: self.window, ..Series::default() };
        let mut by_cause: Vec<(&'static str, Vec<u64>)> = Vec::new();
        let mut before = self.start;
        for sample in &self.samples {
            let programmed = sample.programmed.since(&before.programmed);
            let pages = sample.host_pages - before.host_pages;
            let victim_pages = sample.victim_pages - before.victim_pages;
            let invalid = sample.victim_invalid_pages - before.victim_invalid_pages;
            series.host_pages_written.push(sample.host_pages - self.start.host_pages);
            series.write_amplification.push(ratio(programmed.total() as f64, pages as f64));
            series.gc_count.push(sample.collections - before.collections);
            series.victim_invalid_share.push(ratio(invalid as f64, victim_pages as f64));
            let flash_time_ns = sample.flash_time_ns - before.flash_time_ns;
            series.flash_time_ns.push(flash_time_ns);
            series.flash_time_per_host_page_ns.push(ratio(flash_time_ns as f64, pages as f64));
            let bytes = (pages << self.log2_page_bytes) as f64;
            series.write_throughput_bytes_per_second.push(ratio(bytes * 1e9, flash_time_ns as f64));
            for (key, count) in programmed.by_key() {
                match by_cause.iter_mut().find(|c| c.0 == key) {
                    Some(list) => list.1.push(count),
                    None => by_cause.push((key, vec![count])),
                }
            }
            before = *sample;
        }
        let seen = by_cause.into_iter().filter(|(key, list)| *key == Cause::Host.key() || list.iter().any(|&c| c > 0));
        series.pages_programmed = seen.map(|(key, list)| (key.to_owned(), Value::from(list))).collect::<Map<_, _>>();
        series
    }

    /// Write amplification in each of `parts` equal parts of the run from host page `from` on (counted since the device was
    /// built). Parts end at the window ends nearest to their exact ends.
    pub fn parts(&self, from: &Snapshot, parts: usize) -> Vec<Option<f64>> {
        let begin = Sample::of(from);
        let Some(end) = self.samples.last() else { return vec![None; parts] };
        let length = end.host_pages.saturating_sub(begin.host_pages);
        let mut before = begin;
        let mut result = Vec::with_capacity(parts);
        for part in 1..=parts as u64 {
            let target = begin.host_pages + length * part / parts as u64;
            let later = self.samples.iter().filter(|s| s.host_pages > before.host_pages);
            match later.min_by_key(|s| s.host_pages.abs_diff(target)) {
                Some(sample) => {
                    result.push(sample.write_amplification_since(&before));
                    before = *sample;
                }
                None => result.push(None),
            }
        }
        result
    }

    /// Write amplification of each replay of the trace that lies whole behind host page `from`, and whether the first of them
    /// is the first of the run.
    pub fn replays(&self, from: &Snapshot) -> (Vec<Option<f64>>, bool) {
        let begin = from.host.pages_written;
        let starts = std::iter::once(&self.start).chain(&self.replays);
        let whole: Vec<_> =
            starts.zip(&self.replays).enumerate().filter(|(_, (start, _))| start.host_pages >= begin).collect();
        let has_first = whole.first().is_some_and(|(at, _)| *at == 0);
        (whole.into_iter().map(|(_, (start, end))| end.write_amplification_since(start)).collect(), has_first)
    }

    /// Write amplification of each whole replay of the trace.
    pub fn all_replays(&self) -> Vec<Option<f64>> {
        let starts = std::iter::once(&self.start).chain(&self.replays);
        starts.zip(&self.replays).map(|(start, end)| end.write_amplification_since(start)).collect()
    }

    /// How full the device was from host page `from` on. Windows are looked at where they end.
    pub fn occupancy(&self, from: &Snapshot) -> Occupancy {
        let mut before = Sample::of(from);
        let mut occupancy = Occupancy { peak_pages: before.mapped_pages, mean_pages: 0.0 };
        let mut writes = 0;
        for sample in self.samples.iter().filter(|sample| sample.host_pages > from.host.pages_written) {
            let pages = sample.host_pages - before.host_pages;
            occupancy.peak_pages = occupancy.peak_pages.max(sample.mapped_pages);
            occupancy.mean_pages += (before.mapped_pages + sample.mapped_pages) as f64 / 2.0 * pages as f64;
            writes += pages;
            before = *sample;
        }
        occupancy.mean_pages = ratio(occupancy.mean_pages, writes as f64).unwrap_or(before.mapped_pages as f64);
        occupancy
    }

    /// Pages that held data at host page `from` + `share` of the rest of the run, at the nearest window end.
    pub fn mapped_at(&self, from: &Snapshot, share: f64) -> u64 {
        let Some(end) = self.samples.last() else { return from.mapped_pages };
        let target =
            from.host.pages_written + ((end.host_pages.saturating_sub(from.host.pages_written)) as f64 * share) as u64;
        self.samples.iter().min_by_key(|s| s.host_pages.abs_diff(target)).map_or(from.mapped_pages, |s| s.mapped_pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(pages: u64, gc: u64) -> Snapshot {
        let mut s = Snapshot::default();
        s.host.pages_written = pages;
        s.medium.programs[Cause::Host] = pages;
        s.medium.copies[Cause::Gc] = gc;
        s
    }

    /// Feeds `total` pages in requests of `request`; the device amplifies by 2 from half of them on.
    fn record(total: u64, request: u64) -> Recording {
        let mut recorder = Recorder::new(&snapshot(0, 0), 4096);
        let mut done = 0;
        while done < total {
            let count = request.min(total - done);
            recorder.count(count);
            done += count;
            if recorder.window_is_full() {
                recorder.close_window(&snapshot(done, done.saturating_sub(total / 2)));
            }
        }
        recorder.finish(&snapshot(total, total - total / 2))
    }

    #[test]
    fn windows_cover_the_run_exactly_whatever_its_length() {
        for total in [1, 63, 64, 5000, 6144, 6145, 1_000_003] {
            let recording = record(total, 1);
            let series = recording.series();
            assert_eq!(*series.host_pages_written.last().unwrap(), total);
            let host: u64 =
                series.pages_programmed["host"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).sum();
            assert_eq!(host, total);
            assert!(series.gc_count.len() <= WINDOWS_MAX && (total < 6144 || series.gc_count.len() >= WINDOWS_MAX / 2));
        }
    }

    #[test]
    fn windows_are_equally_wide_but_for_a_request() {
        for request in [1, 3, 64, 100, 257, 1024] {
            let series = record(1_000_003, request).series();
            let ends = &series.host_pages_written;
            assert!((WINDOWS_MAX / 2..=WINDOWS_MAX).contains(&ends.len()), "{} windows", ends.len());
            let (_, whole) = ends.split_last().unwrap();
            for (window, end) in (1..).zip(whole) {
                let beyond = end - window * series.window_host_pages;
                assert!(beyond < request, "window {window} of requests of {request} ends {beyond} pages too late");
            }
        }
    }

    #[test]
    fn parts_show_where_write_amplification_changes() {
        let parts = record(1_000_000, 1).parts(&snapshot(0, 0), 4);
        for (part, expected) in parts.into_iter().zip([1.0, 1.0, 2.0, 2.0]) {
            assert!((part.unwrap() - expected).abs() < 0.05, "{part:?} instead of {expected}");
        }
    }

    #[test]
    fn replays_are_those_that_lie_whole_in_the_window() {
        let mut recorder = Recorder::new(&snapshot(100, 0), 4096);
        for (pages, gc) in [(200, 0), (300, 100), (400, 150)] {
            recorder.end_replay(&snapshot(pages, gc));
        }
        let recording = recorder.finish(&snapshot(400, 150));
        assert_eq!(recording.replays(&snapshot(100, 0)), (vec![Some(1.0), Some(2.0), Some(1.5)], true));
        assert_eq!(recording.replays(&snapshot(101, 0)), (vec![Some(2.0), Some(1.5)], false));
        assert_eq!(recording.replays(&snapshot(201, 0)), (vec![Some(1.5)], false));
    }

    #[test]
    fn occupancy_has_a_peak_and_a_mean_over_writes() {
        let at = |pages, mapped_pages| Snapshot { mapped_pages, ..snapshot(pages, 0) };
        let mut recorder = Recorder::new(&at(0, 0), 4096);
        for (pages, mapped) in [(64, 60), (128, 80), (192, 40)] {
            recorder.count(64);
            recorder.close_window(&at(pages, mapped));
        }
        let recording = recorder.finish(&at(192, 40));
        assert_eq!(
            recording.occupancy(&at(0, 0)),
            Occupancy { peak_pages: 80, mean_pages: (30.0 + 70.0 + 60.0) / 3.0 }
        );
        assert_eq!(recording.occupancy(&at(128, 80)), Occupancy { peak_pages: 80, mean_pages: 60.0 });
        assert_eq!((recording.mapped_at(&at(0, 0), 0.6), recording.mapped_at(&at(0, 0), 1.0)), (80, 40));
    }

    #[test]
    fn a_run_without_writes_has_no_windows() {
        let recording = Recorder::new(&snapshot(5, 0), 4096).finish(&snapshot(5, 0));
        assert!(recording.series().gc_count.is_empty());
        assert_eq!(recording.parts(&snapshot(5, 0), 4), [None; 4]);
    }
}
