//! The redo log: transactions on pages, in the order in which they were committed.
//!
//! A transaction is its length in bytes (u32) and its operations. An operation is a kind (u8), a page or segment (u32), two
//! numbers (u16 each), and for a change of bytes the bytes:
//!
//! | kind | operation | first number | second number |
//! |---|---|---|---|
//! | 1 | bytes of a page change | offset | length |
//! | 2 | a page is allocated, all zeros | | |
//! | 3 | a page is freed | | |
//! | 4 | blocks become holes | first slot | end of the slots |
//! | 5 | holes become reserved blocks | first slot | end of the slots |
//! | 6 | a segment is freed: its live blocks are to be written elsewhere | | |

use super::bytes::{u16_at, u32_at};
use crate::store::{BLOCK_BYTES, PageId};
use std::ops::Range;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operation<'a> {
    Change { page: PageId, offset: usize, bytes: &'a [u8] },
    Allocate(PageId),
    Free(PageId),
    Release(PageId, Range<u16>),
    Reserve(PageId, Range<u16>),
    FreeSegment(u32),
}

const HEAD_BYTES: usize = 9;

impl Operation<'_> {
    /// Appends it to a transaction.
    pub fn put(&self, out: &mut Vec<u8>) {
        let (kind, number, first, second, bytes): (u8, u32, u16, u16, &[u8]) = match self {
            Self::Change { page, offset, bytes } => (1, *page, *offset as u16, bytes.len() as u16, bytes),
            Self::Allocate(page) => (2, *page, 0, 0, &[]),
            Self::Free(page) => (3, *page, 0, 0, &[]),
            Self::Release(page, slots) => (4, *page, slots.start, slots.end, &[]),
            Self::Reserve(page, slots) => (5, *page, slots.start, slots.end, &[]),
            Self::FreeSegment(segment) => (6, *segment, 0, 0, &[]),
        };
        out.push(kind);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&second.to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// Appends the operations that make `new` of `old`.
pub fn put_changes(page: PageId, old: &[u8; BLOCK_BYTES], new: &[u8; BLOCK_BYTES], out: &mut Vec<u8>) {
    const WORD: usize = 8;
    let differs = |word: usize| old[word * WORD..(word + 1) * WORD] != new[word * WORD..(word + 1) * WORD];
    let mut word = 0;
    while word < BLOCK_BYTES / WORD {
        if !differs(word) {
            word += 1;
            continue;
        }
        let first = word;
        let mut last = word;
        // One equal word in between costs less than another head.
        while word < BLOCK_BYTES / WORD && word <= last + 1 {
            if differs(word) {
                last = word;
            }
            word += 1;
        }
        let (mut from, mut to) = (first * WORD, (last + 1) * WORD);
        while old[from] == new[from] {
            from += 1;
        }
        while old[to - 1] == new[to - 1] {
            to -= 1;
        }
        Operation::Change { page, offset: from, bytes: &new[from..to] }.put(out);
    }
}

/// The operations of a transaction, or `None` in place of the first that is none.
pub struct Operations<'a>(pub &'a [u8]);

impl<'a> Iterator for Operations<'a> {
    type Item = Option<Operation<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        if bytes.len() < HEAD_BYTES {
            return Some(None);
        }
        let (number, first, second) = (u32_at(bytes, 1), u16_at(bytes, 5), u16_at(bytes, 7));
        let rest = &bytes[HEAD_BYTES..];
        let slots = || (first >= 1 && first <= second && second <= 256).then_some(first..second);
        let operation = match bytes[0] {
            1 => {
                let (offset, length) = (usize::from(first), usize::from(second));
                if offset + length > BLOCK_BYTES || length > rest.len() {
                    return Some(None);
                }
                let (changed, after) = rest.split_at(length);
                self.0 = after;
                return Some(Some(Operation::Change { page: number, offset, bytes: changed }));
            }
            2 => Some(Operation::Allocate(number)),
            3 => Some(Operation::Free(number)),
            4 => slots().map(|slots| Operation::Release(number, slots)),
            5 => slots().map(|slots| Operation::Reserve(number, slots)),
            6 => Some(Operation::FreeSegment(number)),
            _ => None,
        };
        if operation.is_some() {
            self.0 = rest;
        }
        Some(operation)
    }
}

/// The transactions of a redo log, or `None` in place of the first that is cut off.
pub struct Transactions<'a>(pub &'a [u8]);

impl<'a> Iterator for Transactions<'a> {
    type Item = Option<Operations<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        if bytes.len() < 4 || bytes.len() - 4 < u32_at(bytes, 0) as usize {
            return Some(None);
        }
        let (transaction, rest) = bytes[4..].split_at(u32_at(bytes, 0) as usize);
        self.0 = rest;
        Some(Some(Operations(transaction)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_were_put() {
        let operations = [
            Operation::Change { page: 3, offset: 4000, bytes: b"abc" },
            Operation::Allocate(4),
            Operation::Free(5),
            Operation::Release(6, 1..256),
            Operation::Reserve(7, 8..9),
            Operation::FreeSegment(8),
        ];
        let mut bytes = Vec::new();
        operations.iter().for_each(|operation| operation.put(&mut bytes));
        assert_eq!(Operations(&bytes).map(Option::unwrap).collect::<Vec<_>>(), operations);
        assert_eq!(Operations(&bytes[..bytes.len() - 1]).last(), Some(None));
    }

    #[test]
    fn changes_are_the_bytes_that_differ() {
        let old = [1; BLOCK_BYTES];
        let mut new = old;
        for at in [0, 17, 24, 100, 4095] {
            new[at] = 9;
        }
        let mut bytes = Vec::new();
        put_changes(7, &old, &new, &mut bytes);
        let mut patched = old;
        let mut changed = 0;
        for operation in Operations(&bytes) {
            let Some(Operation::Change { page: 7, offset, bytes }) = operation else { panic!("{operation:?}") };
            patched[offset..offset + bytes.len()].copy_from_slice(bytes);
            changed += bytes.len();
        }
        assert_eq!(patched, new);
        assert!(changed <= 5 + 24 + 8, "{changed} bytes for five");
    }
}
