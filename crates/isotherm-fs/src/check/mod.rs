//! Checks a volume that is out of use, and repairs it: what fsck does.
//!
//! From below: both superblocks, both checkpoints, roll-forward, the table of pages, the entries of all blocks and the counters of
//! segments, the writes that lie in segments, then the tree of files. What lies above something that cannot be read is not checked.
//! A repair is followed by a second check: what that one still finds was not repaired.

mod bits;
pub mod dump;
mod log;
mod places;
mod repair;
mod report;

pub use report::{Action, Finding, Place, Report, Severity};

use crate::device::Device;
use crate::format::summary::BlockName;
use crate::log::census::{Census, FaultKind};
use crate::log::{Log, LogSettings, OpenError};
use crate::store::StoreError;
use crate::tree::check::FindingKind;
use crate::tree::{ROOT_PAGES, Tree};
use isotherm_vfs::Time;
use std::sync::Arc;

/// Whether damage is repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repair {
    /// Nothing is written.
    #[default]
    No,
    /// Where it can be done.
    Yes,
}

/// What is checked, and what becomes of damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether damage is repaired.
    pub repair: Repair,
    /// Whether all file data is read and its checksums verified.
    pub verifies_data: bool,
    /// The time that repaired files are marked with.
    pub now: Time,
}

impl From<Repair> for Options {
    fn from(repair: Repair) -> Self {
        Self { repair, ..Self::default() }
    }
}

/// Checks the volume on `device`, which nobody else uses.
pub fn check(device: Arc<dyn Device>, options: impl Into<Options>) -> Report {
    let options = options.into();
    let mut first = scan(&device, options);
    if options.repair == Repair::No || first.is_as_it_should_be() {
        return first;
    }
    let mut failure = None;
    match repair::repair(&device, options) {
        Ok(actions) => first.actions = actions,
        Err(error) => {
            failure = Some((severity(&error), format!("it was not repaired to the end: {error}")));
        }
    }
    let mut report = first.settle(scan(&device, options));
    if let Some((severity, what)) = failure {
        report.find(severity, Place::Volume, what);
    }
    report
}

/// A device that fails says nothing of the volume.
fn severity(error: &OpenError) -> Severity {
    if matches!(error, OpenError::Store(StoreError::Device(_))) { Severity::Operation } else { Severity::Error }
}

/// How the log is opened: nothing is written but by a repair.
fn settings(repair: Repair) -> LogSettings {
    LogSettings { read_only: repair == Repair::No, discard: false, ..LogSettings::default() }
}

/// Checks without changing anything.
fn scan(device: &Arc<dyn Device>, options: Options) -> Report {
    let mut report = Report::default();
    let superblock = places::check_superblocks(&**device, &mut report);
    if !superblock.is_some_and(|superblock| places::check_checkpoints(&**device, &superblock, &mut report)) {
        report.is_beyond_repair = true;
        return report;
    }
    let (mut log, recovery) = match Log::open(device.clone(), settings(Repair::No)) {
        Ok(opened) => opened,
        Err(error) => {
            report.find(severity(&error), Place::Log, error.to_string());
            report.is_beyond_repair = !bits::can_mend_tables(&**device);
            return report;
        }
    };
    report.recovery = Some(recovery);
    if recovery.writes > 0 {
        let text = format!("{} writes since the last checkpoint are rolled forward", recovery.writes);
        report.find(Severity::Crash, Place::Log, text);
    }
    if let Some(lost) = recovery.lost {
        report.find(Severity::Error, Place::Log, format!("{lost}; what came after it is not seen here"));
    }
    if recovery.unreadable_blocks > 0 {
        let count = recovery.unreadable_blocks;
        let text = format!(
            "damaged blocks of file data in these writes, which were durable: {count}; reading them is an error"
        );
        report.find(Severity::Error, Place::Log, text);
    }
    if recovery.rebuilt_pages > 0 {
        let count = recovery.rebuilt_pages;
        let text = format!("damaged copies of pages in these writes, whose content the redo log tells: {count}");
        report.find(Severity::Note, Place::Log, text);
    }
    if recovery.unreadable_pages > 0 {
        let count = recovery.unreadable_pages;
        let text =
            format!("damaged pages that these writes change: {count}; what the writes say of them is not seen here");
        report.find(Severity::Error, Place::Log, text);
    }
    let census = log.census(options.verifies_data);
    log::check_faults(&census, &mut report);
    report.is_beyond_repair = is_beyond_repair(&**device, &mut log, &census);
    // Where a page was passed over its blocks were not counted, and where a table page is lost nothing below it is.
    if recovery.unreadable_pages == 0 && !census.lacks_tables() {
        log::check_counts(&log, &census, &mut report);
    }
    log::check_summaries(&**device, &mut log, &census, &mut report);
    if census.lacks_tables() {
        report.find(Severity::Error, Place::Volume, "the tree is not checked: nobody knows which pages exist");
        return report;
    }
    check_tree(log, &census, &mut report);
    report
}

/// Whether the table of pages or a root page is lost: without these there is no tree.
fn is_beyond_repair(device: &dyn Device, log: &mut Log, census: &Census) -> bool {
    census.faults.iter().any(|fault| {
        let is_vital = match fault.name {
            BlockName::Table(_) => true,
            BlockName::Page(id) => ROOT_PAGES.contains(&id),
            BlockName::Data(..) => false,
        };
        let entry = log.entry_named(fault.name).ok().flatten();
        is_vital && !(fault.kind == FaultKind::Unreadable && entry.is_some_and(|entry| bits::can_mend(device, entry)))
    })
}

fn check_tree(log: Log, census: &Census, report: &mut Report) {
    (report.pages, report.data_blocks) = (census.pages, census.stored);
    let mut tree = match Tree::open_store(log) {
        Ok(tree) => tree,
        Err(error) => {
            report.find(Severity::Error, Place::Volume, format!("the tree cannot be opened: {error}"));
            let may_be_mended =
                census.faults.iter().any(|fault| matches!(fault.name, BlockName::Page(id) if ROOT_PAGES.contains(&id)));
            report.is_beyond_repair |= !may_be_mended;
            return;
        }
    };
    // Where the list of these cannot be read, the check says so.
    let mut recounted = tree.listed().unwrap_or_default();
    recounted.extend(tree.store_mut().take_replayed_owners().unwrap_or_default());
    let lagging = tree.store_mut().take_lagging();
    let is_recounted = |ino| recounted.contains(&ino) || lagging.may_hold(ino);
    match tree.check() {
        Ok(findings) => {
            for finding in findings {
                let place = finding.place.into();
                match place {
                    Place::Inode(ino) if finding.kind == FindingKind::BlockCount && is_recounted(ino) => {
                        let text = format!("{}; a mount counts them anew", finding.text);
                        report.find(Severity::Crash, place, text);
                    }
                    _ => report.find(Severity::Error, place, finding.text),
                }
            }
        }
        Err(error) => {
            let severity = severity(&OpenError::Store(error.clone().into()));
            report.find(severity, Place::Volume, format!("the check of the tree ended: {error}"));
        }
    }
}
