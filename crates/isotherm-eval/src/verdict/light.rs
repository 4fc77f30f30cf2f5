//! What is said of a drive that was never full enough, and what would fill it.
//!
//! Cleaning costs what the drive's occupancy makes it cost while pages are written, so a drive is light by its mean occupancy over
//! the host's writes. The peak bounds it from above, and alone it would flatter: preconditioning writes every page, and so the
//! peak of a trace that trims is 100 % whatever it keeps later. Both are told where they lie apart. Where one replay of
//! an empty device is all there is, the peak counts: that the device was filling says nothing of what the trace keeps, and is a
//! caveat of its own.
//!
//! A drive is light too while pages of a pattern wait for their first write: a twentieth of the spare space more changes write
//! amplification by about as much, and they will all be written in time. What a recorded trace does not write is not known to be data.
//!
//! What is advised is computed from what the trace keeps live, and never is what the run does already.

use super::{DIFFERENCE_MAX, Setting, Source};
use crate::fold::AddressMode;
use crate::recorder::Occupancy;
use crate::run_spec::Precondition;
use isotherm::quantity::ByteSize;

/// A device that is live by less, on average, is light.
const LIVE_SHARE_MIN: f64 = 0.80;
/// What is advised is to reach this: more than the least, since occupancy is known at the ends of windows alone.
const LIVE_SHARE_WANTED: f64 = 0.82;
/// The share that is advised to be filled.
const FILL: f64 = 0.90;
/// Sizes that are advised are whole multiples of this.
const SIZE_STEP_BYTES: u64 = 1 << 20;
/// Peak and mean that lie further apart are both told.
pub(super) const APART: f64 = 0.05;

/// How full a device was, and why.
pub(super) struct Fullness<'a> {
    pub occupancy: Occupancy,
    pub logical_pages: u64,
    pub physical_pages: u64,
    pub setting: &'a Setting<'a>,
    /// Whether the host trimmed.
    pub trims: bool,
}

impl Fullness<'_> {
    fn share(&self, pages: f64) -> f64 {
        pages / self.logical_pages as f64
    }

    /// Pages that count.
    fn pages(&self) -> f64 {
        if self.setting.is_first_replay() { self.occupancy.peak_pages as f64 } else { self.occupancy.mean_pages }
    }

    /// The caveat, where there is one.
    pub fn light(&self) -> Option<String> {
        let [peak, mean] = [self.occupancy.peak_pages as f64, self.occupancy.mean_pages].map(|pages| self.share(pages));
        if self.share(self.pages()) >= LIVE_SHARE_MIN {
            return self.unwritten();
        }
        let fix = self.fix();
        let [peak, mean] = [peak, mean].map(|share| share * 100.0);
        // First the number that counts.
        let held = if self.setting.is_first_replay() {
            format!("at most {peak:.0} % of the logical pages held data")
        } else if peak - mean >= 1.0 {
            format!("{mean:.0} % of the logical pages held data on average, and {peak:.0} % at most")
        } else {
            format!("{mean:.0} % of the logical pages held data")
        };
        Some(format!("{held}, so that cleaning was cheap; {fix}"))
    }

    /// What is to be said of pages of a pattern that are still to be written, if they are many.
    fn unwritten(&self) -> Option<String> {
        let setting = self.setting;
        let stay = setting.source == Source::Pattern && setting.began_empty() && !self.trims;
        let named = setting.touched_pages.filter(|_| stay)?;
        let all = (named + setting.filler_pages) as f64;
        let missing = all - self.occupancy.peak_pages as f64;
        let spare = self.physical_pages as f64 - all;
        (missing > DIFFERENCE_MAX * spare).then(|| {
            format!(
                "{:.1} % of the workload's pages were not written yet, which adds {:.0} % to the spare space; \
                 --precondition sequential writes them first",
                missing / named as f64 * 100.0,
                missing / spare * 100.0
            )
        })
    }

    /// What would fill it.
    pub fn fix(&self) -> String {
        let setting = self.setting;
        if setting.source == Source::Host {
            return "fill the rest of the device, or make a smaller one".to_owned();
        }
        let logical = self.logical_pages as f64;
        let filler = setting.filler_pages as f64;
        let compact = setting.replay.address == AddressMode::Compact;
        // What a trace that trims keeps during its first replay, it keeps during later ones at least; what does not trim keeps all.
        let live = if self.trims { self.occupancy.mean_pages } else { self.pages() };
        let touched = setting.touched_pages.map_or(self.occupancy.peak_pages as f64 - filler, |pages| pages as f64);
        // What the trace keeps live, and what it uses at all: as much as it ever kept, if that is not known. Its trims may reach the
        // filler; they have where less is live than that.
        let may_trim_filler = self.trims && !compact;
        let own = if may_trim_filler && live < filler { live.min(touched) } else { (live - filler).max(0.0) };
        let touched = touched.max(own);
        if setting.log_fills {
            return "a larger --utilisation puts more filler beside what the trace keeps".to_owned();
        }
        let is_enough = |live: f64, of: f64| live >= LIVE_SHARE_WANTED * of;
        let mut ways = Vec::new();
        if is_enough(own, touched) {
            if !compact && !setting.size_given {
                let no_filler = if setting.replay.fill.0 > 0.0 { " --fill 0%" } else { "" };
                ways.push(format!("--address compact{no_filler} leaves out what the trace does not touch"));
            } else if compact && setting.size_given && setting.replay.fill.0 == 0.0 {
                ways.push("without --logical-size the device is as large as what the trace touches".to_owned());
            }
        }
        if setting.replay.fill.0 < FILL
            && !may_trim_filler
            && FILL * logical > touched
            && is_enough(own + FILL * logical - touched, logical)
        {
            ways.insert(0, format!("--fill {:.0}% fills the rest", FILL * 100.0));
        }
        let stays = !self.trims && setting.replay.precondition == Precondition::None;
        if ways.is_empty() && stays && own < touched && is_enough(touched + filler, logical) {
            ways.push("what the trace did not write, or not yet, --precondition sequential writes first".to_owned());
        }
        if ways.is_empty() {
            let fill = setting.replay.fill.0.max(FILL);
            let least = if compact { logical } else { 0.0 };
            let pages = ((touched - own) / (fill - LIVE_SHARE_WANTED)).max(touched / fill).max(least);
            let bytes = (pages * setting.page_bytes as f64) as u64;
            let size = ByteSize((bytes + 1).next_multiple_of(SIZE_STEP_BYTES));
            let address = if may_trim_filler { "--address compact " } else { "" };
            ways.push(format!(
                "of what the trace touches, it keeps {:.0} %: {address}--logical-size {size} --fill {}% fills around it",
                own / touched.max(1.0) * 100.0,
                (fill * 1e4).round() / 1e2
            ));
        }
        ways.join(", ")
    }
}
