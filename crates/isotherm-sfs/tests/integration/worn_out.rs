//! A log whose device wears out below it: its laws hold at the end, and every block answers.

use isotherm::build::Environment;
use isotherm::device::DeviceError;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm_sfs::{SystemSpec, build};

/// Logical blocks of the log.
const BLOCKS: u64 = 8192;

fn request(op: Op, block: u64) -> Request {
    Request { arrival_ns: 0, offset: block * 4096, length: 4096, op, source: 0, durable: false }
}

#[test]
fn a_log_keeps_its_laws_when_the_device_below_wears_out() {
    let stacks: [&[&str]; 4] = [
        &["log.name=sfs:segment=256KiB", "log.below=page"],
        &["log.name=lfs:segment=256KiB", "log.below=dftl"],
        &["log.name=sfs:segment=256KiB", "log.below=fast"],
        &["log.name=in_place", "log.below=page"],
    ];
    for (stack, endurance) in stacks.into_iter().flat_map(|stack| [(stack, 3), (stack, 5)]) {
        let endurance = format!("device.endurance={endurance}");
        let sets = [stack, &[endurance.as_str(), "device.over_provisioning=0.25"]].concat();
        let sets: Vec<String> = sets.into_iter().map(str::to_owned).collect();
        let spec = SystemSpec::from_toml("", &sets).unwrap();
        let environment = Environment { logical_bytes: BLOCKS * 4096, seed: 1, ..Environment::default() };
        let mut device = build(&spec, &environment).unwrap();
        let mut random = Random::new(3);
        let error = loop {
            let op = if random.below(20) == 0 { Op::Trim } else { Op::Write };
            let at = random.below(BLOCKS) >> (random.below(2) * 3);
            if let Err(error) = device.submit(&[request(op, at)]) {
                break error;
            }
        };
        assert!(matches!(error, DeviceError::WornOut { .. }), "{stack:?}: {error}");
        device.check().unwrap_or_else(|law| panic!("{stack:?}, {endurance}: {law}"));
        let reads: Vec<Request> = (0..BLOCKS).map(|block| request(Op::Read, block)).collect();
        device.submit(&reads).unwrap_or_else(|error| panic!("{stack:?}, {endurance}: {error}"));
        device.check().unwrap_or_else(|law| panic!("{stack:?}, {endurance}: {law}"));
    }
}
