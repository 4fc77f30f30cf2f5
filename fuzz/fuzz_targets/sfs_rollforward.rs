//! What an SFS volume finds behind its last checkpoint: writes of the log whose summaries hold arbitrary records and transactions under
//! right checksums, with any sequence number, in any segment. Each is applied or ends the log; the volume opens or is refused, and a check,
//! a repair and requests come to an end.
#![no_main]

use isotherm_fs::check::{Repair, check};
use isotherm_fs::format::summary::Summary;
use isotherm_fs::log::read_superblock;
use isotherm_fs::log::segment_reader::SegmentReader;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fuzz_targets::{change, images, open, walk};
use isotherm_vfs::ROOT;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

/// The writes that the log of the volume that was not closed has behind its last checkpoint, and before.
fn writes() -> &'static [Summary] {
    static WRITES: OnceLock<Vec<Summary>> = OnceLock::new();
    WRITES.get_or_init(|| {
        let device = MemoryDevice::of(images()[1].clone());
        let superblock = read_superblock(&device).expect("it is whole");
        let reader = SegmentReader::new(&device, &superblock);
        (0..superblock.segments).flat_map(|segment| reader.summaries(segment).collect::<Vec<_>>()).collect()
    })
}

/// Changes a summary as `how` says, of which every byte does something.
fn spoil(summary: &mut Summary, how: [u8; 4]) {
    let [what, at, value, more] = how;
    let place = usize::from(at) | usize::from(more) << 8;
    let count = summary.records.len().max(1);
    match what % 8 {
        0..=3 if !summary.redo.is_empty() => {
            let place = place % summary.redo.len();
            summary.redo[place] ^= value;
        }
        4 => summary.redo.truncate(place),
        5 => summary.sequence = summary.sequence.wrapping_add(u64::from(value)),
        6 => summary.next_segment = u32::from(value),
        _ => {
            if let Some(record) = summary.records.get_mut(place % count) {
                record.heat.writes ^= u32::from(value);
                record.heat.time ^= u32::from(more);
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = images()[1].clone();
    let writes = writes();
    for change in data.chunks_exact(5) {
        let mut summary = writes[usize::from(change[0]) % writes.len()].clone();
        let blocks = summary.first_block();
        spoil(&mut summary, [change[1], change[2], change[3], change[4]]);
        let encoded = summary.encode();
        let at = summary.position as usize * 4096;
        // A redo log that became shorter moves no block.
        if summary.first_block() == blocks {
            bytes[at..at + encoded.len()].copy_from_slice(&encoded);
        }
    }
    let device = Arc::new(MemoryDevice::of(bytes));
    if let Some(volume) = open(device.clone(), true) {
        walk(&volume, ROOT, 4, false);
    }
    let _ = check(device.clone(), Repair::Yes);
    if let Some(volume) = open(device, false) {
        walk(&volume, ROOT, 4, false);
        change(&volume);
    }
});
