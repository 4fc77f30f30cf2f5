//! A drive that is in use: one device, its image, its clock, and all who ask something of it.
//!
//! Requests take the device one after the other, as a controller does; a flush then waits for the disk without holding up the
//! others. Each request arrives at a moment of the drive's own clock, which a recorder takes down: replayed at these moments, a
//! device of the same specification counts the same.

use crate::handles::HandlePlan;
use crate::image::{self, Durability, Header, HeldPage, HostTotals, How, ImageError, Problem, Totals};
use crate::served::{Served, ToServe};
use isotherm::build::{Array, Plan, assemble};
use isotherm::cause::Cause;
use isotherm::device::{DeviceError, Observe};
use isotherm::nand::array::NandArray;
use isotherm::nand::payload::HeapBytes;
use isotherm::nand::timing::TimeMode;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::stats::{Counter as _, MediumCounters};
use isotherm_export::{Due, ErrorKind, Export, ExportError, Extent, Zeroes};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes of zeros that are written at a time.
const ZERO_BYTES: usize = 1 << 20;
/// Pages that one question for extents looks at.
const EXTENT_PAGES_MAX: u64 = 1 << 20;

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
    /// When it arrived, since the drive was opened.
    pub arrived: Duration,
    /// What it was.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// What it took.
    pub latency_ns: u64,
    /// Blocks that were erased during it: collections, merges and the like.
    pub erases: u64,
    /// Pages that were copied inside the array during it.
    pub copies: u64,
    /// Pages that were programmed during it beside the host's: translation pages, logs of trims.
    pub other_programs: u64,
}

/// Requests that are remembered as slow.
const SLOW_MAX: usize = 12;
/// For how long, on the drive's own clock.
const SLOW_NS: u64 = 60_000_000_000;

/// What one request at a time has.
struct Core {
    /// The slowest requests of late, slowest first.
    slow: Vec<SlowRequest>,
    device: Box<dyn Served>,
    recorder: Option<Recorder>,
    host: HostTotals,
    requests: u64,
    /// What was counted before this use.
    host_before: HostTotals,
    /// Nothing is served any more, and why.
    stopped: Option<&'static str>,
}

/// A request on its way to the device.
struct Asked {
    op: Op,
    offset: u64,
    length: u64,
    durable: bool,
    source: u16,
}

impl Drive {
    /// Makes an image at `path`, where nothing is yet.
    ///
    /// # Errors
    /// Anything wrong with the specification, or a file that cannot be made.
    pub fn create(path: &Path, spec: DeviceSpec, seed: u64) -> Result<(), DriveError> {
        let length = Self::image_bytes(&spec, seed)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let made = file.set_len(length).map_err(DriveError::from).and_then(|()| Self::create_on(&file, spec, seed));
        if made.is_err() {
            // Half an image helps nobody.
            let _ = std::fs::remove_file(path);
            return made;
        }
        Ok(file.sync_all()?)
    }

    /// Bytes that the image of a drive takes at most.
    ///
    /// # Errors
    /// Anything wrong with the specification.
    pub fn image_bytes(spec: &DeviceSpec, seed: u64) -> Result<u64, DriveError> {
        let header = Header { spec: spec.clone(), seed };
        Ok(image::create::layout(&header)?.length)
    }

    /// Makes an image on a disk that is empty and has [`Drive::image_bytes`].
    ///
    /// # Errors
    /// Anything wrong with the specification, or a disk that fails.
    pub fn create_on(disk: &impl image::Disk, spec: DeviceSpec, seed: u64) -> Result<(), DriveError> {
        Ok(image::create::write(disk, &Header { spec, seed })?)
    }

    /// Opens the image at `path`, alone.
    ///
    /// # Errors
    /// An image that is damaged, foreign or in use, or a device that cannot be rebuilt from it.
    pub fn open(path: &Path, options: DriveOptions) -> Result<Self, DriveError> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        lock(&file)?;
        let copy = file.try_clone()?;
        Ok(Self { file: Some(copy), ..Self::on(file, options)? })
    }

    /// Opens the image that lies on `disk`.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn on<D: image::Disk>(disk: D, options: DriveOptions) -> Result<Self, DriveError> {
        let start = Instant::now();
        let mut opened = image::open::open(disk)?;
        options.latency.adapt(&mut opened.header.spec);
        let durability = opened.durability.clone();
        let environment = opened.header.environment();
        let host = durability.totals().host;
        let device = assemble(
            &opened.header.spec,
            &environment,
            |geometry| {
                // A device that finds nothing begins like one that was just built, block for block.
                if opened.state.counters == MediumCounters::default() {
                    return Ok(Array::New(opened.flash));
                }
                let endurance = opened.header.spec.device.endurance;
                let array = NandArray::restore(*geometry, endurance, opened.flash, opened.state);
                Ok(Array::Left(Box::new(array)))
            },
            ToServe,
        );
        // The specification is the one that the image was made with: what fails is the content.
        let device = device.map_err(|error| {
            let problem = format!("the device cannot be rebuilt from its pages: {error}");
            ImageError::new(
                Problem::Damaged,
                problem,
                "list the damage with isotherm drive check, and restore the image from a copy",
            )
        })?;
        let mut device = device;
        if let Some(held) = opened.held {
            restore(&mut *device, &held, &durability, &image::create::layout(&opened.header)?)?;
        }
        let how = How { took: start.elapsed(), ..opened.how };
        Ok(Self::over(device, Some(durability), opened.header, host, Some(how), options)?)
    }

    /// A drive whose bytes last as long as the process.
    ///
    /// # Errors
    /// Anything wrong with the specification.
    pub fn in_memory(spec: DeviceSpec, seed: u64, options: DriveOptions) -> Result<Self, DriveError> {
        let mut header = Header { spec, seed };
        options.latency.adapt(&mut header.spec);
        image::create::planned(&header)?;
        let environment = header.environment();
        let pages = |geometry: &isotherm::address::Geometry| HeapBytes::new(geometry.pages(), geometry.log2_page_bytes);
        let device = assemble(&header.spec, &environment, |geometry| Ok(Array::New(pages(geometry))), ToServe);
        let device = device.map_err(ImageError::from)?;
        Ok(Self::over(device, None, header, HostTotals::default(), None, options)?)
    }

    fn over(
        device: Box<dyn Served>,
        durable: Option<Arc<dyn Durable>>,
        header: Header,
        host_before: HostTotals,
        how: Option<How>,
        options: DriveOptions,
    ) -> Result<Self, ImageError> {
        Ok(Self {
            plan: image::create::planned(&header)?,
            seed: header.seed,
            spec: header.spec,
            capacity_bytes: device.capacity_bytes(),
            page_bytes: device.page_bytes(),
            core: Mutex::new(Core {
                slow: Vec::new(),
                device,
                recorder: options.recorder,
                host: HostTotals::default(),
                requests: 0,
                host_before,
                stopped: None,
            }),
            durable,
            latency: options.latency,
            start: Instant::now(),
            how,
            file: None,
        })
    }

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

    /// Writes to the disk what is due, so that little is to be looked at after a loss of power. The device hears nothing of it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> Result<(), DriveError> {
        let mut core = self.core();
        if core.stopped.is_some() {
            return Ok(());
        }
        core.device.hand_over()?;
        let host = core.host_over_life(self.start);
        drop(core);
        self.make_durable(host)?;
        Ok(())
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
        if self.spec.dram.power_loss_protection {
            // What the capacitors are for.
            core.device.flush()?;
        }
        core.device.hand_over()?;
        Ok(core.device.tear()?)
    }

    /// The drive as clients see it who are known as `source`: a handle of its own.
    pub fn handle(self: &Arc<Self>, source: u16) -> Handle {
        Handle { drive: self.clone(), asks: Asks::As(source) }
    }

    /// The drive as clients see it who do not say who they are: `plan` says it for them, by address.
    pub fn planned(self: &Arc<Self>, plan: HandlePlan) -> Handle {
        Handle { drive: self.clone(), asks: Asks::ByAddress(Arc::new(plan)) }
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

    /// The device, for one request. After a panic in the midst of one nothing is known of its tables: it serves nothing any more,
    /// and the image is as after a loss of power.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            let mut core = poisoned.into_inner();
            core.stopped.get_or_insert("the drive stopped because of a defect of the program");
            core
        })
    }

    fn make_durable(&self, host: HostTotals) -> std::io::Result<()> {
        let Some(durable) = &self.durable else { return Ok(()) };
        durable.count(host);
        durable.sync()
    }

    /// Carries out a request, and says when the client may hear of it.
    fn serve(
        &self,
        asked: &Asked,
        work: impl FnOnce(&mut dyn Served) -> Result<(), DeviceError>,
    ) -> Result<Due, ExportError> {
        let mut core = self.core();
        if let Some(why) = core.stopped {
            return Err(ExportError { kind: ErrorKind::Stopped, message: why.to_owned() });
        }
        let now_ns = self.now_ns();
        core.device.arrive(now_ns, asked.source);
        core.take_down(asked, now_ns);
        let before = core.device.counters();
        let result = work(&mut *core.device);
        core.judge(asked, now_ns, &before);
        if let Err(error) = result {
            core.host.media_errors += u64::from(matches!(error, DeviceError::Unreadable { .. }));
            return Err(refused(&error));
        }
        let due = self.due(now_ns, core.device.latency_ns());
        if asked.durable || asked.op == Op::Flush {
            let host = core.host_over_life(self.start);
            drop(core);
            self.make_durable(host).map_err(|error| ExportError {
                kind: ErrorKind::Io,
                message: format!("the image cannot be made durable: {error}"),
            })?;
        }
        Ok(due)
    }

    /// Now, on the drive's own clock.
    fn now_ns(&self) -> u64 {
        let now_ns = self.start.elapsed().as_nanos() as u64;
        match self.latency {
            Latency::None => now_ns,
            Latency::Emulated { slowdown } => (now_ns as f64 / slowdown) as u64,
        }
    }

    /// When a request that arrived then, and took so long, is done on the wall clock.
    fn due(&self, arrival_ns: u64, latency_ns: Option<u64>) -> Due {
        let Latency::Emulated { slowdown } = self.latency else { return None };
        let end_ns = (arrival_ns + latency_ns?) as f64 * slowdown;
        Some(self.start + Duration::from_nanos(end_ns as u64))
    }

    /// Writes zeros that are to be kept as such.
    fn program_zeros(&self, asked: &Asked) -> Result<Due, ExportError> {
        let zeros = vec![0; ZERO_BYTES.min(asked.length as usize)];
        let mut due = None;
        let mut offset = asked.offset;
        let end = asked.offset + asked.length;
        while offset < end {
            let length = (end - offset).min(ZERO_BYTES as u64);
            let durable = asked.durable && offset + length == end;
            let part = Asked { op: Op::Write, offset, length, durable, source: asked.source };
            due = self.serve(&part, |device| device.write(offset, &zeros[..length as usize], durable))?;
            offset += length;
        }
        Ok(due)
    }

    fn extents_of(&self, offset: u64, length: u64, most: usize) -> Vec<Extent> {
        let page_bytes = u64::from(self.page_bytes);
        let core = self.core();
        let mut extents: Vec<Extent> = Vec::new();
        let (first, end) = (offset / page_bytes, (offset + length).div_ceil(page_bytes));
        for page in first..end.min(first + EXTENT_PAGES_MAX) {
            let is_data = core.device.holds_data(page as u32);
            let from = (page * page_bytes).max(offset);
            let piece = ((page + 1) * page_bytes).min(offset + length) - from;
            let count = extents.len();
            match extents.last_mut() {
                Some(last) if last.is_data == is_data => last.length += piece,
                _ if count == most => break,
                _ => extents.push(Extent { length: piece, is_data }),
            }
        }
        extents
    }
}

impl Core {
    fn take_down(&mut self, asked: &Asked, now_ns: u64) {
        self.requests += 1;
        let host = &mut self.host;
        match asked.op {
            Op::Read => (host.reads, host.bytes_read) = (host.reads + 1, host.bytes_read + asked.length),
            Op::Write => (host.writes, host.bytes_written) = (host.writes + 1, host.bytes_written + asked.length),
            Op::Trim | Op::WriteZeroes => host.bytes_trimmed += asked.length,
            Op::Flush => host.flushes += 1,
        }
        if let Some(recorder) = &mut self.recorder {
            let Asked { op, offset, length, durable, source } = *asked;
            recorder(&Request { arrival_ns: now_ns, offset, length, op, source, durable });
        }
    }

    /// Remembers a request that is among the slowest.
    fn judge(&mut self, asked: &Asked, now_ns: u64, before: &MediumCounters) {
        let Some(latency_ns) = self.device.latency_ns() else { return };
        self.slow.retain(|slow| slow.arrived.as_nanos() as u64 + SLOW_NS >= now_ns);
        let rank = self.slow.partition_point(|slow| slow.latency_ns >= latency_ns);
        if rank >= SLOW_MAX || latency_ns == 0 {
            return;
        }
        let done = self.device.counters().since(before);
        let slow = SlowRequest {
            arrived: Duration::from_nanos(now_ns),
            op: asked.op,
            offset: asked.offset,
            length: asked.length,
            latency_ns,
            erases: done.erases.total(),
            copies: done.copies.total(),
            other_programs: done.programs.total() - done.programs[Cause::Host],
        };
        self.slow.insert(rank, slow);
        self.slow.truncate(SLOW_MAX);
    }

    fn host_over_life(&self, start: Instant) -> HostTotals {
        let (now, before) = (&self.host, &self.host_before);
        HostTotals {
            bytes_written: now.bytes_written + before.bytes_written,
            bytes_read: now.bytes_read + before.bytes_read,
            bytes_trimmed: now.bytes_trimmed + before.bytes_trimmed,
            writes: now.writes + before.writes,
            reads: now.reads + before.reads,
            flushes: now.flushes + before.flushes,
            power_on_ns: before.power_on_ns + start.elapsed().as_nanos() as u64,
            media_errors: now.media_errors + before.media_errors,
            ..*before
        }
    }
}

/// One opener at a time.
fn lock(file: &File) -> Result<(), ImageError> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => ImageError::new(
            Problem::Busy,
            "another process has it open",
            "end that process first, or ask it over its control socket",
        ),
        other => std::io::Error::from(other).into(),
    })
}

/// Writes to flash what the write buffer held when power was lost, and forgets it there: later losses of power bring back nothing old.
fn restore<D: image::Disk>(
    device: &mut dyn Served,
    held: &[HeldPage],
    durability: &Durability<D>,
    layout: &image::Layout,
) -> Result<(), DriveError> {
    let page_bytes = u64::from(device.page_bytes());
    let mut page = vec![0; page_bytes as usize];
    for entry in held {
        if !entry.read(durability.disk(), &mut page)? {
            let problem = format!("the write buffer held LPN {}, and what was saved of it is damaged", entry.lpn.0);
            return Err(ImageError::new(Problem::Damaged, problem, "restore the image from a copy").into());
        }
        device.write(u64::from(entry.lpn.0) * page_bytes, &page, false)?;
    }
    device.write_out()?;
    durability.sync()?;
    image::forget_saved_frames(durability.disk(), layout)?;
    durability.disk().sync()?;
    device.reset_latencies();
    Ok(())
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

/// What a client hears of a device that failed.
fn refused(error: &DeviceError) -> ExportError {
    let kind = match error {
        DeviceError::NoSpace { .. } | DeviceError::Payload(std::io::ErrorKind::StorageFull) => ErrorKind::NoSpace,
        DeviceError::WornOut { .. } => ErrorKind::ReadOnly,
        DeviceError::OutOfRange { .. } => ErrorKind::Invalid,
        DeviceError::PowerLost => ErrorKind::Stopped,
        _ => ErrorKind::Io,
    };
    ExportError { kind, message: error.to_string() }
}

/// A drive as some of its clients see it.
#[derive(Clone)]
pub struct Handle {
    drive: Arc<Drive>,
    asks: Asks,
}

/// Who asks.
#[derive(Clone)]
enum Asks {
    As(u16),
    ByAddress(Arc<HandlePlan>),
}

impl Handle {
    fn asked(&self, op: Op, offset: u64, length: u64, durable: bool) -> Asked {
        let source = match &self.asks {
            Asks::As(source) => *source,
            Asks::ByAddress(plan) => plan.handle_of(offset),
        };
        Asked { op, offset, length, durable, source }
    }
}

impl Export for Handle {
    fn size_bytes(&self) -> u64 {
        self.drive.capacity_bytes
    }

    fn page_bytes(&self) -> u32 {
        self.drive.page_bytes
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        let asked = self.asked(Op::Read, offset, out.len() as u64, false);
        self.drive.serve(&asked, |device| device.read(offset, out))
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<Due, ExportError> {
        let asked = self.asked(Op::Write, offset, data.len() as u64, durable);
        self.drive.serve(&asked, |device| device.write(offset, data, durable))
    }

    /// Parts of pages cannot be discarded: they are made zero.
    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<Due, ExportError> {
        if (offset | length) & u64::from(self.drive.page_bytes - 1) != 0 {
            return self.write_zeroes(offset, length, Zeroes { may_trim: true, fast_only: false }, durable);
        }
        let asked = self.asked(Op::Trim, offset, length, durable);
        self.drive.serve(&asked, |device| device.trim(offset, length, durable))
    }

    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError> {
        if how.may_trim {
            let asked = self.asked(Op::WriteZeroes, offset, length, durable);
            return self.drive.serve(&asked, |device| device.write_zeroes(offset, length, durable));
        }
        if how.fast_only {
            let message = "zeros that are to be kept take as long as a write".to_owned();
            return Err(ExportError { kind: ErrorKind::Unsupported, message });
        }
        self.drive.program_zeros(&self.asked(Op::Write, offset, length, durable))
    }

    fn flush(&self) -> Result<Due, ExportError> {
        self.drive.serve(&self.asked(Op::Flush, 0, 0, false), |device| device.flush())
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        Ok(self.drive.extents_of(offset, length, most))
    }
}
