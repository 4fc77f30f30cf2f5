//! A copy of a trace that can be read only once (a pipe, standard input), for those who read it several times: as it came,
//! packed or not, in the system's folder for temporary files.

use crate::error::TraceError;
use crate::source::Source;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::NamedTempFile;

/// A copy of a trace, which goes when the last one who holds it does.
#[derive(Clone, Debug)]
pub struct Spool {
    /// What messages call the trace.
    name: String,
    file: Arc<NamedTempFile>,
}

impl Spool {
    /// Copies the trace `source` if it can be read only once; nothing for files and synthetic workloads.
    ///
    /// # Errors
    /// It cannot be read, or there is no space for the copy.
    pub fn of(source: &str) -> Result<Option<Self>, TraceError> {
        let trace = Source::new(source);
        if source.starts_with("synth:") || trace.is_repeatable() || !trace.is_there() {
            return Ok(None);
        }
        let folder = std::env::temp_dir();
        let failed = |cause: io::Error| TraceError::Io {
            path: trace.name().to_owned(),
            action: "copy it, as it is read more than once,",
            cause,
            fix: "free some space, or name a folder that has enough in the variable TMPDIR",
        };
        let mut bytes = trace.raw()?;
        let mut file = BufWriter::new(NamedTempFile::new_in(folder).map_err(failed)?);
        io::copy(&mut bytes, &mut file).and_then(|_| file.flush()).map_err(failed)?;
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(Some(Self { name: trace.name().to_owned(), file: Arc::new(file) }))
    }

    /// What messages call the trace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where the copy is.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }
}
