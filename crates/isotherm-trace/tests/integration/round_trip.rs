//! Canonical forms convert into each other without loss, whatever the requests and however the bytes arrive.

use isotherm_trace::{Op, OpenOptions, Request, TraceWriter, open, open_bytes, push_csv_line};
use proptest::prelude::*;

fn request() -> impl Strategy<Value = Request> {
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Trim, Op::Flush]);
    let number = prop_oneof![0u64..10, 0u64..1 << 33, Just((1 << 51) - 1)];
    (op, any::<u64>(), number, 1u64..1 << 32).prop_map(|(op, arrival_ns, offset, length)| match op {
        Op::Flush => Request { arrival_ns, offset: 0, length: 0, op, source: 0, durable: false },
        _ => Request { arrival_ns, offset, length, op, source: 0, durable: false },
    })
}

/// At least one request, in order of time.
fn trace() -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(request(), 1..200).prop_map(|mut requests| {
        requests.sort_by_key(|request| request.arrival_ns);
        requests
    })
}

fn read_file(path: &str, batch: usize) -> Vec<Request> {
    let mut reader = open(path, &OpenOptions::default()).unwrap();
    let mut requests = Vec::new();
    while reader.fill(&mut requests, batch).unwrap() > 0 {}
    requests
}

fn csv_of(requests: &[Request]) -> Vec<u8> {
    let mut text = b"ts_ns,op,offset,length\n".to_vec();
    requests.iter().for_each(|request| push_csv_line(&mut text, request, false));
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_form_keeps_every_request(requests in trace(), batch in 1usize..300) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let mut before = None;
        let names = ["a.csv", "b.parquet", "c.csv.zst", "d.parquet", "e.csv.gz", "f.csv"];
        for name in names.into_iter().filter(|name| cfg!(feature = "parquet") || !name.ends_with(".parquet")) {
            let mut writer = TraceWriter::create(&path(name), false).unwrap();
            // Each form is written from what the form before it was read as.
            let source = before.map_or_else(|| requests.clone(), |before: &str| read_file(&path(before), batch));
            source.chunks(batch).for_each(|part| writer.write(part).unwrap());
            writer.finish().unwrap();
            before = Some(name);
        }
        prop_assert_eq!(read_file(&path("f.csv"), batch), requests);
        prop_assert_eq!(std::fs::read(path("a.csv")).unwrap(), std::fs::read(path("f.csv")).unwrap());
    }

    #[test]
    fn any_batch_size_gives_the_same_requests(requests in trace(), batch in 1usize..300) {
        let mut reader = open_bytes("text", csv_of(&requests).into(), &OpenOptions::default()).unwrap();
        let mut found = Vec::new();
        loop {
            let before = found.len();
            let count = reader.fill(&mut found, batch).unwrap();
            prop_assert!(count <= batch && found.len() == before + count);
            if count == 0 {
                break;
            }
        }
        prop_assert_eq!(found, requests);
    }

    /// zstd frames of any cut hand the scanner pieces of any size.
    #[test]
    fn any_cut_of_the_stream_gives_the_same_requests(requests in trace(), cuts in prop::collection::vec(1usize..400, 1..20)) {
        let text = csv_of(&requests);
        let (mut packed, mut rest) = (Vec::new(), &text[..]);
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            packed.extend(zstd::encode_all(piece, 1).unwrap());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let mut reader = open_bytes("packed", packed.into(), &OpenOptions::default()).unwrap();
        let mut found = Vec::new();
        while reader.fill(&mut found, 64).unwrap() > 0 {}
        prop_assert_eq!(found, requests);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn several_row_groups_and_a_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.parquet").to_str().unwrap().to_owned();
    let requests: Vec<Request> = (0..600_000)
        .map(|i| Request {
            arrival_ns: i * 7,
            offset: i * 4096,
            length: 4096,
            op: Op::Write,
            source: 0,
            durable: false,
        })
        .collect();
    let mut writer = TraceWriter::create(&path, false).unwrap();
    writer.write(&requests).unwrap();
    writer.finish().unwrap();
    assert!(read_file(&path, 5000) == requests);
    let whole = std::fs::read(&path).unwrap();
    for bytes in [&whole[..whole.len() - 20], &whole[..8], &b"PAR1"[..]] {
        let error = open_bytes("cut.parquet", bytes.into(), &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.contains("cannot read Parquet"), "{error}");
    }
}

#[test]
fn a_file_is_replaced_only_when_told_and_only_when_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv").to_str().unwrap().to_owned();
    std::fs::write(&path, "precious").unwrap();
    assert!(TraceWriter::create(&path, false).err().unwrap().to_string().contains("--force"));
    let request = Request { arrival_ns: 0, offset: 0, length: 512, op: Op::Write, source: 0, durable: false };
    let mut writer = TraceWriter::create(&path, true).unwrap();
    writer.write(&[request]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "an abandoned file was left behind");
    let mut writer = TraceWriter::create(&path, true).unwrap();
    writer.write(&[request]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read_file(&path, 10), [request]);
    let error = TraceWriter::create("/no/such/folder/a.csv", false).err().unwrap().to_string();
    assert!(error.contains("create the folder"), "{error}");
    assert!(TraceWriter::create("a.txt", false).err().unwrap().to_string().contains(".parquet"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_its_files_are_recognised_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet").to_str().unwrap().to_owned();
    let written = TraceWriter::create(&path, false).err().unwrap();
    let read = open_bytes("a", b"PAR1 and more"[..].into(), &OpenOptions::default()).err().unwrap();
    for error in [written, read] {
        assert!(matches!(error, isotherm_trace::TraceError::NoParquet { .. }), "{error}");
        assert!(error.to_string().contains("feature `parquet`"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file was left behind");
}

#[test]
fn who_asks_is_kept_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let request = |i: u64| Request {
        arrival_ns: i,
        offset: i * 4096,
        length: 4096,
        op: Op::Write,
        source: (i % 3) as u16,
        durable: false,
    };
    let requests: Vec<Request> = (0..1000).map(request).collect();
    for form in ["csv.zst", "parquet"].into_iter().filter(|form| cfg!(feature = "parquet") || *form != "parquet") {
        let path = folder.path().join("streams").with_extension(form);
        let mut writer = TraceWriter::create(path.to_str().unwrap(), false).unwrap().with_streams().unwrap();
        writer.write(&requests).unwrap();
        writer.finish().unwrap();
        let mut read = Vec::new();
        let mut reader = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
        while reader.fill(&mut read, 64).unwrap() > 0 {}
        assert_eq!(read, requests, "{form}");
        assert!(reader.names_streams(), "{form}");
    }
}
