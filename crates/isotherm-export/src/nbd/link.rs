//! A connection's bytes: what comes in is buffered, replies are collected and leave together when the input would be waited for,
//! and replies that are not due yet are held back meanwhile. At a queue depth of one, a request costs one call to receive and
//! one to send; at larger depths, whatever came in together is answered together.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use super::buffer::{Input, Output, Payload};
use super::channel::Channel;
use super::end::End;
use super::held::Held;
use super::socket::{Socket, Wait};

/// Bytes that are received at a time; the payload of a smaller write is used where it lies.
const INPUT_BYTES: usize = 256 << 10;
/// Replies are sent once this many bytes have come together, whatever else is to be read.
const OUTPUT_BYTES: usize = 256 << 10;
/// From this size on, a payload is received where it will be written from, without a copy.
pub(super) const LARGE_PAYLOAD_BYTES: usize = 64 << 10;
/// Bytes received at a time after a large payload: another is likely to follow, and what is received together with its header
/// has to be copied.
const HEADERS_BYTES: usize = 4096;
/// The system wakes sleepers late by about as much; the rest of the time to a reply is spent awake.
const SPIN: Duration = Duration::from_micros(60);
/// How long what a client has still sent is taken in at the end. Closing a TCP socket over unread bytes would take back replies
/// that are still on their way.
const LINGER: Duration = Duration::from_millis(100);

/// See the module's text.
pub(super) struct Link<S> {
    wire: Wire<S>,
    input: Input,
    /// The most that is received at once.
    input_limit: usize,
    payload: Payload,
}

/// All of a link but its input, so that bytes are received into the input while replies go out.
struct Wire<S> {
    channel: Channel<S>,
    output: Output,
    held: Held,
    /// When the handshake must be over; none once it is.
    deadline: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl<S: Socket> Link<S> {
    /// A link whose handshake must be over by `deadline`, and which takes in nothing any more once `stop` is set.
    pub fn new(socket: S, deadline: Instant, stop: Arc<AtomicBool>) -> Link<S> {
        let channel = Channel::new(socket);
        let wire = Wire { channel, output: Output::default(), held: Held::default(), deadline: Some(deadline), stop };
        Link { wire, input: Input::new(INPUT_BYTES), input_limit: INPUT_BYTES, payload: Payload::default() }
    }

    /// Whether the bytes travel within TLS.
    pub fn is_tls(&self) -> bool {
        self.wire.channel.is_tls()
    }

    /// Sends what is collected; all that follows is within TLS. What was received before is forgotten: it came unprotected,
    /// and must not be taken for the client's.
    pub fn start_tls(&mut self, config: Arc<ServerConfig>) -> Result<(), End> {
        self.wire.send()?;
        self.input.clear();
        self.wire.channel.start_tls(config).map_err(End::Io)
    }

    /// The handshake is over: from here on, a client may be idle as long as it likes.
    pub fn end_handshake(&mut self) {
        self.wire.deadline = None;
    }

    /// The next `count` bytes, which must be [`LARGE_PAYLOAD_BYTES`] at most, and where replies are put. `begun` says whether
    /// these bytes continue a message.
    pub fn read(&mut self, count: usize, begun: bool) -> Result<(&[u8], &mut Output), End> {
        while self.input.len() < count {
            let begun = begun || self.input.len() > 0;
            let received = self.wire.receive(self.input.room(count, self.input_limit), begun)?;
            self.input.filled(received);
        }
        Ok((self.input.take(count), &mut self.wire.output))
    }

    /// The next bytes of a message, as an array.
    pub fn read_array<const N: usize>(&mut self, begun: bool) -> Result<[u8; N], End> {
        let (bytes, _) = self.read(N, begun)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    /// A payload of a message that has begun, and where replies are put. [`payload_done`](Link::payload_done) must follow.
    pub fn read_payload(&mut self, count: usize) -> Result<(&[u8], &mut Output), End> {
        if count < LARGE_PAYLOAD_BYTES {
            self.input_limit = INPUT_BYTES;
            return self.read(count, true);
        }
        self.input_limit = HEADERS_BYTES;
        let payload = self.payload.room(count);
        let mut filled = self.input.len().min(count);
        payload[..filled].copy_from_slice(self.input.take(filled));
        while filled < count {
            filled += self.wire.receive(&mut payload[filled..], true)?;
        }
        Ok((payload, &mut self.wire.output))
    }

    /// What [`read_payload`](Link::read_payload) gave is not needed any more.
    pub fn payload_done(&mut self) {
        self.payload.done();
    }

    /// Reads the next `count` bytes of a message that has begun, and forgets them.
    pub fn skip(&mut self, mut count: usize) -> Result<(), End> {
        while count > 0 {
            let step = count.min(LARGE_PAYLOAD_BYTES);
            self.read(step, true)?;
            count -= step;
        }
        Ok(())
    }

    /// Where replies are put.
    pub fn output(&mut self) -> &mut Output {
        &mut self.wire.output
    }

    /// Before a request is carried out: replies that have become due leave, and where too many are held back, the first is
    /// waited for.
    pub fn release(&mut self) -> Result<(), End> {
        let Wire { held, output, .. } = &mut self.wire;
        if held.is_empty() {
            return Ok(());
        }
        let mut any = held.release(Instant::now(), output);
        while let Some(due) = held.next_due().filter(|_| held.is_full()) {
            sleep_until(due);
            any |= held.release(Instant::now(), output);
        }
        if any { self.wire.send() } else { Ok(()) }
    }

    /// Makes room for a reply of `bytes`, and returns where it begins.
    pub fn begin_reply(&mut self, bytes: usize) -> Result<usize, End> {
        if !self.wire.output.is_empty() && self.wire.output.len() + bytes > OUTPUT_BYTES {
            self.wire.send()?;
        }
        Ok(self.wire.output.len())
    }

    /// The reply that began at `mark` is complete, and leaves when it is due.
    pub fn end_reply(&mut self, mark: usize, due: Option<Instant>) {
        let Wire { held, output, .. } = &mut self.wire;
        if let Some(due) = due.filter(|due| *due > Instant::now()) {
            held.hold(due, output, mark);
        }
    }

    /// Ends the connection: every reply leaves when it is due, and the client is told that nothing more will come.
    pub fn finish(&mut self, end: &End) {
        if end.is_broken() {
            return;
        }
        while let Some(due) = self.wire.held.next_due() {
            sleep_until(due);
            self.wire.held.release(Instant::now(), &mut self.wire.output);
            if self.wire.send().is_err() {
                return;
            }
        }
        if self.wire.send().is_err() {
            return;
        }
        self.wire.channel.end();
        let until = Instant::now() + LINGER;
        while Instant::now() < until {
            self.input.clear();
            let room = self.input.room(1, INPUT_BYTES);
            if !matches!(self.wire.channel.receive(room, Wait::Until(until)), Ok(1..)) {
                break;
            }
        }
    }
}

impl<S: Socket> Wire<S> {
    /// Receives at least one byte. Replies leave before it is waited for, and while it is.
    fn receive(&mut self, into: &mut [u8], begun: bool) -> Result<usize, End> {
        loop {
            if self.stop.load(Ordering::Acquire) {
                return Err(End::Stopped);
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(End::TooSlow);
            }
            if !self.held.is_empty() {
                self.held.release(Instant::now(), &mut self.output);
            }
            self.send()?;
            let wait = self.wait();
            match self.channel.receive(into, wait) {
                // To wake a thread, a stop ends what it receives.
                Ok(0) if self.stop.load(Ordering::Acquire) => return Err(End::Stopped),
                Ok(0) if begun => return Err(End::Cut),
                Ok(0) => return Err(End::Closed),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => match wait {
                    Wait::No => std::thread::yield_now(),
                    Wait::Patiently if begun => return Err(End::TooSlow),
                    _ => {}
                },
                Err(error) => return Err(End::Io(error)),
            }
        }
    }

    /// How long bytes are waited for, in view of the replies that are held back.
    fn wait(&self) -> Wait {
        if let Some(deadline) = self.deadline {
            return Wait::Until(deadline);
        }
        match self.held.next_due() {
            None => Wait::Patiently,
            Some(due) if due.saturating_duration_since(Instant::now()) > SPIN => Wait::Until(due - SPIN),
            Some(_) => Wait::No,
        }
    }

    fn send(&mut self) -> Result<(), End> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = self.channel.send(self.output.as_slice());
        self.output.clear();
        sent.map_err(|error: io::Error| match error.kind() {
            ErrorKind::WouldBlock => End::TooSlow,
            _ => End::Io(error),
        })
    }
}

fn sleep_until(due: Instant) {
    let rest = due.saturating_duration_since(Instant::now());
    if let Some(rest) = rest.checked_sub(SPIN) {
        std::thread::sleep(rest);
    }
    while Instant::now() < due {
        std::thread::yield_now();
    }
}
