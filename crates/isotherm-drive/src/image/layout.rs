//! Where everything lies in an image, and what its records look like. `docs/flash-image.md` describes the same in words.
//!
//! All numbers are little-endian. A *slot* is room for the pages of one block; a block that is erased leaves its slot, and is
//! programmed again in another, so that what it held is there until nothing can need it any more.

use isotherm::address::{BlockId, Geometry};
use isotherm::cause::Cause;
use isotherm::nand::{Kind, Oob, Owner};

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
    /// Bytes of the image.
    pub length: u64,
}

impl Layout {
    /// The places of an image for an array.
    pub fn new(geometry: Geometry) -> Self {
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
        let length = data_at + u64::from(slots) * block_bytes;
        Self { geometry, slots, erases_at, oob_at, mirror_at, checkpoint_at, checkpoint_bytes, data_at, length }
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

    /// Where the copy of a record lies.
    pub(crate) fn mirror_of(&self, at: u64) -> u64 {
        at - self.erases_at + self.mirror_at
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
            let layout = Layout::new(geometry);
            let last_erase = layout.erase_of(BlockId(geometry.blocks - 1), 1) + OOB_BYTES;
            let last_oob = layout.oob_of(layout.slots - 1, layout.slot_pages() - 1) + OOB_BYTES;
            assert!(last_erase <= layout.oob_at && last_oob <= layout.mirror_at);
            assert!(layout.mirror_of(last_oob) <= layout.checkpoint_at);
            assert_eq!(layout.data_of(layout.slots, 0), layout.length);
        }
    }
}
