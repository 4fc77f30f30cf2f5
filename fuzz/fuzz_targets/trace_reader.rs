//! Arbitrary bytes through detection and every reader: an error or requests within the limits, never a panic, and no
//! more memory than the reader's buffers.
#![no_main]

use isotherm_trace::{BlktraceAction, END_BYTES_MAX, Format, Op, OpenOptions, Sort, TimeUnit, open_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    // The reader turns panics of the Parquet decoder into errors. The default hook would abort before it can; a panic that
    // is not caught still ends the run, as it may not cross into the fuzzer.
    let _ = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
}, |data: &[u8]| {
    let [format, switches, bytes @ ..] = data else { return };
    let formats: Vec<Format> = Format::all().collect();
    let options = OpenOptions {
        // The numbers beyond the last format leave it to detection.
        format: formats.get(usize::from(*format) % (formats.len() + 8)).copied(),
        skip_bad: if switches & 1 == 0 { 0 } else { 1000 },
        assume_writes: true,
        time_unit: [None, Some(TimeUnit::Us)][usize::from(switches >> 1 & 1)],
        blktrace_action: [BlktraceAction::Issue, BlktraceAction::Queue][usize::from(switches >> 2 & 1)],
        object_bytes: Some(512),
        sort: [Sort::Declared, Sort::Memory, Sort::Window(3), Sort::Refuse][usize::from(switches >> 3 & 3)],
        ..OpenOptions::default()
    };
    let Ok(mut reader) = open_bytes("fuzz", bytes.into(), &options) else { return };
    let (mut batch, mut latest_ns) = (Vec::new(), 0);
    while let Ok(count) = reader.fill(&mut batch, 1000) {
        assert_eq!(count, batch.len());
        if count == 0 {
            break;
        }
        for request in batch.drain(..) {
            assert!(request.arrival_ns >= latest_ns, "times run backwards");
            assert!(request.offset + request.length <= END_BYTES_MAX);
            assert!(request.length > 0 || request.op == Op::Flush);
            latest_ns = request.arrival_ns;
        }
    }
});
