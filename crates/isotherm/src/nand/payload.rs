//! Payload of pages: none (simulation), or bytes on the heap (a working device).

use crate::address::Ppn;

/// Where page payload lives. The block store and the FTLs are written once, for any payload.
pub trait Payload {
    /// A page to be programmed.
    type Page<'a>: Copy;
    /// Room for a page to be read.
    type PageMut<'a>;
    /// Room for `pages` pages of `2^log2_page_bytes` bytes, zero at first.
    fn new(pages: u32, log2_page_bytes: u8) -> Self;
    /// The page at `at`, as it would be programmed elsewhere.
    fn page(&self, at: Ppn) -> Self::Page<'_>;
    /// The page at `at`, to be read into.
    fn page_mut(&mut self, at: Ppn) -> Self::PageMut<'_>;
    /// Keeps `page` at `at`.
    fn program(&mut self, at: Ppn, page: Self::Page<'_>);
    /// Brings the page at `at` back.
    fn read(&self, at: Ppn, out: Self::PageMut<'_>);
    /// Duplicates a page.
    fn copy(&mut self, source: Ppn, target: Ppn);
    /// Keeps bytes that the FTL composed; returns false if this store has no room for payload.
    fn program_bytes(&mut self, at: Ppn, content: &[u8]) -> bool;
    /// Brings such bytes back (padded to the page); false if this store keeps none.
    fn read_bytes(&self, at: Ppn, out: &mut Vec<u8>) -> bool;
    /// Bytes held.
    fn bytes(&self) -> u64;
}

/// No payload: a simulation needs addresses only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBytes;

impl Payload for NoBytes {
    type Page<'a> = ();
    type PageMut<'a> = ();
    fn new(_: u32, _: u8) -> Self {
        Self
    }
    #[inline(always)]
    fn page(&self, _: Ppn) {}
    #[inline(always)]
    fn page_mut(&mut self, _: Ppn) {}
    #[inline(always)]
    fn program(&mut self, _: Ppn, (): ()) {}
    #[inline(always)]
    fn read(&self, _: Ppn, (): ()) {}
    #[inline(always)]
    fn copy(&mut self, _: Ppn, _: Ppn) {}
    fn program_bytes(&mut self, _: Ppn, _: &[u8]) -> bool {
        false
    }
    fn read_bytes(&self, _: Ppn, _: &mut Vec<u8>) -> bool {
        false
    }
    fn bytes(&self) -> u64 {
        0
    }
}

/// Every page's bytes, in memory.
#[derive(Clone, Debug)]
pub struct HeapBytes {
    log2_page_bytes: u8,
    bytes: Vec<u8>,
}

impl HeapBytes {
    fn range(&self, at: Ppn) -> std::ops::Range<usize> {
        let start = (at.0 as usize) << self.log2_page_bytes;
        start..start + (1 << self.log2_page_bytes)
    }
}

impl Payload for HeapBytes {
    type Page<'a> = &'a [u8];
    type PageMut<'a> = &'a mut [u8];
    fn new(pages: u32, log2_page_bytes: u8) -> Self {
        Self { log2_page_bytes, bytes: vec![0; (pages as usize) << log2_page_bytes] }
    }
    fn page(&self, at: Ppn) -> &[u8] {
        &self.bytes[self.range(at)]
    }
    fn page_mut(&mut self, at: Ppn) -> &mut [u8] {
        let range = self.range(at);
        &mut self.bytes[range]
    }
    fn program(&mut self, at: Ppn, page: &[u8]) {
        let range = self.range(at);
        self.bytes[range].copy_from_slice(page);
    }
    fn read(&self, at: Ppn, out: &mut [u8]) {
        out.copy_from_slice(&self.bytes[self.range(at)]);
    }
    fn copy(&mut self, source: Ppn, target: Ppn) {
        let (source, target) = (self.range(source), self.range(target));
        self.bytes.copy_within(source, target.start);
    }
    fn program_bytes(&mut self, at: Ppn, content: &[u8]) -> bool {
        let range = self.range(at);
        let page = &mut self.bytes[range];
        page[..content.len()].copy_from_slice(content);
        page[content.len()..].fill(0);
        true
    }
    fn read_bytes(&self, at: Ppn, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.bytes[self.range(at)]);
        true
    }
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}
