//! The superblock: what mkfs has decided, for good. Blocks 0 and 1 hold the same; one of them whole is enough.

use super::bytes::{put, u32_at, u64_at};
use crate::store::BLOCK_BYTES;

/// First bytes of a volume.
pub const MAGIC: [u8; 8] = *b"ISOSFS\r\n";
/// Version of the format. Another one is not read.
pub const VERSION: u32 = 1;
/// Data blocks carry checksums that reads verify.
pub const FEATURE_DATA_CHECKSUMS: u32 = 1;
const KNOWN_FEATURES: u32 = FEATURE_DATA_CHECKSUMS;
/// Most bytes of a label.
pub const LABEL_BYTES: usize = 32;
/// Least and most blocks of a segment: 256 KiB, so that every transaction fits into one, to 1 GiB.
pub const SEGMENT_BLOCKS: std::ops::RangeInclusive<u32> = 64..=1 << 18;
/// Fewest segments of a volume.
pub const SEGMENTS_MIN: u32 = 24;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Tells volumes apart.
    pub uuid: [u8; 16],
    /// Text for people, padded with zeros.
    pub label: [u8; LABEL_BYTES],
    /// Blocks of a segment, [`SEGMENT_BLOCKS`].
    pub segment_blocks: u32,
    /// Number of segments.
    pub segments: u32,
    /// Block of the device at which segment 0 begins.
    pub first_block: u32,
    /// Blocks of the device at which the two checkpoints begin.
    pub checkpoints: [u32; 2],
    /// Blocks that a checkpoint may take.
    pub checkpoint_blocks: u32,
    /// Segments that data may not fill, so that cleaning always finds room.
    pub reserve_segments: u32,
    /// Bits of [`FEATURE_DATA_CHECKSUMS`].
    pub features: u32,
    /// When the volume was made, in seconds since 1970.
    pub created_seconds: u64,
}

/// Why a superblock is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum SuperblockError {
    #[error("no SFS volume: the first bytes are not those of one")]
    Foreign,
    #[error("the superblock is damaged: {0}")]
    Damaged(&'static str),
    #[error("the volume has version {0} of the format; this program reads version {VERSION}")]
    Version(u32),
    #[error("the volume uses features {0:#x} that this program does not know; use a newer one")]
    Features(u32),
    #[error("the device has {found} blocks, the volume needs {needed}: it was cut")]
    Short { found: u64, needed: u64 },
}

impl Superblock {
    /// Its block.
    #[must_use]
    pub fn encode(&self) -> Box<[u8; BLOCK_BYTES]> {
        let mut block = Box::new([0; BLOCK_BYTES]);
        put(&mut *block, 0, &MAGIC);
        put(&mut *block, 8, &VERSION.to_le_bytes());
        put(&mut *block, 16, &self.uuid);
        put(&mut *block, 32, &self.label);
        let numbers = [
            BLOCK_BYTES as u32,
            self.segment_blocks,
            self.segments,
            self.first_block,
            self.checkpoints[0],
            self.checkpoints[1],
            self.checkpoint_blocks,
            self.reserve_segments,
            self.features,
        ];
        for (at, number) in (64..).step_by(4).zip(numbers) {
            put(&mut *block, at, &number.to_le_bytes());
        }
        put(&mut *block, 104, &self.created_seconds.to_le_bytes());
        let checksum = crc32c::crc32c(&*block);
        put(&mut *block, 12, &checksum.to_le_bytes());
        block
    }

    /// Reads a block of a device of `device_blocks` blocks.
    ///
    /// # Errors
    /// See [`SuperblockError`].
    pub fn decode(block: &[u8], device_blocks: u64) -> Result<Self, SuperblockError> {
        if block[..8] != MAGIC {
            return Err(SuperblockError::Foreign);
        }
        let mut plain = block.to_vec();
        plain[12..16].fill(0);
        if crc32c::crc32c(&plain) != u32_at(block, 12) {
            return Err(SuperblockError::Damaged("its checksum is wrong"));
        }
        if u32_at(block, 8) != VERSION {
            return Err(SuperblockError::Version(u32_at(block, 8)));
        }
        let number = |index: usize| u32_at(block, 64 + 4 * index);
        let superblock = Self {
            uuid: block[16..32].try_into().expect("16 bytes"),
            label: block[32..64].try_into().expect("32 bytes"),
            segment_blocks: number(1),
            segments: number(2),
            first_block: number(3),
            checkpoints: [number(4), number(5)],
            checkpoint_blocks: number(6),
            reserve_segments: number(7),
            features: number(8),
            created_seconds: u64_at(block, 104),
        };
        if superblock.features & !KNOWN_FEATURES != 0 {
            return Err(SuperblockError::Features(superblock.features));
        }
        superblock.check(number(0), device_blocks)?;
        Ok(superblock)
    }

    fn check(&self, block_bytes: u32, device_blocks: u64) -> Result<(), SuperblockError> {
        let needed = u64::from(self.first_block) + u64::from(self.segments) * u64::from(self.segment_blocks);
        let ends = self.checkpoints.map(|first| u64::from(first) + u64::from(self.checkpoint_blocks));
        let is_sound = block_bytes == BLOCK_BYTES as u32
            && SEGMENT_BLOCKS.contains(&self.segment_blocks)
            && self.segments >= SEGMENTS_MIN
            && self.reserve_segments < self.segments
            && self.checkpoints[0] >= 2
            && ends[0] <= u64::from(self.checkpoints[1])
            && ends[1] <= u64::from(self.first_block)
            && needed < u64::from(u32::MAX)
            && super::checkpoint::blocks(self.segments, self.segment_blocks) <= u64::from(self.checkpoint_blocks);
        if !is_sound {
            return Err(SuperblockError::Damaged("its numbers contradict each other"));
        }
        if needed > device_blocks {
            return Err(SuperblockError::Short { found: device_blocks, needed });
        }
        Ok(())
    }

    /// Block of the device at which a segment begins.
    #[must_use]
    pub fn segment_start(&self, segment: u32) -> u32 {
        self.first_block + segment * self.segment_blocks
    }

    /// The segment in which a block of the device lies.
    #[must_use]
    pub fn segment_of(&self, position: u32) -> Option<u32> {
        let segment = position.checked_sub(self.first_block)? / self.segment_blocks;
        (segment < self.segments).then_some(segment)
    }

    /// What writes of this volume are marked with, so that those of another are never taken for its own.
    #[must_use]
    pub fn tag(&self) -> u32 {
        crc32c::crc32c(&self.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn example() -> Superblock {
        Superblock {
            uuid: [7; 16],
            label: [0; LABEL_BYTES],
            segment_blocks: 64,
            segments: 40,
            first_block: 64,
            checkpoints: [2, 10],
            checkpoint_blocks: 8,
            reserve_segments: 10,
            features: FEATURE_DATA_CHECKSUMS,
            created_seconds: 1,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let superblock = example();
        assert_eq!(Superblock::decode(&*superblock.encode(), 10_000), Ok(superblock));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let block = example().encode();
        for bit in 0..8 * BLOCK_BYTES {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&*damaged, 10_000).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_device_that_was_cut_is_refused() {
        let error = Superblock::decode(&*example().encode(), 2623);
        assert_eq!(error, Err(SuperblockError::Short { found: 2623, needed: 2624 }));
    }
}
