//! The directory as the kernel asks for it: one method for each operation of the FUSE protocol.
//!
//! The operations are those of the kernel's include/uapi/linux/fuse.h. What is left to `fuser`'s defaults (extended attributes, locks,
//! ioctls, polling, copying in the server) it answers with `ENOSYS`, and the kernel does without.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use isotherm_export::Due;
use rustix::process::{getgid, getuid};

use super::disk::{Disk, Sought};
use super::held::Held;
use super::{DiskFile, Options};
use crate::buffers::Buffers;

/// The largest read or write, bytes: what the kernel allows at most without a change of its settings.
const REQUEST_BYTES: u32 = 1 << 20;
/// Asynchronous requests that the kernel sends at a time; the rest waits there.
const BACKGROUND: u16 = 512;
/// How long the kernel may remember that a file is there: none ever goes.
const NAME_LASTS: Duration = Duration::from_secs(3600);
/// How long it may remember when a file was changed and how much it holds: others may serve the same export.
const ATTRIBUTES_LAST: Duration = Duration::from_secs(1);
/// The first file's inode; the directory's is before it.
const FIRST_INODE: u64 = INodeNo::ROOT.0 + 1;

/// A directory of exports.
pub(super) struct DriveFilesystem {
    disks: Vec<Disk>,
    read_only: bool,
    mounted_at: SystemTime,
    buffers: Buffers,
    held: Held<Answer>,
}

/// What a request is answered with when its time has come.
enum Answer {
    Done(ReplyEmpty),
    Written(ReplyWrite, u32),
    Read { reply: ReplyData, buffer: Vec<u8>, length: usize },
}

impl Answer {
    fn send(self) {
        match self {
            Self::Done(reply) => reply.ok(),
            Self::Written(reply, bytes) => reply.written(bytes),
            Self::Read { reply, buffer, length } => reply.data(&buffer[..length]),
        }
    }
}

impl DriveFilesystem {
    pub(super) fn new(files: Vec<DiskFile>, options: &Options) -> io::Result<Self> {
        Ok(Self {
            disks: files.into_iter().map(|file| Disk::new(file, options.on_error.clone())).collect(),
            read_only: options.read_only,
            mounted_at: SystemTime::now(),
            buffers: Buffers::default(),
            held: Held::new(Answer::send)?,
        })
    }

    fn disk(&self, inode: INodeNo) -> Result<&Disk, Errno> {
        let index = inode.0.checked_sub(FIRST_INODE).ok_or(Errno::EISDIR)?;
        self.disks.get(index as usize).ok_or(Errno::ENOENT)
    }

    fn attributes(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let permissions = if self.read_only { 0o400 } else { 0o600 };
        if inode == INodeNo::ROOT {
            // Searchable, since files in it are opened; not writable, since none can be made.
            return Ok(self.attributes_of(inode, FileType::Directory, 0o500, self.mounted_at));
        }
        let disk = self.disk(inode)?;
        let mut attributes = self.attributes_of(inode, FileType::RegularFile, permissions, disk.modified());
        attributes.size = disk.size_bytes();
        attributes.blocks = disk.data_bytes().div_ceil(512);
        attributes.blksize = disk.page_bytes();
        Ok(attributes)
    }

    fn attributes_of(&self, ino: INodeNo, kind: FileType, perm: u16, modified: SystemTime) -> FileAttr {
        FileAttr {
            ino,
            size: 0,
            blocks: 0,
            atime: modified,
            mtime: modified,
            ctime: modified,
            crtime: self.mounted_at,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: getuid().as_raw(),
            gid: getgid().as_raw(),
            rdev: 0,
            blksize: 512,
            flags: 0,
        }
    }

    fn answer(&self, due: Due, answer: Answer) {
        match due {
            Some(due) => self.held.hold(due, answer),
            None => answer.send(),
        }
    }

    fn answer_empty(&self, done: Result<Due, Errno>, reply: ReplyEmpty) {
        match done {
            Ok(due) => self.answer(due, Answer::Done(reply)),
            Err(errno) => reply.error(errno),
        }
    }
}

/// Whether writes by a file that was opened with these flags are durable when they return.
fn is_durable(flags: i32) -> bool {
    // O_SYNC holds the bit of O_DSYNC.
    flags & libc::O_DSYNC != 0
}

impl Filesystem for DriveFilesystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel that knows less takes smaller or fewer requests at a time, and all work the same.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let index = self.disks.iter().position(|disk| parent == INodeNo::ROOT && name == disk.name());
        let found = index.ok_or(Errno::ENOENT).and_then(|index| self.attributes(INodeNo(FIRST_INODE + index as u64)));
        match found {
            Ok(attributes) => reply.entry_with_ttls(&ATTRIBUTES_LAST, &NAME_LASTS, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Ok(attributes) => reply.attr(&ATTRIBUTES_LAST, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    /// The size it has can be set, and times, which are then as they were; nothing else.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            Ok(attributes) => {
                let changes_size = size.is_some_and(|size| size != attributes.size);
                if changes_size || mode.is_some() || uid.is_some() || gid.is_some() {
                    reply.error(Errno::EPERM);
                } else {
                    reply.attr(&ATTRIBUTES_LAST, &attributes);
                }
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.disk(inode) {
            // The flags are the handle, because fallocate is told the handle only.
            Ok(_) => reply.opened(
                FileHandle(u64::from(flags.0 as u32)),
                FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = self.buffers.take(size as usize);
        match self.disk(inode).and_then(|disk| disk.read(offset, &mut buffer[..size as usize])) {
            Ok((length, None)) => {
                reply.data(&buffer[..length]);
                self.buffers.give(buffer);
            }
            Ok((length, due)) => self.answer(due, Answer::Read { reply, buffer, length }),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.disk(inode).and_then(|disk| disk.write(offset, data, is_durable(flags.0))) {
            Ok((length, due)) => self.answer(due, Answer::Written(reply, length as u32)),
            Err(errno) => reply.error(errno),
        }
    }

    /// On each close(2). Closing makes nothing durable, as with any file; who wants that calls fsync(2).
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.answer_empty(self.disk(inode).and_then(Disk::flush), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let durable = is_durable(handle.0 as i32);
        self.answer_empty(self.disk(inode).and_then(|disk| disk.fallocate(offset, length, mode, durable)), reply);
    }

    fn lseek(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let sought = match whence {
            libc::SEEK_DATA => Ok(Sought::Data),
            libc::SEEK_HOLE => Ok(Sought::Hole),
            _ => Err(Errno::EINVAL),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO);
        match self.disk(inode).and_then(|disk| disk.seek(offset?, sought?)) {
            Ok(found) => reply.offset(found as i64),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let directories = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let inodes = (FIRST_INODE..).map(INodeNo);
        let files = inodes.zip(&self.disks).map(|(inode, disk)| (inode, FileType::RegularFile, disk.name()));
        for (number, (inode, kind, name)) in (1..).zip(directories.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(inode, number, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    /// Full, since no file can be made. The block size of a file is its page: a loop device takes it for what discards are worth.
    fn statfs(&self, _: &Request, inode: INodeNo, reply: ReplyStatfs) {
        let pages = self.disks.iter().map(Disk::page_bytes);
        let block = self.disk(inode).map_or(pages.min().unwrap_or(512), Disk::page_bytes);
        let blocks = self.disks.iter().map(|disk| disk.size_bytes() / u64::from(block)).sum();
        reply.statfs(blocks, 0, 0, self.disks.len() as u64, 0, block, 255, block);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn rename(&self, _: &Request, _: INodeNo, _: &OsStr, _: INodeNo, _: &OsStr, _: RenameFlags, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }
}
