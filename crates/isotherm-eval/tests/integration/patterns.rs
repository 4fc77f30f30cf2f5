//! What is said of a pattern is said of the pattern, not of the one draw of it that was run.

use isotherm_eval::results::RunResult;
use isotherm_eval::{Control, Policies, Precondition, Replay, RunSpec, SystemSpec, TraceSource, prepare, survey};

const PAGES: u64 = 16 * 1024;

/// `drive_writes` of `pattern` over 16 Ki pages, with these settings of the device.
fn run(pattern: &str, drive_writes: u64, replay: Replay, sets: &[&str]) -> RunResult {
    let trace = TraceSource::new(&format!("synth:{pattern},pages={PAGES},writes={}", drive_writes * PAGES));
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let device = SystemSpec::from_toml("", &sets).unwrap();
    let spec = RunSpec { trace, device, replay, seed: 1, policies: Policies::default() };
    let survey = survey(&spec).unwrap();
    prepare(&spec, Some(&survey)).unwrap().run(&Control::default()).unwrap()
}

fn after(precondition: Precondition) -> Replay {
    Replay { precondition, ..Replay::default() }
}

/// The same draw again and again has a period that placements learn, and leaves pages empty that it does not reach.
#[test]
fn replays_of_a_short_draw_cost_what_a_long_draw_costs() {
    let sets = ["device.over_provisioning=0.14", "placement=isotherm", "gc.victim=isotherm", "wear.leveling=false"];
    for pattern in ["uniform", "zipf,theta=0.99"] {
        let long =
            run(pattern, 60, Replay { measure_last: Some(20 * PAGES), ..after(Precondition::Sequential) }, &sets);
        let long = long.write_amplification_last.unwrap();
        for (drive_writes, replay) in [
            (2, Replay { repeat: 4, ..after(Precondition::Trace) }),
            (2, Replay { repeat: 20, measure_last: Some(8 * PAGES), ..after(Precondition::Sequential) }),
        ] {
            let short = run(pattern, drive_writes, replay, &sets);
            let wa = short.write_amplification_last.unwrap();
            assert!((wa / long - 1.0).abs() < 0.03, "{pattern}: {wa} of replays, {long} of one long draw");
            assert_eq!(short.verdict.live_share_peak, 1.0, "{pattern}");
        }
    }
}

/// The drive is as large as the pattern's pages, drawn or not, however addresses are folded.
#[test]
fn a_drive_has_all_pages_of_the_pattern() {
    for address in ["refuse", "compact"] {
        let address = serde_json::from_value(address.into()).unwrap();
        let short = run("zipf,theta=1.2", 1, Replay { address, ..Replay::default() }, &[]);
        assert_eq!(short.device.logical_pages, PAGES);
    }
}

/// 4 % of the pages never drawn are more than half of the spare space again.
#[test]
fn pages_that_are_still_to_be_written_make_a_drive_light() {
    let replay = |precondition| Replay { repeat: 10, measure_last: Some(10 * PAGES), ..after(precondition) };
    let verdict =
        |precondition| run("zipf,theta=0.99", 2, replay(precondition), &["device.over_provisioning=0.07"]).verdict;
    let light = verdict(Precondition::None).light.expect("many pages were not drawn");
    assert!(light.contains("not written yet") && light.contains("--precondition sequential"), "{light}");
    assert_eq!(verdict(Precondition::Sequential).light, None, "the advice helps");
}

/// Cold pages that are written every twentieth write bring the device to another state over ten drive writes; two of them drift by 1 to
/// 5 % from quarter to quarter.
#[test]
fn slow_drift_is_not_steady() {
    let verdict = |drive_writes| {
        let sets =
            ["device.over_provisioning=0.28", "placement=multilog", "gc.victim=cost_benefit", "wear.leveling=false"];
        run("hotcold,hot=0.5,hot_writes=0.95", drive_writes, after(Precondition::Random), &sets).verdict
    };
    let short = verdict(2);
    assert!(
        short.reasons.iter().any(|reason| reason.contains("not steady")),
        "{:?}",
        short.write_amplification_quarters
    );
    assert!(verdict(40).valid);
}
