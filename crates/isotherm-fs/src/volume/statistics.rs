//! What a mounted volume counts, for whoever watches it.

use super::{Volume, lock};
use crate::device::Device;
use crate::store::{Store as _, StoreError};
use serde_json::{Value, json};

/// Extended attribute of the root directory that holds the counters as JSON. It is not listed.
pub const STATISTICS_XATTR: &str = "user.sfs.stats";
/// Setting this extended attribute of the root directory makes everything durable: sync(2) does not reach a FUSE server.
pub const SYNC_XATTR: &str = "user.sfs.sync";
/// Parts of the histogram of utilisation.
const PARTS: usize = 20;

impl<D: Device> Volume<D> {
    /// Counters, space and segments.
    ///
    /// # Errors
    /// An earlier request panicked.
    pub fn counters(&self) -> Result<Value, StoreError> {
        let tree = lock(&self.tree)?;
        let log = tree.store();
        let (counters, usage, space, machine) = (log.counters(), log.usage(), log.space(), log.machine());
        let segments = machine.segments();
        let mut utilisation = [0u64; PARTS];
        for segment in 0..segments.count() {
            if segments.live(segment) > 0 {
                let part = (segments.utilisation(segment) * PARTS as f64) as usize;
                utilisation[part.min(PARTS - 1)] += 1;
            }
        }
        let logged = counters.data_blocks - counters.cleaned_blocks;
        let written = counters.data_blocks
            + counters.page_blocks
            + counters.table_blocks
            + counters.summary_blocks
            + counters.checkpoint_blocks;
        let own = (logged > 0).then(|| written as f64 / logged as f64);
        let device = self.device.counters();
        let of_device = device.as_ref().and_then(|device| device.write_amplification);
        Ok(json!({
            "segment_bytes": u64::from(log.superblock().segment_blocks) * 4096,
            "segments": segments.count(),
            "segments_free": segments.freed(),
            "segments_reserve": log.superblock().reserve_segments,
            "blocks_total": space.total,
            "blocks_free": space.free,
            "blocks_stored": usage.stored,
            "blocks_reserved": usage.reserved,
            "blocks_waiting": log.waiting_blocks(),
            "pages": usage.pages,
            "pages_dirty": log.dirty_pages(),
            "host_blocks": counters.host_blocks,
            "absorbed_blocks": counters.absorbed_blocks,
            "data_blocks": counters.data_blocks,
            "cleaned_blocks": counters.cleaned_blocks,
            "page_blocks": counters.page_blocks,
            "table_blocks": counters.table_blocks,
            "summary_blocks": counters.summary_blocks,
            "checkpoint_blocks": counters.checkpoint_blocks,
            "written_blocks": written,
            "write_amplification": own,
            "write_amplification_end_to_end": own.zip(of_device).map(|(own, device)| own * device),
            "device": device.map(|device| device.all),
            "writes": counters.writes,
            "transactions": counters.transactions,
            "checkpoints": counters.checkpoints,
            "segments_cleaned": counters.segments_cleaned,
            "cleaning_reads": counters.cleaning_reads,
            "centres": machine.centres(),
            "utilisation_histogram": utilisation,
            "failure": log.failure(),
        }))
    }
}
