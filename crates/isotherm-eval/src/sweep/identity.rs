//! What determines the result of a point: the program, the trace's content, the specification and the seed.
//!
//! A point that was finished is taken again only where all of these are the same.

use super::task::Task;
use crate::error::EvalError;
use crate::results::SCHEMA_VERSION;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// FNV-1a, 64 bits: stable over machines and versions. Collisions of texts are caught by comparing the texts themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hash(pub u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    }

    /// Of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut hash = Self::new();
        hash.add(text.as_bytes());
        hash
    }

    /// Of a file's content.
    fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let (mut hash, mut bytes) = (Self::new(), vec![0; 256 << 10]);
        loop {
            match file.read(&mut bytes)? {
                0 => return Ok(hash),
                count => hash.add(&bytes[..count]),
            }
        }
    }
}

/// What the points of a sweep have in common: the program, whatever commit and changes it was built from, by the hash of its
/// file; and the traces as they were when a point first asked for them.
pub(super) struct Ground {
    program: Hash,
    traces: Mutex<BTreeMap<String, Hash>>,
}

/// The files that the trace `name` is read from: itself, or the counts of a synthetic workload.
fn files_of(name: &str) -> Vec<&str> {
    match name.strip_prefix("synth:") {
        Some(workload) => {
            let parts = workload.split([',', '+', '@']).filter_map(|part| part.split_once('='));
            parts.filter(|(key, _)| key.trim() == "counts").map(|(_, path)| path.trim()).collect()
        }
        None => vec![name],
    }
}

impl Ground {
    /// Reads the program: the file at `program`, or the one that runs.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn new(program: Option<&Path>) -> Result<Self, EvalError> {
        let read = || Hash::of_file(&program.map_or_else(std::env::current_exe, |path| Ok(path.to_owned()))?);
        let program = read().map_err(|reason| failed("the program's own file", reason))?;
        Ok(Self { program, traces: Mutex::default() })
    }

    /// The hash of a file, read once.
    fn content(&self, path: &str) -> Result<Hash, EvalError> {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = traces.get(path) {
            return Ok(*hash);
        }
        let hash = Hash::of_file(Path::new(path)).map_err(|reason| failed(path, reason))?;
        traces.insert(path.to_owned(), hash);
        Ok(hash)
    }

    /// Everything that determines the result of a task, as text: the same text, the same result.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub(super) fn identity(&self, task: &Task) -> Result<String, EvalError> {
        let trace = task.trace();
        let contents: Vec<String> = match trace.requests() {
            Some(requests) => vec![format!("{:016x}", requests.content())],
            None => {
                let hashes =
                    files_of(trace.path()).into_iter().map(|path| Ok(format!("{:016x}", self.content(path)?.0)));
                hashes.collect::<Result<_, EvalError>>()?
            }
        };
        Ok(format!(
            "isotherm {} program {:016x} schema {SCHEMA_VERSION}\ntrace {} content {}\noptions {:?}\n{}",
            env!("CARGO_PKG_VERSION"),
            self.program.0,
            trace.name,
            contents.join(" "),
            trace.options,
            task.settings()
        ))
    }
}

fn failed(path: &str, reason: io::Error) -> EvalError {
    EvalError::File { path: path.to_owned(), action: "read it", reason, fix: "check the path" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_workload_are_files_too() {
        assert_eq!(files_of("a/b.csv"), ["a/b.csv"]);
        assert_eq!(files_of("synth:counts,counts=a/b.txt,writes=1"), ["a/b.txt"]);
        assert!(files_of("synth:zipf,theta=1").is_empty());
    }
}
