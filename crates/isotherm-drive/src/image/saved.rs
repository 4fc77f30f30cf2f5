//! What a protected write buffer held when it was last flushed: the frames that flash has not seen, in an area of their own.
//!
//! Each frame has two places, which take turns, and a record for each of them. To save a frame is an operation like a program: it has
//! a number, so that of all that a crash leaves the same prefix counts. The record before the newest one is whole until the newest is
//! durable.

use super::disk::Disk;
use super::layout::{Layout, OOB_BYTES, SaveRecord, page_check};
use isotherm::address::Lpn;
use isotherm::nand::{Kind, Oob, Owner};
use std::io;

/// A page of a write buffer, as a crash left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldPage {
    pub(crate) lpn: Lpn,
    /// The operation that saved it.
    pub(crate) number: u64,
    /// Where its bytes lie.
    pub(crate) at: u64,
    pub(crate) check: u32,
}

impl HeldPage {
    /// Reads the page; false where it is damaged.
    pub(crate) fn read(&self, disk: &impl Disk, out: &mut [u8]) -> io::Result<bool> {
        disk.read(self.at, out)?;
        Ok(check_of(out, self.lpn, self.number) == self.check)
    }
}

/// Checksum of a page that operation `number` saves.
fn check_of(page: &[u8], lpn: Lpn, number: u64) -> u32 {
    page_check(page, Oob { owner: Owner::new(Kind::Data, lpn.0), sequence: number })
}

/// The newest record of each frame.
pub(super) struct SavedFrames {
    newest: Vec<Newest>,
}

#[derive(Clone, Copy, Default)]
struct Newest {
    /// The operation; 0 where there is none.
    number: u64,
    place: u8,
    holds_page: bool,
}

impl SavedFrames {
    /// An area in which nothing is saved.
    pub(super) fn new(layout: &Layout) -> Self {
        Self { newest: vec![Newest::default(); layout.frames as usize] }
    }

    /// Whether anything was ever saved.
    pub(super) fn is_used(&self) -> bool {
        self.newest.iter().any(|newest| newest.number > 0)
    }

    /// The operation that saved a frame last, which must be durable before the frame is saved again; none where nothing is to be
    /// done: a frame of which nothing is kept need not be forgotten.
    pub(super) fn before(&self, frame: u32, holds_page: bool) -> Option<u64> {
        let newest = self.newest[frame as usize];
        (holds_page || newest.holds_page).then_some(newest.number)
    }

    /// Saves a frame by operation `number`, data first.
    pub(super) fn write(
        &mut self,
        disk: &impl Disk,
        layout: &Layout,
        frame: u32,
        number: u64,
        held: Option<(Lpn, &[u8])>,
    ) -> io::Result<()> {
        let newest = &mut self.newest[frame as usize];
        *newest = Newest { number, place: newest.place ^ 1, holds_page: held.is_some() };
        let place = newest.place;
        let check = match held {
            Some((lpn, page)) => {
                disk.write(layout.frame_of(frame, place), page)?;
                check_of(page, lpn, number)
            }
            None => 0,
        };
        let record = SaveRecord { lpn: held.map(|(lpn, _)| lpn), frame, check, number }.encode();
        let at = layout.save_of(frame, place);
        disk.write(at, &record)?;
        disk.write(layout.mirror_of(at), &record)
    }
}

/// A record as it lies there.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) record: SaveRecord,
    pub(super) place: u8,
}

impl Found {
    /// Where the record lies.
    pub(super) fn at(&self, layout: &Layout) -> u64 {
        layout.save_of(self.record.frame, self.place)
    }

    /// The page that it speaks of; none where the frame held none.
    pub(super) fn page(&self, layout: &Layout) -> Option<HeldPage> {
        let SaveRecord { lpn, frame, check, number } = self.record;
        Some(HeldPage { lpn: lpn?, number, at: layout.frame_of(frame, self.place), check })
    }
}

/// All records of saved frames, in the order of frames, and how many of them were read from their copies.
pub(super) fn read_all(disk: &impl Disk, layout: &Layout) -> io::Result<(Vec<Found>, u64)> {
    let mut bytes = vec![0; layout.frames as usize * 2 * OOB_BYTES as usize];
    disk.read(layout.saves_at, &mut bytes)?;
    let mended = layout.mend(disk, layout.saves_at, &mut bytes, |record| SaveRecord::decode(record).is_some())?;
    let mut found = Vec::new();
    for (index, bytes) in (0u32..).zip(bytes.chunks_exact(OOB_BYTES as usize)) {
        let (frame, place) = (index / 2, (index & 1) as u8);
        let record = SaveRecord::decode(bytes);
        found.extend(record.filter(|record| record.frame == frame).map(|record| Found { record, place }));
    }
    Ok((found, mended))
}

/// The pages that the buffer held after operation `end`. Where two frames speak of a page, the newer one counts.
pub(super) fn held_at(layout: &Layout, found: &[Found], end: u64) -> Vec<HeldPage> {
    let mut newest: Vec<Option<Found>> = vec![None; layout.frames as usize];
    for entry in found.iter().filter(|entry| entry.record.number <= end) {
        let place = &mut newest[entry.record.frame as usize];
        if place.is_none_or(|before| before.record.number < entry.record.number) {
            *place = Some(*entry);
        }
    }
    let mut held: Vec<HeldPage> = newest.into_iter().flatten().filter_map(|entry| entry.page(layout)).collect();
    held.sort_unstable_by_key(|page| (page.lpn, std::cmp::Reverse(page.number)));
    held.dedup_by_key(|page| page.lpn);
    held
}

/// Forgets all that was saved: it is on flash, and durable there. Copies go first, since one that outlived its record would be taken for
/// it; then what a newer record supersedes, so that no crash brings it back; the caller syncs.
pub(crate) fn forget_all(disk: &impl Disk, layout: &Layout) -> io::Result<()> {
    let zeros = vec![0; (layout.frames_at - layout.saves_mirror_at) as usize];
    let (found, _) = read_all(disk, layout)?;
    disk.write(layout.saves_mirror_at, &zeros)?;
    disk.sync()?;
    for pair in found.windows(2) {
        let [one, other] = pair else { continue };
        if one.record.frame == other.record.frame {
            let older = if one.record.number < other.record.number { one } else { other };
            disk.write(older.at(layout), &[0; OOB_BYTES as usize])?;
        }
    }
    disk.sync()?;
    disk.write(layout.saves_at, &zeros)?;
    // A record outlives its page in no crash: else the page would be found damaged.
    disk.sync()?;
    disk.punch(layout.frames_at, layout.length - layout.frames_at)
}
