//! Who causes the copying: a placement as drives have it that counts, for each group of pages, how many of its pages the collector
//! copies and which groups lie together in victims.

use isotherm::placement::{CopyBatch, ExternalPlacement, WriteBatch};

/// Copies of each group of pages.
#[derive(Clone, Debug)]
pub struct Copies {
    /// Group of each logical page.
    groups: Vec<u16>,
    /// Whether copies go to a stream of their own.
    is_apart: bool,
    /// Pages copied, by group.
    pub copied: Vec<u64>,
    /// Pages copied out of victims in which live pages of another group lay too, by group.
    pub copied_mixed: Vec<u64>,
    /// Pages copied in all.
    pub all: u64,
    /// Pages of this victim, by group.
    of_victim: Vec<u32>,
}

impl Copies {
    /// Nothing copied yet. `groups` holds a group below `count` for each logical page that belongs to one.
    pub fn new(groups: Vec<u16>, count: usize, is_apart: bool) -> Self {
        Self {
            groups,
            is_apart,
            copied: vec![0; count],
            copied_mixed: vec![0; count],
            all: 0,
            of_victim: vec![0; count],
        }
    }

    fn group(&self, lpn: u32) -> Option<usize> {
        self.groups.get(lpn as usize).map(|group| usize::from(*group)).filter(|group| *group < self.copied.len())
    }
}

impl ExternalPlacement for Copies {
    fn streams(&self) -> u16 {
        1 + u16::from(self.is_apart)
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    fn copies_to(&self) -> Option<u16> {
        None
    }
    fn host(&mut self, _: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        streams.fill(0);
        Ok(())
    }
    fn copies(&mut self, copies: &CopyBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        streams.fill(u16::from(self.is_apart));
        self.of_victim.fill(0);
        self.all += copies.lpns.len() as u64;
        let mut outside = false;
        for &lpn in copies.lpns {
            match self.group(lpn) {
                Some(group) => self.of_victim[group] += 1,
                None => outside = true,
            }
        }
        let is_mixed = self.of_victim.iter().filter(|pages| **pages > 0).count() + usize::from(outside) > 1;
        for (group, &pages) in self.of_victim.iter().enumerate() {
            self.copied[group] += u64::from(pages);
            self.copied_mixed[group] += u64::from(pages) * u64::from(is_mixed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_group_and_mixed_victims_apart() {
        let mut copies = Copies::new(vec![0, 0, 1, 1, 9], 2, true);
        let mut hand = |lpns: &[u32]| {
            let last_writes = vec![0; lpns.len()];
            let batch = CopyBatch { lpns, last_writes: &last_writes, now: 9, stream: 0, stamp: 0 };
            let mut streams = vec![7; lpns.len()];
            copies.copies(&batch, &mut streams).unwrap();
            assert!(streams.iter().all(|stream| *stream == 1));
        };
        hand(&[0, 1]);
        hand(&[0, 2, 3]);
        hand(&[2, 4]);
        assert_eq!(copies.all, 7);
        assert_eq!((copies.copied, copies.copied_mixed), (vec![3, 3], vec![1, 3]));
    }
}
