//! A device as a drive serves it: its bytes, and what they lie on.

use crate::image::{Disk, Flash, close};
use isotherm::build::Finish;
use isotherm::device::{BlockDevice, DeviceError};
use isotherm::ftl::Ftl;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::clock::Clock as _;
use isotherm::nand::content::Bytes;
use isotherm::nand::payload::{HeapBytes, Payload};
use isotherm::nand::timing::Timed;
use isotherm::ssd::Ssd;
use isotherm::stats::MediumCounters;
use std::io;

/// A device of bytes, and what keeps them.
pub(crate) trait Served: BlockDevice {
    /// Hands what only this process knows of the flash to the disk. Unlike a flush, it is nothing that the device hears of.
    ///
    /// # Errors
    /// The disk failed.
    fn hand_over(&mut self) -> Result<(), DeviceError>;
    /// Writes everything to flash, also what a protected write buffer holds, and hands it over. No request, as the device sees it.
    ///
    /// # Errors
    /// The device or the disk failed.
    fn write_out(&mut self) -> Result<(), DeviceError>;
    /// Leaves half a page behind, as a loss of power does. Everything was handed over.
    ///
    /// # Errors
    /// The disk failed.
    fn tear(&mut self) -> io::Result<()>;
    /// Operations of the flash so far.
    fn counters(&self) -> MediumCounters;
    /// How long the latest request waited at most for a plane that worked for others.
    fn waited_ns(&self) -> u64;
    /// Ends the use of what lies on the disk, so that it is opened at once next time. Everything was written out.
    ///
    /// # Errors
    /// The disk failed.
    fn close(&self) -> io::Result<()>;
}

/// What keeps the pages of a drive.
pub(crate) trait Keeper: Payload<Content = Bytes> + Sized {
    /// See [`Served::tear`].
    fn tear(&mut self) -> io::Result<()>;
    /// See [`Served::close`]; `array` knows the pages.
    fn close(array: &NandArray<Self>) -> io::Result<()>;
}

impl<D: Disk> Keeper for Flash<D> {
    fn tear(&mut self) -> io::Result<()> {
        self.tear()
    }

    fn close(array: &NandArray<Self>) -> io::Result<()> {
        close(array.payload(), array)
    }
}

/// Nothing outlives the process.
impl Keeper for HeapBytes {
    fn tear(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn close(_: &NandArray<Self>) -> io::Result<()> {
        Ok(())
    }
}

impl<F, P> Served for Ssd<F>
where
    P: Keeper,
    F: Ftl<Medium = Timed<NandArray<P>>> + Send,
{
    fn hand_over(&mut self) -> Result<(), DeviceError> {
        let result = self.ftl_mut().medium_mut().flush();
        result.map_err(|error| error.stop().unwrap_or(DeviceError::PowerLost))
    }

    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.ftl_mut().write_out()?;
        self.hand_over()
    }

    fn tear(&mut self) -> io::Result<()> {
        self.ftl_mut().medium_mut().inner_mut().payload_mut().tear()
    }

    fn counters(&self) -> MediumCounters {
        *self.ftl().medium().counters()
    }

    fn waited_ns(&self) -> u64 {
        self.ftl().medium().clock().waited_ns()
    }

    fn close(&self) -> io::Result<()> {
        P::close(self.ftl().medium().inner())
    }
}

/// Makes a device to be served.
pub(crate) struct ToServe;

impl<P: Keeper + 'static> Finish<Timed<NandArray<P>>> for ToServe {
    type Device = Box<dyn Served>;
    fn finish<F: Ftl<Medium = Timed<NandArray<P>>> + Send + 'static>(self, ssd: Ssd<F>) -> Self::Device {
        Box::new(ssd)
    }
}
