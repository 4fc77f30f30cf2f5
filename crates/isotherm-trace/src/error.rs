//! What can be wrong with a trace, told so that the user can mend it: the file, the place in it, and the fix.

use isotherm::registry::SpecError;
use std::fmt;

/// Where in a file something is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A line of text, both numbers counted from 1; the column counts bytes.
    Line {
        /// Line number.
        line: u64,
        /// Byte of the line at which the field begins.
        column: u32,
    },
    /// A row of a table, from 1.
    Row {
        /// Row number.
        row: u64,
    },
    /// A record of a binary file: its number from 1 and the byte at which it begins.
    Record {
        /// Record number.
        record: u64,
        /// Offset of the record in the decompressed file.
        byte: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, column } => write!(f, "line {line}, column {column}"),
            Self::Row { row } => write!(f, "row {row}"),
            Self::Record { record, byte } => write!(f, "record {record} (byte {byte})"),
        }
    }
}

/// Why a trace could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system or a decompressor refused.
    #[error("{path}: cannot {action}: {cause}; {fix}")]
    Io {
        /// File.
        path: String,
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        cause: std::io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// A row or record cannot be read.
    #[error("{path}: {place}: {field} {problem}; {fix}")]
    Row {
        /// File.
        path: String,
        /// Line and column, or record.
        place: Place,
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        fix: String,
    },
    /// The file as a whole cannot be used.
    #[error("{path}: {problem}; {fix}")]
    Input {
        /// File.
        path: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        fix: String,
    },
    /// The file is in Parquet, and this build leaves Parquet out.
    #[error("{path}: this build has no Parquet; build isotherm-trace with its feature `parquet`, or use .csv.zst")]
    NoParquet {
        /// File.
        path: String,
    },
    /// Whoever reads was told to stop.
    #[error("interrupted while the trace was read")]
    Stopped,
    /// A synthetic workload's specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl TraceError {
    /// An error about a file as a whole.
    pub(crate) fn input(path: &str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Input { path: path.to_owned(), problem: problem.into(), fix: fix.into() }
    }
}
