//! Replies, as they are put on the wire: simple ones, and chunks of structured ones (proto.md, "Simple reply message",
//! "Structured reply types").

use super::buffer::Output;
use super::wire::{
    BASE_ALLOCATION_ID, SIMPLE_REPLY_MAGIC, STATE_HOLE_ZERO, STRING_BYTES_MAX, STRUCTURED_REPLY_MAGIC, chunk,
};
use crate::Extent;

/// Bytes of a simple reply.
pub(super) const SIMPLE_BYTES: usize = 16;
/// Bytes before the data of a chunk that carries data: header and offset.
pub(super) const DATA_HEADER_BYTES: usize = CHUNK_HEADER_BYTES + 8;
const CHUNK_HEADER_BYTES: usize = 20;
/// Bytes of a chunk that stands for a hole.
const HOLE_BYTES: usize = CHUNK_HEADER_BYTES + 12;

/// Success without data, or an error where replies are simple.
pub(super) fn put_simple(output: &mut Output, cookie: u64, errno: u32) {
    output.put_u32(SIMPLE_REPLY_MAGIC);
    output.put_u32(errno);
    output.put_u64(cookie);
}

/// An error as a structured reply, with a text for people.
pub(super) fn put_error(output: &mut Output, cookie: u64, errno: u32, message: &str) {
    let cut = (0..=message.len().min(STRING_BYTES_MAX)).rev().find(|end| message.is_char_boundary(*end));
    let message = &message[..cut.unwrap_or(0)];
    put_chunk(output, cookie, chunk::DONE, chunk::ERROR, 6 + message.len());
    output.put_u32(errno);
    output.put_u16(message.len() as u16);
    output.put(message.as_bytes());
}

/// A structured reply to a read of nothing.
pub(super) fn put_none(output: &mut Output, cookie: u64) {
    put_chunk(output, cookie, chunk::DONE, chunk::NONE, 0);
}

/// The header of the one chunk of a read's reply; `length` bytes of data follow.
pub(super) fn put_data_header(output: &mut Output, cookie: u64, offset: u64, length: usize) {
    put_chunk(output, cookie, chunk::DONE, chunk::OFFSET_DATA, 8 + length);
    output.put_u64(offset);
}

/// The extents from the offset of the request on.
pub(super) fn put_extents(output: &mut Output, cookie: u64, extents: &[Extent]) {
    put_chunk(output, cookie, chunk::DONE, chunk::BLOCK_STATUS, 4 + 8 * extents.len());
    output.put_u32(BASE_ALLOCATION_ID);
    for extent in extents {
        // The length of the request, of 32 bits, bounds it.
        output.put_u32(extent.length as u32);
        output.put_u32(if extent.is_data { 0 } else { STATE_HOLE_ZERO });
    }
}

/// Splits the reply that [`put_data_header`] began at `mark`, whose data stands behind it, into chunks of data and of holes.
/// The extents cover the data, and each hole is [`HOLE_BYTES_MIN`] long at least, so that the chunks take less room than the
/// data did: they are built in place.
pub(super) fn cut_holes(output: &mut Output, mark: usize, cookie: u64, offset: u64, extents: &[Extent]) {
    let (mut source, mut at) = (mark + DATA_HEADER_BYTES, offset);
    output.truncate(mark);
    for (index, extent) in extents.iter().enumerate() {
        let flags = if index + 1 == extents.len() { chunk::DONE } else { 0 };
        let length = extent.length as usize;
        if extent.is_data {
            put_chunk(output, cookie, flags, chunk::OFFSET_DATA, 8 + length);
            output.put_u64(at);
            output.put_from_beyond(source, length);
        } else {
            put_chunk(output, cookie, flags, chunk::OFFSET_HOLE, 12);
            output.put_u64(at);
            output.put_u32(extent.length as u32);
        }
        source += length;
        at += extent.length;
    }
}

/// The shortest hole that a reply is cut at, in bytes: shorter ones are sent as the zeros they are.
pub(super) const HOLE_BYTES_MIN: u64 = 4096;
const _: () = assert!(HOLE_BYTES_MIN as usize > HOLE_BYTES + DATA_HEADER_BYTES);

fn put_chunk(output: &mut Output, cookie: u64, flags: u16, kind: u16, length: usize) {
    output.put_u32(STRUCTURED_REPLY_MAGIC);
    output.put_u16(flags);
    output.put_u16(kind);
    output.put_u64(cookie);
    output.put_u32(length as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut output = Output::default();
        put_error(&mut output, 1, 5, &"\u{e9}".repeat(3000));
        let length = u16::from_be_bytes([output.as_slice()[24], output.as_slice()[25]]);
        assert_eq!((usize::from(length), output.len()), (4096, CHUNK_HEADER_BYTES + 6 + 4096));
        assert!(std::str::from_utf8(&output.as_slice()[26..]).is_ok());
    }

    #[test]
    fn holes_are_cut_out_in_place() {
        for is_first_data in [true, false] {
            let lengths = [5000usize, 4096, 1, 4097];
            let mut output = Output::default();
            output.put(b"before");
            let mark = output.len();
            put_data_header(&mut output, 9, 100, lengths.iter().sum());
            let mut extents = Vec::new();
            for (index, length) in lengths.into_iter().enumerate() {
                let is_data = (index % 2 == 0) == is_first_data;
                // The one extent of a byte is a hole in one of the cases; a hole is never that short.
                let length = if is_data { length } else { length.max(4096) };
                output.room(length).fill(if is_data { index as u8 + 1 } else { 0 });
                extents.push(Extent { length: length as u64, is_data });
            }
            cut_holes(&mut output, mark, 9, 100, &extents);
            let mut rest = &output.as_slice()[mark..];
            let mut at = 100u64;
            for (index, extent) in extents.iter().enumerate() {
                let done = u8::from(index + 1 == extents.len());
                assert_eq!(rest[4..8], [0, done, 0, if extent.is_data { 1 } else { 2 }]);
                let length = u32::from_be_bytes(rest[16..20].try_into().unwrap()) as usize;
                assert_eq!(rest[20..28], at.to_be_bytes());
                if extent.is_data {
                    assert_eq!(length as u64, 8 + extent.length);
                    assert!(rest[28..20 + length].iter().all(|byte| *byte == index as u8 + 1));
                } else {
                    assert_eq!(rest[28..32], (extent.length as u32).to_be_bytes());
                }
                rest = &rest[20 + length..];
                at += extent.length;
            }
            assert!(rest.is_empty());
        }
    }
}
