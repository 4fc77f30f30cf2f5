//! Small drives, a disk that writes down all that is done to it, and what a drive must hold.

pub mod journal;
pub mod model;

use isotherm::spec::DeviceSpec;
use isotherm_drive::Drive;
use journal::Journal;

/// Bytes of a page of the small drives.
pub const PAGE: u64 = 512;
/// Their logical pages.
pub const PAGES: u64 = 160;

/// Every FTL, with policies, buffers and splits of the DRAM.
pub const DEVICES: &[&[&str]] = &[
    &["ftl=page", "placement=sepbit", "gc.victim=cost_benefit"],
    &["ftl=page", "placement=single", "gc.victim=greedy"],
    &["ftl=page", "placement=dac", "gc.victim=mdc"],
    &["ftl=page", "placement=host_gc", "gc.victim=fifo", "wear.leveling=true", "wear.threshold=2"],
    &["ftl=dftl:cache=1KiB", "placement=host_gc"],
    &["ftl=dftl:cache=1KiB", "placement=single", "gc.victim=cost_hotness"],
    &["ftl=asa:cache=24KiB,samples=64"],
    &["ftl=fast"],
    &["ftl=page", "dram.size=8KiB", "dram.buffer=lru"],
    &["ftl=dftl", "dram.size=24KiB", "dram.split=least_cost:interval=50"],
    &["ftl=fast", "dram.size=24KiB", "dram.buffer=bplru", "dram.split=fixed:share=50%"],
    &["ftl=page", "dram.size=8KiB", "dram.buffer=lru", "dram.power_loss_protection=true"],
    &["ftl=page", "placement=host_gc", "dram.size=16KiB", "dram.buffer=bplru", "dram.power_loss_protection=true"],
    &["ftl=dftl", "dram.size=24KiB", "dram.split=least_cost:interval=50", "dram.power_loss_protection=true"],
    &["ftl=fast", "dram.size=24KiB", "dram.split=fixed:share=50%", "dram.power_loss_protection=true"],
];

/// A small device.
pub fn spec(sets: &[&str]) -> DeviceSpec {
    let size = format!("device.logical_size={}", PAGES * PAGE);
    let common = ["device.page_size=512", "device.pages_per_block=8", "device.over_provisioning=60%", size.as_str()];
    let sets: Vec<String> = common.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    DeviceSpec::from_toml("", &sets).unwrap()
}

/// The bytes of an empty image of such a device.
pub fn blank(sets: &[&str]) -> Vec<u8> {
    let spec = spec(sets);
    let journal = Journal::without_steps(vec![0; Drive::image_bytes(&spec, 5).unwrap() as usize]);
    Drive::create_on(&journal, spec, 5).unwrap();
    journal.bytes()
}
