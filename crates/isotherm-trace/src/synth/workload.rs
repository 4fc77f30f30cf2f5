//! The specification of a workload: patterns mixed and following each other, and how requests look and arrive.

use super::alias::Alias;
use super::pattern::{Build, Ground, Mix, PATTERNS, Pattern, PatternEntry, RateGroup};
use super::reader::SynthReader;
use crate::error::TraceError;
use crate::sink::END_BYTES_MAX;
use isotherm::address::MAX_PAGES;
use isotherm::registry::{self, Parameter, Parameters, PolicyName, SpecError};

/// Parameters of every workload; they stand in its first part.
pub const COMMON: &[Parameter] = &[
    Parameter::integer("pages", 1..=MAX_PAGES as u64, "1Mi")
        .help("pages of the address space (counts: as many as the file names)"),
    Parameter::integer("writes", 1..=1_000_000_000_000_000, "4Mi").help("host page writes after which it ends"),
    Parameter::integer("seed", 0..=u64::MAX, "1").help("seed of everything random"),
    Parameter::power_of_two("page_size", 512..=1 << 20, "4Ki").help("bytes of a page"),
    Parameter::real("reads", 0.0..=0.999, "0").help("share of the requests that are reads"),
    Parameter::real("trims", 0.0..=0.999, "0").help("share of the requests that are trims"),
    Parameter::text("size", "PAGES, or PAGES/WEIGHT:PAGES/WEIGHT:... with 1..=4096 pages", "1")
        .help("pages of a request, as in fio's bssplit"),
    Parameter::integer("rate", 0..=1_000_000_000, "0")
        .help("requests a second; 0 lets all arrive at time 0, for a closed loop"),
    Parameter::choice("arrivals", &["even", "poisson"], "even").help("evenly spaced, or independent of each other"),
    Parameter::integer("shift_at", 0..=u64::MAX, "0")
        .help("page write at which popularity moves to other pages; 0 is never"),
];

/// Parameters of each pattern of a mix.
pub const MIX: &[Parameter] =
    &[Parameter::real("share", f64::MIN_POSITIVE..=1e9, "1").help("weight of one pattern in a mix")];

/// What happens from a page write on.
#[derive(Clone)]
pub(crate) struct Phase {
    pub(crate) from_write: u64,
    /// The pattern that begins, or `None` where popularity of the present one moves.
    pub(crate) pattern: Option<Pattern>,
}

/// How many pages requests have.
#[derive(Clone)]
pub(crate) enum Size {
    Fixed(u32),
    Drawn(Alias, Box<[u32]>),
}

/// When requests arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrivals {
    Even,
    Poisson,
}

/// A synthetic workload, checked and ready to run any number of times.
#[derive(Clone)]
pub struct Workload {
    pub(crate) pages: u32,
    pub(crate) page_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) seed: u64,
    pub(crate) reads: f64,
    pub(crate) trims: f64,
    pub(crate) size: Size,
    pub(crate) rate: u64,
    pub(crate) arrivals: Arrivals,
    pub(crate) phases: Vec<Phase>,
}

impl Workload {
    /// Parses a specification without its `synth:`.
    ///
    /// # Errors
    /// Unknown patterns or keys, values out of range, files of counts that cannot be read.
    pub fn parse(spec: &str) -> Result<Self, TraceError> {
        let mut stages = spec.split('@');
        let first_parts = split_parts(stages.next().unwrap_or_default())?;
        let (common, _) = divide(&first_parts[0]);
        let common = Parameters::new(&common, COMMON)?;
        let page_bytes = common.integer("page_size");
        let pages = common.is_given("pages").then(|| common.integer("pages") as u32);
        let mut ground = Ground { pages, page_bytes, seed: common.integer("seed") };
        let (first, pages) = build_mix(&first_parts, &ground)?;
        ground.pages = Some(pages);
        let mut phases = vec![Phase { from_write: 0, pattern: Some(first) }];
        for (index, stage) in stages.enumerate() {
            ground.seed = ground.seed.wrapping_add(0xd1b5_4a32_d192_ed03);
            phases.push(later_phase(stage, index, &ground)?);
        }
        let shift_at = common.integer("shift_at");
        if shift_at > 0 {
            phases.push(Phase { from_write: shift_at, pattern: None });
        }
        phases.sort_by_key(|phase| phase.from_write);
        let (reads, trims) = (common.real("reads"), common.real("trims"));
        if reads + trims > 0.999 {
            return Err(refuse("reads + trims", &(reads + trims).to_string(), "leave at least 0.001 for writes"));
        }
        Ok(Self {
            pages,
            page_bytes,
            writes: common.integer("writes"),
            seed: common.integer("seed"),
            reads,
            trims,
            size: parse_size(common.text("size"), pages)?,
            rate: common.integer("rate"),
            arrivals: common.choice("arrivals", &[("even", Arrivals::Even), ("poisson", Arrivals::Poisson)]),
            phases,
        })
    }

    /// Starts the workload from its beginning.
    pub fn reader(&self) -> SynthReader {
        self.reader_of(0)
    }

    /// Starts replay number `replay` from its beginning: the same pages are popular, but what is drawn from them is drawn anew. Replay 0 is
    /// that of [`reader`](Self::reader).
    pub fn reader_of(&self, replay: u64) -> SynthReader {
        SynthReader::new(self.clone(), replay)
    }

    /// Pages of its address space.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// How often pages are written, where each write is drawn from the same rates independently of all others, and pages stay once they were
    /// written; `None` for anything else.
    pub fn stationary_rates(&self) -> Option<Vec<RateGroup>> {
        match (&self.phases[..], &self.size) {
            ([Phase { pattern: Some(pattern), .. }], Size::Fixed(1)) if self.trims == 0.0 => pattern.rates(self.pages),
            _ => None,
        }
    }

    /// Host page writes in all.
    pub fn writes(&self) -> u64 {
        self.writes
    }
}

/// The specification `spec`, without its `synth:`, with a seed that is larger by `steps`: another draw of the same workload.
///
/// # Errors
/// The seed that it has is no number.
pub fn reseeded(spec: &str, steps: u64) -> Result<String, TraceError> {
    let first = spec.find(['+', '@']).unwrap_or(spec.len());
    let (common, rest) = spec.split_at(first);
    let is_seed = |part: &&str| part.trim_start().starts_with("seed=");
    let given = common.split(',').find(is_seed).map(|part| part.trim().trim_start_matches("seed="));
    let text = given.unwrap_or("1");
    let fix = "give a whole number";
    let seed = registry::parse_integer(text).ok_or_else(|| refuse("seed", text, fix))?.wrapping_add(steps);
    let others: Vec<&str> = common.split(',').filter(|part| !is_seed(part)).collect();
    Ok(format!("{},seed={seed}{rest}", others.join(",")))
}

const _: () = assert!((MAX_PAGES as u64) << 20 <= END_BYTES_MAX);

fn refuse(key: &str, value: &str, fix: &str) -> TraceError {
    SpecError::new(format!("synth:{key}"), format!("\"{value}\" is out of range"), fix).into()
}

/// `PATTERN,key=value,...` joined by `+`.
fn split_parts(stage: &str) -> Result<Vec<PolicyName>, TraceError> {
    stage.split('+').map(|part| Ok(parse_part(part.trim())?)).collect()
}

/// One pattern; fio's `zipf:1.1` and `hotcold:0.1/0.9` become parameters.
fn parse_part(part: &str) -> Result<PolicyName, SpecError> {
    // The first comma ends the name; what stands before it may already have a colon.
    let (head, rest) = part.split_once(',').unwrap_or((part, ""));
    let joint = if head.contains(':') { "," } else { ":" };
    let mut name: PolicyName = if rest.is_empty() { head.parse()? } else { format!("{head}{joint}{rest}").parse()? };
    let scheme = name.parameters.iter().position(|(key, _)| key == "scheme");
    if let Some(value) = scheme.map(|index| name.parameters.remove(index).1) {
        match (name.name.as_str(), value.split_once('/')) {
            ("zipf", None) => name.parameters.push(("theta".to_owned(), value)),
            ("hotcold", Some((hot, writes))) => {
                name.parameters.push(("hot".to_owned(), hot.to_owned()));
                name.parameters.push(("hot_writes".to_owned(), writes.to_owned()));
            }
            _ => {
                return Err(SpecError::new(
                    format!("synth:{}", name.name),
                    format!("\"{value}\" has no key"),
                    "write key=value; only zipf:THETA and hotcold:HOT/WRITES have a short form",
                ));
            }
        }
    }
    Ok(name)
}

/// Divides what the user gave into the common parameters and the pattern's own.
fn divide(part: &PolicyName) -> (PolicyName, PolicyName) {
    let (common, own) = part.parameters.iter().cloned().partition(|(key, _)| COMMON.iter().any(|p| p.key == key));
    (
        PolicyName { name: "synth".to_owned(), parameters: common },
        PolicyName { name: part.name.clone(), parameters: own },
    )
}

/// `WRITE,PATTERN,...`: what begins at a page write.
fn later_phase(stage: &str, index: usize, ground: &Ground) -> Result<Phase, TraceError> {
    let (at, pattern) = stage.split_once(',').unwrap_or((stage, ""));
    let from_write = registry::parse_integer(at).filter(|&at| at > 0);
    let fix = "write @WRITES,PATTERN,key=value,...";
    let from_write = from_write.ok_or_else(|| refuse(&format!("phase {}", index + 2), at, fix))?;
    let parts = split_parts(pattern)?;
    if let Some((key, _)) = parts.iter().flat_map(|part| divide(part).0.parameters).next() {
        let problem = format!("\"{key}\" holds for the whole workload");
        return Err(SpecError::new(format!("synth:phase {}", index + 2), problem, "give it in the first part").into());
    }
    Ok(Phase { from_write, pattern: Some(build_mix(&parts, ground)?.0) })
}

/// The parts of one stage as one pattern, and the pages it covers.
fn build_mix(parts: &[PolicyName], ground: &Ground) -> Result<(Pattern, u32), TraceError> {
    let mut built = Vec::new();
    let mut ground = Ground { ..*ground };
    for (index, part) in parts.iter().enumerate() {
        let (common, mut own) = divide(part);
        if let Some((key, _)) = common.parameters.first().filter(|_| index > 0) {
            let problem = format!("\"{key}\" holds for the whole workload");
            return Err(SpecError::new(format!("synth:{}", part.name), problem, "give it in the first part").into());
        }
        let share = PolicyName {
            name: part.name.clone(),
            parameters: own.parameters.extract_if(.., |(key, _)| key == "share").collect(),
        };
        let share = Parameters::new(&share, MIX)?.real("share");
        let entry = registry::find(PATTERNS, "synth", &own)?;
        let parameters = Parameters::new(&own, entry.parameters).map_err(|error| explain(error, &own, entry))?;
        let Build(build) = entry.build;
        let (pattern, pages) = build(&parameters, &ground)?;
        ground.pages = Some(pages);
        built.push((share, pattern, pages));
    }
    let pages = built.iter().map(|part| part.2).max().unwrap_or(1);
    if built.len() == 1 {
        return Ok((built.remove(0).1, pages));
    }
    let total: f64 = built.iter().map(|part| part.0).sum();
    let mut reached = 0.0;
    let limits = built.into_iter().map(|(share, pattern, _)| {
        reached += share / total;
        // The conversion saturates, so the last limit is the largest number.
        ((reached * 18_446_744_073_709_551_616.0) as u64, pattern)
    });
    Ok((Pattern::Mix(Mix(limits.collect())), pages))
}

/// The error about a pattern's part. An unknown key may also have been meant for the workload: the fix lists both tables.
fn explain(error: SpecError, part: &PolicyName, entry: &PatternEntry) -> SpecError {
    let place = format!("synth:{}", error.place);
    if part.parameters.iter().all(|(key, _)| entry.parameters.iter().any(|parameter| parameter.key == key)) {
        return SpecError { place, ..error };
    }
    let keys: Vec<_> = entry.parameters.iter().chain(MIX).chain(COMMON).map(|parameter| parameter.key).collect();
    SpecError { place, fix: format!("it takes {}", keys.join(", ")), ..error }
}

/// `8`, or `1/60:8/40`.
fn parse_size(text: &str, pages: u32) -> Result<Size, TraceError> {
    let limit = u64::from(pages.min(1 << 12));
    let fix = format!("write PAGES or PAGES/WEIGHT:PAGES/WEIGHT with 1..={limit} pages");
    let wrong = || refuse("size", text, &fix);
    let (mut sizes, mut weights) = (Vec::new(), Vec::new());
    for part in text.split(':') {
        let (size, weight) = part.split_once('/').unwrap_or((part, "1"));
        sizes.push(registry::parse_integer(size).filter(|size| (1..=limit).contains(size)).ok_or_else(wrong)? as u32);
        weights.push(weight.parse::<f64>().ok().filter(|weight| (0.0..=1e9).contains(weight)).ok_or_else(wrong)?);
    }
    match sizes[..] {
        [size] => Ok(Size::Fixed(size)),
        _ if weights.iter().sum::<f64>() > 0.0 => Ok(Size::Drawn(Alias::new(&weights), sizes.into())),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_seed_is_another_draw_of_the_same_workload() {
        for (spec, expected) in [
            ("uniform", "uniform,seed=4"),
            ("zipf:1.1,seed=7,pages=64", "zipf:1.1,pages=64,seed=10"),
            ("zipf,pages=64+sequential,share=0.3@100,uniform", "zipf,pages=64,seed=4+sequential,share=0.3@100,uniform"),
        ] {
            assert_eq!(reseeded(spec, 3).unwrap(), expected);
            Workload::parse(&reseeded(spec, 3).unwrap()).unwrap();
        }
        assert!(reseeded("uniform,seed=many", 1).is_err());
    }
}
