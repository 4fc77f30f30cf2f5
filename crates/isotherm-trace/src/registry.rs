//! The table of trace formats: the one list from which detection, `list formats`, help and the tests are fed.

use crate::formats;
use crate::options::OpenOptions;
use crate::records::{Records, Setup};
use crate::text;
use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// A trace format, by its place in [`FORMATS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Format(usize);

/// One format as users see it.
pub struct FormatEntry {
    /// Name, as `--format` takes it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Unit of its times, in words.
    pub time_unit: &'static str,
    /// Unit of its addresses and sizes, in words.
    pub address_unit: &'static str,
    /// Who writes it, or where its traces are published.
    pub source: &'static str,
    /// Whether times must not run backwards in it; else a window sorts them.
    pub ordered: bool,
    /// Whether it may hold several volumes, which are laid end to end.
    pub volumes: bool,
    pub(crate) decoder: Decoder,
}

/// How a format is told from others and read.
pub(crate) enum Decoder {
    /// By lines.
    Text {
        /// Lines of the head that it can read.
        recognise: fn(&[u8], &OpenOptions) -> usize,
        /// Opens it.
        open: fn(Box<dyn Read + Send>, Setup, &OpenOptions) -> Box<dyn Records>,
    },
}

macro_rules! text {
    ($format:ty) => {
        Decoder::Text { recognise: text::recognise::<$format>, open: text::open::<$format> }
    };
}

/// Every format that can be read, the canonical ones first. Where two formats can read the same lines, the first wins.
pub const FORMATS: &[FormatEntry] = &[FormatEntry {
    name: "csv",
    summary: "canonical text: ts_ns,op,offset,length with op R, W, D (discard), F (flush)",
    time_unit: "ns",
    address_unit: "bytes",
    source: "isotherm",
    ordered: true,
    volumes: false,
    decoder: text!(formats::csv::Csv),
}];

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..FORMATS.len()).map(Self)
    }

    /// What the table says of it.
    pub fn entry(self) -> &'static FormatEntry {
        &FORMATS[self.0]
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|format| format.entry().name == text).ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|entry| entry.name).collect();
            format!("unknown trace format \"{text}\"; choose from {}", names.join(", "))
        })
    }
}
