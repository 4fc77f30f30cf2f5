//! A connection's memory: what came in and is not yet read, what goes out, and the payload of a large write. Each is kept from
//! request to request, and given back once it grew beyond [`KEPT_BYTES_MAX`].

/// A buffer that grew beyond this is freed after its request. Larger ones would add up over the connections, and their
/// allocation is small against the copying of what they hold.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Alignment of a large payload: what exports that write whole pages, or past the page cache, copy least with.
const PAYLOAD_ALIGNMENT: usize = 4096;

/// What came in and is not yet read.
pub(super) struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    /// A buffer that holds `capacity` bytes.
    pub fn new(capacity: usize) -> Input {
        Input { bytes: vec![0; capacity].into(), start: 0, end: 0 }
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Room for at least one byte, and for what is missing until `wanted` bytes are there; at most `limit` bytes.
    pub fn room(&mut self, wanted: usize, limit: usize) -> &mut [u8] {
        debug_assert!(wanted <= self.bytes.len() && wanted > self.len());
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + wanted > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.len());
        }
        let limit = limit.max(wanted - self.len());
        let end = self.bytes.len().min(self.end + limit);
        &mut self.bytes[self.end..end]
    }

    /// `count` bytes of the room were filled.
    pub fn filled(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// The next bytes, which count as read; there must be as many.
    pub fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        debug_assert!(self.start <= self.end);
        &self.bytes[start..start + count]
    }

    /// Forgets what was not read.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// What goes out. Bytes beyond the length are left from earlier replies, so that room is made without writing zeros to it.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    pub fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    /// `count` more bytes, for the caller to fill: they may hold anything.
    pub fn room(&mut self, count: usize) -> &mut [u8] {
        let start = self.len;
        self.len += count;
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len, 0);
        }
        &mut self.bytes[start..self.len]
    }

    /// Moves `count` bytes from `source` on, which lies at the end or beyond it, to the end.
    pub fn put_from_beyond(&mut self, source: usize, count: usize) {
        debug_assert!(self.len <= source);
        self.bytes.copy_within(source..source + count, self.len);
        self.len += count;
    }

    /// The bytes from `mark` on, a length of before.
    pub fn since(&mut self, mark: usize) -> &mut [u8] {
        &mut self.bytes[mark..self.len]
    }

    /// Back to a length of before.
    pub fn truncate(&mut self, mark: usize) {
        debug_assert!(mark <= self.len);
        self.len = mark;
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Everything was sent.
    pub fn clear(&mut self) {
        self.len = 0;
        if self.bytes.len() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }
}

/// The payload of a large write.
#[derive(Default)]
pub(super) struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    /// `count` bytes from a page's boundary on, which may hold anything.
    pub fn room(&mut self, count: usize) -> &mut [u8] {
        if self.bytes.len() < count + PAYLOAD_ALIGNMENT {
            // What the old one held is not wanted: a new one is not copied to.
            self.bytes = vec![0; count + PAYLOAD_ALIGNMENT];
        }
        let start = self.bytes.as_ptr().align_offset(PAYLOAD_ALIGNMENT);
        &mut self.bytes[start..start + count]
    }

    /// The request is done.
    pub fn done(&mut self) {
        if self.bytes.len() > KEPT_BYTES_MAX + PAYLOAD_ALIGNMENT {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_moves_a_begun_message_to_the_front_when_its_end_would_not_fit() {
        let mut input = Input::new(8);
        input.room(6, 8)[..7].copy_from_slice(b"abcdefg");
        input.filled(7);
        assert_eq!(input.take(5), b"abcde");
        let room = input.room(6, 8);
        assert_eq!(room.len(), 6);
        room[..4].copy_from_slice(b"hijk");
        input.filled(4);
        assert_eq!(input.take(6), b"fghijk");
        assert_eq!(input.len(), 0);
    }

    #[test]
    fn input_asks_for_no_more_than_its_limit_but_for_what_is_wanted() {
        let mut input = Input::new(100);
        assert_eq!(input.room(28, 40).len(), 40);
        assert_eq!(input.room(60, 40).len(), 60);
    }

    #[test]
    fn output_makes_room_over_what_was_there_before() {
        let mut output = Output::default();
        output.put_u32(1);
        let mark = output.len();
        output.put_u64(2);
        output.truncate(mark);
        output.put_u16(3);
        assert_eq!(output.as_slice(), [0, 0, 0, 1, 0, 3]);
        output.room(KEPT_BYTES_MAX);
        output.clear();
        assert!(output.is_empty() && output.bytes.capacity() == 0);
    }

    #[test]
    fn payloads_are_aligned() {
        let mut payload = Payload::default();
        for count in [1, 70_000, 5 << 20] {
            let room = payload.room(count);
            assert_eq!((room.len(), room.as_ptr().addr() % PAYLOAD_ALIGNMENT), (count, 0));
        }
        payload.done();
        assert!(payload.bytes.is_empty());
    }
}
