//! A small SFS volume with something of everything, which the targets spoil, and what is asked of whatever is left of it.

use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::{Volume, make};
use isotherm_vfs::{
    Caller, Errno, FileKind, FileSystem, Handle, Ino, NewNode, OpenFlags, ROOT, SetXattr, Time, WriteFlags,
};
use std::sync::{Arc, OnceLock};

/// Files of the volume; the blocks of the one with number n hold n + 1 in every byte.
const FILES: u8 = 40;

pub fn node(kind: FileKind) -> NewNode {
    NewNode { kind, permissions: 0o755, umask: 0, device: 0 }
}

fn settings(read_only: bool) -> LogSettings {
    LogSettings { read_only, cache_bytes: 1 << 20, ..LogSettings::default() }
}

/// Opens what is on a device, if it can be opened.
pub fn open(device: Arc<MemoryDevice>, read_only: bool) -> Option<Volume> {
    Volume::open(device, settings(read_only), Time::default).ok().map(|opened| opened.0)
}

fn fill(volume: &Volume) -> Result<(), Errno> {
    let caller = Caller::default();
    let folder = volume.make_node(caller, ROOT, b"folder", node(FileKind::Directory))?.ino;
    for number in 0..FILES {
        let parent = if number % 2 == 0 { ROOT } else { folder };
        let file = volume.make_node(caller, parent, &name(number), node(FileKind::Regular))?.ino;
        let content = vec![number + 1; 4096 * (1 + usize::from(number) % 20)];
        volume.write(file, Handle::default(), 0, &content, WriteFlags::default())?;
        if number % 7 == 0 {
            volume.set_xattr(caller, file, b"user.name", &[number; 5000], SetXattr::default())?;
        }
        if number == FILES / 2 {
            volume.fsync(file, false)?;
            volume.checkpoint().map_err(|_| Errno::IO)?;
        }
    }
    volume.symlink(caller, folder, b"link", &[b't'; 3000])?;
    volume.unlink(folder, &name(1))?;
    volume.sync()
}

fn name(number: u8) -> Vec<u8> {
    format!("a name that fills the leaves of a folder sooner {number}").into_bytes()
}

fn image(is_clean: bool) -> Vec<u8> {
    let bytes = 7 << 20;
    let wishes = Wishes { segment_bytes: Some(256 << 10), data_checksums: true, ..Wishes::default() };
    let device = Arc::new(MemoryDevice::new(bytes));
    make(device.clone(), &divide(bytes, &wishes).expect("it has room"), &FormatOptions::default()).expect("memory");
    let volume = open(device.clone(), false).expect("it is new");
    fill(&volume).expect("it has room");
    if is_clean {
        volume.close().expect("memory");
    }
    device.bytes()
}

/// The bytes of a volume that was closed, and of one that was not.
pub fn images() -> &'static [Vec<u8>; 2] {
    static IMAGES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    IMAGES.get_or_init(|| [true, false].map(image))
}

/// Walks over all that can be reached, to a depth, and reads it. `is_true` says whether contents must be right where they can be read.
pub fn walk(volume: &Volume, folder: Ino, depth: u32, is_true: bool) {
    let mut entries: Vec<(Ino, FileKind, Vec<u8>)> = Vec::new();
    let _ = volume.read_directory(folder, 0, &mut |entry| {
        entries.push((entry.ino, entry.kind, entry.name.to_vec()));
        entries.len() < 1000
    });
    for (_, kind, name) in entries.into_iter().filter(|(_, _, name)| !matches!(&name[..], b"." | b"..")) {
        let Ok(found) = volume.lookup(folder, &name) else { continue };
        match kind {
            FileKind::Directory if depth > 0 => walk(volume, found.ino, depth - 1, is_true),
            FileKind::Regular => {
                let Ok(opened) = volume.open(found.ino, OpenFlags { read: true, ..OpenFlags::default() }) else {
                    continue;
                };
                let mut content = Vec::new();
                if volume.read(found.ino, opened.handle, 0, 1 << 17, &mut content).is_ok() && is_true {
                    let number = (0..FILES).find(|number| self::name(*number) == name);
                    let is_own = |byte: &u8| *byte == 0 || number.is_none_or(|number| *byte == number + 1);
                    assert!(content.iter().all(is_own), "a file holds what was never written to it");
                }
                volume.release(found.ino, opened.handle);
            }
            _ => drop(volume.read_link(found.ino)),
        }
        let _ = volume.xattrs(found.ino).map(|names| names.iter().map(|name| volume.xattr(found.ino, name)).count());
        volume.forget(found.ino, 1);
    }
}

/// Changes what can be changed, as programs would.
pub fn change(volume: &Volume) {
    let caller = Caller::default();
    if let Ok(made) = volume.make_node(caller, ROOT, b"made", node(FileKind::Regular)) {
        let _ = volume.write(made.ino, Handle::default(), 0, &[0; 20_000], WriteFlags::default());
        let _ = volume.fsync(made.ino, false);
    }
    for number in (0..FILES).step_by(4) {
        let _ = volume.unlink(ROOT, &name(number));
    }
    let _ = volume.clean_ahead();
    let _ = volume.close();
}
