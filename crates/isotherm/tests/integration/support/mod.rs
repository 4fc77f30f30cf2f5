//! The array model: what a device must hold, told apart from how it holds it.
//!
//! Every page of the model device is 512 bytes that repeat the page's number and version, so that a page in the wrong place
//! or an old version is seen. After a loss of power the model allows exactly what the contract of [`Ftl`] allows.

use isotherm::address::Lpn;
use isotherm::cause::Cause;
use isotherm::device::DeviceError;
use isotherm::ftl::Ftl;
use isotherm::nand::Medium;
use isotherm::nand::content::{Bytes, Content, Nothing};
use isotherm::nand::fault::Faulty;
use proptest::prelude::*;

pub const PAGE_BYTES: u32 = 512;

/// What a test does to a device.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Write(u32),
    Read(u32),
    Trim(u32, u32),
    Flush,
    /// Memory is lost between operations, and the map is rebuilt.
    Rebuild,
    /// Power is lost in the middle of an operation, this many medium operations from now.
    PowerLoss(u64),
}

/// Random steps over `pages` logical pages; some pages are hot.
pub fn steps(pages: u32, length: usize) -> impl Strategy<Value = Vec<Step>> {
    let lpn = prop_oneof![3 => 0..pages / 8, 2 => 0..pages];
    let step = prop_oneof![
        60 => lpn.clone().prop_map(Step::Write),
        10 => lpn.clone().prop_map(Step::Read),
        8 => (lpn, 1..8u32).prop_map(move |(lpn, count)| Step::Trim(lpn, count.min(pages - lpn))),
        5 => Just(Step::Flush),
        1 => Just(Step::Rebuild),
        1 => (1..60u64).prop_map(Step::PowerLoss),
    ];
    proptest::collection::vec(step, length / 2..length)
}

/// How pages of the model are written to a store, and what can be told of them when they are read.
pub trait Versions: Content {
    fn write<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, version: u32) -> Result<(), DeviceError>;
    /// The version that a page holds. Without bytes it cannot be told from `expected`, if the page holds anything.
    fn read<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, expected: Option<u32>) -> Option<u32>;
}

impl Versions for Bytes {
    fn write<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, version: u32) -> Result<(), DeviceError> {
        ftl.write(Lpn(lpn), &content(lpn, version), Cause::Host)
    }

    fn read<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, _: Option<u32>) -> Option<u32> {
        let mut page = vec![0; PAGE_BYTES as usize];
        let held = ftl.read(Lpn(lpn), &mut page, Cause::Host).expect("pages are readable");
        held.then(|| {
            let version = u32::from_le_bytes(page[4..8].try_into().unwrap());
            assert_eq!(page, content(lpn, version), "LPN {lpn} holds another page's bytes");
            version
        })
    }
}

impl Versions for Nothing {
    fn write<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, _: u32) -> Result<(), DeviceError> {
        ftl.write(Lpn(lpn), (), Cause::Host)
    }

    fn read<F: Ftl<Medium: Medium<Content = Self>>>(ftl: &mut F, lpn: u32, expected: Option<u32>) -> Option<u32> {
        let held = ftl.read(Lpn(lpn), (), Cause::Host).expect("pages are readable");
        held.then_some(expected.unwrap_or(u32::MAX))
    }
}

/// A page of the model: the version it holds, and what else may be found after a loss of power.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Version that a read returns; `None` if nothing is held.
    current: Option<u32>,
    /// Newest version before a trim that is not flushed yet.
    unflushed_trim_of: Option<u32>,
}

/// A device under test and its model.
pub struct Harness<F, R> {
    ftl: Option<F>,
    recover: R,
    cells: Vec<Cell>,
    versions: u32,
}

fn content(lpn: u32, version: u32) -> Vec<u8> {
    [lpn.to_le_bytes(), version.to_le_bytes()].concat().repeat(PAGE_BYTES as usize / 8)
}

impl<F, M, R> Harness<F, R>
where
    F: Ftl<Medium = Faulty<M>>,
    M: Medium<Content: Versions>,
    R: Fn(Faulty<M>) -> Result<F, DeviceError>,
{
    pub fn new(ftl: F, recover: R) -> Self {
        let cells = vec![Cell::default(); ftl.logical_pages() as usize];
        Self { ftl: Some(ftl), recover, cells, versions: 0 }
    }

    /// The device.
    pub fn ftl(&mut self) -> &mut F {
        self.ftl.as_mut().expect("the device is there between steps")
    }

    /// Runs the steps; checks every read, and the laws of conservation at the end.
    pub fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(*step);
        }
        self.read_all();
        self.ftl().check().expect("conservation laws hold");
    }

    fn step(&mut self, step: Step) {
        let outcome = match step {
            Step::Write(lpn) => self.write(lpn),
            Step::Trim(lpn, count) => self.trim(lpn, count),
            Step::Flush => self.flush(),
            Step::Read(lpn) => {
                self.check_read(lpn);
                Ok(())
            }
            Step::Rebuild => {
                self.rebuild(u64::MAX);
                Ok(())
            }
            Step::PowerLoss(operations) => {
                // The medium is taken out and put back with a fuse; the rebuild itself is not cut.
                self.rebuild(operations);
                Ok(())
            }
        };
        match outcome {
            Ok(()) => {}
            Err(DeviceError::PowerLost) => self.rebuild(u64::MAX),
            Err(error) => panic!("{step:?}: {error}"),
        }
    }

    fn write(&mut self, lpn: u32) -> Result<(), DeviceError> {
        self.versions += 1;
        let version = self.versions;
        let outcome = <M::Content as Versions>::write(self.ftl(), lpn, version);
        let cell = &mut self.cells[lpn as usize];
        if outcome.is_ok() {
            *cell = Cell { current: Some(version), unflushed_trim_of: None };
        } else {
            // In flight: the new version, or whatever was allowed before, may be found. The rebuild decides.
            self.resolve(lpn, Some(version));
        }
        outcome
    }

    fn trim(&mut self, lpn: u32, count: u32) -> Result<(), DeviceError> {
        for cell in &mut self.cells[lpn as usize..(lpn + count) as usize] {
            if let Some(version) = cell.current.take() {
                cell.unflushed_trim_of = Some(version);
            }
        }
        self.ftl().trim(Lpn(lpn), count)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.ftl().flush()?;
        self.cells.iter_mut().for_each(|cell| cell.unflushed_trim_of = None);
        Ok(())
    }

    /// The version that a page holds; without bytes, the newest allowed one if it holds anything.
    fn read(&mut self, lpn: u32) -> Option<u32> {
        let cell = self.cells[lpn as usize];
        <M::Content as Versions>::read(self.ftl(), lpn, cell.current.or(cell.unflushed_trim_of))
    }

    fn check_read(&mut self, lpn: u32) {
        if self.ftl().medium().is_dead() {
            return;
        }
        assert_eq!(self.read(lpn), self.cells[lpn as usize].current, "LPN {lpn}");
    }

    fn read_all(&mut self) {
        if self.ftl().medium().is_dead() {
            self.rebuild(u64::MAX);
        }
        for lpn in 0..self.cells.len() as u32 {
            self.check_read(lpn);
        }
    }

    /// Takes the device's memory away and rebuilds it; the new one loses power after `operations`.
    fn rebuild(&mut self, operations: u64) {
        self.power_cycle();
        self.ftl().medium_mut().lose_power_after(operations);
        for lpn in 0..self.cells.len() as u32 {
            self.resolve(lpn, None);
        }
    }

    fn power_cycle(&mut self) {
        let mut medium = self.ftl.take().expect("the device is there").into_medium();
        medium.lose_power_after(u64::MAX);
        self.ftl = Some((self.recover)(medium).expect("the map can be rebuilt"));
    }

    /// After a loss of power: the page must hold something allowed, and from now on holds just that.
    fn resolve(&mut self, lpn: u32, in_flight: Option<u32>) {
        if in_flight.is_some() {
            // Decided when the rebuild reads the page: remember both.
            let cell = self.cells[lpn as usize];
            let allowed = [cell.current, cell.unflushed_trim_of, in_flight];
            self.rebuild_one(lpn, &allowed, cell.current.is_none());
            return;
        }
        let cell = self.cells[lpn as usize];
        let found = self.read(lpn);
        let allowed = found == cell.current || (found.is_some() && found == cell.unflushed_trim_of);
        assert!(allowed, "LPN {lpn}: found {found:?} after a loss of power, {cell:?} allowed");
        self.cells[lpn as usize] = Cell { current: found, unflushed_trim_of: None };
    }

    /// Rebuilds at once and settles the page whose write was cut.
    fn rebuild_one(&mut self, lpn: u32, allowed: &[Option<u32>], may_be_empty: bool) {
        self.power_cycle();
        let newest = allowed.iter().copied().flatten().max();
        let found = <M::Content as Versions>::read(self.ftl(), lpn, newest);
        let fits = if found.is_none() { may_be_empty } else { allowed.contains(&found) };
        assert!(fits, "LPN {lpn}: found {found:?} after its write was cut, {allowed:?} allowed");
        self.cells[lpn as usize] = Cell { current: found, unflushed_trim_of: None };
    }
}
