//! Operations from a seed.

use super::apply::{CALLER, apply};
use super::operation::{Operation, Outcome};
use crate::memory::MemoryFileSystem;
use crate::{Allocation, RenameMode, SetXattr, acl};

/// Directories there may be: few, so that names meet.
const DIRECTORIES: [&str; 4] = ["", "/d", "/e", "/d/f"];
/// Names of files in each.
const FILES: [&str; 5] = ["a", "b", "c", "d", "f"];
/// Names of extended attributes that are no ACL.
const XATTRS: [&str; 4] = ["user.one", "user.two", "trusted.three", "security.capability"];
/// Where most writes go, bytes.
const NEAR: u64 = 300_000;
const FAR: u64 = 1 << 36;

/// Operations that are tried before one is taken that fails.
const TRIES: usize = 30;

/// An endless list of operations for an empty file system, most of which succeed there. The same seed gives the same list.
#[derive(Debug)]
pub struct Generator {
    state: u64,
    /// What the list leads to: operations that fail leave it as it is.
    guide: MemoryFileSystem,
    /// Offsets stay below this.
    reach: u64,
}

impl Generator {
    /// A list of its own for each seed. Now and then it writes far behind the end of a file.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, guide: MemoryFileSystem::default(), reach: FAR }
    }

    /// The same with files of some 300 kB at most, for file systems on small devices.
    #[must_use]
    pub fn with_small_files(seed: u64) -> Self {
        Self { reach: NEAR, ..Self::new(seed) }
    }

    /// SplitMix64.
    fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next_number() % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn path(&mut self) -> String {
        format!("{}/{}", self.one(&DIRECTORIES), self.one(&FILES))
    }

    fn directory(&mut self) -> String {
        let path = self.one(&["/", "/d", "/e", "/d/f", "/d", "/e/d"]);
        path.into()
    }

    /// Mostly a file, at times a directory.
    fn any(&mut self) -> String {
        if self.below(4) == 0 { self.directory() } else { self.path() }
    }

    fn offset(&mut self) -> u64 {
        match self.below(20) {
            0..4 => 0,
            4..9 => self.below(NEAR / 4096) * 4096,
            9..12 => self.below(200),
            12 if self.reach > NEAR => self.below(self.reach),
            _ => self.below(NEAR),
        }
    }

    fn length(&mut self) -> u32 {
        let length = match self.below(8) {
            0 => self.below(10),
            1..4 => 4096 * (1 + self.below(8)),
            4 => self.below(100_000),
            _ => self.below(9000),
        };
        length as u32
    }

    fn permissions(&mut self) -> u16 {
        let bits = if self.below(4) == 0 { self.below(0o10000) } else { self.below(0o1000) };
        bits as u16
    }

    fn acl(&mut self) -> Vec<u8> {
        let mut entries: Vec<(u16, u32)> = vec![(1, u32::MAX), (4, u32::MAX)];
        if self.below(3) > 0 {
            let named = self.below(3) as u32 + 1000;
            entries.extend([(2, named), (16, u32::MAX)]);
        }
        entries.push((32, u32::MAX));
        entries.sort_unstable();
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend((self.below(8) as u16).to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        if self.below(10) == 0 {
            bytes.pop();
        }
        bytes
    }

    fn set_xattr(&mut self) -> Operation {
        let acls = [acl::ACCESS, acl::DEFAULT].map(|name| str::from_utf8(name).expect("names are ASCII"));
        let (path, name, value) = if self.below(3) == 0 {
            (self.any(), self.one(&acls), self.acl())
        } else {
            let length = if self.below(5) == 0 { self.below(9000) } else { self.below(60) };
            let fill = self.next_number() as u8;
            (self.any(), self.one(&XATTRS), vec![fill; length as usize])
        };
        let how = self.one(&[SetXattr::Any, SetXattr::Any, SetXattr::Create, SetXattr::Replace]);
        Operation::SetXattr { path, name: name.into(), value, how }
    }

    fn allocate(&mut self) -> Operation {
        let keep_size = self.below(2) == 0;
        let reserve = Allocation::Reserve { keep_size };
        let zero = Allocation::ZeroRange { keep_size };
        let how = self.one(&[reserve, zero, Allocation::PunchHole, Allocation::PunchHole]);
        let offset = self.offset();
        Operation::Allocate { path: self.path(), offset, length: u64::from(self.length()), how }
    }

    fn copy(&mut self) -> Operation {
        let (from, from_offset) = (self.path(), self.offset());
        let (to, to_offset) = (self.path(), self.offset());
        Operation::CopyRange { from, from_offset, to, to_offset, length: u64::from(self.length()) }
    }

    fn name(&mut self) -> Operation {
        match self.below(20) {
            0..5 => Operation::Create { path: self.path(), permissions: self.permissions() },
            5..8 => Operation::MakeDirectory { path: self.any(), permissions: self.permissions() },
            8 => Operation::MakeFifo { path: self.path() },
            9 => Operation::Symlink { path: self.path(), target: self.any() },
            10..13 => Operation::Link { from: self.path(), to: self.path() },
            13..15 => Operation::Unlink { path: self.any() },
            15 => Operation::RemoveDirectory { path: self.any() },
            _ => {
                let whiteout = RenameMode::Whiteout { caller: CALLER, replaces: self.below(2) == 0 };
                let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange, whiteout];
                Operation::Rename { from: self.any(), to: self.any(), mode: self.one(&modes) }
            }
        }
    }

    fn content(&mut self) -> Operation {
        let (path, offset, length, seed) = (self.path(), self.offset(), self.length(), self.next_number());
        match self.below(18) {
            0..6 => Operation::Write { path, offset, length, seed },
            6..8 => Operation::Append { path, length, seed },
            8..10 => Operation::Read { path, offset, length: length * 2 },
            10..12 => Operation::Truncate { path, size: offset },
            12..14 => self.allocate(),
            14..17 => self.copy(),
            _ => Operation::UseOrphan { path, offset, length, seed },
        }
    }

    fn attribute(&mut self) -> Operation {
        match self.below(8) {
            0 => Operation::SetPermissions { path: self.any(), permissions: self.permissions() },
            1 => Operation::SetOwner { path: self.any(), uid: self.below(3) as u32, gid: self.below(3) as u32 },
            2..4 => self.set_xattr(),
            4 => Operation::RemoveXattr { path: self.any(), name: self.one(&XATTRS).into() },
            5 => Operation::List { path: self.directory() },
            _ => Operation::Look { path: self.any() },
        }
    }
}

impl Generator {
    fn candidate(&mut self) -> Operation {
        match self.below(32) {
            0..12 => self.name(),
            12..26 => self.content(),
            26..30 => self.attribute(),
            30 => match self.below(3) {
                0 => Operation::Sync,
                1 => Operation::FsyncDirectory { path: self.directory() },
                _ => Operation::Fsync { path: self.path() },
            },
            _ => Operation::Fsync { path: self.path() },
        }
    }
}

impl Iterator for Generator {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        // Errors are to be the same too.
        let tries = if self.below(8) == 0 { 1 } else { TRIES };
        let mut operation = self.candidate();
        for _ in 1..tries {
            if !matches!(apply(&self.guide, &operation), Outcome::Failed(_)) {
                return Some(operation);
            }
            operation = self.candidate();
        }
        apply(&self.guide, &operation);
        Some(operation)
    }
}
