//! Opening an image: by its checkpoint after a clean end, by a scan of the OOB areas after a loss of power.

use super::checkpoint;
use super::create;
use super::disk::Disk;
use super::durability::Durability;
use super::flash::Flash;
use super::header::Header;
use super::layout::{Layout, OOB_BYTES};
use super::record::{DurableRecord, Totals};
use super::saved::HeldPage;
use super::scan::{Lost, Scanned, scan};
use super::{ImageError, Problem};
use isotherm::nand::Medium;
use isotherm::nand::array::ArrayState;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How an image was opened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct How {
    /// Whether its last user ended in order; else its OOB areas were scanned.
    pub was_clean: bool,
    /// Time that it took, until the device was whole again.
    pub took: Duration,
    /// Bytes of OOB areas that were read.
    pub scanned_bytes: u64,
    /// Time that reading them took.
    pub scan_took: Duration,
    /// Pages and erases that were not durable when power was lost, and that do not count.
    pub lost_operations: u64,
    /// Pages that cannot be read because their OOB area is damaged.
    pub damaged_pages: u64,
}

/// An image that is open.
pub(crate) struct Opened<D> {
    pub(crate) header: Header,
    pub(crate) flash: Flash<D>,
    pub(crate) state: ArrayState,
    pub(crate) durability: Arc<Durability<D>>,
    /// What a protected write buffer held, to be written to flash and then forgotten; none where nothing was saved.
    pub(crate) held: Option<Vec<HeldPage>>,
    pub(crate) how: How,
}

/// What an image says of itself, without a look at its pages.
#[derive(Clone, Debug)]
pub struct About {
    /// What it was created as.
    pub header: Header,
    /// Where everything lies.
    pub layout: Layout,
    /// What was counted over its life, up to the last record.
    pub totals: Totals,
    /// Whether its last user ended in order.
    pub was_clean: bool,
}

/// Reads what an image says of itself. Nothing is written.
///
/// # Errors
/// No image, or a damaged head.
pub fn about(disk: &impl Disk) -> Result<About, ImageError> {
    let (header, layout, record) = read_head(disk)?;
    let was_clean = record.checkpoint_bytes > 0 || record.serial == 1;
    Ok(About { header, layout, totals: record.totals, was_clean })
}

/// Opens an image for use. Until [`close`], a loss of power is found by a scan.
pub(crate) fn open<D: Disk>(disk: D) -> Result<Opened<D>, ImageError> {
    let start = Instant::now();
    let (header, layout, record) = read_head(&disk)?;
    let (scanned, was_clean) = tables(&disk, &layout, &record)?;
    let scan_took = start.elapsed();
    let Scanned { tables, mut state, totals, number_max, lost, damaged_pages, bytes, held, .. } = scanned;
    let lost_operations = lost.operations();
    forget(&disk, &layout, &lost)?;
    // What does not count is gone before a record says that everything up to its number counts.
    disk.sync()?;
    let mut totals = totals;
    totals.host.power_cycles += 1;
    totals.host.unsafe_shutdowns += u64::from(!was_clean);
    let record = DurableRecord {
        serial: record.serial + 1,
        number: number_max,
        checkpoint_bytes: 0,
        checkpoint_check: 0,
        totals,
    };
    record.write(&disk)?;
    disk.sync()?;
    let mut tables = tables;
    tables.number = number_max;
    state.counters.programs = totals.programs;
    state.counters.copies = totals.copies;
    state.counters.erases = totals.erases;
    let durability = Arc::new(Durability::new(disk, record));
    let flash = Flash::new(layout, durability.clone(), tables);
    let how = How { was_clean, took: start.elapsed(), scanned_bytes: bytes, scan_took, lost_operations, damaged_pages };
    Ok(Opened { header, flash, state, durability, held, how })
}

/// What an image is, and the last record of what is durable.
pub(super) fn read_head(disk: &impl Disk) -> Result<(Header, Layout, DurableRecord), ImageError> {
    let header = Header::read(disk)?;
    let layout = create::layout(&header)?;
    let length = disk.length()?;
    if length < layout.length {
        return Err(ImageError::new(
            Problem::Damaged,
            format!("it was cut: it has {length} of {} bytes", layout.length),
            "restore the image from a copy",
        ));
    }
    let record = DurableRecord::read(disk)?.ok_or_else(|| {
        ImageError::new(Problem::Damaged, "all records of what is durable are damaged", "restore the image from a copy")
    })?;
    Ok((header, layout, record))
}

/// All tables, and whether they come from a checkpoint.
pub(super) fn tables<D: Disk>(disk: &D, layout: &Layout, record: &DurableRecord) -> io::Result<(Scanned, bool)> {
    if record.checkpoint_bytes > 0 {
        let found = checkpoint::read(disk, layout, record.checkpoint_bytes, record.checkpoint_check)?;
        if let Some((tables, state)) = found {
            let scanned = Scanned {
                tables,
                state,
                totals: record.totals,
                number_max: record.number,
                lost: Lost::default(),
                damaged_pages: 0,
                mended_records: 0,
                bytes: 0,
                // An orderly end writes it to flash.
                held: None,
            };
            return Ok((scanned, true));
        }
    }
    // A new image has nothing to look at.
    let is_clean = record.checkpoint_bytes > 0 || record.serial == 1;
    Ok((scan(disk, layout, record.number, record.totals)?, is_clean))
}

/// Takes away the records of operations that do not count: their copies first, since one that outlived its record would be taken for it.
fn forget(disk: &impl Disk, layout: &Layout, lost: &Lost) -> io::Result<()> {
    let pages = lost.pages.iter().map(|(slot, index)| layout.oob_of(*slot, *index));
    let places: Vec<u64> = pages.chain(lost.records.iter().copied()).collect();
    if places.is_empty() {
        return Ok(());
    }
    for at in &places {
        disk.write(layout.mirror_of(*at), &[0; OOB_BYTES as usize])?;
    }
    disk.sync()?;
    for at in &places {
        disk.write(*at, &[0; OOB_BYTES as usize])?;
    }
    Ok(())
}

/// Ends the use of an image, which `array` knows the pages of and which no write buffer has anything for: with a checkpoint, and all
/// of it durable.
pub(crate) fn close<D: Disk>(flash: &Flash<D>, array: &impl Medium) -> io::Result<()> {
    let durability = flash.durability();
    durability.sync()?;
    flash.forget_saved_frames()?;
    let (bytes, check) = checkpoint::write(durability.disk(), flash.layout(), flash.tables(), array)?;
    durability.disk().sync()?;
    durability.close(bytes, check)
}
