//! What the DRAM holds: both sides, what a rule keeps for its decisions, and the floors of the border.

/// The DRAM and the border in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    /// All of it.
    pub dram_bytes: u64,
    /// What the rule keeps in it, whatever the border.
    pub metadata_bytes: u64,
    /// What it keeps for each page that the buffer could have and has not.
    pub ghost_page_bytes: u64,
    /// What the map has now.
    pub mapping_bytes: u64,
    /// What the map must have at least.
    pub mapping_bytes_min: u64,
    /// What of the map does not depend on how many entries are cached.
    pub mapping_bytes_fixed: u64,
    /// DRAM of one entry of the map: a cached page's, or a log block's.
    pub entry_bytes: u64,
    /// DRAM that one address in the ghost mapping stands for: an entry, or a page's part of the map of a log block.
    pub ghost_entry_bytes: u64,
    /// A page: what the buffer must have at least.
    pub page_bytes: u64,
    /// Translation pages of the map, or logical blocks.
    pub map_pages: u32,
    /// Entries of each of them, or pages.
    pub map_page_entries: u32,
    /// Log blocks that there may be, whatever the DRAM; 0 where there is no log.
    pub log_blocks_max: u32,
}

impl Sizes {
    /// A DRAM in which nothing has been placed yet.
    pub fn new(dram_bytes: u64, page_bytes: u64) -> Self {
        Self {
            dram_bytes,
            metadata_bytes: 0,
            ghost_page_bytes: 0,
            mapping_bytes: 0,
            mapping_bytes_min: 0,
            mapping_bytes_fixed: 0,
            entry_bytes: 1,
            ghost_entry_bytes: 1,
            page_bytes,
            map_pages: 0,
            map_page_entries: 0,
            log_blocks_max: 0,
        }
    }
    /// What the two sides share, ghosts included.
    pub fn shared_bytes(&self) -> u64 {
        self.dram_bytes - self.metadata_bytes
    }
    /// Pages that the buffer has with the largest border, and could have with any.
    pub fn frames_max(&self) -> u32 {
        self.pages(self.shared_bytes().saturating_sub(self.mapping_bytes_min)).max(1)
    }
    /// Ghosts of a buffer without pages.
    fn ghosts_max_bytes(&self) -> u64 {
        u64::from(self.frames_max()) * self.ghost_page_bytes
    }
    /// What the map may have at most: all but a page, and the ghosts of the others.
    pub fn mapping_bytes_max(&self) -> u64 {
        self.shared_bytes().saturating_sub(self.page_bytes + self.ghosts_max_bytes() - self.ghost_page_bytes)
    }
    /// What the map can make use of: the entries of every page, or of every log block.
    pub fn map_bytes_useful(&self) -> u64 {
        let pages = u64::from(self.map_pages) * u64::from(self.map_page_entries);
        let entries = if self.log_blocks_max > 0 { u64::from(self.log_blocks_max) } else { pages };
        self.mapping_bytes_fixed + entries * self.entry_bytes
    }
    /// Pages that the buffer has now: every one of them takes a page and saves a ghost.
    pub fn frames(&self) -> u32 {
        let left = self.shared_bytes().saturating_sub(self.mapping_bytes + self.ghosts_max_bytes());
        ((left / (self.page_bytes - self.ghost_page_bytes)) as u32).clamp(1, self.frames_max())
    }
    /// What the rule keeps now.
    pub fn metadata_bytes_now(&self) -> u64 {
        self.metadata_bytes + u64::from(self.frames_max() - self.frames()) * self.ghost_page_bytes
    }
    /// What the buffer has now.
    pub fn buffer_bytes(&self) -> u64 {
        u64::from(self.frames()) * self.page_bytes
    }
    /// The border at `mapping_bytes`, or at the nearest floor.
    #[must_use]
    pub fn with_mapping(self, mapping_bytes: u64) -> Self {
        Self { mapping_bytes: mapping_bytes.clamp(self.mapping_bytes_min, self.mapping_bytes_max()), ..self }
    }
    /// Pages that a buffer of `bytes` holds.
    pub fn pages(&self, bytes: u64) -> u32 {
        (bytes / self.page_bytes) as u32
    }
    /// Entries that a map of `bytes` holds.
    pub fn entries(&self, bytes: u64) -> u32 {
        (bytes.saturating_sub(self.mapping_bytes_fixed) / self.entry_bytes) as u32
    }
    /// The map's share of the DRAM.
    pub fn mapping_share(&self) -> f64 {
        self.mapping_bytes as f64 / self.dram_bytes as f64
    }
}
