//! Of what was tried, what is told: the best of each kind.

use crate::change::{Change, Kind};
use crate::search::{ENOUGH, Tried};

/// The run that writes least, of those that are valid, or of all where none is.
pub fn best(tried: &[Tried]) -> Option<Tried> {
    let wa = Tried::write_amplification_bytes;
    tried.iter().min_by(|a, b| b.run.verdict.valid.cmp(&a.run.verdict.valid).then(wa(a).total_cmp(&wa(b)))).cloned()
}

/// What is told of each kind, in the order of the kinds: of firmware and splits of the DRAM the best, of handles two, and the fewest
/// that are about as good as the best; of all others each.
pub fn best_of_each_kind(tried: &[Tried]) -> Vec<Tried> {
    let mut told = Vec::new();
    let mut kinds: Vec<Kind> = tried.iter().map(|tried| tried.candidate.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of_kind: Vec<Tried> = tried.iter().filter(|tried| tried.candidate.kind == kind).cloned().collect();
        let Some(best) = best(&of_kind) else { continue };
        match kind {
            Kind::HandlesByAddress | Kind::HandlesBySize | Kind::HandlesBySource => {
                let handles = |tried: &Tried| tried.candidate.change.handles();
                let enough = of_kind
                    .iter()
                    .filter(|tried| tried.run.verdict.valid == best.run.verdict.valid)
                    .filter(|tried| {
                        tried.write_amplification_bytes() <= best.write_amplification_bytes() * (1.0 + ENOUGH)
                    })
                    .min_by_key(|tried| handles(tried))
                    .unwrap_or(&best);
                let two: Vec<Tried> = of_kind.iter().filter(|tried| handles(tried) == 2).cloned().collect();
                told.extend(self::best(&two).filter(|_| handles(enough) > 2));
                told.push(enough.clone());
            }
            kind if kind.is_choice() => told.push(best),
            _ => told.extend(of_kind),
        }
    }
    told
}

/// The best change of these kinds, with what it is.
pub fn best_change(tried: &[Tried], kinds: &[Kind]) -> Option<(String, Change)> {
    let of_kinds: Vec<Tried> =
        best_of_each_kind(tried).into_iter().filter(|tried| kinds.contains(&tried.candidate.kind)).collect();
    let best = best(&of_kinds)?;
    let what = best.candidate.what.trim_start_matches("+ ").to_owned();
    Some((what, best.candidate.change))
}
