//! The device's DRAM: a write buffer in front of any FTL, ghosts of what left it, and the split between buffering and mapping.
//!
//! [`WriteBuffer`] is an FTL over an FTL, so that every FTL can have one, in simulation and with bytes. Which pages leave it
//! is a policy of [`buffer`]. [`partition::Partition`] puts a buffer in front of an FTL whose map shares the DRAM, and moves
//! the border between the two by a rule.

pub mod buffer;
pub mod ghost;
pub mod index;
pub mod list;
pub mod partition;
pub mod stack;
pub mod write_buffer;

pub use partition::Partition;
pub use write_buffer::{BufferCounters, BufferObserver, BufferResults, WriteBuffer};
