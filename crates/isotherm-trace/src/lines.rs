//! Lines of a byte stream, handed out in place: memory is one buffer, whatever the size of the file.

use crate::source::Stream;
use std::io;

/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Longest line: far beyond any format's, it bounds what a file without line ends can take.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// What some editors put in front of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum LineError {
    Io(io::Error),
    TooLong,
}

/// A stream cut into lines.
pub(crate) struct Lines {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    finished: bool,
    /// Lines handed out so far: the number of the latest one.
    pub(crate) number: u64,
}

impl Lines {
    pub(crate) fn new(stream: Stream) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { stream, buffer, start: 0, end: 0, finished: false, number: 0 }
    }

    /// The next line without its end (`\n` or `\r\n`); `None` after the last.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        let length = match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => length,
            None => match self.refill()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let line = &self.buffer[self.start..self.start + length];
        // The last line may lack its end.
        self.start = (self.start + length + 1).min(self.end);
        self.number += 1;
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Reads until the buffer holds a whole line; its length, or `None` at the end of the stream.
    #[cold]
    fn refill(&mut self) -> Result<Option<usize>, LineError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            if self.end > LINE_BYTES_MAX {
                return Err(LineError::TooLong);
            }
            if self.finished {
                return Ok(if self.end == 0 { None } else { Some(self.without_mark(self.end)) });
            }
            let read = match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(LineError::Io(error)),
            };
            self.finished = read == 0;
            let fresh = self.end;
            self.end += read;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[fresh..self.end]) {
                return Ok(Some(self.without_mark(fresh + length)));
            }
        }
    }

    /// Leaves a mark in front of the first line out; `length` is that of the line at the buffer's start.
    fn without_mark(&mut self, length: usize) -> usize {
        if self.number > 0 || !self.buffer[..length].starts_with(BYTE_ORDER_MARK) {
            return length;
        }
        self.start = BYTE_ORDER_MARK.len();
        length - BYTE_ORDER_MARK.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Gives its bytes in pieces of a stated size.
    struct Pieces(Vec<u8>, usize, usize);

    impl Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let take = (self.0.len() - self.1).min(self.2).min(out.len());
            out[..take].copy_from_slice(&self.0[self.1..self.1 + take]);
            self.1 += take;
            Ok(take)
        }
    }

    fn lines(text: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Box::new(Pieces(text.to_vec(), 0, piece)));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line.to_vec());
        }
        assert_eq!(lines.number, all.len() as u64);
        all
    }

    #[test]
    fn any_cut_of_the_stream_gives_the_same_lines() {
        let text = b"one\r\n\ntwo three\nlast without an end";
        let expected: Vec<Vec<u8>> =
            [&b"one"[..], b"", b"two three", b"last without an end"].map(<[u8]>::to_vec).into();
        for piece in 1..=text.len() {
            assert_eq!(lines(text, piece), expected, "pieces of {piece} bytes");
        }
        assert!(lines(b"", 1).is_empty());
        for piece in 1..9 {
            assert_eq!(lines(b"\xef\xbb\xbfone\n\xef\xbb\xbf", piece), [&b"one"[..], b"\xef\xbb\xbf"]);
            assert_eq!(lines(b"\xef\xbb\xbf", piece), [b""]);
        }
        assert_eq!(lines(b"\n", 1), [b""]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        let mut lines = Lines::new(Box::new(io::repeat(b'x')));
        assert!(matches!(lines.next(), Err(LineError::TooLong)));
    }
}
