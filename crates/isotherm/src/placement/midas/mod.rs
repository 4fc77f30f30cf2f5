//! MiDAS: a chain of groups through which survivors of collections pass, with a group of its own for hot pages in front, the
//! number and sizes of the groups following from a model of the traffic (Oh et al., "MiDAS: minimizing write
//! amplification in log-structured systems through adaptive group number and size configuration", FAST'24).
//!
//! What the publication says: a host write enters the first group; a page that survives a collection moves to the next one, the
//! last group keeps its own survivors. Every group but the last is cleaned in FIFO order, as soon as it exceeds its size, the
//! last one by a victim policy when a block is needed. A sample of pages yields the update interval distribution (UID,
//! `intervals`) over an epoch of four times the capacity. From it a Markov chain (MCAM, `model`) predicts the share of
//! survivors of each group, and with it the write amplification of any number and sizes of groups; a search (GCS)
//! adds groups one by one and then tries every size anew. A counter of two bits a page counts how often it was
//! overwritten in the hot group, or in the first one at no greater age than blocks of the hot group reach; it counts down where it
//! grew older in the first, or is copied out of either. A full counter makes it hot; what survives in the hot group was misjudged
//! and enters the first. Where a group's victims hold over a tenth more valid pages than predicted, the pattern is
//! irregular: that group and all behind it merge into one, in which pages still pass along the chain, but victims are chosen
//! among all; at worst two groups remain, hot and other. The chain works in the same way until the first epoch is over.
//!
//! Departures: one page in 16 is sampled, where the publication takes one in 100 of devices hundreds of times as large. Hot and
//! other writes have distributions of their own, so that the survivors of the hot group are predicted from how
//! well pages were judged; the publication takes a perfect judge, or the share measured last. A new configuration must be
//! predicted to gain 2 %, since every change moves pages. For the model's last group see `model`. Blocks change no
//! group when the number of groups does: the last group owns every stream behind the sized ones, and pages pass along these
//! as in a merged group, lest the open blocks of unused streams be lost. Where no sizes promise a gain, as under uniform
//! traffic, there are none. With `sizing=false` there never are.
//!
//! Choosing a victim costs O(blocks) in the last group, O(1) elsewhere; a configuration is some thousand predictions an epoch.

mod intervals;
mod model;

use super::VictimSource;
use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, PlacementContext, Reclaim};
use crate::address::{BlockId, Lpn, StreamId};
use crate::blocks::lists::BlockLists;
use crate::blocks::{BlockTable, Streams};
use crate::memory;
use crate::registry::{Entry, Parameter, Parameters, SpecError};
use intervals::Intervals;
use model::{Configuration, MOST_GROUPS, Model, Prediction};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "midas",
    summary: "a chain of groups that survivors pass through, behind a group of hot pages; sizes follow from a model",
    paper: "Oh et al., MiDAS, FAST'24",
    memory: "8 bytes a logical page, 8 bytes a block",
    parameters: &[
        Parameter::integer("groups", 2..=MOST_GROUPS as u64, "6")
            .help("most groups of the chain, each a stream; the hot group is one more"),
        Parameter::boolean("sizing", "true")
            .help("choose number and sizes of groups by the model; otherwise victims come from all of them alike"),
        Parameter::real("epoch", 0.1..=100.0, "4").help("length of an epoch in writes of the logical pages"),
        Parameter::integer("sample", 1..=1024, "16")
            .help("one page in so many is sampled for the update interval distribution"),
    ],
    build: BuildPlacement::online(build),
};

fn build(parameters: &Parameters<'_>, context: &PlacementContext) -> Result<AnyPlacement, SpecError> {
    let logical_pages = u64::from(context.logical_pages);
    let groups = parameters.integer("groups") as u16;
    let epoch = (parameters.real("epoch") * logical_pages as f64).ceil() as u64;
    Ok(AnyPlacement::Midas(Midas {
        pages: memory::table(context.logical_pages as usize, Default::default()),
        live_pages: 0,
        groups: vec![Group::default(); usize::from(groups) + 1],
        closed: BlockLists::new(context.blocks, usize::from(groups) + 1),
        hot_age: 0,
        configuration: None,
        prediction: Prediction::default(),
        sampling: Sampling {
            classes: [Intervals::new(), Intervals::new()],
            hash_below: u32::MAX / parameters.integer("sample") as u32,
            began_at: logical_pages,
            length: epoch,
        },
        check_at: logical_pages,
        check_every: logical_pages,
        pages_per_block: context.pages_per_block,
        sizing: parameters.boolean("sizing"),
    }))
}

const HOT: StreamId = StreamId(0);
const FIRST: StreamId = StreamId(1);
/// The count that makes a page hot.
const FULL_HEAT: u8 = 3;
/// What a new configuration must be predicted to gain.
const LEAST_GAIN: f64 = 0.02;
/// Excess of valid pages in a group's victims over the prediction that makes the pattern irregular, as a share of their pages.
const IRREGULAR: f64 = 0.1;
/// Victims below which a group's share of valid pages is not judged.
const LEAST_VICTIMS: u64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Time of the last write, in host page writes modulo 2^32.
    last_write: u32,
    /// Stream that holds the page, plus one; 0 for none.
    held_by: u8,
    /// Short lives less long ones, 0 to `FULL_HEAT`.
    heat: u8,
    /// Whether the page was judged hot when it was last written.
    judged_hot: bool,
}

/// What is known of a group: its closed blocks, and its victims since the last judgement.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    blocks: u32,
    victims: u64,
    valid: u64,
}

/// The sample of the epoch: hot writes first, then the others.
#[derive(Clone, Debug)]
struct Sampling {
    classes: [Intervals; 2],
    /// Pages whose hash lies below are sampled.
    hash_below: u32,
    /// Where the epoch began and how long it lasts, in host page writes.
    began_at: u64,
    length: u64,
}

impl Sampling {
    #[inline(always)]
    fn is_sampled(&self, lpn: Lpn) -> bool {
        lpn.0.wrapping_mul(0x9E37_79B1) < self.hash_below
    }

    fn class(&mut self, judged_hot: bool) -> &mut Intervals {
        &mut self.classes[usize::from(!judged_hot)]
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Midas {
    pages: Vec<PageState>,
    live_pages: u64,
    /// By stream: the hot group, then the chain.
    groups: Vec<Group>,
    /// Closed blocks of each stream, first closed first.
    closed: BlockLists,
    /// How long blocks of the hot group live until they are collected, in host page writes (blocks of the first group as long as
    /// there is no hot one): a moving mean, the newest weighing an eighth.
    hot_age: u64,
    /// None as long as no group has a size: before the first epoch is over, and where sizes promise no gain.
    configuration: Option<Configuration>,
    prediction: Prediction,
    sampling: Sampling,
    /// When groups are judged next, and how often, in host page writes.
    check_at: u64,
    check_every: u64,
    pages_per_block: u32,
    sizing: bool,
}

impl Midas {
    fn last(&self) -> StreamId {
        StreamId(self.groups.len() as u16 - 1)
    }

    /// The first stream of the last group; the chain's first while it has no sizes.
    fn first_of_last(&self) -> StreamId {
        StreamId(FIRST.0 + self.configuration.map_or(0, |c| c.sized as u16))
    }

    fn uses_hot(&self) -> bool {
        self.configuration.is_none_or(|c| c.hot > 0)
    }

    /// Counts the life of a sampled page that ends now.
    #[inline(always)]
    fn sample(&mut self, write: &HostWrite, page: PageState, life: u32) {
        let began_at = self.sampling.began_at;
        if write.now >= began_at && write.rewrite && self.sampling.is_sampled(write.lpn) {
            // Lives that began before the epoch would count the longer ones too often.
            if u64::from(life) <= write.now - began_at {
                self.sampling.class(page.judged_hot).end(life);
            }
        }
    }

    /// Ends the epoch: completes the distribution, and takes the best configuration if it promises enough.
    fn reconfigure(&mut self, now: u64) {
        let began_at = self.sampling.began_at;
        for (lpn, page) in (0..).zip(&self.pages) {
            let age = (now as u32).wrapping_sub(page.last_write);
            if page.held_by > 0 && self.sampling.is_sampled(Lpn(lpn)) && u64::from(age) <= now - began_at {
                self.sampling.class(page.judged_hot).last(age);
            }
        }
        let [hot, cold] = &self.sampling.classes;
        let (hot_lives, lives) = (hot.lives() as f64, (hot.lives() + cold.lives()) as f64);
        let model = Model {
            hot: hot.survival(),
            cold: cold.survival(),
            hot_traffic: if lives > 0.0 { hot_lives / lives } else { 0.0 },
            live_pages: self.live_pages as f64,
            horizon: 0.875 * self.sampling.length as f64,
            pages_per_block: f64::from(self.pages_per_block),
            blocks: self.groups.iter().map(|group| f64::from(group.blocks)).sum(),
        };
        if let Some((configuration, prediction)) = model.choose(self.groups.len() - 2) {
            let current = self.configuration.and_then(|c| Some((c, model.predict(&c)?)));
            let enough = |p: &Prediction| p.write_amplification * (1.0 - LEAST_GAIN) <= prediction.write_amplification;
            let (configuration, prediction) = current.filter(|(_, p)| enough(p)).unwrap_or((configuration, prediction));
            self.configuration = Some(configuration).filter(|c| *c != Configuration::default());
            self.prediction = prediction;
            self.groups.iter_mut().for_each(|group| (group.victims, group.valid) = (0, 0));
            self.check_at = now + self.check_every;
        }
        self.sampling.classes.iter_mut().for_each(Intervals::clear);
        self.sampling.began_at = now;
    }

    /// Merges the first group that the model misjudged with all behind it.
    fn judge(&mut self, now: u64) {
        self.check_at = now + self.check_every;
        let Some(configuration) = &mut self.configuration else { return };
        let chain = &mut self.groups[usize::from(FIRST.0)..];
        for (at, group) in chain[..configuration.sized].iter_mut().enumerate() {
            let pages = (group.victims * u64::from(self.pages_per_block)) as f64;
            if group.victims >= LEAST_VICTIMS && group.valid as f64 > (self.prediction.valid[at] + IRREGULAR) * pages {
                configuration.sized = at;
                break;
            }
            (group.victims, group.valid) = (0, 0);
        }
    }
}

impl Placement for Midas {
    fn streams(&self) -> u16 {
        self.last().0 + 1
    }
    fn learns_for(&self) -> u32 {
        16
    }
    fn gc_streams(&self) -> u16 {
        self.last().0
    }
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        if self.sizing && write.now >= self.check_at {
            self.judge(write.now);
            if write.now >= self.sampling.began_at + self.sampling.length {
                self.reconfigure(write.now);
            }
        }
        let page = self.pages[write.lpn.0 as usize];
        let life = (write.now as u32).wrapping_sub(page.last_write);
        self.sample(write, page, life);
        let was_in = page.held_by.wrapping_sub(1);
        let heat = match StreamId(was_in.into()) {
            _ if !write.rewrite => 0,
            HOT => (page.heat + 1).min(FULL_HEAT),
            FIRST if u64::from(life) <= self.hot_age => (page.heat + 1).min(FULL_HEAT),
            FIRST => page.heat.saturating_sub(1),
            _ => page.heat,
        };
        self.live_pages += u64::from(page.held_by == 0);
        let judged_hot = heat == FULL_HEAT;
        let stream = if judged_hot && self.uses_hot() { HOT } else { FIRST };
        let page = PageState { last_write: write.now as u32, held_by: stream.0 as u8 + 1, heat, judged_hot };
        self.pages[write.lpn.0 as usize] = page;
        stream
    }
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        let stream = StreamId((copy.from.0 + 1).min(self.last().0));
        let page = &mut self.pages[copy.lpn.0 as usize];
        page.heat = page.heat.saturating_sub(match copy.from {
            HOT => 2,
            FIRST => 1,
            _ => 0,
        });
        // After a loss of power, data is met first when it is copied.
        self.live_pages += u64::from(page.held_by == 0);
        page.held_by = stream.0 as u8 + 1;
        stream
    }
    fn on_trim(&mut self, lpn: Lpn) {
        let page = &mut self.pages[lpn.0 as usize];
        self.live_pages -= u64::from(page.held_by > 0);
        *page = PageState::default();
    }
    fn on_close(&mut self, block: BlockId, stream: StreamId) {
        self.groups[usize::from(stream.0)].blocks += 1;
        self.closed.push_back(usize::from(stream.0), block);
    }
    fn on_reclaim(&mut self, reclaim: &Reclaim) {
        let group = &mut self.groups[usize::from(reclaim.stream.0)];
        if self.closed.contains(reclaim.block) {
            self.closed.remove(usize::from(reclaim.stream.0), reclaim.block);
            group.blocks -= 1;
        }
        group.victims += 1;
        group.valid += u64::from(reclaim.valid);
        if reclaim.stream == (if self.uses_hot() && self.configuration.is_some() { HOT } else { FIRST }) {
            let life = reclaim.now - reclaim.opened_at;
            self.hot_age = if self.hot_age == 0 { life } else { self.hot_age - self.hot_age / 8 + life / 8 };
        }
    }
    fn victim_source(&mut self, _: u64) -> VictimSource {
        let Some(configuration) = &self.configuration else { return VictimSource::Everywhere };
        let sizes = std::iter::once(&configuration.hot).chain(&configuration.sizes[..configuration.sized]);
        for (stream, (group, size)) in self.groups.iter().zip(sizes).enumerate() {
            match self.closed.head(stream) {
                Some(oldest) if group.blocks > *size => return VictimSource::Block(oldest),
                _ => {}
            }
        }
        VictimSource::Within(Streams { first: self.first_of_last(), last: self.last() })
    }
    fn check(&self, blocks: &BlockTable) -> Result<(), String> {
        for (group, stream) in self.groups.iter().zip(0..) {
            let mut counted: Vec<BlockId> = self.closed.iter(usize::from(stream)).collect();
            counted.sort_unstable();
            let is_counted = counted.len() == group.blocks as usize;
            if !is_counted || !blocks.closed_of(Streams::only(StreamId(stream))).eq(counted.iter().copied()) {
                return Err(format!("group {stream} holds blocks {counted:?}, others are closed"));
            }
        }
        Ok(())
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.pages, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        (self.pages.len() * size_of::<PageState>()) as u64 + self.closed.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::build_placement;

    const PAGES_PER_BLOCK: u32 = 8;

    /// A placement whose chain has groups of two and of four blocks before the last one, both to lose half of their pages.
    fn sized() -> Midas {
        let context = PlacementContext {
            logical_pages: 1000,
            pages_per_block: PAGES_PER_BLOCK,
            page_bytes: 4096,
            blocks: 150,
            seed: 1,
            future: None,
            external: None,
        };
        let name = "midas:groups=4".parse().unwrap();
        let AnyPlacement::Midas(mut midas) = build_placement(&name, &context).unwrap() else { unreachable!() };
        let mut sizes = [0; MOST_GROUPS];
        (sizes[0], sizes[1]) = (2, 4);
        midas.configuration = Some(Configuration { hot: 1, sized: 2, sizes });
        midas.prediction.valid = [0.5; MOST_GROUPS];
        midas
    }

    fn reclaim(block: u32, stream: u16, valid: u32) -> Reclaim {
        Reclaim { block: BlockId(block), stream: StreamId(stream), opened_at: 0, stamp: 0, now: 1, valid }
    }

    #[test]
    fn a_group_above_its_size_gives_its_oldest_block_and_the_last_one_any() {
        let mut midas = sized();
        let last = VictimSource::Within(Streams { first: StreamId(3), last: StreamId(4) });
        assert_eq!(midas.victim_source(0), last);
        for block in [7, 3, 5] {
            midas.on_close(BlockId(block), FIRST);
        }
        assert_eq!(midas.victim_source(0), VictimSource::Block(BlockId(7)));
        midas.on_reclaim(&reclaim(7, FIRST.0, 4));
        assert_eq!(midas.victim_source(0), last);
        for block in [1, 2] {
            midas.on_close(BlockId(block), HOT);
        }
        assert_eq!(midas.victim_source(0), VictimSource::Block(BlockId(1)));
    }

    #[test]
    fn a_group_that_keeps_more_than_predicted_merges_with_those_behind() {
        for (valid, sized_groups) in [(5, 1), (4, 2), (1, 2)] {
            let mut midas = sized();
            for block in 0..u32::try_from(LEAST_VICTIMS).unwrap() {
                midas.on_reclaim(&reclaim(block, 1, 4));
                midas.on_reclaim(&reclaim(100 + block, 2, valid));
            }
            midas.judge(1000);
            assert_eq!(midas.configuration.unwrap().sized, sized_groups, "{valid} of {PAGES_PER_BLOCK} valid");
            assert_eq!(midas.first_of_last(), StreamId(1 + sized_groups as u16));
        }
    }

    #[test]
    fn pages_overwritten_young_three_times_are_hot_until_they_are_copied() {
        let mut midas = sized();
        midas.hot_age = 10;
        let write = |midas: &mut Midas, now| {
            midas.host(&HostWrite { lpn: Lpn(1), now, rewrite: now > 0 }, &mut PageHistory::default())
        };
        assert_eq!([0, 5, 10, 15, 20].map(|now| write(&mut midas, now)), [FIRST, FIRST, FIRST, HOT, HOT]);
        let copy = GcCopy { lpn: Lpn(1), now: 25, from: HOT, stamp: 0 };
        assert_eq!(midas.gc(&copy, &PageHistory::default()), FIRST);
        assert_eq!([30, 35].map(|now| write(&mut midas, now)), [FIRST, HOT]);
    }
}
