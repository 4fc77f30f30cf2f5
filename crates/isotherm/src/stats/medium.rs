//! What the medium did: its operations by cause, its time, its wear.

use super::Counter;
use crate::cause::{ByCause, Cause};

impl Counter for ByCause {
    fn since(&self, earlier: &Self) -> Self {
        self.since(earlier)
    }
    fn plus(&self, later: &Self) -> Self {
        self.plus(later)
    }
}

crate::counters! {
    /// What the medium did. A copy counts here alone: it is one read and one program inside the array.
    #[derive(Copy, Eq)]
    pub struct MediumCounters {
        /// Pages read to the controller.
        reads: ByCause,
        /// Pages programmed from the controller.
        programs: ByCause,
        /// Pages copied inside the array (copy-back), each a read and a program without transfer.
        copies: ByCause,
        /// Blocks erased.
        erases: ByCause,
    }
}

impl MediumCounters {
    /// Pages programmed by any means: programs and copies.
    pub fn programmed(&self) -> ByCause {
        let mut sum = self.programs;
        for cause in Cause::ALL {
            sum[cause] += self.copies[cause];
        }
        sum
    }

    /// Pages read by any means: reads and copies.
    pub fn read(&self) -> ByCause {
        let mut sum = self.reads;
        for cause in Cause::ALL {
            sum[cause] += self.copies[cause];
        }
        sum
    }
}

crate::counters! {
    /// Time spent by the flash array, as counts times latencies.
    #[derive(Copy, Eq)]
    pub struct FlashTime {
        /// Cell reads (copies included).
        read_ns: u64,
        /// Cell programs (copies included).
        program_ns: u64,
        /// Block erases.
        erase_ns: u64,
        /// Transfers over the channel.
        transfer_ns: u64,
    }
}

impl FlashTime {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.read_ns + self.program_ns + self.erase_ns + self.transfer_ns
    }
}

/// Erase counts over the blocks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WearSummary {
    /// Sum over all blocks.
    pub total: u64,
    /// Least worn block.
    pub min: u32,
    /// Most worn block.
    pub max: u32,
    /// Mean over all blocks.
    pub mean: f64,
}
