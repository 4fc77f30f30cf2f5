//! Any text as a specification and as a list of settings: it parses or is refused with a place and a fix, and what it
//! describes can be planned or is refused. Nothing panics, and nothing large is allocated for a mere plan.
#![no_main]

use isotherm::build::Environment;
use isotherm::registry::PolicyName;
use isotherm_sfs::{SystemSpec, plan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = text.parse::<PolicyName>();
    // The part after a line of dashes are settings, one a line.
    let (toml, sets) = text.split_once("\n---\n").unwrap_or((text, ""));
    let sets: Vec<String> = sets.lines().map(str::to_owned).collect();
    if let Ok(spec) = SystemSpec::from_toml(toml, &sets) {
        assert_eq!(SystemSpec::from_toml(&spec.to_toml(), &[]).as_ref(), Ok(&spec), "a specification prints back");
        // Placements keep tables of the logical size: a small one shows the same errors.
        let small = spec.device.logical_size.is_none_or(|size| size.0 < 1 << 26);
        if small {
            let _ = plan(&spec, &Environment { logical_bytes: 1 << 20, seed: 1, ..Environment::default() });
        }
    }
});
