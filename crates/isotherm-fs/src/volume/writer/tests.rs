//! Checkpoints that leave out what would make pages dirty.

use super::*;
use crate::check::{Options, check};
use crate::device::Device;
use crate::format::checkpoint::Checkpoint;
use crate::geometry::{Wishes, divide};
use crate::log::{LogSettings, read_checkpoints};
use crate::memory_device::MemoryDevice;
use crate::tree::FormatOptions;
use isotherm_vfs::{Caller, FileKind, FileSystem, Handle, NewNode, ROOT, Time, WriteFlags};
use std::sync::Arc;

fn mount(device: &Arc<MemoryDevice>) -> Volume {
    Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it can be opened").0
}

/// A volume whose last checkpoint was made while requests were held, with a block of a file whose inode does not count it: the file waits
/// again. Returns that checkpoint and its first block.
fn held_back() -> (Arc<MemoryDevice>, Checkpoint, u32) {
    let device = Arc::new(MemoryDevice::new(12 << 20));
    let wishes = Wishes {
        segment_bytes: Some(256 << 10),
        erase_block_bytes: 0,
        label: "sample".into(),
        data_checksums: true,
        uuid: [9; 16],
        created_seconds: 1,
    };
    let superblock = divide(device.length(), &wishes).expect("it can be divided");
    crate::volume::make(device.clone(), &superblock, &FormatOptions::default()).expect("the device works");
    let volume = mount(&device);
    let [file, other] = [b"a", b"b"].map(|name| {
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        volume.make_node(Caller::default(), ROOT, name, node).expect("there is room").ino
    });
    volume.checkpoint().expect("the device works");
    let write = |ino, block: u64| {
        volume
            .write(ino, Handle::default(), block * BLOCK_BYTES as u64, &[1; BLOCK_BYTES], WriteFlags::default())
            .expect("there is room");
    };
    let data_blocks = || volume.figures().expect("no panic").counters.data_blocks;
    let before = data_blocks();
    write(file, 0);
    // Until there are so many that some are written.
    (0..).take_while(|_| data_blocks() == before).for_each(|block| write(other, block));
    write(file, 0);
    let held = volume.seated(|writer| {
        // As where room is short at once.
        lock(&volume.tree)?.store_mut().hold_requests(true);
        writer.holds_requests = true;
        volume.commit(writer, false)
    });
    held.expect("the device works");
    let newest = read_checkpoints(&*device, &superblock).expect("the device works").into_iter().flatten();
    let newest = newest.max_by_key(|found| found.number).expect("there is one");
    let place = superblock.checkpoints[(newest.number % 2) as usize];
    (device, newest, place)
}

/// After a crash roll-forward did not meet the block, and nothing counted it: "0 blocks are counted, 1 are there".
#[test]
fn blocks_before_a_checkpoint_that_holds_requests_back_are_counted_after_a_crash() {
    // As if there were more such files than a checkpoint names, too.
    for is_any in [false, true] {
        let (device, mut checkpoint, place) = held_back();
        if is_any {
            checkpoint.lagging = Lagging::Any;
            device.write(u64::from(place) * BLOCK_BYTES as u64, &checkpoint.encode()).expect("it has room");
        }
        let report = check(device.clone(), Options::default());
        assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
        mount(&device).close().expect("the device works");
        assert_eq!(check(device, Options::default()).findings, []);
    }
}
