//! `drive create`, `info` and `check`: images that nobody serves.

use crate::options::DeviceOptions;
use crate::output::{self, print};
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm::nand::Kind;
use isotherm::spec::DeviceSpec;
use isotherm_drive::Drive;
use isotherm_drive::image::{self, DamagedPage};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `drive create`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  isotherm drive create disk.flash --logical-size 8GiB --op 7% --placement sepbit --victim cost_benefit"
)]
pub struct CreateArgs {
    /// Image to make
    image: PathBuf,
    #[command(flatten)]
    device: DeviceOptions,
    /// Seed of the policies
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Arguments of `drive info`.
#[derive(Args)]
pub struct InfoArgs {
    /// Image to look at
    image: PathBuf,
}

/// Arguments of `drive check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Image to read
    image: PathBuf,
}

/// The SSD that the options describe.
pub fn device(options: &DeviceOptions) -> anyhow::Result<DeviceSpec> {
    let spec = options.single()?;
    if spec.log.is_some() {
        bail!("--log: a drive is an SSD; leave it out");
    }
    Ok(spec.ssd())
}

/// Bytes that a drive serves: whole pages.
fn capacity(spec: &DeviceSpec) -> f64 {
    spec.device.logical_size.map_or(0.0, |size| size.0.next_multiple_of(spec.device.page_size.0) as f64)
}

/// Makes an image.
pub fn create(args: &CreateArgs) -> anyhow::Result<ExitCode> {
    let spec = device(&args.device)?;
    if args.device.print_config {
        print(&args.device.config(&args.device.single()?)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = || args.image.display().to_string();
    Drive::create(&args.image, spec.clone(), args.seed).with_context(name)?;
    let most = Drive::image_bytes(&spec, args.seed)?;
    print(&format!(
        "{}: a drive of {}; the file grows to at most {}\n",
        name(),
        output::bytes(capacity(&spec)),
        output::bytes(most as f64)
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("{}: cannot open the image; check the name", path.display()))
}

/// Prints what an image is.
pub fn info(args: &InfoArgs) -> anyhow::Result<ExitCode> {
    let name = || args.image.display().to_string();
    let about = image::about(&open(&args.image)?).with_context(name)?;
    let kept = std::os::unix::fs::MetadataExt::blocks(&args.image.metadata()?) * 512;
    let host = about.totals.host;
    let programmed = (about.totals.programs.total() + about.totals.copies.total()) as f64;
    let media = programmed * f64::from(about.layout.geometry.page_bytes());
    print(&format!(
        "image            {}, format {}\n\
         capacity         {} logical; {} blocks of {} pages of {}\n\
         on disk          {} of at most {}\n\
         ended            {}\n\
         host             {} written, {} read, {} trimmed\n\
         media            {} written (write amplification {})\n\
         power            {} cycles, {} of them after a loss of power\n\n{}",
        args.image.display(),
        image::VERSION,
        output::bytes(capacity(&about.header.spec)),
        about.layout.geometry.blocks,
        about.layout.geometry.pages_per_block(),
        output::bytes(f64::from(about.layout.geometry.page_bytes())),
        output::bytes(kept as f64),
        output::bytes(about.layout.length as f64),
        if about.was_clean { "in order" } else { "by a loss of power, or it is in use" },
        output::bytes(host.bytes_written as f64),
        output::bytes(host.bytes_read as f64),
        output::bytes(host.bytes_trimmed as f64),
        output::bytes(media),
        output::real((host.bytes_written > 0).then(|| media / host.bytes_written as f64), 3),
        host.power_cycles,
        host.unsafe_shutdowns,
        about.header.spec.to_toml(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a whole image. Exit code 1 where something is damaged.
pub fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let name = || args.image.display().to_string();
    // What a server has in memory is damage to whoever reads only the file.
    let file = Drive::claim(&args.image).with_context(name)?;
    let findings = image::check(&file).with_context(name)?;
    let mut text = String::new();
    for page in &findings.damaged {
        text += &format!("damaged: {}\n", describe(page));
    }
    for lpn in &findings.damaged_frames {
        text += &format!("damaged: LPN {lpn}, which the protected write buffer held\n");
    }
    if findings.checkpoint_was_damaged {
        text += "damaged: the checkpoint (the OOB areas say the same; opening takes longer once)\n";
    }
    if findings.mended_records > 0 {
        let records = output::whole(findings.mended_records);
        text +=
            &format!("mended: {records} records of OOB areas or erases are damaged, and were read from their copies\n");
    }
    let damaged = findings.damaged.len() + findings.damaged_frames.len();
    let count = damaged as u64 + u64::from(findings.checkpoint_was_damaged);
    text += &format!(
        "{}: {} pages read, {}{}\n",
        args.image.display(),
        output::whole(findings.pages),
        if count == 0 { "nothing is damaged".to_owned() } else { format!("{} damaged", output::whole(count)) },
        if findings.was_clean {
            String::new()
        } else {
            format!("; it ended by a loss of power ({} operations do not count)", findings.lost_operations)
        }
    );
    print(&text)?;
    Ok(if count == 0 { ExitCode::SUCCESS } else { ExitCode::from(crate::CHECK_FAILED) })
}

fn describe(page: &DamagedPage) -> String {
    let held = match page.held {
        Some(Kind::Data) => format!("data of LPN {}", page.address),
        Some(Kind::Translation) => format!("translation page {}", page.address),
        Some(Kind::Tombstone) => format!("log of trims {}", page.address),
        Some(Kind::Unreadable) | None => "its OOB area is damaged too".to_owned(),
    };
    format!("{}, page {}, byte {} of the image: {held}", page.block, page.index, page.offset)
}
