//! Windows of the series of whole runs, whatever the size of requests.

use isotherm_eval::results::RunResult;
use isotherm_eval::{Control, Policies, Replay, RunSpec, SystemSpec, TraceSource, prepare, survey};

fn run(trace: &str, replay: Replay) -> RunResult {
    let device = SystemSpec::from_toml("", &[]).unwrap();
    let spec = RunSpec { trace: TraceSource::new(trace), device, replay, seed: 1, policies: Policies::default() };
    let survey = survey(&spec).unwrap();
    prepare(&spec, Some(&survey)).unwrap().run(&Control::default()).unwrap()
}

/// Windows end with the request that reaches a multiple of their width, and nowhere else.
fn assert_equal_windows(run: &RunResult, pages_of_a_request: u64) {
    let series = &run.series;
    let (last, whole) = series.host_pages_written.split_last().unwrap();
    assert_eq!(*last, run.host_pages_written, "windows cover the run");
    assert!(whole.len() >= 40, "only {} windows", whole.len());
    for (window, end) in (1..).zip(whole) {
        let beyond = end.checked_sub(window * series.window_host_pages).expect("no window is short");
        assert!(beyond < pages_of_a_request, "window {window} ends {beyond} pages late");
    }
}

#[test]
fn windows_are_equally_wide_however_large_requests_are() {
    for size in [1, 7, 64, 256] {
        let trace = format!("synth:uniform,pages=8Ki,writes=100k,reads=0.3,size={size}");
        assert_equal_windows(&run(&trace, Replay { repeat: 2, ..Replay::default() }), size);
    }
}

#[test]
fn a_window_that_the_last_window_begins_within_is_no_shorter() {
    let trace = "synth:uniform,pages=8Ki,writes=100k,size=64";
    let whole = run(trace, Replay::default());
    let cut = run(trace, Replay { measure_last: Some(33_333), ..Replay::default() });
    assert_eq!(cut.last_window.host_pages_written, 33_333);
    assert_equal_windows(&cut, 64);
    assert_eq!(cut.series.host_pages_written, whole.series.host_pages_written);
}
