//! How a drive comes into being: its image made or opened, or all of it in memory.

use super::room::Room;
use super::serving::Core;
use super::{Drive, DriveError, DriveOptions, Durable};
use crate::image::{self, Durability, Header, HeldPage, HostTotals, How, ImageError, Problem};
use crate::served::Served;
use isotherm::build::{Array, HeldDevice, build_over, in_memory};
use isotherm::device::DeviceError;
use isotherm::nand::array::NandArray;
use isotherm::nand::payload::AnyPayload;
use isotherm::spec::DeviceSpec;
use isotherm::stats::MediumCounters;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

impl Drive {
    /// Makes an image at `path`, where nothing is yet.
    ///
    /// # Errors
    /// Anything wrong with the specification, or a file that cannot be made.
    pub fn create(path: &Path, spec: DeviceSpec, seed: u64) -> Result<(), DriveError> {
        let length = Self::image_bytes(&spec, seed)?;
        // A device that can be planned may still be none that can be built: that is to be heard now, and not from whoever serves it.
        build_in_memory(&Header { spec: spec.clone(), seed })?;
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
        let (copy, below) = (file.try_clone()?, file.try_clone()?);
        let mut drive = Self { file: Some(copy), ..Self::on(file, options)? };
        let layout = image::create::layout(&Header { spec: drive.spec.clone(), seed: drive.seed })?;
        let dram_bytes = drive.spec.dram.size.map_or(0, |size| size.0);
        let room = Room::below(below, &layout, drive.plan.streams, dram_bytes);
        drive.core.get_mut().unwrap_or_else(PoisonError::into_inner).room = room;
        Ok(drive)
    }

    /// The file at `path`, to be looked at: nobody serves it, and nobody can until it is closed.
    ///
    /// # Errors
    /// A file that cannot be read, or that is in use.
    pub fn claim(path: &Path) -> Result<File, ImageError> {
        let file = File::open(path)?;
        lock(&file)?;
        Ok(file)
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
        let device = build_over(&opened.header.spec, &environment, |geometry| {
            let flash: AnyPayload = Box::new(opened.flash);
            // A device that finds nothing begins like one that was just built, block for block.
            if opened.state.counters == MediumCounters::default() {
                return Ok(Array::New(flash));
            }
            let endurance = opened.header.spec.device.endurance;
            Ok(Array::Left(Box::new(NandArray::restore(*geometry, endurance, flash, opened.state))))
        });
        // The specification is the one that the image was made with: what fails is the content.
        let device = device.map_err(|error| {
            let problem = format!("the device cannot be rebuilt from its pages: {error}");
            ImageError::new(
                Problem::Damaged,
                problem,
                "list the damage with isotherm drive check, and restore the image from a copy",
            )
        })?;
        let mut device = Served::on_disk::<D>(device);
        let unwritten = match opened.held {
            Some(held) => restore(&mut device, &held, &durability, &image::create::layout(&opened.header)?)?,
            None => None,
        };
        let how = How { took: start.elapsed(), ..opened.how };
        let drive = Self::over(device, Some(durability), opened.header, host, Some(how), options)?;
        let mut core = drive.core();
        (core.is_unwritten, core.failed) = (unwritten.is_some(), unwritten);
        drop(core);
        Ok(drive)
    }

    /// A drive whose bytes last as long as the process.
    ///
    /// # Errors
    /// Anything wrong with the specification.
    pub fn in_memory(spec: DeviceSpec, seed: u64, options: DriveOptions) -> Result<Self, DriveError> {
        let mut header = Header { spec, seed };
        options.latency.adapt(&mut header.spec);
        let device = Served::in_memory(build_in_memory(&header)?);
        Ok(Self::over(device, None, header, HostTotals::default(), None, options)?)
    }

    fn over(
        device: Served,
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
                is_unwritten: false,
                stopped: None,
                failed: None,
                room: Room::endless(),
            }),
            durable,
            latency: options.latency,
            start: Instant::now(),
            how,
            file: None,
        })
    }
}

/// The device of a header, over pages that last as long as the process.
fn build_in_memory(header: &Header) -> Result<Box<dyn HeldDevice>, ImageError> {
    image::create::planned(header)?;
    Ok(build_over(&header.spec, &header.environment(), |geometry| Ok(Array::New(in_memory(geometry))))?)
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
/// Returns why flash has no room for it, if so: then it stays saved, and the buffer has it for reads.
fn restore<D: image::Disk>(
    device: &mut Served,
    held: &[HeldPage],
    durability: &Durability<D>,
    layout: &image::Layout,
) -> Result<Option<DeviceError>, DriveError> {
    let page_bytes = u64::from(device.page_bytes());
    let mut page = vec![0; page_bytes as usize];
    for entry in held {
        if !entry.read(durability.disk(), &mut page)? {
            let problem = format!("the write buffer held LPN {}, and what was saved of it is damaged", entry.lpn.0);
            return Err(ImageError::new(Problem::Damaged, problem, "restore the image from a copy").into());
        }
        device.write(u64::from(entry.lpn.0) * page_bytes, &page, false)?;
    }
    match device.write_out() {
        Err(error) if error.is_out_of_room() => return Ok(Some(error)),
        written => written?,
    }
    durability.sync()?;
    image::forget_saved_frames(durability.disk(), layout)?;
    durability.disk().sync()?;
    device.reset_latencies();
    Ok(None)
}
