//! How a trace is read: options of every verb that takes one.

use clap::Args;
use isotherm::quantity::ByteSize;
use isotherm_eval::TraceSource;
use isotherm_trace::{BlktraceAction, Format, OpenOptions, Sort, Spool, TimeUnit, TraceError};

/// What a trace file does not say of itself.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Reading the trace")]
pub struct TraceOptions {
    /// Format of the trace, where its content does not tell (see `isotherm list formats`)
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// Skip up to N lines that cannot be read, and count them; without it the first such line is an error
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, allow_hyphen_values = true)]
    skip_bad: u64,
    /// Take requests of formats without a read/write flag for writes
    #[arg(long)]
    assume_writes: bool,
    /// Unit of the times in the trace: ns, us, ms, s or ticks (100 ns)
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// Event that counts in block-layer logs: Q (queued), D (issued) or C (completed)
    #[arg(long, value_name = "EVENT", default_value = "D")]
    action: BlktraceAction,
    /// Bytes that one object number stands for, in traces of objects
    #[arg(long, value_name = "SIZE", alias = "object-size", value_parser = object_bytes, allow_hyphen_values = true)]
    object_bytes: Option<u64>,
    /// Read the requests of one volume alone (an ASU, disk, LUN or device number, as the trace names it), from its own address 0 on;
    /// without it, volumes lie end to end
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// Times that run backwards: refuse, memory (sort the whole trace), a window of that many requests, or declared (what
    /// suits the format: a window of 65536, or refuse in canonical files)
    #[arg(long, value_name = "HOW", default_value = "declared")]
    sort: Sort,
    /// Keep the discard of the whole device at the head of a trace. It is taken as mkfs's and dropped unless this is given
    #[arg(long)]
    keep_leading_trim: bool,
}

impl TraceOptions {
    /// The same as the reader takes it.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions {
            format: self.format,
            skip_bad: self.skip_bad,
            assume_writes: self.assume_writes,
            time_unit: self.time_unit,
            blktrace_action: self.action,
            object_bytes: self.object_bytes,
            sort: self.sort,
            drop_leading_trims: !self.keep_leading_trim,
            volume: self.volume.clone(),
            spool: None,
        }
    }

    /// The same, for what must lose no request of the trace.
    pub fn lossless_options(&self) -> OpenOptions {
        OpenOptions { drop_leading_trims: false, ..self.open_options() }
    }

    /// The trace `name`, to be opened with these options as often as need be: a pipe is copied first.
    ///
    /// # Errors
    /// A pipe that cannot be read, or no space for its copy.
    pub fn source(&self, name: &str) -> Result<TraceSource, TraceError> {
        Ok(TraceSource::with_options(name, OpenOptions { spool: Spool::of(name)?, ..self.open_options() }))
    }
}

fn object_bytes(text: &str) -> Result<u64, String> {
    let size = text.parse::<ByteSize>()?;
    Some(size.0).filter(|bytes| *bytes > 0).ok_or_else(|| "give at least one byte".to_owned())
}
