//! Where the content of an array's pages is kept: nowhere (simulation), on the heap (a working device in memory), or wherever else
//! a [`Payload`] keeps it, with all that finds it again.

use super::Oob;
use super::content::{Bytes, Content, Frames, HeapFrames, Nothing};
use crate::address::{BlockId, Lpn, Ppn};
use crate::cause::Cause;
use std::any::Any;

/// What becomes of an operation: a store outside memory may fail, and says how.
pub type Kept = Result<(), std::io::ErrorKind>;

/// Keeps the content of pages. The array above it checks NAND's rules, so that a page is programmed once after an erase.
///
/// # Contract
/// - An operation that fails ends the device, as a loss of power does; what was kept before is found when it is opened again. Only a
///   read may say that a page is damaged (`InvalidData`): that page alone is unreadable then.
/// - A page that was programmed reads as programmed until its block is erased.
/// - What outlives the tables keeps, with each page, the OOB area that comes with it.
pub trait Payload: Any + Send {
    /// What pages hold.
    type Content: Content;

    /// Whether an array must keep what a rebuild of the map needs, because the content outlives the tables.
    fn needs_recovery(&self) -> bool;
    /// Keeps a page.
    ///
    /// # Errors
    /// The store fails.
    fn program(&mut self, at: Ppn, oob: Oob, page: <Self::Content as Content>::Page<'_>, cause: Cause) -> Kept;
    /// Brings a page back, which was programmed with `oob`.
    ///
    /// # Errors
    /// The store fails, or the page is damaged.
    fn read(&self, at: Ppn, oob: Oob, out: <Self::Content as Content>::PageMut<'_>) -> Kept;
    /// Duplicates a page, which was programmed with `oob`.
    ///
    /// # Errors
    /// The store fails.
    fn copy(&mut self, source: Ppn, target: Ppn, oob: Oob, cause: Cause) -> Kept;
    /// Keeps bytes that the FTL composed; says whether this store has room for them.
    ///
    /// # Errors
    /// The store fails.
    fn program_bytes(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<bool, std::io::ErrorKind>;
    /// Brings such bytes back (padded to the page); says whether this store keeps them.
    ///
    /// # Errors
    /// The store fails, or the page is damaged.
    fn read_bytes(&self, at: Ppn, oob: Oob, out: &mut Vec<u8>) -> Result<bool, std::io::ErrorKind>;
    /// The pages of `block` hold nothing any more: a store outside memory gives their space back, if it can. They are programmed
    /// before they are read again. `erases` is how often the block was erased, this time included.
    ///
    /// # Errors
    /// The store fails.
    fn erase(&mut self, block: BlockId, erases: u32, cause: Cause) -> Kept;
    /// A flush of the host has come: what only this process knows is handed on, so that whoever owns the store can make it durable.
    ///
    /// # Errors
    /// The store fails.
    fn flush(&mut self) -> Kept;
    /// Keeps what a frame of a protected write buffer holds and flash has not seen, so that it outlives a loss of power without a
    /// program; without `held`, what was kept of the frame counts no more. Durable with the next [`Payload::flush`].
    ///
    /// # Errors
    /// The store fails.
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, <Self::Content as Content>::Page<'_>)>) -> Kept;
    /// Bytes of memory held.
    fn bytes(&self) -> u64;
}

/// Bytes, whichever store keeps them: devices over all stores are one piece of machine code, which the core holds.
pub type AnyPayload = Box<dyn Payload<Content = Bytes>>;

impl Payload for AnyPayload {
    type Content = Bytes;

    fn needs_recovery(&self) -> bool {
        (**self).needs_recovery()
    }
    fn program(&mut self, at: Ppn, oob: Oob, page: &[u8], cause: Cause) -> Kept {
        (**self).program(at, oob, page, cause)
    }
    fn read(&self, at: Ppn, oob: Oob, out: &mut [u8]) -> Kept {
        (**self).read(at, oob, out)
    }
    fn copy(&mut self, source: Ppn, target: Ppn, oob: Oob, cause: Cause) -> Kept {
        (**self).copy(source, target, oob, cause)
    }
    fn program_bytes(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<bool, std::io::ErrorKind> {
        (**self).program_bytes(at, oob, content, cause)
    }
    fn read_bytes(&self, at: Ppn, oob: Oob, out: &mut Vec<u8>) -> Result<bool, std::io::ErrorKind> {
        (**self).read_bytes(at, oob, out)
    }
    fn erase(&mut self, block: BlockId, erases: u32, cause: Cause) -> Kept {
        (**self).erase(block, erases, cause)
    }
    fn flush(&mut self) -> Kept {
        (**self).flush()
    }
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, &[u8])>) -> Kept {
        (**self).save_frame(frame, held)
    }
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }
}

/// No payload: a simulation needs addresses only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBytes;

impl Payload for NoBytes {
    type Content = Nothing;

    fn needs_recovery(&self) -> bool {
        false
    }
    #[inline(always)]
    fn program(&mut self, _: Ppn, _: Oob, (): (), _: Cause) -> Kept {
        Ok(())
    }
    #[inline(always)]
    fn read(&self, _: Ppn, _: Oob, (): ()) -> Kept {
        Ok(())
    }
    #[inline(always)]
    fn copy(&mut self, _: Ppn, _: Ppn, _: Oob, _: Cause) -> Kept {
        Ok(())
    }
    fn program_bytes(&mut self, _: Ppn, _: Oob, _: &[u8], _: Cause) -> Result<bool, std::io::ErrorKind> {
        Ok(false)
    }
    fn read_bytes(&self, _: Ppn, _: Oob, _: &mut Vec<u8>) -> Result<bool, std::io::ErrorKind> {
        Ok(false)
    }
    #[inline(always)]
    fn erase(&mut self, _: BlockId, _: u32, _: Cause) -> Kept {
        Ok(())
    }
    #[inline(always)]
    fn flush(&mut self) -> Kept {
        Ok(())
    }
    fn save_frame(&mut self, _: u32, _: Option<(Lpn, ())>) -> Kept {
        Ok(())
    }
    fn bytes(&self) -> u64 {
        0
    }
}

/// Every page's bytes, in memory.
#[derive(Clone, Debug)]
pub struct HeapBytes(HeapFrames);

impl HeapBytes {
    /// Room for `pages` pages of `2^log2_page_bytes` bytes.
    pub fn new(pages: u32, log2_page_bytes: u8) -> Self {
        Self(HeapFrames::new(pages, log2_page_bytes))
    }
}

impl Payload for HeapBytes {
    type Content = Bytes;

    fn needs_recovery(&self) -> bool {
        true
    }
    fn program(&mut self, at: Ppn, _: Oob, page: &[u8], _: Cause) -> Kept {
        self.0.put(at.0, page);
        Ok(())
    }
    fn read(&self, at: Ppn, _: Oob, out: &mut [u8]) -> Kept {
        self.0.get(at.0, out);
        Ok(())
    }
    fn copy(&mut self, source: Ppn, target: Ppn, _: Oob, _: Cause) -> Kept {
        self.0.copy(source.0, target.0);
        Ok(())
    }
    fn program_bytes(&mut self, at: Ppn, _: Oob, content: &[u8], _: Cause) -> Result<bool, std::io::ErrorKind> {
        let page = self.0.page_mut(at.0);
        page[..content.len()].copy_from_slice(content);
        page[content.len()..].fill(0);
        Ok(true)
    }
    fn read_bytes(&self, at: Ppn, _: Oob, out: &mut Vec<u8>) -> Result<bool, std::io::ErrorKind> {
        out.extend_from_slice(self.0.page(at.0));
        Ok(true)
    }
    fn erase(&mut self, _: BlockId, _: u32, _: Cause) -> Kept {
        Ok(())
    }
    fn flush(&mut self) -> Kept {
        Ok(())
    }
    /// The buffer lasts as long as the pages.
    fn save_frame(&mut self, _: u32, _: Option<(Lpn, &[u8])>) -> Kept {
        Ok(())
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
