//! Where the bytes of a trace come from: a file or standard input, plain or compressed, told apart by their first bytes.

use crate::error::TraceError;
use crate::records::read_error;
use crate::spool::Spool;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Bytes of decompressed content that formats are detected from.
const HEAD_BYTES: usize = 64 << 10;

/// The bytes of a trace, decompressed.
pub(crate) type Stream = Box<dyn Read + Send>;

/// A trace that can be opened, perhaps twice.
#[derive(Clone)]
pub(crate) enum Source {
    File(String),
    Standard,
    Spooled(Spool),
    Memory(String, Arc<[u8]>),
}

/// How the bytes are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// An opened trace: its first decompressed bytes, and all of them as a stream.
pub(crate) struct Opened {
    pub(crate) head: Vec<u8>,
    pub(crate) stream: Stream,
}

impl Source {
    /// A path, or `-` for standard input.
    pub(crate) fn new(text: &str) -> Self {
        if text == "-" { Self::Standard } else { Self::File(text.to_owned()) }
    }

    /// The name that messages use.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File(path) => path,
            Self::Standard => "standard input",
            Self::Spooled(spool) => spool.name(),
            Self::Memory(name, _) => name,
        }
    }

    /// Whether it can be opened twice. Pipes and devices cannot.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::File(path) => std::fs::metadata(path).is_ok_and(|m| m.is_file()),
            Self::Standard => false,
            Self::Spooled(_) | Self::Memory(..) => true,
        }
    }

    /// Whether there is something to open, though perhaps a folder.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::File(path) => std::fs::metadata(path).is_ok_and(|m| !m.is_dir()),
            _ => true,
        }
    }

    /// The file itself, for formats that need to seek.
    pub(crate) fn file(&self) -> Result<File, TraceError> {
        match self {
            Self::File(path) => File::open(path).map_err(|e| read_error(path, e)),
            Self::Spooled(spool) => File::open(spool.path()).map_err(|e| read_error(spool.name(), e)),
            _ => Err(TraceError::input(self.name(), "this format must be a file", "write it to a file and open that")),
        }
    }

    /// Its bytes as they are stored.
    pub(crate) fn raw(&self) -> Result<Stream, TraceError> {
        match self {
            Self::File(path) => {
                let file = self.file()?;
                if file.metadata().is_ok_and(|m| m.is_dir()) {
                    return Err(TraceError::input(path, "this is a directory", "name a trace file in it"));
                }
                Ok(Box::new(file))
            }
            Self::Standard => Ok(Box::new(io::stdin())),
            Self::Spooled(_) => Ok(Box::new(self.file()?)),
            Self::Memory(_, bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
        }
    }

    /// Opens and decompresses.
    pub(crate) fn open(&self) -> Result<Opened, TraceError> {
        let failed = |e| read_error(self.name(), e);
        let mut raw = self.raw()?;
        let magic = read_up_to(&mut *raw, 4).map_err(failed)?;
        let packing = self.packing(&magic)?;
        let whole = Cursor::new(magic).chain(raw);
        let mut stream: Stream = match packing {
            Packing::Plain => Box::new(whole),
            Packing::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(128 << 10, whole))),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(whole).map_err(failed)?),
        };
        let mut head = Vec::new();
        match (&mut *stream).take(HEAD_BYTES as u64).read_to_end(&mut head) {
            // Whoever reads on hears of it where it matters: after what is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !head.is_empty() => stream = Box::new(Cut),
            read => _ = read.map_err(failed)?,
        }
        if head.is_empty() {
            return Err(TraceError::input(self.name(), "the trace is empty", "give a trace with at least one request"));
        }
        Ok(Opened { stream: Box::new(Cursor::new(head.clone()).chain(stream)), head })
    }

    /// Tells the packing by its magic number; a name that promises another one is an error.
    fn packing(&self, magic: &[u8]) -> Result<Packing, TraceError> {
        let packing = match magic {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            // A frame, or a frame to be skipped before one.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
            _ => Packing::Plain,
        };
        let other = match magic {
            [0xfd, b'7', b'z', b'X', ..] => Some("xz"),
            [b'B', b'Z', b'h', ..] => Some("bzip2"),
            [b'P', b'K', 3, 4, ..] => Some("zip"),
            _ => None,
        };
        if let Some(other) = other {
            let fix = "unpack it, or pack it again with zstd or gzip";
            return Err(TraceError::input(self.name(), format!("{other} files are not read"), fix));
        }
        let promised = [(".zst", Packing::Zstd), (".gz", Packing::Gzip)];
        for (ending, promise) in promised {
            if self.name().ends_with(ending) && packing == Packing::Plain && !magic.is_empty() {
                return Err(TraceError::input(
                    self.name(),
                    format!("wrong magic number: it is not {promise:?} data, though its name ends in {ending}"),
                    "copy or download it again, or rename it",
                ));
            }
        }
        Ok(packing)
    }
}

/// What follows the last byte of a packed file that was cut off.
struct Cut;

impl Read for Cut {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Reads until `limit` bytes are there or the stream ends.
fn read_up_to(stream: &mut dyn Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
