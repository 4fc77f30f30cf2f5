//! Buffered pages by logical block: what the block-level policies order and evict. O(1), no allocation after build.

use crate::address::Lpn;
use crate::dram::index::AddressIndex;
use crate::dram::list::{Links, List};
use crate::registry::{Kind, Parameter, Parameters};

/// The parameter that sets the size of a unit.
pub(super) const UNIT_PAGES: Parameter =
    Parameter::any("pages", &[Kind::word(&["0"]), Kind::power_of_two(1..=32768)], "0")
        .help("pages of a logical block; 0 takes the erase block of the device");

/// Binary logarithm of the pages of a unit.
pub(super) fn log2_unit_pages(parameters: &Parameters<'_>, pages_per_block: u32) -> u8 {
    let pages = match parameters.integer(UNIT_PAGES.key) {
        0 => u64::from(pages_per_block),
        pages => pages,
    };
    pages.trailing_zeros() as u8
}

/// Logical blocks with buffered pages.
#[derive(Clone, Debug)]
pub(super) struct Units {
    log2_pages: u8,
    index: AddressIndex,
    /// Of each unit: its logical block, and its frames.
    blocks: Vec<u32>,
    members: Vec<List>,
    free: Vec<u32>,
    /// Of each frame.
    links: Links,
    unit_of: Vec<u32>,
}

impl Units {
    pub(super) fn new(frames: u32, log2_pages: u8) -> Self {
        Self {
            log2_pages,
            index: AddressIndex::new(frames),
            blocks: vec![0; frames as usize],
            members: vec![List::default(); frames as usize],
            free: (0..frames).rev().collect(),
            links: Links::new(frames),
            unit_of: vec![0; frames as usize],
        }
    }

    pub(super) fn log2_pages(&self) -> u8 {
        self.log2_pages
    }

    /// Index of a page in its unit.
    pub(super) fn offset(&self, lpn: Lpn) -> u32 {
        lpn.0 & ((1 << self.log2_pages) - 1)
    }

    /// The unit of a frame.
    #[inline(always)]
    pub(super) fn of(&self, frame: u32) -> u32 {
        self.unit_of[frame as usize]
    }

    /// Buffered pages of a unit.
    #[inline(always)]
    pub(super) fn length(&self, unit: u32) -> u32 {
        self.members[unit as usize].length()
    }

    /// Adds a frame; returns its unit, and whether the unit is new.
    #[inline(always)]
    pub(super) fn insert(&mut self, frame: u32, lpn: Lpn) -> (u32, bool) {
        let block = lpn.0 >> self.log2_pages;
        let known = self.index.get(block);
        let unit = known.unwrap_or_else(|| {
            let unit = self.free.pop().expect("there are as many units as frames");
            self.blocks[unit as usize] = block;
            self.index.insert(block, unit);
            unit
        });
        self.members[unit as usize].push_newest(&mut self.links, frame);
        self.unit_of[frame as usize] = unit;
        (unit, known.is_none())
    }

    /// Takes a frame out; returns its unit, and whether it was the unit's last: then the unit is gone.
    #[inline(always)]
    pub(super) fn remove(&mut self, frame: u32) -> (u32, bool) {
        let unit = self.unit_of[frame as usize];
        let members = &mut self.members[unit as usize];
        members.remove(&mut self.links, frame);
        let is_gone = members.length() == 0;
        if is_gone {
            self.index.remove(self.blocks[unit as usize]);
            self.free.push(unit);
        }
        (unit, is_gone)
    }

    /// Appends every frame of a unit.
    pub(super) fn append_members(&self, unit: u32, frames: &mut Vec<u32>) {
        let mut next = self.members[unit as usize].oldest();
        while let Some(frame) = next {
            frames.push(frame);
            next = self.links.newer(frame);
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.index.bytes() + self.links.bytes() + self.blocks.len() as u64 * 24
    }
}
