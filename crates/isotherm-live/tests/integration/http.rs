//! Addresses, methods, heads and hosts.

use crate::client::{connect, exchange, get, read_answer, request};
use crate::fake::Fake;
use isotherm_live::LivePage;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_page_and_everything_that_it_names_is_served_here() {
    let (_, page) = Fake::default().serve();
    let mut wanted = vec!["/".to_owned()];
    let mut served = Vec::new();
    while let Some(path) = wanted.pop() {
        let answer = get(&page, &path);
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.field("Content-Security-Policy").unwrap();
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
        for text in ["http:", "https:", "//cdn", "style=\"", "onclick"] {
            let body = answer.body.replace("http://www.w3.org/2000/svg", "");
            assert!(!body.contains(text), "{path} holds {text}, which the policy forbids");
        }
        let quoted = answer.body.split('"').filter(|text| text.starts_with("/assets/") || text.starts_with("./"));
        for text in quoted {
            let address = text.replacen("./", "/assets/", 1);
            if !served.contains(&address) && !wanted.contains(&address) {
                wanted.push(address);
            }
        }
        served.push(path);
    }
    assert!(served.len() >= 8, "{served:?}");
}

#[test]
fn head_is_get_without_the_body() {
    let (_, page) = Fake::default().serve();
    for path in ["/", "/stats", "/metrics", "/cells?most=4", "/assets/page.css"] {
        let (get, head) = (get(&page, path), exchange(&page, &request("HEAD", path)));
        assert_eq!((head.status, head.head.as_str(), head.body.as_str()), (200, get.head.as_str(), ""), "{path}");
        assert_eq!(head.field("Content-Length").unwrap(), get.body.len().to_string());
    }
    let events = exchange(&page, &request("HEAD", "/events"));
    assert_eq!((events.status, events.field("Content-Type"), &*events.body), (200, Some("text/event-stream"), ""));
}

#[test]
fn what_is_not_there_is_not_found() {
    let (_, page) = Fake::default().serve();
    for path in ["/nothing", "/assets/", "/assets/../page.css", "/stats/", "//", "/favicon.ico"] {
        let answer = get(&page, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("/metrics"), "it says what there is: {}", answer.body);
    }
}

#[test]
fn anything_that_changes_state_is_refused() {
    let (_, page) = Fake::default().serve();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"] {
        let answer = exchange(&page, &request(method, "/stats"));
        assert_eq!((answer.status, answer.field("Allow")), (405, Some("GET, HEAD")), "{method}");
        assert_eq!(answer.body, "anything that changes state is refused here\n");
    }
}

#[test]
fn a_client_that_is_still_sending_gets_its_answer() {
    let (_, page) = Fake::default().serve();
    let mut stream = connect(&page);
    let half = "x".repeat(15_000);
    write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000\r\n\r\n").unwrap();
    for _ in 0..2 {
        // The answer is sent meanwhile; a page that closed at once would break the connection under the client's hands.
        std::thread::sleep(Duration::from_millis(200));
        stream.write_all(half.as_bytes()).expect("the page still listens");
    }
    assert_eq!(read_answer(&mut stream).status, 405);
}

#[test]
fn only_names_of_ours_are_answered() {
    let (_, page) = Fake::default().serve();
    let of = |host: &str| exchange(&page, &format!("GET /stats HTTP/1.1\r\n{host}\r\n")).status;
    assert_eq!(of(&format!("Host: {}\r\n", page.address())), 200);
    assert_eq!(of("Host: localhost:1\r\n"), 200, "a tunnel changes the port");
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"] {
        assert_eq!(of(&format!("Host: {host}\r\n")), 421, "{host}");
    }
    assert_eq!(of(""), 400);
    assert_eq!(of("Host: localhost\r\nHost: evil.example\r\n"), 400);
}

#[test]
fn numbers_are_those_of_the_source() {
    let (_, page) = Fake::default().serve();
    let stats = get(&page, "/stats");
    assert_eq!(stats.field("Content-Type"), Some("application/json"));
    let stats: serde_json::Value = serde_json::from_str(&stats.body).unwrap();
    assert_eq!(stats["host"]["pages_written"], 42);

    let metrics = get(&page, "/metrics");
    assert_eq!(metrics.field("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(metrics.body.ends_with("isotherm_host_pages_written_total 42\n"));

    let cells = |query: &str| serde_json::from_str::<serde_json::Value>(&get(&page, query).body).unwrap();
    let all = cells("/cells");
    assert_eq!((&all["units"], &all["units_per_cell"]), (&16.into(), &1.into()));
    assert_eq!(all["by_state"], serde_json::json!([1, 1, 13, 1]));
    assert_eq!(all["spreads"]["valid_share"][2], 0, "the bad block, of 2/16, holds no data");
    assert_eq!(all["spreads"]["valid_share"][1], 1, "the open one does, of 1/16");
    assert_eq!(all["state"].as_array().unwrap()[..4], [0, 1, 3, 2]);
    let coarse = cells("/cells?most=2");
    assert_eq!((&coarse["units"], &coarse["units_per_cell"]), (&16.into(), &8.into()));
    assert_eq!(coarse["state"], serde_json::json!([2, 2]));
    assert_eq!(coarse["numbers"]["valid_share"][1], 0.719, "the mean of 8/16 to 15/16");
    for query in ["/cells?most=0", "/cells?most=20001", "/cells?most=x", "/cells?least=1", "/cells?most=-1"] {
        assert_eq!(get(&page, query).status, 400, "{query}");
    }
}

#[test]
fn other_machines_read_only_where_that_is_allowed() {
    let address = ([0, 0, 0, 0], 0).into();
    let refused = LivePage::start(address, Arc::new(Fake::default()), false).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("allow remote readers"), "{refused}");
    let page = LivePage::start(address, Arc::new(Fake::default()), true).unwrap();
    let local = page.address().port();
    let answer = |host: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", local)).unwrap();
        write!(stream, "GET /stats HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        read_answer(&mut stream).status
    };
    assert_eq!((answer("127.0.0.1"), answer("evil.example")), (200, 421));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let (_, page) = Fake::default().serve();
    let error = LivePage::start(page.address(), Arc::new(Fake::default()), false).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&page.address().to_string()), "{error}");
}

#[test]
fn colours_are_those_of_the_reports() {
    let read = |path: &str| {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        text.lines().filter(|line| line.starts_with("  ") && line.trim().starts_with("--")).map(str::to_owned).collect()
    };
    let ours: Vec<String> = read("src/assets/page.css");
    assert_eq!(ours, read("../isotherm-report/src/assets/page.css") as Vec<String>);
    assert_eq!(ours.len(), 8, "four lines for light, four for dark");
}
