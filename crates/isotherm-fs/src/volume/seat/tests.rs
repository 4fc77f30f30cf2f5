use super::*;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A request, and where its answer is heard.
fn request(wanted: Wanted) -> (Asked, Receiver<Result<(), StoreError>>) {
    let (tell, told) = channel();
    (Asked { wanted, done: Box::new(move |done| tell.send(done).expect("it is waited for")) }, told)
}

fn answer(asked: Vec<Asked>) {
    asked.into_iter().for_each(|asked| (asked.done)(Ok(())));
}

fn wanted(asked: &[Asked]) -> Vec<Wanted> {
    asked.iter().map(|asked| asked.wanted).collect()
}

/// Until a thread waits for the seat.
fn wait_for_waiting(seat: &Seat) {
    while seat.lock().waiting == 0 {
        thread::yield_now();
    }
}

#[test]
fn whoever_finds_the_seat_free_serves_the_requests_of_others_too() {
    let seat = Seat::default();
    let (first, first_told) = request(Wanted::File(7));
    let mut writer = seat.ask(first, Patience::Stays).expect("the seat is free");
    let asked = writer.take_asked();
    // What is asked for while that is written is not served by it, and nobody waits.
    let (second, second_told) = request(Wanted::Metadata);
    assert!(seat.ask(second, Patience::Stays).is_none());
    answer(asked);
    assert_eq!((first_told.try_recv(), second_told.try_recv().is_err()), (Ok(Ok(())), true));
    let mut writer = writer.leave().expect("there is a request");
    let asked = writer.take_asked();
    assert_eq!(wanted(&asked), [Wanted::Metadata]);
    writer.put_back(asked);
    let (third, _third_told) = request(Wanted::File(8));
    assert!(seat.ask(third, Patience::Stays).is_none());
    let asked = writer.take_asked();
    assert_eq!(wanted(&asked), [Wanted::Metadata, Wanted::File(8)], "in the order in which they came");
    writer.is_unflushed = true;
    assert!(writer.leave().is_none(), "nothing is asked for");
    let writer = seat.take().expect("nobody has panicked");
    assert!(writer.is_unflushed, "what was written is still to be flushed");
    assert!(writer.leave().is_none());
}

#[test]
fn whoever_has_something_else_to_do_is_relieved_by_the_next_who_asks() {
    let seat = Arc::new(Seat::default());
    let writer = seat.take().expect("nobody has panicked");
    let of_thread = seat.clone();
    let relief = thread::spawn(move || {
        let mut writer = of_thread.ask(request(Wanted::File(7)).0, Patience::Stays).expect("it is waited for");
        let asked = writer.take_asked();
        assert!(writer.leave().is_none());
        wanted(&asked)
    });
    wait_for_waiting(&seat);
    // One is enough.
    assert!(seat.ask(request(Wanted::File(8)).0, Patience::Stays).is_none());
    assert!(writer.leave().is_none(), "somebody waits for the seat");
    assert_eq!(relief.join().expect("no panic"), [Wanted::File(7), Wanted::File(8)]);
}

#[test]
fn whoever_waits_only_to_be_served_goes_when_somebody_else_does_it() {
    let seat = Arc::new(Seat::default());
    let mut writer = seat.take().expect("nobody has panicked");
    let of_thread = seat.clone();
    let (asked, told) = request(Wanted::File(7));
    let asks = thread::spawn(move || of_thread.ask(asked, Patience::Stays).is_none());
    wait_for_waiting(&seat);
    let asked = writer.take_asked();
    assert!(asks.join().expect("no panic"), "the seat is taken still");
    answer(asked);
    assert_eq!(told.recv(), Ok(Ok(())));
    assert!(writer.leave().is_none());
    // The seat is free for others.
    assert!(seat.take().expect("nobody has panicked").leave().is_none());
}

#[test]
fn whoever_serves_gives_up_the_seat_to_other_work() {
    let seat = Arc::new(Seat::default());
    let (first, _told) = request(Wanted::Metadata);
    let writer = seat.ask(first, Patience::Stays).expect("the seat is free");
    let of_thread = seat.clone();
    let work = thread::spawn(move || {
        let mut writer = of_thread.take().expect("nobody has panicked");
        let asked = writer.take_asked();
        assert!(writer.leave().is_none());
        asked.len()
    });
    wait_for_waiting(&seat);
    assert!(writer.leave().is_none(), "somebody waits for the seat");
    assert_eq!(work.join().expect("no panic"), 1);
}

#[test]
fn nobody_sits_down_after_a_panic_nor_waits_for_ever() {
    let seat = Arc::new(Seat::default());
    let (asked, told) = request(Wanted::Metadata);
    let of_thread = seat.clone();
    let (sits, is_seated) = channel();
    let panics = thread::spawn(move || {
        let _writer = of_thread.ask(asked, Patience::Stays).expect("the seat is free");
        sits.send(()).expect("it is waited for");
        wait_for_waiting(&of_thread);
        panic!("on purpose");
    });
    is_seated.recv().expect("it sits down");
    assert!(seat.take().is_err());
    assert!(panics.join().is_err());
    assert!(told.recv().is_err(), "its request was dropped");
    let (late, told) = request(Wanted::Metadata);
    assert!(seat.ask(late, Patience::Stays).is_none());
    assert!(told.recv().expect("it is told").is_err());
}

/// A request whose answer nobody hears.
fn unheard(wanted: Wanted) -> Asked {
    Asked { wanted, done: Box::new(drop) }
}

/// A seat whose last group held so many requests, and whose flushes take so long.
fn used_to(group: usize, flush: Duration) -> Seat {
    let seat = Seat::default();
    let mut writer = seat.take().expect("nobody has panicked");
    (0..100).for_each(|_| writer.flushed(group, flush));
    assert!(writer.leave().is_none());
    seat
}

/// Serves what is asked for as [`Seat::ask`] wants it to be, and returns how many requests that were.
fn serve(seat: &Seat, writer: Writer<'_>, flush: Duration) -> usize {
    let mut writer = writer.gather().expect("nobody takes over");
    let asked = writer.take_asked();
    let group = asked.len();
    writer.flushed(group, flush);
    answer(asked);
    assert!(writer.leave().is_none());
    assert_eq!(seat.lock().gathering, None);
    group
}

#[test]
fn whoever_completes_a_group_serves_it() {
    const FLUSH: Duration = Duration::from_secs(3600);
    let seat = Arc::new(used_to(3, FLUSH));
    let (first, first_told) = request(Wanted::File(7));
    let of_thread = seat.clone();
    let waits = thread::spawn(move || {
        let mut writer = of_thread.ask(first, Patience::Stays).expect("the seat is free");
        writer.is_unflushed = true;
        assert!(writer.gather().is_none(), "somebody has taken over");
    });
    while seat.lock().gathering.is_none() {
        thread::yield_now();
    }
    let (second, second_told) = request(Wanted::File(8));
    assert!(seat.ask(second, Patience::Stays).is_none(), "one more is expected");
    let writer = seat.ask(unheard(Wanted::Metadata), Patience::Stays).expect("the group is whole");
    assert!(writer.is_unflushed, "what was written is still to be flushed");
    assert_eq!(serve(&seat, writer, FLUSH), 3);
    assert_eq!((first_told.recv(), second_told.recv()), (Ok(Ok(())), Ok(Ok(()))));
    seat.time_out.notify_all();
    waits.join().expect("no panic");
    assert_eq!(seat.lock().gatherings, 1);
}

#[test]
fn whoever_does_not_come_back_is_waited_for_once() {
    const FLUSH: Duration = Duration::from_micros(200);
    let seat = used_to(2, FLUSH);
    for _ in 0..100 {
        let writer = seat.ask(unheard(Wanted::File(7)), Patience::Stays).expect("the seat is free");
        assert_eq!(serve(&seat, writer, FLUSH), 1);
    }
    assert_eq!(seat.lock().gatherings, 1);
}

#[test]
fn one_alone_never_waits_nor_does_who_has_something_else_to_do() {
    const FLUSH: Duration = Duration::from_secs(3600);
    let seat = used_to(1, FLUSH);
    for _ in 0..100 {
        let writer = seat.ask(unheard(Wanted::File(7)), Patience::Stays).expect("the seat is free");
        assert_eq!(serve(&seat, writer, FLUSH), 1);
    }
    let seat = used_to(8, FLUSH);
    let writer = seat.ask(unheard(Wanted::File(7)), Patience::Leaves).expect("the seat is free");
    assert_eq!(serve(&seat, writer, FLUSH), 1);
}
