//! What can be set of a log.

use crate::segments::SegmentVictim;
use isotherm::hotness::heat::{AgeFrom, CountWrites};
use isotherm::hotness::quantise::{Criterion, MAX_GROUPS, QuantiserOptions};
use isotherm::registry::{Entry, Grain, Kind, Parameter, Parameters, PolicyName, SpecError, find};

/// Bytes of a block of the log.
pub const BLOCK_BYTES: u32 = 4096;

/// When a freed segment is trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrimPoint {
    /// When it is reusable: nothing durable is lost by it.
    Reusable,
    /// When it is freed. A loss of power then loses blocks: here to show that it does.
    AtFree,
    /// Never: the device below learns of it when it is written again.
    Never,
}

/// Behaviour of a [`super::log::SegmentLog`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogOptions {
    /// Blocks in a segment, summaries included.
    pub segment_blocks: u32,
    /// How groups are told apart.
    pub quantiser: QuantiserOptions,
    /// Which segment is cleaned.
    pub victim: SegmentVictim,
    /// Whether groups that do not fill a segment wait.
    pub defer: bool,
    /// Dirty blocks at which a segment write begins.
    pub dirty_blocks: usize,
    /// What the age of a block counts from.
    pub age: AgeFrom,
    /// Which writes of a block count.
    pub count: CountWrites,
    /// Binary logarithm of the host block writes in a tick of the clock that ages are counted by.
    pub log2_tick_blocks: u32,
    /// Time between segment writes; `u64::MAX` for never.
    pub write_interval_ns: u64,
    /// Time between checkpoints; `u64::MAX` for never.
    pub checkpoint_interval_ns: u64,
    /// Segments written between checkpoints.
    pub checkpoint_segments: u32,
    /// Free segments at or below which cleaning runs.
    pub clean_below: u32,
    /// Segments cleaned at a time.
    pub clean_segments: u32,
    /// Summary bytes of a block; 0 for no summaries.
    pub summary_bytes: u32,
    /// Binary logarithm of the blocks that count as one file.
    pub log2_file_blocks: u32,
    /// Whether blocks are written before the segment that holds their only copy is.
    pub guard: bool,
    /// Whether a segment that may be written over is taken before those that wait for a checkpoint, where one is free. For logs
    /// whose checkpoints need segments themselves.
    pub reusable_first: bool,
    /// When freed segments are trimmed.
    pub trim: TrimPoint,
    /// Seed of random centres and samples.
    pub seed: u64,
}

impl LogOptions {
    /// Blocks of data that fit into `room` blocks together with their summaries.
    #[inline(always)]
    pub fn payload_in(&self, room: u32) -> u32 {
        BLOCK_BYTES.checked_div(self.summary_bytes).map_or(room, |covered| room - room.div_ceil(covered + 1))
    }

    /// Summary blocks of `blocks` blocks of data.
    #[inline(always)]
    pub fn summary_blocks(&self, blocks: u32) -> u32 {
        BLOCK_BYTES.checked_div(self.summary_bytes).map_or(0, |covered| blocks.div_ceil(covered))
    }

    /// Blocks of data in a whole segment.
    #[inline(always)]
    pub fn payload_blocks(&self) -> u32 {
        self.payload_in(self.segment_blocks)
    }
}

/// A kind of log with its own defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogKind {
    /// A log in segments: SFS or LFS, by their defaults.
    Segments,
    /// No log: requests go to the device below as they are.
    InPlace,
}

const QUANTISER: [Parameter; 6] =
    QuantiserOptions::parameters(&["iterative", "equi_width", "equi_height", "isotherm"], "10000");
/// Seconds of the trace, or never.
const SECONDS: &[Kind] = &[Kind::real(0.0..=86_400.0), Kind::word(&["inf"])];
const SEGMENT: Parameter =
    Parameter::new("segment", Kind::bytes(8192..=1 << 32, Grain::Multiple(4096)), "32MiB").help("segment size");
const CLEAN_AT: Parameter =
    Parameter::share("clean_at", 0.5..=0.999, "95%").help("share of segments in use at which cleaning starts");
const CLEAN_SEGMENTS: Parameter =
    Parameter::integer("clean_segments", 1..=1024, "3").help("segments cleaned at a time");
const SUMMARY: Parameter = Parameter::integer("summary_bytes", 0..=1024, "16")
    .help("metadata of each block in a segment's summary; 0 for none");
const WRITE_INTERVAL: Parameter =
    Parameter::any("write_interval", SECONDS, "5").unit("s").help("time of the trace between segment writes");
const CHECKPOINT_INTERVAL: Parameter =
    Parameter::any("checkpoint_interval", SECONDS, "30").unit("s").help("time of the trace between checkpoints");
const CHECKPOINT_SEGMENTS: Parameter =
    Parameter::integer("checkpoint_segments", 1..=1_000_000, "20").help("segments written between checkpoints");
const DIRTY: Parameter = Parameter::any("dirty", &[Kind::word(&["auto"]), Kind::bytes(4096..=1 << 42, Grain::Any)], "auto").help("dirty data at which a segment write begins; auto is eight segments: with up to eight groups, one of them then fills a segment");
const SYNC: Parameter = Parameter::boolean("sync", "true").help("whether flushes of the trace are carried out");
const TRIM: Parameter = Parameter::choice("trim", &["reusable", "at_free", "never"], "reusable")
    .help("when freed segments are trimmed; at_free loses data in a power cut");

/// The logs.
pub const LOGS: &[Entry<LogKind>] = &[
    Entry {
        name: "sfs",
        summary: "a log that writes blocks of like hotness together and cleans by cost-hotness",
        paper: "Min et al., SFS, FAST'12",
        memory: "20 bytes a block, 4 bytes a position, 56 bytes a segment; 4 bytes a block and 60 KiB more for criterion=isotherm",
        parameters: &[
            QUANTISER[0],
            QUANTISER[1],
            QUANTISER[2],
            QUANTISER[3],
            QUANTISER[4],
            QUANTISER[5],
            SEGMENT,
            Parameter::choice("victim", &["cost_hotness", "cost_benefit", "greedy"], "cost_hotness")
                .help("which segment is cleaned"),
            Parameter::boolean("defer", "true").help("whether groups that do not fill a segment stay dirty"),
            DIRTY,
            Parameter::choice("age", &["created", "modified"], "created").help("what the age of a block counts from"),
            Parameter::choice("count", &["host", "logged"], "host")
                .help("which writes make a block hot: all of the host, or those that reach the log"),
            Parameter::new("tick", Kind::bytes(4096..=1 << 40, Grain::PowerOfTwo), "4KiB")
                .help("host data written in one tick of the clock that ages are counted by"),
            Parameter::new("file", Kind::bytes(4096..=1 << 30, Grain::PowerOfTwo), "1MiB")
                .help("range of addresses that counts as one file"),
            WRITE_INTERVAL,
            CHECKPOINT_INTERVAL,
            CHECKPOINT_SEGMENTS,
            CLEAN_AT,
            CLEAN_SEGMENTS,
            SUMMARY,
            SYNC,
            TRIM,
            Parameter::boolean("guard", "true")
                .help("write blocks before their only copy is overwritten; without it a power cut loses data"),
        ],
        build: LogKind::Segments,
    },
    Entry {
        name: "lfs",
        summary: "a plain log: one group, nothing deferred",
        paper: "Rosenblum & Ousterhout, SOSP'91",
        memory: "20 bytes a block, 4 bytes a position, 56 bytes a segment",
        parameters: &[
            SEGMENT,
            Parameter::choice("victim", &["cost_hotness", "cost_benefit", "greedy"], "cost_benefit")
                .help("which segment is cleaned"),
            DIRTY,
            WRITE_INTERVAL,
            CHECKPOINT_INTERVAL,
            CHECKPOINT_SEGMENTS,
            CLEAN_AT,
            CLEAN_SEGMENTS,
            SUMMARY,
            SYNC,
            TRIM,
        ],
        build: LogKind::Segments,
    },
    Entry {
        name: "in_place",
        summary: "no log: the trace as it is, on a device of the same size",
        paper: "baseline",
        memory: "none",
        parameters: &[],
        build: LogKind::InPlace,
    },
];

/// A log as a user named it, checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogChoice {
    /// What kind it is.
    pub kind: LogKind,
    /// Its options, apart from `clean_below`, which depends on the number of segments.
    pub options: LogOptions,
    /// Share of segments in use at which cleaning starts.
    pub clean_at: f64,
    /// Whether flushes of the host are carried out.
    pub sync: bool,
}

/// Reads the log that `name` names.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn parse_log(name: &PolicyName, seed: u64) -> Result<LogChoice, SpecError> {
    let entry = find(LOGS, "log.name", name)?;
    let given = Parameters::new(name, entry.parameters)?;
    let mut choice = LogChoice { kind: entry.build, options: LogOptions::plain(seed), clean_at: 0.95, sync: true };
    if entry.build == LogKind::InPlace {
        return Ok(choice);
    }
    let options = &mut choice.options;
    options.segment_blocks = (given.bytes("segment") / u64::from(BLOCK_BYTES)) as u32;
    options.victim = given.choice("victim", SegmentVictim::NAMES);
    let nanoseconds = |key: &str| match given.real(key) {
        seconds if seconds > 0.0 && seconds.is_finite() => (seconds * 1e9) as u64,
        _ => u64::MAX,
    };
    options.write_interval_ns = nanoseconds("write_interval");
    options.checkpoint_interval_ns = nanoseconds("checkpoint_interval");
    options.checkpoint_segments = given.integer("checkpoint_segments") as u32;
    options.clean_segments = given.integer("clean_segments") as u32;
    options.summary_bytes = given.integer("summary_bytes") as u32;
    options.trim = given.choice(
        "trim",
        &[("reusable", TrimPoint::Reusable), ("at_free", TrimPoint::AtFree), ("never", TrimPoint::Never)],
    );
    choice.clean_at = given.share("clean_at");
    choice.sync = given.boolean("sync");
    if given.has("groups") {
        options.quantiser = QuantiserOptions::read(&given, Criterion::NAMES_WITH_LEARNT);
        options.defer = given.boolean("defer");
        options.age = given.choice("age", AgeFrom::NAMES);
        options.count = given.choice("count", CountWrites::NAMES);
        options.guard = given.boolean("guard");
        let log2_blocks = |key: &str| (given.bytes(key) / u64::from(BLOCK_BYTES)).trailing_zeros();
        options.log2_file_blocks = log2_blocks("file");
        options.log2_tick_blocks = log2_blocks("tick");
    }
    // One segment for each group is enough for one of them to be full; the same for all makes results comparable.
    options.dirty_blocks = MAX_GROUPS * options.payload_blocks() as usize;
    if !given.is("dirty", "auto") {
        options.dirty_blocks = (given.bytes("dirty") / u64::from(BLOCK_BYTES)) as usize;
    }
    Ok(choice)
}

impl LogOptions {
    /// A plain log: one group, nothing deferred, segments of 32 MiB.
    fn plain(seed: u64) -> Self {
        Self {
            segment_blocks: (32 << 20) / BLOCK_BYTES,
            quantiser: QuantiserOptions::PLAIN,
            victim: SegmentVictim::CostBenefit,
            defer: false,
            dirty_blocks: 1,
            age: AgeFrom::Created,
            count: CountWrites::Host,
            log2_tick_blocks: 0,
            write_interval_ns: u64::MAX,
            checkpoint_interval_ns: u64::MAX,
            checkpoint_segments: 20,
            clean_below: 2,
            clean_segments: 3,
            summary_bytes: 16,
            log2_file_blocks: 8,
            guard: true,
            reusable_first: false,
            trim: TrimPoint::Reusable,
            seed,
        }
    }
}
