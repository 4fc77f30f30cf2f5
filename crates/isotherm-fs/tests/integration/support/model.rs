//! A file system as it should be: nodes in memory, and what every operation does to them.

use super::operation::{Operation, bytes, split};
use super::snapshot::Snapshot;
use isotherm_vfs::{Errno, FileKind, RenameMode, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const BLOCK: u64 = 4096;
/// The root directory.
pub const ROOT: usize = 0;

/// A block of a file.
pub type Block = Arc<[u8; BLOCK as usize]>;

/// A regular file. Bytes behind its end are zeros.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct File {
    pub size: u64,
    /// What was written.
    pub blocks: BTreeMap<u64, Block>,
    /// Blocks whose space is set aside.
    pub reserved: BTreeSet<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    Directory(BTreeMap<String, usize>),
    File(File),
    Symlink(String),
    /// A character device.
    Whiteout,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub body: Body,
    pub permissions: u16,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// When the content of a file was changed last.
    pub modified: i64,
}

impl Node {
    /// The file that it is.
    pub fn file(&self) -> Option<&File> {
        if let Body::File(file) = &self.body { Some(file) } else { None }
    }
}

/// See the module's text. Copies share their nodes.
#[derive(Clone, Debug)]
pub struct Model {
    nodes: BTreeMap<usize, Arc<Node>>,
    next: usize,
}

impl Default for Model {
    fn default() -> Self {
        let mut model = Self { nodes: BTreeMap::new(), next: ROOT };
        model.add(Body::Directory(BTreeMap::new()), 0o755, 0);
        model
    }
}

impl File {
    /// Changes a part of one block.
    fn patch(&mut self, block: u64, at: usize, bytes: &[u8]) {
        let content = self.blocks.entry(block).or_insert_with(|| Arc::new([0; BLOCK as usize]));
        Arc::make_mut(content)[at..at + bytes.len()].copy_from_slice(bytes);
        self.reserved.remove(&block);
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let count = ((BLOCK - at % BLOCK) as usize).min(data.len() - done);
            self.patch(at / BLOCK, (at % BLOCK) as usize, &data[done..done + count]);
            done += count;
        }
        self.size = self.size.max(offset + data.len() as u64);
    }

    fn truncate(&mut self, size: u64) {
        if size < self.size {
            let first = size.div_ceil(BLOCK);
            self.blocks.retain(|block, _| *block < first);
            self.reserved.retain(|block| *block < first);
            self.zero(size, first * BLOCK);
        }
        self.size = size;
    }

    /// Whole blocks become holes, parts zeros.
    fn zero(&mut self, from: u64, end: u64) {
        for block in from / BLOCK..end.div_ceil(BLOCK) {
            let (first, last) = (from.max(block * BLOCK), end.min((block + 1) * BLOCK));
            if last - first == BLOCK {
                self.blocks.remove(&block);
                self.reserved.remove(&block);
            } else if self.blocks.contains_key(&block) {
                self.patch(block, (first % BLOCK) as usize, &vec![0; (last - first) as usize]);
            }
        }
    }

    fn reserve(&mut self, from: u64, end: u64) {
        let holes = (from / BLOCK..end.div_ceil(BLOCK)).filter(|block| !self.blocks.contains_key(block));
        self.reserved.extend(holes.collect::<Vec<_>>());
    }
}

impl Model {
    /// The state that was found on a volume.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut model = Self::default();
        let mut numbers = BTreeMap::new();
        for (path, seen) in snapshot {
            let body = match seen.kind {
                FileKind::Directory => Body::Directory(BTreeMap::new()),
                FileKind::CharacterDevice => Body::Whiteout,
                FileKind::Symlink => Body::Symlink(String::from_utf8_lossy(&seen.content).into_owned()),
                _ => {
                    let mut file = File { size: seen.size, ..File::default() };
                    for (number, content) in seen.content.chunks(BLOCK as usize).enumerate() {
                        if content.iter().any(|byte| *byte != 0) {
                            file.patch(number as u64, 0, content);
                        }
                    }
                    Body::File(file)
                }
            };
            let node =
                Node { body, permissions: seen.permissions, xattrs: seen.xattrs.clone(), modified: seen.modified };
            if path.is_empty() {
                model.nodes.insert(ROOT, Arc::new(node));
                continue;
            }
            let number = *numbers.entry(seen.ino).or_insert_with(|| {
                let number = model.next;
                model.next += 1;
                model.nodes.insert(number, Arc::new(node));
                number
            });
            // Directories come before what is in them: a path is greater than its beginning.
            let (parent, name) = split(path);
            let parent = model.find(parent).expect("a directory is listed before its names");
            model.names(parent).expect("it is one").insert(name.to_owned(), number);
        }
        model
    }

    fn add(&mut self, body: Body, permissions: u16, now: i64) -> usize {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, Arc::new(Node { body, permissions, xattrs: BTreeMap::new(), modified: now }));
        number
    }

    /// A node by its number.
    pub fn node(&self, number: usize) -> Option<&Arc<Node>> {
        self.nodes.get(&number)
    }

    fn node_mut(&mut self, number: usize) -> &mut Node {
        Arc::make_mut(self.nodes.get_mut(&number).expect("it exists"))
    }

    /// The names of a directory.
    pub fn listing(&self, number: usize) -> Result<&BTreeMap<String, usize>> {
        if let Body::Directory(names) = &self.nodes[&number].body { Ok(names) } else { Err(Errno::NOTDIR) }
    }

    fn names(&mut self, number: usize) -> Result<&mut BTreeMap<String, usize>> {
        if let Body::Directory(names) = &mut self.node_mut(number).body { Ok(names) } else { Err(Errno::NOTDIR) }
    }

    /// The node that a path leads to.
    pub fn find(&self, path: &str) -> Result<usize> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(ROOT, |directory, name| self.listing(directory)?.get(name).copied().ok_or(Errno::NOENT))
    }

    fn is_directory(&self, number: usize) -> bool {
        matches!(self.nodes[&number].body, Body::Directory(_))
    }

    /// All paths, with the nodes that they lead to.
    pub fn paths(&self) -> BTreeMap<String, usize> {
        let mut all = BTreeMap::from([(String::new(), ROOT)]);
        let mut open = vec![(String::new(), ROOT)];
        while let Some((path, number)) = open.pop() {
            for (name, child) in self.listing(number).into_iter().flatten() {
                let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                open.push((path.clone(), *child));
                all.insert(path, *child);
            }
        }
        all
    }

    /// Links that stat(2) tells of.
    pub fn links(&self, number: usize) -> u32 {
        let children = |node: &Arc<Node>| match &node.body {
            Body::Directory(names) => names.values().copied().collect(),
            _ => Vec::new(),
        };
        if self.is_directory(number) {
            let inside = children(&self.nodes[&number]);
            return 2 + inside.into_iter().filter(|child| self.is_directory(*child)).count() as u32;
        }
        self.nodes.values().flat_map(children).filter(|child| *child == number).count() as u32
    }

    /// A node that has lost a name goes with the last.
    fn drop_nameless(&mut self, number: usize) {
        let is_named = self.nodes.values().any(|node| match &node.body {
            Body::Directory(names) => names.values().any(|child| *child == number),
            _ => false,
        });
        if !is_named {
            self.nodes.remove(&number);
        }
    }

    fn add_name(&mut self, path: &str, body: Body, permissions: u16, now: i64) -> Result<()> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        if self.listing(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        let number = self.add(body, permissions, now);
        self.names(parent)?.insert(name.to_owned(), number);
        Ok(())
    }

    fn change_file(&mut self, path: &str, now: i64, change: impl FnOnce(&mut File)) -> Result<()> {
        let number = self.find(path)?;
        match self.nodes[&number].body {
            Body::Directory(_) => return Err(Errno::ISDIR),
            Body::Symlink(_) | Body::Whiteout => return Err(Errno::INVAL),
            Body::File(_) => {}
        }
        let node = self.node_mut(number);
        node.modified = now;
        if let Body::File(file) = &mut node.body {
            change(file);
        }
        Ok(())
    }

    /// Carries an operation out, or refuses it and changes nothing.
    pub fn apply(&mut self, operation: &Operation, now: i64) -> Result<()> {
        match operation {
            Operation::Create(path) => self.add_name(path, Body::File(File::default()), 0o644, now),
            Operation::MakeDirectory(path) => self.add_name(path, Body::Directory(BTreeMap::new()), 0o755, now),
            Operation::Symlink { path, target } => self.add_name(path, Body::Symlink(target.clone()), 0o777, now),
            Operation::Write { path, offset, length, stamp } => {
                self.change_file(path, now, |file| file.write(*offset, &bytes(*stamp, *length)))
            }
            Operation::Append { path, length, stamp } => {
                self.change_file(path, now, |file| file.write(file.size, &bytes(*stamp, *length)))
            }
            Operation::Truncate { path, size } => self.change_file(path, now, |file| file.truncate(*size)),
            Operation::Reserve { path, offset, length, keep_size } => self.change_file(path, now, |file| {
                file.reserve(*offset, offset + length);
                file.size = if *keep_size { file.size } else { file.size.max(offset + length) };
            }),
            Operation::Zero { path, offset, length, keep_size } => self.change_file(path, now, |file| {
                file.zero(*offset, offset + length);
                file.reserve(*offset, offset + length);
                file.size = if *keep_size { file.size } else { file.size.max(offset + length) };
            }),
            Operation::Punch { path, offset, length } => self.change_file(path, now, |file| {
                let end = offset + length;
                file.zero(*offset, if end >= file.size { end.next_multiple_of(BLOCK) } else { end });
            }),
            Operation::Rename { from, to, mode } => self.rename(from, to, *mode, now),
            Operation::Link { from, to } => {
                let number = self.find(from)?;
                let (parent, name) = split(to);
                let parent = self.find(parent)?;
                if self.is_directory(number) {
                    return Err(Errno::PERM);
                }
                if self.listing(parent)?.contains_key(name) {
                    return Err(Errno::EXIST);
                }
                self.names(parent)?.insert(name.to_owned(), number);
                Ok(())
            }
            Operation::Unlink(path) => self.remove(path, false),
            Operation::RemoveDirectory(path) => self.remove(path, true),
            Operation::SetXattr { path, name, length, stamp } => {
                let number = self.find(path)?;
                self.node_mut(number).xattrs.insert(name.clone().into(), bytes(*stamp, *length));
                Ok(())
            }
            Operation::RemoveXattr { path, name } => {
                let number = self.find(path)?;
                if !self.nodes[&number].xattrs.contains_key(name.as_bytes()) {
                    return Err(Errno::NODATA);
                }
                self.node_mut(number).xattrs.remove(name.as_bytes());
                Ok(())
            }
            Operation::Permissions { path, permissions } => {
                let number = self.find(path)?;
                self.node_mut(number).permissions = *permissions;
                Ok(())
            }
            Operation::Fsync(path) => self.find(path).map(drop),
            Operation::FsyncDirectory(path) => self.find(path).and_then(|number| self.listing(number)).map(drop),
            Operation::Sync | Operation::WriteGroups | Operation::Checkpoint | Operation::CleanAhead => Ok(()),
        }
    }

    fn remove(&mut self, path: &str, is_directory: bool) -> Result<()> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        let number = *self.listing(parent)?.get(name).ok_or(Errno::NOENT)?;
        match (is_directory, &self.nodes[&number].body) {
            (false, Body::Directory(_)) => return Err(Errno::ISDIR),
            (true, Body::Directory(names)) if !names.is_empty() => return Err(Errno::NOTEMPTY),
            (true, Body::File(_) | Body::Symlink(_) | Body::Whiteout) => return Err(Errno::NOTDIR),
            _ => {}
        }
        self.names(parent)?.remove(name);
        self.drop_nameless(number);
        Ok(())
    }

    /// Whether a directory is another one, or lies below it.
    fn is_below(&self, number: usize, ancestor: usize) -> bool {
        number == ancestor
            || self.listing(ancestor).is_ok_and(|names| names.values().any(|child| self.is_below(number, *child)))
    }

    fn rename(&mut self, from: &str, to: &str, mode: RenameMode, now: i64) -> Result<()> {
        let ((parent, name), (new_parent, new_name)) = (split(from), split(to));
        let (parent, new_parent) = (self.find(parent)?, self.find(new_parent)?);
        let source = *self.listing(parent)?.get(name).ok_or(Errno::NOENT)?;
        let target = self.listing(new_parent)?.get(new_name).copied();
        match (mode, target) {
            (mode, Some(_)) if mode.is_exclusive() => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            (_, Some(target)) if target == source => return Ok(()),
            _ => {}
        }
        if self.is_directory(source) && self.is_below(new_parent, source) {
            return Err(Errno::INVAL);
        }
        if let (RenameMode::Exchange, Some(target)) = (mode, target) {
            if self.is_directory(target) && self.is_below(parent, target) {
                return Err(Errno::INVAL);
            }
            self.names(parent)?.insert(name.to_owned(), target);
            self.names(new_parent)?.insert(new_name.to_owned(), source);
            return Ok(());
        }
        if let Some(target) = target {
            match (self.is_directory(source), &self.nodes[&target].body) {
                (false, Body::Directory(_)) => return Err(Errno::ISDIR),
                (true, Body::File(_) | Body::Symlink(_) | Body::Whiteout) => return Err(Errno::NOTDIR),
                (true, Body::Directory(names)) if !names.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            }
        }
        self.names(parent)?.remove(name);
        self.names(new_parent)?.insert(new_name.to_owned(), source);
        if let RenameMode::Whiteout { .. } = mode {
            self.add_name(from, Body::Whiteout, 0, now)?;
        }
        if let Some(target) = target {
            self.drop_nameless(target);
        }
        Ok(())
    }
}
