//! A file system in memory that counts what it is asked, panics when it is told to, and is mounted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use isotherm_fuse::Mounted;
use isotherm_fuse::files::{FilesOptions, mount};
use isotherm_vfs::memory::MemoryFileSystem;
use isotherm_vfs::{
    Allocation, Attributes, Caller, Change, DirectoryEntry, Done, Errno, FileSystem, Handle, Ino, NewNode, OpenFlags,
    Opened, RenameMode, Result, SeekFrom, SetXattr, VolumeStatistics, WriteFlags,
};
use tempfile::TempDir;

use crate::fixture::can_mount;

/// Bytes of the largest file, as it says: the kernel's own limit is higher.
pub const FILE_BYTES_MAX: u64 = 16 << 40;

#[derive(Default)]
pub struct Observed {
    files: MemoryFileSystem,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    panics_in: Mutex<Option<&'static str>>,
    /// Answers of `fsync` that are held back, if they are.
    held: Mutex<Option<Vec<Done>>>,
}

impl Observed {
    /// How often it was asked something since the last time.
    pub fn count(&self, request: &str) -> usize {
        self.counts.lock().unwrap().remove(request).unwrap_or_default()
    }

    pub fn panic_in(&self, request: Option<&'static str>) {
        *self.panics_in.lock().unwrap() = request;
    }

    /// From now on no `fsync` is answered.
    pub fn hold_answers(&self) {
        *self.held.lock().unwrap() = Some(Vec::new());
    }

    /// Takes the answers that are held back, when there are so many, and holds back others.
    pub fn held_answers(&self, count: usize) -> Vec<Done> {
        loop {
            let mut held = self.held.lock().unwrap();
            match &mut *held {
                Some(answers) if answers.len() == count => return std::mem::take(answers),
                _ => drop(held),
            }
            std::thread::yield_now();
        }
    }

    fn heed(&self, request: &'static str) {
        *self.counts.lock().unwrap().entry(request).or_default() += 1;
        let panics = *self.panics_in.lock().unwrap() == Some(request);
        assert!(!panics, "told to panic in {request}");
    }
}

macro_rules! pass_on {
    ($(fn $request:ident(&self $(, $name:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {$(
        fn $request(&self $(, $name: $type)*) $(-> $answer)? {
            self.heed(stringify!($request));
            self.files.$request($($name),*)
        }
    )*};
}

#[rustfmt::skip]
impl FileSystem for Observed {
    pass_on! {
        fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attributes>;
        fn forget(&self, ino: Ino, references: u64);
        fn attributes(&self, ino: Ino) -> Result<Attributes>;
        fn change(&self, caller: Caller, ino: Ino, change: Change) -> Result<Attributes>;
        fn read_link(&self, ino: Ino) -> Result<Vec<u8>>;
        fn make_node(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode) -> Result<Attributes>;
        fn symlink(&self, caller: Caller, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attributes>;
        fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attributes>;
        fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()>;
        fn remove_directory(&self, parent: Ino, name: &[u8]) -> Result<()>;
        fn rename(&self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8], mode: RenameMode) -> Result<()>;
        fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Opened>;
        fn create(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attributes, Opened)>;
        fn release(&self, ino: Ino, handle: Handle);
        fn read(&self, ino: Ino, handle: Handle, offset: u64, length: u32, out: &mut Vec<u8>) -> Result<()>;
        fn flush(&self, ino: Ino, handle: Handle) -> Result<()>;
        fn fsync(&self, ino: Ino, data_only: bool) -> Result<()>;
        fn allocate(&self, caller: Caller, ino: Ino, handle: Handle, offset: u64, length: u64, how: Allocation) -> Result<()>;
        fn seek(&self, ino: Ino, offset: u64, to: SeekFrom) -> Result<u64>;
        fn copy_range(&self, caller: Caller, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<u64>;
        fn read_directory(&self, ino: Ino, cookie: u64, take: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()>;
        fn read_directory_plus(&self, ino: Ino, cookie: u64, take: &mut dyn FnMut(DirectoryEntry<'_>, &Attributes) -> bool) -> Result<()>;
        fn open_directory(&self, ino: Ino) -> Result<Opened>;
        fn release_directory(&self, ino: Ino, handle: Handle);
        fn fsync_directory(&self, ino: Ino) -> Result<()>;
        fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>>;
        fn set_xattr(&self, caller: Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()>;
        fn xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>>;
        fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()>;
        fn statistics(&self) -> Result<VolumeStatistics>;
        fn sync(&self) -> Result<()>;
        fn is_read_only(&self) -> bool;
    }

    fn file_bytes_max(&self) -> u64 {
        FILE_BYTES_MAX
    }

    fn write(&self, ino: Ino, handle: Handle, offset: u64, data: &[u8], flags: WriteFlags) -> Result<()> {
        self.heed("write");
        if offset + data.len() as u64 > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        self.files.write(ino, handle, offset, data, flags)
    }

    fn fsync_then(&self, ino: Ino, data_only: bool, done: Done) {
        match &mut *self.held.lock().unwrap() {
            Some(answers) => answers.push(done),
            None => done(self.fsync(ino, data_only)),
        }
    }

    /// As if the second mebibyte of a device were free, in pieces of 4 KiB.
    fn discard_free(&self, range: Range<u64>, smallest: u64) -> Result<u64> {
        self.heed("discard_free");
        let free = range.end.min(2 << 20).saturating_sub(range.start.max(1 << 20));
        Ok(if smallest <= 4096 { free } else { 0 })
    }
}

/// It, mounted. Unmounts first when it is dropped, then removes its folder.
pub struct Files {
    pub mounted: Option<Mounted>,
    pub asked: Arc<Observed>,
    folder: TempDir,
}

impl Files {
    /// `None`, with the reason on standard error, where this machine cannot mount.
    pub fn new() -> Option<Self> {
        Self::with(&FilesOptions::default())
    }

    pub fn with(options: &FilesOptions) -> Option<Self> {
        Self::of(options, MemoryFileSystem::default())
    }

    /// Mounts this one.
    pub fn of(options: &FilesOptions, files: MemoryFileSystem) -> Option<Self> {
        let folder = can_mount()?;
        let asked = Arc::new(Observed { files, ..Observed::default() });
        let mounted = mount(Arc::clone(&asked), folder.path(), options).unwrap();
        Some(Self { mounted: Some(mounted), asked, folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
