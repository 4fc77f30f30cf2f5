//! The laws of a log.

use super::SegmentLog;
use crate::blocks::{CLEAN, NOWHERE};
use crate::disk::Disk;
use isotherm::hotness::heat::HeatSums;

impl<S: Disk> SegmentLog<S> {
    /// Checks every law: what segments count equals what the blocks say, and blocks written are accounted for.
    ///
    /// # Errors
    /// The law that is broken.
    pub fn check(&self) -> Result<(), String> {
        let (segments, storage) = (self.machine.segments(), &self.storage);
        let count = segments.count();
        let mut live = vec![(0u32, 0u32, HeatSums::default()); count as usize];
        let mut dirty = 0;
        for (number, block) in storage.blocks.iter().enumerate() {
            dirty += usize::from(block.slot != CLEAN);
            if block.slot != CLEAN && storage.dirty.entries()[block.slot as usize].block != number as u32 {
                return Err(format!("block {number} is not at its place in the dirty cache"));
            }
            if block.position == NOWHERE {
                continue;
            }
            let segment = &mut live[storage.segment_of(block.position) as usize];
            segment.1 += 1;
            if block.slot == CLEAN {
                if storage.owners[block.position as usize] != number as u32 {
                    return Err(format!("block {number} is not where the map says"));
                }
                segment.0 += 1;
                segment.2.add(block.heat);
            }
        }
        if dirty != storage.dirty.len() {
            return Err(format!("{dirty} blocks are dirty, the cache holds {}", storage.dirty.len()));
        }
        for (segment, (live, referenced, heat)) in (0..count).zip(live) {
            let counted = (segments.live(segment), segments.referenced(segment), segments.heat(segment));
            if counted != (live, referenced, heat) {
                return Err(format!("segment {segment}: {counted:?} counted, {live}, {referenced}, {heat:?} found"));
            }
        }
        Ok(())
    }
}
