//! Words of the protocol and words of the trait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, RenameFlags, TimeOrNow};
use isotherm_vfs::{Attributes, Caller, FileKind, NewTime, OpenFlags, RenameMode, Time};

/// Bytes that programs had best read and write at a time.
const BLOCK_BYTES: u32 = 4096;

pub(super) fn errno(errno: isotherm_vfs::Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

pub(super) fn kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::Regular => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::CharacterDevice => FileType::CharDevice,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
    }
}

/// The kind that mknod(2) asks for.
pub(super) fn kind_of_mode(mode: u32) -> Option<FileKind> {
    Some(match mode & libc::S_IFMT {
        libc::S_IFREG | 0 => FileKind::Regular,
        libc::S_IFBLK => FileKind::BlockDevice,
        libc::S_IFCHR => FileKind::CharacterDevice,
        libc::S_IFIFO => FileKind::Fifo,
        libc::S_IFSOCK => FileKind::Socket,
        _ => return None,
    })
}

/// What renameat2(2) asks for. The kernel lets whiteouts through from everybody: they give nobody a device.
pub(super) fn rename_mode(flags: RenameFlags, caller: Caller) -> Option<RenameMode> {
    let exclusive_whiteout = RenameFlags::RENAME_WHITEOUT | RenameFlags::RENAME_NOREPLACE;
    Some(match flags {
        RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
        RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
        RenameFlags::RENAME_WHITEOUT => RenameMode::Whiteout { caller, replaces: true },
        flags if flags == exclusive_whiteout => RenameMode::Whiteout { caller, replaces: false },
        flags if flags.is_empty() => RenameMode::Replace,
        _ => return None,
    })
}

pub(super) fn attributes(attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(attributes.ino),
        size: attributes.size,
        blocks: attributes.blocks_512,
        atime: system_time(attributes.accessed),
        mtime: system_time(attributes.modified),
        ctime: system_time(attributes.changed),
        // Linux' protocol has no room for it.
        crtime: UNIX_EPOCH,
        kind: kind(attributes.kind),
        perm: attributes.permissions,
        nlink: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: attributes.device,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// What says that there is no node: the number 0.
pub(super) fn no_attributes() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

fn system_time(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let since = if time.seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    since + Duration::from_nanos(time.nanoseconds.into())
}

pub(super) fn new_time(time: TimeOrNow) -> NewTime {
    let time = match time {
        TimeOrNow::Now => return NewTime::Now,
        TimeOrNow::SpecificTime(time) => time,
    };
    NewTime::At(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
        // The protocol counts nanoseconds forward at all times; `fuser` 0.18 takes those before 1970 to count backward, which is
        // undone here.
        Err(before) => {
            let before = before.duration();
            Time { seconds: (before.as_secs() as i64).wrapping_neg(), nanoseconds: before.subsec_nanos() }
        }
    })
}

/// What open(2)'s flags ask for. The flag that says that set-user-ID goes by a truncation does not get here; root alone may keep it.
pub(super) fn open_flags(flags: i32, uid: u32) -> OpenFlags {
    let access = flags & libc::O_ACCMODE;
    OpenFlags {
        read: access != libc::O_WRONLY,
        write: access != libc::O_RDONLY,
        truncate: flags & libc::O_TRUNC != 0,
        kills_privileges: flags & libc::O_TRUNC != 0 && uid != 0,
        exclusive: flags & libc::O_EXCL != 0,
        keeps_access_time: flags & libc::O_NOATIME != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_what_the_protocol_says() {
        let quarter = Time { seconds: -3, nanoseconds: 250_000_000 };
        assert_eq!(system_time(quarter), UNIX_EPOCH - Duration::from_millis(2750));
        let as_fuser_reads_it = UNIX_EPOCH - Duration::new(3, 250_000_000);
        assert_eq!(new_time(TimeOrNow::SpecificTime(as_fuser_reads_it)), NewTime::At(quarter));
        for time in [Time { seconds: -2, nanoseconds: 0 }, Time { seconds: 3, nanoseconds: 999_999_999 }] {
            assert_eq!(new_time(TimeOrNow::SpecificTime(system_time(time))), NewTime::At(time));
        }
    }
}
