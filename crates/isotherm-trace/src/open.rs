//! Opening a trace: which format, how many volumes, in what order.

use crate::TraceReader;
use crate::detect::detect;
use crate::error::TraceError;
use crate::formats::parquet;
use crate::leading::{Reopen, WithoutLeadingTrims};
use crate::options::{OpenOptions, SORT_WINDOW, Sort};
use crate::order::Ordered;
use crate::records::{Records, Setup};
use crate::registry::{Decoder, Format, FormatEntry, Need};
use crate::source::{Opened, Source};
use crate::synth;
use crate::volumes::{VolumeSpan, Volumes};
use std::sync::Arc;

/// Opens a trace file (`-` is standard input) or a synthetic workload (`synth:...`, see [`synth`]).
///
/// # Errors
/// The file cannot be read, its format is not recognised or needs an option that is not given, or the workload's
/// specification is wrong.
pub fn open(source: &str, options: &OpenOptions) -> Result<Box<dyn TraceReader + Send>, TraceError> {
    match (source.strip_prefix("synth:"), &options.spool) {
        (Some(_), _) if options.volume.is_some() => {
            Err(TraceError::input(source, "a synthetic workload has no volumes", "leave --volume out"))
        }
        (Some(spec), _) => Ok(Box::new(synth::Workload::parse(spec)?.reader())),
        (None, Some(spool)) => open_source(&Source::Spooled(spool.clone()), options),
        (None, None) => open_source(&Source::new(source), options),
    }
}

/// Opens a trace held in memory; `name` stands for the path in messages.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(
    name: &str,
    bytes: Arc<[u8]>,
    options: &OpenOptions,
) -> Result<Box<dyn TraceReader + Send>, TraceError> {
    open_source(&Source::Memory(name.to_owned(), bytes), options)
}

fn open_source(source: &Source, options: &OpenOptions) -> Result<Box<dyn TraceReader + Send>, TraceError> {
    let opened = source.open()?;
    let format = format_of(source, &opened, options)?;
    let volumes = match (&options.volume, format.entry().volumes && source.is_repeatable()) {
        (Some(name), is_known) => only(source, format, options, name, is_known)?,
        (None, true) => measure(source, format, options)?.lay_out(),
        (None, false) => Volumes::single(),
    };
    read(source, opened, format, options, volumes)
}

/// Opens a trace of several volumes, and says where each of them lies.
///
/// # Errors
/// As [`open`]; the format has no volumes, or the trace can be read only once.
pub(crate) fn open_volumes(
    source: &str,
    options: &OpenOptions,
) -> Result<(Box<dyn TraceReader + Send>, Vec<VolumeSpan>), TraceError> {
    let source = &match &options.spool {
        Some(spool) => Source::Spooled(spool.clone()),
        None => Source::new(source),
    };
    let opened = source.open()?;
    let format = format_of(source, &opened, options)?;
    if !format.entry().volumes {
        let problem = format!("a {} trace has no volumes", format.entry().name);
        return Err(TraceError::input(
            source.name(),
            problem,
            "it is one trace already; convert it with `trace convert`",
        ));
    }
    let volumes = measure(source, format, options)?.lay_out();
    let spans = volumes.spans();
    Ok((read(source, opened, format, options, volumes)?, spans))
}

/// The format that is named, or told by content; what the file does not say of itself is there.
fn format_of(source: &Source, opened: &Opened, options: &OpenOptions) -> Result<Format, TraceError> {
    let format = match options.format {
        Some(format) => format,
        None => detect(source.name(), &opened.head, options)?,
    };
    require(source.name(), format.entry(), options)?;
    Ok(format)
}

/// The requests of `opened`, with volumes where `volumes` has them, in order of time.
fn read(
    source: &Source,
    opened: Opened,
    format: Format,
    options: &OpenOptions,
    volumes: Volumes,
) -> Result<Box<dyn TraceReader + Send>, TraceError> {
    let entry = format.entry();
    let in_order = options.sort == Sort::Refuse || options.sort == Sort::Declared && entry.ordered;
    let window = match options.sort {
        // The canonical forms in order pass straight through.
        _ if in_order && entry.ordered => None,
        Sort::Declared | Sort::Refuse => Some(SORT_WINDOW),
        Sort::Window(window) => Some(window.max(1)),
        Sort::Memory => Some(usize::MAX),
    };
    let records = decode(source, opened, format, options, volumes, in_order)?;
    // The canonical forms keep their times, so that converting them loses nothing.
    let rebase = !entry.ordered;
    let reader = Box::new(Ordered::new(records, entry.name, source.name(), window, rebase));
    if !options.drop_leading_trims {
        return Ok(reader);
    }
    let (again, whole) = (source.clone(), OpenOptions { drop_leading_trims: false, ..options.clone() });
    let reopen: Reopen = Box::new(move || open_source(&again, &whole));
    Ok(Box::new(WithoutLeadingTrims::new(reader, source.is_repeatable().then_some(reopen))))
}

/// Asks for what the file does not say.
fn require(path: &str, entry: &FormatEntry, options: &OpenOptions) -> Result<(), TraceError> {
    for need in entry.needs {
        let (met, problem, fix) = match need {
            Need::TimeUnit => (
                options.time_unit.is_some(),
                "the unit of its times cannot be told from the file",
                "say --time-unit ns (as MQSim and SSDsim take them) or --time-unit us (some conversions); if it is DiskSim \
                 with whole milliseconds, say --format disksim",
            ),
            Need::AssumeWrites => (
                options.assume_writes,
                "it does not say which requests are writes, so it cannot tell write amplification",
                "use a trace of block requests, or take all of them as writes with --assume-writes",
            ),
            Need::ObjectBytes => (
                options.object_bytes.is_some_and(|bytes| bytes > 0),
                "its addresses are object numbers, and what one stands for is not in the file",
                "say --object-bytes 512 if they are sectors, or the size of a block if they are blocks",
            ),
        };
        if !met {
            return Err(TraceError::input(path, format!("{} trace: {problem}", entry.name), fix));
        }
    }
    Ok(())
}

/// The volume `name` alone; where the trace can be read twice (`is_known`), one that it does not hold is told.
fn only(
    source: &Source,
    format: Format,
    options: &OpenOptions,
    name: &str,
    is_known: bool,
) -> Result<Volumes, TraceError> {
    const SHOWN: usize = 12;
    let entry = format.entry();
    if !entry.volumes {
        let problem = format!("a {} trace has no volumes, so that \"{name}\" is none of them", entry.name);
        return Err(TraceError::input(source.name(), problem, "leave --volume out"));
    }
    if is_known {
        let names = measure(source, format, options)?.names();
        if !names.iter().any(|known| known == name) {
            let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
            let known = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\", \"");
            let fix = format!("choose from \"{known}\"{more}");
            return Err(TraceError::input(source.name(), format!("it has no volume \"{name}\""), fix));
        }
    }
    Ok(Volumes::only(name))
}

/// The first of two passes: how far each volume reaches.
fn measure(source: &Source, format: Format, options: &OpenOptions) -> Result<Volumes, TraceError> {
    let mut records = decode(source, source.open()?, format, options, Volumes::measuring(), false)?;
    let mut batch = Vec::new();
    while records.fill(&mut batch, 4096)? > 0 {
        batch.clear();
    }
    Ok(records.into_volumes())
}

fn decode(
    source: &Source,
    opened: Opened,
    format: Format,
    options: &OpenOptions,
    volumes: Volumes,
    refuse_disorder: bool,
) -> Result<Box<dyn Records>, TraceError> {
    let (path, format_name) = (source.name().to_owned(), format.entry().name);
    let setup = Setup { path, format: format_name, skip_bad: options.skip_bad, refuse_disorder, volumes };
    match &format.entry().decoder {
        Decoder::Stream { open, .. } => Ok(open(opened.stream, setup, options)),
        Decoder::Parquet => parquet::open(source, setup),
    }
}
