//! What the split of the DRAM counts: its decisions.

use crate::dram::ghost::{GhostAuditCounters, GhostAuditResults};
use crate::stats::Counter;

/// Decisions that are kept at most.
const KEPT_MAX: usize = 1024;

/// One decision on the split of the DRAM.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SplitDecision {
    /// Requests so far.
    pub requests: u64,
    /// The map's share of the DRAM after the decision.
    pub mapping_share: f64,
    /// Nanoseconds of flash time that a byte more of buffer would have saved in the interval.
    pub cost_benefit_buffer: f64,
    /// Nanoseconds of flash time that a byte more of map would have saved.
    pub cost_benefit_mapping: f64,
}

/// Decisions over time: every 2^n-th of them, n growing so that no more are kept than can be drawn.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SplitDecisions {
    /// Those that are kept.
    pub kept: Vec<SplitDecision>,
    /// Requests before the last decision.
    requests: u64,
    log2_stride: u8,
}

impl SplitDecisions {
    /// Adds a decision, before which there were `earlier` others.
    fn record(&mut self, decision: SplitDecision, earlier: u64) {
        if earlier.trailing_zeros() >= u32::from(self.log2_stride) {
            self.kept.push(decision);
        }
        self.requests = decision.requests;
        if self.kept.len() > KEPT_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.log2_stride += 1;
        }
    }
}

impl Counter for SplitDecisions {
    /// The later decisions; their requests are counted from the last decision of `earlier`.
    fn since(&self, earlier: &Self) -> Self {
        let later = self.kept.iter().filter(|decision| decision.requests > earlier.requests);
        Self {
            kept: later.map(|d| SplitDecision { requests: d.requests - earlier.requests, ..*d }).collect(),
            requests: self.requests - earlier.requests,
            log2_stride: self.log2_stride,
        }
    }
    fn plus(&self, later: &Self) -> Self {
        let then = later.kept.iter().map(|d| SplitDecision { requests: d.requests + self.requests, ..*d });
        Self {
            kept: self.kept.iter().copied().chain(then).collect(),
            requests: self.requests + later.requests,
            log2_stride: later.log2_stride,
        }
    }
}

crate::counters! {
    /// The split of DRAM between mapping and buffer.
    pub struct SplitCounters: SplitResults in "split" {
        /// Decisions so far.
        unreported decisions: u64,
        /// Sum of the map's shares after each.
        unreported share_sum: f64,
        /// Decisions over time.
        unreported series: SplitDecisions,
        /// The bitmap ghost of the rule, where an exact one audits it.
        unreported ghost_audit: Option<GhostAuditCounters>,
        /// Share of the mapping, averaged over the decisions; the last share where nothing was decided.
        fn mapping_share_mean(&self) -> f64 {
            if self.decisions == 0 { self.mapping_share_last } else { self.share_sum / self.decisions as f64 }
        }
        /// Share of the mapping at the end.
        latest mapping_share_last: f64,
        /// Decisions over time; absent for a split that stays.
        fn series(&self) -> Option<SplitSeries> {
            SplitSeries::of(&self.series.kept)
        }
        /// The ghost mapping's bitmap against an exact ghost; absent where the rule keeps no such audit.
        fn ghost_audit(&self) -> Option<GhostAuditResults> {
            Some(self.ghost_audit?.results())
        }
    }
}

impl SplitCounters {
    /// Adds a decision.
    pub(super) fn record(&mut self, decision: SplitDecision) {
        self.series.record(decision, self.decisions);
        self.decisions += 1;
        self.share_sum += decision.mapping_share;
        self.mapping_share_last = decision.mapping_share;
    }
}

crate::results! {
    /// Decisions on the split over time, or every 2^n-th of them. All lists are of one length.
    pub struct SplitSeries {
        /// Requests since the start of the measured run.
        requests: Vec<u64>,
        /// Share of the mapping after the decision.
        mapping_share: Vec<f64>,
        /// Nanoseconds of flash time that a byte more of buffer would have saved, as the rule sees it.
        cost_benefit_buffer: Vec<f64>,
        /// Nanoseconds of flash time that a byte more of mapping would have saved.
        cost_benefit_mapping: Vec<f64>,
    }
}

impl SplitSeries {
    /// The decisions, unless they never compared costs: a split that stays has none to compare.
    fn of(decisions: &[SplitDecision]) -> Option<Self> {
        let mut series = Self::default();
        for decision in decisions {
            series.requests.push(decision.requests);
            series.mapping_share.push(decision.mapping_share);
            series.cost_benefit_buffer.push(decision.cost_benefit_buffer);
            series.cost_benefit_mapping.push(decision.cost_benefit_mapping);
        }
        let mut benefits = series.cost_benefit_buffer.iter().chain(&series.cost_benefit_mapping);
        benefits.any(|benefit| *benefit != 0.0).then_some(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(counters: &mut SplitCounters, requests: std::ops::Range<u64>) {
        for requests in requests {
            let share = requests as f64 / 4096.0;
            counters.record(SplitDecision {
                requests,
                mapping_share: share,
                cost_benefit_buffer: 1.0,
                ..Default::default()
            });
        }
    }

    #[test]
    fn a_window_counts_its_own_decisions_and_requests() {
        let mut counters = SplitCounters::default();
        record(&mut counters, 1..101);
        let early = counters.clone();
        record(&mut counters, 101..111);
        let window = counters.since(&early);
        assert_eq!(window.series.kept.iter().map(|d| d.requests).collect::<Vec<_>>(), (1..11).collect::<Vec<_>>());
        assert_eq!((window.mapping_share_mean(), window.mapping_share_last), (105.5 / 4096.0, 110.0 / 4096.0));
        assert_eq!(early.plus(&window), counters);
        let nothing = counters.since(&counters);
        assert_eq!((nothing.mapping_share_mean(), nothing.series()), (110.0 / 4096.0, None));
    }

    #[test]
    fn many_decisions_are_thinned_evenly() {
        let mut counters = SplitCounters::default();
        record(&mut counters, 1..5001);
        let kept = &counters.series.kept;
        assert!(kept.len() > KEPT_MAX / 2 && kept.len() <= KEPT_MAX, "{} are kept", kept.len());
        assert!(kept.windows(2).all(|pair| pair[1].requests - pair[0].requests == 8), "{kept:?}");
        assert_eq!(counters.decisions, 5000);
    }
}
