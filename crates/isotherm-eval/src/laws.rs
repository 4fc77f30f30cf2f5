//! Conservation laws over the counters of a run. A broken law is a bug of the simulator, never of the workload.

use isotherm::device::Replay;

/// Checks the device's own laws, and those between its counters and what was submitted. A device that stopped early, worn
/// out or full, has counted only a part of its last batch.
///
/// # Errors
/// The first law that is broken, in words.
pub fn check(device: &dyn Replay, host_pages_submitted: u64, stopped: bool) -> Result<(), String> {
    device.check()?;
    let end = device.snapshot();
    let law = |holds: bool, text: String| if holds { Ok(()) } else { Err(text) };

    let counted = end.host.pages_written;
    let as_submitted = if stopped { counted <= host_pages_submitted } else { counted == host_pages_submitted };
    law(as_submitted, format!("{host_pages_submitted} page writes submitted, {counted} counted"))?;

    let programmed = end.medium.programmed();
    let parts: u64 = programmed.by_key().iter().map(|p| p.1).sum();
    law(parts == programmed.total(), format!("{} programs, but their causes sum to {parts}", programmed.total()))?;

    let accounted = end.valid_pages + end.collector.invalidated_pages;
    law(
        programmed.total() == accounted,
        format!("{} programs, but {accounted} pages are valid or were invalidated", programmed.total()),
    )?;

    let erases: u64 = device.block_erases().iter().map(|&e| u64::from(e)).sum();
    law(
        erases == device.wear().total && erases == end.medium.erases.total(),
        format!("{erases} erases over the blocks, {} by cause", end.medium.erases.total()),
    )?;

    let victims: u64 = end.collector.victim_histogram.iter().sum();
    law(
        victims == end.collector.collections,
        format!("{} collections, but {victims} victims in the histogram", end.collector.collections),
    )
}
