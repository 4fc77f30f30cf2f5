//! Making an image: a header, an empty record, and a length.

use super::disk::Disk;
use super::header::Header;
use super::layout::Layout;
use super::record::DurableRecord;
use super::{ImageError, Problem};
use isotherm::build::{Plan, plan};

/// The device of an image, as far as it is planned.
///
/// # Errors
/// Anything wrong with the specification, or what images cannot keep.
pub(crate) fn planned(header: &Header) -> Result<Plan, ImageError> {
    if header.spec.device.logical_size.is_none() {
        return Err(ImageError::new(
            Problem::Specification,
            "device.logical_size: a drive has a size of its own",
            "give --logical-size, such as 8GiB",
        ));
    }
    Ok(plan(&header.spec, &header.environment())?)
}

/// The places of its image.
///
/// # Errors
/// As [`planned`].
pub(crate) fn layout(header: &Header) -> Result<Layout, ImageError> {
    let geometry = planned(header)?.geometry;
    let dram = &header.spec.dram;
    // As many as a buffer that had all of the DRAM.
    let is_protected = dram.power_loss_protection && dram.has_buffer();
    let bytes = dram.size.filter(|_| is_protected).map_or(0, |size| size.0);
    Ok(Layout::new(geometry, u32::try_from(bytes / u64::from(geometry.page_bytes())).unwrap_or(u32::MAX)))
}

/// Writes an empty image to a disk that is empty and long enough.
pub(crate) fn write(disk: &impl Disk, header: &Header) -> Result<(), ImageError> {
    planned(header)?;
    header.write(disk)?;
    let record = DurableRecord { serial: 1, ..DurableRecord::default() };
    record.write(disk)?;
    disk.sync()?;
    Ok(())
}
