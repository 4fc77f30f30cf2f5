//! What a mounted volume counts and what its segments hold, for whoever watches it.

use super::{Volume, lock};
use crate::device::DeviceCounters;
use crate::log::{Counters, Usage, Victim};
use crate::store::{BLOCK_BYTES, Space, Store as _, StoreError};
use isotherm_sfs::segments::SegmentState;
use isotherm_sfs::snapshot::GroupCounters;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Extended attribute of the root directory that holds the counters as JSON. It is not listed.
pub const STATISTICS_XATTR: &str = "user.sfs.stats";
/// Setting this extended attribute of the root directory makes everything durable: sync(2) does not reach a FUSE server.
pub const SYNC_XATTR: &str = "user.sfs.sync";
/// Parts of the histogram of utilisation.
const PARTS: usize = 20;

/// What a mounted volume counted since it was opened, and how it stands.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments.
    pub segments: u32,
    /// Of these, free ones.
    pub segments_free: u32,
    /// Segments that files cannot take.
    pub segments_reserve: u32,
    /// Free segments at which the background cleans.
    pub cleaning_at: u32,
    /// Free segments below which whoever writes cleans first, with what waits now.
    pub writers_clean_below: u32,
    /// Blocks that files can take.
    pub space: Space,
    /// What takes space.
    pub usage: Usage,
    /// Blocks that wait to be written.
    pub blocks_waiting: u64,
    /// Pages that wait to be written.
    pub pages_dirty: u64,
    /// What the log counted.
    pub counters: Counters,
    /// Bytes of files that were read.
    pub bytes_read: u64,
    /// Reads of files that failed.
    pub read_errors: u64,
    /// Why the last of them did, and of which inode.
    pub last_read_error: Option<String>,
    /// By group of hotness, coldest first.
    pub groups: Vec<GroupCounters>,
    /// Centre of hotness of each group; empty before the first segment write.
    pub centres: Vec<f64>,
    /// The segments that were chosen last to be cleaned, oldest first.
    pub victims: Vec<Victim>,
    /// What the device counts of itself.
    pub device: Option<DeviceCounters>,
    /// Why nothing can be written any more.
    pub failure: Option<String>,
}

/// A segment, as far as policies look at it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SegmentView {
    /// What it is doing.
    pub state: SegmentState,
    /// The group that it was written for as a whole; none where it was not, or was found by recovery.
    pub group: Option<u8>,
    /// Live blocks over payload.
    pub utilisation: f32,
    /// Of its live blocks together; 0 without any.
    pub hotness: f32,
    /// Block writes of files since the youngest of its blocks was written.
    pub age: u32,
}

impl Figures {
    /// Blocks of file data that reached the log because files wrote them.
    #[must_use]
    pub fn logged_blocks(&self) -> u64 {
        self.counters.data_blocks - self.counters.cleaned_blocks
    }

    /// Blocks written to the device, for whatever reason.
    #[must_use]
    pub fn written_blocks(&self) -> u64 {
        let c = &self.counters;
        c.data_blocks + c.page_blocks + c.table_blocks + c.summary_blocks + c.checkpoint_blocks
    }

    /// Blocks written for each block of file data that reached the log.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        self.for_each_logged(self.written_blocks())
    }

    /// The same, and blocks that were read for cleaning count as much as written ones.
    #[must_use]
    pub fn write_cost(&self) -> Option<f64> {
        self.for_each_logged(self.written_blocks() + self.counters.cleaning_reads)
    }

    fn for_each_logged(&self, blocks: u64) -> Option<f64> {
        (self.logged_blocks() > 0).then(|| blocks as f64 / self.logged_blocks() as f64)
    }
}

impl Volume {
    /// The counters. Costs no more than copying them.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn figures(&self) -> Result<Figures, StoreError> {
        // It may be at work, which requests of files must not wait for.
        let device = self.device.counters();
        let tree = lock(&self.tree)?;
        let log = tree.store();
        let (superblock, machine) = (log.superblock(), log.machine());
        Ok(Figures {
            segment_bytes: u64::from(superblock.segment_blocks) * BLOCK_BYTES as u64,
            segments: superblock.segments,
            segments_free: machine.segments().freed(),
            segments_reserve: superblock.reserve_segments,
            cleaning_at: machine.options().clean_below,
            writers_clean_below: log.segments_wanted_ahead() as u32,
            space: log.space(),
            usage: log.usage(),
            blocks_waiting: log.waiting_blocks() as u64,
            pages_dirty: log.dirty_pages() as u64,
            counters: *log.counters(),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            read_errors: self.read_errors.load(Ordering::Relaxed),
            last_read_error: lock(&self.last_read_error)?.clone(),
            groups: machine.counters().groups.clone(),
            centres: machine.centres(),
            victims: log.victims().collect(),
            device,
            failure: log.failure().map(str::to_owned),
        })
    }

    /// Every segment, in order. The lock is held for a pass over the table in memory.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn segments(&self) -> Result<Vec<SegmentView>, StoreError> {
        let tree = lock(&self.tree)?;
        let machine = tree.store().machine();
        let (segments, now, ticks) = (machine.segments(), machine.now() as u32, machine.ticks());
        let view = |segment: u32| {
            let live = segments.live(segment);
            SegmentView {
                state: segments.state(segment),
                group: segments.written(segment).map(|(group, _)| group),
                utilisation: segments.utilisation(segment) as f32,
                hotness: if live > 0 { segments.heat(segment).hotness(live, ticks) as f32 } else { 0.0 },
                age: now.wrapping_sub(segments.youngest(segment)),
            }
        };
        Ok((0..segments.count()).map(view).collect())
    }

    /// Counters, space and segments.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn counters(&self) -> Result<Value, StoreError> {
        let figures = self.figures()?;
        let mut utilisation = [0u64; PARTS];
        for segment in self.segments()?.iter().filter(|segment| segment.utilisation > 0.0) {
            utilisation[((segment.utilisation * PARTS as f32) as usize).min(PARTS - 1)] += 1;
        }
        let (counters, usage) = (&figures.counters, figures.usage);
        let own = figures.write_amplification();
        let of_device = figures.device.as_ref().and_then(DeviceCounters::write_amplification);
        Ok(json!({
            "segment_bytes": figures.segment_bytes,
            "segments": figures.segments,
            "segments_free": figures.segments_free,
            "segments_reserve": figures.segments_reserve,
            "blocks_total": figures.space.total,
            "blocks_free": figures.space.free,
            "blocks_stored": usage.stored,
            "blocks_reserved": usage.reserved,
            "blocks_waiting": figures.blocks_waiting,
            "pages": usage.pages,
            "pages_dirty": figures.pages_dirty,
            "host_bytes_read": figures.bytes_read,
            "read_errors": figures.read_errors,
            "last_read_error": figures.last_read_error,
            "host_blocks": counters.host_blocks,
            "absorbed_blocks": counters.absorbed_blocks,
            "data_blocks": counters.data_blocks,
            "cleaned_blocks": counters.cleaned_blocks,
            "page_blocks": counters.page_blocks,
            "table_blocks": counters.table_blocks,
            "summary_blocks": counters.summary_blocks,
            "checkpoint_blocks": counters.checkpoint_blocks,
            "written_blocks": figures.written_blocks(),
            "write_amplification": own,
            "write_cost": figures.write_cost(),
            "write_amplification_end_to_end": own.zip(of_device).map(|(own, device)| own * device),
            "device": figures.device.map(|device| device.all),
            "writes": counters.writes,
            "transactions": counters.transactions,
            "checkpoints": counters.checkpoints,
            "segments_cleaned": counters.segments_cleaned,
            "cleaning_reads": counters.cleaning_reads,
            "centres": figures.centres,
            "utilisation_histogram": utilisation,
            "failure": figures.failure,
        }))
    }
}
