//! Answers: the head that all of them carry, and how they are sent. A connection carries one answer and is closed after it.

use crate::deadline::Deadline;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a client may take to receive an answer.
const TO_RECEIVE: Duration = Duration::from_secs(10);
/// How long, and how much, a client that is still sending is listened to after its answer.
const TO_FINISH: Duration = Duration::from_secs(1);
const REST_BYTES: usize = 64 * 1024;

/// Everything comes from this server; nothing is sent anywhere, and no other page may embed it.
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Status codes (RFC 9110, section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    Timeout,
    Misdirected,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::Timeout => "408 Request Timeout",
            Self::Misdirected => "421 Misdirected Request",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }

    /// Fields that belong to the status.
    fn fields(self) -> &'static str {
        match self {
            Self::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            Self::Unavailable => "Retry-After: 1\r\n",
            _ => "",
        }
    }
}

/// What is sent as a body, by its media type.
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// Prometheus' text exposition format.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(crate) const EVENTS: &str = "text/event-stream";

/// Sends a whole answer; with `head_only` its head, which says how long the body would be.
pub(crate) fn send(stream: &TcpStream, status: Status, kind: &str, body: &[u8], head_only: bool) -> io::Result<()> {
    let length = format!("Content-Length: {}\r\n", body.len());
    let mut bytes = head(status, kind, &length).into_bytes();
    if !head_only {
        bytes.extend_from_slice(body);
    }
    Deadline::after(TO_RECEIVE).write(stream, &bytes)
}

/// Sends an answer in words.
pub(crate) fn send_words(stream: &TcpStream, status: Status, words: &str, head_only: bool) -> io::Result<()> {
    send(stream, status, TEXT, format!("{words}\n").as_bytes(), head_only)
}

/// Sends the head of an answer that ends with the connection.
pub(crate) fn begin(stream: &TcpStream, kind: &str) -> io::Result<()> {
    Deadline::after(TO_RECEIVE).write(stream, head(Status::Ok, kind, "").as_bytes())
}

/// Closes a connection so that its answer arrives: a socket that is closed with bytes unread resets the connection, and the
/// client may lose what it has not read yet.
pub(crate) fn close(stream: &TcpStream) {
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let deadline = Deadline::after(TO_FINISH);
    let (mut rest, mut buffer) = (REST_BYTES, [0; 4096]);
    while let Ok(read @ 1..) = deadline.read(stream, &mut buffer) {
        let Some(left) = rest.checked_sub(read) else { return };
        rest = left;
    }
}

fn head(status: Status, kind: &str, length: &str) -> String {
    format!(
        "HTTP/1.1 {}\r\nContent-Type: {kind}\r\n{length}{}Connection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: {POLICY}\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n",
        status.line(),
        status.fields(),
    )
}
