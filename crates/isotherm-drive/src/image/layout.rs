//! Where everything lies in an image, and what its records look like. `docs/flash-image.md` describes the same in words.
//!
//! All numbers are little-endian. A *slot* is room for the pages of one block; a block that is erased leaves its slot, and is
//! programmed again in another, so that what it held is there until nothing can need it any more.

use super::disk::Disk;
use isotherm::address::{BlockId, Geometry, Lpn};
use isotherm::cause::Cause;
use isotherm::nand::{Kind, Oob, Owner};
use std::io;

/// Bytes of a header; there are two, one after the other.
pub(crate) const HEADER_BYTES: u64 = 16 << 10;
/// What the checksum of a record begins with, so that zeros are no record.
const RECORD_SEED: u64 = 0x1507_0E42_0F1A_5B1D;
/// Where the records of what is durable lie: four of them, two alternating ones with a copy each.
pub(crate) const RECORDS_AT: u64 = 2 * HEADER_BYTES;
/// Bytes of such a record.
pub(crate) const RECORD_BYTES: u64 = 4096;
/// Bytes of the OOB area of a page, and of the record of an erase.
pub(crate) const OOB_BYTES: u64 = 32;
/// Everything of some size begins at a multiple of this.
const ALIGNMENT: u64 = 4096;
/// Bytes that slots beyond one a block may take: they hold what was erased until that is durable.
const SPARE_SLOT_BYTES: u64 = 256 << 20;
/// The least number of such slots.
const SPARE_SLOTS_MIN: u32 = 4;

/// The places of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Shape of the array.
    pub geometry: Geometry,
    /// Slots: one for each block, and spare ones.
    pub slots: u32,
    /// Where the records of erases lie: two for each block, by turns.
    pub erases_at: u64,
    /// Where the OOB areas lie, in the order of slots.
    pub oob_at: u64,
    /// Where a copy of both lies, from the first record of erases on.
    pub mirror_at: u64,
    /// Where the checkpoint lies.
    pub checkpoint_at: u64,
    /// Bytes that a checkpoint may have.
    pub checkpoint_bytes: u64,
    /// Where the pages lie, in the order of slots.
    pub data_at: u64,
    /// Frames of a protected write buffer; 0 where there is none.
    pub frames: u32,
    /// Where the records of saved frames lie, two for each; a copy follows them.
    pub saves_at: u64,
    /// Where the copy of these records lies.
    pub saves_mirror_at: u64,
    /// Where the saved frames lie, two for each.
    pub frames_at: u64,
    /// Bytes of the image.
    pub length: u64,
}

impl Layout {
    /// The places of an image for an array, and for so many frames of a protected write buffer.
    pub fn new(geometry: Geometry, frames: u32) -> Self {
        let block_bytes = u64::from(geometry.page_bytes()) << geometry.log2_pages_per_block;
        let spare = (SPARE_SLOT_BYTES / block_bytes).min(u64::from(geometry.blocks / 8)) as u32;
        let slots = geometry.blocks + spare.max(SPARE_SLOTS_MIN);
        let up = |bytes: u64| bytes.next_multiple_of(ALIGNMENT);
        let erases_at = RECORDS_AT + 4 * RECORD_BYTES;
        let oob_at = up(erases_at + u64::from(geometry.blocks) * 2 * OOB_BYTES);
        let mirror_at = up(oob_at + (u64::from(slots) << geometry.log2_pages_per_block) * OOB_BYTES);
        let checkpoint_at = up(mirror_at + (mirror_at - erases_at));
        let pages = u64::from(geometry.blocks) << geometry.log2_pages_per_block;
        let checkpoint_bytes = up(u64::from(geometry.blocks) * 24 + pages * 16);
        let data_at = checkpoint_at + checkpoint_bytes;
        let saves_at = up(data_at + u64::from(slots) * block_bytes);
        let saves_bytes = up(u64::from(frames) * 2 * OOB_BYTES);
        let (saves_mirror_at, frames_at) = (saves_at + saves_bytes, saves_at + 2 * saves_bytes);
        let length = match frames {
            0 => data_at + u64::from(slots) * block_bytes,
            _ => frames_at + ((u64::from(frames) * 2) << geometry.log2_page_bytes),
        };
        Self {
            geometry,
            slots,
            erases_at,
            oob_at,
            mirror_at,
            checkpoint_at,
            checkpoint_bytes,
            data_at,
            frames,
            saves_at,
            saves_mirror_at,
            frames_at,
            length,
        }
    }

    /// Pages in one slot.
    pub(crate) fn slot_pages(&self) -> u32 {
        self.geometry.pages_per_block()
    }

    /// Where the OOB area of a page lies.
    pub(crate) fn oob_of(&self, slot: u32, index: u32) -> u64 {
        self.oob_at + ((u64::from(slot) << self.geometry.log2_pages_per_block) + u64::from(index)) * OOB_BYTES
    }

    /// Where a page lies.
    pub(crate) fn data_of(&self, slot: u32, index: u32) -> u64 {
        let page = (u64::from(slot) << self.geometry.log2_pages_per_block) + u64::from(index);
        self.data_at + (page << self.geometry.log2_page_bytes)
    }

    /// Bytes of a slot's pages.
    pub(crate) fn slot_bytes(&self) -> u64 {
        u64::from(self.geometry.page_bytes()) << self.geometry.log2_pages_per_block
    }

    /// Where the record of an erase lies: two places take turns, so that one is whole while the other is written.
    pub(crate) fn erase_of(&self, block: BlockId, erases: u32) -> u64 {
        self.erases_at + (u64::from(block.0) * 2 + u64::from(erases & 1)) * OOB_BYTES
    }

    /// Where the record of a saved frame lies, in one of its two places.
    pub(crate) fn save_of(&self, frame: u32, place: u8) -> u64 {
        self.saves_at + (u64::from(frame) * 2 + u64::from(place)) * OOB_BYTES
    }

    /// Where a saved frame lies, in one of its two places.
    pub(crate) fn frame_of(&self, frame: u32, place: u8) -> u64 {
        self.frames_at + ((u64::from(frame) * 2 + u64::from(place)) << self.geometry.log2_page_bytes)
    }

    /// Where the copy of a record lies.
    pub(crate) fn mirror_of(&self, at: u64) -> u64 {
        if at < self.saves_at {
            at - self.erases_at + self.mirror_at
        } else {
            at - self.saves_at + self.saves_mirror_at
        }
    }

    /// Puts the copy in place of each record among `bytes`, read from `at`, that is not whole while its copy is; zeros are no whole record,
    /// since a lost write leaves them too. Returns how many were not whole.
    pub(crate) fn mend(
        &self,
        disk: &impl Disk,
        at: u64,
        bytes: &mut [u8],
        is_whole: fn(&[u8]) -> bool,
    ) -> io::Result<u64> {
        const RECORD: usize = OOB_BYTES as usize;
        if bytes.chunks_exact(RECORD).all(is_whole) {
            return Ok(0);
        }
        let mut copies = vec![0; bytes.len()];
        disk.read(self.mirror_of(at), &mut copies)?;
        let mut mended = 0;
        for (record, copy) in bytes.chunks_exact_mut(RECORD).zip(copies.chunks_exact(RECORD)) {
            if !is_whole(record) && is_whole(copy) {
                record.copy_from_slice(copy);
                mended += 1;
            }
        }
        Ok(mended)
    }
}

/// The number of an operation and why it was made, in 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    /// Programs, copies and erases are numbered from 1 on, without a gap since the last time that all was durable.
    pub(crate) number: u64,
    pub(crate) cause: Cause,
    /// Whether it was a copy inside the array.
    pub(crate) is_copy: bool,
}

impl Event {
    fn encode(self) -> u64 {
        self.number << 5 | u64::from(self.is_copy) << 4 | self.cause as u64
    }

    fn decode(bits: u64) -> Option<Self> {
        let cause = *Cause::ALL.get((bits & 15) as usize)?;
        Some(Self { number: bits >> 5, cause, is_copy: bits >> 4 & 1 == 1 })
    }
}

/// The OOB area of a page, as the image keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageRecord {
    pub(crate) oob: Oob,
    pub(crate) block: BlockId,
    /// The checksum of data, owner and sequence number.
    pub(crate) check: u32,
    pub(crate) event: Event,
}

/// The record of an erase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EraseRecord {
    pub(crate) block: BlockId,
    /// Erases of the block, this one included.
    pub(crate) erases: u32,
    pub(crate) event: Event,
}

/// The record of a saved frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SaveRecord {
    /// The page that the frame held; none where flash has seen what it held.
    pub(crate) lpn: Option<Lpn>,
    pub(crate) frame: u32,
    /// The checksum of data, page and number; 0 where there is no page.
    pub(crate) check: u32,
    /// The operation that saved it.
    pub(crate) number: u64,
}

/// What stands in place of a page where a frame holds none.
const NO_PAGE: u32 = u32::MAX;

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn owner_bits(owner: Owner) -> u32 {
    (owner.kind() as u32) << 30 | owner.address()
}

#[inline(always)]
pub(crate) fn owner_of(bits: u32) -> Owner {
    let kind = match bits >> 30 {
        0 => Kind::Data,
        1 => Kind::Translation,
        2 => Kind::Tombstone,
        _ => Kind::Unreadable,
    };
    Owner::new(kind, bits & ((1 << 30) - 1))
}

/// The checksum of a page: of its bytes, and of whose and which they are.
pub(crate) fn page_check(page: &[u8], oob: Oob) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(page);
    hasher.update(&owner_bits(oob.owner).to_le_bytes());
    hasher.update(&oob.sequence.to_le_bytes());
    hasher.finalize()
}

/// The checksum of a record, of its bytes from the fourth on. A scan computes it for every page there is, so it takes a multiplication
/// for each eight bytes; each step is a bijection.
fn record_check(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let first = mix(RECORD_SEED, u64::from(u32_at(bytes, 4)));
    let sum = [8, 16, 24].iter().fold(first, |sum, at| mix(sum, u64_at(bytes, *at)));
    (sum.wrapping_mul(FACTOR) >> 32) as u32
}

impl PageRecord {
    pub(crate) fn encode(&self) -> [u8; OOB_BYTES as usize] {
        let mut bytes = [0; OOB_BYTES as usize];
        bytes[4..8].copy_from_slice(&owner_bits(self.oob.owner).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.block.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.check.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.event.encode().to_le_bytes());
        bytes[24..32].copy_from_slice(&self.oob.sequence.to_le_bytes());
        let check = record_check(&bytes);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record in `bytes`; none where there is none, or a damaged one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let event = decoded_event(bytes)?;
        Some(Self {
            oob: Oob { owner: owner_of(u32_at(bytes, 4)), sequence: u64_at(bytes, 24) },
            block: BlockId(u32_at(bytes, 8)),
            check: u32_at(bytes, 12),
            event,
        })
    }
}

impl EraseRecord {
    pub(crate) fn encode(&self) -> [u8; OOB_BYTES as usize] {
        let mut bytes = [0; OOB_BYTES as usize];
        bytes[4..8].copy_from_slice(&self.block.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.erases.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.event.encode().to_le_bytes());
        let check = record_check(&bytes);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record in `bytes`; none where there is none, or a damaged one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let event = decoded_event(bytes)?;
        Some(Self { block: BlockId(u32_at(bytes, 4)), erases: u32_at(bytes, 8), event })
    }
}

impl SaveRecord {
    pub(crate) fn encode(&self) -> [u8; OOB_BYTES as usize] {
        let mut bytes = [0; OOB_BYTES as usize];
        bytes[4..8].copy_from_slice(&self.lpn.map_or(NO_PAGE, |lpn| lpn.0).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.frame.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.check.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.event().encode().to_le_bytes());
        let check = record_check(&bytes);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record in `bytes`; none where there is none, or a damaged one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let number = decoded_event(bytes)?.number;
        let lpn = Some(u32_at(bytes, 4)).filter(|lpn| *lpn != NO_PAGE).map(Lpn);
        Some(Self { lpn, frame: u32_at(bytes, 8), check: u32_at(bytes, 12), number })
    }

    /// What was done, by its number.
    pub(crate) fn event(&self) -> Event {
        Event { number: self.number, cause: Cause::Host, is_copy: false }
    }
}

/// The event of a record that is whole.
fn decoded_event(bytes: &[u8]) -> Option<Event> {
    let bits = u64_at(bytes, 16);
    // Most places are empty: the checksum need not say so.
    if bits == 0 || record_check(bytes) != u32_at(bytes, 0) {
        return None;
    }
    Event::decode(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> PageRecord {
        PageRecord {
            oob: Oob { owner: Owner::new(Kind::Tombstone, 12_345), sequence: u64::MAX - 7 },
            block: BlockId(77),
            check: 0xDEAD_BEEF,
            event: Event { number: 1 << 40, cause: Cause::FullMerge, is_copy: true },
        }
    }

    #[test]
    fn records_come_back() {
        assert_eq!(PageRecord::decode(&record().encode()), Some(record()));
        let erase = EraseRecord { block: BlockId(3), erases: 9, event: record().event };
        assert_eq!(EraseRecord::decode(&erase.encode()), Some(erase));
        assert_eq!(PageRecord::decode(&[0; 32]), None);
        for lpn in [Some(Lpn(4)), None] {
            let save = SaveRecord { lpn, frame: 7, check: 0xDEAD_BEEF, number: 1 << 40 };
            assert_eq!(SaveRecord::decode(&save.encode()), Some(save));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_seen() {
        let whole = record().encode();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PageRecord::decode(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn places_do_not_overlap() {
        for geometry in
            [Geometry::simple(20, 8, 512), Geometry::simple(70_000, 64, 4096), Geometry::simple(3, 2, 16384)]
        {
            let layout = Layout::new(geometry, 0);
            let last_erase = layout.erase_of(BlockId(geometry.blocks - 1), 1) + OOB_BYTES;
            let last_oob = layout.oob_of(layout.slots - 1, layout.slot_pages() - 1) + OOB_BYTES;
            assert!(last_erase <= layout.oob_at && last_oob <= layout.mirror_at);
            assert!(layout.mirror_of(last_oob) <= layout.checkpoint_at);
            assert_eq!(layout.data_of(layout.slots, 0), layout.length);
            let (pages_end, layout) = (layout.length, Layout::new(geometry, 3));
            let last_save = layout.save_of(2, 1) + OOB_BYTES;
            assert!(pages_end <= layout.saves_at && last_save <= layout.saves_mirror_at);
            assert!(layout.mirror_of(last_save) <= layout.frames_at);
            assert_eq!(layout.frame_of(3, 0), layout.length);
        }
    }
}
