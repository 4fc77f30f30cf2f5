//! Heads of requests (RFC 9112): read in bounded time and space, and refused where anything about them is doubtful.

use crate::deadline::Deadline;
use crate::host;
use crate::response::Status;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

/// The longest head that is read, in bytes.
const MOST_BYTES: usize = 8 * 1024;
/// The most fields of a head.
const MOST_FIELDS: usize = 64;
/// How long a client may take to send it.
const TO_SEND: Duration = Duration::from_secs(5);

/// A request that may be answered: `GET` or `HEAD`, to a name of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// The target up to the question mark.
    pub path: String,
    /// What follows it; empty without one.
    pub query: String,
    /// Only the head of the answer is wanted.
    pub head_only: bool,
}

/// A request that is not answered as it wishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// With this status, and words that say what to do.
    Answer(Status, &'static str),
    /// The client is gone.
    Gone,
}

/// Reads the head of a request.
pub(crate) fn read(stream: &TcpStream) -> Result<Request, Refusal> {
    let local = stream.local_addr().map_err(|_| Refusal::Gone)?.ip();
    let deadline = Deadline::after(TO_SEND);
    let mut buffer = [0; MOST_BYTES];
    let mut length = 0;
    loop {
        match deadline.read(stream, &mut buffer[length..]) {
            Ok(0) => return Err(Refusal::Gone),
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(Refusal::Answer(Status::Timeout, "the head of a request must be sent within 5 seconds"));
            }
            Err(_) => return Err(Refusal::Gone),
        }
        if let Some(request) = parse(&buffer[..length], local)? {
            return Ok(request);
        }
        if length == MOST_BYTES {
            return Err(TOO_LARGE);
        }
    }
}

const TOO_LARGE: Refusal =
    Refusal::Answer(Status::HeadTooLarge, "the head of a request has at most 8 KiB and 64 fields");
const MALFORMED: Refusal = Refusal::Answer(Status::BadRequest, "this is no HTTP/1.1 request with one Host field");

/// None while it is incomplete.
fn parse(head: &[u8], local: IpAddr) -> Result<Option<Request>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
        Err(_) => return Err(MALFORMED),
    }
    let mut hosts = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(MALFORMED) };
    if !std::str::from_utf8(host.value).is_ok_and(|name| host::is_ours(name, local)) {
        let words = "this page is not known by that name: open it by the address it is served on";
        return Err(Refusal::Answer(Status::Misdirected, words));
    }
    let head_only = match parsed.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Refusal::Answer(Status::MethodNotAllowed, "anything that changes state is refused here")),
    };
    let target = parsed.path.filter(|target| target.starts_with('/')).ok_or(MALFORMED)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Request { path: path.into(), query: query.into(), head_only }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Result<Option<Request>, Refusal> {
        parse(head.as_bytes(), "127.0.0.1".parse().unwrap())
    }

    #[test]
    fn a_request_has_a_path_and_a_query() {
        let request = parsed("GET /cells?most=5 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap().unwrap();
        assert_eq!(request, Request { path: "/cells".into(), query: "most=5".into(), head_only: false });
        assert!(parsed("HEAD / HTTP/1.0\r\nHost: [::1]:80\r\n\r\n").unwrap().unwrap().head_only);
        assert_eq!(parsed("GET / HTTP/1.1\r\nHost: loc"), Ok(None));
    }

    #[test]
    fn what_is_doubtful_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
            "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
            "\u{1}\u{2}\r\n\r\n",
        ] {
            assert_eq!(parsed(head), Err(MALFORMED), "{head}");
        }
        let fields = "a: b\r\n".repeat(MOST_FIELDS);
        assert_eq!(parsed(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")), Err(TOO_LARGE));
    }
}
