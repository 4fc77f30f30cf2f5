//! Which file lies where: the output of `filefrag -v`, one file after the other, on ext4 and xfs, or that of `isotherm sfs files`.
//!
//! Physical offsets count from the beginning of the file system; where the trace is of the whole disk, the partition's offset is
//! added. Btrfs reports addresses of its own, which say nothing of the disk: they are refused. SFS is
//! a log: its files lie elsewhere after each write, so that its map holds for one moment.

use std::ops::Range;

/// Files with their extents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileMap {
    /// Names, in the order of the map.
    pub names: Vec<String>,
    /// Whether the file system is a log, whose files move with every write.
    pub is_of_log: bool,
    /// First byte, one past the last byte, and file of every extent, by address.
    extents: Vec<(u64, u64, usize)>,
}

/// Most files of a map.
const FILES_MAX: usize = 60_000;
/// What `filefrag` calls btrfs.
const BTRFS: &str = "9123683e";
/// What `isotherm sfs files` calls SFS.
const SFS: &str = "sfs";

impl FileMap {
    /// Reads the text; `offset_bytes` is where the file system begins on what was traced.
    ///
    /// # Errors
    /// The line that is wrong, and what would be right.
    pub fn parse(text: &str, offset_bytes: u64) -> Result<Self, String> {
        let mut map = Self::default();
        let mut block_bytes = 4096;
        for (number, line) in text.lines().enumerate() {
            let wrong = |problem: &str| format!("line {}: {problem}: \"{}\"", number + 1, line.trim());
            if let Some(kind) = line.strip_prefix("Filesystem type is: ") {
                if kind.trim() == BTRFS {
                    return Err(wrong(
                        "btrfs has addresses of its own, so that files cannot be found on the disk; trace ext4 or xfs",
                    ));
                }
                map.is_of_log = kind.trim() == SFS;
            } else if let Some(rest) = line.strip_prefix("File size of ") {
                let (name, size) = rest.rsplit_once(" is ").ok_or_else(|| wrong("it names no size"))?;
                let block = size.rsplit_once("blocks of ").or_else(|| size.rsplit_once("block of "));
                let bytes = block.and_then(|(_, tail)| tail.trim_end_matches([')', ' ']).strip_suffix(" bytes"));
                block_bytes =
                    bytes.and_then(|bytes| bytes.trim().parse().ok()).ok_or_else(|| wrong("it names no block size"))?;
                if map.names.len() >= FILES_MAX {
                    return Err(wrong("the map has more than 60000 files; list those that matter"));
                }
                map.names.push(name.to_owned());
            } else if let Some((_, rest)) = line.split_once(':').filter(|(index, _)| is_number(index)) {
                let file =
                    map.names.len().checked_sub(1).ok_or_else(|| wrong("there is no file yet; use filefrag -v"))?;
                let mut columns = rest.split(':');
                let physical = columns.nth(1).ok_or_else(|| wrong("there is no physical offset"))?;
                let (first, last) = physical.split_once("..").ok_or_else(|| wrong("there is no physical offset"))?;
                let block = |text: &str| text.trim().parse::<u64>().ok();
                let (Some(first), Some(last)) = (block(first), block(last)) else {
                    return Err(wrong("the physical offset is no number"));
                };
                let at = |block: u64| block.checked_mul(block_bytes).and_then(|at| at.checked_add(offset_bytes));
                match (at(first), last.checked_add(1).and_then(at)) {
                    (Some(start), Some(end)) if start < end => map.extents.push((start, end, file)),
                    _ => return Err(wrong("the physical offset is no range")),
                }
            }
        }
        if map.extents.is_empty() {
            return Err("it has no extents; write it with: filefrag -v FILE... > map.txt".to_owned());
        }
        map.extents.sort_unstable();
        Ok(map)
    }

    /// The file that a byte belongs to.
    pub fn file_at(&self, byte: u64) -> Option<usize> {
        let after = self.extents.partition_point(|extent| extent.0 <= byte);
        let (_, end, file) = *self.extents.get(after.checked_sub(1)?)?;
        (byte < end).then_some(file)
    }

    /// Whether none of these bytes belongs to a file.
    pub fn is_free(&self, bytes: Range<u64>) -> bool {
        let next = self.extents.partition_point(|extent| extent.0 < bytes.start);
        self.file_at(bytes.start).is_none() && self.extents.get(next).is_none_or(|extent| extent.0 >= bytes.end)
    }
}

fn is_number(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
Filesystem type is: ef53
File size of /var/lib/db/base is 12288 (3 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       1:      34816..     34817:      2:
   1:        2..       2:      40000..     40000:      1:      34818: last,eof
/var/lib/db/base: 2 extents found
File size of /var/lib/db/wal: old is 4096 (1 block of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:      34818..     34818:      1:             last,eof
/var/lib/db/wal: old: 1 extent found
";

    #[test]
    fn extents_are_found_by_address() {
        let map = FileMap::parse(MAP, 1 << 20).unwrap();
        assert_eq!(map.names, ["/var/lib/db/base", "/var/lib/db/wal: old"]);
        let at = |block: u64| map.file_at((1 << 20) + block * 4096 + 100);
        assert_eq!(
            [34815, 34816, 34817, 34818, 34819, 40000, 40001].map(at),
            [None, Some(0), Some(0), Some(1), None, Some(0), None]
        );
        let is_free = |from: u64, to: u64| map.is_free((1 << 20) + from * 4096..(1 << 20) + to * 4096);
        assert!(is_free(0, 34816) && is_free(34819, 40000) && is_free(40001, 50000));
        assert!(!is_free(34815, 34817) && !is_free(34818, 34820) && !is_free(0, 50000));
        assert!(!map.is_of_log && FileMap::parse(&MAP.replace("ef53", "sfs"), 0).unwrap().is_of_log);
    }

    #[test]
    fn what_is_no_map_is_refused_with_its_line() {
        let problem = |text: &str| FileMap::parse(text, 0).unwrap_err();
        assert!(problem(&MAP.replace("ef53", "9123683e")).contains("line 1: btrfs"));
        assert!(problem(&MAP.replace("34816..", "x..")).contains("line 4"));
        assert!(problem("").contains("filefrag -v"));
        assert!(problem("   0: 0.. 1: 2.. 3: 2:\n").contains("no file yet"));
    }
}
