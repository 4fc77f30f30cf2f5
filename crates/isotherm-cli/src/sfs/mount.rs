//! `sfs mount` and `sfs serve`.

use super::detached::Detached;
use super::device::{Access, open};
use super::options::{HELP, MountOptions};
use super::simulated::SimulatedDevice;
use super::watch::Watched;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_fs::device::Device;
use isotherm_fs::log::Recovery;
use isotherm_fs::recording::Observer;
use isotherm_fs::recording::recorder::Recorder;
use isotherm_fs::volume::{Background, Volume};
use isotherm_fuse::files::{FilesOptions, mount as mount_files};
use isotherm_live::{Fact, LivePage};
use isotherm_vfs::{FileSystem as _, ROOT, Time};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a mount may take; rolling a log forward is the longest part.
const START_MAX: Duration = Duration::from_secs(600);
/// How often a server looks whether it was unmounted or interrupted.
const LOOK: Duration = Duration::from_millis(100);
/// How long files may be open after an interrupt.
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of `mount` and `serve`.
#[derive(Args)]
#[command(after_help = format!("Options of -o: {HELP}"))]
pub struct MountArgs {
    /// File or block device that holds the volume (left out with --on), and an empty directory
    #[arg(value_names = ["DEVICE", "MOUNTPOINT"], required = true, num_args = 1..=2)]
    paths: Vec<PathBuf>,
    /// Put the volume on a simulated drive in the server: `sim:` with options of `drive create` for a drive in memory, which is gone at
    /// the end, or with the path of an image
    #[arg(long, value_name = "sim:...", allow_hyphen_values = true)]
    on: Option<String>,
    /// Record what the segment machine is handed and decides, for `sfs replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Serve a live page of the volume here, such as 127.0.0.1:8080; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::page_place)]
    ui: Option<SocketAddr>,
    /// Mount options, separated by commas
    #[arg(short, long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// Append the server's messages to this file, in place of the system's log
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Standard input is a socket to the program that waits for the mount
    #[arg(long, hide = true)]
    background: bool,
    /// Read the options, and mount nothing
    #[arg(short, long)]
    fake: bool,
    /// Leave out options that are not known
    #[arg(short, long)]
    sloppy: bool,
    /// Verbose, as mount(8) passes it on; without effect
    #[arg(short, hide = true)]
    verbose: bool,
    /// Leave mtab as it is, as mount(8) passes it on; there is none
    #[arg(short = 'n', hide = true)]
    no_mtab: bool,
    /// Type, as mount(8) passes it on; there is one
    #[arg(short = 't', hide = true)]
    kind: Option<String>,
}

impl MountArgs {
    /// The device, unless it is simulated, and the mountpoint.
    fn places(&self) -> anyhow::Result<(Option<&Path>, &Path)> {
        match (&self.paths[..], &self.on) {
            ([mountpoint], Some(_)) => Ok((None, mountpoint)),
            ([device, mountpoint], None) => Ok((Some(device), mountpoint)),
            ([_], None) => bail!("the mountpoint is missing: name the device, then an empty directory"),
            _ => bail!("--on names what the volume lies on; name the mountpoint alone beside it"),
        }
    }

    /// What the volume lies on, for messages.
    fn source(&self) -> String {
        self.on.clone().unwrap_or_else(|| self.paths[0].display().to_string())
    }

    /// What the volume lies on, for the table of mounts: whoever reads that has another working directory.
    fn table_source(&self) -> String {
        match (&self.on, self.paths[0].canonicalize()) {
            (None, Ok(path)) => path.display().to_string(),
            _ => self.source(),
        }
    }
}

/// The time that files are marked with.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

/// Mounts in the background: returns when the volume is there.
pub fn mount(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let options = MountOptions::parse(&args.options, args.sloppy)?;
    let (_, mountpoint) = args.places()?;
    if args.fake {
        return Ok(ExitCode::SUCCESS);
    }
    if options.remount {
        return super::remount::remount(mountpoint, &options);
    }
    // Before the device is waited for.
    mountpoint.metadata().with_context(|| mountpoint.display().to_string())?;
    let mut command = Command::new(std::env::current_exe().context("the program's own file cannot be found")?);
    command.args(["sfs", "serve"]).args(&args.paths);
    if let Some(on) = &args.on {
        command.args(["--on", on]);
    }
    if let Some(file) = &args.record {
        command.arg("--record").arg(file);
    }
    if let Some(address) = &args.ui {
        command.args(["--ui", &address.to_string()]);
    }
    if let Some(file) = &args.messages {
        command.arg("--messages").arg(file);
    }
    if args.sloppy {
        command.arg("--sloppy");
    }
    for options in &args.options {
        command.args(["-o", options]);
    }
    let (answer, starter) = UnixStream::pair().context("a pair of sockets")?;
    // Not a pipe: the server outlives whoever would read it.
    let said = File::from(memfd_create("sfs-mount", MemfdFlags::CLOEXEC).context("memory for messages")?);
    let mut server = command
        .arg("--background")
        .stdin(OwnedFd::from(starter))
        .stdout(Stdio::null())
        .stderr(said.try_clone().context("a descriptor")?)
        .process_group(0)
        .spawn()
        .context("the server cannot be started")?;
    // It holds the server's end of the socket.
    drop(command);
    let mounted = wait_for_mount(&mut server, answer, mountpoint);
    let mut message = String::new();
    let mut said = said;
    said.rewind().and_then(|()| said.read_to_string(&mut message)).context("messages of the server")?;
    eprint!("{message}");
    mounted
}

/// Waits until the server says that the volume is mounted, or ends. A server whose socket is closed mounts nothing.
fn wait_for_mount(server: &mut Child, mut answer: UnixStream, mountpoint: &Path) -> anyhow::Result<ExitCode> {
    answer.set_read_timeout(Some(START_MAX)).context("a socket")?;
    match answer.read(&mut [0]) {
        Ok(1) => Ok(ExitCode::SUCCESS),
        Ok(_) => {
            // It has said why.
            let status = server.wait().context("the server cannot be waited for")?;
            Ok(ExitCode::from(status.code().map_or(1, |code| code as u8).max(1)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            bail!("{}: not mounted after {} s", mountpoint.display(), START_MAX.as_secs())
        }
        Err(error) => Err(error).context("hearing from the server"),
    }
}

/// Mounts, and serves until the end.
pub fn serve(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let detached = args.background.then(|| Detached::new(args.messages.as_deref())).transpose()?;
    let served = serve_device(args, detached.as_ref());
    if let Some(detached) = detached {
        detached.end(&served);
    }
    served.map(|()| ExitCode::SUCCESS)
}

fn serve_device(args: &MountArgs, detached: Option<&Detached>) -> anyhow::Result<()> {
    let options = MountOptions::parse(&args.options, args.sloppy)?;
    let (device, mountpoint) = args.places()?;
    match (device, &args.on) {
        (Some(path), _) => {
            let access = if options.settings.read_only { Access::Keep } else { Access::Write };
            let device = open(path, access, || detached.is_none_or(Detached::is_wanted))?;
            serve_on(device, args, mountpoint, &options, Vec::new(), detached)
        }
        (None, on) => {
            let device = SimulatedDevice::open(on.as_deref().unwrap_or_default())?;
            let facts = device.describe();
            let served = serve_on(device.clone(), args, mountpoint, &options, facts, detached);
            let closed = device.close().with_context(|| args.source());
            served.and(closed)
        }
    }
}

/// Who writes the recording, if one is asked for.
fn recorder(args: &MountArgs) -> anyhow::Result<Option<Box<dyn Observer>>> {
    let Some(path) = &args.record else { return Ok(None) };
    let file = File::create_new(path).with_context(|| format!("{}: a recording is a new file", path.display()))?;
    Ok(Some(Box::new(Recorder::new(BufWriter::with_capacity(1 << 20, file)))))
}

/// Serves the volume on a device, of which `facts` are known, until the end, and closes it.
fn serve_on(
    device: Arc<dyn Device>,
    args: &MountArgs,
    mountpoint: &Path,
    options: &MountOptions,
    facts: Vec<Fact>,
    detached: Option<&Detached>,
) -> anyhow::Result<()> {
    let (volume, recovery) =
        Volume::open_observed(device, options.settings.clone(), now, recorder(args)?).with_context(|| args.source())?;
    volume.set_access_times(options.access_times, options.directory_times)?;
    if !recovery.was_clean {
        eprintln!(
            "{}: was not unmounted; {} writes of the log since the last checkpoint were found, {} transactions",
            args.source(),
            recovery.writes,
            recovery.transactions
        );
    }
    warn_of_damage(&args.source(), &recovery);
    let volume = Arc::new(volume);
    let readable = read_root(&volume).with_context(|| args.source());
    let served = readable.and_then(|()| live_page(args, &volume, facts)).and_then(|page| {
        let served = serve_volume(&args.table_source(), mountpoint, options, &volume, detached);
        drop(page);
        served
    });
    let closed = volume.close().with_context(|| args.source());
    served.and(closed)
}

/// Says what of the log is damaged: what is read of the volume is not all that was synced.
pub fn warn_of_damage(source: &str, recovery: &Recovery) {
    if recovery.unreadable_blocks > 0 {
        let count = recovery.unreadable_blocks;
        eprintln!("{source}: damaged blocks of file data since the last checkpoint: {count}; reading them is an error");
    }
    if recovery.unreadable_pages > 0 {
        let count = recovery.unreadable_pages;
        eprintln!(
            "{source}: damaged pages of metadata that were changed since the last checkpoint: {count}; what depends on them is not seen, \
             or an error, and fsck.sfs -y may mend that"
        );
    }
    if let Some(lost) = recovery.lost {
        eprintln!("{source}: {lost}; what came after it is not seen, and fsck.sfs -y may mend that");
    }
}

/// Looks into the root directory: without that, a mounted volume is of no use, and nobody could tell why.
fn read_root(volume: &Volume) -> anyhow::Result<()> {
    // Itself, the directory above, and something that is stored in it.
    let mut left = 3;
    let first = volume.attributes(ROOT).and_then(|_| {
        volume.read_directory_plus(ROOT, 0, &mut |_, _| {
            left -= 1;
            left > 0
        })
    });
    first.context("the root directory cannot be read; `isotherm sfs fsck -y` repairs what can be repaired")?;
    Ok(())
}

/// The live page, if one is asked for: before the mount, so that it is there, or the error is told, when the volume is.
fn live_page(args: &MountArgs, volume: &Arc<Volume>, facts: Vec<Fact>) -> anyhow::Result<Option<LivePage>> {
    let Some(address) = args.ui else { return Ok(None) };
    let watched = Watched::new(volume.clone(), args.source(), facts)?;
    let page = LivePage::start(address, Arc::new(watched), false).with_context(|| format!("--ui {address}"))?;
    eprintln!("live page: http://{}/", page.address());
    Ok(Some(page))
}

fn serve_volume(
    source: &str,
    mountpoint: &Path,
    options: &MountOptions,
    volume: &Arc<Volume>,
    detached: Option<&Detached>,
) -> anyhow::Result<()> {
    if !detached.is_none_or(Detached::is_wanted) {
        bail!("{}: nobody waits for the mount any more", mountpoint.display());
    }
    let mut files = FilesOptions {
        source: source.replace([',', '\\'], "_"),
        read_only: options.settings.read_only,
        rights: options.flags.rights(),
        writeback: options.writeback,
        on_panic: Arc::new(|what| eprintln!("isotherm: {what} panicked; unmount the volume and check it")),
        ..FilesOptions::default()
    };
    files.allow_other = options.allow_other.unwrap_or(files.allow_other);
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("signals cannot be caught")?;
    let mut mounted = mount_files(volume.clone(), mountpoint, &files)?;
    let background = if options.settings.read_only {
        None
    } else {
        Some(Background::start(volume.clone(), options.intervals).context("no thread can be started")?)
    };
    // Where nobody waits any more, or can be told, the mount ends here as it was made.
    detached.map_or(Ok(()), Detached::report_mounted)?;
    let mut is_told = false;
    while mounted.wait(LOOK) && !interrupted.load(Ordering::Relaxed) {
        if !is_told && let Err(error) = volume.check_failure() {
            eprintln!("{source}: {error}; nothing is written any more: what was not synced is lost, what was is kept");
            is_told = true;
        }
    }
    let ended = mounted.unmount(PATIENCE);
    drop(background);
    let _ = ended?;
    Ok(())
}
