//! Images: opened again, damaged, cut, foreign, locked, on a full disk; and drives that count as devices without bytes do.

use crate::support::journal::{Journal, Step, apply};
use crate::support::model::Model;
use crate::support::{self, DEVICES, PAGE, PAGES, spec};
use isotherm::build::{Environment, build};
use isotherm::device::{BlockPhase, Observe};
use isotherm::random::Random;
use isotherm::request::Request;
use isotherm_drive::image::{Disk, Problem, about, check};
use isotherm_drive::{Drive, DriveError, DriveOptions};
use isotherm_export::{ErrorKind, Export};
use proptest::prelude::*;
use std::io;
use std::sync::{Arc, Mutex};

fn blank(sets: &[&str]) -> Journal {
    Journal::without_steps(support::blank(sets))
}

fn open(disk: impl Disk) -> Result<Arc<Drive>, DriveError> {
    Drive::on(disk, DriveOptions::default()).map(Arc::new)
}

/// Carries out random requests on the drive of an image, and ends with a flush.
fn use_drive(drive: &Arc<Drive>, acts: usize, seed: u64) -> Model {
    let (mut model, mut random) = (Model::new(), Random::new(seed));
    for _ in 0..acts {
        model.act(&drive.handle(0), Model::draw(&mut random));
    }
    drive.handle(0).flush().unwrap();
    model
}

#[test]
fn a_drive_that_was_closed_is_opened_by_its_checkpoint_and_holds_and_counts_the_same() {
    for sets in DEVICES {
        let journal = blank(sets);
        let drive = open(journal.clone()).unwrap();
        let model = use_drive(&drive, 400, 3);
        drive.close().unwrap();
        let totals = drive.totals();
        drop(drive);

        let drive = open(journal).unwrap();
        assert!(drive.how().unwrap().was_clean, "{sets:?}");
        model.check(&drive.handle(0));
        drive.observe(|device| device.check()).unwrap();
        let again = drive.totals();
        // Recovery may write: translation pages that were dirty, say.
        assert!(again.programs.total() >= totals.programs.total() && again.erases.total() >= totals.erases.total());
        assert_eq!(again.host.bytes_written, totals.host.bytes_written);
        assert_eq!(again.host.unsafe_shutdowns, 0);
    }
}

#[test]
fn counters_survive_a_loss_of_power() {
    let journal = blank(DEVICES[0]);
    let drive = open(journal.clone()).unwrap();
    use_drive(&drive, 400, 3);
    let totals = drive.totals();
    drive.cut_power().unwrap();
    let again = open(journal).unwrap().totals();
    assert_eq!((again.programs, again.copies, again.erases), (totals.programs, totals.copies, totals.erases));
    assert_eq!((again.host.power_cycles, again.host.unsafe_shutdowns), (2, 1));
}

/// A damaged image is refused, or every page of it is right or an error.
fn is_never_wrong(journal: &Journal, model: &Model, what: &str) {
    let Ok(drive) = open(Journal::without_steps(journal.bytes())) else { return };
    for page in 0..PAGES {
        model.check_page_or(&drive.handle(0), page, |error| {
            assert_eq!(error.kind, ErrorKind::Io, "{what}: page {page}: {error}");
        });
    }
}

#[test]
fn flipped_bits_are_errors_and_never_wrong_data() {
    for sets in [DEVICES[0], DEVICES[4], DEVICES[7]] {
        for is_clean in [true, false] {
            let journal = blank(sets);
            let drive = open(journal.clone()).unwrap();
            let model = use_drive(&drive, 300, 8);
            if is_clean {
                drive.close().unwrap()
            } else {
                drive.cut_power().unwrap()
            }
            drop(drive);
            let whole = journal.bytes();
            let mut random = Random::new(1);
            let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
            for _ in 0..1500 {
                let at = used[random.below(used.len() as u64) as usize];
                let bit = random.below(8);
                journal.change(|bytes| bytes[at] ^= 1 << bit);
                is_never_wrong(&journal, &model, &format!("{sets:?}: bit {bit} of byte {at}"));
                journal.change(|bytes| bytes[at] = whole[at]);
            }
        }
    }
}

/// A write that was lost, or a hole where there was data: of everything but pages there is a copy.
#[test]
fn sectors_that_read_as_zeros_are_never_wrong_data() {
    const SECTOR: usize = 512;
    for sets in [DEVICES[0], DEVICES[4], DEVICES[7]] {
        let journal = blank(sets);
        let drive = open(journal.clone()).unwrap();
        let model = use_drive(&drive, 300, 8);
        drive.cut_power().unwrap();
        drop(drive);
        let whole = journal.bytes();
        let before = check(&journal).unwrap();
        assert_eq!(before.mended_records, 0, "{sets:?}");
        let layout = about(&journal).unwrap().layout;
        let mut mended = 0;
        for at in (0..layout.data_at as usize).step_by(SECTOR) {
            let sector = at..at + SECTOR;
            if whole[sector.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            journal.change(|bytes| bytes[sector.clone()].fill(0));
            let drive = open(Journal::without_steps(journal.bytes())).unwrap_or_else(|e| panic!("{sets:?}, {at}: {e}"));
            model.check(&drive.handle(0));
            let found = check(&journal).unwrap();
            assert_eq!(
                (found.pages, found.damaged.len()),
                (before.pages, before.damaged.len()),
                "{sets:?}: sector at {at}"
            );
            mended += found.mended_records;
            journal.change(|bytes| bytes[sector.clone()].copy_from_slice(&whole[sector]));
        }
        assert!(mended > 100, "{sets:?}: {mended} records were read from their copies");
    }
}

/// What a worn-out drive holds can be read as long as its image is there.
#[test]
fn a_worn_out_drive_is_opened_to_be_read() {
    for ftl in ["page", "dftl", "asa", "fast"] {
        let journal = blank(&[&format!("ftl.name={ftl}"), "device.endurance=4"]);
        let drive = open(journal.clone()).unwrap();
        let mut random = Random::new(5);
        let mut held = [0u8; PAGES as usize];
        let lost = loop {
            let (page, fill) = (random.below(PAGES), random.below(255) as u8 + 1);
            match drive.handle(0).write(page * PAGE, &vec![fill; PAGE as usize], true) {
                Ok(_) => held[page as usize] = fill,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::ReadOnly, "{ftl}: {error}");
                    break page;
                }
            }
        };
        let failed = drive.observe(|device| device.snapshot().collector.retired_blocks);
        drive.cut_power().unwrap();
        drop(drive);
        for _ in 0..2 {
            let drive = open(journal.clone()).unwrap_or_else(|error| panic!("{ftl}: {error}"));
            for (page, fill) in (0..).zip(held).filter(|(page, _)| *page != lost) {
                let mut bytes = vec![0; PAGE as usize];
                drive.handle(0).read(page * PAGE, &mut bytes).unwrap();
                assert_eq!(bytes, vec![fill; PAGE as usize], "{ftl}: page {page}");
            }
            assert!(drive.observe(|device| device.snapshot().collector.retired_blocks) >= failed, "{ftl}");
            let _ = drive.close();
        }
    }
}

#[test]
fn a_flipped_bit_of_a_page_costs_that_page_and_check_names_it() {
    let journal = blank(DEVICES[0]);
    let drive = open(journal.clone()).unwrap();
    let handle = drive.handle(0);
    handle.write(0, &vec![7; (PAGES * PAGE) as usize], false).unwrap();
    drive.close().unwrap();
    drop(drive);
    assert_eq!(check(&journal).unwrap().damaged, []);
    let whole = journal.bytes();
    let at = (0..whole.len()).rev().find(|at| whole[*at] == 7).unwrap();
    journal.change(|bytes| bytes[at] ^= 1);
    let damaged = check(&journal).unwrap().damaged;
    assert_eq!(damaged.len(), 1);
    assert!((damaged[0].offset..damaged[0].offset + PAGE).contains(&(at as u64)));

    let drive = open(journal).unwrap();
    let mut page = vec![0; PAGE as usize];
    for number in 0..PAGES {
        let result = drive.handle(0).read(number * PAGE, &mut page);
        let is_damaged = number == u64::from(damaged[0].address);
        assert_eq!(result.is_err(), is_damaged, "page {number}");
    }
    // A page that is written whole is whole again.
    let address = u64::from(damaged[0].address) * PAGE;
    drive.handle(0).write(address, &vec![9; PAGE as usize], false).unwrap();
    drive.handle(0).read(address, &mut page).unwrap();
    assert_eq!(page, vec![9; PAGE as usize]);
    assert_eq!(drive.totals().host.media_errors, 1);
}

#[test]
fn a_damaged_checkpoint_is_replaced_by_a_scan() {
    let journal = blank(DEVICES[0]);
    let drive = open(journal.clone()).unwrap();
    let model = use_drive(&drive, 300, 4);
    drive.close().unwrap();
    drop(drive);
    let layout = about(&journal).unwrap().layout;
    journal.change(|bytes| bytes[layout.checkpoint_at as usize + 40] ^= 4);
    assert!(check(&journal).unwrap().checkpoint_was_damaged);
    let drive = open(journal).unwrap();
    assert!(drive.how().unwrap().scanned_bytes > 0);
    model.check(&drive.handle(0));
}

#[test]
fn cut_and_foreign_files_are_refused_with_a_reason() {
    let journal = blank(DEVICES[0]);
    let whole = journal.bytes();
    for length in [0, 100, 20_000, 40_000, whole.len() / 2, whole.len() - 1] {
        let error = open(Journal::without_steps(whole[..length].to_vec())).err().unwrap();
        let DriveError::Image(error) = error else { panic!("{error}") };
        let expected = if length < 2 * (16 << 10) { Problem::Foreign } else { Problem::Damaged };
        assert_eq!(error.problem, expected, "{length} bytes: {error}");
        assert!(!error.fix.is_empty());
    }
    let refuse = |change: fn(&mut Vec<u8>), problem| {
        let journal = Journal::without_steps(whole.clone());
        journal.change(change);
        let Err(DriveError::Image(error)) = open(journal) else { panic!("it was opened") };
        assert_eq!(error.problem, problem, "{error}");
    };
    refuse(|bytes| bytes.fill(0x5A), Problem::Foreign);
    refuse(
        |bytes| {
            bytes[40] ^= 1;
            bytes[(16 << 10) + 40] ^= 1;
        },
        Problem::Damaged,
    );
}

#[test]
fn an_image_has_one_user_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.flash");
    Drive::create(&path, spec(DEVICES[0]), 1).unwrap();
    let Err(DriveError::Image(error)) = Drive::create(&path, spec(DEVICES[0]), 1) else { panic!("it was replaced") };
    assert_eq!(error.problem, Problem::Disk);
    let drive = Drive::open(&path, DriveOptions::default()).unwrap();
    let Err(DriveError::Image(error)) = Drive::open(&path, DriveOptions::default()) else { panic!("it has two users") };
    assert_eq!(error.problem, Problem::Busy);
    drop(drive);
    Drive::open(&path, DriveOptions::default()).unwrap();
}

#[test]
fn erased_blocks_give_their_space_back() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.flash");
    let sets = ["device.page_size=4096", "device.pages_per_block=64", "device.logical_size=96MiB"];
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let spec = isotherm::spec::DeviceSpec::from_toml("", &sets).unwrap();
    Drive::create(&path, spec, 1).unwrap();
    let held = || path.metadata().unwrap().blocks() * 512;
    assert!(held() < 1 << 20, "an empty image takes {} bytes", held());
    let drive = Arc::new(Drive::open(&path, DriveOptions::default()).unwrap());
    let handle = drive.handle(0);
    let programmed = || {
        let blocks = drive.observe(|device| device.blocks());
        blocks.iter().filter(|block| block.phase != BlockPhase::Free).count() as u64 * (256 << 10)
    };
    for part in 0..96 {
        handle.write(part << 20, &vec![1; 1 << 20], false).unwrap();
    }
    handle.flush().unwrap();
    assert!(held() >= 96 << 20 && held() < programmed() + (4 << 20), "{} bytes for 96 MiB", held());
    // Nothing is copied; background cleaning erases a block in a hundred, and slots go round.
    handle.trim(0, 96 << 20, false).unwrap();
    for round in 0..6 {
        for part in 0..96 {
            handle.write(part << 20, &vec![round; 1 << 20], part % 16 == 15).unwrap();
        }
        // Some free slots keep their space, to be written again soon.
        assert!(held() < programmed() + (36 << 20), "{} bytes, {} programmed", held(), programmed());
    }
    drive.close().unwrap();
}

/// A disk that is full after so many bytes.
#[derive(Clone)]
struct Small {
    inner: Journal,
    left: Arc<Mutex<usize>>,
}

impl Disk for Small {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut left = self.left.lock().unwrap();
        *left = left.checked_sub(data.len()).ok_or(io::ErrorKind::StorageFull)?;
        self.inner.write(offset, data)
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.punch(offset, length)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.inner.next_data(offset)
    }
}

#[test]
fn a_full_disk_is_an_error_and_what_was_flushed_is_there() {
    for room in (20_000..400_000).step_by(30_000) {
        let journal = blank(DEVICES[0]);
        let small = Small { inner: journal.clone(), left: Arc::new(Mutex::new(room)) };
        let drive = open(small).unwrap();
        let handle = drive.handle(0);
        let mut flushed = 0;
        let error = (1..).find_map(|round: u64| {
            let result = (0..PAGES / 2)
                .try_for_each(|page| handle.write(page * PAGE, &vec![round as u8; PAGE as usize], false).map(|_| ()));
            let result = result.and_then(|()| handle.flush().map(|_| ()));
            flushed = if result.is_ok() { round } else { flushed };
            result.err()
        });
        assert!(matches!(error.unwrap().kind, ErrorKind::NoSpace | ErrorKind::Io));
        assert!(handle.flush().is_err(), "nothing is said to be durable any more");
        drop(drive);
        let drive = open(journal).unwrap();
        let mut page = vec![0; PAGE as usize];
        for number in 0..PAGES / 2 {
            drive.handle(0).read(number * PAGE, &mut page).unwrap();
            let round = u64::from(page[0]);
            assert!(page.iter().all(|byte| u64::from(*byte) == round) && (flushed..=flushed + 1).contains(&round));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_a_drive_served_counts_the_same_when_it_is_replayed(seed in 0..1_000_000u64) {
        for sets in DEVICES {
            let spec = spec(sets);
            let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
            let taken = requests.clone();
            let recorder = Box::new(move |request: &Request| taken.lock().unwrap().push(*request));
            let options = DriveOptions { recorder: Some(recorder), ..DriveOptions::default() };
            let journal = blank(sets);
            let drive = Arc::new(Drive::on(journal, options).unwrap());
            use_drive(&drive, 300, seed);
            let environment = Environment { seed: 5, ..Environment::default() };
            let mut replayed = build(&spec, &environment).unwrap();
            replayed.submit(&requests.lock().unwrap()).unwrap();
            let served = drive.observe(|device: &dyn Observe| device.snapshot());
            let replayed = replayed.snapshot();
            prop_assert_eq!(served.host, replayed.host, "{:?}", sets);
            prop_assert_eq!(served.medium, replayed.medium, "{:?}", sets);
            prop_assert_eq!(served.collector, replayed.collector, "{:?}", sets);
        }
    }
}

#[test]
fn a_drive_in_memory_serves_the_same() {
    for sets in DEVICES {
        let drive = Arc::new(Drive::in_memory(spec(sets), 5, DriveOptions::default()).unwrap());
        let model = use_drive(&drive, 400, 6);
        model.check(&drive.handle(0));
        assert!(drive.totals().programs.total() > 0);
        drive.cut_power().unwrap();
        assert_eq!(drive.handle(0).read(0, &mut [0; 8]).unwrap_err().kind, ErrorKind::Stopped);
    }
}

/// What a flush has written is on its way to the disk before the sync that makes it durable.
#[test]
fn a_flush_syncs_after_all_that_it_writes() {
    let journal = Journal::new(blank(DEVICES[0]).bytes());
    let drive = open(journal.clone()).unwrap();
    let before = journal.step_count();
    drive.handle(0).write(0, &vec![3; PAGE as usize], false).unwrap();
    drive.handle(0).flush().unwrap();
    let steps = journal.steps();
    let sync = steps[before..].iter().position(|step| matches!(step, Step::Sync)).expect("a flush syncs") + before;
    let mut bytes = blank(DEVICES[0]).bytes();
    steps[..sync].iter().for_each(|step| apply(&mut bytes, step));
    let drive = open(Journal::without_steps(bytes)).unwrap();
    let mut page = vec![9; PAGE as usize];
    drive.handle(0).read(0, &mut page).unwrap();
    assert_eq!(page, vec![3; PAGE as usize]);
}
