//! What both sides of the DRAM would cost at every split of a grid, from LRU stack distances: the measurements of the rule of
//! least cost.
//!
//! Each curve runs the caches of all splits at once over what it hears: [`buffer`] the write buffer, [`map`] the cache of a
//! demand-paged map, [`log`] the log of a hybrid one. Nothing is interpolated: the sizes that are followed are those that the
//! rule may choose.

pub mod buffer;
pub mod log;
pub mod map;
pub mod sequential;

use super::Sizes;

pub use buffer::BufferCurve;
pub use log::LogCurve;
pub use map::MapCurve;
pub use sequential::SequentialCurve;

/// Splits that are compared.
pub const SPLITS: usize = 16;

/// The map's share of what both sides have, at each of them: the tenths, and more where the cost of a map is steep.
pub const SHARES: [f64; SPLITS] =
    [0.0, 0.01, 0.02, 0.035, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// A quantity at each split.
pub type Curve = [f64; SPLITS];

/// The splits in a DRAM, the floors respected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// What the map has.
    pub mapping_bytes: [u64; SPLITS],
    /// Entries that it holds.
    pub entries: [u32; SPLITS],
    /// Pages that the buffer holds.
    pub frames: [u32; SPLITS],
}

impl Grid {
    /// The grid of a DRAM.
    pub fn new(sizes: &Sizes) -> Self {
        let at = SHARES.map(|share| sizes.with_mapping((sizes.shared_bytes() as f64 * share) as u64));
        Self {
            mapping_bytes: at.map(|s| s.mapping_bytes),
            entries: at.map(|s| s.entries(s.mapping_bytes)),
            frames: at.map(|s| s.frames()),
        }
    }

    /// The split that is nearest to a map of `mapping_bytes`.
    pub fn nearest(&self, mapping_bytes: u64) -> usize {
        (0..SPLITS).min_by_key(|i| self.mapping_bytes[*i].abs_diff(mapping_bytes)).expect("the grid has splits")
    }
}

/// What the map costs at each split.
#[derive(Clone, Copy, Debug)]
pub struct MapMisses {
    /// Translation pages read for the host's reads.
    pub reads: Curve,
    /// Translation pages written by evictions.
    pub evictions: Curve,
    /// What grows with the pages that reach flash: translation pages written by collections, or full merges.
    pub reclaims: Curve,
}

/// Turns "found in segment i" into "missed by a cache that ends there".
fn misses(found: &Curve, all: f64) -> Curve {
    let mut left = all;
    found.map(|hits| {
        left -= hits;
        left.max(0.0)
    })
}

fn decay(counts: &mut [f64], factor: f64) {
    for count in counts {
        *count *= factor;
    }
}

/// One in so many: which of `all` neighbours are followed if `followed` of them are, at even distances. A hash would choose
/// some more or some fewer, and stretch a curve by as much.
#[derive(Clone, Copy, Debug)]
struct Evenly {
    followed: u64,
    all: u64,
}

impl Evenly {
    /// The rank among the followed of number `index`, if it is one of them.
    #[inline(always)]
    fn rank(self, index: u32) -> Option<u32> {
        let before = |index: u64| index * self.followed / self.all;
        let rank = before(index.into());
        (before(u64::from(index) + 1) > rank).then_some(rank as u32)
    }
}

/// Events in all and those that were followed: by them samples are scaled.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: f64,
    followed: f64,
}

impl Share {
    fn scale(&self) -> f64 {
        if self.followed > 0.0 { self.all / self.followed } else { 0.0 }
    }
    fn decay(&mut self, factor: f64) {
        self.all *= factor;
        self.followed *= factor;
    }
}
