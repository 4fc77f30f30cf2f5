//! How a trace is opened: everything that a file cannot say of itself.

use crate::registry::Format;
use crate::spool::Spool;
use std::str::FromStr;

/// Unit of the times in a trace. All are powers of ten of a nanosecond, so that decimals convert exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Ticks of 100 ns, as Windows counts them.
    Ticks,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// A unit of time as the parsers use it: one unit is 10^`power` = `nanoseconds` ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimeScale {
    pub(crate) power: i32,
    pub(crate) nanoseconds: u64,
}

impl TimeUnit {
    pub(crate) fn scale(self) -> TimeScale {
        let power = match self {
            Self::Ns => 0,
            Self::Ticks => 2,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S => 9,
        };
        TimeScale { power, nanoseconds: 10u64.pow(power as u32) }
    }
}

impl FromStr for TimeUnit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ns" => Ok(Self::Ns),
            "ticks" | "100ns" => Ok(Self::Ticks),
            "us" => Ok(Self::Us),
            "ms" => Ok(Self::Ms),
            "s" => Ok(Self::S),
            _ => Err(format!("unknown time unit \"{text}\"; choose from ns, us, ms, s, ticks (100 ns)")),
        }
    }
}

/// Which event of a request's life counts as the request, in traces that record several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlktraceAction {
    /// Q: queued by the file system, before splitting and merging.
    Queue,
    /// D: issued to the driver; what the device sees.
    #[default]
    Issue,
    /// C: completed by the device.
    Complete,
}

impl BlktraceAction {
    /// The letter that blkparse prints.
    pub fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::Issue => 'D',
            Self::Complete => 'C',
        }
    }
}

impl FromStr for BlktraceAction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "Q" | "queue" => Ok(Self::Queue),
            "D" | "issue" => Ok(Self::Issue),
            "C" | "complete" => Ok(Self::Complete),
            _ => Err(format!("unknown action \"{text}\"; choose from Q (queue), D (issue), C (complete)")),
        }
    }
}

/// What to do when times run backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// As the format declares: a window of [`SORT_WINDOW`] requests, or refusal for the canonical forms.
    #[default]
    Declared,
    /// Any step back is an error.
    Refuse,
    /// Requests at most this many places from where they belong are put there; farther ones are an error.
    Window(usize),
    /// The whole trace is held in memory (32 bytes a request) and sorted.
    Memory,
}

/// Requests that the sorting window looks ahead unless told otherwise (4 MiB of memory).
pub const SORT_WINDOW: usize = 1 << 16;

impl FromStr for Sort {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "declared" => Ok(Self::Declared),
            "refuse" => Ok(Self::Refuse),
            "memory" => Ok(Self::Memory),
            _ => match isotherm::registry::parse_integer(text) {
                Some(window @ 1..=0x400_0000) => Ok(Self::Window(window as usize)),
                _ => {
                    Err(format!("\"{text}\" is no sort; choose from declared, refuse, memory, or a window of 1..=64Mi"))
                }
            },
        }
    }
}

/// How to open a trace. The default asks the file for everything.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Format; detected by content when `None`.
    pub format: Option<Format>,
    /// Rows that cannot be read and are skipped (and counted) before one is an error. Default 0.
    pub skip_bad: u64,
    /// Take requests without a read/write flag as writes. Default: refuse them.
    pub assume_writes: bool,
    /// Unit of times, overriding the format's own; required where the format does not say.
    pub time_unit: Option<TimeUnit>,
    /// The event that counts, in blktrace and similar logs. Default D.
    pub blktrace_action: BlktraceAction,
    /// Bytes that one object number stands for, in object traces. Required there.
    pub object_bytes: Option<u64>,
    /// What to do when times run backwards. Default: as the format declares.
    pub sort: Sort,
    /// Drop the discard of the whole device that a capture begins with, as mkfs makes it, so that it does not undo a
    /// preconditioned drive ([`crate::LeadingTrims`] counts what was dropped). Default: keep it. Synthetic workloads have none.
    pub drop_leading_trims: bool,
    /// The one volume whose requests are read, by its name in the trace; all of them, laid end to end, when `None`.
    pub volume: Option<String>,
    /// A copy of the trace, to be read in its place.
    pub spool: Option<Spool>,
}
