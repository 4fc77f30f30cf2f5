//! MDC (minimum declining cost): the largest `(1-u)^2 / (u H)`, H being the rate of updates of a page of the block (Lomet &
//! Luo, "Efficiently reclaiming space in a log structured store", ICDE'21). With exact rates and separate streams it
//! reaches the optimal split of the spare space.
//!
//! Measured rates follow the publication: a page's rate is two updates over the time since its last update but one, and a
//! block's is that of the mean of these times. It keeps them for each page, where the publication keeps only a block's mean
//! and lets an updated page take the middle between that and now. A first write counts as two updates at its time.
//! With `hot_writes`, rates are exact: pages of `hot` together receive that share of the writes, evenly, the others the rest.

use super::live_sums::LiveSums;
use super::shortlist::Shortlists;
use super::{AnyVictim, BuildVictim, PageHistory, VictimContext, VictimPolicy, Wanted, Written};
use crate::address::{BlockId, Lpn, Ppn};
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::hotness::heat::Heat;
use crate::nand::Move;
use crate::registry::{Entry, Kind, Parameter, Parameters, SpecError};

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "mdc",
    summary: "the largest (1-u)^2 / (u H), H being the update rate of the live pages (minimum declining cost)",
    paper: "Lomet & Luo, ICDE'21",
    memory: "8 bytes a logical page, kept once with the placement mdc; 8 bytes a page, 33 bytes a block",
    parameters: &[
        Parameter::share("hot", 0.0..=1.0, "10%")
            .help("with hot_writes: the first pages of the device, as a share of it, that are hot"),
        Parameter::any("hot_writes", &[Kind::word(&["measured"]), Kind::share(0.0..=1.0)], "measured")
            .help("share of the writes that the hot pages receive, where it is known: rates are exact then"),
    ],
    build,
};

/// Rates of the hot and of the other pages, where they are known.
#[derive(Clone, Copy, Debug)]
struct ExactRates {
    hot_pages: u32,
    hot: f64,
    cold: f64,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Mdc {
    /// Pages whose updates are followed; 0 with exact rates.
    history_pages: u32,
    live: LiveSums,
    exact: Option<ExactRates>,
    shortlists: Shortlists,
    now: u64,
}

fn build(parameters: &Parameters<'_>, context: &VictimContext) -> Result<AnyVictim, SpecError> {
    let exact = (!parameters.is("hot_writes", "measured")).then(|| {
        let (pages, writes) = (parameters.share("hot"), parameters.share("hot_writes"));
        let hot_pages = (pages * f64::from(context.logical_pages)).round() as u32;
        ExactRates { hot_pages, hot: writes / pages, cold: (1.0 - writes) / (1.0 - pages) }
    });
    Ok(AnyVictim::Mdc(Mdc {
        history_pages: if exact.is_some() { 0 } else { context.logical_pages },
        live: LiveSums::new(context),
        exact,
        shortlists: Shortlists::with_room(context.blocks),
        now: 0,
    }))
}

impl Mdc {
    /// What a page adds to its block: with exact rates whether it is hot, else two updates since the last but one.
    #[inline(always)]
    fn host_heat(&self, lpn: Lpn, now: u64, history: &mut PageHistory) -> Heat {
        if let Some(exact) = self.exact {
            return Heat { writes: u32::from(lpn.0 < exact.hot_pages), time: 0 };
        }
        history.record(lpn, now);
        Heat { writes: 2, time: history.of(lpn).before }
    }
}

#[inline(always)]
fn score(live: &LiveSums, exact: Option<ExactRates>, blocks: &BlockTable, block: BlockId, now: u64) -> f64 {
    let valid = blocks.valid(block);
    if valid == 0 {
        return f64::INFINITY;
    }
    let rate = match exact {
        Some(exact) => {
            let hot = live.writes(block) as f64 / f64::from(valid);
            hot * exact.hot + (1.0 - hot) * exact.cold
        }
        None => live.hotness(block, blocks, now),
    };
    let utilisation = blocks.utilisation(block);
    (1.0 - utilisation) * (1.0 - utilisation) / (utilisation * rate.max(f64::MIN_POSITIVE))
}

impl VictimPolicy for Mdc {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        if blocks.valid(block) < blocks.pages_per_block() {
            self.on_invalidate(block, blocks);
        }
    }
    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        let (live, exact) = (&self.live, self.exact);
        self.shortlists.offer(block, blocks, |block, now| score(live, exact, blocks, block, now));
    }
    fn watches_pages(&self) -> bool {
        true
    }
    fn wanted(&self) -> Wanted {
        Wanted { updates: self.history_pages, ..Wanted::default() }
    }
    #[inline(always)]
    fn on_program(&mut self, at: Ppn, written: Written, history: &mut PageHistory) {
        match written {
            Written::Host(lpn, now) => {
                self.now = now;
                let heat = self.host_heat(lpn, now, history);
                self.live.add(at, heat);
            }
            Written::Meta(now) => {
                let weight = if self.exact.is_some() { 0 } else { 2 };
                self.live.add(at, Heat { writes: weight, time: now as u32 });
            }
        }
    }
    fn on_copies(&mut self, moves: &[Move]) {
        moves.iter().for_each(|page| self.live.relocate(page.from, page.to));
    }
    #[inline(always)]
    fn on_page_death(&mut self, at: Ppn) {
        self.live.remove(at);
    }
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.shortlists.remove(block);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.pick_within(blocks, now, Streams::ALL)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        let (live, exact) = (&self.live, self.exact);
        self.shortlists.best(blocks, streams, now, |block, now| score(live, exact, blocks, block, now))
    }
    #[inline(always)]
    fn prefetch_pages(&self, pages: impl Iterator<Item = Ppn>) {
        self.live.prefetch(pages);
    }
    fn memory_bytes(&self) -> u64 {
        self.live.bytes() + self.shortlists.bytes()
    }
}
