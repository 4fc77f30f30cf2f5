//! Devices that keep their bytes, as specifications describe them: every FTL, with buffers and splits, returns what was written,
//! counts what a device without bytes counts, goes on after the store of its content failed, and is found again.

use isotherm::address::{Geometry, Ppn};
use isotherm::build::{Array, Environment, Finish, assemble, build, build_with_bytes};
use isotherm::device::{BlockDevice, DeviceError};
use isotherm::ftl::Ftl;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::content::Bytes;
use isotherm::nand::payload::{HeapBytes, Kept, Payload};
use isotherm::nand::timing::Timed;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::ssd::Ssd;
use proptest::prelude::*;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    Environment { logical_bytes: PAGES * PAGE, seed: 3, future: None }
}

/// Requests that begin and end anywhere.
fn requests(length: usize) -> impl Strategy<Value = Vec<Request>> {
    let op = prop_oneof![6 => Just(Op::Write), 2 => Just(Op::Read), 1 => Just(Op::Trim), 1 => Just(Op::Flush)];
    let request = (op, 0..PAGES * PAGE, 1..5 * PAGE, 0..2_000_000u64);
    proptest::collection::vec(request, length).prop_map(|drawn| {
        let mut now_ns = 0;
        let request = |(op, offset, length, wait_ns): (Op, u64, u64, u64)| {
            now_ns += wait_ns;
            let (offset, length) = if op == Op::Flush { (0, 0) } else { (offset, length.min(PAGES * PAGE - offset)) };
            Request { arrival_ns: now_ns, offset, length, op }
        };
        drawn.into_iter().map(request).collect()
    })
}

/// What the device must hold.
struct Model {
    bytes: Vec<u8>,
    version: u8,
}

impl Model {
    fn new() -> Self {
        Self { bytes: vec![0; (PAGES * PAGE) as usize], version: 0 }
    }

    /// Carries out a request on both; what a failed request left behind is taken over, page by page, after a check that no page
    /// holds anything but what it held before or what was written.
    fn serve(&mut self, device: &mut dyn BlockDevice, request: &Request) -> Result<(), DeviceError> {
        device.arrive(request.arrival_ns);
        let range = request.offset as usize..(request.offset + request.length) as usize;
        match request.op {
            Op::Write => {
                self.version = self.version.wrapping_add(1);
                let data: Vec<u8> = range.clone().map(|at| self.version ^ (at / 7) as u8).collect();
                let result = device.write(request.offset, &data);
                if result.is_ok() {
                    self.bytes[range].copy_from_slice(&data);
                } else {
                    self.take_over(device, &range, &data);
                }
                return result;
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
                device.trim(request.offset, request.length)?;
                let page = PAGE as usize;
                let (first, last) = (range.start.div_ceil(page) * page, range.end / page * page);
                if first < last {
                    self.bytes[first..last].fill(0);
                }
            }
            Op::Flush => device.flush()?,
        }
        Ok(())
    }

    fn take_over(&mut self, device: &mut dyn BlockDevice, range: &std::ops::Range<usize>, data: &[u8]) {
        let page = PAGE as usize;
        for first in (range.start / page * page..range.end).step_by(page) {
            let mut found = vec![0; page];
            device.read(first as u64, &mut found).expect("what cannot be written can be read");
            let (from, to) = (first.max(range.start), (first + page).min(range.end));
            let old = self.bytes[first..first + page].to_vec();
            let mut new = old.clone();
            new[from - first..to - first].copy_from_slice(&data[from - range.start..to - range.start]);
            assert!(found == old || found == new, "a page is torn after a failed write");
            self.bytes[first..first + page].copy_from_slice(&found);
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
    fn a_device_goes_on_after_its_store_failed(requests in requests(400), period in 5..60u64) {
        for sets in DEVICES {
            let (left, failures) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
            let payload = |geometry: &Geometry| Failing {
                inner: HeapBytes::new(geometry.pages(), geometry.log2_page_bytes),
                left: left.clone(),
                failures: failures.clone(),
            };
            let found = assemble(&spec(sets), &environment(), |g| Ok(Array::New(payload(g))), Serve {
                requests: &requests,
                left: &left,
                period,
            });
            found.unwrap();
            prop_assert!(failures.load(Ordering::Relaxed) > 0, "nothing failed: the test tests nothing");
        }
    }

    #[test]
    fn a_device_that_was_left_is_found_again(requests in requests(400)) {
        for sets in DEVICES {
            let spec = spec(sets);
            let payload = |geometry: &Geometry| HeapBytes::new(geometry.pages(), geometry.log2_page_bytes);
            let (model, array) =
                assemble(&spec, &environment(), |g| Ok(Array::New(payload(g))), Leave(&requests)).unwrap();
            let mut device = assemble(&spec, &environment(), |_| Ok(Array::Left(array)), isotherm::build::ForBytes).unwrap();
            model.check(&mut *device);
        }
    }
}

/// A store that fails when a count runs out: a full disk, say. The next try succeeds.
struct Failing {
    inner: HeapBytes,
    left: Arc<AtomicU64>,
    failures: Arc<AtomicU64>,
}

impl Failing {
    fn fate(&self) -> Kept {
        match self.left.load(Ordering::Relaxed) {
            0 => {
                self.left.store(u64::MAX, Ordering::Relaxed);
                self.failures.fetch_add(1, Ordering::Relaxed);
                Err(ErrorKind::StorageFull)
            }
            u64::MAX => Ok(()),
            left => {
                self.left.store(left - 1, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

impl Payload for Failing {
    type Content = Bytes;
    const NEEDS_RECOVERY: bool = true;

    fn program(&mut self, at: Ppn, page: &[u8]) -> Kept {
        self.fate()?;
        self.inner.program(at, page)
    }
    fn read(&self, at: Ppn, out: &mut [u8]) -> Kept {
        self.inner.read(at, out)
    }
    fn copy(&mut self, source: Ppn, target: Ppn) -> Kept {
        self.fate()?;
        self.inner.copy(source, target)
    }
    fn program_bytes(&mut self, at: Ppn, content: &[u8]) -> Result<bool, ErrorKind> {
        self.fate()?;
        self.inner.program_bytes(at, content)
    }
    fn read_bytes(&self, at: Ppn, out: &mut Vec<u8>) -> Result<bool, ErrorKind> {
        self.inner.read_bytes(at, out)
    }
    fn erase(&mut self, first: Ppn, pages: u32) -> Kept {
        self.fate()?;
        self.inner.erase(first, pages)
    }
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

/// Serves requests while the store fails now and then, and checks what is held.
struct Serve<'a> {
    requests: &'a [Request],
    left: &'a AtomicU64,
    period: u64,
}

impl<M: Medium<Content = Bytes>> Finish<M> for Serve<'_> {
    type Device = ();
    fn finish<F: Ftl<Medium = M> + Send + 'static>(self, mut ssd: Ssd<F>) {
        let mut model = Model::new();
        for (index, request) in self.requests.iter().enumerate() {
            if index as u64 % self.period == 0 {
                self.left.store(index as u64 % 11, Ordering::Relaxed);
            }
            // A trim that failed halfway may have taken some pages: it is carried out again.
            while let Err(error) = model.serve(&mut ssd, request) {
                assert_eq!(error, DeviceError::Payload(ErrorKind::StorageFull), "{request:?}");
            }
        }
        self.left.store(u64::MAX, Ordering::Relaxed);
        model.check(&mut ssd);
    }
}

/// Serves requests, flushes, and gives back what lies on flash.
struct Leave<'a>(&'a [Request]);

type TimedArray = Timed<NandArray<HeapBytes>>;

impl Finish<TimedArray> for Leave<'_> {
    type Device = (Model, NandArray<HeapBytes>);
    fn finish<F: Ftl<Medium = TimedArray> + Send + 'static>(self, mut ssd: Ssd<F>) -> Self::Device {
        let mut model = Model::new();
        for request in self.0 {
            model.serve(&mut ssd, request).unwrap();
        }
        BlockDevice::flush(&mut ssd).unwrap();
        (model, ssd.into_ftl().into_medium().into_inner())
    }
}
