//! Arbitrary specifications of synthetic workloads: an error, or requests inside the address space.
#![no_main]

use isotherm_trace::TraceReader;
use isotherm_trace::synth::Workload;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|spec: &str| {
    // Files of counts are the other target's business.
    if spec.contains("counts") {
        return;
    }
    let Ok(workload) = Workload::parse(spec) else { return };
    let mut batch = Vec::new();
    workload.reader().fill(&mut batch, 1000).expect("a checked workload runs");
    let end = u64::from(workload.pages()) * workload.page_bytes();
    assert!(batch.iter().all(|request| request.length > 0 && request.offset + request.length <= end));
});
