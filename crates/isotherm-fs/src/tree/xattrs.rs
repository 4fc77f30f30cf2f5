//! Extended attributes: a list of names and values in a chain of pages. POSIX ACLs are two of them that mean something.
//!
//! In the chain each is the length of its name (1 byte), that of its value (4), the name and the value.

use isotherm_vfs::{Caller, Errno, FileKind, Ino, SetXattr, acl};

use super::Tree;
use super::bytes::get_u32;
use super::chain;
use super::error::{Result, damaged};
use super::inode::Inode;
use crate::store::{Purpose, Store, page_kind};

const VALUE_MAX: usize = 65_536;
/// Bytes of all extended attributes of an inode, lengths included.
pub(super) const ALL_MAX: usize = 128 << 10;

/// How a name begins; what stands behind is the attribute's own.
const NAMESPACES: &[&[u8]] = &[b"user.", b"trusted.", b"security.", b"system."];

/// Names and values of an inode.
pub(super) type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// Takes the bytes of a chain apart.
pub(super) fn decode(bytes: &[u8], ino: Ino) -> Result<Xattrs> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut = || damaged(format!("the extended attributes of inode {ino} end within one"));
        if rest.len() < 5 {
            return Err(cut());
        }
        let (name, value) = (usize::from(rest[0]), get_u32(rest, 1) as usize);
        let (one, behind) = rest[5..].split_at_checked(name + value).ok_or_else(cut)?;
        all.push((one[..name].to_vec(), one[name..].to_vec()));
        rest = behind;
    }
    Ok(all)
}

/// The bytes of a chain.
pub(super) fn encode(all: &Xattrs) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in all {
        bytes.push(name.len() as u8);
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(name);
        bytes.extend(value);
    }
    bytes
}

/// Finds a value.
fn find<'a>(all: &'a Xattrs, name: &[u8]) -> Option<&'a Vec<u8>> {
    all.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

/// Sets a value, or takes it out.
fn put(all: &mut Xattrs, name: &[u8], value: Option<Vec<u8>>) {
    let place = all.iter().position(|(other, _)| other == name);
    match (place, value) {
        (Some(i), Some(value)) => all[i].1 = value,
        (Some(i), None) => drop(all.remove(i)),
        (None, Some(value)) => all.push((name.to_vec(), value)),
        (None, None) => {}
    }
}

impl<S: Store> Tree<S> {
    fn load_xattrs(&mut self, ino: Ino, inode: &Inode) -> Result<Xattrs> {
        decode(&chain::read(&mut self.store, inode.xattrs, page_kind::XATTRS, ino)?, ino)
    }

    /// Saves them, in a transaction. The inode is to be saved.
    fn save_xattrs(&mut self, ino: Ino, inode: &mut Inode, all: &Xattrs) -> Result<()> {
        let bytes = encode(all);
        if bytes.len() > ALL_MAX {
            return Err(Errno::NOSPC.into());
        }
        inode.xattrs = chain::write(&mut self.store, inode.xattrs, page_kind::XATTRS, ino, &bytes)?;
        Ok(())
    }

    /// Value of an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` where there is none.
    pub fn xattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.inode(ino)?;
        let all = self.load_xattrs(ino, &inode)?;
        Ok(find(&all, name).cloned().ok_or(Errno::NODATA)?)
    }

    /// Names of all of them.
    ///
    /// # Errors
    /// Of the store.
    pub fn xattrs(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let inode = self.inode(ino)?;
        Ok(self.load_xattrs(ino, &inode)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Sets one. `system.posix_acl_access` sets the mode's bits as well; an ACL without entries is removed.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA`, `ERANGE` for a name and `E2BIG` for a value that is too long, `ENOSPC`, `EINVAL` for what is no ACL,
    /// `EOPNOTSUPP` for a name without a namespace.
    pub fn set_xattr(&mut self, caller: Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        if name.is_empty() || name.len() > 255 {
            return Err(Errno::RANGE.into());
        }
        if value.len() > VALUE_MAX {
            return Err(Errno::TOOBIG.into());
        }
        if !NAMESPACES.iter().any(|namespace| name.len() > namespace.len() && name.starts_with(namespace)) {
            return Err(Errno::OPNOTSUPP.into());
        }
        self.transaction(Purpose::Grow, |tree| {
            let mut inode = tree.inode(ino)?;
            let mut all = tree.load_xattrs(ino, &inode)?;
            match (how, find(&all, name).is_some()) {
                (SetXattr::Create, true) => return Err(Errno::EXIST.into()),
                (SetXattr::Replace, false) => return Err(Errno::NODATA.into()),
                _ => {}
            }
            let value = match name {
                acl::ACCESS => set_access(caller, &mut inode, value)?,
                acl::DEFAULT => set_default(&inode, value)?,
                _ if name.starts_with(b"system.") => return Err(Errno::OPNOTSUPP.into()),
                _ => Some(value.to_vec()),
            };
            put(&mut all, name, value);
            inode.changed = tree.now;
            tree.save_xattrs(ino, &mut inode, &all)?;
            tree.save_inode(ino, &inode)
        })
    }

    /// Removes one.
    ///
    /// # Errors
    /// `ENODATA` where there is none.
    pub fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<()> {
        self.transaction(Purpose::Shrink, |tree| {
            let mut inode = tree.inode(ino)?;
            let mut all = tree.load_xattrs(ino, &inode)?;
            if find(&all, name).is_none() {
                // No ACL is what there is without it.
                return if acl::is_name(name) { Ok(()) } else { Err(Errno::NODATA.into()) };
            }
            put(&mut all, name, None);
            inode.changed = tree.now;
            tree.save_xattrs(ino, &mut inode, &all)?;
            tree.save_inode(ino, &inode)
        })
    }

    /// The access ACL follows chmod(2), in a transaction. The inode is to be saved.
    pub(super) fn chmod_acl(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        let mut all = self.load_xattrs(ino, inode)?;
        let Some(access) = find(&all, acl::ACCESS) else { return Ok(()) };
        let access = acl::chmod(access, inode.permissions);
        put(&mut all, acl::ACCESS, Some(access));
        self.save_xattrs(ino, inode, &all)
    }

    /// A file whose content or owner changes loses its capabilities, in a transaction. The inode is to be saved.
    pub(super) fn drop_capabilities(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        let name = b"security.capability";
        let mut all = self.load_xattrs(ino, inode)?;
        if find(&all, name).is_some() {
            put(&mut all, name, None);
            self.save_xattrs(ino, inode, &all)?;
        }
        Ok(())
    }

    /// What a new node is to be: owner, permissions, and the bytes of its extended attributes.
    pub(super) fn inherit(
        &mut self,
        caller: Caller,
        parent: Ino,
        directory: &Inode,
        node: isotherm_vfs::NewNode,
    ) -> Result<(Inode, Vec<u8>)> {
        let mut permissions = node.permissions & 0o7777;
        let mut gid = caller.gid;
        if directory.permissions & 0o2000 != 0 {
            gid = directory.gid;
            if node.kind == FileKind::Directory {
                permissions |= 0o2000;
            } else if permissions & 0o2010 == 0o2010 && !caller.is_in_group(gid) {
                permissions &= !0o2000;
            }
        }
        let mut all = Vec::new();
        let default = find(&self.load_xattrs(parent, directory)?, acl::DEFAULT).cloned();
        match default {
            Some(default) if node.kind != FileKind::Symlink => {
                let inherited = acl::inherit(&default, permissions)?;
                permissions = inherited.mode;
                put(&mut all, acl::ACCESS, inherited.access);
                put(&mut all, acl::DEFAULT, (node.kind == FileKind::Directory).then_some(default));
            }
            _ => permissions &= !(node.umask & 0o777),
        }
        let mut inode = self.blank(node.kind, permissions, (caller.uid, gid));
        inode.device =
            if matches!(node.kind, FileKind::BlockDevice | FileKind::CharacterDevice) { node.device } else { 0 };
        Ok((inode, encode(&all)))
    }
}

/// Setting the access ACL sets the permissions; set-group-ID goes where the caller is no member of the group.
fn set_access(caller: Caller, inode: &mut Inode, value: &[u8]) -> Result<Option<Vec<u8>>> {
    if inode.kind == FileKind::Symlink {
        return Err(Errno::OPNOTSUPP.into());
    }
    if acl::is_empty(value) {
        return Ok(None);
    }
    let (mode, access) = acl::mode_of(value, inode.permissions)?;
    inode.permissions = if caller.is_in_group(inode.gid) { mode } else { mode & !0o2000 };
    Ok(access)
}

fn set_default(inode: &Inode, value: &[u8]) -> Result<Option<Vec<u8>>> {
    if !inode.is_directory() {
        return Err(Errno::ACCESS.into());
    }
    if acl::is_empty(value) {
        return Ok(None);
    }
    acl::check(value)?;
    Ok(Some(value.to_vec()))
}
