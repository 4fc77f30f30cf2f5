//! `drive serve`: one drive, all its clients, until it is stopped.

use super::create::device;
use super::facts::{End, Ending, Facts};
use super::recording::Recording;
use super::watch::Watched;
use crate::options::DeviceOptions;
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_drive::control::Control;
use isotherm_drive::{Drive, DriveOptions, HandlePlan, Health, Latency, Recorder};
use isotherm_export::Export;
use isotherm_export::nbd::{Handle as NbdHandle, Listen, NamedExport, Server, ServerOptions, TlsMode, TlsOptions};
use isotherm_fuse::drive::{DiskFile, Options as FuseOptions, mount};
use isotherm_fuse::{Ending as UnmountEnding, Mounted};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often the counters are taken down.
const TICK: Duration = Duration::from_millis(250);
/// How often what is in memory goes to the disk, so that little is to be looked at after a crash.
const SYNC: Duration = Duration::from_secs(2);
/// How long an unmount waits for programs that have the file open.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `drive serve`.
#[derive(Args)]
#[command(after_help = "Examples:\n  isotherm drive serve disk.flash --nbd unix:disk.sock --ui 127.0.0.1:8080\n  \
    isotherm drive serve disk.flash --fuse mnt          # mnt/disk: losetup --find --show --direct-io=on mnt/disk\n  \
    isotherm drive serve --ram --logical-size 1GiB --nbd tcp:127.0.0.1:10809")]
pub struct ServeArgs {
    /// Image to serve (made by `drive create`)
    #[arg(required_unless_present = "ram", conflicts_with = "ram")]
    image: Option<PathBuf>,
    /// Serve a new drive that lies in memory, and is gone at the end; the device's options describe it
    #[arg(long)]
    ram: bool,
    /// Listen for NBD clients: unix:PATH or tcp:ADDRESS:PORT; may be repeated
    #[arg(long, value_name = "PLACE", value_parser = place)]
    nbd: Vec<Listen>,
    /// Mount a directory with the file `disk` in it here (an empty directory)
    #[arg(long, value_name = "DIR")]
    fuse: Option<PathBuf>,
    /// Serve the live page here, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::page_place)]
    ui: Option<SocketAddr>,
    /// Control socket (default: beside the image, with the ending .ctl; none with --ram)
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Write what is served as a trace, ending in .csv, .csv.gz, .csv.zst or .parquet. It grows by a piece every second, and what is
    /// there can be read at any time, also after a crash; one in Parquet appears at the end
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// When clients hear of the end of a request: none (at once), emulated (when the simulated clock says), emulated,xN (N times slower; below 1 faster)
    #[arg(long, value_name = "MODE", default_value = "none", value_parser = latency)]
    latency: Latency,
    /// Placement handles: each is an export of its own, disk/0 and so on, of the one drive
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    handles: u16,
    /// Placement plan: a JSON file that maps address ranges of the export `disk` to handles
    #[arg(long, value_name = "FILE", requires = "handles")]
    plan: Option<PathBuf>,
    /// Offer TLS to NBD clients, with certificates from this folder (ca-cert.pem, server-cert.pem, server-key.pem)
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
    /// Refuse NBD clients without TLS
    #[arg(long, requires = "tls")]
    tls_require: bool,
    /// Refuse NBD clients without a certificate that ca-cert.pem vouches for
    #[arg(long, requires = "tls")]
    tls_verify: bool,
    /// Seed of the policies of a drive in memory
    #[arg(long, default_value_t = 1, requires = "ram")]
    seed: u64,
    #[command(flatten)]
    device: DeviceOptions,
}

fn place(text: &str) -> Result<Listen, String> {
    match text.split_once(':') {
        Some(("unix", path)) if !path.is_empty() => Ok(Listen::Unix(path.into())),
        Some(("tcp", address)) => address
            .parse()
            .map(Listen::Tcp)
            .map_err(|_| format!("{address} is no address with a port; write for example tcp:127.0.0.1:10809")),
        _ => Err("write unix:PATH or tcp:ADDRESS:PORT".to_owned()),
    }
}

fn latency(text: &str) -> Result<Latency, String> {
    let wrong = || "write none, emulated, or emulated,x10 for ten times slower (x0.001 to x1000000)".to_owned();
    match text {
        "none" => Ok(Latency::None),
        "emulated" => Ok(Latency::Emulated { slowdown: 1.0 }),
        _ => {
            let slowdown: f64 = text.strip_prefix("emulated,x").and_then(|x| x.parse().ok()).ok_or_else(wrong)?;
            if (0.001..=1e6).contains(&slowdown) { Ok(Latency::Emulated { slowdown }) } else { Err(wrong()) }
        }
    }
}

impl ServeArgs {
    fn name(&self) -> String {
        self.image.as_ref().map_or_else(|| "memory".to_owned(), |path| path.display().to_string())
    }

    fn open(&self, recorder: Option<Recorder>) -> anyhow::Result<Drive> {
        let options = DriveOptions { latency: self.latency, recorder };
        match &self.image {
            Some(path) => {
                if self.device.is_given()? {
                    bail!("{}: an image has its specification already; leave the device's options out", path.display());
                }
                Drive::open(path, options).with_context(|| self.name())
            }
            None => Ok(Drive::in_memory(device(&self.device)?, self.seed, options)?),
        }
    }

    /// What clients see, by name: the whole drive, and each of its handles.
    fn exports(&self, drive: &Arc<Drive>) -> anyhow::Result<Vec<(String, Arc<dyn Export>)>> {
        let whole = match &self.plan {
            Some(path) => {
                let name = || path.display().to_string();
                let text = std::fs::read_to_string(path).with_context(name)?;
                drive.planned(HandlePlan::from_json(&text, self.handles).with_context(name)?)
            }
            None => drive.handle(0),
        };
        let mut exports: Vec<(String, Arc<dyn Export>)> = vec![("disk".to_owned(), Arc::new(whole))];
        if self.handles > 1 {
            exports.extend(
                (0..self.handles)
                    .map(|handle| (format!("disk/{handle}"), Arc::new(drive.handle(handle)) as Arc<dyn Export>)),
            );
        }
        Ok(exports)
    }

    fn tls(&self) -> TlsOptions {
        TlsOptions {
            mode: match (&self.tls, self.tls_require) {
                (None, _) => TlsMode::Off,
                (Some(_), false) => TlsMode::On,
                (Some(_), true) => TlsMode::Require,
            },
            certificates: self.tls.clone().unwrap_or_default(),
            verify_clients: self.tls_verify,
        }
    }

    fn control_path(&self) -> Option<PathBuf> {
        self.control.clone().or_else(|| self.image.as_ref().map(|path| path.with_extension("ctl")))
    }
}

/// Whoever the drive is served to.
struct Servers {
    nbd: Vec<NbdHandle>,
    fuse: Option<Mounted>,
    control: Option<Control>,
    live: Option<isotherm_live::LivePage>,
}

impl Servers {
    fn start(
        args: &ServeArgs,
        drive: &Arc<Drive>,
        facts: &Arc<Facts>,
        end: &std::sync::mpsc::Sender<End>,
    ) -> anyhow::Result<Self> {
        let exports = args.exports(drive)?;
        let mut servers = Self { nbd: Vec::new(), fuse: None, control: None, live: None };
        if !args.nbd.is_empty() {
            let named = exports.iter().map(|(name, export)| NamedExport {
                name: name.clone(),
                description: format!("isotherm drive {}", args.name()),
                read_only: false,
                export: export.clone(),
            });
            let server = Server::new(named.collect(), ServerOptions { tls: args.tls(), ..ServerOptions::default() })?;
            for listen in &args.nbd {
                let handle = server.listen(listen)?;
                eprintln!("NBD: {}", handle.uri());
                servers.nbd.push(handle);
            }
        }
        if let Some(folder) = &args.fuse {
            let file = |(name, export): &(String, Arc<dyn Export>)| {
                DiskFile::new(export.clone()).named(name.replace('/', "-"))
            };
            let files = exports.iter().map(file).collect();
            servers.fuse = Some(mount(files, folder, &FuseOptions::default())?);
            eprintln!("FUSE: {}", folder.join("disk").display());
        }
        if let Some(path) = args.control_path() {
            let (facts, end) = (facts.clone(), std::sync::Mutex::new(end.clone()));
            let answer = move |question: &serde_json::Value| {
                let end = end.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
                facts.answer(question, &end)
            };
            let control =
                Control::listen(&path, answer).with_context(|| format!("{}: control socket", path.display()))?;
            eprintln!("control: {}", path.display());
            servers.control = Some(control);
        }
        if let Some(address) = args.ui {
            let page =
                isotherm_live::LivePage::start(address, Arc::new(Watched::new(drive.clone(), facts.clone())), false)
                    .with_context(|| format!("--ui {address}"))?;
            eprintln!("live page: http://{}/", page.address());
            servers.live = Some(page);
        }
        Ok(servers)
    }

    /// No client asks for anything any more: what was acknowledged before has been carried out. All are stopped, whichever fails; the
    /// first error is told. Who watches the drive still sees it.
    fn stop(&mut self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for handle in self.nbd.drain(..) {
            result = result.and(handle.stop().map_err(anyhow::Error::from));
        }
        if let Some(mounted) = self.fuse.take() {
            let ending = mounted.unmount(PATIENCE);
            if matches!(ending, Ok(UnmountEnding::Forced)) {
                eprintln!("isotherm: programs that still had the mounted file open have lost it");
            }
            result = result.and(ending.map(|_| ()).map_err(anyhow::Error::from));
        }
        result
    }
}

/// Serves a drive.
pub fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let (recording, recorder) = match &args.record {
        Some(path) => {
            let (recording, recorder) = Recording::begin(path, args.handles > 1)?;
            (Some(recording), Some(recorder))
        }
        None => (None, None),
    };
    let drive = match args.open(recorder) {
        Ok(drive) => Arc::new(drive),
        // Nothing was served.
        Err(error) => return recording.map_or(Ok(()), Recording::discard).and(Err(error)),
    };
    tell_opening(args, &drive);
    let facts = Arc::new(Facts::new(drive.clone(), args.name())?);
    let (end, ended) = channel();
    let by_signal = end.clone();
    ctrlc::set_handler(move || {
        // Nobody listens once the end has begun.
        let _ = by_signal.send(End { how: Ending::InOrder, told: None });
    })?;
    // A place that cannot be listened on is no loss of power.
    let mut servers = Servers::start(args, &drive, &facts, &end)
        .or_else(|error| drive.close().map_err(Into::into).and(Err(error)))?;
    let End { how: ending, told } = wait(&drive, &facts, ended);
    let stopped = servers.stop();
    let result = match ending {
        Ending::InOrder => drive.close().map_err(anyhow::Error::from).and(stopped),
        // Servers cannot flush a drive that has no power.
        Ending::PowerCut => Ok(()),
    };
    if let Some(told) = told {
        let _ = told.send(result.as_ref().copied().map_err(|error| format!("{error:#}")));
    }
    drop((servers, facts, drive));
    if let (Some(recording), Some(path)) = (recording, &args.record) {
        eprintln!("{}: {} requests", path.display(), output::whole(recording.finish()?));
    }
    result.with_context(|| args.name())?;
    eprintln!("{}", if ending == Ending::PowerCut { "the drive lost power" } else { "the drive was shut down" });
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end, and does what is due every now and then.
fn wait(drive: &Drive, facts: &Facts, ended: Receiver<End>) -> End {
    let mut synced = Instant::now();
    let mut health = Health::Good;
    loop {
        match ended.recv_timeout(TICK) {
            Ok(end) => return end,
            Err(RecvTimeoutError::Disconnected) => return End { how: Ending::InOrder, told: None },
            Err(RecvTimeoutError::Timeout) => {}
        }
        facts.tick();
        if synced.elapsed() >= SYNC {
            // Clients hear of a disk that failed at their next flush.
            if let Err(error) = drive.sync() {
                eprintln!("isotherm: the image cannot be made durable: {error}");
            }
            synced = Instant::now();
        }
        if std::mem::replace(&mut health, drive.health()) != health {
            eprintln!("isotherm: {}", about(health));
        }
    }
}

/// What clients run into that write.
fn about(health: Health) -> &'static str {
    match health {
        Health::Good => "the disk that the image lies on has room again: writes go on",
        Health::NoRoomBelow => "the disk that the image lies on is full: writes are refused until it has room",
        Health::WornOut => "the drive is worn out: it is read-only",
        Health::Stopped => "the image failed: the drive answers nothing until it is served again",
    }
}

fn tell_opening(args: &ServeArgs, drive: &Drive) {
    let Some(how) = drive.how() else { return };
    let took = output::time(Some(how.took.as_nanos() as f64));
    if how.was_clean {
        eprintln!("{}: opened in {took}", args.name());
        return;
    }
    eprintln!(
        "{}: it ended by a loss of power; opened in {took}: {} of OOB areas read in {}, {} operations that were not durable do not count",
        args.name(),
        output::bytes(how.scanned_bytes as f64),
        output::time(Some(how.scan_took.as_nanos() as f64)),
        output::whole(how.lost_operations)
    );
    if how.damaged_pages > 0 {
        eprintln!("{}: {} pages are damaged; isotherm drive check lists them", args.name(), how.damaged_pages);
    }
}
