//! Writing traces in the canonical forms: CSV (plain, .gz, .zst) or Parquet, by the ending of the file's name.
//!
//! A file appears under its name only when it is whole: it is written beside it and renamed at the end.

use crate::error::TraceError;
use crate::formats::csv;
use crate::formats::parquet::ParquetSink;
use crate::source::Packing;
use flate2::write::GzEncoder;
use isotherm::request::Request;
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Level of zstd: fast, and small enough for a trace that is read often.
const ZSTD_LEVEL: i32 = 9;

type File = BufWriter<NamedTempFile>;

/// Writes one trace.
pub struct TraceWriter {
    path: String,
    form: Form,
    line: Vec<u8>,
    overwrite: bool,
    has_streams: bool,
}

enum Form {
    Csv(File),
    Gzip(GzEncoder<File>),
    Zstd(zstd::stream::write::Encoder<'static, File>),
    Parquet(Box<ParquetSink<File>>),
}

/// How the canonical text is packed in a file of this name; `None` where its ending names another form, or none.
pub(crate) fn csv_packing(path: &str) -> Option<Packing> {
    let endings = [(".csv", Packing::Plain), (".csv.gz", Packing::Gzip), (".csv.zst", Packing::Zstd)];
    endings.into_iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, packing)| packing)
}

/// `bytes` as a piece of a packed file, which holds pieces one after the other.
pub(crate) fn pack(packing: Packing, bytes: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    match packing {
        Packing::Plain => Ok(bytes.into()),
        Packing::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes)?;
            encoder.finish().map(Cow::from)
        }
        Packing::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL).map(Cow::from),
    }
}

/// Appends a number in decimal.
fn push_decimal(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// Appends the canonical CSV line of a request; `with_stream` adds who asks.
pub fn push_csv_line(line: &mut Vec<u8>, request: &Request, with_stream: bool) {
    push_decimal(line, request.arrival_ns);
    line.push(b',');
    line.extend_from_slice(csv::word(request).as_bytes());
    line.push(b',');
    push_decimal(line, request.offset);
    line.push(b',');
    push_decimal(line, request.length);
    if with_stream {
        line.extend_from_slice(b",s");
        push_decimal(line, u64::from(request.source));
    }
    line.push(b'\n');
}

pub(crate) fn write_error(path: &str, cause: io::Error) -> TraceError {
    let fix = match cause.kind() {
        io::ErrorKind::Unsupported => return TraceError::NoParquet { path: path.to_owned() },
        io::ErrorKind::NotFound => "create the folder first",
        io::ErrorKind::PermissionDenied => "choose a folder that you may write to",
        io::ErrorKind::StorageFull => "free some space, or write elsewhere",
        _ => "choose another place",
    };
    TraceError::Io { path: path.to_owned(), action: "write it", cause, fix }
}

impl TraceWriter {
    /// Creates a trace at `path`, whose ending chooses the form: `.csv`, `.csv.gz`, `.csv.zst` or `.parquet`.
    ///
    /// # Errors
    /// Another ending, a file that is there already unless `overwrite`, a folder that cannot be written to.
    pub fn create(path: &str, overwrite: bool) -> Result<Self, TraceError> {
        let exists = Path::new(path).exists();
        if exists && !overwrite {
            return Err(TraceError::input(
                path,
                "it exists already",
                "choose another name, or replace it with --force",
            ));
        }
        let failed = |error| write_error(path, error);
        let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
        let open = || -> Result<File, TraceError> {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".isotherm-");
            make_readable(&mut builder);
            let file = builder.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
            Ok(BufWriter::with_capacity(256 << 10, file))
        };
        let form = match csv_packing(path) {
            Some(Packing::Plain) => Form::Csv(open()?),
            Some(Packing::Gzip) => Form::Gzip(GzEncoder::new(open()?, flate2::Compression::default())),
            Some(Packing::Zstd) => Form::Zstd(zstd::stream::write::Encoder::new(open()?, ZSTD_LEVEL).map_err(failed)?),
            None if path.ends_with(".parquet") => Form::Parquet(Box::new(ParquetSink::new(open()?).map_err(failed)?)),
            None => {
                let fix = "end its name in .csv, .csv.gz, .csv.zst or .parquet";
                return Err(TraceError::input(path, "its ending names no form of trace", fix));
            }
        };
        let mut writer = Self { path: path.to_owned(), form, line: Vec::new(), overwrite, has_streams: false };
        writer.line.extend_from_slice(csv::HEADER.as_bytes());
        writer.line.push(b'\n');
        Ok(writer)
    }

    /// Writes who asks too, in a fifth column; called before the first requests.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn with_streams(mut self) -> Result<Self, TraceError> {
        self.has_streams = true;
        match &mut self.form {
            Form::Parquet(sink) => sink.begin_with_streams().map_err(|error| write_error(&self.path, error))?,
            _ => self.line = format!("{}\n", csv::HEADER_WITH_STREAM).into_bytes(),
        }
        Ok(self)
    }

    /// Appends requests.
    ///
    /// # Errors
    /// The file cannot be written on.
    pub fn write(&mut self, requests: &[Request]) -> Result<(), TraceError> {
        let written = match &mut self.form {
            Form::Parquet(sink) => sink.write(requests),
            form => {
                requests.iter().for_each(|request| push_csv_line(&mut self.line, request, self.has_streams));
                let target: &mut dyn Write = match form {
                    Form::Csv(file) => file,
                    Form::Gzip(encoder) => encoder,
                    Form::Zstd(encoder) => encoder,
                    Form::Parquet(_) => unreachable!("matched above"),
                };
                let written = target.write_all(&self.line);
                self.line.clear();
                written
            }
        };
        written.map_err(|error| write_error(&self.path, error))
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// The file cannot be written, or another has appeared under its name.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.write(&[])?;
        let failed = |error| write_error(&self.path, error);
        let file = match self.form {
            Form::Csv(file) => file,
            Form::Gzip(encoder) => encoder.finish().map_err(failed)?,
            Form::Zstd(encoder) => encoder.finish().map_err(failed)?,
            Form::Parquet(sink) => sink.finish().map_err(failed)?,
        };
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        let named = if self.overwrite { file.persist(&self.path) } else { file.persist_noclobber(&self.path) };
        named.map(|_| ()).map_err(|error| failed(error.error))
    }
}

/// Temporary files are private by default; a trace is an ordinary file, subject to the umask.
fn make_readable(builder: &mut tempfile::Builder<'_, '_>) {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    let _ = builder;
}
