//! What the log hands to its segment machine, recorded: the same machine in a simulation, with that clock and without bytes, must decide the
//! same ([`replay`]).
//!
//! A recording begins when a volume is mounted, with the machine's options, its seed and where it stands ([`Start`]). Then come, in order, the
//! blocks that wait, metadata included, with file, index, kind and time; what dies; what chooses how much is written; and between them
//! what the machine decided: victims, and every write with its segment, its group and its blocks. As text it is a line of JSON an event
//! ([`recorder`]).

mod event;
pub mod recorder;
pub mod replay;
mod start;
mod without_bytes;

pub(crate) use event::heats;
pub use event::{Digest, Event, Heats, Name, Outcome, Scope};
pub use start::Start;

/// Is told what happens to a log's machine. Called under the log's lock.
pub trait Observer: std::fmt::Debug + Send {
    /// Something happened. The first event is [`Event::Start`].
    fn on_event(&mut self, event: Event);
}
