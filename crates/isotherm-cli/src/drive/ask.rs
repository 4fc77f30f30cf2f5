//! Questions to a drive that is served, over its control socket.

use crate::output::print;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use isotherm_drive::control;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What can be asked.
#[derive(Subcommand)]
pub enum Question {
    /// Print the SMART / Health log, with the keys of `nvme smart-log -o json`
    SmartLog(LogArgs),
    /// Print the extended SMART log (OCP, C0h), with the keys of `nvme ocp smart-add-log -o json`
    OcpSmartAddLog(LogArgs),
    /// Print an FDP log, with the keys of `nvme fdp ... -o json`
    Fdp {
        /// Which log
        log: FdpLog,
        #[command(flatten)]
        args: LogArgs,
    },
    /// Print everything that was counted since serving began or the counters were reset, as `isotherm run --json` does
    Stats(DriveName),
    /// Begin to count anew (`stats` and latencies; SMART logs count the drive's whole life)
    ResetStats(DriveName),
    /// Stop the drive as a loss of power does
    PowerCut(DriveName),
    /// Stop the drive in order
    Stop(DriveName),
    /// Copy the image as it is now: as if the drive had lost power at this moment
    Snapshot {
        #[command(flatten)]
        drive: DriveName,
        /// File to make
        target: PathBuf,
    },
    /// Discard a range of the drive
    Trim {
        #[command(flatten)]
        drive: DriveName,
        /// First byte
        #[arg(long, value_parser = bytes)]
        offset: u64,
        /// Bytes
        #[arg(long, value_parser = bytes)]
        length: u64,
    },
}

/// Names a drive.
#[derive(Args)]
pub struct DriveName {
    /// Image that is served, or its control socket
    #[arg(value_name = "IMAGE|SOCKET")]
    drive: PathBuf,
}

/// A log of a drive.
#[derive(Args)]
pub struct LogArgs {
    #[command(flatten)]
    drive: DriveName,
    /// Form of the output
    #[arg(short = 'o', long = "output-format", default_value = "normal")]
    format: Format,
}

/// Forms of a log, as nvme-cli names them.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line a field
    Normal,
    /// JSON
    Json,
}

/// FDP logs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FdpLog {
    /// Bytes written by the host and to the media, and bytes erased
    Stats,
    /// Reclaim groups, handles and units
    Configs,
    /// Who uses which handle
    Usage,
}

fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<isotherm::quantity::ByteSize>().map(|size| size.0).map_err(|error| error.to_string())
}

/// The control socket of a drive: beside the image, with the ending `.ctl`.
pub fn socket_of(drive: &Path) -> PathBuf {
    match drive.symlink_metadata() {
        Ok(metadata) if metadata.file_type().is_socket() => drive.to_owned(),
        _ => drive.with_extension("ctl"),
    }
}

/// Asks, and gives the answer.
pub fn put(drive: &Path, question: &Value) -> anyhow::Result<Value> {
    let socket = socket_of(drive);
    let answer = control::ask(&socket, question).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow::anyhow!(
            "{}: no drive is served with this control socket; start one with isotherm drive serve {}",
            socket.display(),
            drive.display()
        ),
        _ => anyhow::Error::new(error).context(socket.display().to_string()),
    })?;
    answer.map_err(anyhow::Error::msg).with_context(|| drive.display().to_string())
}

/// Asks the question and prints the answer.
pub fn ask(question: &Question) -> anyhow::Result<ExitCode> {
    match question {
        Question::SmartLog(args) => log("smart-log", args)?,
        Question::OcpSmartAddLog(args) => log("ocp-smart-add-log", args)?,
        Question::Fdp { log: FdpLog::Stats, args } => log("fdp-stats", args)?,
        Question::Fdp { log: FdpLog::Configs, args } => log("fdp-configs", args)?,
        Question::Fdp { log: FdpLog::Usage, args } => log("fdp-usage", args)?,
        Question::Stats(name) => print(&pretty(&put(&name.drive, &json!({ "verb": "stats" }))?)?)?,
        Question::ResetStats(name) => {
            put(&name.drive, &json!({ "verb": "reset-stats" }))?;
        }
        Question::PowerCut(name) => {
            put(&name.drive, &json!({ "verb": "power-cut" }))?;
        }
        Question::Stop(name) => {
            put(&name.drive, &json!({ "verb": "stop" }))?;
        }
        Question::Snapshot { drive, target } => {
            // The server has a working folder of its own.
            let target = std::path::absolute(target)?;
            let Some(name) = target.to_str() else { bail!("{}: the name is not UTF-8", target.display()) };
            put(&drive.drive, &json!({ "verb": "snapshot", "target": name }))?;
        }
        Question::Trim { drive, offset, length } => {
            put(&drive.drive, &json!({ "verb": "trim", "offset": offset, "length": length }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn log(verb: &str, args: &LogArgs) -> anyhow::Result<()> {
    let value = put(&args.drive.drive, &json!({ "verb": verb }))?;
    if args.format == Format::Json {
        return print(&pretty(&value)?);
    }
    let mut text = String::new();
    lines(&value, "", &mut text);
    print(&text)
}

/// A line for each number of an object.
fn lines(value: &Value, name: &str, text: &mut String) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                lines(value, &inner, text);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                lines(value, &format!("{name}[{index}]"), text);
            }
        }
        value => *text += &format!("{name:<40}: {value}\n"),
    }
}
