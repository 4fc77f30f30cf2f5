//! How often the kernel refers to each node: a few bytes for each, because it may remember all nodes of a volume at once.

use isotherm_vfs::Ino;
use std::collections::HashMap;

/// Inodes that are counted together: those of one page.
const GROUP: u64 = 16;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct References {
    groups: HashMap<u64, Box<[u32; GROUP as usize]>>,
}

impl References {
    /// One more. A node that is referred to 2^32 - 1 times stays so for good.
    pub(super) fn add(&mut self, ino: Ino) {
        let count = &mut self.groups.entry(ino / GROUP).or_default()[(ino % GROUP) as usize];
        *count = count.saturating_add(1);
    }

    /// Some less.
    pub(super) fn subtract(&mut self, ino: Ino, references: u64) {
        let Some(group) = self.groups.get_mut(&(ino / GROUP)) else { return };
        let count = &mut group[(ino % GROUP) as usize];
        if *count < u32::MAX {
            *count = u64::from(*count).saturating_sub(references) as u32;
        }
        if group.iter().all(|count| *count == 0) {
            self.groups.remove(&(ino / GROUP));
        }
    }

    /// Whether there are any.
    pub(super) fn has(&self, ino: Ino) -> bool {
        self.groups.get(&(ino / GROUP)).is_some_and(|group| group[(ino % GROUP) as usize] > 0)
    }

    /// Nodes that are referred to.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> impl Iterator<Item = Ino> {
        self.groups.iter().flat_map(|(group, counts)| {
            let first = group * GROUP;
            counts.iter().zip(first..).filter(|(count, _)| **count > 0).map(|(_, ino)| ino).collect::<Vec<_>>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_counted_and_take_no_room_when_they_are_gone() {
        let mut references = References::default();
        for ino in [16, 31, 31, 32] {
            references.add(ino);
        }
        assert_eq!([15, 16, 31, 32].map(|ino| references.has(ino)), [false, true, true, true]);
        references.subtract(31, 1);
        references.subtract(16, 7);
        assert_eq!([16, 31].map(|ino| references.has(ino)), [false, true]);
        assert_eq!(references.nodes().collect::<std::collections::BTreeSet<_>>(), [31, 32].into());
        references.subtract(31, 1);
        references.subtract(32, 1);
        assert!(references.groups.is_empty());
    }

    #[test]
    fn more_than_can_be_counted_are_never_forgotten() {
        let mut references = References::default();
        references.add(3);
        references.groups.get_mut(&0).expect("it was made")[3] = u32::MAX - 1;
        references.add(3);
        references.add(3);
        references.subtract(3, u64::MAX);
        assert!(references.has(3));
    }
}
