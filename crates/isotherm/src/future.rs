//! The future of every page version: what offline parts know of a trace that was read before.

use crate::address::Lpn;

/// The death of a page version that lives to the end.
pub const NEVER: u32 = u32::MAX;

/// When each version of each page dies, over all host page writes that a device or a scheme will see.
#[derive(Clone, Debug, Default)]
pub struct Future {
    /// For each host page write in order, the number of the write before which its page is overwritten or trimmed;
    /// [`NEVER`] if it is not.
    pub deaths: Vec<u32>,
}

impl Future {
    /// The future of a whole sequence of page writes within `0..logical_pages`.
    ///
    /// # Panics
    /// If there are 2^32 - 1 writes or more, or a page lies outside.
    pub fn of(writes: &[Lpn], logical_pages: u32) -> Self {
        assert!((writes.len() as u64) < u64::from(NEVER), "writes are numbered with 32 bits");
        let mut next_of_page = vec![NEVER; logical_pages as usize];
        let mut deaths = vec![NEVER; writes.len()];
        for (index, lpn) in writes.iter().enumerate().rev() {
            deaths[index] = std::mem::replace(&mut next_of_page[lpn.0 as usize], index as u32);
        }
        Self { deaths }
    }
}
