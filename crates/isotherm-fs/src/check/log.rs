//! Counters and writes of the log against its entries.

use super::report::{Place, Report, Severity};
use crate::device::Device;
use crate::format::summary::{BlockName, Record};
use crate::log::Log;
use crate::log::census::{Census, FaultKind};
use crate::log::segment_reader::SegmentReader;
use crate::store::Slot;
use isotherm_sfs::segments::SegmentState;
use std::collections::BTreeSet;

/// What a block's name is a place of.
pub(super) fn place(name: BlockName) -> Place {
    match name {
        BlockName::Data(page, index) => Place::Slot(Slot { page, index }),
        BlockName::Page(id) => Place::Page(id),
        BlockName::Table(number) => Place::Table(number),
    }
}

/// Faults of entries.
pub(super) fn check_faults(census: &Census, report: &mut Report) {
    for fault in &census.faults {
        let what = match fault.kind {
            FaultKind::OutOfRange => format!("its entry leads out of the volume, to block {}", fault.position),
            FaultKind::Shared => format!("block {} belongs to something else as well", fault.position),
            FaultKind::Unreadable => format!("block {} cannot be read, or its checksum is wrong", fault.position),
        };
        report.find(Severity::Error, place(fault.name), what);
    }
}

/// Counters that are not what the entries say.
pub(super) fn check_counts(log: &Log, census: &Census, report: &mut Report) {
    let mut compare = |place, what: &str, counted: u64, found: u64| {
        if counted != found {
            report.find(Severity::Error, place, format!("{counted} {what} are counted, {found} are there"));
        }
    };
    let usage = log.usage();
    compare(Place::Volume, "pages", usage.pages, census.pages);
    compare(Place::Volume, "blocks of file data", usage.stored, census.stored);
    compare(Place::Volume, "blocks set aside", usage.reserved, census.reserved);
    for (number, (root, used)) in (0..).zip(log.page_roots().iter().zip(&census.used)) {
        compare(Place::Table(number), "pages", root.used.into(), (*used).into());
    }
    let state = log.machine().state();
    for (number, (segment, count)) in (0..).zip(state.segments.iter().zip(&census.segments)) {
        let place = Place::Segment(number);
        compare(place, "blocks in use", segment.referenced.into(), count.referenced.into());
        compare(place, "live blocks", segment.live.into(), count.live.into());
        compare(place, "writes of its blocks", segment.heat.writes(), count.writes);
        compare(place, "times of its blocks, as a sum,", segment.heat.times(), count.times);
    }
    check_states(log, census, report);
}

/// Which segments are free, open and written.
fn check_states(log: &Log, census: &Census, report: &mut Report) {
    let state = log.machine().state();
    let mut queued = vec![0u32; state.segments.len()];
    state.queue.iter().for_each(|segment| queued[*segment as usize] += 1);
    for (number, (segment, count)) in (0..).zip(state.segments.iter().zip(&census.segments)) {
        let mut find = |severity, what: String| report.find(severity, Place::Segment(number), what);
        let is_open = state.open.is_some_and(|open| open.segment == number);
        if is_open != (segment.state == SegmentState::Open) {
            find(Severity::Error, "its state does not say whether it is the open segment".into());
        }
        if queued[number as usize] != u32::from(segment.state == SegmentState::Freed) {
            let times = queued[number as usize];
            find(Severity::Error, format!("it is {:?} and stands in the queue {times} times", segment.state));
        }
        if segment.state == SegmentState::Freed && count.referenced > 0 {
            find(Severity::Error, format!("it is free and holds {} blocks", count.referenced));
        }
        if segment.youngest < count.latest {
            // Only which segment is cleaned depends on it.
            find(Severity::Note, format!("its latest time is {}, and a block has {}", segment.youngest, count.latest));
        }
    }
}

/// Positions of a segment that are in use, as far as the summaries of its writes name what lies there.
pub(super) fn named_positions(device: &dyn Device, log: &mut Log, segment: u32) -> BTreeSet<u32> {
    let superblock = log.superblock().clone();
    let mut records: Vec<(u32, Record)> = Vec::new();
    for summary in SegmentReader::new(device, &superblock).summaries(segment) {
        records.extend((summary.first_block()..).zip(summary.records.iter().copied()));
    }
    records.sort_unstable_by_key(|(position, record)| (Log::lookup_order(record.name), *position));
    records.retain(|(position, record)| {
        log.entry_named(record.name).is_ok_and(|entry| entry.is_some_and(|entry| entry.position == *position))
    });
    records.into_iter().map(|(position, _)| position).collect()
}

/// Every block in use is named by the summary of the write that it is part of: without it the cleaner does not find the block.
pub(super) fn check_summaries(device: &dyn Device, log: &mut Log, census: &Census, report: &mut Report) {
    for (number, count) in (0..).zip(&census.segments).filter(|(_, count)| count.referenced > 0) {
        let named = named_positions(device, log, number).len() as u32;
        if named < count.referenced {
            let what = format!("no summary names {} blocks of it: it cannot be cleaned", count.referenced - named);
            report.find(Severity::Error, Place::Segment(number), what);
        }
    }
}
