//! How a device is divided: what mkfs decides.

use crate::format::checkpoint;
use crate::format::superblock::{FEATURE_DATA_CHECKSUMS, LABEL_BYTES, SEGMENT_BLOCKS, SEGMENTS_MIN, Superblock};
use crate::store::BLOCK_BYTES;

/// What is asked of mkfs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Bytes of a segment; by default 32 MiB, or less so that there are 256 segments.
    pub segment_bytes: Option<u64>,
    /// A segment is a multiple of it where it is smaller than that: the erase block of the device.
    pub erase_block_bytes: u64,
    /// Text for people, at most 32 bytes.
    pub label: String,
    /// Whether blocks of file data carry checksums that reads verify.
    pub data_checksums: bool,
    /// Tells volumes apart: random.
    pub uuid: [u8; 16],
    /// Seconds since 1970.
    pub created_seconds: u64,
}

/// Why a device cannot be divided so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum GeometryError {
    #[error("a segment of {bytes} bytes is not possible; give a multiple of 4 KiB from 256 KiB to 1 GiB")]
    Segment { bytes: u64 },
    #[error(
        "the device has room for {found} segments of {segment_bytes} bytes, a volume needs {SEGMENTS_MIN}; take a larger device or a smaller segment"
    )]
    Small { found: u64, segment_bytes: u64 },
    #[error("the device has {blocks} blocks of 4 KiB, a volume at most 2^32 (16 TiB)")]
    Large { blocks: u64 },
    #[error("the label has {0} bytes, at most {LABEL_BYTES} fit")]
    Label(usize),
}

/// Segment size that is taken where none is wished for.
const SEGMENT_BYTES: u64 = 32 << 20;
/// Bytes of the largest write that a kernel sends.
const REQUEST_BYTES: u64 = 1 << 20;
/// Segments that a volume has at least where its size allows it.
const SEGMENTS_WISHED: u64 = 256;

/// Divides a device of `device_bytes`.
///
/// # Errors
/// See [`GeometryError`].
pub fn divide(device_bytes: u64, wishes: &Wishes) -> Result<Superblock, GeometryError> {
    let blocks = device_bytes / BLOCK_BYTES as u64;
    if blocks > 1 << 32 {
        return Err(GeometryError::Large { blocks });
    }
    if wishes.label.len() > LABEL_BYTES {
        return Err(GeometryError::Label(wishes.label.len()));
    }
    let segment_bytes =
        wishes.segment_bytes.unwrap_or_else(|| default_segment_bytes(device_bytes, wishes.erase_block_bytes));
    let segment_blocks = segment_bytes / BLOCK_BYTES as u64;
    let is_possible = segment_bytes.is_multiple_of(BLOCK_BYTES as u64)
        && u32::try_from(segment_blocks).is_ok_and(|blocks| SEGMENT_BLOCKS.contains(&blocks));
    if !is_possible {
        return Err(GeometryError::Segment { bytes: segment_bytes });
    }
    let segment_blocks = segment_blocks as u32;
    // A checkpoint has room for as many segments as fit without it.
    let most = blocks / u64::from(segment_blocks);
    let checkpoint_blocks = checkpoint::blocks(most as u32, segment_blocks);
    let first_block = (2 + 2 * checkpoint_blocks).next_multiple_of(segment_blocks.into());
    // The last number of a block is a mark of entries.
    let end = blocks.min(u64::from(u32::MAX) - 1);
    let segments = end.saturating_sub(first_block) / u64::from(segment_blocks);
    if segments < u64::from(SEGMENTS_MIN) {
        return Err(GeometryError::Small { found: segments, segment_bytes });
    }
    let mut label = [0; LABEL_BYTES];
    label[..wishes.label.len()].copy_from_slice(wishes.label.as_bytes());
    let segments = segments as u32;
    Ok(Superblock {
        uuid: wishes.uuid,
        label,
        segment_blocks,
        segments,
        first_block: first_block as u32,
        checkpoints: [2, 2 + checkpoint_blocks as u32],
        checkpoint_blocks: checkpoint_blocks as u32,
        // A request is taken into memory whole before room is looked for.
        reserve_segments: segments / 16 + waiting_segments(segments) + REQUEST_BYTES.div_ceil(segment_bytes) as u32 + 8,
        features: if wishes.data_checksums { FEATURE_DATA_CHECKSUMS } else { 0 },
        created_seconds: wishes.created_seconds,
    })
}

/// Segments' worth of file data that may wait to be written: eight, fewer on a volume of few segments.
#[must_use]
pub fn waiting_segments(segments: u32) -> u32 {
    (segments / 32).clamp(1, 8)
}

fn default_segment_bytes(device_bytes: u64, erase_block_bytes: u64) -> u64 {
    let mut bytes = SEGMENT_BYTES;
    while bytes > 256 << 10 && device_bytes / bytes <= SEGMENTS_WISHED {
        bytes /= 2;
    }
    // On a small device a segment of one erase block is worth more than many segments.
    if erase_block_bytes == 0 { bytes } else { bytes.next_multiple_of(erase_block_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(segment_bytes: Option<u64>) -> Wishes {
        Wishes {
            segment_bytes,
            erase_block_bytes: 0,
            label: String::new(),
            data_checksums: true,
            uuid: [1; 16],
            created_seconds: 0,
        }
    }

    #[test]
    fn every_size_is_divided_into_enough_segments_that_a_superblock_accepts() {
        for shift in 24..=44 {
            let bytes = 1u64 << shift;
            let superblock = divide(bytes, &wishes(None)).expect("it can be divided");
            assert!(superblock.segments >= 200 || shift < 27, "2^{shift}: {} segments", superblock.segments);
            let blocks = bytes / 4096;
            assert_eq!(Superblock::decode(&*superblock.encode(), blocks), Ok(superblock));
        }
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        assert!(matches!(divide(1 << 20, &wishes(None)), Err(GeometryError::Small { .. })));
        assert!(matches!(divide(1 << 45, &wishes(None)), Err(GeometryError::Large { .. })));
        assert_eq!(divide(1 << 30, &wishes(Some(65537))), Err(GeometryError::Segment { bytes: 65537 }));
    }

    #[test]
    fn a_segment_is_a_multiple_of_the_erase_block() {
        let wishes = Wishes { erase_block_bytes: 6 << 20, ..wishes(None) };
        assert_eq!(divide(1 << 36, &wishes).expect("it can be divided").segment_blocks, (36 << 20) / 4096);
    }
}
