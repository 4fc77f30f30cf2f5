//! The tests of the crate from outside, in one binary: each module is a subject.
//!
//! Where a file system cannot be mounted, a loop device not be had, or a program is missing, a test says so on standard error and
//! passes; with `ISOTHERM_REQUIRE_MOUNTS=1` it fails.

mod end;
mod errors;
mod file;
mod file_systems;
mod files;
mod fio;
mod fixture;
mod held;
#[path = "../../examples/memory_disk/memory.rs"]
mod memory;
mod observed;
mod user;
