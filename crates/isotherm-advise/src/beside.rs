//! What may be given beside a question, in files: where the files of the traced file system lie, and the counters of the real drive.

use crate::error::AdviceError;
use crate::files::FileMap;
use crate::smart::{Calibration, calibrate};
use isotherm_eval::EvalError;
use std::path::Path;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Which file lies where.
    pub file_map: Option<FileMap>,
    /// Counters of a real drive.
    pub calibration: Option<Calibration>,
}

impl Beside {
    /// Reads a map of files with the bytes before their file system, and the counters when tracing began and when it ended.
    ///
    /// # Errors
    /// A file cannot be read; what is wrong in it.
    pub fn read(map: Option<(&Path, u64)>, counters: Option<(&Path, &Path)>) -> Result<Self, AdviceError> {
        let mut beside = Self::default();
        if let Some((path, offset_bytes)) = map {
            let map = FileMap::parse(&text_of(path)?, offset_bytes);
            let wrong = |problem| AdviceError::Content(format!("{}: {problem}", path.display()));
            beside.file_map = Some(map.map_err(wrong)?);
        }
        if let Some((before, after)) = counters {
            beside.calibration = Some(calibrate(&text_of(before)?, &text_of(after)?).map_err(AdviceError::Content)?);
        }
        Ok(beside)
    }
}

fn text_of(path: &Path) -> Result<String, EvalError> {
    std::fs::read_to_string(path).map_err(|reason| EvalError::File {
        path: path.display().to_string(),
        action: "read",
        reason,
        fix: "check the path",
    })
}
