//! What a page holds, as a type: nothing (simulation) or bytes (a working device).
//!
//! The block store, the FTLs and the device are written once, for any [`Content`]. How long content is kept, and where, is the
//! business of a [`super::payload::Payload`]; a buffer in DRAM keeps it in [`Frames`].

use std::ops::Range;

/// What pages hold.
pub trait Content: Sized + Send + 'static {
    /// Whether pages hold nothing, so that there is nothing to be kept.
    const HOLDS_NOTHING: bool;
    /// A page to be programmed.
    type Page<'a>: Copy;
    /// Room for a page to be read.
    type PageMut<'a>;
    /// What the host writes: a run of bytes that need not begin or end with a page.
    type Data<'a>: Run<Page = Self::Page<'a>>;
    /// Room for what the host reads.
    type Room<'a>;
    /// Pages in DRAM.
    type Frames: Frames<Self> + Send;
}

/// What the host writes, in one piece.
pub trait Run: Copy {
    /// A page of it.
    type Page;
    /// The page that is the whole of `range`.
    fn page(self, range: Range<usize>) -> Self::Page;
}

impl Run for () {
    type Page = ();
    #[inline(always)]
    fn page(self, _: Range<usize>) {}
}

impl<'a> Run for &'a [u8] {
    type Page = &'a [u8];
    fn page(self, range: Range<usize>) -> &'a [u8] {
        &self[range]
    }
}

/// Pages in DRAM: a write buffer's, or one page through which others pass.
///
/// # Panics
/// Where an index is not below the number of pages, or a range does not lie in a page.
pub trait Frames<C: Content> {
    /// `pages` pages of `2^log2_page_bytes` bytes, zero at first.
    fn new(pages: u32, log2_page_bytes: u8) -> Self;
    /// A page, to be programmed.
    fn page(&self, index: u32) -> C::Page<'_>;
    /// A page, to be read into.
    fn page_mut(&mut self, index: u32) -> C::PageMut<'_>;
    /// Keeps a page.
    fn put(&mut self, index: u32, page: C::Page<'_>);
    /// Copies a page out.
    fn get(&self, index: u32, out: C::PageMut<'_>);
    /// Copies a page from one place to another.
    fn copy(&mut self, source: u32, target: u32);
    /// Puts `range` of what the host writes into a page, from byte `at` of the page on.
    fn patch(&mut self, index: u32, at: usize, data: C::Data<'_>, range: Range<usize>);
    /// Puts a part of a page, from byte `at` of it on, into `range` of what the host reads.
    fn extract(&self, index: u32, at: usize, room: &mut C::Room<'_>, range: Range<usize>);
    /// Makes a part of a page zero.
    fn clear(&mut self, index: u32, range: Range<usize>);
}

/// Nothing: a simulation needs addresses only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Content for Nothing {
    const HOLDS_NOTHING: bool = true;
    type Page<'a> = ();
    type PageMut<'a> = ();
    type Data<'a> = ();
    type Room<'a> = ();
    type Frames = Self;
}

impl Frames<Self> for Nothing {
    fn new(_: u32, _: u8) -> Self {
        Self
    }
    #[inline(always)]
    fn page(&self, _: u32) {}
    #[inline(always)]
    fn page_mut(&mut self, _: u32) {}
    #[inline(always)]
    fn put(&mut self, _: u32, (): ()) {}
    #[inline(always)]
    fn get(&self, _: u32, (): ()) {}
    #[inline(always)]
    fn copy(&mut self, _: u32, _: u32) {}
    #[inline(always)]
    fn patch(&mut self, _: u32, _: usize, (): (), _: Range<usize>) {}
    #[inline(always)]
    fn extract(&self, _: u32, _: usize, (): &mut (), _: Range<usize>) {}
    #[inline(always)]
    fn clear(&mut self, _: u32, _: Range<usize>) {}
}

/// Bytes, as many as a page has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl Content for Bytes {
    const HOLDS_NOTHING: bool = false;
    type Page<'a> = &'a [u8];
    type PageMut<'a> = &'a mut [u8];
    type Data<'a> = &'a [u8];
    type Room<'a> = &'a mut [u8];
    type Frames = HeapFrames;
}

/// Pages of bytes on the heap.
#[derive(Clone, Debug)]
pub struct HeapFrames {
    log2_page_bytes: u8,
    bytes: Vec<u8>,
}

impl HeapFrames {
    fn range(&self, index: u32) -> Range<usize> {
        let start = (index as usize) << self.log2_page_bytes;
        start..start + (1 << self.log2_page_bytes)
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Frames<Bytes> for HeapFrames {
    fn new(pages: u32, log2_page_bytes: u8) -> Self {
        Self { log2_page_bytes, bytes: vec![0; (pages as usize) << log2_page_bytes] }
    }
    fn page(&self, index: u32) -> &[u8] {
        &self.bytes[self.range(index)]
    }
    fn page_mut(&mut self, index: u32) -> &mut [u8] {
        let range = self.range(index);
        &mut self.bytes[range]
    }
    fn put(&mut self, index: u32, page: &[u8]) {
        self.page_mut(index).copy_from_slice(page);
    }
    fn get(&self, index: u32, out: &mut [u8]) {
        out.copy_from_slice(self.page(index));
    }
    fn copy(&mut self, source: u32, target: u32) {
        let (source, target) = (self.range(source), self.range(target));
        self.bytes.copy_within(source, target.start);
    }
    fn patch(&mut self, index: u32, at: usize, data: &[u8], range: Range<usize>) {
        self.page_mut(index)[at..][..range.len()].copy_from_slice(&data[range]);
    }
    fn extract(&self, index: u32, at: usize, room: &mut &mut [u8], range: Range<usize>) {
        let length = range.len();
        room[range].copy_from_slice(&self.page(index)[at..][..length]);
    }
    fn clear(&mut self, index: u32, range: Range<usize>) {
        self.page_mut(index)[range].fill(0);
    }
}
