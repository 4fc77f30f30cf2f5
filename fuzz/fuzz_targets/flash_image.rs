//! A flash image with arbitrary changes: it is refused, or every page reads as it was or as an error; no panic, and no page of
//! somewhere else. Each change is a byte anywhere; a cut is a change too.
#![no_main]

use isotherm::spec::DeviceSpec;
use isotherm_drive::image::{Disk, check};
use isotherm_drive::{Drive, DriveOptions};
use isotherm_export::Export as _;
use libfuzzer_sys::fuzz_target;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

const PAGE: u64 = 512;
const PAGES: u64 = 96;

/// Bytes in memory.
#[derive(Clone)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Disk for Memory {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let range = bytes.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let range = bytes.get_mut(offset as usize..offset as usize + data.len());
        range.ok_or(io::ErrorKind::StorageFull)?.copy_from_slice(data);
        Ok(())
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.write(offset, &vec![0; length as usize])
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }
}

/// An image that a drive left, in order or not; each page holds its number and one of three versions.
fn image(ftl: &str, is_clean: bool) -> Vec<u8> {
    let size = format!("device.logical_size={}", PAGES * PAGE);
    let sets = ["device.page_size=512", "device.pages_per_block=8", "device.over_provisioning=60%", &size, ftl];
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let disk = Memory(Arc::new(Mutex::new(vec![0; Drive::image_bytes(&spec, 1).unwrap() as usize])));
    Drive::create_on(&disk, spec, 1).unwrap();
    let drive = Arc::new(Drive::on(disk.clone(), DriveOptions::default()).unwrap());
    for turn in 0..PAGES * 6 {
        let page = turn * 37 % PAGES;
        drive.handle(0).write(page * PAGE, &[[page as u8 + 1, turn as u8]; PAGE as usize / 2].concat(), false).unwrap();
    }
    drive.handle(0).flush().unwrap();
    if is_clean {
        drive.close().unwrap()
    } else {
        drive.cut_power().unwrap()
    }
    let bytes = disk.0.lock().unwrap().clone();
    bytes
}

fn images() -> &'static [Vec<u8>] {
    static IMAGES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let ftls = ["ftl=page", "ftl=dftl:cache=1KiB", "ftl=fast"];
        ftls.iter().flat_map(|ftl| [image(ftl, true), image(ftl, false)]).collect()
    })
}

fuzz_target!(|data: &[u8]| {
    let [which, cut, changes @ ..] = data else { return };
    let mut bytes = images()[usize::from(*which) % images().len()].clone();
    for change in changes.chunks_exact(4) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % bytes.len();
        bytes[at] ^= change[3];
    }
    if *cut >= 0xF0 {
        let length = bytes.len() * usize::from(*cut - 0xEF) / 17;
        bytes.truncate(length);
    }
    let disk = Memory(Arc::new(Mutex::new(bytes)));
    let _ = check(&disk);
    let Ok(drive) = Drive::on(disk, DriveOptions::default()) else { return };
    let (drive, mut page) = (Arc::new(drive), [0; PAGE as usize]);
    for number in 0..PAGES {
        if drive.handle(0).read(number * PAGE, &mut page).is_ok() {
            let is_own = page[0] == number as u8 + 1 || page[0] == 0;
            assert!(
                is_own && page.chunks(2).all(|pair| pair == &page[..2]),
                "page {number} is another's, or a mixture"
            );
        }
    }
    for number in 0..PAGES {
        let _ = drive.handle(0).write(number * PAGE, &page, false);
    }
    let _ = drive.close();
});
