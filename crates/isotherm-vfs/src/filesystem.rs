//! The trait.

use std::ops::Range;

use crate::node::{
    Allocation, Attributes, Caller, Change, DirectoryEntry, Ino, NewNode, OpenFlags, RenameMode, SeekFrom, SetXattr,
    VolumeStatistics, WriteFlags,
};

use crate::Result;

/// An open file or directory.
pub type Handle = u64;

/// The bit by which a handle tells reads that its file was opened with [`OpenFlags::keeps_access_time`].
pub const KEEPS_ACCESS_TIME: Handle = 1 << 63;

/// Told once what a request came to, by any thread. Dropped without a word if the request panics.
pub type Done = Box<dyn FnOnce(Result<()>) + Send>;

/// A file or directory that was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// What later requests name it by.
    pub handle: Handle,
    /// Whether what the kernel has cached of its content is still right.
    pub keeps_cache: bool,
    /// Whether the time of access was set, so that what the kernel remembers of the attributes is old.
    pub sets_access_time: bool,
}

/// A POSIX file system. Requests come from several threads at a time.
///
/// # Contract
/// - Names are 1 to 255 bytes without `/` and NUL; longer ones are `ENAMETOOLONG`. `.` and `..` are asked for only by `lookup`.
/// - Every answer that holds the attributes of a node under a name (`lookup`, `make_node`, `symlink`, `link`, `create`, entries of
///   `read_directory_plus`) is one reference to the node, which [`FileSystem::forget`] gives back. A node lives as long as it has
///   a name, is open, or is referred to.
/// - Permissions are the kernel's business (mount option `default_permissions`), bits that writing takes away included, where a
///   request says so. Ownership and mode of new nodes, times, link counts and every other rule of POSIX are the file system's.
/// - A request that fails changes nothing.
/// - What is done is seen by every later request; after a crash, requests up to some moment have happened, in order. What
///   `fsync`, `fsync_directory` or `sync` was asked to keep is there.
pub trait FileSystem: Send + Sync + 'static {
    /// The node that a name of a directory leads to; `.` and `..` too.
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attributes>;
    /// Gives back references.
    fn forget(&self, ino: Ino, references: u64);
    /// What is known of a node.
    fn attributes(&self, ino: Ino) -> Result<Attributes>;
    /// Changes attributes, all of them or none.
    fn change(&self, caller: Caller, ino: Ino, change: Change) -> Result<Attributes>;
    /// The target of a symbolic link, which sets its time of access as reading a file does.
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Makes a node of any kind but a symbolic link, directories included.
    fn make_node(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode) -> Result<Attributes>;
    /// Makes a symbolic link to `target`, 1 to 4095 bytes.
    fn symlink(&self, caller: Caller, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attributes>;
    /// Gives a node that is no directory another name.
    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attributes>;
    /// Takes a name from a node that is no directory.
    fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, parent: Ino, name: &[u8]) -> Result<()>;
    /// Moves a name.
    fn rename(&self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8], mode: RenameMode) -> Result<()>;

    /// Opens a regular file; for reading, that sets the time of access by the same rules as reading does: what the kernel's cache answers
    /// is not asked for here.
    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Opened>;
    /// Opens a regular file, which is made where there is none.
    fn create(
        &self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        flags: OpenFlags,
    ) -> Result<(Attributes, Opened)>;
    /// Closes a file.
    fn release(&self, ino: Ino, handle: Handle);
    /// Reads up to `length` bytes from `offset` on into the empty `out`; fewer only at the end of the file.
    fn read(&self, ino: Ino, handle: Handle, offset: u64, length: u32, out: &mut Vec<u8>) -> Result<()>;
    /// Writes all of `data` at `offset`, or nothing.
    fn write(&self, ino: Ino, handle: Handle, offset: u64, data: &[u8], flags: WriteFlags) -> Result<()>;
    /// A descriptor is closed; others may share the handle. Errors of earlier writes may be told here.
    fn flush(&self, ino: Ino, handle: Handle) -> Result<()>;
    /// Makes a file durable; with `data_only` no more than reading it again needs.
    fn fsync(&self, ino: Ino, data_only: bool) -> Result<()>;
    /// The same for a server's thread: it need not wait for the file to be durable, and may be kept to serve others who ask.
    fn fsync_then(&self, ino: Ino, data_only: bool, done: Done) {
        done(self.fsync(ino, data_only));
    }
    /// Sets space aside, punches holes, makes zeros. Privileges of the file go where the caller is not root.
    fn allocate(
        &self,
        caller: Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        length: u64,
        how: Allocation,
    ) -> Result<()>;
    /// The next data or hole from `offset` on; `ENXIO` where there is none.
    fn seek(&self, ino: Ino, offset: u64, to: SeekFrom) -> Result<u64>;
    /// Copies a range between files, which may be one if the ranges do not overlap. Returns the bytes copied. Privileges of the file that is
    /// written to go where the caller is not root.
    fn copy_range(&self, caller: Caller, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<u64>;

    /// Lists a directory from `cookie` on (0 for the start), `.` and `..` first, until `take` returns false: the entry that it
    /// refused is listed again next time. A name that nobody touches between the first call and the last is listed exactly once.
    fn read_directory(&self, ino: Ino, cookie: u64, take: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()>;
    /// The same with attributes. Each entry that `take` accepted is a reference to its node, but for `.` and `..`.
    fn read_directory_plus(
        &self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(DirectoryEntry<'_>, &Attributes) -> bool,
    ) -> Result<()>;
    /// Opens a directory, as [`FileSystem::open`] a file; it stays readable, and empty, when it is removed.
    fn open_directory(&self, ino: Ino) -> Result<Opened>;
    /// Closes a directory.
    fn release_directory(&self, ino: Ino, handle: Handle);
    /// Makes the names in a directory durable.
    fn fsync_directory(&self, ino: Ino) -> Result<()>;
    /// The same for a server's thread, as [`FileSystem::fsync_then`].
    fn fsync_directory_then(&self, ino: Ino, done: Done) {
        done(self.fsync_directory(ino));
    }

    /// Value of an extended attribute; `ENODATA` where there is none.
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>>;
    /// Sets one: names up to 255 bytes, values up to 65,536. `system.posix_acl_access` sets the mode's bits as well.
    fn set_xattr(&self, caller: Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()>;
    /// Names of all of them.
    fn xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>>;
    /// Removes one.
    fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()>;

    /// Space and inodes.
    fn statistics(&self) -> Result<VolumeStatistics>;
    /// Discards the free space that lies in a range of the device's bytes, in pieces of at least `smallest` bytes. Returns the bytes
    /// discarded. The range may end behind the device, but not begin there (`EINVAL`).
    fn discard_free(&self, range: Range<u64>, smallest: u64) -> Result<u64>;
    /// Makes everything durable.
    fn sync(&self) -> Result<()>;
    /// Bytes of the largest file. What reaches beyond is `EFBIG`; a server has write(2) write what lies before it.
    fn file_bytes_max(&self) -> u64;
    /// Whether writes are refused with `EROFS`.
    fn is_read_only(&self) -> bool;
}
