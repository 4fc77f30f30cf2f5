//! What of a run is compared to tell whether it is steady, and whether its beginning is like the rest.

use super::{Setting, Source};
use crate::recorder::Recording;
use crate::run_spec::Precondition;
use crate::steady;
use isotherm::stats::Snapshot;

/// Two stretches of a run whose write amplification is compared.
pub(super) struct Comparison {
    pub earlier: f64,
    pub later: f64,
    pub names: [String; 2],
    /// Whether they are quarters of the window.
    pub by_quarters: bool,
}

/// The last window of a run, and how the trace came to the device.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    pub recording: &'a Recording,
    pub start: &'a Snapshot,
    /// Write amplification in each quarter of it.
    pub quarters: &'a [Option<f64>],
    pub setting: &'a Setting<'a>,
}

/// The mean of values that are all known; nothing for none.
fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The last replays and as many before them: the more there are the more of them, since a steady device swings from one to the next.
fn last_and_before(replays: &[Option<f64>]) -> Option<Comparison> {
    let count = (replays.len() / 2).min(steady::ROUNDS);
    let (before, last) = replays.split_at_checked(replays.len() - count)?;
    let names = match count {
        1 => ["in the last replay but one".to_owned(), "in the last".to_owned()],
        _ => [format!("over {count} replays"), format!("over the {count} after them, which are the last")],
    };
    let earlier = mean(&before[before.len().checked_sub(count)?..])?;
    Some(Comparison { earlier, later: mean(last)?, names, by_quarters: false })
}

impl Comparison {
    /// What can be compared best: whole replays, without the first where it is unlike the others; parts of them where the first one fills
    /// an empty device; quarters. `None` if there are too few writes.
    pub fn of(window: &Window<'_>) -> Option<Self> {
        let Window { recording, start, quarters, setting } = *window;
        let (within, has_first) = recording.replays(start);
        let is_filled_within = has_first && setting.began_empty();
        let is_left_out = has_first && setting.leaves_first_out(within.len());
        match within[usize::from(is_left_out).min(within.len())..] {
            [_] if is_filled_within => {
                let names = ["in the second half of the first replay", "in that of the second"].map(str::to_owned);
                return Some(Self { earlier: quarters[1]?, later: quarters[3]?, names, by_quarters: false });
            }
            ref replays @ [_, .., _] => return last_and_before(replays),
            // The window holds one replay, or a part of one, and what it can be compared with lies before it.
            _ => {}
        }
        let measured = recording.all_replays();
        match (measured.as_slice(), setting.last_preconditioning()) {
            _ if setting.source != Source::Trace => Self::of_quarters(quarters),
            ([only], Some(before)) => {
                let names = ["over the last replays that preconditioned the device", "in the measured one"];
                Some(Self { earlier: before, later: (*only)?, names: names.map(str::to_owned), by_quarters: false })
            }
            // The second of two cannot be compared with the first, which filled the device.
            ([_, _], _) if setting.began_empty() => Self::of_quarters(quarters),
            ([.., earlier, later], _) => last_and_before(&[*earlier, *later]),
            _ => Self::of_quarters(quarters),
        }
    }

    /// Replays of the trace in all with which the run would have been steady, were those to come like the last one: so many that what
    /// differs is left out or outweighed. `None` where too few replays were seen to be compared.
    pub fn replays_needed(window: &Window<'_>) -> Option<u32> {
        let Window { recording, start, setting, .. } = *window;
        let (within, has_first) = recording.replays(start);
        let mut all = recording.all_replays();
        let last = *all.last()?;
        if within.len() < 2 || has_first && setting.leaves_first_out(3) && within.len() < 3 {
            return None;
        }
        let seen = setting.replay.repeat;
        // Behind twice the rounds all that is compared is like the last one.
        (seen.saturating_add(1)..=seen.saturating_add(2 * steady::ROUNDS as u32)).find(|_| {
            all.push(last);
            let window = if setting.replay.measure_last.is_some() { within.len() } else { all.len() };
            let is_left_out = window == all.len() && setting.leaves_first_out(window);
            let compared = last_and_before(&all[all.len() - window + usize::from(is_left_out)..]);
            // Half of what is allowed is left for what the ones to come differ by.
            compared.is_some_and(|compared| compared.difference() <= setting.difference_max() / 2.0)
        })
    }

    fn of_quarters(quarters: &[Option<f64>]) -> Option<Self> {
        let names = ["in the third quarter of the measured window", "in the last"].map(str::to_owned);
        Some(Self { earlier: quarters[2]?, later: quarters[3]?, names, by_quarters: true })
    }

    pub fn difference(&self) -> f64 {
        (self.later - self.earlier).abs() / self.earlier
    }
}

/// The part of the window that its beginning may have made unlike what comes later: while an empty device filled up, or while what was
/// written in order or at random before turned into what the workload makes of it.
pub(super) struct Beginning {
    /// Share of the window.
    pub share: f64,
    /// Whether the device was filled in it.
    fills: bool,
    /// Write amplification after it.
    later: f64,
    /// What that is the mean of.
    what: &'static str,
}

impl Beginning {
    /// `None` where the window has no such part, or nothing after it.
    pub fn of(window: &Window<'_>) -> Option<Self> {
        let Window { recording, start, quarters, setting } = *window;
        let fills = setting.began_empty();
        let second_half = || Some(Self { share: 0.5, fills, later: mean(&quarters[2..])?, what: "second half" });
        if setting.source == Source::Host {
            // A drive may hold data from before it was served, and a host may stop counting what it wrote first.
            let was_filled = 2 * start.mapped_pages < recording.mapped_at(start, 1.0);
            return if was_filled { second_half() } else { None };
        }
        let (within, has_first) = recording.replays(start);
        match within.as_slice() {
            // Replayed until it was steady, it begins as it goes on.
            _ if setting.replay.precondition == Precondition::Trace => None,
            // A later part of what is drawn from a pattern may begin before the device is steady too.
            _ if !has_first && setting.source == Source::Pattern => {
                second_half().map(|beginning| Self { fills: false, ..beginning })
            }
            _ if !has_first => None,
            [_, later @ ..] if !later.is_empty() => {
                Some(Self { share: 1.0 / within.len() as f64, fills, later: mean(later)?, what: "replays after it" })
            }
            // What is drawn from a pattern is the same throughout, but for the room that there was.
            _ if setting.source == Source::Pattern => second_half(),
            _ => None,
        }
    }

    /// Why the write amplification of the window says little of what comes later, if it does.
    pub fn caveat(&self, whole: f64, setting: &Setting<'_>) -> Option<String> {
        let Self { later, what, fills, .. } = *self;
        let it = if fills { "filling of an empty device" } else { "beginning, before the device was steady" };
        ((whole - later).abs() > setting.difference_max() * later).then(|| {
            format!(
                "with the {it}: write amplification is {whole:.3} with it and {later:.3} in the {what}; {}",
                setting.without_beginning()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays that swing by 5 % around one value are steady however many there are, and ones that drift are not.
    #[test]
    fn more_replays_are_compared_by_more_of_them() {
        let difference = |replays: &[f64]| {
            let replays: Vec<Option<f64>> = replays.iter().copied().map(Some).collect();
            last_and_before(&replays).unwrap().difference()
        };
        let swinging = |count: usize| (0..count).map(|at| [2.9, 3.05, 3.0, 2.95][at % 4]).collect::<Vec<f64>>();
        for count in 2..=12 {
            assert!(difference(&swinging(count)) < 0.055, "{count} replays: {}", difference(&swinging(count)));
        }
        assert!(difference(&swinging(8)) < 0.001);
        let drifting: Vec<f64> = (0..9).map(|at| 2.0 * 1.03f64.powi(at)).collect();
        assert!(difference(&drifting) > 0.1);
        assert!(last_and_before(&[Some(1.0), None]).is_none() && last_and_before(&[]).is_none());
    }
}
