//! Writing results: whole files or none. Every file is written under another name beside its place and then renamed, so
//! that a reader, an interrupt or a full disk never meets half of one.

#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub use self::parquet::to_parquet;

use crate::error::EvalError;
use crate::results::{ResultsFile, SCHEMA_VERSION};
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

fn failed(path: &Path, action: &'static str, reason: io::Error) -> EvalError {
    let fix = "check the folder's name, its permissions and the free space";
    EvalError::File { path: path.display().to_string(), action, reason, fix }
}

/// Creates a folder and its parents, and checks that files can be written there: before a long run, not after it.
///
/// # Errors
/// It cannot be created or written.
pub fn writable_folder(path: &Path) -> Result<(), EvalError> {
    std::fs::create_dir_all(path).map_err(|e| failed(path, "create the folder", e))?;
    tempfile::NamedTempFile::new_in(path).map_err(|e| failed(path, "write into the folder", e))?;
    Ok(())
}

/// A folder that waits for its files. What was made for it and is still empty in the end is removed with this: a run that is
/// interrupted leaves nothing behind.
#[derive(Debug)]
#[must_use = "what is dropped at once removes the folder at once"]
pub struct ClaimedFolder {
    /// The folders that were not there before, deepest first.
    made: Vec<PathBuf>,
}

impl Drop for ClaimedFolder {
    fn drop(&mut self) {
        // The first that holds something keeps those above it.
        let _ = self.made.iter().try_for_each(std::fs::remove_dir);
    }
}

/// As [`writable_folder`], for a run that may end without a file. An empty path is the current folder.
///
/// # Errors
/// It cannot be created or written.
pub fn claim_folder(path: &Path) -> Result<ClaimedFolder, EvalError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let claimed = ClaimedFolder { made: path.ancestors().take_while(is_missing).map(Path::to_owned).collect() };
    writable_folder(path)?;
    Ok(claimed)
}

/// Writes a file whole.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), EvalError> {
    write_set(&[(path.to_owned(), bytes.to_owned())])
}

/// Writes files that belong together: none gets its name before all of them are on the disk, so that a disk that is full
/// leaves those that were there before, all of one run.
///
/// # Errors
/// One of them cannot be written.
pub fn write_set(files: &[(PathBuf, Vec<u8>)]) -> Result<(), EvalError> {
    let written = files.iter().map(|(path, bytes)| Ok((path, write_beside(path, bytes)?)));
    for (path, file) in written.collect::<Result<Vec<_>, EvalError>>()? {
        file.persist(path).map_err(|e| failed(path, "write", e.error))?;
    }
    Ok(())
}

/// Writes a file under another name, in the folder of its own.
fn write_beside(path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile, EvalError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        // Some file systems find out only now that there is no space.
        file.as_file().sync_data()?;
        // Temporary files are private; results are as readable as any other file that the user makes.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        Ok(file)
    };
    write().map_err(|e| failed(path, "write", e))
}

/// JSON with one line for each key and whole lists on one line: distributions stay short, and differences stay readable.
///
/// # Panics
/// If `value` has keys that are no text (a bug).
pub fn to_json(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
    value.serialize(&mut serializer).expect("results have string keys and finite numbers");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is text")
}

/// Objects over lines, lists within one.
#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    fn line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", 2 * self.depth)
    }
}

impl Formatter for Lines {
    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }
    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"{")
    }
    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b"," })?;
        self.line(writer)
    }
    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.line(writer)?;
        writer.write_all(b"}")
    }
}

/// Reads a `results.json`.
///
/// # Errors
/// It cannot be read, is not JSON of that schema, or has another version.
pub fn read_results(path: &Path) -> Result<ResultsFile, EvalError> {
    let wrong = |problem: String| EvalError::File {
        path: path.display().to_string(),
        action: "understand it",
        reason: io::Error::new(io::ErrorKind::InvalidData, problem),
        fix: "name a results.json that isotherm wrote",
    };
    if path.is_dir() {
        return Err(wrong("it is a folder".to_owned()));
    }
    let text = std::fs::read(path).map_err(|e| failed(path, "read", e))?;
    let file: ResultsFile = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
    if file.schema_version != SCHEMA_VERSION {
        return Err(wrong(format!("schema version {} where {SCHEMA_VERSION} is read", file.schema_version)));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stay_on_one_line() {
        let value = serde_json::json!({"a": [1, [2, 3]], "b": {"c": null}, "d": {}, "e": []});
        let text = to_json(&value);
        assert_eq!(
            text,
            "{\n  \"a\": [1, [2, 3]],\n  \"b\": {\n    \"c\": null\n  },\n  \"d\": {\n  },\n  \"e\": []\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn an_unwritable_place_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_whole(&file, b"x").unwrap();
        let error = writable_folder(&file.join("below")).unwrap_err().to_string();
        assert!(error.contains("below") && error.contains("permissions"), "{error}");
        assert!(write_whole(&file.join("below"), b"x").is_err());
        let set = [(file.clone(), b"new".to_vec()), (folder.path().join("none/there"), b"new".to_vec())];
        assert!(write_set(&set).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"x", "a set is written as one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written stays behind");
    }
}
