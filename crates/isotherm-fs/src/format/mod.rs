//! What stands on the device, byte for byte (`docs/sfs-format.md`). All numbers are little-endian.
//!
//! ```text
//! superblock | its copy | checkpoint 0 | checkpoint 1 | ... | segment 0 | segment 1 | ...
//! ```

pub mod bytes;
pub mod checkpoint;
pub mod entry;
pub mod redo;
pub mod summary;
pub mod superblock;
