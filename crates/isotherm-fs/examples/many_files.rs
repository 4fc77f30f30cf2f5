//! What a large volume with many files takes of memory and time, without any mount.
//!
//! ```sh
//! cargo run --release -p isotherm-fs --example many_files -- build IMAGE [--gibibytes 1024] [--files 10000000]
//! cargo run --release -p isotherm-fs --example many_files -- work IMAGE [--operations 200000]
//! ```
//!
//! `build` makes a volume on a new sparse file, with files in folders of 1,000; every hundredth holds 5,000 bytes. `work`, in a process
//! of its own, opens it, lists every folder as `find -ls` does with a kernel that forgets none of the nodes it was told of, and
//! then looks names up, reads, writes, makes and removes files at random. Each prints, as JSON, seconds and the most memory that the
//! process had at any time (`VmHWM` of Linux). A thread looks after the volume in both, as when it is mounted.

use isotherm::random::Random;
use isotherm_fs::device::FileDevice;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::LogSettings;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::{Background, Intervals, Volume, make};
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, Ino, NewNode, OpenFlags, ROOT, Time, WriteFlags};
use serde_json::json;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

type Error = Box<dyn std::error::Error>;
type Files = Arc<Volume>;

const FILES_OF_FOLDER: u64 = 1000;
const FILES_WITH_DATA: u64 = 100;
const BYTES: [u8; 5000] = [7; 5000];

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

fn node(kind: FileKind) -> NewNode {
    NewNode { kind, permissions: 0o755, umask: 0, device: 0 }
}

/// The most memory that this process had, in MiB.
fn most_memory() -> Result<f64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// Makes a file, which the kernel forgets at once.
fn make_file(volume: &Files, folder: Ino, name: &str, data: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let (made, opened) = volume.create(Caller::default(), folder, name.as_bytes(), node(FileKind::Regular), flags)?;
    if !data.is_empty() {
        volume.write(made.ino, opened.handle, 0, data, WriteFlags::default())?;
    }
    volume.release(made.ino, opened.handle);
    volume.forget(made.ino, 1);
    Ok(())
}

fn build(image: &str, gibibytes: u64, files: u64) -> Result<(), Error> {
    let start = Instant::now();
    let file = File::options().read(true).write(true).create_new(true).open(image)?;
    file.set_len(gibibytes << 30)?;
    let device = Arc::new(FileDevice::new(file)?);
    let superblock = divide(gibibytes << 30, &Wishes { data_checksums: true, ..Wishes::default() })?;
    make(device.clone(), &superblock, &FormatOptions::default())?;
    let volume = Arc::new(Volume::open(device, LogSettings::parse("sfs")?, now)?.0);
    let background = Background::start(volume.clone(), Intervals::default())?;
    let mut folder = ROOT;
    for number in 0..files {
        if number % FILES_OF_FOLDER == 0 {
            let name = format!("folder-{}", number / FILES_OF_FOLDER);
            folder = volume.make_node(Caller::default(), ROOT, name.as_bytes(), node(FileKind::Directory))?.ino;
            volume.forget(folder, 1);
        }
        let data = if number % FILES_WITH_DATA == 0 { &BYTES[..] } else { &[] };
        make_file(&volume, folder, &format!("file-{number}"), data)?;
        if number % 1_000_000 == 999_999 {
            eprintln!("{} files, {:.0} s, {:.0} MiB", number + 1, start.elapsed().as_secs_f64(), most_memory()?);
        }
    }
    drop(background);
    volume.close()?;
    println!("{}", json!({ "files": files, "seconds": start.elapsed().as_secs_f64(), "memory_mib": most_memory()? }));
    Ok(())
}

/// The entries of a folder that are nodes of their own, all of which the kernel refers to from now on.
fn list(volume: &Files, folder: Ino) -> Result<Vec<(Ino, Vec<u8>)>, Errno> {
    let mut found: Vec<(Ino, Vec<u8>)> = Vec::new();
    let mut from = 0;
    loop {
        let (before, mut taken) = (from, 0);
        volume.read_directory_plus(folder, from, &mut |entry, _| {
            // As many as a request of the kernel has room for.
            if taken == 32 {
                return false;
            }
            (taken, from) = (taken + 1, entry.cookie);
            if !matches!(entry.name, b"." | b"..") {
                found.push((entry.ino, entry.name.to_vec()));
            }
            true
        })?;
        if from == before {
            return Ok(found);
        }
    }
}

fn work(image: &str, operations: u64) -> Result<(), Error> {
    let start = Instant::now();
    let device = Arc::new(FileDevice::new(File::options().read(true).write(true).open(image)?)?);
    let volume = Arc::new(Volume::open(device, LogSettings::parse("sfs")?, now)?.0);
    let mounted = start.elapsed().as_secs_f64();
    let background = Background::start(volume.clone(), Intervals::default())?;
    let folders = list(&volume, ROOT)?;
    let mut nodes = 0;
    for (number, (folder, _)) in folders.iter().enumerate() {
        nodes += list(&volume, *folder)?.len();
        if number % 1000 == 999 {
            eprintln!("{nodes} nodes, {:.0} s, {:.0} MiB", start.elapsed().as_secs_f64(), most_memory()?);
        }
    }
    let listed = start.elapsed().as_secs_f64() - mounted;
    let memory_listed = most_memory()?;
    let mut random = Random::new(1);
    for operation in 0..operations {
        let folder = random.below(folders.len() as u64);
        let name = format!("file-{}", folder * FILES_OF_FOLDER + random.below(FILES_OF_FOLDER));
        let folder = volume.lookup(ROOT, format!("folder-{folder}").as_bytes())?.ino;
        match operation % 4 {
            0 => make_file(&volume, folder, &format!("new-{operation}"), &BYTES)?,
            1 => match volume.lookup(folder, name.as_bytes()) {
                Ok(found) => {
                    volume.unlink(folder, name.as_bytes())?;
                    // The kernel forgets all references to what has no name.
                    volume.forget(found.ino, u64::MAX);
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
            _ => match volume.lookup(folder, name.as_bytes()) {
                Ok(found) => {
                    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
                    let opened = volume.open(found.ino, flags)?;
                    let mut read = Vec::new();
                    volume.read(found.ino, opened.handle, 0, 4096, &mut read)?;
                    volume.write(found.ino, opened.handle, 0, &BYTES[..100], WriteFlags::default())?;
                    volume.release(found.ino, opened.handle);
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    let worked = start.elapsed().as_secs_f64() - mounted - listed;
    drop(background);
    volume.close()?;
    let told = json!({
        "nodes": nodes,
        "seconds_to_open": mounted,
        "seconds_to_list": listed,
        "memory_listed_mib": memory_listed,
        "operations": operations,
        "seconds_to_work": worked,
        "memory_mib": most_memory()?,
    });
    println!("{told}");
    Ok(())
}

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, image, options @ ..] = &words[..] else {
        return Err("many_files build|work IMAGE [--gibibytes N] [--files N] [--operations N]".into());
    };
    let mut given = HashMap::new();
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err("every option has a value".into()) };
        given.insert(name.trim_start_matches('-'), value.parse::<u64>()?);
    }
    let number = |name: &str, default: u64| given.get(name).copied().unwrap_or(default);
    match verb.as_str() {
        "build" => build(image, number("gibibytes", 1024), number("files", 10_000_000)),
        "work" => work(image, number("operations", 200_000)),
        _ => Err(format!("{verb}: neither build nor work").into()),
    }
}
