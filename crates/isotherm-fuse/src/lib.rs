//! FUSE adapters: a drive as a file of a mounted directory ([`drive`]), loop devices over such a file ([`loop_device`]), and any
//! POSIX file system ([`files`]).
//!
//! The crate speaks the kernel's FUSE protocol through `fuser` and mounts by itself, so that neither building nor running needs
//! libfuse. What is served is an [`Export`](isotherm_export::Export), or a [`FileSystem`](isotherm_vfs::FileSystem): the crate
//! knows no flash.
//!
//! Linux only: what a file of fixed size can do (holes, punching, durable writes) and loop devices are Linux's.

mod buffers;
pub mod drive;
pub mod files;
pub mod loop_device;
mod mounting;
mod write_back;

pub use mounting::error::MountError;
pub use mounting::left::{is_mounted, unmount_left};
pub use mounting::mounted::{Ending, Mounted};
