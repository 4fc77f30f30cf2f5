//! `drive attach` and `detach`: a drive as a block device of this machine, in one step each.

use super::ask::put;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_drive::{Drive, control};
use isotherm_fuse::loop_device::{LoopDevice, LoopOptions};
use serde_json::json;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long a drive may take to be served; a scan after a loss of power is the longest part.
const START_MAX: Duration = Duration::from_secs(600);
/// How long its end may take.
const END_MAX: Duration = Duration::from_secs(120);

/// Arguments of `drive attach`.
#[derive(Args)]
pub struct AttachArgs {
    /// Image to serve
    image: PathBuf,
    /// Bytes of a sector of the loop device
    #[arg(long, default_value_t = 512, value_parser = sector_size)]
    sector_size: u32,
    /// Look for partitions on it
    #[arg(long)]
    partitions: bool,
    /// Serve the live page here, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::page_place)]
    ui: Option<std::net::SocketAddr>,
    /// Write what is served as a trace
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Arguments of `drive detach`.
#[derive(Args)]
pub struct DetachArgs {
    /// Image that was attached
    image: PathBuf,
}

fn sector_size(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|bytes| matches!(bytes, 512 | 4096)).ok_or_else(|| "512 or 4096".to_owned())
}

/// What lies beside an image that is attached.
struct Places {
    folder: PathBuf,
    control: PathBuf,
    log: PathBuf,
}

impl Places {
    fn of(image: &Path) -> Self {
        let with = |ending| image.with_extension(ending);
        Self { folder: with("mnt"), control: with("ctl"), log: with("log") }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("disk")
    }
}

/// Attaches a drive.
pub fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let places = Places::of(&args.image);
    let image = args.image.display();
    if is_served(&places) {
        bail!(
            "{image}: the drive is served already; {} it first",
            if is_there(&places.folder) { "detach" } else { "stop" }
        );
    }
    if isotherm_fuse::is_mounted(&places.folder) {
        bail!("{image}: the server of the attached drive died; `isotherm drive detach {image}` removes what it left");
    }
    fs::create_dir_all(&places.folder)
        .with_context(|| format!("{}: the folder of the mount cannot be made", places.folder.display()))?;
    let result = serve(args, &places).and_then(|()| {
        let options = LoopOptions { sector_bytes: args.sector_size, partitions: args.partitions, read_only: false };
        match LoopDevice::attach(&places.file(), &options) {
            Ok(device) => Ok(device.leave()),
            Err(error) => {
                let _ = put(&places.control, &json!({ "verb": "stop" }));
                gone(&places);
                Err(error.into())
            }
        }
    });
    match result {
        Ok(device) => {
            crate::output::print(&format!("{}\n", device.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let _ = fs::remove_dir(&places.folder);
            Err(error)
        }
    }
}

/// Whether a server answers on the control socket.
fn is_served(places: &Places) -> bool {
    control::ask(&places.control, &json!({ "verb": "smart-log" })).is_ok()
}

/// Whether there is anything at this path, also a mount whose server is gone.
fn is_there(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound)
}

/// Starts a server in the background, and waits until it serves.
fn serve(args: &AttachArgs, places: &Places) -> anyhow::Result<()> {
    let log = File::create(&places.log).with_context(|| places.log.display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["drive", "serve"]).arg(&args.image).arg("--fuse").arg(&places.folder);
    if let Some(address) = args.ui {
        command.arg("--ui").arg(address.to_string());
    }
    if let Some(path) = &args.record {
        command.arg("--record").arg(path);
    }
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0).spawn()?;
    if wait_for(&mut server, places)? {
        return Ok(());
    }
    let said = fs::read_to_string(&places.log).unwrap_or_default();
    let _ = fs::remove_file(&places.log);
    bail!("{}", said.trim().trim_start_matches("isotherm: "))
}

/// Whether the server came to listen on its control socket; false if it ended before.
fn wait_for(server: &mut Child, places: &Places) -> anyhow::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < START_MAX {
        if is_served(places) {
            return Ok(true);
        }
        if server.try_wait()?.is_some() {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill()?;
    bail!("the drive was not served within {} s", START_MAX.as_secs())
}

/// Waits until the server is gone; false if it is not.
fn gone(places: &Places) -> bool {
    let start = Instant::now();
    while start.elapsed() < END_MAX {
        if !places.control.exists() && fs::remove_dir(&places.folder).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Detaches a drive: undoes what `attach` did, also where the server died since.
pub fn detach(args: &DetachArgs) -> anyhow::Result<ExitCode> {
    let places = Places::of(&args.image);
    let image = args.image.display();
    let is_served = is_served(&places);
    match (is_there(&places.folder), is_served) {
        (false, true) => bail!("{image} is served, but not attached; `isotherm drive stop {image}` stops it"),
        (false, false) => bail!(
            "{}: no drive is served with this control socket, and none is attached ({} is not there)",
            places.control.display(),
            places.folder.display()
        ),
        // What a server has that has only just begun, or that answers elsewhere, is not taken away.
        (true, false) if args.image.exists() => drop(Drive::claim(&args.image).with_context(|| image.to_string())?),
        (true, _) => {}
    }
    for device in LoopDevice::attached_to(&places.file())? {
        device.detach()?;
    }
    if is_served {
        put(&args.image, &json!({ "verb": "stop" }))?;
        if !gone(&places) {
            bail!("{image}: the drive has not ended yet; see {}", places.log.display());
        }
    } else {
        isotherm_fuse::unmount_left(&places.folder)?;
        fs::remove_dir(&places.folder).with_context(|| places.folder.display().to_string())?;
        // A server that was killed leaves its socket, one that ended does not.
        let _ = fs::remove_file(&places.control);
    }
    let _ = fs::remove_file(&places.log);
    Ok(ExitCode::SUCCESS)
}
