//! A device as a drive serves it: its bytes, and what they lie on.

use crate::image::{Disk, Flash, close};
use isotherm::build::HeldDevice;
use isotherm::device::DeviceError;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::payload::AnyPayload;
use isotherm::stats::MediumCounters;
use std::any::Any;
use std::io;
use std::ops::{Deref, DerefMut};

/// A device of bytes, and where they lie.
pub(crate) struct Served {
    device: Box<dyn HeldDevice>,
    place: Box<dyn Place>,
}

impl Served {
    /// A device whose bytes last as long as the process.
    pub(crate) fn in_memory(device: Box<dyn HeldDevice>) -> Self {
        Self { device, place: Box::new(Memory) }
    }

    /// A device whose bytes lie on a disk of this type.
    pub(crate) fn on_disk<D: Disk>(device: Box<dyn HeldDevice>) -> Self {
        Self { device, place: Box::new(OnDisk::<D>(std::marker::PhantomData)) }
    }

    /// Hands what only this process knows of the flash to the disk. Unlike a flush, it is nothing that the device hears of.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn hand_over(&mut self) -> Result<(), DeviceError> {
        let result = self.device.array_mut().flush();
        result.map_err(|error| error.stop().unwrap_or(DeviceError::PowerLost))
    }

    /// Writes everything to flash, also what a protected write buffer holds, and hands it over. No request, as the device sees it.
    ///
    /// # Errors
    /// The device or the disk failed.
    pub(crate) fn write_out(&mut self) -> Result<(), DeviceError> {
        self.device.write_out()?;
        self.hand_over()
    }

    /// Operations of the flash so far.
    pub(crate) fn counters(&self) -> MediumCounters {
        *self.device.array().counters()
    }

    /// How long the latest request waited at most for a plane that worked for others.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.device.waited_ns()
    }

    /// Leaves half a page behind, as a loss of power does. Everything was handed over.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn tear(&mut self) -> io::Result<()> {
        self.place.tear(self.device.array_mut())
    }

    /// Ends the use of what lies on the disk, so that it is opened at once next time. Everything was written out.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.place.close(self.device.array())
    }
}

impl Deref for Served {
    type Target = dyn HeldDevice;
    fn deref(&self) -> &Self::Target {
        &*self.device
    }
}

impl DerefMut for Served {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.device
    }
}

/// What knows the type of what keeps the pages.
trait Place: Send {
    /// See [`Served::tear`].
    fn tear(&self, array: &mut NandArray<AnyPayload>) -> io::Result<()>;
    /// See [`Served::close`].
    fn close(&self, array: &NandArray<AnyPayload>) -> io::Result<()>;
}

/// Nothing outlives the process.
struct Memory;

impl Place for Memory {
    fn tear(&self, _: &mut NandArray<AnyPayload>) -> io::Result<()> {
        Ok(())
    }

    fn close(&self, _: &NandArray<AnyPayload>) -> io::Result<()> {
        Ok(())
    }
}

struct OnDisk<D>(std::marker::PhantomData<fn(D)>);

const ITS_OWN: &str = "the device was built over a flash on this disk";

impl<D: Disk> Place for OnDisk<D> {
    fn tear(&self, array: &mut NandArray<AnyPayload>) -> io::Result<()> {
        let payload: &mut dyn Any = &mut **array.payload_mut();
        payload.downcast_mut::<Flash<D>>().expect(ITS_OWN).tear()
    }

    fn close(&self, array: &NandArray<AnyPayload>) -> io::Result<()> {
        let payload: &dyn Any = &**array.payload();
        close(payload.downcast_ref::<Flash<D>>().expect(ITS_OWN), array)
    }
}
