//! Replays a trace on a device with two placements and says which one writes less.
//!
//! ```text
//! cargo run --release --example replay -- traces/sqlite-wal-ext4.csv.zst
//! ```

use isotherm_eval::{
    AddressMode, Control, EvalError, Policies, Replay, RunSpec, SystemSpec, TraceSource, prepare, survey,
};

fn main() -> Result<(), EvalError> {
    // A file in any format that is recognised, or a synthetic workload.
    let trace = std::env::args().nth(1).unwrap_or_else(|| "synth:zipf,theta=0.99,pages=16Ki,writes=200k".to_owned());
    // The device is as large as the pages that the trace touches, and the trace is replayed four times.
    let replay = Replay { address: AddressMode::Compact, repeat: 4, ..Replay::default() };
    for placement in ["single", "epoch"] {
        // Any key of `isotherm run --print-config`; what is not named has its default.
        let keys = [format!("placement={placement}"), "device.over_provisioning=10%".to_owned()];
        let device = SystemSpec::from_toml("", &keys)?;
        let spec = RunSpec {
            trace: TraceSource::new(&trace),
            device,
            replay: replay.clone(),
            seed: 1,
            policies: Policies::default(),
        };

        // One pass tells how large the trace is; then everything is checked before memory is allocated.
        let survey = survey(&spec)?;
        let run = prepare(&spec, Some(&survey))?.run(&Control::default())?;

        let wa = run.write_amplification.map_or_else(|| "n/a".to_owned(), |wa| format!("{wa:.3}"));
        let verdict = if run.verdict.valid { "valid".to_owned() } else { run.verdict.reasons.join("; ") };
        println!("{placement:<8} write amplification {wa}, {} erases, {verdict}", run.erase_count.total);
    }
    Ok(())
}
