//! Distributions and time series of a run: what the report draws.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Counters over time, one value per window of host page writes. All lists are of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Host pages written in a window (the last may hold fewer).
    pub window_host_pages: u64,
    /// Host pages written since the start of the measured run, at the end of each window.
    pub host_pages_written: Vec<u64>,
    /// Write amplification within each window.
    pub write_amplification: Vec<Option<f64>>,
    /// Pages programmed within each window, by cause; causes that never occur are left out.
    pub pages_programmed: Map<String, Value>,
    /// Victims collected within each window.
    pub gc_count: Vec<u64>,
    /// Mean invalid share of the victims of each window.
    pub victim_invalid_share: Vec<Option<f64>>,
    /// Flash time within each window.
    pub flash_time_ns: Vec<u64>,
    /// Flash time for each page that the host wrote, within each window.
    #[serde(default)]
    pub flash_time_per_host_page_ns: Vec<Option<f64>>,
    /// Host bytes of whole pages written within each window, by its flash time.
    #[serde(default)]
    pub write_throughput_bytes_per_second: Vec<Option<f64>>,
}

impl Series {
    /// Host pages written at the end of each window that is long enough to be drawn beside the others: the last one may hold so
    /// few writes that a single collection makes a peak.
    pub fn ends_to_draw(&self) -> &[u64] {
        match self.host_pages_written.as_slice() {
            [whole @ .., before, last] if 2 * (last - before) < self.window_host_pages => {
                &self.host_pages_written[..=whole.len()]
            }
            all => all,
        }
    }
}

/// Victims by their share of invalid pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VictimHistogram {
    /// Lower edge of each bucket, as an invalid share; the last bucket holds wholly invalid victims alone.
    pub invalid_share_from: Vec<f64>,
    /// Victims in each bucket.
    pub count: Vec<u64>,
}

/// Blocks by some number of theirs (erases, or the share of their pages that is valid). Bucket `i` holds `from[i] <= number < from[i + 1]`; the last is closed by `max`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockHistogram {
    /// Lower edge of each bucket.
    pub from: Vec<f64>,
    /// Upper end of the last bucket, inclusive.
    pub max: f64,
    /// Blocks in each bucket.
    pub count: Vec<u64>,
}

/// Requests by latency and operation. Bucket `k` reaches from the previous bucket's end to 1 us x 2^k.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyDistribution {
    /// Reads.
    pub read: Vec<LatencyBucket>,
    /// Writes.
    pub write: Vec<LatencyBucket>,
}

/// Requests in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Upper edge of the bucket, inclusive.
    pub up_to_ns: u64,
    /// Requests in it.
    pub count: u64,
    /// What they took together, to three digits.
    #[serde(default)]
    pub total_ns: u64,
}

/// Host page writes by address (rows, lowest first) and time (columns, in host page writes since the measured start).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriteHeat {
    /// Bytes of address space that one row covers.
    pub row_bytes: u64,
    /// Host page writes that one column covers.
    pub column_host_pages: u64,
    /// Page writes by row and column: `counts[row][column]`.
    pub counts: Vec<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_window_of_few_writes_is_not_drawn() {
        let drawn = |ends: &[u64]| {
            let series = Series { window_host_pages: 100, host_pages_written: ends.to_vec(), ..Series::default() };
            series.ends_to_draw().len()
        };
        assert_eq!(drawn(&[100, 200, 249]), 2);
        assert_eq!(drawn(&[100, 200, 250]), 3);
        assert_eq!((drawn(&[30]), drawn(&[])), (1, 0));
    }
}
