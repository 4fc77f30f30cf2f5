//! POSIX ACLs (withdrawn draft 1003.1e) in Linux' encoding of extended attributes: a version, and entries of tag, permissions
//! and identifier. Here is their arithmetic; a file system keeps them as the values of two extended attributes.
//!
//! Functions that take an ACL as it is kept take one that [`check`] has let pass; an access ACL after [`chmod`] passes again.

use crate::{Errno, Result};

/// The extended attribute that holds the ACL which says who may do what.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The extended attribute that holds the ACL which new nodes of a directory get.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

/// Whether an extended attribute is an ACL.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
const USER_OBJ: u16 = 1;
const USER: u16 = 2;
const GROUP_OBJ: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHER: u16 = 32;

/// What a new node gets of its directory's default ACL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inherited {
    /// Its permissions.
    pub mode: u16,
    /// Its ACL, where the permissions do not say it all.
    pub access: Option<Vec<u8>>,
}

/// Whether an ACL has no entries: setting it removes what is there.
#[must_use]
pub fn is_empty(acl: &[u8]) -> bool {
    acl.len() == HEADER_BYTES && get_u32(acl, 0) == VERSION
}

/// Checks an ACL: entries in order, a mask where users or groups are named.
///
/// # Errors
/// `EINVAL`; `EOPNOTSUPP` for another version of the encoding.
pub fn check(acl: &[u8]) -> Result<()> {
    let entries = acl.len().checked_sub(HEADER_BYTES).ok_or(Errno::INVAL)?;
    if entries % ENTRY_BYTES != 0 {
        return Err(Errno::INVAL);
    }
    if get_u32(acl, 0) != VERSION {
        return Err(Errno::OPNOTSUPP);
    }
    let mut last = 0;
    let mut seen = 0;
    for at in places(acl) {
        let (tag, permissions, id) = (get_u16(acl, at), get_u16(acl, at + 2), get_u32(acl, at + 4));
        let named = matches!(tag, USER | GROUP);
        let known = named || matches!(tag, USER_OBJ | GROUP_OBJ | MASK | OTHER);
        if !known || permissions > 7 || tag < last || (tag == last && !named) || (named && id == u32::MAX) {
            return Err(Errno::INVAL);
        }
        last = tag;
        seen |= tag;
    }
    let base = USER_OBJ | GROUP_OBJ | OTHER;
    let needs_mask = seen & (USER | GROUP) != 0;
    if seen & base == base && (!needs_mask || seen & MASK != 0) { Ok(()) } else { Err(Errno::INVAL) }
}

fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from(get_u16(bytes, at)) | u32::from(get_u16(bytes, at + 2)) << 16
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

fn places(acl: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (HEADER_BYTES..acl.len()).step_by(ENTRY_BYTES)
}

/// The place of the entry that the group bits of the mode stand for: the mask, or the group where there is none.
fn group_place(acl: &[u8]) -> Option<usize> {
    let find = |tag| places(acl).find(|at| get_u16(acl, *at) == tag);
    find(MASK).or_else(|| find(GROUP_OBJ))
}

/// Whether the permissions of a mode say all that an ACL does.
fn is_minimal(acl: &[u8]) -> bool {
    places(acl).all(|at| matches!(get_u16(acl, at), USER_OBJ | GROUP_OBJ | OTHER))
}

/// The entries that stand for the mode's bits, with the shift of each.
fn mode_places(acl: &[u8]) -> Vec<(usize, u16)> {
    let plain = places(acl).filter_map(|at| match get_u16(acl, at) {
        USER_OBJ => Some((at, 6)),
        OTHER => Some((at, 0)),
        _ => None,
    });
    plain.chain(group_place(acl).map(|at| (at, 3))).collect()
}

/// What a new node gets: the permissions asked for and those of the default ACL, each cut down to the other. The umask has no
/// say where there is a default ACL.
///
/// # Errors
/// Of [`check`].
pub fn inherit(default: &[u8], mode: u16) -> Result<Inherited> {
    check(default)?;
    let mut access = default.to_vec();
    let mut mode = mode;
    for (at, shift) in mode_places(default) {
        let both = get_u16(default, at + 2) & (mode >> shift);
        put_u16(&mut access, at + 2, both);
        mode = (mode & !(7 << shift)) | both << shift;
    }
    Ok(Inherited { mode, access: (!is_minimal(default)).then_some(access) })
}

/// The mode that an access ACL sets, and the ACL where the mode does not say it all.
///
/// # Errors
/// Of [`check`].
pub fn mode_of(access: &[u8], mode: u16) -> Result<(u16, Option<Vec<u8>>)> {
    check(access)?;
    let mut mode = mode;
    for (at, shift) in mode_places(access) {
        mode = (mode & !(7 << shift)) | get_u16(access, at + 2) << shift;
    }
    Ok((mode, (!is_minimal(access)).then(|| access.to_vec())))
}

/// The access ACL after chmod(2).
#[must_use]
pub fn chmod(access: &[u8], mode: u16) -> Vec<u8> {
    let mut changed = access.to_vec();
    for (at, shift) in mode_places(access) {
        put_u16(&mut changed, at + 2, (mode >> shift) & 7);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_named_user_makes_the_mask_the_group_bits() {
        let default = acl(&[(1, 7, 0), (2, 6, 1000), (4, 5, 0), (16, 7, 0), (32, 5, 0)]);
        let inherited = inherit(&default, 0o664).unwrap();
        assert_eq!(inherited.mode, 0o664);
        let expected = acl(&[(1, 6, 0), (2, 6, 1000), (4, 5, 0), (16, 6, 0), (32, 4, 0)]);
        assert_eq!(inherited.access, Some(expected.clone()));
        let changed = chmod(&expected, 0o750);
        assert_eq!(changed, acl(&[(1, 7, 0), (2, 6, 1000), (4, 5, 0), (16, 5, 0), (32, 0, 0)]));
        assert_eq!(mode_of(&changed, 0o4000).unwrap(), (0o4750, Some(changed.clone())));
    }

    #[test]
    fn a_minimal_acl_is_a_mode() {
        let minimal = acl(&[(1, 6, 0), (4, 4, 0), (32, 0, 0)]);
        assert_eq!(mode_of(&minimal, 0o777).unwrap(), (0o640, None));
        assert_eq!(inherit(&minimal, 0o777).unwrap(), Inherited { mode: 0o640, access: None });
    }

    #[test]
    fn what_is_no_acl_is_refused() {
        for wrong in [
            acl(&[]),
            acl(&[(1, 7, 0), (4, 5, 0)]),
            acl(&[(1, 8, 0), (4, 5, 0), (32, 5, 0)]),
            acl(&[(1, 7, 0), (2, 7, 5), (4, 5, 0), (32, 5, 0)]),
            acl(&[(4, 7, 0), (1, 5, 0), (32, 5, 0)]),
            acl(&[(1, 7, 0), (1, 7, 0), (4, 5, 0), (32, 5, 0)]),
            acl(&[(1, 7, 0), (4, 5, 0), (32, 5, 0)])[..27].to_vec(),
            vec![2, 0],
        ] {
            assert_eq!(check(&wrong), Err(Errno::INVAL), "{wrong:?}");
        }
        assert!(is_empty(&acl(&[])) && !is_empty(&[3, 0, 0, 0]));
    }
}
