//! A drive that is in use: one device, its image, its clock, and all who ask something of it.
//!
//! Requests take the device one after the other, as a controller does; a flush then waits for the disk without holding up the
//! others. Each request arrives at a moment of the drive's own clock, which a recorder takes down: replayed at these moments, a
//! device of the same specification counts the same.

mod clients;
mod opening;
mod room;
mod serving;

pub use clients::Handle;

use crate::image::{self, Durability, HostTotals, How, ImageError, Problem, Totals};
use isotherm::build::Plan;
use isotherm::device::{DeviceError, Observe};
use isotherm::nand::timing::TimeMode;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm_export::{ErrorKind, Export as _, ExportError};
use serving::Core;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When clients are told that a request is done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Latency {
    /// As soon as it is.
    #[default]
    None,
    /// When the simulated clock says so, which runs `slowdown` times slower than the wall clock. `timing.mode` is `open` then,
    /// unless it is `closed`.
    Emulated {
        /// Above 0; 10 makes a request of 100 us take 1 ms.
        slowdown: f64,
    },
}

impl Latency {
    /// Latencies that clients feel come from a clock on which operations queue.
    fn adapt(self, spec: &mut DeviceSpec) {
        if matches!(self, Self::Emulated { .. }) && spec.timing.mode != TimeMode::Closed {
            spec.timing.mode = TimeMode::Open;
        }
    }
}

/// Hears of requests.
pub type Recorder = Box<dyn FnMut(&Request) + Send>;

/// How a drive is used.
#[derive(Default)]
pub struct DriveOptions {
    /// When clients hear of the end of requests.
    pub latency: Latency,
    /// Hears of every request, in the order in which the device carries them out.
    pub recorder: Option<Recorder>,
}

/// A drive that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Its image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Its device stopped.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<std::io::Error> for DriveError {
    fn from(error: std::io::Error) -> Self {
        Self::Image(error.into())
    }
}

/// What keeps a drive's bytes after this process.
trait Durable: Send + Sync {
    fn sync(&self) -> std::io::Result<()>;
    fn count(&self, host: HostTotals);
}

impl<D: image::Disk> Durable for Durability<D> {
    fn sync(&self) -> std::io::Result<()> {
        self.sync()
    }
    fn count(&self, host: HostTotals) {
        self.count(host);
    }
}

/// Whether a drive can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// It can.
    Good,
    /// The disk below the image has no room; writes go on once it has.
    NoRoomBelow,
    /// So many blocks failed that it is read-only for good.
    WornOut,
    /// Its image failed: it answers nothing until it is opened again.
    Stopped,
}

/// See the module's text.
pub struct Drive {
    core: Mutex<Core>,
    durable: Option<Arc<dyn Durable>>,
    spec: DeviceSpec,
    plan: Plan,
    seed: u64,
    latency: Latency,
    start: Instant,
    capacity_bytes: u64,
    page_bytes: u32,
    how: Option<How>,
    /// The image's file, where it is one.
    file: Option<File>,
}

/// A request that took long on the device's clock.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowRequest {
    /// When its client could hear of its end, since the drive was opened.
    pub ended: Duration,
    /// What it was.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// What it took.
    pub latency_ns: u64,
    /// Of this, how long it waited at most for a plane that worked for others.
    pub waited_ns: u64,
    /// Blocks that were erased during it: collections, merges and the like.
    pub erases: u64,
    /// Pages that were copied inside the array during it.
    pub copies: u64,
    /// Pages that were programmed during it beside the host's: translation pages, logs of trims.
    pub other_programs: u64,
    /// Pages of the host that a flush found in the write buffer, and programmed; 0 for other requests.
    pub buffered_programs: u64,
}

impl Drive {
    /// The specification that the drive is built from.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// The device that the specification describes.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Seed of its policies.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How its image was opened; none without one.
    pub fn how(&self) -> Option<&How> {
        self.how.as_ref()
    }

    /// Time for which the drive has been served.
    pub fn served_for(&self) -> Duration {
        self.start.elapsed()
    }

    /// Now, on the drive's own clock: that by which requests arrive.
    pub fn clock_ns(&self) -> u64 {
        let now_ns = self.start.elapsed().as_nanos() as u64;
        match self.latency {
            Latency::None => now_ns,
            Latency::Emulated { slowdown } => (now_ns as f64 / slowdown) as u64,
        }
    }

    /// Looks at the device.
    pub fn observe<T>(&self, look: impl FnOnce(&dyn Observe) -> T) -> T {
        look(&*self.core().device as &dyn Observe)
    }

    /// What was counted over the life of the drive: since it was created, or since the process began where it lies in memory.
    pub fn totals(&self) -> Totals {
        let core = self.core();
        let host = core.host_over_life(self.start);
        // The array counts on from where it was left.
        let medium = core.device.counters();
        Totals { programs: medium.programs, copies: medium.copies, erases: medium.erases, host }
    }

    /// Bytes that flash read over the life of the drive, copies included. Images keep no reads by cause: of earlier uses, what the host
    /// read stands for what flash read for it.
    pub fn media_bytes_read(&self) -> u64 {
        let core = self.core();
        core.host_before.bytes_read + core.device.counters().read().total() * u64::from(self.page_bytes)
    }

    /// Writes to the disk what is due, so that little is to be looked at after a loss of power. The device hears nothing of it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> Result<(), DriveError> {
        let mut core = self.core();
        if core.stopped.is_some() {
            return Ok(());
        }
        core.room.forget();
        core.device.hand_over()?;
        let host = core.host_over_life(self.start);
        drop(core);
        self.make_durable(host)?;
        Ok(())
    }

    /// Why nothing can be written, where that is so.
    pub fn health(&self) -> Health {
        let mut core = self.core();
        match &core.failed {
            Some(DeviceError::WornOut { .. }) => Health::WornOut,
            Some(_) => Health::Stopped,
            None => {
                if core.room.is_short() {
                    Health::NoRoomBelow
                } else {
                    Health::Good
                }
            }
        }
    }

    /// Ends the use in order: what is in DRAM is written, and the image is opened at once next time.
    ///
    /// # Errors
    /// The device or the disk failed; then the image is as after a loss of power.
    pub fn close(&self) -> Result<(), DriveError> {
        let mut core = self.core();
        if core.stopped.is_some() {
            return Ok(());
        }
        core.recorder = None;
        if let Some(error @ DeviceError::Payload(_)) = &core.failed {
            let problem = format!("the drive answered nothing any more, because its image failed: {error}");
            let fix = "the image is as after a loss of power: see to the disk that it lies on, and serve it again";
            return Err(ImageError::new(Problem::Disk, problem, fix).into());
        }
        if core.is_unwritten {
            // The next use finds what this one found.
            core.stopped = Some("the drive was shut down");
            return Ok(core.device.hand_over()?);
        }
        core.device.write_out()?;
        core.stopped = Some("the drive was shut down");
        if let Some(durable) = &self.durable {
            durable.count(core.host_over_life(self.start));
        }
        core.device.close()?;
        Ok(())
    }

    /// Copies the image as it is now to `target`, where nothing is yet: a drive that lost power at this moment. Where the file system
    /// can, the copy shares its blocks.
    ///
    /// # Errors
    /// A drive in memory, a file that cannot be made, or a disk that fails.
    pub fn snapshot_to(&self, target: &Path) -> Result<(), DriveError> {
        let Some(file) = &self.file else {
            let problem = "the drive lies in memory: there is no image to copy";
            return Err(ImageError::new(Problem::Disk, problem, "serve an image").into());
        };
        let mut core = self.core();
        if let Some(why) = core.stopped {
            return Err(ImageError::new(Problem::Busy, why, "copy the image itself").into());
        }
        core.device.hand_over()?;
        let copy = OpenOptions::new().write(true).create_new(true).open(target)?;
        let copied = copy_sparse(file, &copy);
        drop(core);
        if let Err(error) = copied.and_then(|()| copy.sync_all()) {
            let _ = std::fs::remove_file(target);
            return Err(error.into());
        }
        Ok(())
    }

    /// Discards bytes, as a client would.
    ///
    /// # Errors
    /// A range past the end, or a device that failed.
    pub fn trim(self: &Arc<Self>, offset: u64, length: u64) -> Result<(), ExportError> {
        let end = offset.saturating_add(length);
        if end > self.capacity_bytes {
            let message = format!("byte {end} lies past the drive's {} bytes", self.capacity_bytes);
            return Err(ExportError { kind: ErrorKind::Invalid, message });
        }
        self.handle(0).trim(offset, length, false).map(|_| ())
    }

    /// Ends the use as a loss of power does: what was programmed is on flash, the last page half, and what was in DRAM is gone,
    /// unless `dram.power_loss_protection` saves it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn cut_power(&self) -> Result<(), DriveError> {
        let mut core = self.core();
        if core.stopped.is_some() {
            return Ok(());
        }
        core.recorder = None;
        core.stopped = Some("the drive lost power");
        if self.spec.dram.power_loss_protection && !core.is_unwritten {
            // What the capacitors are for.
            core.device.flush()?;
        }
        core.device.hand_over()?;
        Ok(core.device.tear()?)
    }

    /// Requests since the drive was opened.
    pub fn requests(&self) -> u64 {
        self.core().requests
    }

    /// Forgets the latencies recorded so far.
    pub fn reset_latencies(&self) {
        let mut core = self.core();
        core.device.reset_latencies();
        core.slow.clear();
    }

    /// The slowest requests of the last minute, slowest first; none without a clock.
    pub fn slowest(&self) -> Vec<SlowRequest> {
        self.core().slow.clone()
    }
}

/// Copies a file with its holes; in one step where the file system can.
fn copy_sparse(source: &File, target: &File) -> std::io::Result<()> {
    use image::Disk as _;
    if rustix::fs::ioctl_ficlone(target, source).is_ok() {
        return Ok(());
    }
    let length = source.length()?;
    target.set_len(length)?;
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while let Some(start) = source.next_data(at)?.filter(|start| *start < length) {
        let end = match rustix::fs::seek(source, rustix::fs::SeekFrom::Hole(start)) {
            Ok(end) => end.min(length),
            Err(error) => return Err(error.into()),
        };
        at = start;
        while at < end {
            let piece = &mut buffer[..((end - at) as usize).min(1 << 20)];
            source.read(at, piece)?;
            target.write(at, piece)?;
            at += piece.len() as u64;
        }
    }
    Ok(())
}
