//! A log without a tree, driven by one thread: plans, writes, commits and cleans.

use isotherm_fs::format::checkpoint::Lagging;
use isotherm_fs::log::segment_reader::SegmentReader;
use isotherm_fs::log::{Goal, Log, Planned};
use isotherm_fs::store::BLOCK_BYTES;

/// Plans a goal and writes it.
pub fn carry_out(log: &mut Log, goal: &Goal) {
    for _ in 0..1000 {
        let planned = log.plan(goal).expect("the device works");
        perform(log);
        match planned {
            Planned::Done => return,
            Planned::NeedsCheckpoint => commit(log, false),
            Planned::NeedsCleaning => {
                assert!(clean(log), "nothing is worth cleaning");
                let _ = log.plan(&Goal::Cleaned).expect("the device works");
                perform(log);
                commit(log, false);
            }
        }
    }
    panic!("{goal:?} never ends");
}

fn perform(log: &mut Log) {
    let jobs = log.take_jobs();
    for job in &jobs {
        job.perform(&**log.device()).expect("the device works");
        log.finish(job);
    }
}

/// Writes a checkpoint.
pub fn commit(log: &mut Log, is_last: bool) {
    assert_eq!(log.plan(&Goal::Pages).expect("the device works"), Planned::Done, "no room for a checkpoint");
    let image = log.checkpoint(is_last, Lagging::default());
    perform(log);
    let device = log.device().clone();
    device.flush().expect("the device works");
    device.write(u64::from(image.position) * BLOCK_BYTES as u64, &image.bytes).expect("the device works");
    device.flush().expect("the device works");
    for (first, blocks) in image.free {
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_BYTES as u64;
        device.discard(bytes(first), bytes(blocks)).expect("the device works");
    }
}

/// Cleans a segment; false if none is worth it.
pub fn clean(log: &mut Log) -> bool {
    let Some(victim) = log.pick_victim(false) else { return false };
    let (device, superblock) = (log.device().clone(), log.superblock().clone());
    let reader = SegmentReader::new(&*device, &superblock);
    for summary in reader.summaries(victim) {
        for (position, record) in (summary.first_block()..).zip(&summary.records) {
            if log.is_live(record.name, position).expect("the device works") {
                let content = reader.read_blocks(position, 1).expect("the device works").remove(0);
                log.adopt(record, position, content).expect("the device works");
            }
        }
    }
    assert!(log.free_segment(victim), "live blocks of segment {victim} were not found");
    true
}
