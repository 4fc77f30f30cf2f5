//! What a block holds: nothing (simulation), or bytes on the heap (a working log).
//!
//! The log is written once, for any content. Without bytes a block's content is `()`, and every table of contents is empty.

use std::fmt::Debug;

/// What a block of a log holds.
///
/// # Contract
/// - The default value is the content of a block that was never written; it allocates nothing.
pub trait Content: Clone + Default + Debug {
    /// The content as bytes: none without content, and none for a block that was never written.
    fn bytes(&self) -> &[u8];
}

/// No content: a simulation needs block numbers only.
impl Content for () {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &[]
    }
}

/// The bytes of a block: [`BLOCK_BYTES`](crate::options::BLOCK_BYTES) of them, or none if it was never written.
impl Content for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
}
