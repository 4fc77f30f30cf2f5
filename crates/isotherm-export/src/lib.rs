//! Bytes served to clients: what can be served ([`Export`]), whoever serves it.
//!
//! A server knows neither flash nor files: it is handed an [`Export`] and speaks its protocol. Whoever implements one knows no
//! protocol.

#[cfg(target_os = "linux")]
pub mod nbd;

use std::time::Instant;

/// A range of bytes that clients read and write.
///
/// # Contract
/// - Methods may be called from several threads at a time. A request that has returned is seen by every later one, on whatever
///   connection.
/// - Ranges lie within [`size_bytes`](Export::size_bytes): the server has checked that, and answers requests beyond it itself.
///   They need not be aligned.
/// - What was written is durable once it was written with `durable`, or once a later [`flush`](Export::flush) has returned.
/// - A range that was trimmed reads as zeros.
/// - An error changes nothing beyond the range of the request, and is the client's to hear.
pub trait Export: Send + Sync {
    /// Bytes in all.
    fn size_bytes(&self) -> u64;
    /// The size and alignment of requests that serve best: a power of two, 512 or more.
    fn page_bytes(&self) -> u32;
    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// See [`ExportError`].
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError>;
    /// Writes `data` at `offset`; with `durable` (force unit access) it is durable when this returns.
    ///
    /// # Errors
    /// See [`ExportError`].
    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<Due, ExportError>;
    /// Discards a range, which then reads as zeros.
    ///
    /// # Errors
    /// See [`ExportError`].
    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<Due, ExportError>;
    /// Makes a range zero, by the means that `how` allows.
    ///
    /// # Errors
    /// See [`ExportError`]; [`ErrorKind::Unsupported`] only where `how` asks for speed that is not to be had.
    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError>;
    /// Makes everything durable whose request had returned when this was called, on whatever connection.
    ///
    /// # Errors
    /// See [`ExportError`].
    fn flush(&self) -> Result<Due, ExportError>;
    /// What a range holds, in order and without gaps, from `offset` on. May end before the range does, but holds at least one
    /// extent, and at most `most`.
    ///
    /// # Errors
    /// See [`ExportError`].
    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError>;
}

/// When a client may be told that its request is done: at once where there is none.
pub type Due = Option<Instant>;

/// How zeros may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zeroes {
    /// The range may be discarded in place of written: nothing is kept for it.
    pub may_trim: bool,
    /// Refuse where it would take as long as writing the zeros.
    pub fast_only: bool,
}

/// A run of bytes of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes.
    pub length: u64,
    /// Whether something was written there; else it reads as zeros.
    pub is_data: bool,
}

/// A request that could not be carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExportError {
    /// What a client is told.
    pub kind: ErrorKind,
    /// What people are told, where messages go.
    pub message: String,
}

/// What protocols tell a client of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The content cannot be read or written (EIO).
    Io,
    /// No room is left (ENOSPC).
    NoSpace,
    /// The request makes no sense (EINVAL).
    Invalid,
    /// The request cannot be carried out in the way that was asked for (ENOTSUP).
    Unsupported,
    /// Nothing can be written any more (EPERM).
    ReadOnly,
    /// Nothing is served any more (ESHUTDOWN).
    Stopped,
}
