//! The validity verdict: a run that means nothing says so, and says why.
//!
//! Valid needs at least two drive writes of the logical size since the device was new, at least one of them in the measured
//! window, ten victims for each stream in the window, steady write amplification, a run that reached its end, no line of the
//! trace skipped, and requests that begin and end with whole sectors, most of them.
//!
//! Steady means within 5 % from some replays of the trace to as many after them, since a trace has phases and parts of it are not
//! alike: the quarters of one replay differ where the trace does. Parts of a pattern are alike, so that 2.5 % are allowed there. Of
//! many replays five and five are compared, since a steady device swings from one to the next. Replays that preconditioned the device
//! count as the ones before. The first replay on a device that holds nothing of the trace fills it: it is compared with none, and
//! where there are two replays alone, their second halves are compared. Nor is the first replay of a
//! trace compared that meets what was written in order or at random, where two more follow. One replay that there is nothing to compare with, and a
//! synthetic workload that is brought once, which has no period, are judged by the last two quarters of the window, between which the
//! device may not be filling either.
//!
//! A valid result can have caveats. That of a device that was less than 80 % live on the mean is light: cleaning is cheap there. So
//! is that of a pattern of which pages are still to be written for the first time, where they are more than a twentieth of the spare
//! space. That of the first replay of an empty device alone is below what later replays cost, as a part of it was written while there
//! was room, and so is the mean over replays that counts it in: where it lies further from that of the others than is steady, the
//! verdict gives both. The same holds for a host that filled its device while it was measured, and for what comes right after a
//! preconditioning that is unlike the workload; and a pattern that was brought to a device filled in order or at random for fewer drive writes than
//! its placement may learn for says so, since what a slow learner does later cannot be seen in the window. Such a result stays valid, since an experiment may begin on an empty device on
//! purpose, but nowhere is it called valid without a further word.

mod compared;
mod light;
mod setting;
mod words;

pub use self::setting::{Setting, Source};

use self::compared::{Beginning, Comparison, Window};
use self::light::Fullness;
use crate::recorder::{Occupancy, Recording};
use crate::results::Verdict;
use crate::steady;
use isotherm::stats::Snapshot;
use isotherm_sfs::snapshot::LogSnapshot;

const DRIVE_WRITES_MIN: f64 = 2.0;
const WINDOW_DRIVE_WRITES_MIN: f64 = 1.0;
const VICTIMS_PER_STREAM_MIN: u64 = 10;
/// Largest difference of write amplification between parts of a recorded trace or of what a host writes, and of the free space of a device
/// that is judged by quarters.
const DIFFERENCE_MAX: f64 = 0.05;
/// The same of a pattern, parts of which are alike: what is left is drift, and slow drift goes on for several times as long as it was seen.
const PATTERN_DIFFERENCE_MAX: f64 = 0.025;
/// Above this share of requests that are no whole sectors, addresses are likely to be in another unit than bytes.
const RAGGED_MAX: f64 = 0.5;
/// Parts of the window among which the lowest and the highest write amplification are looked for.
const RANGE_PARTS: usize = 32;

/// What the verdict is about.
pub struct Evidence<'a> {
    /// Counters at the start of the last window.
    pub window_start: &'a Snapshot,
    /// Counters at the end.
    pub end: &'a Snapshot,
    /// Counters over time.
    pub recording: &'a Recording,
    /// Logical pages of the device.
    pub logical_pages: u64,
    /// Physical pages of the device.
    pub physical_pages: u64,
    /// Streams that the device writes to.
    pub streams: u64,
    /// Lines of the trace that were skipped, by permission.
    pub skipped_lines: u64,
    /// Share of the requests that do not begin and end at multiples of 512 bytes.
    pub ragged_share: f64,
    /// Why the device stopped before the trace ended, if it did.
    pub stopped: Option<&'a str>,
    /// How the trace came to the device.
    pub setting: &'a Setting<'a>,
}

/// Judges a run.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let Evidence { window_start, end, recording, logical_pages, streams, setting, .. } = *evidence;
    let capacity = logical_pages as f64;
    let drive_writes = end.host.pages_written as f64 / capacity;
    let drive_writes_window = (end.host.pages_written - window_start.host.pages_written) as f64 / capacity;
    // Above a device, a log's own cleaning is the collection: the device below may have nothing to collect.
    let collections = |s: &Snapshot| {
        s.sections.get::<LogSnapshot>().map_or(s.collector.collections, |log| log.counters.segments_cleaned)
    };
    let victims = collections(end) - collections(window_start);
    let quarters = recording.parts(window_start, 4);
    let rounds: Vec<f64> =
        recording.parts(window_start, steady::ROUNDS).into_iter().map(|r| r.unwrap_or(f64::NAN)).collect();

    let window = Window { recording, start: window_start, quarters: &quarters, setting };
    let beginning = Beginning::of(&window);
    let first_parts = beginning.as_ref().map_or(0, |beginning| (beginning.share * RANGE_PARTS as f64).ceil() as usize);
    let whole = recording.parts(window_start, 1)[0];

    let occupancy = recording.occupancy(window_start);
    let fullness = Fullness {
        occupancy,
        logical_pages,
        physical_pages: evidence.physical_pages,
        setting,
        trims: end.host.pages_trimmed > 0,
    };
    let light = fullness.light();

    // What stopped once stops again, however long it is to be.
    let advice = |text: &str| if evidence.stopped.is_some() { String::new() } else { format!("; {text}") };
    let mut reasons = Vec::new();
    if let Some(stopped) = evidence.stopped {
        reasons.push(format!("the run stopped before the trace ended: {stopped}"));
    }
    if drive_writes < DRIVE_WRITES_MIN {
        reasons.push(format!(
            "too short: {} drive writes in all, at least {DRIVE_WRITES_MIN} are needed{}",
            unlike(drive_writes, DRIVE_WRITES_MIN, 2),
            advice(&setting.longer())
        ));
    }
    if drive_writes_window < WINDOW_DRIVE_WRITES_MIN {
        reasons.push(format!(
            "the measured window is too short: {} drive writes, at least {WINDOW_DRIVE_WRITES_MIN} is needed{}",
            unlike(drive_writes_window, WINDOW_DRIVE_WRITES_MIN, 2),
            advice(&setting.wider())
        ));
    }
    if victims == 0 {
        let mapped = end.mapped_pages as f64 / capacity * 100.0;
        let fix = if light.is_some() { fullness.fix() } else { setting.longer() };
        reasons.push(format!(
            "garbage collection never ran in the measured window: {mapped:.0} % of the logical pages hold data{}",
            advice(&fix)
        ));
    } else if victims < VICTIMS_PER_STREAM_MIN * streams {
        reasons.push(format!(
            "only {victims} victims were collected in the measured window, at least {} are needed for {streams} stream{}",
            VICTIMS_PER_STREAM_MIN * streams,
            if streams == 1 { "" } else { "s" }
        ));
    }
    let replays = recording.replays(window_start).0;
    let again = setting.again(Comparison::replays_needed(&window));
    match Comparison::of(&window) {
        Some(compared) if compared.difference() > setting.difference_max() => {
            let [difference, allowed] = [compared.difference(), setting.difference_max()].map(|share| share * 100.0);
            let difference = unlike(difference, allowed, 1);
            let Comparison { earlier, later, names: [first, second], .. } = compared;
            reasons.push(format!(
                "not steady: write amplification is {earlier:.3} {first} and {later:.3} {second}, {difference} % apart where \
                 {allowed} % are allowed{}",
                advice(&again)
            ));
        }
        Some(compared) if compared.by_quarters => {
            let [middle, last] = [0.5, 1.0].map(|share| recording.mapped_at(window_start, share) as f64);
            // Write amplification goes about as the reciprocal of the free space, for whatever policy.
            let free = evidence.physical_pages as f64 - middle;
            if last - middle > DIFFERENCE_MAX * free {
                reasons.push(format!(
                    "not steady: the device was still filling, from {:.0} % live in the middle of the measured window to {:.0} % \
                     at its end{}",
                    middle / capacity * 100.0,
                    last / capacity * 100.0,
                    advice(&again)
                ));
            }
        }
        Some(_) => {}
        None => {
            let text = "not steady: the measured window is too small a part of the run to be judged";
            reasons.push(format!("{text}{}", advice(&setting.wider())));
        }
    }
    if evidence.skipped_lines > 0 {
        let lines = evidence.skipped_lines;
        let (lines, were) = if lines == 1 { ("a line".to_owned(), "was") } else { (format!("{lines} lines"), "were") };
        reasons.push(format!("{lines} of the trace could not be read and {were} skipped"));
    }
    if evidence.ragged_share > RAGGED_MAX {
        reasons.push(format!(
            "{:.0} % of the requests do not begin and end at multiples of 512 bytes: if the trace counts in sectors, convert it \
             to bytes",
            evidence.ragged_share * 100.0
        ));
    }
    let Occupancy { peak_pages, mean_pages } = occupancy;
    Verdict {
        valid: reasons.is_empty(),
        reasons,
        drive_writes,
        drive_writes_window,
        gc_ran: victims > 0,
        steady: steady::is_steady(&rounds),
        write_amplification_quarters: quarters,
        write_amplification_replays: replays,
        live_share_peak: peak_pages as f64 / capacity,
        live_share_mean: mean_pages / capacity,
        light,
        first_replay: setting
            .first_replay()
            .or_else(|| beginning.as_ref()?.caveat(whole?, setting))
            .or_else(|| setting.learning((end.host.pages_written - setting.pages_before) as f64 / capacity)),
        write_amplification_range: range(&recording.parts(window_start, RANGE_PARTS)[first_parts..]),
    }
}

/// `value`, which lies on the wrong side of `bound`, with `least` digits or as many as it takes to see that.
fn unlike(value: f64, bound: f64, least: usize) -> String {
    let digits = (least..9).find(|digits| format!("{value:.digits$}") != format!("{bound:.digits$}")).unwrap_or(9);
    format!("{value:.digits$}")
}

/// Lowest and highest of `parts`; nothing where one of them has no value.
fn range(parts: &[Option<f64>]) -> Option<[f64; 2]> {
    let values = parts.iter().copied().collect::<Option<Vec<f64>>>()?;
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some([least, most])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::AddressMode;
    use crate::recorder::Recorder;
    use crate::run_spec::{Precondition, Replay};
    use isotherm::cause::Cause;
    use isotherm::quantity::Share;

    const ONCE: Replay = Replay {
        address: AddressMode::Refuse,
        fill: Share(0.0),
        precondition: Precondition::None,
        repeat: 1,
        measure_last: None,
    };

    /// A workload without a period that is brought to an empty device once.
    static SETTING: Setting<'static> = Setting {
        replay: &ONCE,
        source: Source::Pattern,
        size_given: false,
        log_fills: false,
        page_bytes: 4096,
        touched_pages: None,
        filler_pages: 0,
        precondition_replays: Vec::new(),
        pages_before: 0,
        learns_for: 0,
    };

    fn snapshot(pages: u64, gc: u64) -> Snapshot {
        let mut s = Snapshot::default();
        s.host.pages_written = pages;
        s.medium.programs[Cause::Host] = pages;
        s.medium.copies[Cause::Gc] = gc;
        s.collector.collections = gc / 10;
        s.mapped_pages = 900;
        s
    }

    #[test]
    fn sectors_that_are_taken_for_bytes_are_a_reason() {
        let start = snapshot(0, 0);
        let recording = Recorder::new(&start, 4096).finish(&start);
        let evidence = |ragged_share| Evidence {
            window_start: &start,
            end: &start,
            recording: &recording,
            logical_pages: 1000,
            physical_pages: 1070,
            streams: 1,
            skipped_lines: 0,
            ragged_share,
            stopped: None,
            setting: &SETTING,
        };
        let told = |share| judge(&evidence(share)).reasons.iter().any(|reason| reason.contains("sectors"));
        assert!(told(1.0) && told(0.6) && !told(0.4) && !told(0.0));
    }

    /// A run of `total` writes on 1000 logical pages, with `gc(i)` copies made by write `i`.
    fn run(total: u64, gc: impl Fn(u64) -> u64) -> Verdict {
        run_from(&snapshot(0, 0), &SETTING, total, gc)
    }

    /// As [`run`], on a device that stands as `start` says.
    fn run_from(start: &Snapshot, setting: &Setting<'_>, total: u64, gc: impl Fn(u64) -> u64) -> Verdict {
        let mut recorder = Recorder::new(start, 4096);
        for i in 0..total {
            recorder.count(1);
            if recorder.window_is_full() {
                recorder.close_window(&snapshot(i + 1, gc(i + 1)));
            }
        }
        let end = snapshot(total, gc(total));
        let recording = recorder.finish(&end);
        judge(&Evidence {
            window_start: start,
            end: &end,
            recording: &recording,
            logical_pages: 1000,
            physical_pages: 1070,
            streams: 2,
            skipped_lines: 0,
            ragged_share: 0.0,
            stopped: None,
            setting,
        })
    }

    /// Nothing that a host writes can be replayed, so that no option of a replay is advised; what it wrote while the device filled up is
    /// told apart.
    #[test]
    fn a_host_is_advised_what_a_host_can_do() {
        let host = Setting { source: Source::Host, ..SETTING.clone() };
        let empty = Snapshot { mapped_pages: 0, ..snapshot(0, 0) };
        let says = |verdict: &Verdict| {
            let all = verdict.reasons.iter().chain(&verdict.light).chain(&verdict.first_replay);
            all.cloned().collect::<Vec<String>>().join("; ")
        };
        let wrong = [
            run_from(&empty, &host, 400, |_| 0),
            run_from(&empty, &host, 20_000, |i| i * i / 20_000),
            run_from(&empty, &host, 20_000, |i| (i / 2).saturating_sub(2_500)),
        ];
        for verdict in &wrong {
            assert!(says(verdict).contains("host write") || says(verdict).contains("count anew"), "{}", says(verdict));
            assert!(!says(verdict).contains("--"), "{}", says(verdict));
        }
        assert_eq!((wrong[2].valid, wrong[2].words()), (true, vec!["first"]), "{}", says(&wrong[2]));
        let full = run_from(&snapshot(0, 0), &host, 20_000, |i| (i / 2).saturating_sub(2_500));
        assert_eq!(full.words(), ["yes"], "nothing was filled: {}", says(&full));
    }

    /// Nothing in a window shows what a placement still learns: it is said as long as it may, of a pattern on a device that was filled with something else.
    #[test]
    fn a_placement_that_may_still_learn_is_told() {
        let replay = |precondition| Replay { precondition, ..ONCE };
        let run_of = |precondition, source, learns_for, (pages_before, drive_writes): (u64, u64)| {
            let replay = replay(precondition);
            let setting = Setting { replay: &replay, source, learns_for, pages_before, ..SETTING.clone() };
            run_from(&snapshot(0, 0), &setting, drive_writes * 1000, |i| i / 2)
        };
        let early = run_of(Precondition::Random, Source::Pattern, 16, (2000, 17));
        assert_eq!((early.valid, early.words()), (true, vec!["first"]));
        let (name, text) = early.caveats()[0];
        assert_eq!(name, "early for a placement that learns");
        assert!(
            text.contains("16 drive writes") && text.contains("made 15.0;") && text.contains("--precondition trace"),
            "{text}"
        );
        assert_eq!(run_of(Precondition::Sequential, Source::Pattern, 16, (0, 15)).words(), ["first"]);
        for (precondition, source, learns_for, drive_writes) in [
            (Precondition::Trace, Source::Pattern, 16, (0, 15)),
            (Precondition::Random, Source::Trace, 16, (0, 15)),
            (Precondition::Random, Source::Pattern, 0, (0, 15)),
            (Precondition::Random, Source::Pattern, 16, (0, 17)),
        ] {
            let verdict = run_of(precondition, source, learns_for, drive_writes);
            assert_eq!(verdict.words(), ["yes"], "{precondition:?}, {source:?}: {:?}", verdict.first_replay);
        }
    }

    /// What differs by a little more than is allowed does not read as what is allowed.
    #[test]
    fn a_bound_that_is_missed_by_little_is_told_in_enough_digits() {
        assert_eq!((unlike(2.53, 2.5, 1), unlike(2.501, 2.5, 1)), ("2.53".to_owned(), "2.501".to_owned()));
        assert_eq!((unlike(12.3, 5.0, 1), unlike(1.9999, 2.0, 2)), ("12.3".to_owned(), "1.9999".to_owned()));
    }

    #[test]
    fn a_long_steady_run_is_valid() {
        let verdict = run(20_000, |i| i / 2);
        assert_eq!(verdict.reasons, [""; 0]);
        assert!(verdict.valid && verdict.steady && verdict.gc_ran);
        assert_eq!(verdict.drive_writes, 20.0);
    }

    /// Phases of a workload: every quarter is like the others, though nothing within them is steady.
    #[test]
    fn a_swing_within_quarters_is_said() {
        let phases = |i: u64| i / 2_500 * 1_250 + (i % 2_500).saturating_sub(1_250);
        let verdict = run(20_000, phases);
        assert!(verdict.valid, "{:?}", verdict.reasons);
        let [least, most] = verdict.swing().expect("write amplification swings between 1 and 2");
        assert!(least < 1.1 && most > 1.9, "{least} to {most}");
        assert_eq!(run(20_000, |i| i / 2).swing(), None);
    }

    #[test]
    fn each_failed_point_is_a_reason() {
        let only = |verdict: Verdict, text: &str| {
            assert!(!verdict.valid);
            assert_eq!(verdict.reasons.len(), 1, "{:?}", verdict.reasons);
            assert!(verdict.reasons[0].contains(text), "{:?}", verdict.reasons);
        };
        only(run(1_900, |i| i / 2), "1.90 drive writes");
        only(run(20_000, |_| 0), "never ran");
        only(run(20_000, |i| i / 105), "only 19 victims");
        only(run(20_000, |i| if i > 15_000 { i / 2 + (i - 15_000) / 5 } else { i / 2 }), "not steady");
    }
}
