//! Splitting a trace of several volumes into one trace each.
//!
//! A cloud's trace holds thousands of volumes, more than files that a process may have open, and than packers that fit into memory. So
//! requests wait in memory by volume, and whenever [`HELD_MAX`] of them do, those of each volume are appended to its file as a
//! piece of its own: lines, a gzip member or a zstd frame, which follow each other in one file as well as in several. The folder appears under
//! its name when every file in it is whole.

use crate::error::TraceError;
use crate::formats::csv;
use crate::open::open_volumes;
use crate::options::OpenOptions;
use crate::source::Packing;
use crate::volumes::VolumeSpan;
use crate::write::{csv_packing, pack, push_csv_line, write_error};
use isotherm::request::Request;
use std::fs::OpenOptions as FileOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Requests that are held at a time: 32 bytes each, and as much again as text where one volume has them all.
const HELD_MAX: usize = 4 << 20;

/// Requests read at a time.
const BATCH: usize = 4096;

/// What splitting made of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// Files, one a volume.
    pub volumes: u64,
    /// Requests in all of them.
    pub requests: u64,
    /// Rows that could not be read and were skipped.
    pub skipped: u64,
    /// Requests that were put in order of time.
    pub reordered: u64,
    /// Name of the format that was read.
    pub format: &'static str,
}

/// Writes each volume of `source` to a file of its own, from address 0 on, into the new folder `folder`. `ending` is the form: `csv`,
/// `csv.gz` or `csv.zst`. A file is called as its volume is; bytes other than letters, digits, `.`, `,`, `-` and `_` stand there as
/// `%` and two hexadecimal digits.
///
/// # Errors
/// The trace cannot be read, or its format has no volumes; the folder is there already or cannot be written; another ending.
pub fn split(source: &str, options: &OpenOptions, folder: &Path, ending: &str) -> Result<Split, TraceError> {
    split_by(source, options, folder, ending, HELD_MAX)
}

fn split_by(
    source: &str,
    options: &OpenOptions,
    folder: &Path,
    ending: &str,
    held_max: usize,
) -> Result<Split, TraceError> {
    let name = folder.display().to_string();
    let Some(packing) = csv_packing(&format!(".{ending}")) else {
        let problem = format!("\"{ending}\" names no form that volumes are split into");
        return Err(TraceError::input(&name, problem, "choose csv, csv.gz or csv.zst"));
    };
    if folder.exists() {
        return Err(TraceError::input(&name, "it exists already", "name a folder that is not there yet"));
    }
    let failed = |cause| write_error(&name, cause);
    let (mut reader, spans) = open_volumes(source, options)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = tempfile::Builder::new().prefix(".isotherm-").tempdir_in(parent).map_err(failed)?;
    let mut pieces = Pieces::new(spans, beside.path(), ending, packing, held_max);
    let mut batch = Vec::with_capacity(BATCH);
    while reader.fill(&mut batch, BATCH)? > 0 {
        batch.drain(..).try_for_each(|request| pieces.add(request))?;
    }
    pieces.write()?;
    // A folder for temporary files is private; this one becomes an ordinary one.
    let made = beside.path().join("made");
    std::fs::create_dir(&made).and_then(|()| pieces.move_into(&made)).map_err(failed)?;
    std::fs::rename(&made, folder).map_err(failed)?;
    Ok(Split {
        volumes: pieces.written.iter().filter(|written| **written).count() as u64,
        requests: pieces.requests,
        skipped: reader.skipped(),
        reordered: reader.reordered(),
        format: reader.format(),
    })
}

/// Requests by volume, and the files that they go to.
struct Pieces {
    spans: Vec<VolumeSpan>,
    files: Vec<PathBuf>,
    packing: Packing,
    held: Vec<Vec<Request>>,
    held_count: usize,
    held_max: usize,
    /// Volumes whose file is begun.
    written: Vec<bool>,
    requests: u64,
    /// The volume of the request before, which is most often that of this one.
    latest: usize,
}

impl Pieces {
    fn new(spans: Vec<VolumeSpan>, folder: &Path, ending: &str, packing: Packing, held_max: usize) -> Self {
        let files = spans.iter().map(|span| folder.join(format!("{}.{ending}", file_name(&span.name)))).collect();
        let volumes = spans.len();
        Self {
            spans,
            files,
            packing,
            held: vec![Vec::new(); volumes],
            held_count: 0,
            held_max,
            written: vec![false; volumes],
            requests: 0,
            latest: 0,
        }
    }

    fn add(&mut self, mut request: Request) -> Result<(), TraceError> {
        let begins_after = |at: usize| self.spans.get(at).is_none_or(|span| request.offset < span.base);
        if request.offset < self.spans[self.latest].base || !begins_after(self.latest + 1) {
            self.latest = self.spans.partition_point(|span| span.base <= request.offset) - 1;
        }
        request.offset -= self.spans[self.latest].base;
        self.held[self.latest].push(request);
        self.requests += 1;
        self.held_count += 1;
        if self.held_count == self.held_max { self.write() } else { Ok(()) }
    }

    /// Appends what is held to the files.
    fn write(&mut self) -> Result<(), TraceError> {
        let mut lines = Vec::new();
        for (volume, held) in self.held.iter_mut().enumerate().filter(|(_, held)| !held.is_empty()) {
            let path = &self.files[volume];
            let failed = |cause| write_error(&path.display().to_string(), cause);
            lines.clear();
            if !std::mem::replace(&mut self.written[volume], true) {
                lines.extend_from_slice(csv::HEADER.as_bytes());
                lines.push(b'\n');
            }
            held.iter().for_each(|request| push_csv_line(&mut lines, request, false));
            // Room for the next volumes: which ones are busy changes.
            *held = Vec::new();
            let mut file = FileOptions::new().create(true).append(true).open(path).map_err(failed)?;
            pack(self.packing, &lines).and_then(|packed| file.write_all(&packed)).map_err(failed)?;
        }
        self.held_count = 0;
        Ok(())
    }

    fn move_into(&self, folder: &Path) -> std::io::Result<()> {
        let mut begun = self.files.iter().zip(&self.written).filter(|(_, written)| **written);
        begun.try_for_each(|(path, _)| std::fs::rename(path, folder.join(path.file_name().expect("files have names"))))
    }
}

/// The name of a volume's file, a different one for each volume.
fn file_name(volume: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for (at, &byte) in volume.iter().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b',') || byte == b'.' && at > 0;
        if is_plain {
            name.push(byte.into());
        } else {
            write!(name, "%{byte:02X}").expect("strings grow");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open;

    /// Requests of `volumes` volumes that take turns, in Tencent's format: seconds, sectors, sectors, 0 = read and 1 = write, volume.
    fn trace(folder: &Path, volumes: u64, requests: u64) -> String {
        let line = |i: u64| format!("{},{},8,{},{}\n", i / 10, 8 * (i % 97), i % 2, i * i % volumes);
        let path = folder.join("cloud.csv");
        std::fs::write(&path, (0..requests).map(line).collect::<String>()).unwrap();
        path.display().to_string()
    }

    fn all(path: &str, volume: Option<&str>) -> Vec<Request> {
        let options = OpenOptions { volume: volume.map(str::to_owned), ..OpenOptions::default() };
        let (mut reader, mut requests) = (open(path, &options).unwrap(), Vec::new());
        while reader.fill(&mut requests, 1000).unwrap() > 0 {}
        requests
    }

    #[test]
    fn every_volume_is_what_it_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = trace(folder.path(), 7, 5000);
        // Volumes by themselves begin at their own first time; what is split keeps the times of the whole.
        let without_times = |requests: Vec<Request>| -> Vec<(u64, u64, bool)> {
            requests.iter().map(|r| (r.offset, r.length, r.op == isotherm::request::Op::Write)).collect()
        };
        for (ending, held_max) in [("csv", 64), ("csv.gz", 700), ("csv.zst", 999), ("csv.zst", HELD_MAX)] {
            let into = folder.path().join(format!("{ending}-{held_max}"));
            let told = split_by(&path, &OpenOptions::default(), &into, ending, held_max).unwrap();
            let names: Vec<_> = std::fs::read_dir(&into).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!((told.requests, told.volumes as usize), (5000, names.len()));
            for volume in ["0", "1", "2", "4"] {
                let file = into.join(format!("{volume}.{ending}")).display().to_string();
                assert_eq!(without_times(all(&file, None)), without_times(all(&path, Some(volume))), "{file}");
            }
        }
    }

    #[test]
    fn what_goes_wrong_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = trace(folder.path(), 3, 100);
        let into = folder.path().join("into");
        let split = |path: &str, into: &Path, ending: &str| split(path, &OpenOptions::default(), into, ending);
        assert!(split(&path, &into, "parquet").unwrap_err().to_string().contains("csv.zst"));
        assert!(split(&path, folder.path(), "csv").unwrap_err().to_string().contains("exists"));
        std::fs::write(folder.path().join("torn.csv"), "1,8,8,1,5\n1,8,8,1,6\n1,8,x,1,6\n").unwrap();
        let torn = folder.path().join("torn.csv").display().to_string();
        assert!(split(&torn, &into, "csv").unwrap_err().to_string().contains("line 3"));
        let plain = folder.path().join("plain.csv").display().to_string();
        std::fs::write(&plain, "ts_ns,op,offset,length\n1,W,0,4096\n").unwrap();
        assert!(split(&plain, &into, "csv").unwrap_err().to_string().contains("no volumes"));
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn names_of_files_are_safe_and_differ() {
        assert_eq!(file_name(b"web_0"), "web_0");
        assert_eq!(file_name(b"8,16"), "8,16");
        assert_eq!(file_name(b"../x"), "%2E.%2Fx");
        assert_ne!(file_name(b"a%2F"), file_name(b"a/"));
    }
}
