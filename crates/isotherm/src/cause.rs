//! Why a NAND operation was made. Every operation carries its cause, so that write amplification splits into parts that
//! sum exactly, and conservation laws can be checked in every run.

use std::ops::{Index, IndexMut};

/// Why a page was read, programmed or copied, or a block erased.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The host's own reads and writes.
    Host,
    /// Garbage collection of host data.
    Gc,
    /// Static wear levelling.
    Wear,
    /// The read half of a read-modify-write (a write of less than a page).
    Modify,
    /// Tombstone pages, which make trims durable.
    Trim,
    /// Reads and writes of translation pages.
    Translation,
    /// Garbage collection of translation pages.
    TranslationGc,
    /// Reads of extended translation pages for hotness samples (ASA-FTL).
    Sampling,
    /// Switch merges of a hybrid map.
    SwitchMerge,
    /// Partial merges of a hybrid map.
    PartialMerge,
    /// Full merges of a hybrid map.
    FullMerge,
    /// Pages read or written only to fill a write buffer's eviction unit (block padding).
    Padding,
    /// Checkpoints and other metadata of a log-structured file system.
    Checkpoint,
    /// Rebuilding state from the OOB area after a loss of power.
    Recovery,
}

impl Cause {
    /// Every cause, in the order of results.
    pub const ALL: [Self; 14] = [
        Self::Host,
        Self::Gc,
        Self::Wear,
        Self::Modify,
        Self::Trim,
        Self::Translation,
        Self::TranslationGc,
        Self::Sampling,
        Self::SwitchMerge,
        Self::PartialMerge,
        Self::FullMerge,
        Self::Padding,
        Self::Checkpoint,
        Self::Recovery,
    ];

    /// The key in results. The three merges share one key: their counts are told apart in the `merges` section.
    pub fn key(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Wear => "wear",
            Self::Modify => "modify",
            Self::Trim => "trim",
            Self::Translation => "translation",
            Self::TranslationGc => "translation_gc",
            Self::Sampling => "sampling",
            Self::SwitchMerge | Self::PartialMerge | Self::FullMerge => "merge",
            Self::Padding => "padding",
            Self::Checkpoint => "checkpoint",
            Self::Recovery => "recovery",
        }
    }
}

/// One number for each cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByCause([u64; Cause::ALL.len()]);

impl ByCause {
    /// The sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Keys of results with their sums, in the order of [`Cause::ALL`]; a key stands once.
    pub fn by_key(&self) -> Vec<(&'static str, u64)> {
        let mut rows: Vec<(&'static str, u64)> = Vec::new();
        for cause in Cause::ALL {
            match rows.iter_mut().find(|r| r.0 == cause.key()) {
                Some(row) => row.1 += self[cause],
                None => rows.push((cause.key(), self[cause])),
            }
        }
        rows
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }

    /// What was counted here and then in `later`.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + later.0[i]))
    }
}

impl Index<Cause> for ByCause {
    type Output = u64;
    #[inline(always)]
    fn index(&self, cause: Cause) -> &u64 {
        &self.0[cause as usize]
    }
}

impl IndexMut<Cause> for ByCause {
    #[inline(always)]
    fn index_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.0[cause as usize]
    }
}
