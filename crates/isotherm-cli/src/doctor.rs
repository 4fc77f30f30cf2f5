//! `isotherm doctor`: what this machine can do.

use crate::control_group::memory_limit;
use crate::output::{self, print};
use anyhow::Context as _;
use clap::Args;
use isotherm_eval::{available_memory, files};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use serde_json::json;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `doctor`.
#[derive(Args)]
#[command(
    after_help = "Exit code 0, whatever is missing: each verb that needs it says so. 2 for a folder that is not there."
)]
pub struct DoctorArgs {
    /// Folder whose file system is looked at, where images of drives and volumes would lie
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    /// Whether it is there; `None` where that is no question.
    is_there: Option<bool>,
    /// What was found.
    found: String,
    /// What needs it, and what to do where it is not there; empty otherwise.
    advice: &'static str,
}

impl Finding {
    fn new(what: &'static str, is_there: Option<bool>, found: impl Into<String>, advice: &'static str) -> Self {
        Self { what, is_there, found: found.into(), advice: if is_there == Some(false) { advice } else { "" } }
    }
}

/// Looks.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let folder = std::fs::canonicalize(&args.folder)
        .with_context(|| format!("{}: the folder cannot be found; check the path", args.folder.display()))?;
    let findings: Vec<Finding> = [machine(), kernel(), storage(&folder)].into_iter().flatten().collect();
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({"what": f.what, "is_there": f.is_there, "found": f.found, "advice": f.advice}))
            .collect();
        print(&files::to_json(&json!({ "findings": list })))?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for finding in &findings {
        let sign = match finding.is_there {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let advice = if finding.advice.is_empty() { String::new() } else { format!("; {}", finding.advice) };
        let line = format!("{:<names$}{sign:<5}{}{advice}", finding.what, finding.found);
        text.push_str(&output::wrapped(&line, output::width(), names + 5));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The first line of a file of the kernel's.
fn line_of(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn machine() -> Vec<Finding> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = available_memory();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = memory_limit(Path::new("/sys/fs/cgroup"), &own);
    let huge = line_of("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_else(|| "not told".to_owned());
    let has_huge = huge.contains("[always]") || huge.contains("[madvise]");
    vec![
        Finding::new("isotherm", None, env!("CARGO_PKG_VERSION"), ""),
        Finding::new("cores", None, format!("{cores}: as many runs go at a time"), ""),
        Finding::new(
            "memory",
            Some(memory.is_none_or(|bytes| bytes >= 1 << 30)),
            memory.map_or_else(|| "not told".to_owned(), |bytes| format!("{} for runs", output::bytes(bytes as f64))),
            "large devices do not fit: give a smaller --logical-size, or --address compact",
        ),
        Finding::new(
            "memory limit",
            None,
            limit.map_or_else(
                || "none".to_owned(),
                |limit| format!("{} for the control group {}", output::bytes(limit.bytes as f64), limit.group),
            ),
            "",
        ),
        Finding::new(
            "huge pages",
            Some(has_huge),
            huge,
            "large maps are faster with /sys/kernel/mm/transparent_hugepage/enabled at madvise",
        ),
    ]
}

/// Whether a device node can be opened for reading and writing.
fn opens(path: &str) -> Result<(), io::Error> {
    OpenOptions::new().read(true).write(true).open(path).map(drop)
}

/// The first of these programs on the path.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

fn kernel() -> Vec<Finding> {
    let is_root = rustix::process::geteuid().is_root();
    let node = |path: &str| match opens(path) {
        Ok(()) => (true, format!("{path} opens")),
        Err(error) => (false, format!("{path}: {error}")),
    };
    let helper = program(&["fusermount3", "fusermount"]);
    let told = |program: &Option<PathBuf>, name: &str| {
        program.as_ref().map_or_else(|| format!("{name} is not on the path"), |path| path.display().to_string())
    };
    let (fuse, fuse_text) = node("/dev/fuse");
    let (loops, loop_text) = node("/dev/loop-control");
    let client = program(&["nbd-client"]);
    let browser = program(&["chromium", "chromium-browser", "google-chrome"]);
    vec![
        Finding::new(
            "kernel",
            None,
            line_of("/proc/sys/kernel/osrelease").unwrap_or_else(|| "not told".to_owned()),
            "",
        ),
        Finding::new(
            "root",
            Some(is_root),
            if is_root { "this user is root" } else { "this user is not root" },
            "loop devices and NBD devices need root",
        ),
        Finding::new(
            "FUSE",
            Some(fuse),
            fuse_text,
            "sfs mount and drive serve --fuse need it: modprobe fuse, or give the container /dev/fuse",
        ),
        Finding::new(
            "fusermount",
            Some(is_root || helper.is_some()),
            told(&helper, "fusermount3"),
            "users that are not root mount with it: install fuse3",
        ),
        Finding::new(
            "loop devices",
            Some(loops),
            loop_text,
            "drive attach needs them, and root: modprobe loop; without, serve over NBD",
        ),
        Finding::new(
            "NBD client",
            Some(client.is_some()),
            told(&client, "nbd-client"),
            "drive serve --nbd serves without it; to use the drive as a block device install nbd-client, or use qemu's nbd: URLs",
        ),
        Finding::new(
            "browser",
            Some(browser.is_some()),
            told(&browser, "chromium"),
            "reports open in any browser; the tests look for Chromium",
        ),
    ]
}

/// What the file system of `folder` can do for images.
fn storage(folder: &Path) -> Vec<Finding> {
    let mut findings = vec![Finding::new("folder", None, folder.display().to_string(), "")];
    let statistics = rustix::fs::statvfs(folder);
    findings.push(Finding::new(
        "free space",
        None,
        statistics.map_or_else(|error| error.to_string(), |s| output::bytes((s.f_bavail * s.f_frsize) as f64)),
        "",
    ));
    let path = folder.join(format!(".isotherm-doctor-{}", std::process::id()));
    let probe = Probe::new(&path);
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => {
            findings.push(Finding::new(
                "writable",
                Some(false),
                error.to_string(),
                "results and images go to another folder, see --out",
            ));
            return findings;
        }
    };
    let said = |result: io::Result<()>| match result {
        Ok(()) => (true, "works".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    for (what, result, advice) in [
        ("writable", Ok(()), ""),
        ("hole punching", probe.punches(), "images keep the space of erased blocks: use ext4, xfs, btrfs or tmpfs"),
        ("O_DIRECT", Probe::opens_direct(&path), "images go through the page cache: use ext4, xfs or btrfs"),
        ("file locks", probe.locks(), "two servers of one image would not see each other: use a local file system"),
        ("fdatasync", probe.syncs(), "what is flushed may not be durable: use a local file system"),
    ] {
        let (is_there, found) = said(result);
        findings.push(Finding::new(what, Some(is_there), found, advice));
    }
    findings
}

/// A file to try things on; it goes when it is dropped.
struct Probe<'a> {
    file: std::fs::File,
    path: &'a Path,
}

impl<'a> Probe<'a> {
    /// Bytes of the file.
    const BYTES: u64 = 1 << 16;

    fn new(path: &'a Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let probe = Self { file, path };
        io::Write::write_all(&mut &probe.file, &vec![1; Self::BYTES as usize])?;
        Ok(probe)
    }

    fn punches(&self) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, 0, Self::BYTES)?)
    }

    fn opens_direct(path: &Path) -> io::Result<()> {
        rustix::fs::open(path, OFlags::RDWR | OFlags::DIRECT, Mode::empty())?;
        Ok(())
    }

    fn locks(&self) -> io::Result<()> {
        Ok(rustix::fs::flock(&self.file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
    }

    fn syncs(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        // It was made a moment ago, and nobody else knows its name.
        let _ = std::fs::remove_file(self.path);
    }
}
