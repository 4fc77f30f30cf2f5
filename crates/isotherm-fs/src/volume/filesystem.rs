//! A mounted volume as a POSIX file system.

use super::places::{EXTENTS_MAX, EXTENTS_XATTR, extents_text};
use super::statistics::{STATISTICS_XATTR, SYNC_XATTR};
use super::{Patience, Volume, Wanted, lock};
use crate::log::{Log, Pressure};
use crate::store::{BLOCK_BYTES, StoreError};
use crate::tree::{self, Tree, TreeError};
use isotherm_vfs::{
    Allocation, Attributes, Caller, Change, DirectoryEntry, Done, Errno, FileSystem, Handle, Ino, NewNode, OpenFlags,
    Opened, ROOT, RenameMode, Result, SeekFrom, SetXattr, VolumeStatistics, WriteFlags,
};
use std::ops::Range;

fn errno(error: StoreError) -> Errno {
    TreeError::from(error).into()
}

impl Volume {
    /// Lets a request have the tree, at the time it is made.
    fn ask<T>(&self, request: impl FnOnce(&mut Tree<Log>) -> tree::Result<T>) -> Result<T> {
        let (done, is_much_touched) = {
            let mut tree = lock(&self.tree).map_err(errno)?;
            tree.set_now((self.clock)());
            let done = request(&mut tree);
            (done, tree.touched() >= tree.store().touched_limit())
        };
        if is_much_touched {
            // Should that fail, whoever wants something durable is told.
            let _ = self.settle_touched();
        }
        done.map_err(Errno::from)
    }

    /// The same for one that changes something: waits until there is room in memory.
    fn change_tree<T>(&self, request: impl Fn(&mut Tree<Log>) -> tree::Result<T>) -> Result<T> {
        self.write_to_tree(1, request)
    }

    /// The same for one that writes so many blocks.
    fn write_to_tree<T>(&self, blocks: u64, request: impl Fn(&mut Tree<Log>) -> tree::Result<T>) -> Result<T> {
        if self.is_read_only {
            return Err(Errno::ROFS);
        }
        self.wait_for_room(blocks).map_err(errno)?;
        self.ask(|tree| match request(tree) {
            Err(TreeError::Store(StoreError::NoSpace)) if tree.free_doomed()? > 0 => request(tree),
            done => done,
        })
    }

    /// A reference is gone, or an opening. A node that nobody refers to any more, and that has no name, is deleted: a change, however many
    /// come at once. It cannot be refused, so that room is made after it, for the next one.
    fn let_go(&self, request: impl FnOnce(&mut Tree<Log>) -> tree::Result<()>) {
        let has_room = self.ask(|tree| {
            // What could not be freed is found when the volume is mounted.
            let _ = request(tree);
            Ok(tree.store().pressure() == Pressure::None)
        });
        if has_room == Ok(false) {
            let _ = self.wait_for_room(0);
        }
    }

    fn durable(&self, wanted: Wanted) -> Result<()> {
        if self.is_read_only { Ok(()) } else { self.wait_until_durable(wanted).map_err(errno) }
    }

    fn durable_then(&self, wanted: Wanted, done: Done) {
        if self.is_read_only {
            done(Ok(()));
        } else {
            self.make_durable(wanted, Patience::Stays, Box::new(|durable| done(durable.map_err(errno))));
        }
    }
}

impl FileSystem for Volume {
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attributes> {
        self.ask(|tree| tree.lookup(parent, name))
    }
    fn forget(&self, ino: Ino, references: u64) {
        self.let_go(|tree| tree.forget(ino, references));
    }
    fn attributes(&self, ino: Ino) -> Result<Attributes> {
        self.ask(|tree| tree.attributes(ino))
    }
    fn change(&self, caller: Caller, ino: Ino, change: Change) -> Result<Attributes> {
        self.change_tree(|tree| tree.change(caller, ino, change))
    }
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.ask(|tree| tree.read_link(ino))
    }

    fn make_node(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode) -> Result<Attributes> {
        self.change_tree(|tree| tree.make_node(caller, parent, name, node))
    }
    fn symlink(&self, caller: Caller, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attributes> {
        self.change_tree(|tree| tree.symlink(caller, parent, name, target))
    }
    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attributes> {
        self.change_tree(|tree| tree.link(ino, parent, name))
    }
    fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.change_tree(|tree| tree.unlink(parent, name))
    }
    fn remove_directory(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.change_tree(|tree| tree.remove_directory(parent, name))
    }
    fn rename(&self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8], mode: RenameMode) -> Result<()> {
        self.change_tree(|tree| tree.rename(parent, name, new_parent, new_name, mode))
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Opened> {
        if flags.truncate {
            return self.change_tree(|tree| tree.open(ino, flags));
        }
        if flags.write && self.is_read_only {
            return Err(Errno::ROFS);
        }
        self.ask(|tree| tree.open(ino, flags))
    }
    fn create(
        &self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        flags: OpenFlags,
    ) -> Result<(Attributes, Opened)> {
        self.change_tree(|tree| tree.create(caller, parent, name, node, flags))
    }
    fn release(&self, ino: Ino, _handle: Handle) {
        self.let_go(|tree| tree.release(ino));
    }
    fn read(&self, ino: Ino, handle: Handle, offset: u64, length: u32, out: &mut Vec<u8>) -> Result<()> {
        self.read_file(ino, handle, offset, length, out).map_err(Errno::from)
    }
    fn write(&self, ino: Ino, _handle: Handle, offset: u64, data: &[u8], flags: WriteFlags) -> Result<()> {
        let blocks = data.len().div_ceil(BLOCK_BYTES) as u64;
        self.write_to_tree(blocks, |tree| tree.write(ino, offset, data, flags).map(drop))
    }
    fn flush(&self, _ino: Ino, _handle: Handle) -> Result<()> {
        let failed = lock(&self.tree).is_ok_and(|tree| tree.store().failure().is_some());
        if failed { Err(Errno::IO) } else { Ok(()) }
    }
    fn fsync(&self, ino: Ino, _data_only: bool) -> Result<()> {
        self.durable(Wanted::File(ino))
    }
    fn fsync_then(&self, ino: Ino, _data_only: bool, done: Done) {
        self.durable_then(Wanted::File(ino), done);
    }
    fn allocate(
        &self,
        caller: Caller,
        ino: Ino,
        _handle: Handle,
        offset: u64,
        length: u64,
        how: Allocation,
    ) -> Result<()> {
        self.change_tree(|tree| {
            tree.allocate(ino, offset, length, how)?;
            if caller.keeps_privileges() { Ok(()) } else { tree.drop_privileges(ino) }
        })
    }
    fn seek(&self, ino: Ino, offset: u64, to: SeekFrom) -> Result<u64> {
        self.ask(|tree| tree.seek(ino, offset, to))
    }
    fn copy_range(&self, caller: Caller, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<u64> {
        self.change_tree(|tree| {
            let copied = tree.copy_range(from, to, length)?;
            if copied > 0 && !caller.keeps_privileges() {
                tree.drop_privileges(to.0)?;
            }
            Ok(copied)
        })
    }

    fn read_directory(&self, ino: Ino, cookie: u64, take: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()> {
        self.ask(|tree| tree.read_directory(ino, cookie, take))
    }
    fn read_directory_plus(
        &self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(DirectoryEntry<'_>, &Attributes) -> bool,
    ) -> Result<()> {
        self.ask(|tree| tree.read_directory_plus(ino, cookie, take))
    }
    fn open_directory(&self, ino: Ino) -> Result<Opened> {
        self.ask(|tree| tree.open_directory(ino))
    }
    fn release_directory(&self, ino: Ino, _handle: Handle) {
        self.let_go(|tree| tree.release_directory(ino));
    }
    fn fsync_directory(&self, ino: Ino) -> Result<()> {
        self.ask(|tree| tree.expect_directory(ino))?;
        self.durable(Wanted::Metadata)
    }
    fn fsync_directory_then(&self, ino: Ino, done: Done) {
        match self.ask(|tree| tree.expect_directory(ino)) {
            Ok(()) => self.durable_then(Wanted::Metadata, done),
            Err(error) => done(Err(error)),
        }
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        if ino == ROOT && name == STATISTICS_XATTR.as_bytes() {
            return Ok(self.counters().map_err(errno)?.to_string().into_bytes());
        }
        if let Some(from) = name.strip_prefix(EXTENTS_XATTR.as_bytes()) {
            let from = std::str::from_utf8(from).ok().and_then(|from| from.parse().ok()).ok_or(Errno::NODATA)?;
            return self.ask(|tree| Ok(extents_text(&tree.stored_extents(ino, from, EXTENTS_MAX)?)));
        }
        self.ask(|tree| tree.xattr(ino, name))
    }
    fn set_xattr(&self, caller: Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        if ino == ROOT && name == SYNC_XATTR.as_bytes() {
            return self.sync();
        }
        self.change_tree(|tree| tree.set_xattr(caller, ino, name, value, how))
    }
    fn xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.ask(|tree| tree.xattrs(ino))
    }
    fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.change_tree(|tree| tree.remove_xattr(ino, name))
    }

    fn statistics(&self) -> Result<VolumeStatistics> {
        self.ask(|tree| tree.statistics())
    }
    fn discard_free(&self, range: Range<u64>, smallest: u64) -> Result<u64> {
        if self.is_read_only {
            return Err(Errno::ROFS);
        }
        if range.start >= self.device.length() {
            return Err(Errno::INVAL);
        }
        self.discard_unused(range, smallest).map_err(errno)
    }
    fn sync(&self) -> Result<()> {
        if self.is_read_only { Ok(()) } else { self.sync_all().map_err(errno) }
    }
    fn file_bytes_max(&self) -> u64 {
        tree::FILE_BYTES_MAX
    }
    fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}
