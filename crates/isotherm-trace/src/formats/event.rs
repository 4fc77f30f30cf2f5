//! What blktrace and its relatives share: one request is several events, of which one kind is chosen, and one event may
//! stand for a flush and a write.

use crate::options::BlktraceAction;
use crate::row::Fault;
use crate::sink::Sink;
use isotherm::request::Op;

/// Kinds of events, by letter, that a trace may be read by.
const LETTERS: [u8; 3] = [b'Q', b'D', b'C'];

/// Chooses events of one kind, and remembers which kinds there were.
pub(crate) struct Events {
    action: u8,
    seen: [u64; 3],
}

impl Events {
    pub(crate) fn new(action: BlktraceAction) -> Self {
        Self { action: action.letter() as u8, seen: [0; 3] }
    }

    /// Whether an event of this letter stands for its request.
    #[inline(always)]
    pub(crate) fn chosen(&mut self, letter: u8) -> bool {
        if let Some(kind) = LETTERS.iter().position(|&known| known == letter) {
            self.seen[kind] += 1;
        }
        letter == self.action
    }

    /// Why a trace has no requests: it records other events.
    pub(crate) fn why_empty(&self) -> Option<(String, String)> {
        let (other, seen) = LETTERS.iter().zip(self.seen).max_by_key(|(_, seen)| *seen)?;
        (seen > 0).then(|| {
            let (action, other) = (char::from(self.action), char::from(*other));
            (
                format!("no request can be read from its {action} events, and it has {seen} {other} events"),
                format!("choose the events that it has with --action {other}"),
            )
        })
    }
}

/// The request of one event.
pub(crate) struct Event<'a> {
    pub(crate) device: &'a [u8],
    pub(crate) arrival_ns: u64,
    /// A flush comes first.
    pub(crate) flush: bool,
    /// `None` where nothing is transferred.
    pub(crate) op: Option<Op>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Event<'_> {
    /// Hands the event's requests on: a flush, a transfer, both (a write with a barrier before it) or neither.
    #[inline(always)]
    pub(crate) fn push(self, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        if self.flush {
            sink.push(Op::Flush, self.arrival_ns, 0, 0)?;
        }
        match self.op {
            Some(op) if self.length > 0 => {
                let volume = sink.volumes.find(self.device)?;
                sink.push_on(volume, op, self.arrival_ns, self.offset, self.length)
            }
            _ => Ok(()),
        }
    }
}
