//! Damaged copies of pages and of moved blocks in writes that were durable, where later writes go on from these copies.
//!
//! Once such a volume could not be mounted at all, nor repaired: "table page 0 was written in another state than the redo log leads to".

use crate::support::damage::{flip, newest_checkpoint, spoil, writes_since_checkpoint};
use crate::support::driver::{carry_out, clean};
use crate::support::sample::{add, empty, mount, open, read_all, write};
use isotherm_fs::check::{Options, Repair, check};
use isotherm_fs::device::Device;
use isotherm_fs::format::entry::Entry;
use isotherm_fs::format::summary::{BlockName, Summary};
use isotherm_fs::log::{Goal, OpenError};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Errno, FileKind, FileSystem, Handle, ROOT};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a crash leaves after a checkpoint that wrote its pages and never came to its own block, twice, with a segment cleaned
/// before each and files synced in between.
struct Crashed {
    bytes: Vec<u8>,
    all: BTreeMap<Vec<u8>, String>,
    /// The writes since the last checkpoint, in order.
    writes: Vec<Summary>,
}

fn crashed() -> Crashed {
    let device = empty();
    let volume = mount(device.clone(), false);
    let older: Vec<_> = (0..40).map(|i| add(&volume, ROOT, &format!("older {i}"), FileKind::Regular)).collect();
    older.iter().for_each(|ino| write(&volume, *ino, 0, &[*ino as u8; 5 * 4096]));
    let large = add(&volume, ROOT, "large", FileKind::Regular);
    write(&volume, large, 0, &[77; 60 * 4096]);
    volume.close().expect("the device works");
    let volume = mount(device.clone(), false);
    for round in 0..3u8 {
        let ino = add(&volume, ROOT, &format!("file {round}"), FileKind::Regular);
        write(&volume, ino, 0, &[round + 1; 3 * 4096]);
        write(&volume, large, u64::from(round) * 4096, &[round + 100; 4096]);
        volume.fsync(ino, false).expect("the device works");
        volume.fsync(large, false).expect("the device works");
        volume
            .inspect(|tree| {
                let log = tree.store_mut();
                assert!(clean(log), "there is a segment worth cleaning");
                carry_out(log, &Goal::Cleaned);
                carry_out(log, &Goal::Pages);
                device.flush().expect("the device works");
                log.set_flushed();
            })
            .expect("no panic");
    }
    // What tells that all before it was durable.
    for round in 0..2 {
        let ino = add(&volume, ROOT, &format!("last {round}"), FileKind::Regular);
        volume.fsync(ino, false).expect("the device works");
    }
    drop(volume);
    let writes = writes_since_checkpoint(&*device);
    Crashed { bytes: device.bytes(), all: read_all(&device).expect("a crash is no damage"), writes }
}

impl Crashed {
    fn device(&self) -> Arc<MemoryDevice> {
        Arc::new(MemoryDevice::of(self.bytes.clone()))
    }

    /// The blocks of writes that are known to have been durable: their names and positions, and whether a later write names each again.
    fn blocks(&self) -> Vec<(BlockName, u32, bool)> {
        let flushed = self.writes.iter().map(|summary| summary.flushed).max().expect("there are some");
        let names = |summary: &Summary| summary.records.iter().map(|record| record.name).collect::<Vec<_>>();
        let mut blocks = Vec::new();
        for (at, summary) in self.writes.iter().enumerate().filter(|(_, summary)| summary.sequence <= flushed) {
            let later: BTreeSet<_> = self.writes[at + 1..].iter().flat_map(names).collect();
            let named = (summary.first_block()..).zip(names(summary));
            blocks.extend(named.map(|(position, name)| (name, position, later.contains(&name))));
        }
        blocks
    }
}

#[test]
fn no_damaged_copy_of_a_page_or_a_moved_block_costs_anything() {
    let crashed = crashed();
    let mut seen = BTreeSet::new();
    for (number, (name, position, is_named_again)) in crashed.blocks().into_iter().enumerate() {
        let is_one_bit = number % 2 == 0;
        let device = crashed.device();
        let at = u64::from(position) * 4096;
        if is_one_bit {
            flip(&device, at + 1234, 5)
        } else {
            spoil(&device, at + 1234)
        }
        let report = check(device.clone(), Repair::No);
        // Of what the host wrote there is no other copy.
        let is_lost = report.exit_code() == 4;
        assert!(!is_lost || matches!(name, BlockName::Data(..)), "{name:?}: {:?}", report.findings);
        if !is_lost {
            assert_eq!(read_all(&device).as_ref(), Ok(&crashed.all), "{name:?} at {position}");
            let repaired = Arc::new(MemoryDevice::of(device.bytes()));
            let report = check(repaired.clone(), Repair::Yes);
            assert_eq!((report.exit_code() <= 1, report.actions), (true, Vec::new()), "{name:?} at {position}");
            assert_eq!(read_all(&repaired).as_ref(), Ok(&crashed.all), "{name:?} at {position}");
            let volume = open(device.clone(), false).expect("it can be opened");
            add(&volume, ROOT, "later", FileKind::Regular);
            volume.close().expect("the device works");
            let after = check(device, Options { verifies_data: true, ..Options::default() });
            assert_eq!(after.findings, [], "{name:?} at {position}");
        }
        let kind = match name {
            BlockName::Data(..) => 'd',
            BlockName::Page(_) => 'p',
            BlockName::Table(_) => 't',
        };
        seen.insert((kind, is_named_again, is_lost));
    }
    let expected =
        [('d', false, false), ('d', false, true), ('d', true, false), ('p', false, false), ('p', true, false)];
    let expected = expected.into_iter().chain([('t', false, false), ('t', true, false)]);
    assert!(expected.clone().all(|case| seen.contains(&case)), "{seen:?}");
}

/// Pages of the last checkpoint, and where they lie.
fn pages_of_checkpoint(device: &MemoryDevice) -> Vec<(u32, u32)> {
    let (_, newest) = newest_checkpoint(device);
    let mut table = [0; 4096];
    device.read(u64::from(newest.roots[0].entry.position) * 4096, &mut table).expect("it is within the device");
    let pages = (0..256).map(|id| (id, Entry::at(&table, id as usize)));
    pages.filter(|(_, entry)| entry.is_stored()).map(|(id, entry)| (id, entry.position)).collect()
}

/// The content of each file of the root directory, or the error of reading it.
fn read_files<'a>(
    volume: &'a Volume,
    names: impl IntoIterator<Item = &'a Vec<u8>>,
) -> BTreeMap<Vec<u8>, Result<Vec<u8>, Errno>> {
    let read = |name: &[u8]| {
        let ino = volume.lookup(ROOT, name)?.ino;
        let mut content = Vec::new();
        volume.read(ino, Handle::default(), 0, 1 << 20, &mut content)?;
        Ok(content)
    };
    names
        .into_iter()
        .map(|path| path.strip_prefix(b"/").unwrap_or(path))
        .map(|name| (name.to_vec(), read(name)))
        .collect()
}

#[test]
fn a_page_that_is_lost_costs_what_depends_on_it() {
    let crashed = crashed();
    let names: Vec<Vec<u8>> = crashed.all.keys().filter(|path| !path.is_empty()).cloned().collect();
    let whole = read_files(&open(crashed.device(), true).expect("it is whole"), &names);
    let (mut healed, mut lost, mut passed_over) = (0, 0, 0);
    for (id, position) in pages_of_checkpoint(&crashed.device()).into_iter().filter(|(id, _)| *id > 1) {
        let copies = crashed.blocks().into_iter().filter(|(name, ..)| *name == BlockName::Page(id));
        let mut places = vec![position];
        places.extend(copies.map(|(_, position, _)| position));
        // That of the checkpoint, and then each later one too.
        for count in 1..=places.len() {
            let device = crashed.device();
            places[..count].iter().for_each(|position| spoil(&device, u64::from(*position) * 4096 + 400));
            let volume = open(device.clone(), true).expect("what is there can be read");
            let found = read_files(&volume, &names);
            for (name, content) in &found {
                assert!(content.is_err() || Some(content) == whole.get(name), "page {id}: {}", name.escape_ascii());
            }
            drop(volume);
            let is_refused = match open(Arc::new(MemoryDevice::of(device.bytes())), false) {
                Ok(_) => false,
                Err(OpenError::UnreadablePage { id: refused, .. }) => refused == id,
                Err(error) => panic!("page {id}: {error}"),
            };
            let before = check(device.clone(), Repair::No);
            if before.exit_code() == 0 {
                // The copies that are damaged are those of before.
                assert!(!is_refused && found == whole, "page {id}: {:?}", before.findings);
                continue;
            }
            let report = check(device.clone(), Repair::Yes);
            assert_eq!((before.exit_code(), report.exit_code()), (4, 1), "page {id}: {:?}", report.findings);
            let after = check(device.clone(), Options { verifies_data: true, ..Options::default() });
            assert_eq!(after.findings, [], "page {id}");
            let volume = open(device.clone(), false).expect("it was repaired");
            let repaired = read_files(&volume, &names);
            // Files end where their map ends.
            let is_rest = |name, content: &Result<Vec<u8>, Errno>| match (content, &whole[name]) {
                (Ok(content), Ok(whole)) => whole.starts_with(content),
                (content, _) => *content == Err(Errno::NOENT),
            };
            assert!(repaired.iter().all(|(name, content)| is_rest(name, content)), "page {id}");
            assert_eq!(repaired != whole, !report.actions.is_empty(), "page {id}: {:?}", report.actions);
            healed += usize::from(repaired == whole);
            lost += usize::from(repaired != whole);
            passed_over += usize::from(is_refused);
        }
    }
    assert!(healed > 0 && lost > 0 && passed_over > healed, "{healed} {lost} {passed_over}");
}
