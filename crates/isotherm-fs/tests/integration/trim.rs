//! fstrim(8): free segments are discarded when it asks for it, in the part of the device that it names.

use crate::support::recording::{Content, Event, RecordingDevice};
use crate::support::sample::{DEVICE_BYTES, add, mount, write};
use crate::support::volumes::make_on;
use isotherm_fs::check::{Options, check};
use isotherm_fs::log::LogSettings;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Errno, FileKind, FileSystem, Handle, ROOT, Time};
use std::ops::Range;

const BLOCK: u64 = 4096;
const SEGMENT: u64 = 256 << 10;

#[test]
fn what_is_free_in_a_range_is_discarded_and_nothing_else() {
    let device = make_on(RecordingDevice::new(DEVICE_BYTES, Content::default()), SEGMENT);
    // Nothing is discarded unasked.
    let settings = LogSettings { discard: false, cache_bytes: 1 << 20, ..LogSettings::default() };
    let volume = Volume::open(device.clone(), settings, Time::default).expect("it is new").0;
    let files = ["kept", "removed", "kept too"].map(|name| {
        let ino = add(&volume, ROOT, name, FileKind::Regular);
        (0..8).for_each(|part| write(&volume, ino, part * SEGMENT, &[name.len() as u8; SEGMENT as usize]));
        volume.checkpoint().expect("the device works");
        ino
    });
    volume.unlink(ROOT, b"removed").expect("it is there");
    volume.checkpoint().expect("the device works");

    let trim = |range: Range<u64>, smallest| {
        let before = device.events();
        let told = volume.discard_free(range, smallest).expect("the device works");
        let events = device.parts().1;
        let discarded = |event: &Event| match event {
            Event::Discard { offset, length } => Some((*offset, *length)),
            _ => None,
        };
        let runs: Vec<(u64, u64)> = events[before..].iter().filter_map(discarded).collect();
        assert_eq!(told, runs.iter().map(|run| run.1).sum::<u64>());
        runs
    };
    let all = trim(0..u64::MAX, 0);
    assert!(all.len() > 1, "what is free lies in one piece: {all:?}");
    let lengths = || all.iter().map(|run| run.1);
    assert!(lengths().all(|length| length % SEGMENT == 0) && lengths().sum::<u64>() > 8 * SEGMENT, "{all:?}");
    assert_eq!(trim(0..DEVICE_BYTES, 0), all);

    // From within the first piece to within the last: whole blocks that lie in the range.
    let (first, last) = (all[0], all[all.len() - 1]);
    let mut expected = all.clone();
    expected[0] = (first.0 + 3 * BLOCK, first.1 - 3 * BLOCK);
    expected[all.len() - 1].1 = 2 * BLOCK;
    assert_eq!(trim(first.0 + 2 * BLOCK + 1..last.0 + 3 * BLOCK - 1, 0), expected);
    // A piece is as long as what lies in the range.
    assert_eq!(trim(last.0..last.0 + 2 * BLOCK, 2 * BLOCK), [(last.0, 2 * BLOCK)]);
    assert_eq!(trim(last.0..last.0 + 2 * BLOCK, 2 * BLOCK + 1), []);
    assert_eq!(trim(last.0 + 1..last.0 + BLOCK, 0), []);
    let longest = lengths().max().expect("there are some");
    let long: Vec<_> = all.iter().copied().filter(|run| run.1 == longest).collect();
    assert!(long.len() < all.len());
    assert_eq!((trim(0..u64::MAX, longest), trim(0..u64::MAX, longest + 1)), (long, vec![]));
    assert_eq!(volume.discard_free(DEVICE_BYTES..u64::MAX, 0), Err(Errno::INVAL));

    // What was discarded reads as zeros here: it was needed by nothing.
    volume.close().expect("the device works");
    drop(volume);
    let report = check(device.clone(), Options { verifies_data: true, ..Options::default() });
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
    let volume = mount(device.clone(), true);
    for (ino, byte) in [(files[0], 4), (files[2], 8)] {
        for part in 0..8 {
            let mut found = Vec::new();
            volume.read(ino, Handle::default(), part * SEGMENT, SEGMENT as u32, &mut found).expect("it is there");
            assert!(found == [byte; SEGMENT as usize]);
        }
    }
    let before = device.events();
    assert_eq!(volume.discard_free(0..u64::MAX, 0), Err(Errno::ROFS));
    assert_eq!(device.events(), before);
}
