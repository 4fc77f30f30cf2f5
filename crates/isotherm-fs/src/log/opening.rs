//! Opening a volume: its superblock, the newest whole checkpoint, and what roll-forward ([`super::recover`]) finds after it.

use super::recover::Replay;
use super::tables::Tables;
use super::{Log, LogSettings, Usage};
use crate::device::Device;
use crate::format::checkpoint::{Checkpoint, TABLE_ENTRIES};
use crate::format::entry::Entry;
use crate::format::superblock::{Superblock, SuperblockError};
use crate::store::{BLOCK_BYTES, PageId, StoreError};
use crate::tree::ROOT_PAGES;
use isotherm_sfs::machine::Machine;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Why a volume cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum OpenError {
    #[error(transparent)]
    Superblock(#[from] SuperblockError),
    #[error("neither checkpoint is whole, and without one nothing tells what is in use")]
    NoCheckpoint,
    #[error("the volume is damaged: {0}")]
    Damaged(String),
    #[error("page {id}, which roll-forward changes, is damaged: the checksum of block {} is wrong; {}", entry.position, helps(*id))]
    UnreadablePage { id: PageId, entry: Entry },
    #[error("{0}; fsck.sfs -y mends that write, or gives up what came after it")]
    LostWrites(LostWrites),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What to do about a page that roll-forward cannot read.
fn helps(id: PageId) -> &'static str {
    if ROOT_PAGES.contains(&id) {
        "fsck.sfs -y mends it if a single bit has turned"
    } else {
        "fsck.sfs -y mends it, or goes on without it; mounted with -o ro, all that does not depend on it can be read"
    }
}

/// What opening has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Whether the volume had been unmounted.
    pub was_clean: bool,
    /// Writes of the log after the checkpoint.
    pub writes: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Blocks of file data in them that cannot be read, although they were durable.
    pub unreadable_blocks: u64,
    /// Copies of pages and pages of the table in them that are damaged, and whose content the redo log tells.
    pub rebuilt_pages: u64,
    /// Pages that they change and that cannot be read as they were before: changes of these were passed over, and counters are not what
    /// entries say. None where the volume is opened to be written, unless they are given up.
    pub unreadable_pages: u64,
    /// Writes that were durable and cannot be reached.
    pub lost: Option<LostWrites>,
}

/// Writes of the log that were durable, and are lost because the summary of the first is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostWrites {
    /// The first of them, by its number among the writes of the log.
    pub first: u64,
    /// The last that is known to have been durable.
    pub last: u64,
    /// Mount that wrote them.
    pub incarnation: u32,
    /// Blocks of the device at which the first may begin.
    pub places: [Option<u32>; 2],
}

impl std::fmt::Display for LostWrites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, last, places, .. } = self;
        let places: Vec<String> = places.iter().flatten().map(u32::to_string).collect();
        write!(
            f,
            "write {first} of the log, at block {}, is damaged, and all writes up to {last} were durable",
            places.join(" or ")
        )
    }
}

/// What fsck lets go of so that a log can be opened.
#[derive(Clone, Default, Debug)]
pub struct GivenUp {
    /// Pages that roll-forward passes over where it cannot read them.
    pub pages: BTreeSet<PageId>,
    /// Whether the log ends where a summary is not whole, though later writes were durable.
    pub lost_writes: bool,
}

/// What the volume has cannot be.
pub(super) fn damaged<T>(what: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::Damaged(what.into()))
}

/// Reads the superblock of a device.
///
/// # Errors
/// Neither copy is one.
pub fn read_superblock(device: &dyn Device) -> Result<Superblock, OpenError> {
    let blocks = device.length() / BLOCK_BYTES as u64;
    if blocks < 2 {
        return Err(SuperblockError::Foreign.into());
    }
    let mut block = [0; BLOCK_BYTES];
    let mut first = None;
    for copy in 0..2 {
        device.read(copy * BLOCK_BYTES as u64, &mut block).map_err(|error| StoreError::Device(error.to_string()))?;
        match Superblock::decode(&block, blocks) {
            Ok(superblock) => return Ok(superblock),
            // The first copy's fault says more, but for one that was wiped.
            Err(error) if first.is_none() || first == Some(SuperblockError::Foreign) => first = Some(error),
            Err(_) => {}
        }
    }
    Err(first.expect("a copy was read").into())
}

/// Reads both checkpoints; those that are not whole are `None`.
///
/// # Errors
/// The device.
pub fn read_checkpoints(device: &dyn Device, superblock: &Superblock) -> Result<[Option<Checkpoint>; 2], StoreError> {
    let mut found = [None, None];
    for (found, first) in found.iter_mut().zip(superblock.checkpoints) {
        let offset = u64::from(first) * BLOCK_BYTES as u64;
        let read = |offset, bytes: &mut [u8]| {
            device.read(offset, bytes).map_err(|error| StoreError::Device(error.to_string()))
        };
        let mut bytes = vec![0; BLOCK_BYTES];
        read(offset, &mut bytes)?;
        let Some(length) = Checkpoint::length(&bytes) else { continue };
        if length > superblock.checkpoint_blocks as usize * BLOCK_BYTES {
            continue;
        }
        bytes.resize(length, 0);
        read(offset, &mut bytes)?;
        *found = Checkpoint::decode(&bytes, superblock.tag());
    }
    Ok(found)
}

/// Whether a checkpoint fits its volume.
fn check_shape(checkpoint: &Checkpoint, superblock: &Superblock) -> Result<(), OpenError> {
    let mut queued = vec![false; superblock.segments as usize];
    for segment in &checkpoint.queue {
        let is_first = queued.get_mut(*segment as usize).is_some_and(|queued| !std::mem::replace(queued, true));
        if !is_first {
            return damaged(format!("segment {segment} cannot stand in the queue of free segments"));
        }
    }
    let open_is_sound = checkpoint.open.is_none_or(|(segment, next)| {
        segment < superblock.segments && next <= superblock.segment_blocks && !queued[segment as usize]
    });
    if checkpoint.segments.len() != superblock.segments as usize || !open_is_sound {
        return damaged("the checkpoint is of a volume of another shape");
    }
    Ok(())
}

impl Log {
    /// Opens the volume on `device`. What roll-forward found is in memory; a checkpoint makes it durable
    /// (unless the settings forbid writing).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(device: Arc<dyn Device>, settings: LogSettings) -> Result<(Self, Recovery), OpenError> {
        Self::open_without(device, settings, &GivenUp::default())
    }

    /// The same, without what is given up.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_without(
        device: Arc<dyn Device>,
        settings: LogSettings,
        given_up: &GivenUp,
    ) -> Result<(Self, Recovery), OpenError> {
        let superblock = read_superblock(&*device)?;
        let newest = read_checkpoints(&*device, &superblock)?.into_iter().flatten().max_by_key(|found| found.number);
        let checkpoint = newest.ok_or(OpenError::NoCheckpoint)?;
        check_shape(&checkpoint, &superblock)?;
        let mut is_held = vec![true; superblock.segments as usize];
        for segment in &checkpoint.queue {
            is_held[*segment as usize] = checkpoint.segments[*segment as usize].referenced > 0;
        }
        let mut log = Self::at(device, superblock, settings, &checkpoint);
        let mut replay = Replay {
            is_held,
            segments: checkpoint.segments,
            queue: checkpoint.queue.into(),
            open: checkpoint.open,
            sequence: checkpoint.sequence,
            now: checkpoint.now,
            incarnation: checkpoint.incarnation,
            given_up: given_up.pages.clone(),
            lost_pages: BTreeSet::new(),
            damaged: BTreeMap::new(),
            unreadable_pages: BTreeSet::new(),
        };
        let mut recovery = Recovery { was_clean: checkpoint.is_clean, ..Recovery::default() };
        while let Some((summary, contents)) = log.next_write(&replay) {
            log.apply(&mut replay, &summary, &contents, &mut recovery)?;
        }
        log.settle_damaged(&mut replay, &mut recovery)?;
        if !recovery.was_clean {
            recovery.lost = log.lost_writes(&replay);
            if let Some(lost) = recovery.lost.filter(|_| !log.settings.read_only && !given_up.lost_writes) {
                return Err(OpenError::LostWrites(lost));
            }
        }
        log.resume(replay, &checkpoint.centres)?;
        Ok((log, recovery))
    }

    /// The log of a new volume. Nothing is written before its first checkpoint.
    pub fn create(device: Arc<dyn Device>, superblock: Superblock, settings: LogSettings) -> Self {
        let empty = Checkpoint { tag: superblock.tag(), ..Checkpoint::default() };
        Self::at(device, superblock, settings, &empty)
    }

    /// A log as a checkpoint has it, but for its segments.
    pub(super) fn at(
        device: Arc<dyn Device>,
        superblock: Superblock,
        settings: LogSettings,
        checkpoint: &Checkpoint,
    ) -> Self {
        let settings = settings.of_volume(&superblock);
        let pages = settings.cache_bytes / BLOCK_BYTES;
        let blocks = u64::from(superblock.segments) * u64::from(superblock.segment_blocks);
        Self {
            machine: Some(Machine::new(superblock.segments, settings.machine)),
            tables: Tables::new(checkpoint.roots.clone(), blocks.div_ceil(u64::from(TABLE_ENTRIES)) as u32, pages / 4),
            cache: super::cache::Cache::new(pages - pages / 4),
            waiting: super::waiting::Waiting::default(),
            under_way: std::collections::HashMap::new(),
            transaction: None,
            redo: Vec::new(),
            jobs: Vec::new(),
            view: super::planning::View::Blocks,
            written_files: std::collections::HashSet::new(),
            replayed: std::collections::HashSet::new(),
            lagging: checkpoint.lagging.clone(),
            rebuilt: std::collections::HashSet::new(),
            shown: Vec::new(),
            is_changed: true,
            checkpoint_at: 0,
            exhausted_at: None,
            holds_requests: false,
            usage: Usage {
                stored: checkpoint.stored,
                reserved: checkpoint.reserved,
                waiting: 0,
                pages: checkpoint.pages,
            },
            kept_for_shrinking: 0,
            counters: super::Counters::default(),
            incarnation: checkpoint.incarnation + 1,
            checkpoint_number: checkpoint.number,
            failure: None,
            unreadable: Vec::new(),
            written: 0,
            flushed: 0,
            batch: std::cell::Cell::new(None),
            victims: VecDeque::new(),
            observer: None,
            device,
            superblock,
            settings,
        }
    }
}
