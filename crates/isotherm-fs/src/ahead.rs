//! Space of a sparse file that is allocated ahead of small writes.
//!
//! A write into a hole makes the file system below allocate space, and the next `fdatasync` then waits for its journal. A log goes on
//! to where nothing was written before, so that each small synced write would pay for that: on ext4 it takes half as long again. Where
//! small writes are flushed one after the other, the hole that they go into is filled with zeros for some way ahead, once for many of
//! them. What a reader finds does not change.

use rustix::fs::SeekFrom;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Bytes that are filled at a time: enough for a few hundred writes, and written in a few milliseconds.
const AHEAD: u64 = 2 << 20;
/// Bytes between two flushes up to which these are small.
const SMALL: u64 = 256 << 10;
/// Small flushes in a row from which on more are expected.
const EXPECTED: u32 = 4;
/// Ranges that are remembered: more than a log has segments open.
const REMEMBERED: usize = 16;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    small_flushes: AtomicU32,
    /// Bytes since the last flush.
    written: AtomicU64,
    /// Ranges that need not be looked at, newest last. Whoever writes shares it; whoever fills a hole has it alone, so
    /// that nobody writes there meanwhile.
    known: RwLock<Vec<Range<u64>>>,
}

impl Ahead {
    /// Carries out a write of `range`, and fills the holes that it goes into before, if more small writes are expected.
    pub(crate) fn write(
        &self,
        file: &File,
        range: Range<u64>,
        end_of_file: u64,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.written.fetch_add(range.end - range.start, Ordering::Relaxed);
        if self.small_flushes.load(Ordering::Relaxed) >= EXPECTED && range.end - range.start <= SMALL {
            let is_known = |known: &[Range<u64>]| known.iter().any(|k| k.start <= range.start && range.end <= k.end);
            if !is_known(&self.known.read().unwrap_or_else(PoisonError::into_inner)) {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                if !is_known(&known) {
                    let ahead = range.start..(range.start + AHEAD).max(range.end).min(end_of_file);
                    // What cannot be allocated now is allocated, or refused, when it is written.
                    if fill_holes(file, ahead.clone()).is_ok() {
                        if known.len() == REMEMBERED {
                            known.remove(0);
                        }
                        known.push(ahead);
                    }
                }
            }
        }
        let _others = self.known.read().unwrap_or_else(PoisonError::into_inner);
        write()
    }

    /// A flush follows.
    pub(crate) fn flush(&self) {
        match self.written.swap(0, Ordering::Relaxed) {
            0 => {}
            1..=SMALL => {
                self.small_flushes.fetch_add(1, Ordering::Relaxed);
            }
            _ => self.small_flushes.store(0, Ordering::Relaxed),
        }
    }

    /// There are new holes.
    pub(crate) fn discard(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Writes zeros to every hole of a range.
fn fill_holes(file: &File, range: Range<u64>) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let seek = |to| match rustix::fs::seek(file, to) {
        // No data follows.
        Err(rustix::io::Errno::NXIO) => Ok(range.end),
        found => found.map(|found| found.min(range.end)),
    };
    let mut at = range.start;
    loop {
        // The write that asks for it may begin in what was filled before, and end behind it.
        at = seek(SeekFrom::Hole(at))?;
        let end = seek(SeekFrom::Data(at))?;
        if at == range.end {
            return Ok(());
        }
        while at < end {
            let length = ZEROS.len().min((end - at) as usize);
            file.write_all_at(&ZEROS[..length], at)?;
            at += length as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    const LENGTH: u64 = 16 << 20;

    fn sparse() -> File {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(LENGTH).expect("there is room");
        file
    }

    fn put(ahead: &Ahead, file: &File, offset: u64, byte: u8) {
        put_blocks(ahead, file, offset, 1, byte);
    }

    fn put_blocks(ahead: &Ahead, file: &File, offset: u64, blocks: usize, byte: u8) {
        let data = vec![byte; blocks * 4096];
        let range = offset..offset + data.len() as u64;
        ahead.write(file, range, LENGTH, || file.write_all_at(&data, offset)).expect("there is room");
    }

    fn allocated(file: &File) -> u64 {
        file.metadata().expect("it is open").blocks() * 512
    }

    #[test]
    fn holes_are_filled_ahead_of_small_flushed_writes_alone() {
        let (ahead, file) = (Ahead::default(), sparse());
        for block in 0..EXPECTED {
            put(&ahead, &file, u64::from(block) * 4096, 1);
            ahead.flush();
        }
        assert!(allocated(&file) < 1 << 20, "nothing was expected yet");
        put(&ahead, &file, 1 << 20, 2);
        assert!((AHEAD..AHEAD + (1 << 20)).contains(&allocated(&file)), "{}", allocated(&file));
        let filled = allocated(&file);
        put(&ahead, &file, (1 << 20) + 4096, 3);
        assert_eq!(allocated(&file), filled, "this was filled already");
        // A large flush ends it.
        ahead.written.fetch_add(SMALL, Ordering::Relaxed);
        ahead.flush();
        put(&ahead, &file, 8 << 20, 4);
        assert!(allocated(&file) < filled + (1 << 20));
    }

    #[test]
    fn a_write_that_begins_in_what_was_filled_and_ends_behind_it_fills_on() {
        let (ahead, file) = (Ahead::default(), sparse());
        ahead.small_flushes.store(EXPECTED, Ordering::Relaxed);
        // Nine blocks at a time do not end where what was filled ends.
        let across = AHEAD / (9 * 4096);
        (0..=across).for_each(|write| put_blocks(&ahead, &file, write * 9 * 4096, 9, 1));
        assert!(allocated(&file) >= across * 9 * 4096 + AHEAD, "{}", allocated(&file));
    }

    #[test]
    fn what_is_there_stays_and_the_end_of_the_file_too() {
        let (ahead, file) = (Ahead::default(), sparse());
        let data = [7; 4096];
        file.write_all_at(&data, (1 << 20) + 8192).expect("there is room");
        file.write_all_at(&data, LENGTH - 4096).expect("there is room");
        ahead.small_flushes.store(EXPECTED, Ordering::Relaxed);
        put(&ahead, &file, 1 << 20, 1);
        put(&ahead, &file, LENGTH - 8192, 2);
        for (offset, byte) in
            [(1 << 20, 1), ((1 << 20) + 4096, 0), ((1 << 20) + 8192, 7), (LENGTH - 8192, 2), (LENGTH - 4096, 7)]
        {
            let mut found = [0; 4096];
            file.read_exact_at(&mut found, offset).expect("it is there");
            assert_eq!(found, [byte; 4096], "at {offset}");
        }
        assert_eq!(file.metadata().expect("it is open").len(), LENGTH);
    }

    #[test]
    fn a_discarded_range_is_filled_again() {
        let (ahead, file) = (Ahead::default(), sparse());
        ahead.small_flushes.store(EXPECTED, Ordering::Relaxed);
        put(&ahead, &file, 0, 1);
        file.set_len(0).and_then(|()| file.set_len(LENGTH)).expect("there is room");
        ahead.discard();
        put(&ahead, &file, 4096, 1);
        assert!(allocated(&file) >= AHEAD, "{}", allocated(&file));
    }

    /// One that is too large for anything to be filled before it, too.
    #[test]
    fn no_hole_is_filled_while_somebody_writes() {
        let (ahead, file) = (Ahead::default(), sparse());
        for bytes in [4096, 2 * SMALL] {
            let write = || {
                assert!(ahead.known.try_write().is_err(), "{bytes} bytes");
                Ok(())
            };
            ahead.write(&file, 0..bytes, LENGTH, write).expect("nothing is written");
        }
    }

    #[test]
    fn threads_that_write_into_one_hole_lose_nothing() {
        let (ahead, file) = (Ahead::default(), sparse());
        ahead.small_flushes.store(EXPECTED, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (ahead, file) = (&ahead, &file);
                scope.spawn(move || {
                    (0..1000).for_each(|block| put(ahead, file, (4 * block + thread) * 4096, thread as u8 + 1))
                });
            }
        });
        for block in 0..4000 {
            let mut found = [0; 4096];
            file.read_exact_at(&mut found, block * 4096).expect("it is there");
            assert_eq!(found, [(block % 4) as u8 + 1; 4096], "block {block}");
        }
    }
}
