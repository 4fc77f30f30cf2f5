//! How much of a write is done: all of it, or what there is room for.

use isotherm_vfs::{Errno, FileSystem, Handle, Ino, Result, WriteFlags};

/// A write that does not fit whole is cut at multiples of this, bytes: no file system here has smaller blocks.
const PIECE_BYTES: u64 = 4096;

/// How much of a request for so many bytes a file has room for: the kernel, which cuts writes for other file systems, does not know where
/// the largest file ends.
///
/// # Errors
/// `EFBIG` where none fits.
pub(super) fn within_largest<F: FileSystem>(files: &F, offset: u64, length: u64) -> Result<u64> {
    let room = files.file_bytes_max().saturating_sub(offset);
    if room == 0 && length > 0 { Err(Errno::FBIG) } else { Ok(length.min(room)) }
}

/// Writes what fits of `data`: up to the end of the largest file, and up to where free space ends. Returns its bytes.
///
/// # Errors
/// Of the file system, where nothing was written.
pub(super) fn write_what_fits<F: FileSystem>(
    files: &F,
    ino: Ino,
    handle: Handle,
    offset: u64,
    data: &[u8],
    flags: WriteFlags,
) -> Result<usize> {
    let data = &data[..within_largest(files, offset, data.len() as u64)? as usize];
    let piece = |at: u64| (PIECE_BYTES - at % PIECE_BYTES) as usize;
    match files.write(ino, handle, offset, data, flags) {
        // What is one piece was tried already.
        Err(Errno::NOSPC) if data.len() > piece(offset) => {}
        done => return done.map(|()| data.len()),
    }
    let mut written = 0;
    while written < data.len() {
        let at = offset + written as u64;
        let length = (data.len() - written).min(piece(at));
        match files.write(ino, handle, at, &data[written..written + length], flags) {
            Ok(()) => written += length,
            Err(error) if written == 0 => return Err(error),
            // Whoever writes the rest is told.
            Err(_) => break,
        }
    }
    Ok(written)
}
