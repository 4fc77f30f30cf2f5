//! `sfs mkfs`: an empty volume.

use super::device::{Access, open};
use super::signatures::{held, wipe};
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm::quantity::ByteSize;
use isotherm_fs::device::Device;
use isotherm_fs::format::superblock::Superblock;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::read_superblock;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::make;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments of `mkfs`.
#[derive(Args)]
pub struct MkfsArgs {
    /// File or block device; a file that is not there is made with `--size`
    device: PathBuf,
    /// Size of the file to make, such as 8GiB
    #[arg(long, value_name = "BYTES")]
    size: Option<ByteSize>,
    /// Bytes of a segment, 256KiB to 1GiB [default: 32MiB, less where a volume would have fewer than 256]
    #[arg(long, value_name = "BYTES")]
    segment: Option<ByteSize>,
    /// Erase block of the device; segments are a multiple of it
    #[arg(long, value_name = "BYTES", default_value = "0B")]
    erase_block: ByteSize,
    /// Name of the volume, at most 32 bytes
    #[arg(short = 'L', long, default_value = "")]
    label: String,
    /// Do not verify file data by checksums when it is read
    #[arg(long)]
    no_data_checksums: bool,
    /// Make it although there is a volume already, or something else
    #[arg(short, long)]
    force: bool,
}

/// Makes an empty volume, with an identity of its own.
pub fn format(device: Arc<dyn Device>, wishes: Wishes) -> anyhow::Result<Superblock> {
    let mut random = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("/dev/urandom: no random numbers")?;
    let (uuid, key) = random.split_at(16);
    let now = super::mount::now();
    let wishes = Wishes { uuid: uuid.try_into().expect("16 bytes"), created_seconds: now.seconds as u64, ..wishes };
    let superblock = divide(device.length(), &wishes)?;
    let options = FormatOptions {
        hash_key: key.try_into().expect("16 bytes"),
        hash_dropped_bits: 0,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        permissions: 0o755,
        now,
    };
    make(device, &superblock, &options)?;
    Ok(superblock)
}

/// Makes the volume. A file that was made for it goes where it cannot hold one.
pub fn run(args: &MkfsArgs) -> anyhow::Result<ExitCode> {
    let path = &args.device;
    let Some(ByteSize(bytes)) = args.size else { return make_on(args) };
    let file = File::options().write(true).create_new(true).open(path).with_context(|| {
        format!("{}: --size makes a new file; leave it out to use one that is there", path.display())
    })?;
    let sized = file.set_len(bytes).with_context(|| format!("{}: cannot have {bytes} bytes", path.display()));
    sized.and_then(|()| make_on(args)).inspect_err(|_| {
        // The error that is told is the one that matters.
        let _ = std::fs::remove_file(path);
    })
}

/// Makes it on a file or device that is there.
fn make_on(args: &MkfsArgs) -> anyhow::Result<ExitCode> {
    let path = &args.device;
    let device = open(path, Access::Write, || true)?;
    let name = || path.display().to_string();
    if !args.force {
        if read_superblock(&*device).is_ok() {
            bail!("{}: holds a volume already; --force makes a new one, and what is in it is lost", path.display());
        }
        if let Some(held) = held(&*device).with_context(name)? {
            bail!(
                "{}: holds {held}; --force makes a volume of SFS in its place, and what is in it is lost",
                path.display()
            );
        }
    }
    let wishes = Wishes {
        segment_bytes: args.segment.map(|bytes| bytes.0),
        erase_block_bytes: args.erase_block.0,
        label: args.label.clone(),
        data_checksums: !args.no_data_checksums,
        ..Wishes::default()
    };
    // First what can be refused without a write.
    divide(device.length(), &wishes).with_context(name)?;
    wipe(&*device).with_context(name)?;
    let superblock = format(device, wishes).with_context(name)?;
    println!(
        "{}: SFS, {} segments of {} KiB, {} of them in reserve",
        path.display(),
        superblock.segments,
        superblock.segment_blocks * 4,
        superblock.reserve_segments
    );
    Ok(ExitCode::SUCCESS)
}
