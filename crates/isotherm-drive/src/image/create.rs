//! Making an image: a header, an empty record, and a length.

use super::disk::Disk;
use super::header::Header;
use super::record::DurableRecord;
use super::{ImageError, Problem};
use isotherm::build::{Plan, plan};

/// The device of an image, as far as it is planned.
///
/// # Errors
/// Anything wrong with the specification, or what images cannot keep.
pub(crate) fn planned(header: &Header) -> Result<Plan, ImageError> {
    if header.spec.dram.power_loss_protection {
        return Err(ImageError::new(
            Problem::Specification,
            "dram.power_loss_protection: an image cannot write the buffer out when its process is killed",
            "leave it false: a flush then writes the buffer out",
        ));
    }
    if header.spec.device.logical_size.is_none() {
        return Err(ImageError::new(
            Problem::Specification,
            "device.logical_size: a drive has a size of its own",
            "give --logical-size, such as 8GiB",
        ));
    }
    Ok(plan(&header.spec, &header.environment())?)
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
