//! The nouns of the trait: nodes, their attributes, and what is asked of them.

/// Number of an inode. 0 is none.
pub type Ino = u64;

/// The root directory.
pub const ROOT: Ino = 1;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum FileKind {
    Regular,
    Directory,
    Symlink,
    BlockDevice,
    CharacterDevice,
    Fifo,
    Socket,
}

/// A time since 1970-01-01 UTC, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds after them, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// What stat(2) says of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Attributes {
    pub ino: Ino,
    /// Tells two nodes apart that had the same number one after the other.
    pub generation: u32,
    pub kind: FileKind,
    /// The twelve bits of chmod(2), set-user-ID, set-group-ID and sticky included.
    pub permissions: u16,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// Of a device node, as the kernel encodes it for user space.
    pub device: u32,
    /// Bytes. Of a symbolic link the length of its target.
    pub size: u64,
    /// Space taken, in units of 512 bytes.
    pub blocks_512: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// 0 where the kernel asks on its own account.
    pub pid: u32,
}

impl Caller {
    /// Whether writing to a file leaves it what gives rights: root's writes do.
    #[must_use]
    pub fn keeps_privileges(self) -> bool {
        self.uid == 0
    }

    /// Whether who asks is root or in a group, by its supplementary groups too, which no request tells: they are looked up by
    /// process, where there is one.
    #[must_use]
    pub fn is_in_group(self, gid: u32) -> bool {
        self.uid == 0 || self.gid == gid || supplementary_groups(self.pid).contains(&gid)
    }
}

/// Supplementary groups of a process; none where they are not to be had.
fn supplementary_groups(pid: u32) -> Vec<u32> {
    if pid == 0 {
        return Vec::new();
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    groups.split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// A node that is to be made. It takes the parent's group where the parent is set-group-ID (a directory takes the bit too), and
/// the parent's default ACL in place of the umask where there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewNode {
    /// What it is; symbolic links are made by [`FileSystem::symlink`](crate::FileSystem::symlink).
    pub kind: FileKind,
    /// As asked for, before the umask.
    pub permissions: u16,
    /// Bits that are taken away.
    pub umask: u16,
    /// Of a device node.
    pub device: u32,
}

impl NewNode {
    /// What says in the upper layer of an overlay that a name of the lower one is gone: a character device 0:0 that nobody can open.
    pub const WHITEOUT: Self = Self { kind: FileKind::CharacterDevice, permissions: 0, umask: 0, device: 0 };
}

/// A time that is to be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewTime {
    /// The moment of the request.
    Now,
    /// This one.
    At(Time),
}

/// Attributes that are to be changed. What is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Change {
    pub permissions: Option<u16>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<NewTime>,
    pub modified: Option<NewTime>,
    /// Set-user-ID and set-group-ID go, as write(2), truncate(2) and chown(2) have it (the kernel says when).
    pub kills_privileges: bool,
}

/// How a file is opened: what of open(2)'s flags reaches a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct OpenFlags {
    pub read: bool,
    pub write: bool,
    /// Cut to nothing on opening.
    pub truncate: bool,
    /// Opening set-user-ID files for truncation takes the bit.
    pub kills_privileges: bool,
    /// Fail if the file exists ([`FileSystem::create`](crate::FileSystem::create) only).
    pub exclusive: bool,
    /// Neither opening nor reading sets the time of access (`O_NOATIME`).
    pub keeps_access_time: bool,
}

/// What comes with a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteFlags {
    /// Set-user-ID and set-group-ID go.
    pub kills_privileges: bool,
    /// The data goes to the end of the file, wherever that is.
    pub append: bool,
}

/// What rename(2) does about a target that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RenameMode {
    /// The target is replaced.
    #[default]
    Replace,
    /// `EEXIST`.
    NoReplace,
    /// The two change places; `ENOENT` where there is no target.
    Exchange,
    /// The old name is left leading to a [whiteout](NewNode::WHITEOUT), in the same step.
    Whiteout {
        /// Whose it is.
        caller: Caller,
        /// Whether a target is replaced, or `EEXIST`.
        replaces: bool,
    },
}

impl RenameMode {
    /// Whether a target has to be missing.
    #[must_use]
    pub fn is_exclusive(self) -> bool {
        matches!(self, Self::NoReplace | Self::Whiteout { replaces: false, .. })
    }
}

/// What fallocate(2) does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// Space is set aside; the file grows unless its size is kept.
    Reserve {
        /// The size stays.
        keep_size: bool,
    },
    /// The range becomes a hole. The size stays.
    PunchHole,
    /// The range reads as zeros, and its space is set aside.
    ZeroRange {
        /// The size stays.
        keep_size: bool,
    },
}

/// What lseek(2) looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekFrom {
    /// The next byte that is data.
    Data,
    /// The next byte that is none; the end of the file is one.
    Hole,
}

/// How an extended attribute is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetXattr {
    /// Whether it is there or not.
    #[default]
    Any,
    /// `EEXIST` where it is.
    Create,
    /// `ENODATA` where it is not.
    Replace,
}

/// An entry of a directory as it is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryEntry<'a> {
    /// Its node.
    pub ino: Ino,
    /// What the node is.
    pub kind: FileKind,
    /// 1 to 255 bytes without `/` and NUL.
    pub name: &'a [u8],
    /// Where a listing goes on after this entry: below 2^63, the same as long as the entry exists.
    pub cookie: u64,
}

/// What statfs(2) says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct VolumeStatistics {
    pub block_bytes: u32,
    pub blocks: u64,
    /// Free blocks, what only root may take included.
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub inodes: u64,
    pub inodes_free: u64,
}
