//! The requests.

use std::ops::Range;
use std::sync::Arc;

use super::MemoryFileSystem;
use super::content::{BLOCK_BYTES, FILE_BYTES_MAX, checked_end};
use super::entries::{DOT, DOT_DOT};
use super::node::{Body, Node, State};
use crate::{
    Allocation, Attributes, Caller, Change, DirectoryEntry, Errno, FileKind, FileSystem, Handle, Ino,
    KEEPS_ACCESS_TIME, NewNode, OpenFlags, Opened, RenameMode, Result, SeekFrom, SetXattr, VolumeStatistics,
    WriteFlags,
};

/// Bytes that are copied between files at once.
const COPIED_AT_ONCE: u64 = 1 << 20;

impl MemoryFileSystem {
    /// A node is opened that was there.
    fn opened(&self, node: &Node, flags: OpenFlags) -> Opened {
        let sets = flags.read && !flags.keeps_access_time && self.keeps_access_times;
        let sets_access_time = sets && node.touch(node.read());
        Opened { sets_access_time, ..self.opened_new(node, flags) }
    }

    /// A node is opened that was just made.
    fn opened_new(&self, node: &Node, flags: OpenFlags) -> Opened {
        node.open();
        let handle = self.new_handle() | if flags.keeps_access_time { KEEPS_ACCESS_TIME } else { 0 };
        Opened { handle, keeps_cache: true, sets_access_time: false }
    }

    fn open_node(&self, node: &Node, flags: OpenFlags) -> Result<Opened> {
        if flags.truncate {
            let change = Change { size: Some(0), kills_privileges: flags.kills_privileges, ..Change::default() };
            node.write().change(&change)?;
        } else {
            node.read().content()?;
        }
        Ok(self.opened(node, flags))
    }

    fn close(&self, ino: Ino) {
        if let Ok(node) = self.node(ino) {
            node.close();
            self.reap(&node);
        }
    }

    /// A name goes. `allows` says whether the node's kind is one that the request may take.
    fn drop_name(&self, parent: Ino, name: &[u8], allows: fn(FileKind) -> Result<()>) -> Result<()> {
        let directory = self.directory(parent)?;
        let mut state = directory.write();
        let node = state.entries()?.get(name)?;
        allows(node.kind)?;
        node.write().lose_name()?;
        state.entries_mut()?.remove(name);
        if node.kind == FileKind::Directory {
            state.links -= 1;
        }
        state.mark_modified();
        drop(state);
        self.reap(&node);
        Ok(())
    }

    /// Lists `.` and `..`, whose attributes are known, then the names of the locked directory, until `names` returns false.
    fn list(
        &self,
        ino: Ino,
        cookie: u64,
        mut names: impl FnMut(DirectoryEntry<'_>, &Node, Option<Attributes>) -> bool,
    ) -> Result<()> {
        let directory = self.directory(ino)?;
        let parent = directory.read().entries()?.parent;
        // Before the directory is locked, since it lies above.
        let parent = self.node(parent).unwrap_or_else(|_| Arc::clone(&directory));
        let above = parent.attributes();
        let state = directory.read();
        if state.links == 0 {
            return Ok(());
        }
        let own = directory.attributes_of(&state);
        let dots: [(u64, &[u8], Attributes, &Node); 2] =
            [(DOT, b".", own, &directory), (DOT_DOT, b"..", above, &parent)];
        for (at, name, attributes, node) in dots {
            let entry = DirectoryEntry { ino: node.ino, kind: FileKind::Directory, name, cookie: at };
            if cookie < at && !names(entry, node, Some(attributes)) {
                return Ok(());
            }
        }
        for (at, name, node) in state.entries()?.after(cookie.max(DOT_DOT)) {
            let entry = DirectoryEntry { ino: node.ino, kind: node.kind, name, cookie: at };
            if !names(entry, node, None) {
                break;
            }
        }
        if self.keeps_access_times {
            directory.touch(state);
        }
        Ok(())
    }

    fn copy(&self, from: (&Node, u64), to: (&Node, u64), length: u64) -> Result<u64> {
        let mut buffer = Vec::new();
        let mut copied = 0;
        while copied < length {
            let wanted = COPIED_AT_ONCE.min(length - copied) as u32;
            buffer.clear();
            from.0.read().content()?.read(from.1 + copied, wanted, &mut buffer);
            let mut target = to.0.write();
            match target.content_mut()?.write(to.1 + copied, &buffer) {
                Ok(()) if buffer.is_empty() => break,
                Ok(()) => target.mark_modified(),
                Err(error) if copied == 0 => return Err(error),
                Err(_) => break,
            }
            copied += buffer.len() as u64;
        }
        Ok(copied)
    }
}

fn is_no_directory(kind: FileKind) -> Result<()> {
    if kind == FileKind::Directory { Err(Errno::ISDIR) } else { Ok(()) }
}

fn is_directory(kind: FileKind) -> Result<()> {
    if kind == FileKind::Directory { Ok(()) } else { Err(Errno::NOTDIR) }
}

impl FileSystem for MemoryFileSystem {
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attributes> {
        let node = match name {
            b"." => self.directory(parent)?,
            b".." => {
                let directory = self.directory(parent)?;
                let above = directory.read();
                if above.links == 0 {
                    return Err(Errno::NOENT);
                }
                self.node(above.entries()?.parent)?
            }
            _ => {
                let directory = self.directory(parent)?;
                let state = directory.read();
                let node = state.entries()?.get(name)?;
                // While its name is there: nobody can take the node away in between.
                node.refer();
                drop(state);
                return Ok(node.attributes());
            }
        };
        node.refer();
        Ok(node.attributes())
    }

    fn forget(&self, ino: Ino, references: u64) {
        if let Ok(node) = self.node(ino) {
            node.forget(references);
            self.reap(&node);
        }
    }

    fn attributes(&self, ino: Ino) -> Result<Attributes> {
        Ok(self.node(ino)?.attributes())
    }

    fn change(&self, _: Caller, ino: Ino, change: Change) -> Result<Attributes> {
        let node = self.node(ino)?;
        let mut state = node.write();
        state.change(&change)?;
        Ok(node.attributes_of(&state))
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        let node = self.node(ino)?;
        let state = node.read();
        let Body::Symlink(target) = &state.body else { return Err(Errno::INVAL) };
        let target = target.clone();
        if self.keeps_access_times {
            node.touch(state);
        }
        Ok(target)
    }

    fn make_node(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode) -> Result<Attributes> {
        self.add_node(caller, parent, name, node, self.empty_body(parent, node.kind)?)
    }

    fn symlink(&self, caller: Caller, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attributes> {
        match target.len() {
            0 => return Err(Errno::NOENT),
            1..=4095 => {}
            _ => return Err(Errno::NAMETOOLONG),
        }
        let node = NewNode { kind: FileKind::Symlink, permissions: 0o777, umask: 0, device: 0 };
        self.add_node(caller, parent, name, node, Body::Symlink(target.to_vec()))
    }

    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attributes> {
        let node = self.node(ino)?;
        if node.kind == FileKind::Directory {
            return Err(Errno::PERM);
        }
        let directory = self.directory(parent)?;
        let mut state = directory.write();
        if state.entries()?.find(name)?.is_some() {
            return Err(Errno::EXIST);
        }
        let mut linked = node.write();
        if state.links == 0 || linked.links == 0 {
            return Err(Errno::NOENT);
        }
        linked.links = linked.links.checked_add(1).ok_or(Errno::MLINK)?;
        state.entries_mut()?.put(name, Arc::clone(&node));
        state.mark_modified();
        linked.changed = state.changed;
        node.refer();
        Ok(node.attributes_of(&linked))
    }

    fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.drop_name(parent, name, is_no_directory)
    }

    fn remove_directory(&self, parent: Ino, name: &[u8]) -> Result<()> {
        if name == b".." {
            return Err(Errno::NOTEMPTY);
        }
        self.drop_name(parent, name, is_directory)
    }

    fn rename(&self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8], mode: RenameMode) -> Result<()> {
        self.move_name((parent, name), (new_parent, new_name), mode)
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Opened> {
        self.open_node(&*self.node(ino)?, flags)
    }

    fn create(
        &self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        flags: OpenFlags,
    ) -> Result<(Attributes, Opened)> {
        if node.kind != FileKind::Regular {
            return Err(Errno::INVAL);
        }
        let directory = self.directory(parent)?;
        let mut state = directory.write();
        let (made, opened) = match state.entries()?.find(name)? {
            Some(_) if flags.exclusive => return Err(Errno::EXIST),
            Some(there) => {
                let opened = self.open_node(&there, flags)?;
                there.refer();
                (there, opened)
            }
            None => {
                let made = self.add(caller, &mut state, name, node, self.empty_body(parent, node.kind)?)?;
                let opened = self.opened_new(&made, flags);
                (made, opened)
            }
        };
        drop(state);
        Ok((made.attributes(), opened))
    }

    fn release(&self, ino: Ino, _: Handle) {
        self.close(ino);
    }

    fn read(&self, ino: Ino, handle: Handle, offset: u64, length: u32, out: &mut Vec<u8>) -> Result<()> {
        let node = self.node(ino)?;
        let state = node.read();
        state.content()?.read(offset, length, out);
        if self.keeps_access_times && length > 0 && handle & KEEPS_ACCESS_TIME == 0 {
            node.touch(state);
        }
        Ok(())
    }

    fn write(&self, ino: Ino, _: Handle, offset: u64, data: &[u8], flags: WriteFlags) -> Result<()> {
        let node = self.node(ino)?;
        let mut state = node.write();
        let content = state.content_mut()?;
        let offset = if flags.append { content.size() } else { offset };
        content.write(offset, data)?;
        if !data.is_empty() {
            if flags.kills_privileges {
                state.kill_privileges();
            }
            state.mark_modified();
        }
        Ok(())
    }

    fn flush(&self, _: Ino, _: Handle) -> Result<()> {
        Ok(())
    }

    fn fsync(&self, _: Ino, _: bool) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, caller: Caller, ino: Ino, _: Handle, offset: u64, length: u64, how: Allocation) -> Result<()> {
        let node = self.node(ino)?;
        let mut state = node.write();
        state.content_mut()?.allocate(offset, length, how)?;
        if !caller.keeps_privileges() {
            state.kill_privileges();
        }
        state.mark_modified();
        Ok(())
    }

    fn seek(&self, ino: Ino, offset: u64, to: SeekFrom) -> Result<u64> {
        self.node(ino)?.read().content()?.seek(offset, to)
    }

    fn copy_range(&self, caller: Caller, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<u64> {
        let (source, target) = (self.node(from.0)?, self.node(to.0)?);
        let size = source.read().content()?.size();
        target.read().content()?;
        let length = length.min(size.saturating_sub(from.1));
        if from.0 == to.0 && from.1 < to.1.saturating_add(length) && to.1 < from.1 + length {
            return Err(Errno::INVAL);
        }
        checked_end(to.1, length)?;
        let copied = self.copy((&source, from.1), (&target, to.1), length)?;
        if copied > 0 && !caller.keeps_privileges() {
            target.write().kill_privileges();
        }
        Ok(copied)
    }

    fn read_directory(&self, ino: Ino, cookie: u64, take: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()> {
        self.list(ino, cookie, |entry, _, _| take(entry))
    }

    fn read_directory_plus(
        &self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(DirectoryEntry<'_>, &Attributes) -> bool,
    ) -> Result<()> {
        self.list(ino, cookie, |entry, node, known| {
            let takes = take(entry, &known.unwrap_or_else(|| node.attributes()));
            if takes && entry.cookie > DOT_DOT {
                node.refer();
            }
            takes
        })
    }

    fn open_directory(&self, ino: Ino) -> Result<Opened> {
        Ok(self.opened(&*self.directory(ino)?, OpenFlags { read: true, ..OpenFlags::default() }))
    }

    fn release_directory(&self, ino: Ino, _: Handle) {
        self.close(ino);
    }

    fn fsync_directory(&self, ino: Ino) -> Result<()> {
        self.directory(ino).map(drop)
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.node(ino)?.read().xattrs.get(name).cloned().ok_or(Errno::NODATA)
    }

    fn set_xattr(&self, caller: Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let node = self.node(ino)?;
        let mut state = node.write();
        let is_member = caller.is_in_group(state.gid);
        state.set_xattr(is_member, name, value, how)
    }

    fn xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        Ok(self.node(ino)?.read().xattrs.keys().cloned().collect())
    }

    fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        let node = self.node(ino)?;
        let mut guard = node.write();
        let state: &mut State = &mut guard;
        match state.xattrs.remove(name) {
            Some(_) => state.changed = super::now(),
            // No ACL is what there is without it.
            None if crate::acl::is_name(name) => {}
            None => return Err(Errno::NODATA),
        }
        Ok(())
    }

    fn statistics(&self) -> Result<VolumeStatistics> {
        let (blocks, blocks_free) = self.space.blocks();
        let (inodes, inodes_free) = self.space.inodes();
        let block_bytes = BLOCK_BYTES as u32;
        Ok(VolumeStatistics { block_bytes, blocks, blocks_free, blocks_available: blocks_free, inodes, inodes_free })
    }

    /// Memory has nothing to discard.
    fn discard_free(&self, _: Range<u64>, _: u64) -> Result<u64> {
        Ok(0)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn file_bytes_max(&self) -> u64 {
        FILE_BYTES_MAX
    }

    fn is_read_only(&self) -> bool {
        false
    }
}
