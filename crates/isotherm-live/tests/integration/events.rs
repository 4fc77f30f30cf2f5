//! The stream of events, and that the source does not feel how many follow it.

use crate::client::{Follower, get};
use crate::fake::Fake;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn events_come_in_order_and_at_their_pace() {
    let (_, page) = Fake::default().serve();
    let mut follower = Follower::start(&page);
    let (name, about) = follower.next();
    assert_eq!((name.as_str(), &about["facts"][0]["value"]), ("about", &"greedy".into()));
    assert_eq!(about["words"]["many"], "blocks");
    assert_eq!(follower.next().0, "history");
    let start = Instant::now();
    let (mut samples, mut cells) = (Vec::new(), 0);
    while samples.len() < 8 {
        match follower.next() {
            (name, data) if name == "sample" => samples.push(data["time_ms"].as_u64().unwrap()),
            (name, data) => {
                assert_eq!((name.as_str(), data["state"].as_array().unwrap().len()), ("cells", 16));
                cells += 1;
            }
        }
    }
    assert!(samples.windows(2).all(|pair| pair[1] == pair[0] + 500), "none is lost: {samples:?}");
    // Seven intervals; a busy machine may be late, but never early.
    assert!(start.elapsed() > Duration::from_secs(3), "{:?}", start.elapsed());
    assert!((1..=4).contains(&cells), "a map at once, then one every two seconds: {cells}");
}

#[test]
fn who_comes_later_gets_the_history() {
    let (_, page) = Fake::default().serve();
    let mut first = Follower::start(&page);
    let last = (0..4).map(|_| first.next_of("sample")).last().unwrap()["time_ms"].as_u64().unwrap();
    let mut second = Follower::start(&page);
    let history = second.next_of("history");
    let history = history.as_array().unwrap();
    let times: Vec<u64> = history.iter().map(|sample| sample["time_ms"].as_u64().unwrap()).collect();
    assert!(
        times.contains(&0) && times.contains(&last) && times.len() as u64 == times.last().unwrap() / 500 + 1,
        "{times:?}"
    );
    assert!(history.iter().all(|s| s.get("slowest").is_none() && s["pages_written"][1][0] == "gc"), "curves only");
    let next = second.next_of("sample");
    assert_eq!(next["time_ms"].as_u64().unwrap(), times.last().unwrap() + 500, "the first event after the history");
    assert_eq!(next["slowest"][0]["length"], 16_384);
}

#[test]
fn many_clients_cost_the_source_nothing() {
    let (fake, page) = Fake::default().serve();
    let start = Instant::now();
    let mut followers: Vec<Follower> = (0..30).map(|_| Follower::start(&page)).collect();
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| assert_eq!(get(&page, "/stats").status, 200));
        }
    });
    for follower in &mut followers {
        for _ in 0..3 {
            follower.next_of("sample");
        }
    }
    // Twice a second, however many there are; the first of each comes at once.
    let most = start.elapsed().as_millis() as u64 / 500 + 2;
    for (name, calls) in [("sample", &fake.samples), ("stats", &fake.stats), ("cells", &fake.cells)] {
        let calls = calls.load(Ordering::Relaxed);
        assert!((1..=most).contains(&calls), "{name} was called {calls} times, at most {most} were due");
    }
}

#[test]
fn nobody_asks_for_the_map_while_nobody_looks() {
    let (fake, page) = Fake::default().serve();
    drop(Follower::start(&page));
    let samples = || fake.samples.load(Ordering::Relaxed);
    let wait_for = |count: u64| {
        let end = Instant::now() + Duration::from_secs(30);
        while samples() < count {
            assert!(Instant::now() < end, "sampling goes on without followers");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The page learns that the client went when it sends it the next sample.
    wait_for(samples() + 4);
    let maps = fake.cells.load(Ordering::Relaxed);
    wait_for(samples() + 6);
    assert_eq!(fake.cells.load(Ordering::Relaxed), maps);
    assert_eq!(fake.stats.load(Ordering::Relaxed), 0);
}
