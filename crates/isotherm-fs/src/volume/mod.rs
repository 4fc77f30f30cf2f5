//! A mounted volume: the tree of files over the log, who writes the log, and what happens in the background.
//!
//! Two locks, taken in this order: the writer's seat, held while the log is planned and written, and the tree's, held for every
//! request and never while the device is written.

mod attendant;
mod background;
mod cleaner;
mod filesystem;
mod making;
mod places;
mod reading;
mod recovering;
mod seat;
mod statistics;
mod writer;

pub use background::{Background, Intervals};
pub use making::make;
pub use places::{EXTENTS_XATTR, parse_extents};
pub use statistics::{Figures, STATISTICS_XATTR, SYNC_XATTR, SegmentView};

use crate::device::Device;
use crate::log::{Log, LogSettings, OpenError, Recovery};
use crate::recording::Observer;
use crate::store::StoreError;
use crate::tree::{AccessTimes, Tree};
use attendant::Attendant;
use isotherm_vfs::Time;
use seat::{Patience, Seat, Wanted};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use writer::lock;

/// Small files that one transaction frees: their inodes share pages, of which each is changed once.
const FREED_TOGETHER: usize = 64;

/// Tells the time that files are marked with.
type Clock = Box<dyn Fn() -> Time + Send + Sync>;

/// See the module's text.
pub struct Volume {
    tree: Mutex<Tree<Log>>,
    device: Arc<dyn Device>,
    seat: Seat,
    attendant: Arc<Attendant>,
    clock: Clock,
    is_read_only: bool,
    /// Bytes of files that were read.
    bytes_read: AtomicU64,
    read_errors: AtomicU64,
    last_read_error: Mutex<Option<String>>,
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume").field("is_read_only", &self.is_read_only).finish_non_exhaustive()
    }
}

impl Volume {
    /// Opens the volume on `device`, rolls its log forward, gives back what no size covers, and makes durable what was found. `clock` tells the time that files are
    /// marked with.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        device: Arc<dyn Device>,
        settings: LogSettings,
        clock: impl Fn() -> Time + Send + Sync + 'static,
    ) -> Result<(Self, Recovery), OpenError> {
        Self::open_observed(device, settings, clock, None)
    }

    /// The same, and `observer` is told what the segment machine is handed, and what it decides ([`crate::recording`]).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_observed(
        device: Arc<dyn Device>,
        settings: LogSettings,
        clock: impl Fn() -> Time + Send + Sync + 'static,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<(Self, Recovery), OpenError> {
        Self::open_with(device, settings, Box::new(clock), observer)
    }

    /// The same, and not generic over the clock: that would be compiled again by whoever opens a volume, with all of the tree that it uses.
    fn open_with(
        device: Arc<dyn Device>,
        settings: LogSettings,
        clock: Clock,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<(Self, Recovery), OpenError> {
        let is_read_only = settings.read_only;
        let (mut log, recovery) = Log::open(device.clone(), settings)?;
        if let Some(observer) = observer {
            log.observe(observer);
        }
        let tree = Tree::open_store(log).map_err(StoreError::from)?;
        let volume = Self::over(tree, device, is_read_only, clock);
        if !is_read_only {
            volume.recover()?;
        }
        Ok((volume, recovery))
    }

    /// What is mounted over a tree whose log was opened: [`Volume::recover`] is to be called before anybody is served.
    pub(crate) fn over(mut tree: Tree<Log>, device: Arc<dyn Device>, is_read_only: bool, clock: Clock) -> Self {
        tree.free_together(FREED_TOGETHER);
        if is_read_only {
            tree.set_access_times(AccessTimes::Never, false);
        }
        Self {
            tree: Mutex::new(tree),
            device,
            seat: Seat::default(),
            attendant: Arc::default(),
            clock,
            is_read_only,
            bytes_read: AtomicU64::new(0),
            read_errors: AtomicU64::new(0),
            last_read_error: Mutex::default(),
        }
    }

    /// Writes all that waits, and a checkpoint.
    ///
    /// # Errors
    /// No space, the device.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.checkpoint_all(false)
    }

    /// The last checkpoint: the volume is whole without a replay. Requests that come later are lost unless they are made durable.
    ///
    /// # Errors
    /// No space, the device.
    pub fn close(&self) -> Result<(), StoreError> {
        if self.is_read_only {
            return Ok(());
        }
        // A thread that nobody asked may have met it.
        self.check_failure()?;
        self.checkpoint_all(true)
    }

    fn checkpoint_all(&self, is_last: bool) -> Result<(), StoreError> {
        self.seated(|writer| {
            self.carry_out_all(writer)?;
            if is_last { self.commit(writer, true) } else { self.commit_and_make_room(writer) }
        })
    }

    /// A segment write: groups that fill a segment are written, the rest goes on waiting.
    ///
    /// # Errors
    /// No space, the device.
    pub fn write_groups(&self) -> Result<(), StoreError> {
        self.seated(|writer| self.carry_out_groups(writer))
    }

    /// Sets when reading sets a time, and whether that of a directory too. On a volume that is only read it never does.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn set_access_times(&self, access_times: AccessTimes, of_directories: bool) -> Result<(), StoreError> {
        if !self.is_read_only {
            lock(&self.tree)?.set_access_times(access_times, of_directories);
        }
        Ok(())
    }

    /// Lets `look` see the tree and its log.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn inspect<T>(&self, look: impl FnOnce(&mut Tree<Log>) -> T) -> Result<T, StoreError> {
        Ok(look(&mut *lock(&self.tree)?))
    }
}
