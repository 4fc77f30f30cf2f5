//! A client that writes bytes and reads bytes, as no browser would.

use isotherm_live::LivePage;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer in parts.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The value of a field; its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A connection to the page. Nothing waits longer than half a minute, so that a test that should fail does not hang.
pub fn connect(page: &LivePage) -> TcpStream {
    let stream = TcpStream::connect(page.address()).expect("the page listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends these bytes and reads the answer to its end.
pub fn exchange(page: &LivePage, request: &str) -> Answer {
    let mut stream = connect(page);
    // The page may have answered and closed before everything was sent.
    let _ = stream.write_all(request.as_bytes());
    read_answer(&mut stream)
}

/// Reads an answer to its end.
pub fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the answer ends with the connection");
    let text = String::from_utf8(bytes).expect("everything is UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("an answer has a head: {text:?}"));
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status").parse().unwrap();
    Answer { status, head: head.into(), body: body.into() }
}

/// An ordinary request.
pub fn request(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

pub fn get(page: &LivePage, target: &str) -> Answer {
    exchange(page, &request("GET", target))
}

/// A client that follows the events.
pub struct Follower(pub BufReader<TcpStream>);

impl Follower {
    pub fn start(page: &LivePage) -> Self {
        let mut stream = connect(page);
        stream.write_all(request("GET", "/events").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "the answer ends early: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("Content-Type: text/event-stream\r\n"), "{head}");
        Self(reader)
    }

    /// The next event: its name and its data. Fields without either are passed over.
    pub fn next(&mut self) -> (String, serde_json::Value) {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the events end");
            let line = line.strip_suffix('\n').expect("whole lines");
            if line.is_empty() {
                if !data.is_empty() {
                    assert!(!name.is_empty(), "every event has a name: {data}");
                    return (name, serde_json::from_str(&data).expect("data is JSON"));
                }
            } else if let Some(text) = line.strip_prefix("event: ") {
                name = text.into();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = text.into();
            } else {
                assert!(line.starts_with("retry: ") || line.starts_with(": "), "no field of an event: {line}");
            }
        }
    }

    /// The next event of this name.
    pub fn next_of(&mut self, wanted: &str) -> serde_json::Value {
        loop {
            let (name, data) = self.next();
            if name == wanted {
                return data;
            }
        }
    }
}
