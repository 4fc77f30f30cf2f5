//! The table of trace formats: the one list from which detection, `list formats`, help and the tests are fed.

use crate::formats;
use crate::options::OpenOptions;
use crate::records::{Records, Setup};
use crate::source::Stream;
use crate::{binary, text};
use std::fmt;
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
    /// What the user must say because the file does not.
    pub needs: &'static [Need],
    pub(crate) decoder: Decoder,
}

/// What the user must say because the file does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The unit of time.
    TimeUnit,
    /// That every request is a write.
    AssumeWrites,
    /// The bytes that one object number stands for.
    ObjectBytes,
}

/// How a format is told from others and read.
#[derive(Clone, Copy)]
pub(crate) enum Decoder {
    /// As a stream of bytes.
    Stream {
        /// How many lines of the head it can read; [`binary::MAGIC`] for a magic number.
        recognise: fn(&[u8], &OpenOptions) -> usize,
        /// Opens it.
        open: fn(Stream, Setup, &OpenOptions) -> Box<dyn Records>,
    },
    /// As a file that can be sought in.
    Parquet,
}

const fn text<F: text::LineFormat>() -> Decoder {
    Decoder::Stream { recognise: text::recognise::<F>, open: text::open::<F> }
}

const fn binary<F: binary::RecordFormat>() -> Decoder {
    Decoder::Stream { recognise: binary::recognise::<F>, open: binary::open::<F> }
}

/// Every format that can be read, the canonical ones first. Where two formats can read the same lines, the first wins.
pub const FORMATS: &[FormatEntry] = &[
    FormatEntry {
        name: "csv",
        summary: "canonical text: ts_ns,op,offset,length[,stream] with op R, W, D (discard), F (flush); streams are s0, s1 and so on, or plain numbers under a heading",
        time_unit: "ns",
        address_unit: "bytes",
        source: "isotherm",
        ordered: true,
        volumes: false,
        needs: &[],
        decoder: text::<formats::csv::Csv>(),
    },
    FormatEntry {
        name: "parquet",
        summary: "canonical binary: the columns of csv in Parquet, for any tool that reads it",
        time_unit: "ns",
        address_unit: "bytes",
        source: "isotherm",
        ordered: true,
        volumes: false,
        needs: &[],
        decoder: Decoder::Parquet,
    },
    FormatEntry {
        name: "spc",
        summary: "ASU,LBA,size,opcode,timestamp",
        time_unit: "s",
        address_unit: "512-byte blocks of an ASU; bytes",
        source: "UMass repository (Financial, WebSearch)",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::spc::Spc>(),
    },
    FormatEntry {
        name: "msr",
        summary: "timestamp,hostname,disk,type,offset,size,response",
        time_unit: "100 ns ticks",
        address_unit: "bytes",
        source: "MSR Cambridge (SNIA IOTTA)",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::msr::Msr>(),
    },
    FormatEntry {
        name: "mqsim",
        summary: "time device LBA sectors op, 0 = write and 1 = read",
        time_unit: "ns or us: ask with --time-unit",
        address_unit: "512-byte sectors",
        source: "MQSim, SSDsim",
        ordered: false,
        volumes: true,
        needs: &[Need::TimeUnit],
        decoder: text::<formats::mqsim::MqSim>(),
    },
    FormatEntry {
        name: "disksim",
        summary: "time device LBA sectors flags, bit 0 of the flags set for a read",
        time_unit: "ms",
        address_unit: "512-byte sectors",
        source: "DiskSim ASCII",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::disksim::DiskSim>(),
    },
    FormatEntry {
        name: "blktrace",
        summary: "binary records of block events; choose one with --action",
        time_unit: "ns",
        address_unit: "512-byte sectors; bytes",
        source: "blktrace -o -, blkparse -d",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: binary::<formats::blktrace::Blktrace>(),
    },
    FormatEntry {
        name: "blkparse",
        summary: "text of block events; choose one with --action",
        time_unit: "s",
        address_unit: "512-byte sectors",
        source: "blkparse",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::blkparse::Blkparse>(),
    },
    FormatEntry {
        name: "iolog",
        summary: "fio I/O log, version 2 (no times but waits) or 3",
        time_unit: "us",
        address_unit: "bytes",
        source: "fio write_iolog",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::iolog::Iolog>(),
    },
    FormatEntry {
        name: "alibaba",
        summary: "device_id,opcode,offset,length,timestamp",
        time_unit: "us",
        address_unit: "bytes",
        source: "Alibaba block traces 2020",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::alibaba::Alibaba>(),
    },
    FormatEntry {
        name: "tencent",
        summary: "timestamp,offset,size,type,volume, 0 = read and 1 = write",
        time_unit: "s",
        address_unit: "512-byte sectors",
        source: "Tencent Cloud Block Storage (SNIA IOTTA)",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::tencent::Tencent>(),
    },
    FormatEntry {
        name: "fiu",
        summary: "time pid process LBA sectors op major minor md5",
        time_unit: "ns",
        address_unit: "512-byte sectors",
        source: "FIU IODedup (SNIA IOTTA)",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::fiu::Fiu>(),
    },
    FormatEntry {
        name: "systor",
        summary: "Timestamp,Response,IOType,LUN,Offset,Size, in order of completion",
        time_unit: "s",
        address_unit: "bytes",
        source: "SYSTOR '17 enterprise VDI (SNIA IOTTA)",
        ordered: false,
        volumes: true,
        needs: &[],
        decoder: text::<formats::systor::Systor>(),
    },
    FormatEntry {
        name: "wiscsee",
        summary: "pid event op offset bytes time delta sync; choose an event with --action",
        time_unit: "s",
        address_unit: "bytes",
        source: "WiscSee",
        ordered: false,
        volumes: false,
        needs: &[],
        decoder: text::<formats::wiscsee::Wiscsee>(),
    },
    FormatEntry {
        name: "biotracer",
        summary: "LBA sectors bytes flag and four times, odd flags for writes",
        time_unit: "s",
        address_unit: "512-byte sectors; bytes",
        source: "BIOtracer smartphone traces",
        ordered: false,
        volumes: false,
        needs: &[],
        decoder: text::<formats::biotracer::Biotracer>(),
    },
    FormatEntry {
        name: "vscsi",
        summary: "32-byte records of SCSI commands, version 1",
        time_unit: "us",
        address_unit: "512-byte blocks; bytes",
        source: "CloudPhysics, vscsiStats",
        ordered: false,
        volumes: false,
        needs: &[],
        decoder: binary::<formats::vscsi::Vscsi>(),
    },
    FormatEntry {
        name: "oracle_general",
        summary: "24-byte records of a cache trace; has no operation: needs --assume-writes and --object-bytes",
        time_unit: "s",
        address_unit: "object numbers; bytes",
        source: "libCacheSim oracleGeneral",
        ordered: false,
        volumes: false,
        needs: &[Need::AssumeWrites, Need::ObjectBytes],
        decoder: binary::<formats::oracle_general::OracleGeneral>(),
    },
];

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
