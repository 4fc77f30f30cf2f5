//! A drive as its clients see it: what is exported.

use super::Drive;
use super::serving::Asked;
use crate::handles::HandlePlan;
use isotherm::request::Op;
use isotherm_export::{Due, ErrorKind, Export, ExportError, Extent, Zeroes};
use std::sync::Arc;

impl Drive {
    /// The drive as clients see it who are known as `source`: a handle of its own.
    pub fn handle(self: &Arc<Self>, source: u16) -> Handle {
        Handle { drive: self.clone(), asks: Asks::As(source) }
    }

    /// The drive as clients see it who do not say who they are: `plan` says it for them, by address.
    pub fn planned(self: &Arc<Self>, plan: HandlePlan) -> Handle {
        Handle { drive: self.clone(), asks: Asks::ByAddress(Arc::new(plan)) }
    }
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
