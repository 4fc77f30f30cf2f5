//! The pages whose recency is sampled.

use crate::address::Lpn;
use crate::bits::Bits;
use crate::random::Random;

/// A simple random sample of the pages, without repetition: all of them where there are no more than it takes.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The sampled pages, in a ring that is renewed from `oldest` on. Empty until they are drawn.
    lpns: Vec<Lpn>,
    oldest: usize,
    is_sampled: Bits,
    logical_pages: u32,
    size: u32,
}

impl Sample {
    /// A sample of `size` of `logical_pages` pages, not drawn yet.
    pub fn new(size: u32, logical_pages: u32) -> Self {
        Self {
            lpns: Vec::new(),
            oldest: 0,
            is_sampled: Bits::new(logical_pages as usize),
            logical_pages,
            size: size.min(logical_pages),
        }
    }

    /// Pages that it takes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether `lpn` is sampled.
    #[inline(always)]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.is_sampled.contains(lpn.0)
    }

    /// The sampled pages.
    pub fn lpns(&self) -> &[Lpn] {
        &self.lpns
    }

    /// The sampled pages, as a set.
    pub fn set(&self) -> &Bits {
        &self.is_sampled
    }

    /// Draws the whole sample for the first time.
    pub fn draw(&mut self, random: &mut Random) {
        if self.size == self.logical_pages {
            (0..self.size).for_each(|lpn| self.take(Lpn(lpn)));
        }
        while (self.lpns.len() as u32) < self.size {
            self.take(Lpn(random.below(self.logical_pages.into()) as u32));
        }
    }

    fn take(&mut self, lpn: Lpn) {
        if self.is_sampled.insert(lpn.0) {
            self.lpns.push(lpn);
        }
    }

    /// The sampled page that would leave `ahead` exchanges from now.
    #[inline(always)]
    pub fn leaving(&self, ahead: usize) -> Lpn {
        self.lpns[(self.oldest + ahead) % self.lpns.len()]
    }

    /// Takes `lpn`, drawn at random, in place of the page that has been sampled for longest, which is returned; keeps that
    /// one if `lpn` is sampled already, so that every set of pages stays equally likely.
    #[inline(always)]
    pub fn exchange(&mut self, lpn: Lpn) -> Option<Lpn> {
        if !self.is_sampled.insert(lpn.0) {
            return None;
        }
        let left = std::mem::replace(&mut self.lpns[self.oldest], lpn);
        self.is_sampled.remove(left.0);
        self.oldest = if self.oldest + 1 == self.lpns.len() { 0 } else { self.oldest + 1 };
        Some(left)
    }

    /// Memory of the tables.
    pub fn bytes(&self) -> u64 {
        u64::from(self.size) * size_of::<Lpn>() as u64 + self.is_sampled.bytes()
    }
}
