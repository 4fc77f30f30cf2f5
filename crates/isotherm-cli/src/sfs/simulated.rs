//! A volume on a simulated drive in the same process: `--on sim:...`.

use crate::drive::{describe, device as drive_spec};
use crate::options::DeviceOptions;
use anyhow::{Context as _, bail};
use clap::Parser;
use isotherm_drive::{Drive, DriveError, DriveOptions, Handle};
use isotherm_export::{ErrorKind, Export as _, ExportError};
use isotherm_fs::device::{Device, DeviceCounters};
use isotherm_fs::geometry::Wishes;
use isotherm_fs::log::read_superblock;
use isotherm_live::Fact;
use serde_json::json;
use std::io;
use std::sync::Arc;

/// What stands behind `sim:`.
#[derive(Parser)]
#[command(name = "sim:", no_binary_name = true)]
struct Words {
    #[command(flatten)]
    device: DeviceOptions,
    /// Seed of the policies
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A simulated drive with the bytes of its pages.
pub struct SimulatedDevice {
    drive: Arc<Drive>,
    handle: Handle,
}

impl SimulatedDevice {
    /// The drive that `text` describes: options of `drive create` for one in memory, or the path of an image. It gets an empty volume
    /// where it holds none.
    ///
    /// # Errors
    /// Wrong options, no such image, a drive that holds something else.
    pub fn open(text: &str) -> anyhow::Result<Arc<Self>> {
        let Some(what) = text.strip_prefix("sim:") else {
            bail!(
                "--on {text}: write sim: with options of a drive, or with the path of an image: --on \"sim:--logical-size 8GiB --op 7%\""
            );
        };
        let what = what.trim();
        let drive = if what.is_empty() || what.starts_with('-') {
            let words = Words::try_parse_from(what.split_whitespace())
                .map_err(|problem| anyhow::anyhow!("--on sim: {}", problem.to_string().trim()))?;
            let spec = drive_spec(&words.device).context("--on sim:")?;
            if spec.device.logical_size.is_none() {
                bail!("--on sim: a drive in memory needs a size; give --logical-size");
            }
            Drive::in_memory(spec, words.seed, DriveOptions::default())?
        } else {
            // The server's working directory is another one when the image is closed.
            let path = std::path::absolute(what).with_context(|| what.to_owned())?;
            Drive::open(&path, DriveOptions::default()).with_context(|| what.to_owned())?
        };
        let drive = Arc::new(drive);
        let device = Arc::new(Self { handle: drive.handle(0), drive });
        if read_superblock(&*device).is_err() {
            device.format(what)?;
        }
        Ok(device)
    }

    /// Makes a volume, unless something else is there.
    fn format(self: &Arc<Self>, what: &str) -> anyhow::Result<()> {
        let mut empty = 0;
        // One answer is about a part of a large drive.
        while empty < self.length() {
            let held = self.handle.extents(empty, self.length() - empty, 1).map_err(anyhow::Error::new)?;
            match held.first() {
                Some(extent) if !extent.is_data => empty += extent.length,
                _ => bail!("{what}: the drive holds something else than a volume of SFS; make a new image"),
            }
        }
        let geometry = self.drive.plan().geometry;
        let block = u64::from(geometry.pages_per_block()) * u64::from(geometry.page_bytes());
        // A volume needs many segments: those of a small drive with large blocks are parts of these.
        let erase_block_bytes = if block * 256 <= self.length() { block } else { 0 };
        let wishes = Wishes { erase_block_bytes, data_checksums: true, ..Wishes::default() };
        super::mkfs::format(self.clone(), wishes).with_context(|| format!("--on sim:{what}"))?;
        Ok(())
    }

    /// How the drive was built, for people.
    pub fn describe(&self) -> Vec<Fact> {
        describe(&self.drive).into_iter().map(|fact| Fact::new(format!("drive's {}", fact.name), fact.value)).collect()
    }

    /// Makes an image whole; a drive in memory is gone.
    ///
    /// # Errors
    /// The image cannot be written.
    pub fn close(&self) -> Result<(), DriveError> {
        self.drive.close()
    }
}

fn told(error: ExportError) -> io::Error {
    let kind = match error.kind {
        ErrorKind::NoSpace => io::ErrorKind::StorageFull,
        ErrorKind::Invalid => io::ErrorKind::InvalidInput,
        ErrorKind::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Device for SimulatedDevice {
    fn length(&self) -> u64 {
        self.handle.size_bytes()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.handle.read(offset, out).map(drop).map_err(told)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.handle.write(offset, data, false).map(drop).map_err(told)
    }
    fn flush(&self) -> io::Result<()> {
        self.handle.flush().map(drop).map_err(told)
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.handle.trim(offset, length, false).map(drop).map_err(told)
    }
    fn counters(&self) -> Option<DeviceCounters> {
        let totals = self.drive.totals();
        let page_bytes = u64::from(self.drive.plan().geometry.page_bytes());
        let media = (totals.programs.total() + totals.copies.total()) * page_bytes;
        let host = totals.host.bytes_written;
        let snapshot = self.drive.observe(|device| device.snapshot());
        let all = json!({
            "specification": self.drive.spec(),
            "host_bytes_written": host,
            "host_bytes_read": totals.host.bytes_read,
            "host_bytes_trimmed": totals.host.bytes_trimmed,
            "media_bytes_written": media,
            "write_amplification": (host > 0).then(|| media as f64 / host as f64),
            "gc_pages_copied": totals.copies.total(),
            "blocks_erased": totals.erases.total(),
            "flash_time_ns": snapshot.time.total_ns(),
            "mapped_pages": snapshot.mapped_pages,
        });
        Some(DeviceCounters { bytes_written: host, media_bytes_written: media, all })
    }
}
