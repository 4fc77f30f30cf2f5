//! The switches of a demand-paged map, and how bytes of DRAM become entries.

use super::cmt::Replacement;
use super::translation::{Layout, Writeback};
use crate::ftl::Wishes;
use crate::quantity::ByteSize;
use crate::registry::{Parameter, Parameters, SpecError};

/// What a write does whose entry is not cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteMiss {
    /// Makes a dirty entry, without a flash read.
    Dirty,
    /// Reads the translation page first.
    Fetch,
}

/// Where the blocks of the translation pages come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TranslationSpace {
    /// On top of T, so that data has the same spare under every FTL.
    OnTop,
    /// Out of T, as in a device that is built once.
    Inside,
}

/// How a demand-paged map behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DemandOptions {
    /// DRAM for cached entries, the directory and the samples.
    pub cache_bytes: u64,
    /// DRAM up to which the cache may be grown at run time; no more than `cache_bytes` unless it is larger.
    pub cache_bytes_max: u64,
    /// DRAM of one cached entry of the map.
    pub entry_bytes: u32,
    /// DRAM of the hotness cached beside each entry; 0 without.
    pub hotness_entry_bytes: u32,
    /// DRAM of a table of samples.
    pub sample_bytes: u64,
    /// Flash bytes of one entry of a translation page; a power of two.
    pub translation_entry_bytes: u32,
    /// What a write does whose entry is not cached.
    pub write_miss: WriteMiss,
    /// What an eviction writes.
    pub writeback: Writeback,
    /// Which entry leaves.
    pub replacement: Replacement,
    /// Where the blocks of the translation pages come from.
    pub translation_space: TranslationSpace,
    /// Collections read translation pages before they copy: the placement needs the hotness in them.
    pub reads_before_copies: bool,
}

impl Default for DemandOptions {
    fn default() -> Self {
        Self {
            cache_bytes: DEFAULT_CACHE_BYTES,
            cache_bytes_max: 0,
            entry_bytes: 8,
            hotness_entry_bytes: 0,
            sample_bytes: 0,
            translation_entry_bytes: 4,
            write_miss: WriteMiss::Dirty,
            writeback: Writeback::Batch,
            replacement: Replacement::Lru,
            translation_space: TranslationSpace::OnTop,
            reads_before_copies: false,
        }
    }
}

/// The cache of the ASA-FTL paper's device.
const DEFAULT_CACHE_BYTES: u64 = 8 << 20;

/// An ARC remembers as many LPNs again as it holds entries.
const GHOST_BYTES: u32 = 4;

/// DRAM of one pointer of the directory.
const DIRECTORY_ENTRY_BYTES: u64 = 4;

/// What `dftl:` takes. The first [`SHARED_PARAMETERS`] are ASA-FTL's too.
pub const PARAMETERS: [Parameter; 7] = [
    Parameter::choice("writeback", &["batch", "single"], "batch")
        .help("an eviction writes all dirty entries of its translation page, or the one that leaves"),
    Parameter::choice("replacement", &["lru", "segmented_lru", "arc"], "lru")
        .help("which cached entry leaves (arc remembers as many LPNs again, at 4 bytes each)"),
    Parameter::integer("entry_bytes", 4..=64, "8").help("DRAM of one cached entry"),
    Parameter::bytes("cache", 1..=1 << 40, "8MiB")
        .help("DRAM for cached entries, directory and samples; dram.cache_bytes says it too"),
    Parameter::choice("translation_space", &["on_top", "inside"], "on_top")
        .help("translation blocks on top of T, so that data has the same spare under every FTL, or out of it"),
    Parameter::choice("write_miss", &["dirty", "fetch"], "dirty")
        .help("a write whose entry is not cached makes a dirty one, or reads the translation page first"),
    Parameter::choice("translation_entry_bytes", &["4", "8", "16", "32"], "4")
        .help("flash bytes of one entry of a translation page"),
];

/// Parameters that DFTL shares with FTLs built on it.
pub(in crate::ftl) const SHARED_PARAMETERS: usize = 5;

impl DemandOptions {
    /// Reads what DFTL and those built on it share.
    pub(in crate::ftl) fn read_shared(parameters: &Parameters<'_>, wishes: &Wishes) -> Result<Self, SpecError> {
        if parameters.is_given("cache") {
            wishes.refuse_beside_dram(&parameters.place("cache"))?;
        }
        if wishes.cache_bytes.is_some() {
            wishes.refuse_beside_dram("dram.cache_bytes")?;
        }
        let own = parameters.bytes("cache");
        if let Some(other) = wishes.cache_bytes.filter(|bytes| parameters.is_given("cache") && *bytes != own) {
            return Err(SpecError::new(
                "dram.cache_bytes",
                format!("{} is given, but the FTL's own parameter is cache={}", ByteSize(other), ByteSize(own)),
                "both say the same: give one of them",
            ));
        }
        Ok(Self {
            cache_bytes: wishes.cache_bytes.unwrap_or(own),
            entry_bytes: parameters.integer("entry_bytes") as u32,
            writeback: parameters.choice("writeback", &[("batch", Writeback::Batch), ("single", Writeback::Single)]),
            replacement: parameters.choice(
                "replacement",
                &[("lru", Replacement::Lru), ("segmented_lru", Replacement::SegmentedLru), ("arc", Replacement::Arc)],
            ),
            translation_space: parameters.choice(
                "translation_space",
                &[("on_top", TranslationSpace::OnTop), ("inside", TranslationSpace::Inside)],
            ),
            ..Self::default()
        })
    }

    pub(super) fn read(parameters: &Parameters<'_>, wishes: &Wishes) -> Result<Self, SpecError> {
        let write_miss = parameters.choice("write_miss", &[("dirty", WriteMiss::Dirty), ("fetch", WriteMiss::Fetch)]);
        let sizes = [("4", 4), ("8", 8), ("16", 16), ("32", 32)];
        let translation_entry_bytes = parameters.choice("translation_entry_bytes", &sizes);
        Ok(Self { write_miss, translation_entry_bytes, ..Self::read_shared(parameters, wishes)? })
    }

    /// Translation pages of a map.
    pub fn translation_pages(&self, logical_pages: u32, page_bytes: u32) -> u32 {
        Layout::new(logical_pages, page_bytes, self.translation_entry_bytes).pages()
    }

    /// DRAM of one cached entry with everything beside it.
    pub fn cached_bytes(&self) -> u32 {
        let ghost = if self.replacement == Replacement::Arc { GHOST_BYTES } else { 0 };
        self.entry_bytes + self.hotness_entry_bytes + ghost
    }

    /// DRAM that does not depend on how many entries are cached: the directory and the samples.
    pub fn fixed_bytes(&self, logical_pages: u32, page_bytes: u32) -> u64 {
        u64::from(self.translation_pages(logical_pages, page_bytes)) * DIRECTORY_ENTRY_BYTES + self.sample_bytes
    }

    /// Entries that fit into `bytes` of DRAM beside the fixed part; at least one.
    pub fn entries(&self, bytes: u64, logical_pages: u32, page_bytes: u32) -> u32 {
        let left = bytes.saturating_sub(self.fixed_bytes(logical_pages, page_bytes));
        (left / u64::from(self.cached_bytes())).clamp(1, logical_pages.into()) as u32
    }

    /// Checks that the cache holds more than the fixed part.
    ///
    /// # Errors
    /// The cache is too small.
    pub(super) fn check(&self, logical_pages: u32, page_bytes: u32) -> Result<(), SpecError> {
        let least = self.fixed_bytes(logical_pages, page_bytes) + u64::from(self.cached_bytes());
        if self.cache_bytes >= least {
            return Ok(());
        }
        Err(SpecError::new(
            "dram.cache_bytes",
            format!("{} bytes do not hold the directory, the samples and one entry", self.cache_bytes),
            format!("give at least {least} bytes"),
        ))
    }

    /// Blocks of the translation area: what the translation pages fill, and a quarter and two blocks more to clean it in.
    pub fn translation_blocks(&self, logical_pages: u32, page_bytes: u32, pages_per_block: u32) -> u32 {
        let filled = self.translation_pages(logical_pages, page_bytes).div_ceil(pages_per_block);
        filled + filled / 4 + 2
    }

    /// Free blocks that the collector needs beyond the ones for copies: one collection writes up to a translation page for
    /// each page that it copies, which may end one block and begin another, and may have to write tombstones before the erase.
    pub const RESERVE_BLOCKS: u32 = 3;

    /// Free blocks below which a collection may run out of room: nearly a block of copies, and a translation page for each.
    /// With as few, pages go to other streams than their own where no block is left to open.
    pub const FLOOR_MIN: u32 = 2;
}
