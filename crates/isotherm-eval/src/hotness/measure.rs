//! One pass of several schemes and a reference over a write stream.
//!
//! All schemes judge a batch in turn, then their verdicts are compared with the reference's: O(writes) for each scheme,
//! and only the verdicts' bytes move between the two steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use isotherm::address::Lpn;
use isotherm::future::Future;
use isotherm::hotness::{AnyHotness, Hotness, HotnessContext, Temperature, build_scheme, scheme_needs_future};
use isotherm::registry::{PolicyName, SpecError};

use super::PageWrites;
use crate::control::Control;
use crate::error::EvalError;

/// Writes judged between two comparisons: verdicts of a dozen schemes stay in the first-level cache.
const BATCH: usize = 4096;
/// Aging steps timed for the cost of one.
const TIMED_DECAYS: u32 = 1000;
/// Most windows of one measurement.
pub const WINDOWS_MAX: usize = 1_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The schemes to judge.
    pub schemes: Vec<PolicyName>,
    /// The scheme whose verdicts are right by definition.
    pub reference: PolicyName,
    /// Writes in each window of the results over time; one window of everything if `None`.
    pub window_writes: Option<u64>,
}

/// Verdicts of one scheme against those of the reference, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Page writes judged.
    pub writes: u64,
    /// Judged hot.
    pub hot: u64,
    /// Judged hot by the reference.
    pub reference_hot: u64,
    /// Judged hot, but cold by the reference.
    pub false_hot: u64,
    /// Judged cold, but hot by the reference.
    pub false_cold: u64,
}

/// What one scheme did.
#[derive(Clone, Debug)]
pub struct SchemeResult {
    /// The scheme, as given.
    pub name: PolicyName,
    /// All writes.
    pub total: Counts,
    /// Window by window; the last one may be shorter.
    pub windows: Vec<Counts>,
    /// Bytes of state.
    pub memory_bytes: u64,
    /// Mean time of one verdict with its share of the aging, in nanoseconds.
    pub ns_per_check: f64,
    /// Mean time of one aging step, in nanoseconds; `None` for schemes without such steps.
    pub ns_per_decay: Option<f64>,
}

/// What [`measure`] found.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Page writes judged.
    pub writes: u64,
    /// The reference.
    pub reference: PolicyName,
    /// The schemes, in the order given.
    pub schemes: Vec<SchemeResult>,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.hot += other.hot;
        self.reference_hot += other.reference_hot;
        self.false_hot += other.false_hot;
        self.false_cold += other.false_cold;
    }

    fn share(part: u64, whole: u64) -> f64 {
        if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
    }

    /// Share of writes judged hot.
    pub fn hot_ratio(&self) -> f64 {
        Self::share(self.hot, self.writes)
    }

    /// Share of writes that the reference judges hot.
    pub fn reference_hot_ratio(&self) -> f64 {
        Self::share(self.reference_hot, self.writes)
    }

    /// Share of writes judged differently from the reference.
    pub fn false_identification_rate(&self) -> f64 {
        Self::share(self.false_hot + self.false_cold, self.writes)
    }

    /// Share of all writes judged hot although the reference says cold.
    pub fn false_hot_rate(&self) -> f64 {
        Self::share(self.false_hot, self.writes)
    }

    /// Share of all writes judged cold although the reference says hot.
    pub fn false_cold_rate(&self) -> f64 {
        Self::share(self.false_cold, self.writes)
    }

    /// Of the writes judged hot, the share that is.
    pub fn precision(&self) -> f64 {
        Self::share(self.hot - self.false_hot, self.hot)
    }

    /// Of the writes that are hot, the share judged so.
    pub fn recall(&self) -> f64 {
        Self::share(self.reference_hot - self.false_cold, self.reference_hot)
    }
}

/// Parses `mbf:filters=8,hashes=3,mhf,wdac:window=1Ki`: a part with `=` and no `:` before it belongs to the scheme before.
///
/// # Errors
/// A part that names no scheme, or a scheme that is no policy name.
pub fn parse_schemes(text: &str) -> Result<Vec<PolicyName>, SpecError> {
    let mut names: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let is_parameter = part.find('=').is_some_and(|equals| part.find(':').is_none_or(|colon| equals < colon));
        match names.last_mut() {
            Some(scheme) if is_parameter && scheme.contains(':') => *scheme = format!("{scheme},{part}"),
            _ if is_parameter => {
                let problem = format!("\"{part}\" follows no scheme with parameters");
                return Err(SpecError::new("--scheme", problem, "write NAME:key=value,key=value,NAME ..."));
            }
            _ => names.push(part.to_owned()),
        }
    }
    if names.is_empty() {
        return Err(SpecError::new("--scheme", "no scheme is given", "write NAME[:key=value,...],NAME ..."));
    }
    names.iter().map(|name| name.parse()).collect()
}

/// One scheme while it runs.
struct Runner {
    scheme: AnyHotness,
    verdicts: Vec<Temperature>,
    window: Counts,
    total: Counts,
    windows: Vec<Counts>,
    elapsed_ns: u128,
}

impl Runner {
    fn new(name: &PolicyName, context: &HotnessContext) -> Result<Self, SpecError> {
        let scheme = build_scheme(name, context)?;
        let verdicts = vec![Temperature::COLD; BATCH];
        Ok(Self {
            scheme,
            verdicts,
            window: Counts::default(),
            total: Counts::default(),
            windows: Vec::new(),
            elapsed_ns: 0,
        })
    }

    /// Judges a batch; afterwards the verdicts are 1 for hot and 0 for cold, whatever classes the scheme has.
    fn judge(&mut self, batch: &[Lpn]) {
        let verdicts = &mut self.verdicts[..batch.len()];
        let start = Instant::now();
        self.scheme.observe_all(batch, verdicts);
        self.elapsed_ns += start.elapsed().as_nanos();
        let temperatures = self.scheme.temperatures();
        if temperatures > 2 {
            verdicts.iter_mut().for_each(|verdict| *verdict = Temperature::hot_if(verdict.is_hot(temperatures)));
        }
    }

    fn compare(&mut self, reference: &[Temperature]) {
        // Bytes first: sums of at most 255 of them stay bytes, which the compiler turns into wide additions.
        for (verdicts, truths) in self.verdicts[..reference.len()].chunks(255).zip(reference.chunks(255)) {
            let (mut hot, mut reference_hot, mut both) = (0u8, 0u8, 0u8);
            for (verdict, truth) in verdicts.iter().zip(truths) {
                hot += verdict.0;
                reference_hot += truth.0;
                both += verdict.0 & truth.0;
            }
            self.window.writes += truths.len() as u64;
            self.window.hot += u64::from(hot);
            self.window.reference_hot += u64::from(reference_hot);
            self.window.false_hot += u64::from(hot - both);
            self.window.false_cold += u64::from(reference_hot - both);
        }
    }

    fn close_window(&mut self) {
        self.total.add(&self.window);
        self.windows.push(std::mem::take(&mut self.window));
    }

    fn finish(mut self, name: &PolicyName) -> SchemeResult {
        let memory_bytes = self.scheme.memory_bytes();
        let ns_per_decay = self.scheme.decay_interval().map(|_| {
            let start = Instant::now();
            (0..TIMED_DECAYS).for_each(|_| std::hint::black_box(&mut self.scheme).decay());
            start.elapsed().as_nanos() as f64 / f64::from(TIMED_DECAYS)
        });
        SchemeResult {
            name: name.clone(),
            total: self.total,
            windows: self.windows,
            memory_bytes,
            ns_per_check: self.elapsed_ns as f64 / self.total.writes as f64,
            ns_per_decay,
        }
    }
}

/// Runs the schemes of `plan` and its reference over `writes`.
///
/// # Errors
/// A scheme is unknown or has a wrong parameter; the windows are empty or too many; the user stopped.
pub fn measure(writes: &PageWrites, plan: &Plan, control: &Control) -> Result<Measurement, EvalError> {
    let window_writes = match plan.window_writes {
        None => writes.lpns.len(),
        Some(window) if window > 0 && writes.lpns.len() as u64 / window < WINDOWS_MAX as u64 => window as usize,
        Some(window) => {
            let least = writes.lpns.len() / WINDOWS_MAX + 1;
            let problem = format!("windows of {window} writes out of {} are none or too many", writes.lpns.len());
            return Err(SpecError::new("--window", problem, format!("allowed: {least} and more")).into());
        }
    };
    let needs_future = plan.schemes.iter().chain([&plan.reference]).any(scheme_needs_future);
    let future = needs_future.then(|| Arc::new(Future::of(&writes.lpns, writes.logical_pages)));
    let context = HotnessContext { logical_pages: writes.logical_pages, future };
    let mut reference = Runner::new(&plan.reference, &context)?;
    let mut runners = plan.schemes.iter().map(|name| Runner::new(name, &context)).collect::<Result<Vec<_>, _>>()?;
    for window in writes.lpns.chunks(window_writes) {
        for batch in window.chunks(BATCH) {
            control.go_on()?;
            reference.judge(batch);
            for runner in &mut runners {
                runner.judge(batch);
                runner.compare(&reference.verdicts[..batch.len()]);
            }
            control.pages_done.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        runners.iter_mut().for_each(Runner::close_window);
    }
    let schemes = runners.into_iter().zip(&plan.schemes).map(|(runner, name)| runner.finish(name)).collect();
    Ok(Measurement { writes: writes.lpns.len() as u64, reference: plan.reference.clone(), schemes })
}

/// Number of different pages in each `unit` consecutive writes (the paper's figure 6); the last unit may be shorter.
///
/// # Panics
/// If `unit` is 0.
pub fn unique_pages(writes: &PageWrites, unit: usize) -> Vec<u32> {
    // The number of the unit in which a page was seen last, from 1.
    let mut seen = vec![0u32; writes.logical_pages as usize];
    let units = writes.lpns.chunks(unit).zip(1u32..);
    units
        .map(|(lpns, number)| {
            let is_new = |lpn: &&Lpn| std::mem::replace(&mut seen[lpn.0 as usize], number) != number;
            lpns.iter().filter(is_new).count() as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(pages: &[u32]) -> PageWrites {
        let logical_pages = pages.iter().max().unwrap() + 1;
        PageWrites { lpns: pages.iter().copied().map(Lpn).collect(), logical_pages, page_bytes: 4096 }
    }

    fn plan(schemes: &str, reference: &str, window_writes: Option<u64>) -> Plan {
        Plan { schemes: parse_schemes(schemes).unwrap(), reference: reference.parse().unwrap(), window_writes }
    }

    #[test]
    fn counts_are_those_done_by_hand() {
        // Rewritten within one write (oracle): c c h c h c c; previous write one back (fms): c c c c h c h.
        let writes = writes(&[1, 2, 3, 3, 2, 2, 1]);
        let result = measure(&writes, &plan("fms:window=1", "oracle:window=1", Some(4)), &Control::default()).unwrap();
        let fms = &result.schemes[0];
        // oracle: _ _ 3h _ 2h _ _ ; fms: _ _ _ 3h _ 2h _
        assert_eq!(fms.total, Counts { writes: 7, hot: 2, reference_hot: 2, false_hot: 2, false_cold: 2 });
        assert_eq!(fms.windows[0], Counts { writes: 4, hot: 1, reference_hot: 1, false_hot: 1, false_cold: 1 });
        assert_eq!(fms.windows[1].writes, 3);
        assert_eq!(fms.total.false_identification_rate(), 4.0 / 7.0);
        assert_eq!((fms.total.precision(), fms.total.recall()), (0.0, 0.0));
    }

    #[test]
    fn a_scheme_agrees_with_itself_and_with_no_other() {
        let mut random = isotherm::random::Random::new(5);
        let pages: Vec<u32> = (0..30_000).map(|_| random.below(random.clone().below(2000) + 1) as u32).collect();
        let writes = writes(&pages);
        let result = measure(&writes, &plan("wdac,dam,dac,fms", "wdac", None), &Control::default()).unwrap();
        let rates: Vec<_> = result.schemes.iter().map(|s| s.total.false_identification_rate()).collect();
        assert_eq!(rates[0], 0.0);
        assert!(rates[1..].iter().all(|&rate| rate > 0.0), "{rates:?}");
        for scheme in &result.schemes {
            let counts = scheme.total;
            assert_eq!(counts.writes, 30_000);
            assert_eq!(counts.hot + counts.false_cold, counts.reference_hot + counts.false_hot);
        }
    }

    #[test]
    fn windows_do_not_change_the_total() {
        let mut random = isotherm::random::Random::new(6);
        let pages: Vec<u32> = (0..20_000).map(|_| random.below(700) as u32).collect();
        let writes = writes(&pages);
        let whole = measure(&writes, &plan("mbf,mhf", "wdac", None), &Control::default()).unwrap();
        let split = measure(&writes, &plan("mbf,mhf", "wdac", Some(777)), &Control::default()).unwrap();
        for (a, b) in whole.schemes.iter().zip(&split.schemes) {
            assert_eq!(a.total, b.total);
            assert_eq!(b.windows.len(), 26);
        }
    }

    #[test]
    fn unique_pages_are_counted_unit_by_unit() {
        assert_eq!(unique_pages(&writes(&[1, 1, 2, 2, 2, 2, 3]), 3), [2, 1, 1]);
    }

    #[test]
    fn schemes_and_their_parameters_are_told_apart() {
        let names: Vec<_> = parse_schemes("mbf:filters=8,threshold=scaled,mhf,wdac:window=1Ki")
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["mbf:filters=8,threshold=scaled", "mhf", "wdac:window=1Ki"]);
        for wrong in ["", "window=3", "mbf,filters=8"] {
            assert!(parse_schemes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn windows_of_no_writes_are_refused() {
        let error = measure(&writes(&[1, 2]), &plan("mbf", "wdac", Some(0)), &Control::default()).unwrap_err();
        assert!(error.to_string().contains("allowed: 1 and more"), "{error}");
    }
}
