//! An SFS volume with arbitrary bytes changed, or cut: it is refused, or all that can be read of it is what was written; a check, a
//! repair and requests come to an end. Checksums at fixed places may be made right again, so that what they guard is reached; then any
//! content will do.
#![no_main]

use isotherm_fs::check::{Repair, check};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fuzz_targets::{change, images, open, walk};
use isotherm_vfs::ROOT;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Makes the checksum of `bytes` right, which stands at `at` in them.
fn forge(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let checksum = crc32c::crc32c(bytes);
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

fuzz_target!(|data: &[u8]| {
    let [which, how, changes @ ..] = data else { return };
    let mut bytes = images()[usize::from(*which) % 2].clone();
    let checkpoints = [80, 84].map(|at| number(&bytes, at) * 4096);
    let checkpoint_bytes = number(&bytes, 88) * 4096;
    let forges = how % 2 == 1;
    for change in changes.chunks_exact(4) {
        let anywhere = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        // What stands at fixed places is a small part of the volume, and the part that is forged.
        let at = if forges { anywhere % (checkpoints[1] + checkpoint_bytes) } else { anywhere % bytes.len() };
        bytes[at] ^= change[3];
    }
    if forges {
        for copy in [0, 4096] {
            forge(&mut bytes[copy..copy + 4096], 12);
        }
        for place in checkpoints {
            let header = |at: usize| number(&bytes, place + at);
            let after = header(88).saturating_mul(24) + header(92).saturating_mul(40) + header(96).saturating_mul(4);
            let length = 4096 + after.div_ceil(4096) * 4096;
            if length <= checkpoint_bytes {
                forge(&mut bytes[place..place + length], 8);
            }
        }
    }
    if *how >= 0xF0 {
        let length = bytes.len() * usize::from(*how - 0xEF) / 17;
        bytes.truncate(length);
    }
    let spoilt = || Arc::new(MemoryDevice::of(bytes.clone()));
    if let Some(volume) = open(spoilt(), true) {
        walk(&volume, ROOT, 4, !forges);
    }
    if let Some(volume) = open(spoilt(), false) {
        change(&volume);
    }
    let device = spoilt();
    let _ = check(device.clone(), Repair::Yes);
    if let Some(volume) = open(device, false) {
        walk(&volume, ROOT, 4, false);
        change(&volume);
    }
});
