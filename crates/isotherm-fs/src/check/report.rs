//! What a check has found.

use crate::log::Recovery;
use crate::store::{PageId, Slot};
use crate::tree::check as tree;
use isotherm_vfs::Ino;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// What a crash leaves: no damage, and the next mount puts it right.
    Crash,
    /// Something is wrong, and nothing is lost: a mount puts it right, or does without it.
    Note,
    /// Something is wrong.
    Error,
    /// The check could not be carried out.
    Operation,
}

/// Where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The device as a whole.
    Device,
    /// A copy of the superblock, 0 or 1.
    Superblock(u8),
    /// One of the two checkpoints.
    Checkpoint(u8),
    /// The writes since the last checkpoint.
    Log,
    /// A page of the table of pages.
    Table(u32),
    /// A page.
    Page(PageId),
    /// A block of file data.
    Slot(Slot),
    /// A segment.
    Segment(u32),
    /// An inode.
    Inode(Ino),
    /// The volume as a whole.
    Volume,
}

impl From<tree::Place> for Place {
    fn from(place: tree::Place) -> Self {
        match place {
            tree::Place::Page(id) => Self::Page(id),
            tree::Place::Inode(ino) => Self::Inode(ino),
            tree::Place::Volume => Self::Volume,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device => f.write_str("device"),
            Self::Superblock(copy) => write!(f, "superblock {copy}"),
            Self::Checkpoint(number) => write!(f, "checkpoint {number}"),
            Self::Log => f.write_str("log"),
            Self::Table(number) => write!(f, "table page {number}"),
            Self::Page(id) => write!(f, "page {id}"),
            Self::Slot(slot) => write!(f, "slot {} of page {}", slot.index, slot.page),
            Self::Segment(number) => write!(f, "segment {number}"),
            Self::Inode(ino) => write!(f, "inode {ino}"),
            Self::Volume => f.write_str("volume"),
        }
    }
}

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// What it is, for people.
    pub what: String,
    /// Whether it was repaired.
    pub is_repaired: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.severity {
            _ if !self.is_repaired => "",
            Severity::Crash => " (done)",
            _ => " (repaired)",
        };
        write!(f, "{}: {}{end}", self.place, self.what)
    }
}

/// What a repair has done to something that people may miss.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// Where.
    pub place: Place,
    /// What, for people.
    pub what: String,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// In the order of the check.
    pub findings: Vec<Finding>,
    /// What the repair has changed.
    pub actions: Vec<Action>,
    /// What roll-forward came to, if it was reached.
    pub recovery: Option<Recovery>,
    /// Among what is wrong is something that no repair can help.
    pub is_beyond_repair: bool,
    /// Pages of metadata.
    pub pages: u64,
    /// Blocks of file data.
    pub data_blocks: u64,
}

impl Report {
    /// Whether nothing is wrong. There may be notes.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity <= Severity::Note)
    }

    /// Whether a crash has left something to be done by the next mount.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Crash && !finding.is_repaired)
    }

    /// As fsck(8) has it: 0 clean, 1 something was repaired, 4 errors were left, 8 not carried out. What a crash leaves is none.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let code = |finding: &Finding| match finding.severity {
            Severity::Crash => 0,
            Severity::Note | Severity::Error if finding.is_repaired => 1,
            Severity::Note => 0,
            Severity::Error => 4,
            Severity::Operation => 8,
        };
        self.findings.iter().map(code).max().unwrap_or(0)
    }

    pub(super) fn find(&mut self, severity: Severity, place: Place, what: impl Into<String>) {
        self.findings.push(Finding { severity, place, what: what.into(), is_repaired: false });
    }

    /// Whether not even a note is to be made.
    pub(super) fn is_as_it_should_be(&self) -> bool {
        self.findings.is_empty()
    }

    /// What this report, made before a repair, comes to by one that was made after it.
    pub(super) fn settle(mut self, after: Self) -> Self {
        for finding in &mut self.findings {
            let stays = |other: &Finding| (other.place, &other.what) == (finding.place, &finding.what);
            finding.is_repaired = !after.findings.iter().any(stays);
        }
        for finding in after.findings {
            let is_new = !self.findings.iter().any(|old| (old.place, &old.what) == (finding.place, &finding.what));
            if is_new {
                self.findings.push(finding);
            }
        }
        self.is_beyond_repair = after.is_beyond_repair;
        (self.pages, self.data_blocks) = (after.pages, after.data_blocks);
        self
    }
}
