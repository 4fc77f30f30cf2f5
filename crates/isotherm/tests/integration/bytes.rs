//! Devices that keep their bytes, as specifications describe them: every FTL, with buffers and splits, returns what was written,
//! counts what a device without bytes counts, and is found again when it was left or when the store of its content failed.

use isotherm::address::{BlockId, Geometry, Lpn, Ppn};
use isotherm::build::{Array, Environment, HeldDevice, build, build_over, build_with_bytes, in_memory};
use isotherm::cause::Cause;
use isotherm::device::{BlockDevice, DeviceError};
use isotherm::nand::Oob;
use isotherm::nand::content::Bytes;
use isotherm::nand::payload::{AnyPayload, Kept, Payload};
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use proptest::prelude::*;
use std::any::Any;
use std::io::ErrorKind;

const PAGE: u64 = 512;
const PAGES: u64 = 192;

/// Every FTL, and every way of having a buffer before it.
const DEVICES: [&[&str]; 8] = [
    &["ftl=page", "placement=sepbit", "gc.victim=cost_benefit"],
    &["ftl=page", "dram.size=8KiB", "dram.buffer=lru"],
    &["ftl=dftl:cache=1KiB", "placement=host_gc"],
    &["ftl=dftl", "dram.size=24KiB", "dram.split=least_cost:interval=50"],
    &["ftl=asa:cache=24KiB,samples=64"],
    &["ftl=fast"],
    &["ftl=fast", "dram.size=24KiB", "dram.buffer=bplru", "dram.split=fixed:share=50%"],
    &["ftl=page", "device.channels=2", "timing.mode=open", "gc.idle=true"],
];

fn spec(sets: &[&str]) -> DeviceSpec {
    let common = ["device.page_size=512", "device.pages_per_block=8", "device.over_provisioning=60%"];
    let sets: Vec<String> = common.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    DeviceSpec::from_toml("", &sets).unwrap()
}

fn environment() -> Environment {
    Environment { logical_bytes: PAGES * PAGE, seed: 3, ..Environment::default() }
}

/// Requests that begin and end anywhere.
fn requests(length: usize) -> impl Strategy<Value = Vec<Request>> {
    let op = prop_oneof![
        6 => Just(Op::Write),
        2 => Just(Op::Read),
        1 => Just(Op::Trim),
        1 => Just(Op::WriteZeroes),
        1 => Just(Op::Flush)
    ];
    let request = (op, 0..PAGES * PAGE, 1..5 * PAGE, 0..2_000_000u64, proptest::bool::weighted(0.1));
    proptest::collection::vec(request, length).prop_map(|drawn| {
        let mut now_ns = 0;
        let request = |(op, offset, length, wait_ns, durable): (Op, u64, u64, u64, bool)| {
            now_ns += wait_ns;
            let (offset, length) = if op == Op::Flush { (0, 0) } else { (offset, length.min(PAGES * PAGE - offset)) };
            let durable = durable && !matches!(op, Op::Read | Op::Flush);
            Request { arrival_ns: now_ns, offset, length, op, source: 0, durable }
        };
        drawn.into_iter().map(request).collect()
    })
}

/// What the device must hold.
struct Model {
    bytes: Vec<u8>,
    /// What it held before a trim that is not flushed.
    before: Vec<u8>,
    version: u8,
}

impl Model {
    fn new() -> Self {
        let bytes = vec![0; (PAGES * PAGE) as usize];
        Self { before: bytes.clone(), bytes, version: 0 }
    }

    /// Carries out a request on both.
    fn serve(&mut self, device: &mut dyn BlockDevice, request: &Request) -> Result<(), DeviceError> {
        device.arrive(request.arrival_ns, request.source);
        if request.op.discards() {
            self.before.clone_from(&self.bytes);
        }
        let range = request.offset as usize..(request.offset + request.length) as usize;
        match request.op {
            Op::Write => {
                let data = self.data(request);
                device.write(request.offset, &data, request.durable)?;
                self.version = self.version.wrapping_add(1);
                self.bytes[range].copy_from_slice(&data);
            }
            Op::Read => {
                let mut out = vec![0xEE; range.len()];
                device.read(request.offset, &mut out)?;
                assert!(
                    out == self.bytes[range],
                    "bytes {} to {} differ",
                    request.offset,
                    request.offset + request.length
                );
            }
            Op::Trim => {
                device.trim(request.offset, request.length, request.durable)?;
                let (first, last) = whole_pages(&range);
                self.bytes[first..last.max(first)].fill(0);
            }
            Op::WriteZeroes => {
                device.write_zeroes(request.offset, request.length, request.durable)?;
                self.bytes[range].fill(0);
            }
            Op::Flush => device.flush()?,
        }
        if request.durable || request.op == Op::Flush {
            self.before.clone_from(&self.bytes);
        }
        Ok(())
    }

    /// What the next write writes.
    fn data(&self, request: &Request) -> Vec<u8> {
        let version = self.version.wrapping_add(1);
        (request.offset..request.offset + request.length).map(|at| version ^ (at / 7) as u8).collect()
    }

    /// `request` failed, and power with it: each page of it holds what it held, or what it would hold. Takes over what is found.
    fn settle(&mut self, device: &mut dyn BlockDevice, request: &Request) {
        let range = request.offset as usize..(request.offset + request.length) as usize;
        let mut after = self.bytes.clone();
        match request.op {
            Op::Write => after[range.clone()].copy_from_slice(&self.data(request)),
            Op::Trim => {
                let (first, last) = whole_pages(&range);
                after[first..last.max(first)].fill(0);
            }
            Op::WriteZeroes => after[range.clone()].fill(0),
            Op::Flush => after.clone_from(&self.before),
            Op::Read => {}
        }
        let page = PAGE as usize;
        for first in (0..self.bytes.len()).step_by(page) {
            let mut found = vec![0; page];
            device.read(first as u64, &mut found).unwrap();
            let whole = first..first + page;
            assert!(found == self.bytes[whole.clone()] || found == after[whole.clone()], "byte {first}: {request:?}");
            self.bytes[whole].copy_from_slice(&found);
        }
    }

    fn check(&self, device: &mut dyn BlockDevice) {
        let mut out = vec![0; self.bytes.len()];
        device.read(0, &mut out).unwrap();
        assert!(out == self.bytes, "the device holds something else");
        device.check().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn bytes_come_back_and_count_as_requests_do(requests in requests(600)) {
        for sets in DEVICES {
            let spec = spec(sets);
            let mut with_bytes = build_with_bytes(&spec, &environment()).unwrap();
            let mut model = Model::new();
            for request in &requests {
                model.serve(&mut *with_bytes, request).unwrap();
            }
            // Recovery data is always kept with bytes; it changes no counter.
            let mut simulated = build(&spec, &environment()).unwrap();
            simulated.submit(&requests).unwrap();
            let (bytes, none) = (with_bytes.snapshot(), simulated.snapshot());
            prop_assert_eq!(bytes.host, none.host, "{:?}", sets);
            prop_assert_eq!(bytes.medium, none.medium, "{:?}", sets);
            prop_assert_eq!(bytes.collector, none.collector, "{:?}", sets);
            prop_assert_eq!(bytes.time, none.time, "{:?}", sets);
            prop_assert_eq!(with_bytes.latencies().write.max(), simulated.latencies().write.max(), "{:?}", sets);
            model.check(&mut *with_bytes);
        }
    }

    #[test]
    fn a_device_whose_store_failed_is_found_again(requests in requests(400), operations in 0..900u64) {
        // Behind a buffer more than the last request may be lost, which the tests of buffers look at.
        for sets in DEVICES.iter().filter(|sets| !sets.iter().any(|set| set.starts_with("dram"))) {
            // Trims are durable after a flush, and here after each of them.
            let flush = Request { arrival_ns: 0, offset: 0, length: 0, op: Op::Flush, source: 0, durable: false };
            let requests: Vec<Request> =
                requests.iter().flat_map(|request| [*request, Request { arrival_ns: request.arrival_ns, ..flush }]).collect();
            let payload = |geometry: &Geometry| -> AnyPayload { Box::new(Failing { inner: in_memory(geometry), left: operations }) };
            let mut device = match build_over(&spec(sets), &environment(), |g| Ok(Array::New(payload(g)))) {
                Ok(device) => device,
                // A map on flash is written when the device is made.
                Err(error) => {
                    prop_assert!(operations < 100 && error.to_string().contains("cannot be kept"), "{error}");
                    continue;
                }
            };
            let (mut model, failed) = serve_until_failure(&mut *device, &requests);
            let mut array = device.into_array();
            let payload: &mut dyn Any = &mut **array.payload_mut();
            payload.downcast_mut::<Failing>().unwrap().left = u64::MAX;
            let mut device = build_over(&spec(sets), &environment(), |_| Ok(Array::Left(Box::new(array)))).unwrap();
            if let Some(at) = failed {
                model.settle(&mut *device, &requests[at]);
            }
            model.check(&mut *device);
        }
    }

    #[test]
    fn a_device_that_was_left_is_found_again(requests in requests(400)) {
        for sets in DEVICES {
            let spec = spec(sets);
            let mut model = Model::new();
            let mut device = build_over(&spec, &environment(), |geometry| Ok(Array::New(in_memory(geometry)))).unwrap();
            for request in &requests {
                model.serve(&mut *device, request).unwrap();
            }
            device.flush().unwrap();
            let array = device.into_array();
            let mut device = build_over(&spec, &environment(), |_| Ok(Array::Left(Box::new(array)))).unwrap();
            model.check(&mut *device);
        }
    }
}

/// The whole pages in a range: first byte, and one past the last.
fn whole_pages(range: &std::ops::Range<usize>) -> (usize, usize) {
    let page = PAGE as usize;
    (range.start.div_ceil(page) * page, range.end / page * page)
}

/// A store that fails once a number of operations are done: a full disk, say.
struct Failing {
    inner: AnyPayload,
    left: u64,
}

impl Failing {
    fn fate(&mut self) -> Kept {
        self.left = self.left.checked_sub(1).ok_or(ErrorKind::StorageFull)?;
        Ok(())
    }
}

impl Payload for Failing {
    type Content = Bytes;

    fn needs_recovery(&self) -> bool {
        true
    }
    fn program(&mut self, at: Ppn, oob: Oob, page: &[u8], cause: Cause) -> Kept {
        self.fate()?;
        self.inner.program(at, oob, page, cause)
    }
    fn read(&self, at: Ppn, oob: Oob, out: &mut [u8]) -> Kept {
        self.inner.read(at, oob, out)
    }
    fn copy(&mut self, source: Ppn, target: Ppn, oob: Oob, cause: Cause) -> Kept {
        self.fate()?;
        self.inner.copy(source, target, oob, cause)
    }
    fn program_bytes(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<bool, ErrorKind> {
        self.fate()?;
        self.inner.program_bytes(at, oob, content, cause)
    }
    fn read_bytes(&self, at: Ppn, oob: Oob, out: &mut Vec<u8>) -> Result<bool, ErrorKind> {
        self.inner.read_bytes(at, oob, out)
    }
    fn erase(&mut self, block: BlockId, erases: u32, cause: Cause) -> Kept {
        self.fate()?;
        self.inner.erase(block, erases, cause)
    }
    fn flush(&mut self) -> Kept {
        self.inner.flush()
    }
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, &[u8])>) -> Kept {
        self.fate()?;
        self.inner.save_frame(frame, held)
    }
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

/// Serves requests until the store fails, and says which request failed.
fn serve_until_failure(device: &mut dyn HeldDevice, requests: &[Request]) -> (Model, Option<usize>) {
    let mut model = Model::new();
    for (at, request) in requests.iter().enumerate() {
        if let Err(error) = model.serve(device, request) {
            assert_eq!(error, DeviceError::Payload(ErrorKind::StorageFull));
            assert_eq!(device.read(0, &mut [0; 8]), Err(error), "a stopped device answers nothing");
            return (model, Some(at));
        }
    }
    (model, None)
}
