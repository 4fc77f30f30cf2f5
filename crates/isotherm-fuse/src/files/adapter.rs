//! The tree as the kernel asks for it: one method for each operation of the FUSE protocol (include/uapi/linux/fuse.h).
//!
//! Locks, polling and mapping of blocks are left to `fuser`'s defaults, which answer `ENOSYS`: the kernel then does them itself, or
//! without.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use isotherm_vfs::{
    Allocation, Attributes, Caller, Change, Done, Errno, FileKind, FileSystem, NewNode, Opened, Result, SeekFrom,
    SetXattr,
};

use super::convert::{attributes, errno, kind, kind_of_mode, new_time, no_attributes, open_flags, rename_mode};
use super::writing::{within_largest, write_what_fits};
use super::{OnPanic, trim};
use crate::buffers::Buffers;

/// The largest read or write, bytes: what the kernel allows at most without a change of its settings.
const REQUEST_BYTES: u32 = 1 << 20;
/// Asynchronous requests that the kernel sends at a time; the rest waits there.
const BACKGROUND: u16 = 64;
/// How long the kernel may remember names and attributes: all changes pass through it.
const LASTS: Duration = Duration::from_secs(86_400);

/// How long it may remember those of a node: a file whose set-user-ID or set-group-ID works loses it when it is written, which the kernel
/// leaves to the server and does not learn from the answer. It asks whenever it needs them, before it starts a program too.
fn lasts(found: &Attributes) -> Duration {
    let is_privileged = u32::from(found.permissions) & (libc::S_ISUID | libc::S_ISGID) != 0;
    if found.kind == FileKind::Regular && is_privileged { Duration::ZERO } else { LASTS }
}

/// See the module's text.
pub(super) struct Adapter<F> {
    files: Arc<F>,
    writeback: bool,
    on_panic: OnPanic,
    notifier: Arc<OnceLock<Notifier>>,
    buffers: Buffers,
}

impl<F: FileSystem> Adapter<F> {
    pub(super) fn new(files: Arc<F>, writeback: bool, on_panic: OnPanic, notifier: Arc<OnceLock<Notifier>>) -> Self {
        Self { files, writeback, on_panic, notifier, buffers: Buffers::default() }
    }

    /// Asks the file system. A panic is an error of this one request: if it ended the thread, programs would wait for an answer for
    /// ever, and could not even be killed.
    fn ask<T>(&self, what: &str, request: impl FnOnce(&F) -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(|| request(&self.files))).unwrap_or_else(|_| {
            (self.on_panic)(what);
            Err(Errno::IO)
        })
    }

    /// The same for a request that may be answered later. What a panic leaves unanswered is answered with `EIO` by dropping it.
    fn ask_then(&self, what: &str, reply: ReplyEmpty, request: impl FnOnce(&F, Done)) {
        let done = Box::new(|done| answer_empty(done, reply));
        let _ = self.ask(what, |files| {
            request(files, done);
            Ok(())
        });
    }

    fn answer_entry(&self, found: Result<Attributes>, reply: ReplyEntry) {
        match found {
            Ok(found) => reply.entry(&lasts(&found), &attributes(&found), Generation(found.generation.into())),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn answer_xattr(&self, value: Result<Vec<u8>>, size: u32, reply: ReplyXattr) {
        match value {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(errno(Errno::RANGE)),
            Ok(value) => reply.data(&value),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Has the kernel forget the attributes of a node whose opening set its time of access. Before the answer, so that whoever opened it
    /// sees the time; nothing in the kernel waits for this thread meanwhile, since the content stays (an offset below zero) and who opens
    /// holds the node.
    fn forget_attributes(&self, ino: INodeNo, opened: &Opened) {
        if let (true, Some(notifier)) = (opened.sets_access_time, self.notifier.get()) {
            // The kernel that does not know the node remembers nothing of it.
            let _ = notifier.inval_inode(ino, -1, 0);
        }
    }

    fn opened(&self, opened: Opened) -> (FileHandle, FopenFlags) {
        // Errors of writes are told by fsync(2); closing need not ask for them.
        let mut flags = FopenFlags::FOPEN_NOFLUSH | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        if opened.keeps_cache {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        (FileHandle(opened.handle), flags)
    }
}

fn answer_empty(done: Result<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

impl<F: FileSystem> Filesystem for Adapter<F> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Not ATOMIC_O_TRUNC: open(2) for reading and truncation of a program that runs would cut it before it fails with ETXTBSY.
        let mut wished = vec![
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_DONT_MASK,
            InitFlags::FUSE_POSIX_ACL,
            InitFlags::FUSE_HAS_IOCTL_DIR,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ];
        if self.writeback {
            wished.push(InitFlags::FUSE_WRITEBACK_CACHE);
        }
        for flag in wished {
            // A kernel that knows less does the rest itself, or without.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn destroy(&mut self) {
        // Nobody is left who could be told of an error.
        let _ = self.ask("destroy", |files| files.sync());
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.ask("lookup", |files| files.lookup(parent.0, name.as_bytes())) {
            // The kernel remembers that there is no such name until it makes one.
            Err(Errno::NOENT) => reply.entry(&LASTS, &no_attributes(), Generation(0)),
            found => self.answer_entry(found, reply),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, references: u64) {
        // Nobody waits for an answer.
        let _ = self.ask("forget", |files| {
            files.forget(ino.0, references);
            Ok(())
        });
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.ask("getattr", |files| files.attributes(ino.0)) {
            Ok(found) => reply.attr(&lasts(&found), &attributes(&found)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change {
            permissions: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            size,
            accessed: accessed.map(new_time),
            modified: modified.map(new_time),
            // The protocol's own flag for it does not get here; root alone may keep the bits over a truncation.
            kills_privileges: mode.is_none()
                && (uid.is_some() || gid.is_some() || size.is_some() && request.uid() != 0),
        };
        match self.ask("setattr", |files| files.change(caller(request), ino.0, change)) {
            Ok(found) => reply.attr(&lasts(&found), &attributes(&found)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.ask("readlink", |files| files.read_link(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let made = kind_of_mode(mode).ok_or(Errno::INVAL).and_then(|kind| {
            let node = NewNode { kind, permissions: (mode & 0o7777) as u16, umask: umask as u16, device };
            self.ask("mknod", |files| files.make_node(caller(request), parent.0, name.as_bytes(), node))
        });
        self.answer_entry(made, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let node =
            NewNode { kind: FileKind::Directory, permissions: (mode & 0o7777) as u16, umask: umask as u16, device: 0 };
        let made = self.ask("mkdir", |files| files.make_node(caller(request), parent.0, name.as_bytes(), node));
        self.answer_entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(self.ask("unlink", |files| files.unlink(parent.0, name.as_bytes())), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(self.ask("rmdir", |files| files.remove_directory(parent.0, name.as_bytes())), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        let made = self.ask("symlink", |files| files.symlink(caller(request), parent.0, name.as_bytes(), target));
        self.answer_entry(made, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = rename_mode(flags, caller(request)) else { return reply.error(errno(Errno::INVAL)) };
        let moved = self
            .ask("rename", |files| files.rename(parent.0, name.as_bytes(), new_parent.0, new_name.as_bytes(), mode));
        answer_empty(moved, reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer_entry(self.ask("link", |files| files.link(ino.0, parent.0, name.as_bytes())), reply);
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = open_flags(flags.0, request.uid());
        match self.ask("open", |files| files.open(ino.0, flags)) {
            Ok(opened) => {
                self.forget_attributes(ino, &opened);
                let (handle, flags) = self.opened(opened);
                reply.opened(handle, flags);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let node =
            NewNode { kind: FileKind::Regular, permissions: (mode & 0o7777) as u16, umask: umask as u16, device: 0 };
        let flags = open_flags(flags, request.uid());
        let made = self.ask("create", |files| files.create(caller(request), parent.0, name.as_bytes(), node, flags));
        match made {
            Ok((found, opened)) => {
                let (handle, flags) = self.opened(opened);
                reply.created(&lasts(&found), &attributes(&found), Generation(found.generation.into()), handle, flags);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut out = self.buffers.take(0);
        out.clear();
        match self.ask("read", |files| files.read(ino.0, handle.0, offset, size, &mut out)) {
            Ok(()) => reply.data(&out),
            Err(error) => reply.error(errno(error)),
        }
        self.buffers.give(out);
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        kernel_flags: WriteFlags,
        open_flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let flags = isotherm_vfs::WriteFlags {
            kills_privileges: kernel_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            // The kernel knows where the end is, and says so.
            append: false,
        };
        // What the kernel makes of an answer that is short: of a direct write, EIO to whoever asked; of what it had cached, nothing, so
        // that the rest would be lost without a word. These are done whole, or not at all.
        let is_whole = kernel_flags.contains(WriteFlags::FUSE_WRITE_CACHE) || open_flags.0 & libc::O_DIRECT != 0;
        let written = self.ask("write", |files| match is_whole {
            true => files.write(ino.0, handle.0, offset, data, flags).map(|()| data.len()),
            false => write_what_fits(files, ino.0, handle.0, offset, data, flags),
        });
        match written {
            Ok(length) => reply.written(length as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn flush(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer_empty(self.ask("flush", |files| files.flush(ino.0, handle.0)), reply);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let done = self.ask("release", |files| {
            files.release(ino.0, handle.0);
            Ok(())
        });
        answer_empty(done, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, data_only: bool, reply: ReplyEmpty) {
        self.ask_then("fsync", reply, |files, done| files.fsync_then(ino.0, data_only, done));
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let keep_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let how = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => Allocation::Reserve { keep_size },
            libc::FALLOC_FL_PUNCH_HOLE if keep_size => Allocation::PunchHole,
            libc::FALLOC_FL_ZERO_RANGE => Allocation::ZeroRange { keep_size },
            _ => return reply.error(errno(Errno::OPNOTSUPP)),
        };
        let done = self.ask("fallocate", |files| files.allocate(caller(request), ino.0, handle.0, offset, length, how));
        answer_empty(done, reply);
    }

    fn lseek(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        // What the kernel keeps of a file's data is unknown here: without an answer, all of a file is data to it.
        if self.writeback {
            return reply.error(errno(Errno::NOSYS));
        }
        let to = match whence {
            libc::SEEK_DATA => SeekFrom::Data,
            libc::SEEK_HOLE => SeekFrom::Hole,
            _ => return reply.error(errno(Errno::INVAL)),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(errno(Errno::NXIO)) };
        match self.ask("lseek", |files| files.seek(ino.0, offset, to)) {
            Ok(found) => reply.offset(found as i64),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The answer has room for 32 bits; who asks for more asks again.
        let copied = self.ask("copy_file_range", |files| {
            let length = within_largest(files, to_offset, length.min(1 << 30))?;
            files.copy_range(caller(request), (from.0, from_offset), (to.0, to_offset), length)
        });
        match copied {
            Ok(copied) => reply.written(copied as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.ask("opendir", |files| files.open_directory(ino.0)) {
            Ok(opened) => {
                self.forget_attributes(ino, &opened);
                reply.opened(FileHandle(opened.handle), FopenFlags::empty());
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, cookie: u64, mut reply: ReplyDirectory) {
        let listed = self.ask("readdir", |files| {
            files.read_directory(ino.0, cookie, &mut |entry| {
                !reply.add(INodeNo(entry.ino), entry.cookie, kind(entry.kind), OsStr::from_bytes(entry.name))
            })
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(&self, _: &Request, ino: INodeNo, _: FileHandle, cookie: u64, mut reply: ReplyDirectoryPlus) {
        let listed = self.ask("readdirplus", |files| {
            files.read_directory_plus(ino.0, cookie, &mut |entry, found| {
                let name = OsStr::from_bytes(entry.name);
                let generation = Generation(found.generation.into());
                !reply.add(INodeNo(entry.ino), entry.cookie, name, &lasts(found), &attributes(found), generation)
            })
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        let done = self.ask("releasedir", |files| {
            files.release_directory(ino.0, handle.0);
            Ok(())
        });
        answer_empty(done, reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.ask_then("fsyncdir", reply, |files, done| files.fsync_directory_then(ino.0, done));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.ask("statfs", |files| files.statistics()) {
            Ok(found) => reply.statfs(
                found.blocks,
                found.blocks_free,
                found.blocks_available,
                found.inodes,
                found.inodes_free,
                found.block_bytes,
                255,
                found.block_bytes,
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let how = match flags {
            libc::XATTR_CREATE => SetXattr::Create,
            libc::XATTR_REPLACE => SetXattr::Replace,
            _ => SetXattr::Any,
        };
        let done = self.ask("setxattr", |files| files.set_xattr(caller(request), ino.0, name.as_bytes(), value, how));
        answer_empty(done, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.answer_xattr(self.ask("getxattr", |files| files.xattr(ino.0, name.as_bytes())), size, reply);
    }

    /// Names that begin with `trusted.` are there for root only, as on other file systems.
    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.ask("listxattr", |files| files.xattrs(ino.0)).map(|mut names| {
            names.retain(|name| request.uid() == 0 || !name.starts_with(b"trusted."));
            names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect()
        });
        self.answer_xattr(names, size, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(self.ask("removexattr", |files| files.remove_xattr(ino.0, name.as_bytes())), reply);
    }

    fn ioctl(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        command: u32,
        input: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        if command != trim::FITRIM {
            return reply.error(errno(Errno::NOTTY));
        }
        match self.ask("ioctl", |files| trim::discard(files, request.uid(), input)) {
            Ok(range) => reply.ioctl(0, &range),
            Err(error) => reply.error(errno(error)),
        }
    }
}
