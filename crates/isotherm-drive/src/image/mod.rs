//! The flash image: a simulated array's pages with their OOB areas in one sparse file, and what finds them again.
//!
//! `docs/flash-image.md` describes the format and what is guaranteed after a crash.

mod check;
mod checkpoint;
pub(crate) mod create;
mod disk;
mod durability;
mod flash;
mod header;
mod layout;
pub(crate) mod open;
mod record;
mod saved;
mod scan;

pub use check::{DamagedPage, Findings, check};
pub use disk::{Disk, SECTOR_BYTES};
pub use header::{Header, VERSION};
pub use layout::Layout;
pub use open::{About, How, about};
pub use record::{HostTotals, Totals};

pub(crate) use durability::Durability;
pub(crate) use flash::Flash;
pub(crate) use open::close;
pub(crate) use saved::{HeldPage, forget_all as forget_saved_frames};

/// What is wrong with an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It is something else.
    Foreign,
    /// Another version of the format.
    Version,
    /// Parts of it were changed or lost.
    Damaged,
    /// The specification of its device.
    Specification,
    /// Somebody else has it open.
    Busy,
    /// The disk below it.
    Disk,
}

/// An image that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}; {fix}")]
pub struct ImageError {
    /// What it is about.
    pub problem: Problem,
    /// What was found.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl ImageError {
    pub(crate) fn new(problem: Problem, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { problem, message: message.into(), fix: fix.into() }
    }
}

impl From<std::io::Error> for ImageError {
    fn from(error: std::io::Error) -> Self {
        let fix = match error.kind() {
            std::io::ErrorKind::NotFound => "check the name",
            std::io::ErrorKind::PermissionDenied => "ask for the permission to read and write it",
            std::io::ErrorKind::StorageFull => "free some space",
            std::io::ErrorKind::AlreadyExists => "choose another name, or remove it first",
            _ => "check the disk it lies on",
        };
        Self::new(Problem::Disk, error.to_string(), fix)
    }
}

impl From<isotherm::registry::SpecError> for ImageError {
    fn from(error: isotherm::registry::SpecError) -> Self {
        Self::new(Problem::Specification, error.to_string(), "correct the specification")
    }
}
