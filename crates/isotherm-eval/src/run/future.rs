//! The first pass of an offline run: when each page version that the host will write dies.
//!
//! Deaths are numbered in host page writes since the device is new, so that filler and preconditioning count too. 4 bytes a
//! host page write and 4 a logical page while it is built.

use super::layout::{Layout, Pages};
use super::{Precondition, RunSpec};
use crate::error::EvalError;
use crate::fold::Folding;
use crate::memory;
use isotherm::placement::{Future, needs_future};
use isotherm::registry::SpecError;
use isotherm::request::Op;
use std::sync::Arc;

/// A page that is never written again, or was not written yet.
const NEVER: u32 = u32::MAX;

/// The future of every page version, where the placement asks for it.
///
/// # Errors
/// The trace cannot be read, its length cannot be known in advance, or there is too little memory.
pub fn of(
    spec: &RunSpec,
    folding: &Folding,
    layout: &Layout,
    logical_pages: u64,
    page_writes: u64,
) -> Result<Option<Arc<Future>>, EvalError> {
    let placement = &spec.device.placement.name;
    if !needs_future(placement) {
        return Ok(None);
    }
    let page_bytes = spec.device.device.page_size.0;
    let sequential = match spec.replay.precondition {
        Precondition::None => None,
        Precondition::Sequential => Some(&layout.active),
        Precondition::Random | Precondition::Trace => {
            let problem = "how long preconditioning takes cannot be known before the run";
            return Err(
                SpecError::new(placement.to_string(), problem, "use replay.precondition none or sequential").into()
            );
        }
    };
    let before = layout.filler.count() + sequential.map_or(0, Pages::count);
    let writes = before + page_writes * u64::from(spec.replay.repeat);
    if writes >= u64::from(NEVER) {
        let problem = format!("{writes} host page writes exceed 2^32 - 2");
        return Err(
            SpecError::new(placement.to_string(), problem, "give a shorter trace or a smaller replay.repeat").into()
        );
    }
    memory::admit("reading the trace ahead", 4 * (writes + logical_pages), "give a shorter trace")?;

    let mut timeline =
        Timeline { deaths: Vec::with_capacity(writes as usize), last: vec![NEVER; logical_pages as usize] };
    layout
        .filler
        .runs()
        .chain(sequential.iter().flat_map(|pages| pages.runs()))
        .flatten()
        .for_each(|page| timeline.write(page));
    for replay in 0..spec.replay.repeat {
        spec.trace.for_each_of(replay.into(), |batch| {
            folding.fold(batch);
            for request in batch.iter().filter(|r| r.length > 0) {
                let end = request.offset + request.length;
                match request.op {
                    Op::Write => {
                        (request.offset / page_bytes..end.div_ceil(page_bytes)).for_each(|p| timeline.write(p))
                    }
                    // A trim frees whole pages alone, as on the device.
                    Op::Trim => (request.offset.div_ceil(page_bytes)..end / page_bytes).for_each(|p| timeline.trim(p)),
                    // Parts of pages are written, whole ones discarded.
                    Op::WriteZeroes => {
                        let whole = request.offset.div_ceil(page_bytes)..end / page_bytes;
                        (request.offset / page_bytes..end.div_ceil(page_bytes)).for_each(|page| {
                            match whole.contains(&page) {
                                true => timeline.trim(page),
                                false => timeline.write(page),
                            }
                        });
                    }
                    Op::Read | Op::Flush => {}
                }
            }
            Ok(())
        })?;
    }
    Ok(Some(Arc::new(Future { deaths: timeline.deaths })))
}

/// Deaths so far, and the last version of each page. Pages past the device's end are left to the device to refuse.
struct Timeline {
    deaths: Vec<u32>,
    last: Vec<u32>,
}

impl Timeline {
    fn trim(&mut self, page: u64) {
        let now = self.deaths.len() as u32;
        if let Some(last) = self.last.get_mut(page as usize).filter(|l| **l != NEVER) {
            self.deaths[*last as usize] = now;
            *last = NEVER;
        }
    }

    fn write(&mut self, page: u64) {
        self.trim(page);
        if let Some(last) = self.last.get_mut(page as usize) {
            *last = self.deaths.len() as u32;
        }
        self.deaths.push(NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_dies_at_the_next_write_or_trim_of_its_page() {
        let mut timeline = Timeline { deaths: Vec::new(), last: vec![NEVER; 3] };
        timeline.write(0);
        timeline.write(1);
        timeline.write(0);
        timeline.trim(1);
        timeline.trim(1);
        timeline.write(2);
        timeline.write(1);
        assert_eq!(timeline.deaths, [2, 3, NEVER, NEVER, NEVER]);
    }
}
