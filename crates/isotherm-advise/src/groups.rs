//! Groups of pages, by address or by file: how much is written there, how long it lives, how much of the copying it causes.

use crate::copies::Copies;
use crate::files::FileMap;
use crate::handles::Region;
use crate::lifetimes::Lifetimes;
use crate::watch::Watched;
use isotherm_eval::TouchedPages;
use serde::Serialize;

/// A group of pages that no list has.
pub const NONE: u16 = u16::MAX;

/// A group of pages.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What it is: a range of addresses, a file.
    pub name: String,
    /// First byte, where it is a range.
    pub start_bytes: Option<u64>,
    /// One past the last byte, where it is a range that has one.
    pub end_bytes: Option<u64>,
    /// Pages that the trace touches.
    pub pages: u64,
    /// Page writes over those of the trace: 0 to 1.
    pub write_share: f64,
    /// Median of how long what is written lives, in host bytes written to the whole drive; none where most outlives the trace.
    pub lifetime_median_bytes: Option<f64>,
    /// The same, exceeded by one in ten.
    pub lifetime_p90_bytes: Option<f64>,
    /// Mean of the same.
    pub lifetime_mean_bytes: Option<f64>,
    /// Copies of its pages over all copies of the drive as it is; none where they were not counted.
    pub copy_share: Option<f64>,
    /// Of these, those out of blocks in which live pages of another group lay.
    pub mixed_share: Option<f64>,
    /// The handle that the recommended plan gives it; none without one.
    pub handle: Option<u16>,
}

/// A group as it is described, before copies are known.
fn group(name: String, (pages, writes): (u64, u64), lifetimes: &Lifetimes, watched: &Watched) -> Group {
    let bytes = |pages: Option<f64>| pages.map(|pages| pages * watched.page_bytes as f64);
    Group {
        name,
        start_bytes: None,
        end_bytes: None,
        pages,
        write_share: writes as f64 / watched.page_writes.max(1) as f64,
        lifetime_median_bytes: bytes(lifetimes.quantile(0.5)),
        lifetime_p90_bytes: bytes(lifetimes.quantile(0.1)),
        lifetime_mean_bytes: bytes(lifetimes.mean()),
        copy_share: None,
        mixed_share: None,
        handle: None,
    }
}

/// Bytes with a binary unit, short.
fn short(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 100.0 || value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// The ranges as groups, and the group of each touched page.
pub fn of_regions(watched: &Watched, regions: &[Region], touched: &TouchedPages) -> (Vec<Group>, Vec<u16>) {
    let mut of_page = vec![NONE; touched.count() as usize];
    let groups = regions.iter().enumerate().map(|(at, region)| {
        let from = region.chunks.start as u64 * watched.chunk_pages;
        let to = (region.chunks.end as u64 * watched.chunk_pages).min(touched.count());
        of_page[from as usize..to as usize].fill(at as u16);
        let start = if region.chunks.start == 0 { 0 } else { watched.starts[region.chunks.start] };
        let end = watched.starts.get(region.chunks.end).copied();
        let name = match end {
            Some(end) => format!("{} to {}", short(start), short(end)),
            None => format!("from {} on", short(start)),
        };
        let described = group(name, (to - from, region.writes), &region.lifetimes, watched);
        Group { start_bytes: Some(start), end_bytes: end, ..described }
    });
    (groups.collect(), of_page)
}

/// The files that a map names, as groups, those that write most first, at most `most` of them; and the group of each touched
/// page. Lifetimes are those of the pieces of addresses that a file lies in.
pub fn of_files(watched: &Watched, map: &FileMap, touched: &TouchedPages, most: usize) -> (Vec<Group>, Vec<u16>) {
    let count = map.names.len();
    let (mut pages, mut writes) = (vec![0u64; count], vec![0f64; count]);
    let mut lifetimes = vec![Lifetimes::default(); count];
    let mut of_page = vec![NONE; touched.count() as usize];
    let mut joined = vec![usize::MAX; count];
    for (dense, page) in touched.pages().enumerate() {
        let Some(file) = map.file_at(page * watched.page_bytes) else { continue };
        let chunk = dense / watched.chunk_pages as usize;
        let of_chunk = watched.chunk_pages.min(touched.count() - chunk as u64 * watched.chunk_pages);
        pages[file] += 1;
        writes[file] += watched.writes_by_address[chunk] as f64 / of_chunk as f64;
        of_page[dense] = file as u16;
        if joined[file] != chunk {
            lifetimes[file].join(&watched.by_address[chunk]);
            joined[file] = chunk;
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|file| pages[*file] > 0).collect();
    order.sort_by(|a, b| writes[*b].total_cmp(&writes[*a]).then(a.cmp(b)));
    order.truncate(most);
    let mut place = vec![NONE; count];
    order.iter().enumerate().for_each(|(at, file)| place[*file] = at as u16);
    for group in of_page.iter_mut().filter(|group| **group != NONE) {
        *group = place[usize::from(*group)];
    }
    let groups = order
        .iter()
        .map(|&file| group(map.names[file].clone(), (pages[file], writes[file] as u64), &lifetimes[file], watched));
    (groups.collect(), of_page)
}

/// Puts down who was copied how often; `all` counts every copy of the drive.
pub fn add_copies(groups: &mut [Group], copies: &Copies, all: u64) {
    for (at, group) in groups.iter_mut().enumerate() {
        let copied = copies.copied[at];
        group.copy_share = (all > 0).then(|| copied as f64 / all as f64);
        group.mixed_share = (copied > 0).then(|| copies.copied_mixed[at] as f64 / copied as f64);
    }
}
