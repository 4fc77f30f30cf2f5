//! How long pages live, learnt from how long pages like them have lived: what the placement and the victim policy `isotherm` judge by.
//!
//! Every version of a logical page belongs to a *context*: the size of the request that wrote it (1, 2-7, 8-31 pages, more), how often the
//! page was rewritten before (0, 1, 2 times, more) and the mean interval between its rewrites, in octaves. Of a sample of the pages, each context counts in bins of half octaves of
//! age how long pages were alive there (*exposure*) and how many died. Deaths over exposure is an empirical hazard: nothing is assumed
//! of its shape, so that memoryless traffic, logs that wrap around and temporary files are all covered.
//!
//! From the hazards follows for each context and age a *death rate*, the largest mean rate of death over any horizon from that age on:
//! a page that will die soon is hot, whether it is about to die at a certain age or has always died at random. It is the index by which
//! Gittins orders jobs of unknown length. Horizons are at least 2 % of the logical capacity written: shorter ones lie below the
//! time in which a block fills and is cleaned. Victim policies ask for the mean rate over the time in which the spare space is written by a third more than
//! once: who waits longer to clean has no free block.
//!
//! Where contexts explain the deaths of rewritten pages no better than one hazard for all of them would, as under uniform traffic, pages are
//! *alike*: every rate is the mean rate, so that noise separates nothing.
//!
//! Of pages that die old it is counted how often the one before, of those, was written at the same time. Where most were, *what is written together dies
//! together* ([`Lifetimes::die_together`]), as where a file system never overwrites and frees a region at a time.
//!
//! A page's first interval may begin before what is seen of the workload does: where a drive was filled before, versions that the filling wrote are
//! replaced after a part of the interval at which the workload writes them. Where second intervals are longer than first ones, of the pages that
//! have both, first ones are taken for as much longer.
//!
//! # Memory
//! Four bytes a logical page, 29 bits of which are used ([`PageState`]), and tables of [`TABLE_BYTES`].
//!
//! # Arithmetic
//! Counts are integers, hazards are computed by sums, products and quotients of IEEE doubles, and logarithms of `libm`: they are the same on
//! every machine.

mod ages;
mod contexts;
mod pages;
mod parents;

use crate::address::Lpn;
use ages::BINS;
use contexts::Contexts;
pub use contexts::{MEAN_RATE, TABLE_BYTES};
use pages::PageState;

/// Pages of a group, one of which belongs to the sample that is learnt from.
const GROUP: u32 = 8;
/// Units of age in one write of the whole logical capacity.
const UNITS_PER_DRIVE_WRITE: u64 = 2048;
/// Ages in units beyond which a page counts as [`SETTLED_AGE`] units old: well below what 16 bits hold.
const OLDEST: u32 = 45_000;
const SETTLED_AGE: u32 = 40_960;
/// A page that was not written for so many units has lost half of what is known of it.
const FORGOTTEN: u32 = 8 * UNITS_PER_DRIVE_WRITE as u32;

/// Parts of a drive write at which a page is old: what is written together and dies young shares a block in any case.
const OLD_PARTS: u32 = 8;
/// Pages with two intervals before which it is not known how short first ones were cut, and the most that one stands for, in 256ths.
const LEAST_FIRST_INTERVALS: u64 = 100;
const MOST_FIRST_PARTS: u64 = 8 * 256;
/// Deaths of old pages before which it is not known whether they die together.
const LEAST_OLD_DEATHS: u32 = 100;

/// What contexts and rates go by: each can be ignored, to see what it is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The size of the request that wrote a page.
    Size,
    /// How often the page was rewritten, beyond whether it was.
    Rewrites,
    /// The mean interval between its rewrites.
    Interval,
    /// Its age: rates are those of a page that was just written.
    Age,
    /// Whether what was written together dies together.
    Together,
}

impl Signal {
    /// The one that is ignored, if any, as parameters name it.
    pub const NAMES: &[(&str, Option<Self>)] = &[
        ("none", None),
        ("size", Some(Self::Size)),
        ("rewrites", Some(Self::Rewrites)),
        ("interval", Some(Self::Interval)),
        ("age", Some(Self::Age)),
        ("together", Some(Self::Together)),
    ];
}

/// First intervals between writes of a page, of pages with a second one, beside those: how many there were, and their sums in 2^-12 units.
/// A page has one of each, but for what it forgets: nothing decays.
#[derive(Clone, Copy, Default, Debug)]
struct FirstIntervals {
    count: u64,
    first: u64,
    second: u64,
}

impl FirstIntervals {
    #[inline(always)]
    fn note(&mut self, first: u32, second: u32) {
        self.count += 1;
        self.first += u64::from(first);
        self.second += u64::from(second);
    }

    /// What a first one stands for, in 256ths of itself: of pages that die at random it is itself, and it is never less.
    fn parts(&self) -> u64 {
        if self.count < LEAST_FIRST_INTERVALS {
            return 256;
        }
        (self.second / (self.first / 256).max(1)).clamp(256, MOST_FIRST_PARTS)
    }

    /// Makes room, once in a write of the logical capacity: an interval has 28 bits, and fewer than 2^30 come in such a time.
    fn keep_in_range(&mut self) {
        if self.count > 1 << 32 {
            for sum in [&mut self.count, &mut self.first, &mut self.second] {
                *sum /= 2;
            }
        }
    }
}

/// Whose lifetimes are learnt, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LifetimeOptions {
    /// Logical pages; 0 where nobody asks for lifetimes.
    pub logical_pages: u32,
    /// Pages that the drive has on top of these.
    pub spare_pages: u32,
    /// What rates do not go by.
    pub ignored: Option<Signal>,
}

impl LifetimeOptions {
    /// Of a drive with so many logical pages, and blocks of so many pages.
    pub fn of_drive(logical_pages: u32, blocks: u32, pages_per_block: u32) -> Self {
        Self { logical_pages, spare_pages: (blocks * pages_per_block).saturating_sub(logical_pages), ignored: None }
    }

    /// What two policies ask for together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            logical_pages: self.logical_pages.max(other.logical_pages),
            spare_pages: self.spare_pages.max(other.spare_pages),
            ignored: self.ignored.or(other.ignored),
        }
    }
}

/// Of pages that died old: how many there were, and how many were written at the same time as the one before, to a unit.
#[derive(Clone, Copy, Default, Debug)]
struct OldDeaths {
    all: u32,
    together: u32,
    /// When the last one was written.
    written: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    pages: Vec<PageState>,
    contexts: Contexts,
    /// Host page writes in a unit of age, at least 1.
    unit: u64,
    /// The time in units, and the host page write at which the next one begins.
    now: u32,
    next_unit: u64,
    /// One past the time of the last host write noted.
    noted: u64,
    /// The class of the size of the request that writes.
    size: u32,
    /// 0 where sizes are ignored.
    size_mask: u32,
    /// The page whose age is kept in range next.
    oldest_turn: u32,
    /// The time in units up to which the pages of the sample have told how long they were alive.
    told: u32,
    /// Host page writes until the death rates are computed anew, and between two times.
    until_computed: u32,
    computed_every: u32,
    /// Host page writes until counts decay.
    until_decay: u32,
    old_deaths: OldDeaths,
    /// Age in units at which a page is old; none is where it is ignored whether pages die together.
    old: u32,
    die_together: bool,
    first_intervals: FirstIntervals,
    /// What a first interval stands for, in 256ths of itself.
    first_parts: u64,
}

impl Lifetimes {
    /// Nothing is known yet of the logical pages, of which there is at least one.
    pub fn new(options: LifetimeOptions) -> Self {
        let LifetimeOptions { logical_pages, spare_pages, ignored } = options;
        let unit = (u64::from(logical_pages) / UNITS_PER_DRIVE_WRITE).max(1);
        let computed_every = (logical_pages / 16).max(4096);
        Self {
            pages: crate::memory::table(logical_pages as usize, PageState::UNKNOWN),
            contexts: Contexts::new(
                f64::from(logical_pages) / unit as f64,
                f64::from(spare_pages) / f64::from(logical_pages),
                ignored,
            ),
            unit,
            now: 0,
            next_unit: unit,
            noted: 0,
            size: 0,
            size_mask: if ignored == Some(Signal::Size) { 0 } else { u32::MAX },
            oldest_turn: 0,
            told: 0,
            until_computed: computed_every,
            computed_every,
            until_decay: logical_pages,
            old_deaths: OldDeaths::default(),
            old: if ignored == Some(Signal::Together) {
                u32::MAX
            } else {
                (logical_pages / unit as u32 / OLD_PARTS).max(1)
            },
            die_together: false,
            first_intervals: FirstIntervals::default(),
            first_parts: 256,
        }
    }

    /// A request of the host is about to write so many pages. Before the first one says so, requests have one.
    #[inline(always)]
    pub fn begin_write(&mut self, pages: u32) {
        self.size = PageState::size_of_request(pages) & self.size_mask;
    }

    /// Notes that the host writes `lpn` at the time `now`. Everyone who judges by lifetimes does so when hearing of the
    /// write: no two writes have the same time, so the second call for a write changes nothing.
    #[inline(always)]
    pub fn record(&mut self, lpn: Lpn, now: u64) {
        if self.noted == now + 1 {
            return;
        }
        self.noted = now + 1;
        self.advance(now);
        let index = lpn.0 as usize;
        let mut page = self.pages[index];
        if page.is_live() {
            self.end(lpn, &mut page);
        }
        page.begin(self.now, self.size);
        self.pages[index] = page;
    }

    /// Notes that the host trimmed `lpn`.
    pub fn trim(&mut self, lpn: Lpn) {
        let index = lpn.0 as usize;
        let mut page = self.pages[index];
        if page.is_live() {
            self.end(lpn, &mut page);
            page.leave();
            self.pages[index] = page;
        }
    }

    /// The death rate of the page, as placements take it: in eighths of octaves, [`MEAN_RATE`] of which stand for one death in one write of the logical capacity.
    #[inline(always)]
    pub fn eighths(&self, lpn: Lpn) -> u8 {
        let page = self.pages[lpn.0 as usize];
        self.contexts.placement(self.contexts.of(page), ages::bin(page.age(self.now)))
    }

    /// The death rate of the page, as victim policies take it: expected deaths in one write of the logical capacity.
    #[inline(always)]
    pub fn rate(&self, lpn: Lpn) -> f64 {
        let page = self.pages[lpn.0 as usize];
        self.contexts.victim(self.contexts.of(page), ages::bin(page.age(self.now)))
    }

    /// Whether the death rates of pages do not differ by more than noise: then all are the mean rate.
    #[inline(always)]
    pub fn are_alike(&self) -> bool {
        self.contexts.are_alike()
    }

    /// Whether pages that grow old die together with those that were written together with them, for the most part.
    #[inline(always)]
    pub fn die_together(&self) -> bool {
        self.die_together
    }

    /// Octaves by which the age of the page lies above the one at which pages are old, 0 where it does not.
    #[inline(always)]
    pub fn octaves_old(&self, lpn: Lpn) -> u32 {
        (self.pages[lpn.0 as usize].age(self.now) / self.old).max(1).ilog2()
    }

    /// Brings what is known of `lpns` towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        lpns.for_each(|lpn| crate::memory::prefetch(&self.pages, lpn.0 as usize));
    }

    /// Bytes of the pages' states and of the tables, for so many logical pages.
    pub fn bytes_of(logical_pages: u32) -> u64 {
        if logical_pages == 0 { 0 } else { u64::from(logical_pages) * size_of::<PageState>() as u64 + TABLE_BYTES }
    }

    /// What goes with the clock, not with the page written.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        if now >= self.next_unit {
            self.next_unit = now - now % self.unit + self.unit;
            self.now = (now / self.unit) as u32;
        }
        self.pages[self.oldest_turn as usize].keep_in_range(self.now);
        self.oldest_turn = if self.oldest_turn as usize + 1 == self.pages.len() { 0 } else { self.oldest_turn + 1 };
        self.until_computed -= 1;
        if self.until_computed == 0 {
            self.until_computed = self.computed_every;
            self.tell();
            self.contexts.compute();
            let OldDeaths { all, together, .. } = self.old_deaths;
            self.die_together = all >= LEAST_OLD_DEATHS && together > all / 2;
            self.first_parts = self.first_intervals.parts();
        }
        self.until_decay -= 1;
        if self.until_decay == 0 {
            self.until_decay = self.pages.len() as u32;
            self.contexts.decay();
            for count in [&mut self.old_deaths.all, &mut self.old_deaths.together] {
                *count = contexts::kept(*count);
            }
            self.first_intervals.keep_in_range();
        }
    }

    /// The version of a page that was alive is no more.
    #[inline(always)]
    fn end(&mut self, lpn: Lpn, page: &mut PageState) {
        let age = page.age(self.now);
        if age >= self.old {
            let written = self.now.wrapping_sub(age);
            let is_together = written.abs_diff(self.old_deaths.written) <= 1;
            let OldDeaths { all, together, .. } = self.old_deaths;
            self.old_deaths = OldDeaths { all: all + 1, together: together + u32::from(is_together), written };
        }
        if is_sampled(lpn.0) {
            self.contexts.died(self.contexts.of(*page), age.saturating_sub(self.now - self.told), age);
        }
        if page.class() == 1 {
            self.first_intervals.note(ages::of_eighths(page.mean()), ages::SCALE * age);
        }
        // What decides between two classes need not be more random than this: it has to differ from write to write.
        let lot = (lpn.0 ^ self.noted as u32).wrapping_mul(0x9E37_79B9) >> 16;
        page.learn(age, self.first_parts, lot);
    }

    /// The pages of the sample that are alive tell how long they have been so, since they last did: else contexts would
    /// hear of deaths before they hear of lives.
    #[inline(never)]
    fn tell(&mut self) {
        let since = self.now - self.told;
        self.told = self.now;
        for lpn in (0..(self.pages.len() as u32).div_ceil(GROUP)).map(sampled) {
            let Some(page) = self.pages.get(lpn as usize).filter(|page| page.is_live()) else { continue };
            let age = page.age(self.now);
            self.contexts.lived(self.contexts.of(*page), age.saturating_sub(since), age);
        }
    }
}

/// The page of a group that belongs to the sample. Neighbours are written together, and files begin at round addresses: the sample
/// may follow neither.
#[inline(always)]
fn sampled(group: u32) -> u32 {
    group * GROUP + (group.wrapping_mul(0x9E37_79B1) >> 29)
}

/// Whether a page belongs to the sample.
#[inline(always)]
fn is_sampled(lpn: u32) -> bool {
    sampled(lpn / GROUP) == lpn
}

const _: () = assert!(ages::bin(OLDEST) < BINS && SETTLED_AGE < OLDEST);

#[cfg(test)]
mod tests;
