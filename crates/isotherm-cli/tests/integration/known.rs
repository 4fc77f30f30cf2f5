//! What is known beforehand, beside what is learnt: the rates of pages in a closed form, and the future in the placement `offline`.

use crate::command::{isotherm, run};
use serde_json::Value;

const KNOWN_RATES: &str = "write_amplification_known_rates";

/// Overwrites of a full drive, counted when it is steady.
fn steady(pattern: &str, pages: &str, writes: &str, options: &[&str]) -> Value {
    let trace = format!("synth:{pattern},pages={pages},writes={writes}");
    run(&[&[&trace, "--precondition", "sequential"], options].concat())
}

fn wa(result: &Value) -> f64 {
    result["write_amplification_last"].as_f64().unwrap()
}

#[test]
fn known_rates_cost_what_the_formula_of_separation_says() {
    let known = |pattern: &str, spare: &str| {
        let result = steady(pattern, "256Ki", "1", &["--logical-size", "1GiB", "--set", spare]);
        result[KNOWN_RATES].as_f64().unwrap()
    };
    // The values of docs/placement.md, which another computation found; uniform traffic is that of one group.
    let cases = [
        ("hotcold,hot=0.1,hot_writes=0.9", 2.834, 1.698),
        ("zipf,theta=0.99", 2.673, 1.669),
        ("uniform", 6.600, 3.353),
        ("zipf,theta=0", 6.600, 3.353),
    ];
    for (pattern, at_seven, at_fifteen) in cases {
        for (spare, expected) in [("device.spare=7%", at_seven), ("device.spare=15%", at_fifteen)] {
            let found = known(pattern, spare);
            assert!((found / expected - 1.0).abs() < 0.002, "{pattern}, {spare}: {found}, not {expected}");
        }
    }
    // A drive of which half holds filler that is never written again has half the traffic's pages, and all the spare space.
    let half = steady("uniform", "16Ki", "200k", &["--logical-size", "128MiB", "--fill", "100%", "--op", "10%"]);
    let alone = steady("uniform", "16Ki", "1", &["--logical-size", "64MiB", "--op", "20%"]);
    let (half, alone) = (half[KNOWN_RATES].as_f64().unwrap(), alone[KNOWN_RATES].as_f64().unwrap());
    assert!((half / alone - 1.0).abs() < 0.01, "{half} {alone}");
    // What preconditioning wrote beside the workload's pages is as still as filler, and so are the workload's pages that are never drawn:
    // filler in these takes nothing from the others.
    let of = |pattern: &str, options: &[&str]| {
        let drive = ["--logical-size", "128MiB", "--op", "10%"];
        run(&[&[format!("synth:{pattern},pages=16Ki,writes=20k").as_str()], &drive[..], options].concat())[KNOWN_RATES]
            .as_f64()
            .unwrap()
    };
    for precondition in ["sequential", "random"] {
        assert_eq!(of("uniform", &["--precondition", precondition]), half, "{precondition}");
    }
    let of_filled = ["90%", "99%", "100%"].map(|fill| of("zipf", &["--fill", fill]));
    assert!(of_filled[0] <= of_filled[1] && of_filled[1] <= of_filled[2], "{of_filled:?}");
    assert_eq!(of_filled[2], of("zipf", &["--precondition", "random"]));
}

#[test]
fn known_rates_are_left_out_where_writes_are_no_draws_from_fixed_rates() {
    let has = |pattern: &str, options: &[&str]| !steady(pattern, "16Ki", "20k", options)[KNOWN_RATES].is_null();
    assert!(has("zipf", &[]) && has("zipf,reads=0.5", &[]));
    for pattern in ["sequential", "zipf,shift_at=10k", "zipf,trims=0.1", "zipf,size=2"] {
        assert!(!has(pattern, &[]), "{pattern}");
    }
    let mixed = run(&["synth:zipf,pages=16Ki,writes=20k+sequential,share=0.5"]);
    assert!(mixed[KNOWN_RATES].is_null(), "what comes in order is no draw");
    assert!(!has("zipf", &["--ftl", "dftl"]), "the map is written too");
    assert!(!has("zipf", &["--dram", "1MiB"]), "a buffer absorbs writes");
    assert!(has("zipf,theta=1.2", &["--address", "compact"]), "pages that were not drawn are there all the same");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sqlite-wal-ext4.csv.zst");
    assert!(run(&[capture, "--address", "compact"])[KNOWN_RATES].is_null());
}

#[test]
fn who_knows_the_future_writes_less_than_who_knows_rates_even_on_a_small_drive() {
    for (pattern, spare) in
        [("hotcold,hot=0.1,hot_writes=0.9", "7%"), ("zipf", "7%"), ("uniform", "7%"), ("zipf", "20%")]
    {
        let options = ["--op", spare, "--measure-last", "50k", "--placement", "offline", "--victim", "cost_benefit"];
        let result = steady(pattern, "16Ki", "200k", &options);
        let (offline, known) = (wa(&result), result[KNOWN_RATES].as_f64().unwrap());
        assert!(offline < known, "{pattern}: {offline}, by known rates {known}");
    }
}

#[test]
fn of_the_lookaheads_that_are_tried_the_best_counts_and_is_named() {
    let options = ["--op", "7%", "--measure-last", "50k", "--victim", "cost_benefit", "--placement"];
    let of = |placement: &str| steady("hotcold", "16Ki", "200k", &[&options[..], &[placement]].concat());
    let best = of("offline");
    let name = best["spec"]["placement"]["name"].as_str().unwrap();
    assert!(name.starts_with("offline:window="), "{name}");
    assert_eq!(wa(&of(name)), wa(&best), "{name}");
    for other in [
        "window=256,per_doubling=0",
        "window=64,per_doubling=1,reach=1024",
        "window=64,reach=256",
        "window=128,per_doubling=2,reach=512",
    ] {
        let tried = wa(&of(&format!("offline:{other}")));
        assert!(wa(&best) < 1.02 * tried, "{name}: {}, {other}: {tried}", wa(&best));
    }
}

#[test]
fn a_lookahead_that_is_given_in_part_is_the_narrowest_that_fits() {
    let options = ["--op", "20%", "--measure-last", "50k", "--placement"];
    let of = |placement: &str| wa(&steady("zipf", "16Ki", "200k", &[&options[..], &[placement]].concat()));
    // Half of the spare space is 25 blocks: five streams for each doubling, and all beyond the reach in one.
    let (given, whole) = (of("offline:per_doubling=3,reach=512"), of("offline:window=16,per_doubling=3,reach=512"));
    assert_eq!(given, whole);
    assert_ne!(given, of("offline:per_doubling=1,reach=512"));
}

#[test]
fn people_are_told_what_known_rates_would_cost() {
    let told = |arguments: &[&str]| {
        let output = isotherm(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let trace = "synth:zipf,pages=16Ki,writes=50k";
    assert!(told(&["run", trace]).contains("by known rates"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let both = told(&["compare", trace, "--op", "7%", "--placement", "single,multilog", "--out", out]);
    assert_eq!(both.matches("WA by known rates: ").count(), 1, "{both}");
    let each = told(&["compare", trace, "--op", "7%,15%", "--placement", "single", "--out", out]);
    assert_eq!(each.matches("WA by known rates of ").count(), 2, "{each}");
}
