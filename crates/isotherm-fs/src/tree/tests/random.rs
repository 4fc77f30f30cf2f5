//! Random operations on the tree and on a simple model, while space runs out at any request for it, blocks are written out at
//! any moment, and the store is opened anew. A request that fails changes nothing; everything else is what the model says.

use isotherm_vfs::{Allocation, Change, NewTime, RenameMode, SeekFrom, SetXattr};
use proptest::prelude::*;

use super::model::{Model, Node};
use super::operations::{Operation, operation};
use super::*;

/// Kinds of nodes that are made.
const KINDS: [FileKind; 5] =
    [FileKind::Regular, FileKind::Directory, FileKind::Regular, FileKind::Directory, FileKind::Fifo];

/// How names move.
const RENAME_MODES: [RenameMode; 6] = [
    RenameMode::Replace,
    RenameMode::Replace,
    RenameMode::NoReplace,
    RenameMode::Exchange,
    RenameMode::Whiteout { caller: CALLER, replaces: true },
    RenameMode::Whiteout { caller: CALLER, replaces: false },
];

/// A tree and its model.
pub(super) struct Pair {
    tree: Option<Tree<MemoryStore>>,
    pub(super) model: Model,
}

impl Pair {
    pub(super) fn new(total: u64) -> Self {
        let mut tree = tree_of(total);
        tree.batch_pages = 2;
        Self { tree: Some(tree), model: Model::new(time(1)) }
    }

    pub(super) fn tree(&mut self) -> &mut Tree<MemoryStore> {
        self.tree.as_mut().expect("it is gone only while it is opened anew")
    }

    fn pick(&self, number: u8, wanted: impl Fn(&Node) -> bool) -> Option<Ino> {
        let all: Vec<Ino> = self.model.nodes.iter().filter(|(_, node)| wanted(node)).map(|(ino, _)| *ino).collect();
        (!all.is_empty()).then(|| all[usize::from(number) % all.len()])
    }

    fn directory(&self, number: u8) -> Ino {
        self.pick(number, |node| node.kind == FileKind::Directory).expect("there is a root")
    }

    fn file(&self, number: u8) -> Option<Ino> {
        self.pick(number, |node| node.kind == FileKind::Regular)
    }

    fn any(&self, number: u8) -> Ino {
        self.pick(number, |_| true).expect("there is a root")
    }

    /// What the tree answered is what the model does, unless space had to run out.
    fn judge<T>(
        &mut self,
        answer: Result<T>,
        may_fail: bool,
        does: impl FnOnce(&mut Model, &T) -> std::result::Result<(), Errno>,
        refuses: impl FnOnce(&mut Model) -> std::result::Result<(), Errno>,
    ) {
        match answer {
            Ok(value) => assert_eq!(does(&mut self.model, &value), Ok(())),
            Err(TreeError::Store(crate::store::StoreError::NoSpace)) if may_fail => {}
            Err(error) => assert_eq!(refuses(&mut self.model.clone()), Err(error.into())),
        }
    }

    pub(super) fn run(&mut self, operation: &Operation, may_fail: bool) {
        match operation {
            Operation::Make { .. } | Operation::Symlink { .. } => self.run_make(operation, may_fail),
            Operation::Link { .. }
            | Operation::Unlink { .. }
            | Operation::RemoveDirectory { .. }
            | Operation::Rename { .. } => self.run_name(operation, may_fail),
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Allocate { .. }
            | Operation::Copy { .. } => self.run_data(operation, may_fail),
            _ => self.run_other(operation, may_fail),
        }
    }

    fn run_make(&mut self, operation: &Operation, may_fail: bool) {
        match *operation {
            Operation::Make { directory, name, kind, permissions, gid } => {
                let parent = self.directory(directory);
                let kind = KINDS[usize::from(kind) % KINDS.len()];
                let caller = Caller { uid: 0, gid: u32::from(gid), pid: 1 };
                let new = NewNode { kind, permissions, umask: 0o022, device: 9 };
                let made = (permissions & !0o022, 0, u32::from(gid));
                let answer = self.tree().make_node(caller, parent, &[b'a' + name], new).map(|node| node.ino);
                if let Ok(ino) = answer {
                    self.tree().forget(ino, 1).unwrap();
                }
                let name = [b'a' + name];
                self.judge(
                    answer,
                    may_fail,
                    |model, ino| model.make(*ino, parent, &name, kind, made),
                    |model| model.make(u64::MAX, parent, &name, kind, made),
                );
            }
            Operation::Symlink { directory, name, length } => {
                let parent = self.directory(directory);
                let (target, name) = (vec![b't'; usize::from(length)], [b'a' + name]);
                let answer = self.tree().symlink(CALLER, parent, &name, &target).map(|node| node.ino);
                if let Ok(ino) = answer {
                    self.tree().forget(ino, 1).unwrap();
                }
                let make = |model: &mut Model, ino| {
                    model.make(ino, parent, &name, FileKind::Symlink, (0o777, 0, 0))?;
                    model.node(ino).size = target.len() as u64;
                    model.node(ino).target = target.clone();
                    Ok(())
                };
                self.judge(answer, may_fail, |model, ino| make(model, *ino), |model| make(model, u64::MAX));
            }
            _ => unreachable!("other operations run elsewhere"),
        }
    }

    fn run_name(&mut self, operation: &Operation, may_fail: bool) {
        match *operation {
            Operation::Link { node, directory, name } => {
                let (ino, parent, name) = (self.any(node), self.directory(directory), [b'a' + name]);
                let answer = self.tree().link(ino, parent, &name);
                if answer.is_ok() {
                    self.tree().forget(ino, 1).unwrap();
                }
                self.judge(answer, may_fail, |m, _| m.link(ino, parent, &name), |m| m.link(ino, parent, &name));
            }
            Operation::Unlink { directory, name } => {
                let (parent, name) = (self.directory(directory), [b'a' + name]);
                let answer = self.tree().unlink(parent, &name);
                self.judge(
                    answer,
                    may_fail,
                    |m, ()| m.remove(parent, &name, false),
                    |m| m.remove(parent, &name, false),
                );
            }
            Operation::RemoveDirectory { directory, name } => {
                let (parent, name) = (self.directory(directory), [b'a' + name]);
                let answer = self.tree().remove_directory(parent, &name);
                self.judge(answer, may_fail, |m, ()| m.remove(parent, &name, true), |m| m.remove(parent, &name, true));
            }
            Operation::Rename { from, to, mode } => {
                let mode = RENAME_MODES[usize::from(mode)];
                let (old, new) = ([b'a' + from.1], [b'a' + to.1]);
                let (from, to) = (self.directory(from.0), self.directory(to.0));
                let answer = self.tree().rename(from, &old, to, &new, mode);
                // Where the old name leads now, if anywhere: a whiteout, perhaps.
                let left = self.tree().find(from, str::from_utf8(&old).unwrap()).map_or(0, |found| found.ino);
                let rename = |model: &mut Model, left| model.rename((from, &old), (to, &new), mode, left);
                self.judge(answer, may_fail, |model, ()| rename(model, left), |model| rename(model, u64::MAX));
            }
            _ => unreachable!("other operations run elsewhere"),
        }
    }

    fn run_data(&mut self, operation: &Operation, may_fail: bool) {
        let file = match operation {
            Operation::Write { file, .. } | Operation::Truncate { file, .. } | Operation::Allocate { file, .. } => {
                *file
            }
            Operation::Copy { to, .. } => to.0,
            _ => unreachable!("other operations run elsewhere"),
        };
        let Some(ino) = self.file(file) else { return };
        let largest = (1_u64 << 32) * 4096;
        let limit = |end: u64| if end > largest { Err(Errno::FBIG) } else { Ok(()) };
        match *operation {
            Operation::Write { at, length, append, byte, .. } => {
                let data: Vec<u8> = (0..length).map(|i| byte ^ i as u8 | 1).collect();
                let size = self.model.nodes[&ino].size;
                let at = if append { size } else { at.bytes() };
                let flags = WriteFlags { append, kills_privileges: false };
                let answer = self.tree().write(ino, if append { 3 } else { at }, &data, flags);
                self.judge(
                    answer,
                    may_fail,
                    |model, offset| {
                        assert_eq!(*offset, at);
                        model.write(ino, at, &data);
                        limit(at + u64::from(length))
                    },
                    |_| limit(at + u64::from(length)),
                );
            }
            Operation::Truncate { at, .. } => {
                let change = Change { size: Some(at.bytes()), ..Change::default() };
                let answer = self.tree().change(CALLER, ino, change);
                let truncate = |model: &mut Model| {
                    limit(at.bytes())?;
                    model.truncate(ino, at.bytes());
                    Ok(())
                };
                self.judge(answer, may_fail, |model, _| truncate(model), truncate);
            }
            Operation::Allocate { at, length, how, .. } => {
                let keep_size = how % 2 == 1;
                let how = match how / 2 {
                    0 => Allocation::Reserve { keep_size },
                    1 => Allocation::ZeroRange { keep_size },
                    _ => Allocation::PunchHole,
                };
                let (offset, length) = (at.bytes(), u64::from(length));
                let answer = self.tree().allocate(ino, offset, length, how);
                let allocate = |model: &mut Model| {
                    if length == 0 {
                        return Err(Errno::INVAL);
                    }
                    limit(offset + length)?;
                    match how {
                        Allocation::Reserve { .. } => model.reserve(ino, offset, length, !keep_size),
                        Allocation::ZeroRange { .. } => model.zero_range(ino, offset, length, !keep_size),
                        Allocation::PunchHole => model.zero_range(ino, offset, length, false),
                    }
                    Ok(())
                };
                self.judge(answer, may_fail, |model, ()| allocate(model), allocate);
            }
            Operation::Copy { from, to, length } => {
                let source = self.file(from.0).expect("there is a file");
                let (from, to) = (from.1.bytes(), to.1.bytes());
                let length = u64::from(length);
                let answer = self.tree().copy_range((source, from), (ino, to), length);
                // Where space ends, a part may be copied.
                let length = match answer {
                    Ok(copied) if may_fail && copied > 0 => copied.min(length),
                    _ => length,
                };
                let copy = |model: &mut Model| {
                    let length = length.min(model.nodes[&source].size.saturating_sub(from));
                    if source == ino && from < to + length && to < from + length {
                        return Err(Errno::INVAL);
                    }
                    limit(to + length)?;
                    let data = model.read(source, from, length);
                    model.write(ino, to, &data);
                    Ok(())
                };
                self.judge(answer, may_fail, |model, _| copy(model), copy);
            }
            _ => unreachable!("other operations run elsewhere"),
        }
    }

    fn run_other(&mut self, operation: &Operation, may_fail: bool) {
        match *operation {
            Operation::Change { node, permissions, owner, modified } => {
                let ino = self.any(node);
                let owner = owner.map(u32::from);
                let change = Change {
                    permissions,
                    gid: owner,
                    modified: modified.then_some(NewTime::At(time(5))),
                    ..Change::default()
                };
                let answer = self.tree().change(CALLER, ino, change);
                self.judge(
                    answer,
                    may_fail,
                    |model, _| {
                        let now = model.now;
                        let node = model.node(ino);
                        node.permissions = permissions.unwrap_or(node.permissions);
                        node.gid = owner.unwrap_or(node.gid);
                        if modified {
                            node.modified = time(5);
                        }
                        if change != Change::default() {
                            node.changed = now;
                        }
                        Ok(())
                    },
                    |_| Ok(()),
                );
            }
            Operation::SetXattr { node, name, length, how } => {
                let ino = self.any(node);
                let how = [SetXattr::Any, SetXattr::Create, SetXattr::Replace][usize::from(how)];
                let (name, value) = (format!("user.{name}"), vec![b'v'; length as usize]);
                let answer = self.tree().set_xattr(CALLER, ino, name.as_bytes(), &value, how);
                let set = |model: &mut Model| model.set_xattr(ino, name.as_bytes(), &value, how);
                self.judge(answer, may_fail, |model, ()| set(model), set);
            }
            Operation::RemoveXattr { node, name } => {
                let (ino, name) = (self.any(node), format!("user.{name}"));
                let answer = self.tree().remove_xattr(ino, name.as_bytes());
                let remove = |model: &mut Model| model.remove_xattr(ino, name.as_bytes());
                self.judge(answer, may_fail, |model, ()| remove(model), remove);
            }
            Operation::Open { node } => {
                let ino = self.any(node);
                self.tree().nodes.open(ino);
                self.model.node(ino).opens += 1;
            }
            Operation::Release { node } => {
                let Some(ino) = self.pick(node, |node| node.opens > 0) else { return };
                self.tree().release(ino).unwrap();
                self.model.node(ino).opens -= 1;
                self.model.reap(ino);
            }
            Operation::WriteOut { which } => {
                let tree = self.tree();
                tree.store_mut().write_out(|slot| which > 100 || (slot.index ^ which) % 3 != 0);
                tree.settle_idle().unwrap();
            }
            Operation::Settle { node } => {
                let ino = self.any(node);
                self.tree().store_mut().write_out(|_| true);
                self.tree().settle(ino).unwrap();
            }
            Operation::Reopen => {
                let tree = self.tree.take().expect("it is there");
                let mut tree = tree.reopen();
                tree.batch_pages = 2;
                self.tree = Some(tree);
                let inos: Vec<Ino> = self.model.nodes.keys().copied().collect();
                for ino in inos {
                    self.model.node(ino).opens = 0;
                    self.model.reap(ino);
                }
            }
            _ => unreachable!("other operations run elsewhere"),
        }
    }

    fn compare(&mut self) {
        let model = self.model.clone();
        let tree = self.tree();
        for (ino, node) in &model.nodes {
            let found = tree.attributes(*ino).unwrap();
            assert_eq!(
                (found.kind, found.permissions, found.uid, found.gid, found.links, found.size),
                (node.kind, node.permissions, node.uid, node.gid, node.links, node.size),
                "inode {ino}"
            );
            assert_eq!((found.modified, found.changed), (node.modified, node.changed), "times of inode {ino}");
            let names: std::collections::BTreeMap<_, _> = tree
                .xattrs(*ino)
                .unwrap()
                .into_iter()
                .map(|name| (name.clone(), tree.xattr(*ino, &name).unwrap()))
                .collect();
            assert_eq!(names, node.xattrs);
            match node.kind {
                FileKind::Directory => compare_names(tree, *ino, node),
                FileKind::Symlink => assert_eq!(tree.read_link(*ino).unwrap(), node.target),
                FileKind::Regular => compare_content(tree, &model, *ino),
                _ => {}
            }
        }
        let statistics = tree.statistics().unwrap();
        assert_eq!(statistics.inodes - statistics.inodes_free, model.nodes.len() as u64);
    }
}

fn compare_names(tree: &mut Tree<MemoryStore>, ino: Ino, node: &Node) {
    let mut names = std::collections::BTreeMap::new();
    tree.read_directory(ino, 2, &mut |entry| names.insert(entry.name.to_vec(), entry.ino).is_none()).unwrap();
    assert_eq!(names, node.names, "directory {ino}");
    if node.links > 0 {
        assert_eq!(tree.find(ino, "..").unwrap().ino, node.parent);
    }
}

/// Blocks of the model are those of the tree, and what the tree has besides is zeros.
fn compare_content(tree: &mut Tree<MemoryStore>, model: &Model, ino: Ino) {
    let compare = |tree: &mut Tree<MemoryStore>, block: u64| {
        let found = tree.read(ino, block * 4096, 4096).unwrap();
        assert!(found == model.read(ino, block * 4096, 4096), "block {block} of inode {ino}");
    };
    for block in model.nodes[&ino].blocks.keys() {
        compare(tree, *block);
    }
    let mut at = 0;
    while let Ok(data) = tree.seek(ino, at, SeekFrom::Data) {
        compare(tree, data / 4096);
        at = (data / 4096 + 1) * 4096;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_is_what_the_model_says(
        operations in prop::collection::vec((operation(), prop::option::weighted(0.3, 0..12_u64)), 1..80),
        total in prop_oneof![Just(100_000_u64), 60..400_u64],
    ) {
        let mut pair = Pair::new(total);
        for (i, (operation, failure)) in operations.iter().enumerate() {
            pair.model.now = time(10 + i as i64);
            pair.tree().set_now(time(10 + i as i64));
            pair.tree().store_mut().fail_after(*failure);
            pair.run(operation, failure.is_some() || total < 1000);
            pair.tree().store_mut().fail_after(None);
            pair.compare();
        }
        assert_whole(pair.tree());
        pair.compare();
    }
}
