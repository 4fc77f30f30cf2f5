//! Checkpoints: what recovery starts from.
//!
//! A checkpoint is a superblock and the table of segments, in one of two places that take turns, so that the one before it is
//! whole while it is written. The map is not in it: recovery finds blocks in the segments' summaries ([`crate::summary`]).
//! Layout of the superblock, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `isfc` |
//! | 4..8 | incarnation of the log: rises with every recovery |
//! | 8..16 | number of the checkpoint, from 1; its lowest bit is the place |
//! | 16..24 | sequence number of the last write before it |
//! | 24..32 | time in host block writes |
//! | 32..36 | segments |
//! | 36..40 | blocks in a segment |
//! | 40..44 | blocks that the log holds |
//! | 44..48 | open segment, or 2^32 - 1 |
//! | 48..52 | blocks of the open segment that are written |
//! | 52..56 | groups that have a centre, 0 to 8 |
//! | 56..64 | checksum of the whole checkpoint, these eight bytes aside |
//! | 64..128 | the groups' centres of hotness, coldest first, as 64-bit floating point |
//! | 128..4096 | zeros |
//!
//! From byte 4096 on, 16 bytes a segment: blocks whose newest durable copy is in it (4), time of its youngest block (4), its
//! place in the queue of free segments, or 2^32 - 1 if it is written and 2^32 - 2 if it is open (4), zeros (4). Zeros fill the last
//! block. This is the simulator's own layout; it may change between versions.

use crate::checksum::Checksum;
use crate::options::BLOCK_BYTES;
use crate::segments::{OpenSegment, SegmentState, Segments};
use isotherm::hotness::heat::Time;
use isotherm::hotness::quantise::MAX_GROUPS;

const MAGIC: &[u8; 4] = b"isfc";
const BLOCK: usize = BLOCK_BYTES as usize;
const CHECKSUM_AT: usize = 56;
const CENTRES_AT: usize = 64;
/// Bytes that a checkpoint records of a segment.
const SEGMENT_BYTES: usize = 16;
const WRITTEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;
const NO_SEGMENT: u32 = u32::MAX;

/// Blocks of one checkpoint.
pub fn checkpoint_blocks(segments: u32) -> u32 {
    1 + segments.div_ceil((BLOCK / SEGMENT_BYTES) as u32)
}

/// What a checkpoint says of the log as a whole.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Superblock {
    pub(crate) incarnation: u32,
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    pub(crate) now: u64,
    pub(crate) segment_blocks: u32,
    pub(crate) blocks: u32,
    pub(crate) open: Option<OpenSegment>,
    pub(crate) centres: Vec<f64>,
}

/// A checkpoint that is to be written. The table is gathered only by a device that stores it.
#[derive(Clone, Debug)]
pub struct CheckpointWrite<'a> {
    pub(crate) superblock: Superblock,
    pub(crate) segments: &'a Segments,
}

impl CheckpointWrite<'_> {
    /// Its number, from 1 on.
    pub fn number(&self) -> u64 {
        self.superblock.number
    }

    /// Which of the two places it goes to.
    pub fn place(&self) -> u32 {
        (self.superblock.number % 2) as u32
    }

    /// Its bytes: [`checkpoint_blocks`] blocks, as the module's text says.
    pub fn bytes(&self) -> Vec<u8> {
        let superblock = &self.superblock;
        let mut out = vec![0; checkpoint_blocks(self.segments.count()) as usize * BLOCK];
        let open = superblock.open.unwrap_or(OpenSegment { segment: NO_SEGMENT, next: 0 });
        out[..4].copy_from_slice(MAGIC);
        out[4..8].copy_from_slice(&superblock.incarnation.to_le_bytes());
        out[8..16].copy_from_slice(&superblock.number.to_le_bytes());
        out[16..24].copy_from_slice(&superblock.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&superblock.now.to_le_bytes());
        let words = [
            self.segments.count(),
            superblock.segment_blocks,
            superblock.blocks,
            open.segment,
            open.next,
            superblock.centres.len() as u32,
        ];
        for (bytes, word) in out[32..CHECKSUM_AT].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        for (bytes, centre) in out[CENTRES_AT..].chunks_exact_mut(8).zip(&superblock.centres) {
            bytes.copy_from_slice(&centre.to_le_bytes());
        }
        self.encode_table(&mut out[BLOCK..]);
        let sum = checksum_of(&out);
        out[CHECKSUM_AT..CENTRES_AT].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn encode_table(&self, out: &mut [u8]) {
        for (segment, record) in (0..self.segments.count()).zip(out.chunks_exact_mut(SEGMENT_BYTES)) {
            let state = if self.segments.state(segment) == SegmentState::Open { OPEN } else { WRITTEN };
            record[..4].copy_from_slice(&self.segments.referenced(segment).to_le_bytes());
            record[4..8].copy_from_slice(&self.segments.youngest(segment).to_le_bytes());
            record[8..12].copy_from_slice(&state.to_le_bytes());
        }
        for (place, segment) in self.segments.queue().enumerate() {
            out[segment as usize * SEGMENT_BYTES + 8..][..4].copy_from_slice(&(place as u32).to_le_bytes());
        }
    }
}

fn checksum_of(bytes: &[u8]) -> u64 {
    Checksum::new().add(&bytes[..CHECKSUM_AT]).add(&bytes[CENTRES_AT..]).value()
}

/// What a checkpoint says of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentRecord {
    pub(crate) referenced: u32,
    pub(crate) youngest: Time,
    pub(crate) state: SegmentState,
}

/// A checkpoint, read back.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) superblock: Superblock,
    pub(crate) segments: Vec<SegmentRecord>,
    /// The queue of free segments, the one that is written next first.
    pub(crate) freed: Vec<u32>,
}

impl Checkpoint {
    /// What an empty log that was never written would have recorded.
    pub(crate) fn of_empty_log(blocks: u32, segments: u32, segment_blocks: u32) -> Self {
        let free = SegmentRecord { referenced: 0, youngest: 0, state: SegmentState::Freed };
        Self {
            superblock: Superblock { segment_blocks, blocks, ..Superblock::default() },
            segments: vec![free; segments as usize],
            freed: (0..segments).collect(),
        }
    }

    /// Reads a checkpoint; `None` if `bytes` are no whole one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < BLOCK || !bytes.starts_with(MAGIC) {
            return None;
        }
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (segments, groups) = (u32_at(32), u32_at(52) as usize);
        let is_whole = bytes.len() == checkpoint_blocks(segments) as usize * BLOCK;
        if !is_whole || u64_at(CHECKSUM_AT) != checksum_of(bytes) || groups > MAX_GROUPS {
            return None;
        }
        let open = OpenSegment { segment: u32_at(44), next: u32_at(48) };
        let superblock = Superblock {
            incarnation: u32_at(4),
            number: u64_at(8),
            sequence: u64_at(16),
            now: u64_at(24),
            segment_blocks: u32_at(36),
            blocks: u32_at(40),
            open: (open.segment != NO_SEGMENT).then_some(open),
            centres: (0..groups).map(|group| f64::from_bits(u64_at(CENTRES_AT + group * 8))).collect(),
        };
        let mut freed = Vec::new();
        let mut table = Vec::with_capacity(segments as usize);
        for segment in 0..segments {
            let at = BLOCK + segment as usize * SEGMENT_BYTES;
            let state = match u32_at(at + 8) {
                WRITTEN => SegmentState::Written,
                OPEN => SegmentState::Open,
                place => {
                    freed.push((place, segment));
                    SegmentState::Freed
                }
            };
            table.push(SegmentRecord { referenced: u32_at(at), youngest: u32_at(at + 4), state });
        }
        freed.sort_unstable();
        Some(Self { superblock, segments: table, freed: freed.into_iter().map(|(_, segment)| segment).collect() })
    }
}
