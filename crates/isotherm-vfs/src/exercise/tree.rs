//! Comparing two file systems as they are.

use std::collections::{BTreeMap, HashMap};

use super::apply::Referred;
use super::operation::NodeSeen;
use crate::{FileKind, FileSystem, Handle, Ino, OpenFlags, ROOT, SeekFrom};

/// Bytes of a file that are compared at once.
const CHUNK_BYTES: u32 = 1 << 16;

/// Compares the whole tree of two file systems: names, what leads to the same node, attributes except times and space, content,
/// and extended attributes.
///
/// # Errors
/// The first path where they differ, and how; or a request that failed.
pub fn compare_trees(a: &dyn FileSystem, b: &dyn FileSystem) -> Result<(), String> {
    let root = |fs: &dyn FileSystem| fs.lookup(ROOT, b".").map_err(|error| format!("/: {error}"));
    let (root_a, root_b) = (Referred::new(a, root(a)?), Referred::new(b, root(b)?));
    let mut walk = Walk { a, b, pairs: HashMap::new(), partners: HashMap::new() };
    let mut rest = vec![(String::from("/"), root_a, root_b)];
    while let Some((path, node_a, node_b)) = rest.pop() {
        let is_new = walk.pair(&path, &node_a, &node_b)?;
        if is_new {
            walk.compare_nodes(&path, &node_a, &node_b)?;
            if node_a.attributes.kind == FileKind::Directory {
                walk.compare_names(&path, node_a.ino(), node_b.ino(), &mut rest)?;
            }
        }
    }
    Ok(())
}

struct Walk<'a> {
    a: &'a dyn FileSystem,
    b: &'a dyn FileSystem,
    /// Nodes of one and of the other that are the same, seen from each side: names of one node are names of one there.
    pairs: HashMap<Ino, Ino>,
    partners: HashMap<Ino, Ino>,
}

impl<'a> Walk<'a> {
    /// Whether the two nodes are seen for the first time.
    fn pair(&mut self, path: &str, a: &Referred<'_>, b: &Referred<'_>) -> Result<bool, String> {
        match (self.pairs.insert(a.ino(), b.ino()), self.partners.insert(b.ino(), a.ino())) {
            (None, None) => Ok(true),
            (Some(other), Some(_)) if other == b.ino() => Ok(false),
            _ => Err(format!("{path}: is another name of a node in one of the two only")),
        }
    }

    fn compare_nodes(&self, path: &str, a: &Referred<'_>, b: &Referred<'_>) -> Result<(), String> {
        let (seen_a, seen_b) = (NodeSeen::of(&a.attributes), NodeSeen::of(&b.attributes));
        if seen_a != seen_b {
            return Err(format!("{path}: {seen_a:?} and {seen_b:?}"));
        }
        let (xattrs_a, xattrs_b) = (xattrs(self.a, a.ino(), path)?, xattrs(self.b, b.ino(), path)?);
        if xattrs_a != xattrs_b {
            return Err(format!("{path}: extended attributes {xattrs_a:?} and {xattrs_b:?}"));
        }
        match seen_a.kind {
            FileKind::Symlink => {
                let target = |fs: &dyn FileSystem, ino| fs.read_link(ino).map_err(|error| format!("{path}: {error}"));
                if target(self.a, a.ino())? != target(self.b, b.ino())? {
                    return Err(format!("{path}: leads elsewhere"));
                }
                Ok(())
            }
            FileKind::Regular => {
                let (a, b) = (File::open(self.a, a.ino(), path)?, File::open(self.b, b.ino(), path)?);
                compare_content(path, &a, &b, seen_a.size)
            }
            _ => Ok(()),
        }
    }

    fn compare_names(
        &self,
        path: &str,
        a: Ino,
        b: Ino,
        rest: &mut Vec<(String, Referred<'a>, Referred<'a>)>,
    ) -> Result<(), String> {
        let (names_a, names_b) = (names(self.a, a, path)?, names(self.b, b, path)?);
        if names_a != names_b {
            return Err(format!("{path}: holds {names_a:?} and {names_b:?}"));
        }
        for name in names_a {
            let path = format!("{}/{}", path.trim_end_matches('/'), String::from_utf8_lossy(&name));
            let found = |fs: &'a dyn FileSystem, parent| match fs.lookup(parent, &name) {
                Ok(attributes) => Ok(Referred::new(fs, attributes)),
                Err(error) => Err(format!("{path}: is listed, and not found: {error}")),
            };
            let pair = (found(self.a, a)?, found(self.b, b)?);
            rest.push((path, pair.0, pair.1));
        }
        Ok(())
    }
}

/// Names of a directory in order, `.` and `..` left out.
fn names(fs: &dyn FileSystem, ino: Ino, path: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut names = Vec::new();
    let listed = fs.read_directory(ino, 0, &mut |entry| {
        if !matches!(entry.name, b"." | b"..") {
            names.push(entry.name.to_vec());
        }
        true
    });
    listed.map_err(|error| format!("{path}: listing: {error}"))?;
    names.sort();
    Ok(names)
}

fn xattrs(fs: &dyn FileSystem, ino: Ino, path: &str) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String> {
    let failed = |error| format!("{path}: extended attributes: {error}");
    let mut all = BTreeMap::new();
    for name in fs.xattrs(ino).map_err(failed)? {
        let value = fs.xattr(ino, &name).map_err(failed)?;
        all.insert(name, value);
    }
    Ok(all)
}

/// An open file, closed at the end.
struct File<'a> {
    fs: &'a dyn FileSystem,
    ino: Ino,
    handle: Handle,
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        self.fs.release(self.ino, self.handle);
    }
}

impl<'a> File<'a> {
    fn open(fs: &'a dyn FileSystem, ino: Ino, path: &str) -> Result<Self, String> {
        let flags = OpenFlags { read: true, ..OpenFlags::default() };
        let opened = fs.open(ino, flags).map_err(|error| format!("{path}: opening: {error}"))?;
        Ok(Self { fs, ino, handle: opened.handle })
    }

    fn next_data(&self, offset: u64) -> Option<u64> {
        self.fs.seek(self.ino, offset, SeekFrom::Data).ok()
    }

    fn read(&self, offset: u64) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let read = self.fs.read(self.ino, self.handle, offset, CHUNK_BYTES, &mut out);
        read.map(|()| out).map_err(|error| format!("reading at {offset}: {error}"))
    }
}

/// Compares what is data in at least one of the two.
fn compare_content(path: &str, a: &File<'_>, b: &File<'_>, size: u64) -> Result<(), String> {
    let mut at = 0;
    while at < size {
        let Some(data) = [a.next_data(at), b.next_data(at)].into_iter().flatten().min() else { break };
        let read = |file: &File<'_>| file.read(data).map_err(|error| format!("{path}: {error}"));
        let (bytes_a, bytes_b) = (read(a)?, read(b)?);
        if bytes_a != bytes_b {
            let same = bytes_a.iter().zip(&bytes_b).take_while(|(a, b)| a == b).count();
            let byte = |bytes: &[u8]| bytes.get(same).copied();
            let differs = (byte(&bytes_a), byte(&bytes_b));
            return Err(format!("{path}: differs at byte {} of {size}: {differs:?}", data + same as u64));
        }
        at = data + u64::from(CHUNK_BYTES);
    }
    Ok(())
}
