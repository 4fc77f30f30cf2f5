//! Each format by a small sample made for it, every field checked; the packings; what is detected.

use isotherm_trace::{
    BlktraceAction, Format, Op, OpenOptions, Request, Sort, TimeUnit, TraceError, VOLUME_ALIGNMENT, open_bytes,
};

/// Reads a whole trace, in batches of a size that divides nothing.
fn read_with(bytes: &[u8], options: &OpenOptions) -> Result<(&'static str, Vec<Request>), TraceError> {
    let mut reader = open_bytes("sample", bytes.into(), options)?;
    let mut requests = Vec::new();
    while reader.fill(&mut requests, 7)? > 0 {}
    // Who asks has a test of its own.
    requests.iter_mut().for_each(|request| request.source = 0);
    Ok((reader.format(), requests))
}

fn read(bytes: &[u8]) -> (&'static str, Vec<Request>) {
    read_with(bytes, &OpenOptions::default()).unwrap()
}

fn request(arrival_ns: u64, op: Op, offset: u64, length: u64) -> Request {
    Request { arrival_ns, offset, length, op, source: 0, durable: false }
}

/// The sample is detected as `format` and reads as `expected`.
fn check(format: &str, text: &str, expected: &[Request]) {
    check_with(format, text.as_bytes(), &OpenOptions::default(), expected);
    let crlf = text.replace('\n', "\r\n");
    check_with(format, crlf.as_bytes(), &OpenOptions::default(), expected);
}

fn check_with(format: &str, bytes: &[u8], options: &OpenOptions, expected: &[Request]) {
    let (found, requests) = read_with(bytes, options).unwrap();
    assert_eq!(found, format);
    assert_eq!(requests, expected);
}

use Op::{Flush, Read, Trim, Write};

#[test]
fn canonical_csv_with_and_without_header() {
    let expected = [
        request(5, Write, 4096, 8192),
        request(5, Flush, 0, 0),
        request(1_000_000_007, Read, 512, 1),
        request(u64::MAX, Trim, 0, 1 << 50),
    ];
    let rows = "5,W,4096,8192\n5,F,0,0\n1000000007,R,512,1\n18446744073709551615,D,0,1125899906842624";
    check("csv", rows, &expected);
    check("csv", &format!("ts_ns,op,offset,length\n{rows}\n\n"), &expected);
}

#[test]
fn spc_lays_units_end_to_end() {
    let text = "1,16,4096,w,0.000001\n0,20,8192,R,0.5\n0,0,512,W,2\n";
    let base = VOLUME_ALIGNMENT;
    check(
        "spc",
        text,
        &[
            request(0, Write, base + 16 * 512, 4096),
            request(499_999_000, Read, 20 * 512, 8192),
            request(1_999_999_000, Write, 0, 512),
        ],
    );
}

#[test]
fn msr_counts_ticks_of_100_ns() {
    let text =
        "128166391024154329,prxy,0,Write,1105182720,1024,1514\n128166391024310068,prxy,0,Read,1105183744,2048,2024\n";
    check("msr", text, &[request(0, Write, 1_105_182_720, 1024), request(15_573_900, Read, 1_105_183_744, 2048)]);
}

#[test]
fn disksim_takes_bit_0_of_the_flags() {
    let text = "15849.28847 0 6198696 8 0\n15850.59734 0 16 2048 1\n15851 0 24 1 a\n";
    check(
        "disksim",
        text,
        &[
            request(0, Write, 6_198_696 * 512, 4096),
            request(1_308_870, Read, 8192, 1 << 20),
            request(1_711_530, Write, 24 * 512, 512),
        ],
    );
}

#[test]
fn mqsim_asks_for_the_unit_of_time() {
    let text = b"938513000 0 264719034 16 0\n938828000 0 24 32 1\n";
    let error = read_with(text, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--time-unit ns") && error.contains("mqsim"), "{error}");
    for (unit, factor) in [(TimeUnit::Ns, 1), (TimeUnit::Us, 1000)] {
        let options = OpenOptions { time_unit: Some(unit), ..OpenOptions::default() };
        let expected = [request(0, Write, 264_719_034 * 512, 8192), request(315_000 * factor, Read, 24 * 512, 16384)];
        check_with("mqsim", text, &options, &expected);
    }
}

#[test]
fn blkparse_text_by_action() {
    let text = "  8,16   3        4     0.000011950  3645  Q  WS 4938888 + 256 [java]
  8,16   3        5     0.000026421  3645  D  WS 4938888 + 256 [java]
  8,16   3        6     0.000030000  3645  m   N cfq3645S  / alloced
  8,16   1        1     0.000020000    12  D  FN [kworker/1:1]
  8,16   1        2     0.000040000    12  D  DS 16 + 8 [fstrim]
  8,16   1        3     0.000040000    12  D RAM 24 + 1 [cat of two]
  8,16   1        3     0.000041000    12  D   R 36 (12 00 00 00 24 00) [udev]
  8,16   3        7     0.001795683  3557  C  WS 4938888 + 256 [0]
  8,16   3        7     0.001795684  3557  C  FN 0 [0]
  8,16   3        8     0.002000000  3557  Q FWFSM 800 + 8 [java]
CPU3 (8,16):
 Reads Queued:           1,        8KiB\t Writes Queued:           1,      128KiB

Total (8,16):
Events (8,16): 10 entries
";
    let offset = 4_938_888 * 512;
    let at = |action| OpenOptions { blktrace_action: action, ..OpenOptions::default() };
    check(
        "blkparse",
        text,
        &[
            request(0, Flush, 0, 0),
            request(6421, Write, offset, 131_072),
            request(20_000, Trim, 8192, 4096),
            request(20_000, Read, 24 * 512, 512),
        ],
    );
    check_with(
        "blkparse",
        text.as_bytes(),
        &at(BlktraceAction::Queue),
        &[
            request(0, Write, offset, 131_072),
            request(1_988_050, Flush, 0, 0),
            request(1_988_050, Write, 800 * 512, 4096),
        ],
    );
    check_with(
        "blkparse",
        text.as_bytes(),
        &at(BlktraceAction::Complete),
        &[request(0, Write, offset, 131_072), request(1, Flush, 0, 0)],
    );
}

#[test]
fn a_trace_of_other_events_names_them() {
    let text = b"  8,16   3        4     0.000011950  3645  Q  WS 4938888 + 256 [java]\n";
    let error = read_with(text, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("1 Q events") && error.contains("--action Q"), "{error}");
}

#[test]
fn fio_iolog_version_2_adds_waits_up() {
    let text = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 8192 4096\n/dev/a wait 250 0\n/dev/a read 0 512\n/dev/a wait 50 0\n\
                /dev/a trim 4096 65536\n/dev/a sync 0 0\n/dev/a datasync\n/dev/a close\n";
    check(
        "iolog",
        text,
        &[
            request(0, Write, 8192, 4096),
            request(250_000, Read, 0, 512),
            request(300_000, Trim, 4096, 65536),
            request(300_000, Flush, 0, 0),
            request(300_000, Flush, 0, 0),
        ],
    );
}

#[test]
fn fio_iolog_version_3_has_times() {
    let text = "fio version 3 iolog\n60 /dev/b add\n577 /dev/b open\n586 /dev/b write 8192 4096\n790 /dev/a read 512 512\n800 /dev/b sync 0 0\n";
    let base = VOLUME_ALIGNMENT;
    check(
        "iolog",
        text,
        &[request(0, Write, base + 8192, 4096), request(204_000, Read, 512, 512), request(214_000, Flush, 0, 0)],
    );
}

#[test]
fn alibaba_counts_microseconds() {
    let text = "419,W,8792731648,16384,1577808144360767\n32,R,4096,512,1577808144360768\n";
    check("alibaba", text, &[request(0, Write, (1 << 20) + 8_792_731_648, 16384), request(1000, Read, 4096, 512)]);
}

#[test]
fn tencent_counts_seconds_and_sectors_and_is_sorted() {
    let text = "1538323200,4247200,128,1,1058\n1538323199,8,16,0,1058\n";
    check("tencent", text, &[request(0, Read, 4096, 8192), request(1_000_000_000, Write, 4_247_200 * 512, 65536)]);
}

#[test]
fn fiu_takes_process_names_with_blanks() {
    let text = "89966522969723 4270 rpc.mountd 18579576 8 W 6 0 d6c75ba46e82326fefa545b57a12e221\n\
                89966527950584 4253 two words 16 16 R 6 0\n";
    check("fiu", text, &[request(0, Write, 18_579_576 * 512, 4096), request(4_980_861, Read, 8192, 8192)]);
}

#[test]
fn systor_is_sorted() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                1456095145.126285000,,W,0,4096,512\n";
    check("systor", text, &[request(0, Write, 4096, 512), request(6_791_000, Read, 899_056_122_368, 131_072)]);
}

#[test]
fn wiscsee_takes_issues_and_exponents() {
    let text = "909 D read 0 4096 0.000000000 0 False\n0 C read 0 4096 1.5e-05 1.5e-05 False\n\
                909 D write 134217728 8192 2.25e-05 0.02 True\n909 D discard 4096 4096 1.0 0.02 True\n";
    check(
        "wiscsee",
        text,
        &[
            request(0, Read, 0, 4096),
            request(22_500, Write, 134_217_728, 8192),
            request(1_000_000_000, Trim, 4096, 4096),
        ],
    );
    let complete = OpenOptions { blktrace_action: BlktraceAction::Complete, ..OpenOptions::default() };
    check_with("wiscsee", text.as_bytes(), &complete, &[request(0, Read, 0, 4096)]);
}

#[test]
fn biotracer_takes_odd_flags_as_writes() {
    let times = "1398396860.1\t\t1398396860.2\t\t1398396860.3";
    let text = format!(
        "4043872\t\t96\t\t49152\t\t5\t\t1398396860.168065791\t\t{times}\n8\t\t8\t\t4096\t\t4\t\t1398396860.168065792\t\t{times}\n"
    );
    check("biotracer", &text, &[request(0, Write, 4_043_872 * 512, 49152), request(1, Read, 4096, 4096)]);
}

/// A blktrace record: time, sector, bytes, action, device, and a payload.
fn blktrace_record(time: u64, sector: u64, bytes: u32, action: u32, device: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = 0x6561_7407u32.to_le_bytes().to_vec();
    record.extend(1u32.to_le_bytes());
    record.extend(time.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for word in [bytes, action, 77, device, 0] {
        record.extend(word.to_le_bytes());
    }
    record.extend(0u16.to_le_bytes());
    record.extend((payload.len() as u16).to_le_bytes());
    record.extend(payload);
    record
}

const ISSUE: u32 = 7 | 1 << 22;
const WRITE_BIT: u32 = 1 << 17;

#[test]
fn blktrace_binary_skips_payloads_and_other_actions() {
    let sda = 8 << 20;
    let bytes = [
        blktrace_record(1000, 16, 4096, 1 | 1 << 20 | WRITE_BIT, sda, b""),
        blktrace_record(1500, 0, 0, 1 << 26, sda, b"process name"),
        blktrace_record(2000, 16, 4096, ISSUE | WRITE_BIT, sda, b"payload"),
        blktrace_record(3000, 24, 512, ISSUE | 1 << 16, sda | 1, b""),
        blktrace_record(2500, 32, 1024, ISSUE | 1 << 29 | WRITE_BIT, sda, b""),
        blktrace_record(4000, 0, 0, ISSUE | 1 << 18, sda, b""),
    ]
    .concat();
    let expected = [
        request(0, Write, 8192, 4096),
        request(500, Trim, 16384, 1024),
        request(1000, Read, VOLUME_ALIGNMENT + 24 * 512, 512),
        request(2000, Flush, 0, 0),
    ];
    check_with("blktrace", &bytes, &OpenOptions::default(), &expected);
    let error = |bytes: &[u8]| read_with(bytes, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error(&bytes[..bytes.len() - 1]).contains("cut short"));
    assert!(error(&bytes[..48 + 50]).contains("cut short"));
    let mut damaged = bytes.clone();
    damaged[48] = 0;
    assert!(error(&damaged).contains("record 2 (byte 48)"), "{}", error(&damaged));
    let big_endian: Vec<u8> = bytes.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
    assert!(error(&big_endian).contains("big-endian"), "{}", error(&big_endian));
}

#[test]
fn vscsi_records() {
    let record = |length: u32, command: u16, block: u64, time: u64| {
        let mut record = Vec::new();
        for word in [9, length, 1] {
            record.extend(word.to_le_bytes());
        }
        record.extend(command.to_le_bytes());
        record.extend(0x0100u16.to_le_bytes());
        record.extend(block.to_le_bytes());
        record.extend(time.to_le_bytes());
        record
    };
    let bytes = [
        record(4096, 0x2a, 8, 1_000_000),
        record(512, 0x28, 1, 1_000_001),
        record(1024, 0x8a, 2, 1_000_003),
        record(2048, 0x88, 3, 1_000_003),
    ];
    check_with(
        "vscsi",
        &bytes.concat(),
        &OpenOptions::default(),
        &[
            request(0, Write, 4096, 4096),
            request(1000, Read, 512, 512),
            request(3000, Write, 1024, 1024),
            request(3000, Read, 1536, 2048),
        ],
    );
}

#[test]
fn oracle_general_is_refused_without_being_told() {
    let record = |time: u32, object: u64, size: u32, next: i64| {
        let mut record = time.to_le_bytes().to_vec();
        record.extend(object.to_le_bytes());
        record.extend(size.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    };
    let bytes = [record(100, 7, 4096, 2), record(101, 9, 512, -1), record(103, 7, 4096, -1)].concat();
    let mut options = OpenOptions::default();
    let error = read_with(&bytes, &options).unwrap_err().to_string();
    assert!(error.contains("oracle_general") && error.contains("--assume-writes"), "{error}");
    options.assume_writes = true;
    let error = read_with(&bytes, &options).unwrap_err().to_string();
    assert!(error.contains("--object-bytes"), "{error}");
    options.object_bytes = Some(4096);
    check_with(
        "oracle_general",
        &bytes,
        &options,
        &[
            request(0, Write, 7 * 4096, 4096),
            request(1_000_000_000, Write, 9 * 4096, 512),
            request(3_000_000_000, Write, 7 * 4096, 4096),
        ],
    );
}

#[test]
fn packings_are_told_by_content() {
    let text = b"ts_ns,op,offset,length\n1,W,0,4096\n2,R,4096,512\n";
    let expected = read(text);
    assert_eq!(expected.0, "csv");
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    assert_eq!(read(&zstd), expected);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(read(&gzip), expected);
    let halves = [zstd::encode_all(&text[..30], 1).unwrap(), zstd::encode_all(&text[30..], 1).unwrap()].concat();
    assert_eq!(read(&halves), expected);
    for cut in [&zstd[..zstd.len() - 3], &gzip[..gzip.len() - 3]] {
        let error = read_with(cut, &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains("truncated"), "{error}");
    }
    // A file of several pieces whose last one was cut, as when its writer was killed: what came before can be read.
    let second = zstd::encode_all(&text[34..], 1).unwrap();
    let pieces = [&zstd::encode_all(&text[..34], 1).unwrap()[..], &second[..second.len() - 3]].concat();
    let error = read_with(&pieces, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("truncated after line 2; ") && error.contains("--skip-bad 1"), "{error}");
    let (_, requests) = read_with(&pieces, &OpenOptions { skip_bad: 1, ..OpenOptions::default() }).unwrap();
    assert_eq!(requests, expected.1[..1]);
    for (magic, name) in [(&b"\xfd7zXZ\0"[..], "xz"), (b"BZh91AY", "bzip2"), (b"PK\x03\x04", "zip")] {
        assert!(read_with(magic, &OpenOptions::default()).unwrap_err().to_string().contains(name));
    }
    let named = open_bytes("trace.csv.zst", text[..].into(), &OpenOptions::default());
    assert!(named.err().unwrap().to_string().contains("wrong magic number"));
}

/// Opens `text` and expects an error that holds each of `parts`.
#[track_caller]
fn refused(text: &str, options: &OpenOptions, parts: &[&str]) {
    let error = read_with(text.as_bytes(), options).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "\"{part}\" is not in: {error}");
    }
}

#[test]
fn bad_rows_are_named_by_file_line_column_and_field() {
    let options = OpenOptions::default();
    let rows = |row: &str| format!("ts_ns,op,offset,length\n1,W,0,4096\n{row}\n9,W,0,512\n");
    for (row, parts) in [
        ("2,W,-4096,512", &["sample: line 3, column 5: offset \"-4096\" is negative", "--skip-bad"][..]),
        ("2,W,0,", &["column 7: length", "missing"]),
        ("2,W,,512", &["column 5: offset is empty"]),
        ("2,W,0", &["length is missing"]),
        ("2,X,0,512", &["column 3: operation \"X\" is unknown", "R, W, D, Z, F"]),
        ("2,W,0,512,7", &["column 11", "stream \"7\" is unknown"]),
        ("2,W,0,0", &["length is 0"]),
        ("2,W,0x10,512", &["offset \"0x10\" is not a number"]),
        ("2,W,4503599627370496,512", &["limit of 4503599627370496 bytes (4 PiB)", "check the units"]),
        ("2,W,18446744073709551615,512", &["limit of"]),
        ("2,W,18446744073709551616,512", &["does not fit 64 bits"]),
        ("99999999999999999999999,W,0,512", &["time", "does not fit 64 bits"]),
        ("2,W,0,4294967297", &["length of 4294967297 bytes is over the limit"]),
        ("0,W,0,512", &["column 1: time runs backwards by 1 ns", "--sort"]),
        ("\0\u{1}garbage", &["time", "is not a number"]),
    ] {
        refused(&rows(row), &options, parts);
    }
    let lenient = OpenOptions { skip_bad: 1, ..OpenOptions::default() };
    let mut reader = open_bytes("sample", rows("2,X,0,512").into_bytes().into(), &lenient).unwrap();
    let mut requests = Vec::new();
    while reader.fill(&mut requests, 100).unwrap() > 0 {}
    assert_eq!((requests.len(), reader.skipped()), (2, 1));
    refused(&rows("2,X,0,512\n3,Y,0,512"), &lenient, &["line 4", "1 rows before were skipped"]);
}

#[test]
fn headings_are_known_by_their_names_and_others_are_told() {
    let rows = "1,W,0,4096\n2,R,4096,512\n";
    let options = OpenOptions::default();
    for heading in ["ts_ns,op,offset,length\n", "\u{feff}ts_ns,op,offset,length\r\n", "TS_NS, Op, Offset, Length\n", ""]
    {
        let (_, requests) = read_with(format!("{heading}{rows}").as_bytes(), &options).unwrap();
        assert_eq!(requests, [request(1, Write, 0, 4096), request(2, Read, 4096, 512)], "{heading:?}");
    }
    // A mark alone does not hide what the only line is.
    let (_, requests) = read_with("\u{feff}1,W,0,4096\n".as_bytes(), &options).unwrap();
    assert_eq!(requests, [request(1, Write, 0, 4096)]);
    let lenient = OpenOptions { skip_bad: 1, ..OpenOptions::default() };
    for heading in ["time,op,sector,count\n", "# my workload of 2026\nts_ns,op,offset,length\n"] {
        let file = format!("{heading}{rows}");
        refused(&file, &options, &["line 1", "no heading of csv", "ts_ns,op,offset,length"]);
        // It is no request that is lost.
        let mut reader = open_bytes("sample", file.into_bytes().into(), &lenient).unwrap();
        assert_eq!((reader.fill(&mut Vec::new(), 9).unwrap(), reader.skipped()), (2, 0));
    }
}

#[test]
fn times_with_fractions_need_a_unit() {
    let file = "0.25,W,0,4096\n0.5,R,4096,512\n";
    refused(file, &OpenOptions::default(), &["time \"0.25\" is no whole number", "--time-unit: s", "read as csv"]);
    refused(
        "+5,W,0,4096\n",
        &OpenOptions { format: Some("csv".parse().unwrap()), ..OpenOptions::default() },
        &["\"+5\" is not a number"],
    );
    let seconds = OpenOptions { time_unit: Some(TimeUnit::S), ..OpenOptions::default() };
    let (_, requests) = read_with(file.as_bytes(), &seconds).unwrap();
    assert_eq!(requests, [request(250_000_000, Write, 0, 4096), request(500_000_000, Read, 4096, 512)]);
}

#[test]
fn files_that_are_no_traces_are_refused() {
    let options = OpenOptions::default();
    refused("", &options, &["empty"]);
    refused("ts_ns,op,offset,length\n", &options, &["empty", "no requests"]);
    refused("once upon a time\nthere was a disk\n", &options, &["not recognised", "once upon a time", "--format"]);
    let named = OpenOptions { format: Some("msr".parse::<Format>().unwrap()), ..OpenOptions::default() };
    refused("1,W,0,4096\n", &named, &["line 1, column"]);
    assert!("nonsense".parse::<Format>().unwrap_err().contains("blkparse"));
}

#[test]
fn disorder_is_repaired_within_the_window_or_refused() {
    let systor = |times: &[u64]| times.iter().map(|t| format!("{t}.0,0.1,W,0,{},512\n", t * 512)).collect::<String>();
    let times = [5, 3, 4, 1, 2, 9, 8, 7, 6];
    let at = |sort| OpenOptions { sort, ..OpenOptions::default() };
    let arrivals = |options: &OpenOptions| -> Vec<u64> {
        let (_, requests) = read_with(systor(&times).as_bytes(), options).unwrap();
        requests.iter().map(|r| r.arrival_ns / 1_000_000_000 + 1).collect()
    };
    for sort in [Sort::Declared, Sort::Memory, Sort::Window(4), Sort::Window(1000)] {
        assert_eq!(arrivals(&at(sort)), [1, 2, 3, 4, 5, 6, 7, 8, 9], "{sort:?}");
    }
    refused(&systor(&times), &at(Sort::Refuse), &["line 2, column 1", "runs backwards by 2000000000 ns"]);
    refused(&systor(&times), &at(Sort::Window(1)), &["farther than the sorting window of 1", "--sort memory"]);
    let csv = "5,W,0,512\n3,W,512,512\n";
    refused(csv, &at(Sort::Declared), &["line 2", "--sort memory"]);
    check_with("csv", csv.as_bytes(), &at(Sort::Memory), &[request(3, Write, 512, 512), request(5, Write, 0, 512)]);
}

#[test]
fn reordered_requests_are_counted_once() {
    let text = "3.0,0.1,W,0,0,512\n1.0,0.1,W,0,0,512\n2.0,0.1,W,0,0,512\n4.0,0.1,W,0,0,512\n";
    let mut reader = open_bytes("sample", text.as_bytes().into(), &OpenOptions::default()).unwrap();
    while reader.fill(&mut Vec::new(), 1).unwrap() > 0 {}
    assert_eq!(reader.reordered(), 2);
}

#[test]
fn one_volume_of_several_is_read_alone() {
    let trace = "1,0,8,0,7\n2,16,8,1,12\n3,8,8,1,7\n";
    let options = |volume: &str| OpenOptions { volume: Some(volume.to_owned()), ..OpenOptions::default() };
    let read = |options: &OpenOptions| {
        let mut reader = open_bytes("tencent.csv", trace.as_bytes().into(), options)?;
        let mut batch = Vec::new();
        while reader.fill(&mut batch, 100)? > 0 {}
        Ok::<_, TraceError>(batch.iter().map(|request| (request.arrival_ns, request.offset)).collect::<Vec<_>>())
    };
    let tencent = |volume| OpenOptions { format: Some("tencent".parse().unwrap()), ..options(volume) };
    assert_eq!(read(&tencent("12")).unwrap(), [(0, 16 * 512)]);
    assert_eq!(read(&tencent("7")).unwrap(), [(0, 0), (2_000_000_000, 8 * 512)]);
    let unknown = read(&tencent("8")).unwrap_err().to_string();
    assert!(unknown.contains("no volume \"8\"") && unknown.contains("\"7\", \"12\""), "{unknown}");
    let csv = OpenOptions { format: Some("csv".parse().unwrap()), ..options("7") };
    let refused = open_bytes("a.csv", b"0,W,0,4096\n".as_slice().into(), &csv).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("has no volumes"), "{refused}");
}

/// Who asks: processes where the format has them, else volumes.
#[test]
fn sources_are_kept_in_the_order_in_which_they_appear() {
    let sources = |format: &str, trace: &str| {
        let options = OpenOptions { format: Some(format.parse().unwrap()), ..OpenOptions::default() };
        let mut reader = open_bytes("sample", trace.as_bytes().into(), &options).unwrap();
        let mut requests = Vec::new();
        while reader.fill(&mut requests, 7).unwrap() > 0 {}
        requests.iter().map(|request| request.source).collect::<Vec<_>>()
    };
    let fiu = "1 40 kjournald 8 8 W 8 1 a\n2 7 my shell 16 8 W 8 1 b\n3 40 kjournald 24 8 W 8 1 c\n";
    assert_eq!(sources("fiu", fiu), [0, 1, 0]);
    assert_eq!(sources("tencent", "1,0,8,1,9\n2,16,8,1,5\n3,8,8,1,9\n"), [0, 1, 0]);
    assert_eq!(sources("csv", "ts_ns,op,offset,length,stream\n1,W,0,512,s3\n2,W,0,512,s1\n3,W,0,512,s3\n"), [0, 1, 0]);
    assert_eq!(sources("csv", "1,W,0,512\n"), [0]);
}
