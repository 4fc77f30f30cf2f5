//! Answers that the export says are due later.

use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use isotherm_fuse::drive::Options;

use crate::fixture::{Mood, Stage};

const SIZE: u64 = 1 << 20;
const LATE: Duration = Duration::from_millis(400);

/// One thread takes requests, so that a late answer would stop all others if the thread waited for its time.
#[test]
fn late_answers_come_late_and_others_go_on() {
    let Some(stage) = Stage::with(SIZE, &Options { threads: 1, ..Options::default() }) else { return };
    let file = stage.open();
    stage.export.set_mood(Mood::Late(LATE));
    thread::scope(|scope| {
        let start = Instant::now();
        let late: Vec<_> = (0..16)
            .map(|number| {
                let file = &file;
                scope.spawn(move || {
                    file.write_all_at(&[7; 512], SIZE / 2 + number * 512).unwrap();
                    start.elapsed()
                })
            })
            .collect();
        let mut prompt = 0;
        while start.elapsed() < LATE / 2 {
            file.write_all_at(&[8; 512], prompt % 64 * 512).unwrap();
            file.read_exact_at(&mut [0; 512], 0).unwrap();
            prompt += 1;
        }
        assert!(prompt > 1, "requests waited for the late ones");
        for thread in late {
            let took = thread.join().unwrap();
            assert!(took >= LATE, "answered after {took:?}");
            assert!(took < LATE * 8, "sixteen late answers came one after the other: {took:?}");
        }
    });
    let mut bytes = [0; 512];
    let start = Instant::now();
    file.read_exact_at(&mut bytes, SIZE / 2).unwrap();
    assert!(start.elapsed() >= LATE);
    assert_eq!(bytes, [7; 512]);
    file.sync_all().unwrap();
    assert!(start.elapsed() >= LATE * 2);
}
