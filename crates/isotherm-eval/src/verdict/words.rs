//! A verdict in words, for tables, legends and sentences.

use super::light::APART;
use crate::results::Verdict;

impl Verdict {
    /// Whether the result can be trusted, in words: `yes`, what it is beside valid (`light`, `first`), or `no`.
    pub fn words(&self) -> Vec<&'static str> {
        let caveats = [(&self.light, "light"), (&self.first_replay, "first")];
        let held: Vec<_> = caveats.into_iter().filter(|(text, _)| text.is_some()).map(|(_, word)| word).collect();
        match (self.valid, held.is_empty()) {
            (false, _) => vec!["no"],
            (true, true) => vec!["yes"],
            (true, false) => held,
        }
    }

    /// What [`words`](Self::words) mean, where those of `verdicts` are not plain; else nothing.
    pub fn legend<'a>(verdicts: impl IntoIterator<Item = &'a Self>) -> &'static str {
        let has_caveats = verdicts.into_iter().any(|verdict| verdict.valid && !verdict.caveats().is_empty());
        if !has_caveats {
            return "";
        }
        "light is valid, but the device was less than 80 % live on the mean, or pages of the workload were still to be written for the \
         first time, so that cleaning was cheap; first is valid, but \
         counts in how it began, with an empty device, with one that was not steady yet or with a placement that may still learn, and \
         what comes later costs more or less"
    }

    /// How full the device was, in words: at the peak, and on the mean where that lies far from it.
    pub fn live(&self) -> String {
        let [peak, mean] = [self.live_share_peak, self.live_share_mean].map(|share| share * 100.0);
        if self.live_share_peak - self.live_share_mean > APART {
            format!("{peak:.0} % live at the peak, {mean:.0} % on the mean")
        } else {
            format!("{peak:.0} % live")
        }
    }

    /// What a result is beside valid: a name, and what is to be known of it.
    pub fn caveats(&self) -> Vec<(&str, &str)> {
        let light = self.light.as_deref().map(|text| ("light", text));
        let first = self.first_replay.as_deref().map(|text| text.split_once(": ").unwrap_or((text, "")));
        light.into_iter().chain(first).collect()
    }
}
