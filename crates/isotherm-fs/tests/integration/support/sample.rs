//! A small volume with everything on it, and all that can be read of one.

use super::volumes::make_on;
use isotherm_fs::device::Device;
use isotherm_fs::log::{LogSettings, OpenError};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{
    Allocation, Caller, Errno, FileKind, FileSystem, Handle, Ino, NewNode, ROOT, SetXattr, Time, WriteFlags,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const DEVICE_BYTES: u64 = 12 << 20;

/// An empty volume.
pub fn empty() -> Arc<MemoryDevice> {
    make_on(MemoryDevice::new(DEVICE_BYTES), 256 << 10)
}

/// Mounts.
pub fn mount(device: Arc<dyn Device>, read_only: bool) -> Volume {
    open(device, read_only).expect("it can be opened")
}

/// Mounts what may be damaged.
pub fn open(device: Arc<dyn Device>, read_only: bool) -> Result<Volume, OpenError> {
    let settings = LogSettings { read_only, cache_bytes: 1 << 20, ..LogSettings::default() };
    Volume::open(device, settings, Time::default).map(|(volume, _)| volume)
}

pub fn node(kind: FileKind) -> NewNode {
    NewNode { kind, permissions: 0o755, umask: 0, device: 0 }
}

/// Makes a node and keeps no reference.
pub fn add(volume: &Volume, parent: Ino, name: &str, kind: FileKind) -> Ino {
    let ino = volume.make_node(Caller::default(), parent, name.as_bytes(), node(kind)).expect("there is room").ino;
    volume.forget(ino, 1);
    ino
}

pub fn write(volume: &Volume, ino: Ino, offset: u64, data: &[u8]) {
    volume.write(ino, Handle::default(), offset, data, WriteFlags::default()).expect("there is room");
}

/// Inodes of the sample that tests damage.
pub struct Sample {
    pub device: Arc<MemoryDevice>,
    pub directory: Ino,
    pub inner: Ino,
    pub large: Ino,
    pub link: Ino,
    pub with_xattrs: Ino,
}

/// A few hundred operations; closed, or as a crash leaves it.
pub fn sample(closes: bool) -> Sample {
    let device = empty();
    let volume = mount(device.clone(), false);
    let directory = add(&volume, ROOT, "directory", FileKind::Directory);
    let inner = add(&volume, directory, "inner", FileKind::Directory);
    let large = add(&volume, inner, "large", FileKind::Regular);
    for block in (0..700u64).step_by(3) {
        write(&volume, large, block * 4096, &[block as u8 | 1; 4096]);
    }
    for i in 0..160u32 {
        let parent = if i % 3 == 0 { ROOT } else { directory };
        let ino = add(&volume, parent, &format!("a name that is somewhat longer than needed {i}"), FileKind::Regular);
        write(&volume, ino, 0, &vec![i as u8 + 1; 100 + i as usize * 60]);
        if i == 80 {
            volume.checkpoint().expect("the device works");
        }
    }
    for i in (1..160u32).step_by(5) {
        let parent = if i % 3 == 0 { ROOT } else { directory };
        let name = format!("a name that is somewhat longer than needed {i}");
        volume.unlink(parent, name.as_bytes()).expect("it is there");
    }
    let link = volume.symlink(Caller::default(), ROOT, b"link", &[b'x'; 3000]).expect("there is room").ino;
    volume.forget(link, 1);
    let with_xattrs = add(&volume, ROOT, "xattrs", FileKind::Regular);
    let how = SetXattr::default();
    volume.set_xattr(Caller::default(), with_xattrs, b"user.long", &[7; 9000], how).expect("there is room");
    volume.link(with_xattrs, inner, b"another name").expect("there is room");
    volume.forget(with_xattrs, 1);
    volume
        .allocate(
            Caller::default(),
            with_xattrs,
            Handle::default(),
            0,
            40 << 12,
            Allocation::Reserve { keep_size: false },
        )
        .expect("there is room");
    add(&volume, inner, "fifo", FileKind::Fifo);
    for block in (0..700u64).step_by(30) {
        write(&volume, large, block * 4096 + 5, &[3; 77]);
    }
    volume.fsync(large, false).expect("the device works");
    if closes {
        volume.close().expect("the device works");
    }
    drop(volume);
    Sample { device, directory, inner, large, link, with_xattrs }
}

/// What is at each path: attributes and content, or the error of reading it.
pub fn read_all(device: &Arc<MemoryDevice>) -> Result<BTreeMap<Vec<u8>, String>, String> {
    let settings = LogSettings { read_only: true, cache_bytes: 1 << 20, ..LogSettings::default() };
    let (volume, _) = Volume::open(device.clone(), settings, Time::default).map_err(|error| error.to_string())?;
    let mut all = BTreeMap::new();
    read_below(&volume, ROOT, b"", &mut all, 0).map_err(|error| error.to_string())?;
    Ok(all)
}

fn read_below(
    volume: &Volume,
    ino: Ino,
    path: &[u8],
    all: &mut BTreeMap<Vec<u8>, String>,
    depth: u32,
) -> Result<(), Errno> {
    let mut attributes = volume.attributes(ino)?;
    // After a crash blocks of files are counted at their next change.
    attributes.blocks_512 = 0;
    let mut text = format!("{attributes:?}");
    for name in volume.xattrs(ino)? {
        text += &format!(" {name:?} {:x}", crc32c(&volume.xattr(ino, &name)?));
    }
    match attributes.kind {
        FileKind::Regular => {
            let mut content = Vec::new();
            volume.read(ino, Handle::default(), 0, attributes.size as u32, &mut content)?;
            text += &format!(" {} {:x}", content.len(), crc32c(&content));
        }
        FileKind::Symlink => text += &format!(" {:x}", crc32c(&volume.read_link(ino)?)),
        FileKind::Directory if depth < 10 => {
            let mut names = Vec::new();
            volume.read_directory(ino, 0, &mut |entry| {
                if entry.name != b"." && entry.name != b".." {
                    names.push((entry.ino, entry.name.to_vec()));
                }
                true
            })?;
            for (ino, name) in names {
                read_below(volume, ino, &[path, b"/", &name].concat(), all, depth + 1)?;
            }
        }
        _ => {}
    }
    all.insert(path.to_vec(), text);
    Ok(())
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
