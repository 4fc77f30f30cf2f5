//! What a drive may hold after a crash: for each page what it held at the last flush, or anything written to it since, in the order
//! of writing; never a mixture, and never a page of somewhere else.

use super::{PAGE, PAGES};
use isotherm::random::Random;
use isotherm_export::{Export, ExportError, Zeroes};

/// A version of a page: a number that fills it; 0 is a page of zeros.
type Version = u32;

/// A request to a drive.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Writes whole pages, of one version.
    Write {
        page: u64,
        pages: u64,
        durable: bool,
    },
    Trim {
        page: u64,
        pages: u64,
        durable: bool,
    },
    Zero {
        page: u64,
        pages: u64,
        may_trim: bool,
        durable: bool,
    },
    Flush,
}

/// What the drive must hold.
#[derive(Clone)]
pub struct Model {
    /// Versions that each page may hold after a crash; the last one is what it holds.
    allowed: Vec<Vec<Version>>,
    version: Version,
}

/// The bytes of a version of a page: each says whose it is.
fn content(page: u64, version: Version) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE as usize];
    }
    let words = (0..PAGE as u32 / 8).flat_map(|word| [(page as u32) << 16 | (word & 0xFFFF), version]);
    words.flat_map(u32::to_le_bytes).collect()
}

impl Model {
    /// An empty drive.
    pub fn new() -> Self {
        Self { allowed: vec![vec![0]; PAGES as usize], version: 0 }
    }

    /// Draws a request: most go to a quarter of the pages.
    pub fn draw(random: &mut Random) -> Act {
        let page = if random.below(4) > 0 { random.below(PAGES / 4) } else { random.below(PAGES) };
        let pages = (random.below(6) + 1).min(PAGES - page);
        match random.below(40) {
            0..3 => Act::Flush,
            3..5 => Act::Trim { page, pages, durable: random.below(4) == 0 },
            5 => Act::Zero { page, pages, may_trim: true, durable: random.below(2) == 0 },
            6 => Act::Zero { page, pages, may_trim: false, durable: random.below(2) == 0 },
            7 => Act::Write { page, pages, durable: true },
            _ => Act::Write { page, pages, durable: false },
        }
    }

    /// Carries a request out on both. Until it has returned, its pages may hold what they held or what they will.
    pub fn act(&mut self, drive: &dyn Export, act: Act) {
        self.begin(act);
        self.ask(drive, act);
        self.end(act);
    }

    /// Asks the drive alone.
    pub fn ask(&self, drive: &dyn Export, act: Act) {
        match act {
            Act::Write { page, pages, durable } => {
                let data: Vec<u8> = (page..page + pages).flat_map(|page| content(page, self.version)).collect();
                drive.write(page * PAGE, &data, durable).unwrap();
            }
            Act::Trim { page, pages, durable } => {
                drive.trim(page * PAGE, pages * PAGE, durable).unwrap();
            }
            Act::Zero { page, pages, may_trim, durable } => {
                let how = Zeroes { may_trim, fast_only: false };
                drive.write_zeroes(page * PAGE, pages * PAGE, how, durable).unwrap();
            }
            Act::Flush => {
                drive.flush().unwrap();
            }
        }
    }

    /// A request is on its way.
    pub fn begin(&mut self, act: Act) {
        let version = match act {
            Act::Write { .. } => {
                self.version += 1;
                self.version
            }
            _ => 0,
        };
        match act {
            Act::Write { page, pages, .. } | Act::Trim { page, pages, .. } | Act::Zero { page, pages, .. } => {
                (page..page + pages).for_each(|page| self.allowed[page as usize].push(version));
            }
            Act::Flush => {}
        }
    }

    /// A request has returned.
    pub fn end(&mut self, act: Act) {
        match act {
            Act::Flush => self.allowed.iter_mut().for_each(settle),
            Act::Write { page, pages, durable: true }
            | Act::Trim { page, pages, durable: true }
            | Act::Zero { page, pages, durable: true, .. } => {
                (page..page + pages).for_each(|page| settle(&mut self.allowed[page as usize]));
            }
            _ => {}
        }
    }

    /// Checks what a drive holds that has not crashed.
    pub fn check(&self, drive: &dyn Export) {
        let mut page = vec![0; PAGE as usize];
        for (number, allowed) in (0..).zip(&self.allowed) {
            drive.read(number * PAGE, &mut page).unwrap();
            assert!(page == content(number, *allowed.last().unwrap()), "page {number}");
        }
    }

    /// Checks one page of a drive that has not crashed; `otherwise` hears of a page that cannot be read.
    pub fn check_page_or(&self, drive: &dyn Export, page: u64, otherwise: impl Fn(ExportError)) {
        let mut bytes = vec![0; PAGE as usize];
        match drive.read(page * PAGE, &mut bytes) {
            Ok(_) => {
                let version = *self.allowed[page as usize].last().unwrap();
                assert!(bytes == content(page, version), "page {page} holds something else than version {version:x}");
            }
            Err(error) => otherwise(error),
        }
    }

    /// Takes over what a drive holds after a crash, or says what it may not hold.
    pub fn settle_after_crash(&mut self, drive: &dyn Export) -> Result<(), String> {
        let mut page = vec![0; PAGE as usize];
        for (number, allowed) in (0..).zip(&mut self.allowed) {
            drive.read(number * PAGE, &mut page).map_err(|error| format!("page {number}: {error}"))?;
            let found = allowed.iter().rev().copied().find(|version| page == content(number, *version));
            let Some(found) = found else {
                let words: Vec<u32> = page.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
                return Err(format!("page {number} holds {:x?}.., one of versions {allowed:x?} is right", &words[..4]));
            };
            *allowed = vec![found];
        }
        Ok(())
    }
}

/// The page holds its last version for good.
fn settle(allowed: &mut Vec<Version>) {
    allowed.drain(..allowed.len() - 1);
}
