//! How a trace came to a device, and what follows from it for advice: nothing that is in force is advised again.

use super::{DIFFERENCE_MAX, PATTERN_DIFFERENCE_MAX};
use crate::fold::AddressMode;
use crate::run_spec::{Precondition, Replay};
use crate::steady;

/// Where the writes of a device come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A recorded trace, of which parts differ and replays are alike.
    Trace,
    /// A pattern that is drawn from: the same throughout, without a period.
    Pattern,
    /// A host that asks for what it likes, nothing of which can be brought again.
    Host,
}

/// How a trace came to a device.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// The replay that was asked for.
    pub replay: &'a Replay,
    /// Where the writes come from.
    pub source: Source,
    /// Whether the logical size was given.
    pub size_given: bool,
    /// Whether the log says how much filler there is.
    pub log_fills: bool,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Logical pages that the trace reads or writes, where that was looked at, or that the pattern names.
    pub touched_pages: Option<u64>,
    /// Logical pages that hold filler.
    pub filler_pages: u64,
    /// Write amplification of each replay of the trace that preconditioned the device.
    pub precondition_replays: Vec<Option<f64>>,
    /// Pages that were written before the workload began.
    pub pages_before: u64,
    /// Drive writes that the placement may learn for, on a device that holds what it did not sort; 0 where there is nothing to learn.
    pub learns_for: u32,
}

impl Setting<'_> {
    /// Largest difference of write amplification between parts of a run that is steady.
    pub(super) fn difference_max(&self) -> f64 {
        if self.source == Source::Pattern { PATTERN_DIFFERENCE_MAX } else { DIFFERENCE_MAX }
    }

    /// Whether nothing of the trace's own was written before it was first replayed.
    pub(super) fn began_empty(&self) -> bool {
        self.replay.precondition == Precondition::None
    }

    /// Whether the run is one replay on a device that held nothing of the trace.
    pub(super) fn is_first_replay(&self) -> bool {
        self.began_empty() && self.replay.repeat == 1
    }

    /// Whether the first of so many replays is compared with none: it fills the device, or meets what another workload left, and the mean
    /// that counts it in is told apart. Two replays of a full device are compared all the same, as there is nothing else.
    pub(super) fn leaves_first_out(&self, replays: usize) -> bool {
        let meets_other_data = self.source == Source::Trace && self.replay.precondition != Precondition::Trace;
        self.began_empty() || meets_other_data && replays > 2
    }

    /// Mean of the last replays that preconditioned the device: of as many as steadiness is judged by, since a device that is steady
    /// swings from one to the next.
    pub(super) fn last_preconditioning(&self) -> Option<f64> {
        let replays = &self.precondition_replays;
        let last: Vec<f64> =
            replays[replays.len().saturating_sub(steady::ROUNDS)..].iter().copied().flatten().collect();
        (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
    }

    /// What to do about a run that is not steady, for which the replays seen ask for `replays_needed` in all, where they tell.
    pub(super) fn again(&self, replays_needed: Option<u32>) -> String {
        if self.source == Source::Host {
            return "let the host write on, and begin to count anew".to_owned();
        }
        let repeat = match self.source {
            // To be steady takes several drive writes, and a pattern may be drawn from for less at a time.
            Source::Pattern => self.replay.repeat.saturating_add(1).saturating_mul(4),
            _ => replays_needed.unwrap_or_else(|| self.replay.repeat.saturating_add(2)),
        };
        let repeat = format!("--repeat {repeat}");
        match self.replay.precondition {
            Precondition::Trace => format!("use {repeat}"),
            _ => format!("use --precondition trace, which replays it until it is, or {repeat}"),
        }
    }

    /// What to do about a run that is too short.
    pub(super) fn longer(&self) -> String {
        if self.source == Source::Host {
            return "let the host write more".to_owned();
        }
        let mut ways = vec!["--repeat"];
        if self.began_empty() {
            ways.push("--precondition");
        }
        if self.size_given {
            ways.push("a smaller --logical-size");
        } else if self.replay.address != AddressMode::Compact {
            ways.push("--address compact");
        }
        match ways.split_last() {
            Some((last, first)) if !first.is_empty() => format!("use {} or {last}", first.join(", ")),
            _ => format!("use {}", ways.concat()),
        }
    }

    /// What to do about a measured window that is too short.
    pub(super) fn wider(&self) -> String {
        match (self.source, self.replay.measure_last) {
            (Source::Host, _) => self.longer(),
            (_, Some(_)) => "use --repeat or a larger --measure-last".to_owned(),
            (_, None) => "use --repeat".to_owned(),
        }
    }

    /// What leaves out of a mean what was written before the device was steady.
    pub(super) fn without_beginning(&self) -> &'static str {
        if self.source == Source::Host {
            "to leave it out, begin to count anew once the device is full"
        } else {
            "--precondition trace leaves it out"
        }
    }

    /// Why so many drive writes of the workload may be too early for a placement that learns, if they may be. What it did not sort it sorts as it is
    /// rewritten, and so long as that takes write amplification may stay where it was and fall later: nothing in the window shows it.
    pub(super) fn learning(&self, drive_writes: f64) -> Option<String> {
        let was_filled = matches!(self.replay.precondition, Precondition::Sequential | Precondition::Random);
        let learns = self.source == Source::Pattern && was_filled && drive_writes < f64::from(self.learns_for);
        learns.then(|| {
            format!(
                "early for a placement that learns: the device was filled with what it did not sort, which it may take {} drive writes to outgrow, \
                 and the workload made {drive_writes:.1}; write amplification may change until then; --precondition trace lets it learn first",
                self.learns_for
            )
        })
    }

    /// Why the only replay of a trace says little of later ones, if it does.
    pub(super) fn first_replay(&self) -> Option<String> {
        let is_first = self.is_first_replay() && self.source == Source::Trace;
        let held = if self.filler_pages > 0 { "a device that held filler alone" } else { "an empty device" };
        is_first.then(|| {
            format!(
                "the first replay of {held}: a part of it was written while there was room; --precondition trace shows what later ones cost"
            )
        })
    }
}
