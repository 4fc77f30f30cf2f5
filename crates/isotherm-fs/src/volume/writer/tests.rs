//! Checkpoints that leave out what would make pages dirty.

use super::*;
use crate::check::{Options, Repair, check};
use crate::device::Device;
use crate::format::checkpoint::Checkpoint;
use crate::format::superblock::Superblock;
use crate::geometry::{Wishes, divide};
use crate::log::{LogSettings, read_checkpoints};
use crate::memory_device::MemoryDevice;
use crate::store::{Purpose, Store};
use crate::tree::FormatOptions;
use isotherm_vfs::{Caller, FileKind, FileSystem, Handle, NewNode, ROOT, Time, WriteFlags};
use std::sync::Arc;

fn mount(device: &Arc<MemoryDevice>) -> Volume {
    Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it can be opened").0
}

fn superblock_of(device: &MemoryDevice) -> Superblock {
    let wishes = Wishes {
        segment_bytes: Some(256 << 10),
        erase_block_bytes: 0,
        label: "sample".into(),
        data_checksums: true,
        uuid: [9; 16],
        created_seconds: 1,
    };
    divide(device.length(), &wishes).expect("it can be divided")
}

/// A volume with a block in the log, since the last checkpoint, of a file whose inode does not count it: the file waits again.
fn waits_again() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new(12 << 20));
    crate::volume::make(device.clone(), &superblock_of(&device), &FormatOptions::default()).expect("the device works");
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
    (device, volume)
}

/// The same after a checkpoint that was made while requests were held. Returns that checkpoint and its first block.
fn held_back() -> (Arc<MemoryDevice>, Checkpoint, u32) {
    let (device, volume) = waits_again();
    let held = volume.seated(|writer| {
        // As where room is short at once.
        lock(&volume.tree)?.store_mut().hold_requests(true);
        writer.holds_requests = true;
        volume.commit(writer, false)
    });
    held.expect("the device works");
    let superblock = superblock_of(&device);
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

/// The list of files that lag takes a page, and there is none.
#[test]
fn files_that_the_list_has_no_room_for_are_counted_after_a_crash() {
    let (device, volume) = waits_again();
    let commit = || volume.seated(|writer| volume.commit(writer, false));
    let mut taken = Vec::new();
    volume
        .inspect(|tree| {
            let log = tree.store_mut();
            loop {
                log.begin(Purpose::Shrink).expect("it can be written");
                match log.allocate() {
                    Ok(id) => taken.push(id),
                    Err(error) => {
                        assert_eq!(error, StoreError::NoSpace);
                        return log.abort();
                    }
                }
                log.commit();
            }
        })
        .expect("no panic");
    commit().expect("the device works");
    assert_eq!(volume.inspect(|tree| tree.listed()).expect("no panic").expect("it can be read").len(), 0);
    volume
        .inspect(|tree| {
            let log = tree.store_mut();
            for id in taken {
                log.begin(Purpose::Shrink).and_then(|()| log.free(id)).expect("it is there");
                log.commit();
            }
        })
        .expect("no panic");
    volume.fsync_directory(ROOT).expect("the device works");
    drop(volume);
    mount(&device).close().expect("the device works");
    assert_eq!(check(device, Options::default()).findings, []);
}

/// Both files were empty when the last transaction was logged: a repair of something else leaves nothing behind their ends, as a mount does.
#[test]
fn a_repair_gives_back_what_lies_behind_the_ends_of_files_that_a_checkpoint_names() {
    let (device, ..) = held_back();
    assert!(check(device.clone(), Options::default()).data_blocks > 0);
    // A copy of the superblock.
    device.write(BLOCK_BYTES as u64, &[0; BLOCK_BYTES]).expect("it has room");
    let report = check(device.clone(), Options { repair: Repair::Yes, ..Options::default() });
    assert_eq!(report.exit_code(), 1, "{:#?}", report.findings);
    let report = check(device, Options::default());
    assert_eq!((report.data_blocks, report.findings), (0, Vec::new()));
}
