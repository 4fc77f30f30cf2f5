//! Server-sent events (HTML standard, section 9.2): one long answer that grows by an event whenever something is published.

use crate::board::Board;
use crate::deadline::Deadline;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A client that takes an event no faster than this is dropped; it comes back and gets the history.
const TO_TAKE: Duration = Duration::from_secs(10);
/// Without news for so long a comment is sent, which finds out whether the client is still there.
const QUIET: Duration = Duration::from_secs(5);
/// How soon a browser comes back, in milliseconds.
const RETRY: &[u8] = b"retry: 1000\n\n";
const COMMENT: &[u8] = b": no news\n\n";

/// An event as it is sent. `data` is JSON in one line.
pub(crate) fn frame(name: &str, data: &str) -> Arc<str> {
    debug_assert!(!data.contains(['\n', '\r']), "a line break ends a field of an event");
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// Sends events until the client or the page goes. The head has been sent.
pub(crate) fn send(stream: &TcpStream, board: &Board) -> io::Result<()> {
    let (mut follower, past) = board.follow();
    Deadline::after(TO_TAKE).write(stream, RETRY)?;
    for frame in past {
        Deadline::after(TO_TAKE).write(stream, frame.as_bytes())?;
    }
    while let Ok(news) = follower.next(QUIET) {
        if news.is_empty() {
            Deadline::after(TO_TAKE).write(stream, COMMENT)?;
        }
        for frame in news {
            Deadline::after(TO_TAKE).write(stream, frame.as_bytes())?;
        }
    }
    Ok(())
}
