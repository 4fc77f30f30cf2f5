//! From lifetimes to plans: like neighbours are joined to ranges, like ranges to handles.
//!
//! Both steps join the two groups whose joining costs least likelihood ([`Lifetimes::cost_of_joining`]), so that the groupings for
//! every number of handles are nested. Neighbours are joined as long as that costs less than describing them apart (the Bayesian
//! information criterion: half the logarithm of the number of deaths for each rate, times the pages of a request, which are written as one: Schwarz, "Estimating the dimension of a
//! model", Annals of Statistics 6, 1978), or as there are more ranges than an application can tag.

use crate::lifetimes::Lifetimes;
use crate::plan::{HandleNote, Plan, PlanRange, PlanSize, Rule};
use crate::watch::{Watched, size_up_to};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

/// Most ranges of a plan.
pub const RANGES_MAX: usize = 64;
/// Most groups that a plan by source starts from: the rest, those that write least, go with the first of them.
const SOURCES_MAX: usize = 128;

/// A range of addresses whose pages live alike.
#[derive(Clone, Debug)]
pub struct Region {
    /// Pieces of [`Watched`].
    pub chunks: Range<usize>,
    /// Lifetimes.
    pub lifetimes: Lifetimes,
    /// Page writes.
    pub writes: u64,
}

/// Cost of joining a group to the next one, cheapest first; ties go to the first.
#[derive(PartialEq)]
struct Candidate {
    cost: f64,
    left: usize,
    /// Changes that both groups had seen when the cost was computed.
    stamps: (u32, u32),
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.left.cmp(&other.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The ranges of addresses whose pages live alike, in order.
pub fn regions(watched: &Watched) -> Vec<Region> {
    let count = watched.by_address.len();
    let deaths: u64 = watched.by_address.iter().map(Lifetimes::deaths).sum();
    // Pages of one request live and die together: they tell no more than one would.
    let pages_of_a_request = watched.page_writes as f64 / watched.requests.max(1) as f64;
    let price_of_a_rate = 0.5 * pages_of_a_request * libm::log(deaths.max(2) as f64);
    let mut regions: Vec<Option<Region>> = (0..count)
        .map(|at| {
            let lifetimes = watched.by_address[at].clone();
            Some(Region { chunks: at..at + 1, lifetimes, writes: watched.writes_by_address[at] })
        })
        .collect();
    let mut stamps = vec![0u32; count];
    let mut before: Vec<usize> = (0..count).map(|at| at.wrapping_sub(1)).collect();
    let mut left_over = count;
    let mut heap = BinaryHeap::new();
    // What a joining gains is less than 0 where it costs more than it saves.
    let push = |heap: &mut BinaryHeap<Reverse<Candidate>>, regions: &[Option<Region>], stamps: &[u32], left: usize| {
        let Some(a) = &regions[left] else { return };
        let Some(Some(b)) = regions.get(a.chunks.end) else { return };
        let mut both = a.lifetimes.clone();
        both.join(&b.lifetimes);
        let rates = a.lifetimes.bins_used() + b.lifetimes.bins_used() - both.bins_used();
        let cost = a.lifetimes.cost_of_joining(&b.lifetimes) - price_of_a_rate * rates as f64;
        heap.push(Reverse(Candidate { cost, left, stamps: (stamps[left], stamps[a.chunks.end]) }));
    };
    (0..count).for_each(|left| push(&mut heap, &regions, &stamps, left));
    while let Some(Reverse(candidate)) = heap.pop() {
        let left = candidate.left;
        let Some(right) = regions[left].as_ref().map(|region| region.chunks.end) else { continue };
        if right >= count || candidate.stamps != (stamps[left], stamps[right]) {
            continue;
        }
        if candidate.cost >= 0.0 && left_over <= RANGES_MAX {
            break;
        }
        let joined = regions[right].take().expect("its stamp is that of a range that is there");
        let into = regions[left].as_mut().expect("it was looked at above");
        into.lifetimes.join(&joined.lifetimes);
        into.writes += joined.writes;
        into.chunks.end = joined.chunks.end;
        if let Some(next) = before.get_mut(joined.chunks.end) {
            *next = left;
        }
        stamps[left] += 1;
        left_over -= 1;
        push(&mut heap, &regions, &stamps, left);
        if left > 0 {
            push(&mut heap, &regions, &stamps, before[left]);
        }
    }
    regions.into_iter().flatten().collect()
}

/// Groups of things that live alike.
#[derive(Clone)]
struct Group {
    members: Vec<usize>,
    lifetimes: Lifetimes,
    writes: u64,
}

/// Joins `items` to groups of like lives: the grouping for every number from `most` down to 2, the most first. `may_join` says of
/// two groups whether they may.
fn groupings(
    items: &[(Lifetimes, u64)],
    most: usize,
    may_join: impl Fn(&[usize], &[usize]) -> bool,
) -> Vec<Vec<Group>> {
    let mut groups: Vec<Group> = items
        .iter()
        .enumerate()
        .map(|(at, (lifetimes, writes))| Group { members: vec![at], lifetimes: lifetimes.clone(), writes: *writes })
        .collect();
    let mut found = Vec::new();
    loop {
        if (2..=most).contains(&groups.len()) {
            found.push(groups.clone());
        }
        let mut best: Option<(f64, usize, usize)> = None;
        for a in 0..groups.len() {
            for b in a + 1..groups.len() {
                if may_join(&groups[a].members, &groups[b].members) {
                    let cost = groups[a].lifetimes.cost_of_joining(&groups[b].lifetimes);
                    if best.is_none_or(|(least, ..)| cost < least) {
                        best = Some((cost, a, b));
                    }
                }
            }
        }
        let Some((_, a, b)) = best else { return found };
        let joined = groups.swap_remove(b);
        groups[a].members.extend(joined.members);
        groups[a].lifetimes.join(&joined.lifetimes);
        groups[a].writes += joined.writes;
    }
}

/// Handles of a grouping, the longest-lived first: handle 0 is what nobody tags. For each item its handle, and what each handle
/// holds.
fn handles(mut groups: Vec<Group>, items: usize, watched: &Watched) -> (Vec<u16>, Vec<HandleNote>) {
    let life = |group: &Group| group.lifetimes.mean().unwrap_or(f64::INFINITY);
    groups.sort_by(|a, b| life(b).total_cmp(&life(a)).then(a.members.iter().min().cmp(&b.members.iter().min())));
    let mut of_item = vec![0; items];
    for (handle, group) in groups.iter().enumerate() {
        group.members.iter().for_each(|member| of_item[*member] = handle as u16);
    }
    let notes = groups.iter().map(|group| HandleNote {
        write_share: group.writes as f64 / watched.page_writes.max(1) as f64,
        lifetime_bytes: group.lifetimes.mean().map(|pages| pages * watched.page_bytes as f64),
    });
    (of_item, notes.collect())
}

/// Plans by address, with 2 to `most` handles, the most first; none where all addresses live alike.
pub fn by_address(watched: &Watched, regions: &[Region], most: usize) -> Vec<Plan> {
    let items: Vec<_> = regions.iter().map(|region| (region.lifetimes.clone(), region.writes)).collect();
    let plan = |groups| {
        let (handles, notes) = handles(groups, items.len(), watched);
        let mut ranges: Vec<PlanRange> = Vec::new();
        for (region, handle) in regions.iter().zip(handles) {
            let start_bytes = if region.chunks.start == 0 { 0 } else { watched.starts[region.chunks.start] };
            let end_bytes = watched.starts.get(region.chunks.end).copied();
            match ranges.last_mut() {
                Some(last) if last.handle == handle => last.end_bytes = end_bytes,
                _ => ranges.push(PlanRange { start_bytes, end_bytes, handle }),
            }
        }
        Plan::new(Rule::Address(ranges), notes)
    };
    groupings(&items, most, |_, _| true).into_iter().map(plan).collect()
}

/// Plans by the size of requests, with 2 to `most` handles: sizes that are neighbours go together.
pub fn by_size(watched: &Watched, most: usize) -> Vec<Plan> {
    let used: Vec<usize> = (0..watched.by_size.len()).filter(|size| watched.writes_by_size[*size] > 0).collect();
    let items: Vec<_> =
        used.iter().map(|size| (watched.by_size[*size].clone(), watched.writes_by_size[*size])).collect();
    let are_neighbours = |a: &[usize], b: &[usize]| a.iter().any(|x| b.iter().any(|y| x.abs_diff(*y) == 1));
    let plan = |groups| {
        let (handles, notes) = handles(groups, items.len(), watched);
        let mut sizes: Vec<PlanSize> = Vec::new();
        for (size, handle) in used.iter().zip(handles) {
            let up_to_bytes = size_up_to(*size);
            match sizes.last_mut() {
                Some(last) if last.handle == handle => last.up_to_bytes = up_to_bytes,
                _ => sizes.push(PlanSize { up_to_bytes, handle }),
            }
        }
        if let Some(last) = sizes.last_mut() {
            last.up_to_bytes = None;
        }
        Plan::new(Rule::Size(sizes), notes)
    };
    groupings(&items, most, are_neighbours).into_iter().map(plan).collect()
}

/// Plans by who writes, with 2 to `most` handles.
pub fn by_source(watched: &Watched, most: usize) -> Vec<Plan> {
    let mut order: Vec<usize> = (0..watched.by_source.len()).collect();
    order.sort_by_key(|source| Reverse(watched.writes_by_source[*source]));
    order.truncate(SOURCES_MAX);
    order.retain(|source| watched.writes_by_source[*source] > 0);
    let items: Vec<_> =
        order.iter().map(|source| (watched.by_source[*source].clone(), watched.writes_by_source[*source])).collect();
    let plan = |groups| {
        let (handles, notes) = handles(groups, items.len(), watched);
        let mut sources = vec![0; watched.by_source.len()];
        order.iter().zip(handles).for_each(|(source, handle)| sources[*source] = handle);
        Plan::new(Rule::Source(sources), notes)
    };
    groupings(&items, most, |_, _| true).into_iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::watch;
    use isotherm_eval::{SurveyKey, TraceSource};

    fn watched(name: &str) -> Watched {
        let trace = TraceSource::new(name);
        let survey = SurveyKey { trace: trace.clone(), page_bytes: 4096, touched: true }.survey().unwrap();
        watch(&trace, &survey, 4096).unwrap()
    }

    /// A circular log of 256 pages below pages that are overwritten at random, and a part that is written once.
    fn database(seed: u64) -> Watched {
        let mut rows = String::from("ts_ns,op,offset,length\n");
        let mut random = isotherm::random::Random::new(seed);
        for at in 0..60_000u64 {
            let (page, length) = match at % 4 {
                0 => (at / 4 % 256, 16_384),
                1 | 2 => (1024 + random.below(2048), 4096),
                _ => (3072 + at % 1024, 4096),
            };
            let page = if at > 8000 && page >= 3072 { 1024 + random.below(2048) } else { page / 4 * 4 };
            rows.push_str(&format!("{at},W,{},{length}\n", page * 4096));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rows).unwrap();
        watched(file.path().to_str().unwrap())
    }

    #[test]
    fn what_lives_alike_is_one_region() {
        let uniform = regions(&watched("synth:uniform,pages=8192,writes=200000"));
        assert_eq!(uniform.len(), 1, "uniform writes tell no addresses apart");
        let found = database(3);
        let starts: Vec<u64> = regions(&found).iter().map(|region| found.starts[region.chunks.start] / 4096).collect();
        // The log, the tree, and what is written once; a piece of 16 touched pages, every fourth here, may hold a boundary.
        assert_eq!(starts.len(), 3, "{starts:?}");
        let apart = starts.iter().zip([0, 1024, 3072]).map(|(start, exact)| start.abs_diff(exact)).max();
        assert!(apart < Some(64), "{starts:?}");
    }

    #[test]
    fn plans_are_nested_and_handle_0_lives_longest() {
        let found = database(4);
        let all = regions(&found);
        let plans = by_address(&found, &all, 16);
        assert_eq!(plans.iter().map(|plan| plan.handles).collect::<Vec<_>>(), [3, 2]);
        let lives: Vec<f64> = plans[0].notes.iter().map(|note| note.lifetime_bytes.unwrap_or(f64::INFINITY)).collect();
        assert!(lives.is_sorted_by(|a, b| a >= b), "{lives:?}");
        let Rule::Address(ranges) = &plans[0].rule else { panic!("the plan goes by address") };
        assert_eq!(ranges.iter().map(|range| range.handle).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!((ranges[0].start_bytes, ranges[2].end_bytes), (0, None));
        Plan::from_json(&plans[0].to_json()).unwrap();
        let sizes = by_size(&found, 4);
        let Rule::Size(sizes) = &sizes.last().unwrap().rule else { panic!("the plan goes by size") };
        assert_eq!(sizes[0], PlanSize { up_to_bytes: Some(4096), handle: 0 });
        assert!(by_source(&found, 4).is_empty(), "one source cannot be told from itself");
    }
}
