//! The drives of the SFS slides, as far as they say what they cost: what a log's write cost is counted in.

use isotherm::registry::Entry;

/// Speeds of a drive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Drive {
    /// Sequential writes, in bytes per second.
    pub sequential_write_bytes_per_second: f64,
    /// Random writes of 4 KiB, in bytes per second.
    pub random_write_bytes_per_second: f64,
    /// Time of a random read of 4 KiB over that of writing 4 KiB in sequence.
    pub read_cost: f64,
}

impl Drive {
    /// Bytes of the host that a log writes in a second at a write cost: the drive is busy with nothing else.
    pub fn log_throughput_bytes_per_second(&self, write_cost: f64) -> f64 {
        self.sequential_write_bytes_per_second / write_cost
    }
}

/// The slides give the cost of SSD-M's reads only through its write cost, `1 + 9.21 (WA - 1)`: a block moved is read for 8.21
/// and written for 1. They say nothing of the reads of the other two, which are given the same ratio.
const READ_COST: f64 = 8.21;

const fn drive(
    name: &'static str,
    summary: &'static str,
    sequential_write_bytes_per_second: f64,
    random_write_bytes_per_second: f64,
) -> Entry<Drive> {
    Entry {
        name,
        summary,
        paper: "Min et al., SFS, FAST'12, slides",
        memory: "none",
        parameters: &[],
        build: Drive { sequential_write_bytes_per_second, random_write_bytes_per_second, read_cost: READ_COST },
    }
}

/// The drives.
pub const DRIVES: &[Entry<Drive>] = &[
    drive("ssd_m", "SATA, MLC: 87 MB/s in sequence, 0.6 MB/s random 4 KiB writes", 87e6, 0.6e6),
    drive("ssd_h", "SATA, SLC: 170 MB/s in sequence, 5.3 MB/s random 4 KiB writes", 170e6, 5.3e6),
    drive("ssd_l", "USB 3.0, MLC: 38 MB/s in sequence, 0.002 MB/s random 4 KiB writes", 38e6, 0.002e6),
];
