//! What the tree should be, said simply: nodes in a map, names in maps, content block by block.

use std::collections::BTreeMap;

use isotherm_vfs::{Errno, FileKind, Ino, ROOT, RenameMode, SetXattr, Time};

const BLOCK: u64 = 4096;

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub(super) kind: FileKind,
    pub(super) permissions: u16,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) links: u32,
    pub(super) size: u64,
    pub(super) modified: Time,
    pub(super) changed: Time,
    /// Blocks that are not all zeros.
    pub(super) blocks: BTreeMap<u64, Vec<u8>>,
    pub(super) target: Vec<u8>,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) names: BTreeMap<Vec<u8>, Ino>,
    pub(super) parent: Ino,
    pub(super) opens: u32,
}

/// All of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Model {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) now: Time,
}

type Result<T> = std::result::Result<T, Errno>;

impl Model {
    pub(super) fn new(now: Time) -> Self {
        let mut model = Self { nodes: BTreeMap::new(), now };
        let root = Node { links: 2, parent: ROOT, ..model.blank(FileKind::Directory, 0o755, (0, 0)) };
        model.nodes.insert(ROOT, root);
        model
    }

    fn blank(&self, kind: FileKind, permissions: u16, (uid, gid): (u32, u32)) -> Node {
        Node {
            kind,
            permissions,
            uid,
            gid,
            links: 1,
            size: 0,
            modified: self.now,
            changed: self.now,
            blocks: BTreeMap::new(),
            target: Vec::new(),
            xattrs: BTreeMap::new(),
            names: BTreeMap::new(),
            parent: 0,
            opens: 0,
        }
    }

    pub(super) fn node(&mut self, ino: Ino) -> &mut Node {
        self.nodes.get_mut(&ino).expect("the node is there")
    }

    fn touch_directory(&mut self, ino: Ino) {
        let now = self.now;
        let directory = self.node(ino);
        directory.size = directory.names.len() as u64;
        (directory.modified, directory.changed) = (now, now);
    }

    fn check_new(&self, parent: Ino, name: &[u8]) -> Result<()> {
        match &self.nodes[&parent] {
            directory if directory.names.contains_key(name) => Err(Errno::EXIST),
            directory if directory.links == 0 => Err(Errno::NOENT),
            _ => Ok(()),
        }
    }

    pub(super) fn make(
        &mut self,
        ino: Ino,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        made: (u16, u32, u32),
    ) -> Result<()> {
        self.check_new(parent, name)?;
        let (mut permissions, uid, mut gid) = made;
        let above = self.nodes[&parent].clone();
        if above.permissions & 0o2000 != 0 {
            gid = above.gid;
            if kind == FileKind::Directory {
                permissions |= 0o2000;
            }
        }
        let mut node = self.blank(kind, permissions, (uid, gid));
        if kind == FileKind::Directory {
            (node.links, node.parent) = (2, parent);
            self.node(parent).links += 1;
        }
        assert!(self.nodes.insert(ino, node).is_none(), "inode {ino} is in use");
        self.node(parent).names.insert(name.to_vec(), ino);
        self.touch_directory(parent);
        Ok(())
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &[u8]) -> Result<()> {
        if self.nodes[&ino].kind == FileKind::Directory {
            return Err(Errno::PERM);
        }
        self.check_new(parent, name)?;
        if self.nodes[&ino].links == 0 {
            return Err(Errno::NOENT);
        }
        self.node(ino).links += 1;
        self.node(ino).changed = self.now;
        self.node(parent).names.insert(name.to_vec(), ino);
        self.touch_directory(parent);
        Ok(())
    }

    pub(super) fn remove(&mut self, parent: Ino, name: &[u8], is_directory: bool) -> Result<()> {
        let ino = *self.nodes[&parent].names.get(name).ok_or(Errno::NOENT)?;
        match (is_directory, self.nodes[&ino].kind == FileKind::Directory) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            _ => {}
        }
        if !self.nodes[&ino].names.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.node(parent).names.remove(name);
        if is_directory {
            self.node(parent).links -= 1;
        }
        self.touch_directory(parent);
        self.lose(ino);
        Ok(())
    }

    fn lose(&mut self, ino: Ino) {
        let now = self.now;
        let node = self.node(ino);
        node.links = if node.kind == FileKind::Directory { 0 } else { node.links - 1 };
        node.changed = now;
        self.reap(ino);
    }

    pub(super) fn reap(&mut self, ino: Ino) {
        if self.nodes[&ino].links == 0 && self.nodes[&ino].opens == 0 {
            self.nodes.remove(&ino);
        }
    }

    fn is_below(&self, mut ino: Ino, above: Ino) -> bool {
        while ino != ROOT && ino != above {
            ino = self.nodes[&ino].parent;
        }
        ino == above
    }

    /// A whiteout gets the number `left`.
    pub(super) fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode, left: Ino) -> Result<()> {
        let source = *self.nodes[&from.0].names.get(from.1).ok_or(Errno::NOENT)?;
        let target = self.nodes[&to.0].names.get(to.1).copied();
        if self.nodes[&to.0].links == 0 {
            return Err(Errno::NOENT);
        }
        match (mode, target) {
            (mode, Some(_)) if mode.is_exclusive() => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            (_, Some(target)) if target == source => return Ok(()),
            _ => {}
        }
        let is_directory = |model: &Self, ino| model.nodes[&ino].kind == FileKind::Directory;
        let moves_directory = is_directory(self, source);
        if moves_directory && self.is_below(to.0, source) {
            return Err(Errno::INVAL);
        }
        if let Some(target) = target {
            let onto_directory = is_directory(self, target);
            match mode {
                RenameMode::Exchange if onto_directory && self.is_below(from.0, target) => return Err(Errno::INVAL),
                RenameMode::Exchange => {}
                _ if moves_directory && !onto_directory => return Err(Errno::NOTDIR),
                _ if !moves_directory && onto_directory => return Err(Errno::ISDIR),
                _ if !self.nodes[&target].names.is_empty() => return Err(Errno::NOTEMPTY),
                _ if onto_directory => self.node(to.0).links -= 1,
                _ => {}
            }
        }
        self.node(from.0).names.remove(from.1);
        self.node(to.0).names.insert(to.1.to_vec(), source);
        self.arrive(source, from.0, to.0);
        match (mode, target) {
            (RenameMode::Exchange, Some(target)) => {
                self.node(from.0).names.insert(from.1.to_vec(), target);
                self.arrive(target, to.0, from.0);
            }
            (_, Some(target)) => self.lose(target),
            _ => {}
        }
        // It may have the number of the target that is gone.
        if let RenameMode::Whiteout { caller, .. } = mode {
            self.make(left, from.0, from.1, FileKind::CharacterDevice, (0, caller.uid, caller.gid))?;
        }
        self.touch_directory(from.0);
        self.touch_directory(to.0);
        Ok(())
    }

    fn arrive(&mut self, ino: Ino, from: Ino, to: Ino) {
        self.node(ino).changed = self.now;
        if self.nodes[&ino].kind == FileKind::Directory {
            self.node(ino).parent = to;
            self.node(from).links -= 1;
            self.node(to).links += 1;
        }
    }

    fn touch_data(&mut self, ino: Ino) {
        let now = self.now;
        let node = self.node(ino);
        (node.modified, node.changed) = (now, now);
    }

    pub(super) fn write(&mut self, ino: Ino, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let node = self.node(ino);
        for (i, byte) in data.iter().enumerate() {
            let at = offset + i as u64;
            let block = node.blocks.entry(at / BLOCK).or_insert_with(|| vec![0; BLOCK as usize]);
            block[(at % BLOCK) as usize] = *byte;
        }
        node.size = node.size.max(offset + data.len() as u64);
        self.touch_data(ino);
    }

    fn zero(&mut self, ino: Ino, offset: u64, end: u64) {
        let node = self.node(ino);
        for (number, block) in node.blocks.range_mut(offset / BLOCK..end.div_ceil(BLOCK)) {
            let start = number * BLOCK;
            let from = offset.max(start) - start;
            let until = end.min(start + BLOCK) - start;
            block[from as usize..until as usize].fill(0);
        }
    }

    pub(super) fn truncate(&mut self, ino: Ino, size: u64) {
        if size < self.nodes[&ino].size {
            self.zero(ino, size, 1 << 62);
            self.node(ino).blocks.retain(|block, _| block * BLOCK < size);
        }
        self.node(ino).size = size;
        self.touch_data(ino);
    }

    pub(super) fn zero_range(&mut self, ino: Ino, offset: u64, length: u64, grows: bool) {
        self.zero(ino, offset, offset + length);
        self.reserve(ino, offset, length, grows);
    }

    pub(super) fn reserve(&mut self, ino: Ino, offset: u64, length: u64, grows: bool) {
        let node = self.node(ino);
        if grows {
            node.size = node.size.max(offset + length);
        }
        self.touch_data(ino);
    }

    pub(super) fn read(&self, ino: Ino, offset: u64, length: u64) -> Vec<u8> {
        let node = &self.nodes[&ino];
        (offset..(offset + length).min(node.size))
            .map(|at| node.blocks.get(&(at / BLOCK)).map_or(0, |block| block[(at % BLOCK) as usize]))
            .collect()
    }

    pub(super) fn set_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let now = self.now;
        let node = self.node(ino);
        match (how, node.xattrs.contains_key(name)) {
            (SetXattr::Create, true) => return Err(Errno::EXIST),
            (SetXattr::Replace, false) => return Err(Errno::NODATA),
            _ => {}
        }
        let total: usize =
            node.xattrs.iter().filter(|(other, _)| *other != name).map(|(n, v)| 5 + n.len() + v.len()).sum();
        if total + 5 + name.len() + value.len() > 128 << 10 {
            return Err(Errno::NOSPC);
        }
        node.xattrs.insert(name.to_vec(), value.to_vec());
        node.changed = now;
        Ok(())
    }

    pub(super) fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<()> {
        let now = self.now;
        let node = self.node(ino);
        node.xattrs.remove(name).ok_or(Errno::NODATA)?;
        node.changed = now;
        Ok(())
    }
}
