//! A mounted export that records what it is asked, and what tests need of the machine.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isotherm_export::{Due, ErrorKind, Export, ExportError, Extent, Zeroes};
use isotherm_fuse::Mounted;
use isotherm_fuse::drive::{DiskFile, Options, mount};
use tempfile::TempDir;

use crate::memory::Memory;

/// A request that changes something, as an export gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Write { offset: u64, length: u64, durable: bool },
    Trim { offset: u64, length: u64, durable: bool },
    Zero { offset: u64, length: u64, may_trim: bool },
    Flush,
}

/// What an export does other than its work.
#[derive(Clone, Copy, Default)]
pub enum Mood {
    #[default]
    Well,
    Fails(ErrorKind),
    Panics,
    /// Answers to writes, flushes and reads that begin in the second half are due later by this.
    Late(Duration),
}

/// A disk in memory that records the requests that change it.
pub struct Recorder {
    memory: Memory,
    calls: Mutex<Vec<Call>>,
    mood: Mutex<Mood>,
    /// The last write was asked for by a thread that the kernel knows to carry out write-back.
    by_flusher: AtomicBool,
}

impl Recorder {
    pub fn new(size_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            memory: Memory::new(size_bytes),
            calls: Mutex::default(),
            mood: Mutex::default(),
            by_flusher: AtomicBool::new(false),
        })
    }

    /// The calls since the last time.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    pub fn is_by_flusher(&self) -> bool {
        self.by_flusher.load(Ordering::Relaxed)
    }

    pub fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn heed(&self, offset: u64) -> Result<Due, ExportError> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Late(by) if offset >= self.size_bytes() / 2 => Ok(Some(Instant::now() + by)),
            Mood::Well | Mood::Late(_) => Ok(None),
            Mood::Fails(kind) => Err(ExportError { kind, message: format!("told to fail at {offset}") }),
            Mood::Panics => panic!("told to panic"),
        }
    }

    fn record(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Export for Recorder {
    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.memory.page_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        let due = self.heed(offset)?;
        self.memory.read(offset, out)?;
        Ok(due)
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<Due, ExportError> {
        let due = self.heed(offset)?;
        self.by_flusher.store(rustix::process::is_io_flusher().unwrap_or(false), Ordering::Relaxed);
        self.record(Call::Write { offset, length: data.len() as u64, durable });
        self.memory.write(offset, data, durable)?;
        Ok(due)
    }

    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<Due, ExportError> {
        let due = self.heed(offset)?;
        self.record(Call::Trim { offset, length, durable });
        self.memory.trim(offset, length, durable)?;
        Ok(due)
    }

    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError> {
        let due = self.heed(offset)?;
        self.record(Call::Zero { offset, length, may_trim: how.may_trim });
        self.memory.write_zeroes(offset, length, how, durable)?;
        Ok(due)
    }

    fn flush(&self) -> Result<Due, ExportError> {
        let due = self.heed(u64::MAX)?;
        self.record(Call::Flush);
        Ok(due)
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        self.heed(0)?;
        // Short answers, so that callers must go on from where one ends.
        self.memory.extents(offset, length, most.min(2))
    }
}

/// A recorder mounted as the file `disk`. Unmounts first when it is dropped, then removes its folder.
pub struct Stage {
    pub mounted: Option<Mounted>,
    pub export: Arc<Recorder>,
    folder: TempDir,
}

impl Stage {
    /// `None`, with the reason on standard error, where this machine cannot mount.
    pub fn new(size_bytes: u64) -> Option<Self> {
        Self::with(size_bytes, &Options::default())
    }

    pub fn with(size_bytes: u64, options: &Options) -> Option<Self> {
        let folder = can_mount()?;
        let export = Recorder::new(size_bytes);
        let file = DiskFile::new(Arc::clone(&export) as Arc<dyn Export>);
        let mounted = mount(vec![file], folder.path(), options).unwrap();
        Some(Self { mounted: Some(mounted), export, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// The file, open for reading and writing.
    pub fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.path()).unwrap()
    }
}

/// A folder to mount at, where this machine can: root with the device, or the helper.
pub fn can_mount() -> Option<TempDir> {
    if !Path::new("/dev/fuse").exists() {
        return skip("/dev/fuse is missing");
    }
    // The helper opens the device as the user.
    if OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() {
        return skip("this user may not read and write /dev/fuse");
    }
    if !rustix::process::geteuid().is_root() && !has_programs(&["fusermount3"]) {
        return None;
    }
    Some(tempfile::tempdir().unwrap())
}

/// Says that the running test is skipped. Fails it where mounts are required.
pub fn skip<T>(reason: &str) -> Option<T> {
    let is_required = std::env::var_os("ISOTHERM_REQUIRE_MOUNTS").is_some_and(|value| value == "1");
    assert!(!is_required, "{reason}");
    skip_privilege(reason);
    None
}

/// Says that the running test is skipped, past the capture of its output, where it needs more than mounts do.
pub fn skip_privilege(reason: &str) {
    let thread = std::thread::current();
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped: {}: {reason}", thread.name().unwrap_or("a test")).unwrap();
}

/// Whether programs can be started; else the test is to end, and has said why.
pub fn has_programs(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
    });
    match missing {
        Some(program) => skip::<()>(&format!("the program {program} is not in PATH")).is_some(),
        None => true,
    }
}

/// Runs a program that must succeed.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The `errno` of a call that must fail.
#[track_caller]
pub fn errno<T>(result: std::io::Result<T>) -> i32 {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error.raw_os_error().unwrap_or_else(|| panic!("{error} has no errno")),
    }
}

/// Bytes that differ from place to place and from seed to seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
