//! The contract between a format's decoder and everything above it.

use crate::error::TraceError;
use crate::volumes::Volumes;
use isotherm::request::Request;

/// The requests of one file in file order, with the file's own times.
///
/// # Contract
/// - [`fill`](Records::fill) appends about `most` requests (one row may hold two) and returns how many; 0 is the end.
/// - Addresses are laid out and every limit of [`crate::sink`] holds.
pub(crate) trait Records: Send {
    /// Appends requests.
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError>;
    /// Rows skipped so far because they could not be read.
    fn skipped(&self) -> u64;
    /// Whether the rows so far have a column that says who asks.
    fn names_streams(&self) -> bool {
        false
    }
    /// What is wrong and what to do, if every row was read and none was a request.
    fn why_empty(&self) -> Option<(String, String)> {
        None
    }
    /// The volumes met, when reading to measure them.
    fn into_volumes(self: Box<Self>) -> Volumes;
}

/// What every decoder is told about its file.
pub(crate) struct Setup {
    /// For messages.
    pub(crate) path: String,
    /// Name of the format, for messages.
    pub(crate) format: &'static str,
    /// Bad rows allowed.
    pub(crate) skip_bad: u64,
    /// A step back in time is an error of its row.
    pub(crate) refuse_disorder: bool,
    /// Where the volumes lie.
    pub(crate) volumes: Volumes,
}

impl Setup {
    /// An error while reading the file, with the cause users meet most named.
    pub(crate) fn io_error(&self, source: std::io::Error) -> TraceError {
        read_error(&self.path, source)
    }
}

/// An error while reading the file at `path`.
pub(crate) fn read_error(path: &str, cause: std::io::Error) -> TraceError {
    let fix = match cause.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file is truncated: copy or download it again",
        std::io::ErrorKind::NotFound => "check the path",
        std::io::ErrorKind::PermissionDenied => "make the file readable",
        _ => "if it is compressed it may be damaged: copy or download it again",
    };
    TraceError::Io { path: path.to_owned(), action: "read it", cause, fix }
}
