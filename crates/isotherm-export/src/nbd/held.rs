//! Replies that are held back until they are due: the protocol lets a server answer in any order (proto.md, "Ordering of
//! messages and writes").

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::buffer::Output;

/// Replies held back at most; what comes then waits until one is due.
const REPLIES_MAX: usize = 4096;
/// Bytes held back at most, but for a single larger reply.
const BYTES_MAX: usize = 64 << 20;

/// When a reply is due, its number, and what is sent. Numbers differ, so that the bytes are never compared.
type Reply = (Instant, u64, Box<[u8]>);

/// Replies by when they are due; those of one instant in the order of their requests.
#[derive(Default)]
pub(super) struct Held {
    replies: BinaryHeap<Reverse<Reply>>,
    bytes: usize,
    next: u64,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Whether the next request has to wait.
    pub fn is_full(&self) -> bool {
        self.replies.len() >= REPLIES_MAX || self.bytes >= BYTES_MAX
    }

    /// When the first is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.replies.peek().map(|Reverse((due, ..))| *due)
    }

    /// Takes what stands in `output` from `mark` on, until `due`.
    pub fn hold(&mut self, due: Instant, output: &mut Output, mark: usize) {
        let reply: Box<[u8]> = (&*output.since(mark)).into();
        output.truncate(mark);
        self.bytes += reply.len();
        self.replies.push(Reverse((due, self.next, reply)));
        self.next += 1;
    }

    /// Puts what is due into `output`; whether there was something.
    pub fn release(&mut self, now: Instant, output: &mut Output) -> bool {
        let mut any = false;
        while self.next_due().is_some_and(|due| due <= now) {
            let Some(Reverse((_, _, reply))) = self.replies.pop() else { break };
            self.bytes -= reply.len();
            output.put(&reply);
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn replies_leave_when_they_are_due_and_in_the_order_of_their_requests() {
        let (mut held, mut output, start) = (Held::default(), Output::default(), Instant::now());
        output.put(b"now ");
        for (after, text) in [(3, b"c"), (1, b"a"), (3, b"d"), (2, b"b")] {
            let mark = output.len();
            output.put(text);
            held.hold(start + Duration::from_secs(after), &mut output, mark);
        }
        assert_eq!(held.next_due(), Some(start + Duration::from_secs(1)));
        assert!(!held.release(start, &mut output));
        assert!(held.release(start + Duration::from_secs(2), &mut output));
        assert_eq!(output.as_slice(), b"now ab");
        assert!(held.release(start + Duration::from_secs(9), &mut output));
        assert_eq!(output.as_slice(), b"now abcd");
        assert!(held.is_empty() && held.bytes == 0);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let (mut held, mut output) = (Held::default(), Output::default());
        while !held.is_full() {
            output.room(1 << 20);
            held.hold(Instant::now(), &mut output, 0);
        }
        assert_eq!(held.replies.len(), 64);
        held.release(Instant::now(), &mut output);
        output.clear();
        while !held.is_full() {
            output.put(b"small");
            held.hold(Instant::now(), &mut output, 0);
        }
        assert_eq!(held.replies.len(), REPLIES_MAX);
    }
}
