//! A placement of one's own, outside the registry: compared with one stream for all pages, under skewed traffic.
//!
//! ```text
//! cargo run --release --example own_policy -p isotherm
//! ```

use isotherm::address::{Geometry, Lpn, StreamId};
use isotherm::blocks::AgeBase;
use isotherm::device::{Observe, Replay};
use isotherm::ftl::page::PageFtl;
use isotherm::hotness::history::PageHistory;
use isotherm::nand::array::NandArray;
use isotherm::placement::{GcCopy, HostWrite, Placement, Single};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm::request::{Op, Request};
use isotherm::ssd::Ssd;
use isotherm::store::StoreOptions;
use isotherm::victim::{VictimContext, build_victim};

/// Logical pages of the device.
const PAGES: u32 = 1 << 16;
/// Pages of an erase block.
const PAGES_PER_BLOCK: u32 = 64;

/// Counts the writes of each page, in one byte: pages above the mean are hot. What is copied is cold.
struct ByCount {
    counts: Vec<u8>,
    writes: u64,
}

impl ByCount {
    fn count(&mut self, lpn: Lpn) -> u8 {
        let count = &mut self.counts[lpn.0 as usize];
        *count = count.saturating_add(1);
        let count = *count;
        self.writes += 1;
        // Every page loses half of its count once in eight drive writes, so that old popularity is forgotten.
        if self.writes.is_multiple_of(8 * u64::from(PAGES)) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        count
    }
}

impl Placement for ByCount {
    fn streams(&self) -> u16 {
        2
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        StreamId(u16::from(self.count(write.lpn) < 16))
    }
    fn gc(&mut self, _: &GcCopy, _: &PageHistory) -> StreamId {
        StreamId(1)
    }
    fn memory_bytes(&self) -> u64 {
        self.counts.len() as u64
    }
}

/// Write amplification of the second half of the writes.
fn write_amplification(placement: impl Placement + Send + 'static) -> f64 {
    let blocks = PAGES / PAGES_PER_BLOCK * 112 / 100;
    let context = VictimContext {
        blocks,
        pages_per_block: PAGES_PER_BLOCK,
        logical_pages: PAGES,
        seed: 1,
        ..VictimContext::default()
    };
    let victim = build_victim(&PolicyName::plain("greedy"), &context).expect("greedy takes no parameters");
    let options =
        StoreOptions { floor: 2, age: AgeBase::Closed, meta_streams: 0, meta_blocks: 0, wear_threshold: None };
    let array = NandArray::without_bytes(Geometry::simple(blocks, PAGES_PER_BLOCK, 4096), 0, false);
    let mut device = Ssd::new(PageFtl::new(array, placement, victim, PAGES, options), false);

    // Nine writes in ten go to a tenth of the pages.
    let mut random = Random::new(7);
    let write = |random: &mut Random| {
        let hot = random.chance(0.9);
        let page = if hot { random.below(u64::from(PAGES) / 10) } else { random.below(u64::from(PAGES)) };
        Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write, source: 0, durable: false }
    };
    let mut half = device.snapshot();
    for round in 0..320 {
        if round == 160 {
            half = device.snapshot();
        }
        let batch: Vec<Request> = (0..4096).map(|_| write(&mut random)).collect();
        device.submit(&batch).expect("the device has room");
    }
    device.check().expect("the laws of conservation hold");
    let end = device.snapshot();
    let programmed = end.medium.programmed().total() - half.medium.programmed().total();
    programmed as f64 / (end.host.pages_written - half.host.pages_written) as f64
}

fn main() {
    let one = write_amplification(Single);
    let own = write_amplification(ByCount { counts: vec![0; PAGES as usize], writes: 0 });
    println!("one stream {one:.3}, hot and cold by count {own:.3}");
}
