//! Damaged files of every form: an error or fewer requests, never a panic.

use isotherm_trace::{Format, Op, OpenOptions, Request, TimeUnit, TraceWriter, open_bytes};
use proptest::prelude::*;
use std::sync::LazyLock;

/// One file of each packing and of the binary and text forms.
static SOUND: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let ops = [Op::Read, Op::Write, Op::Trim];
    let request = |i: u64| Request {
        arrival_ns: i * 9,
        offset: i * 512,
        length: 512,
        op: ops[i as usize % 3],
        source: 0,
        durable: false,
    };
    let requests: Vec<Request> = (0..40).map(request).collect();
    let mut files = Vec::new();
    let names = ["a.csv", "a.csv.gz", "a.csv.zst", "a.parquet"];
    for name in names.into_iter().filter(|name| cfg!(feature = "parquet") || !name.ends_with(".parquet")) {
        let path = folder.path().join(name);
        let mut writer = TraceWriter::create(path.to_str().expect("a path"), false).expect("a new file");
        writer.write(&requests).expect("space");
        writer.finish().expect("space");
        files.push(std::fs::read(path).expect("what was written"));
    }
    let raw = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/raw/raw-fio-device.");
    for name in ["blktrace.bin.zst", "blkparse.txt.zst", "a.iolog.v3.zst"] {
        let whole = zstd::decode_all(&std::fs::read(format!("{raw}{name}")).expect("a capture")[..]).expect("sound");
        files.push(whole[..2000].to_vec());
    }
    files
});

fn drain(bytes: &[u8], options: &OpenOptions) {
    let Ok(mut reader) = open_bytes("damaged", bytes.into(), options) else { return };
    let mut batch = Vec::new();
    while reader.fill(&mut batch, 100).is_ok_and(|count| count > 0) {
        batch.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damage_is_an_error_at_worst(
        file in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        format in prop::option::of(0..Format::all().count()),
        skip_bad in prop::sample::select(vec![0, 5]),
    ) {
        let mut bytes = SOUND[file.index(SOUND.len())].clone();
        for (index, value) in damage {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let format = format.and_then(|index| Format::all().nth(index));
        let time_unit = Some(TimeUnit::Ns);
        drain(&bytes, &OpenOptions { format, skip_bad, time_unit, assume_writes: true, object_bytes: Some(1), ..OpenOptions::default() });
        drain(&bytes, &OpenOptions { skip_bad, ..OpenOptions::default() });
    }
}
