//! The sections of a device's specification: every key with its type, default, range and option, a line each.

use crate::address::Striping;
use crate::blocks::AgeBase;
use crate::nand::timing::{TimeMode, TimingOptions};
use crate::quantity::{ByteSize, Share};
use crate::registry::{Grain, Kind, PolicyName};
use crate::section;

/// Latencies that a simulation can take, in ns: up to an hour.
const LATENCY: Kind = Kind::integer(0..=3_600_000_000_000);

section! {
    /// Capacity and shape of the array.
    pub struct DeviceSection("device") {
        /// What the host sees.
        logical_size: Option<ByteSize> = none "the span of the trace", Kind::bytes(1..=1 << 53, Grain::Any), option "logical-size";
        /// Over-provisioning (T-U)/U. At most one of this and `spare` is given.
        over_provisioning: Option<Share> = none "7%, unless spare is given", Kind::share(f64::MIN_POSITIVE..=10.0), option "op", excludes "device.spare";
        /// Spare factor (T-U)/T. At most one of this and `over_provisioning` is given.
        spare: Option<Share> = none "what over_provisioning says", Kind::share(f64::MIN_POSITIVE..=0.95), option "spare";
        /// Page size.
        page_size: ByteSize = "4KiB", Kind::bytes(512..=16 << 20, Grain::PowerOfTwo), option "page-size";
        /// Pages of one erase block (of one plane).
        pages_per_block: u32 = "64", Kind::power_of_two(2..=32768), unit "pages", option "pages-per-block";
        /// Channels.
        channels: u16 = "1", Kind::power_of_two(1..=256);
        /// Dies on each channel.
        dies_per_channel: u16 = "1", Kind::power_of_two(1..=256);
        /// Planes of each die.
        planes_per_die: u16 = "1", Kind::power_of_two(1..=16);
        /// Superblocks striped over all planes, or one open block per die.
        striping: Striping = "superblock", Kind::Choice(&["superblock", "per_die"]);
        /// OOB bytes of each page.
        spare_bytes: u16 = "128", Kind::integer(0..=65535), unit "bytes";
        /// Erases that a block endures before it fails; 0 for no limit.
        endurance: u32 = "0", Kind::integer(0..=u32::MAX as u64), unit "erases";
        /// Keep sequence numbers and tombstone contents, so that the map can be rebuilt from OOB (8 more bytes a page).
        recovery: bool = "false", Kind::Boolean;
    }
}

section! {
    /// The flash translation layer.
    pub struct FtlSection("ftl") {
        /// Flash translation layer.
        name: PolicyName = "page", Kind::Policy("ftls"), option "ftl";
    }
}

section! {
    /// DRAM of the controller.
    pub struct DramSection("dram") {
        /// DRAM that write buffer and map share. Without, there is no buffer and the FTL takes its own default.
        size: Option<ByteSize> = none "no buffer", Kind::bytes(1..=1 << 50, Grain::Any), option "dram";
        /// Policy of the write buffer, or `none`.
        buffer: Option<PolicyName> = none "lru where dram.size is given", Kind::Policy("buffers"), option "buffer";
        /// Share of the DRAM that the map gets, 0% to 100%, or a rule that adapts it.
        split: Option<PolicyName> = none "50%", Kind::Policy("splits"), option "split";
        /// The drive can write its buffer out when power fails, so that flushes need not.
        power_loss_protection: bool = "false", Kind::Boolean;
        /// DRAM that a demand-paged map may use.
        cache_bytes: Option<ByteSize> = none "the FTL's own cache parameter", Kind::bytes(1..=1 << 50, Grain::Any), option "cache-bytes";
    }
}

impl DramSection {
    /// Whether writes are buffered.
    pub fn has_buffer(&self) -> bool {
        self.size.is_some() && self.buffer.as_ref().is_none_or(|policy| policy.name != "none")
    }
}

section! {
    /// Which stream a page goes to.
    pub struct PlacementSection("placement") {
        /// Placement: which stream a page goes to.
        name: PolicyName = "single", Kind::Policy("placements"), option "placement";
    }
}

section! {
    /// Cleaning.
    pub struct GcSection("gc") {
        /// Victim policy: which block is cleaned.
        victim: PolicyName = "greedy", Kind::Policy("victims"), option "victim";
        /// Free blocks that the collector keeps, on top of T. The least depends on the FTL.
        floor: Option<u32> = none "the streams that collections write to", Kind::integer(1..=65_536), unit "blocks";
        /// What age counts from.
        age: AgeBase = "sealed", Kind::Choice(&["closed", "youngest", "last_invalidation", "sealed"]);
        /// Clean in idle time too (needs a queueing time model, which knows when the device is idle).
        idle: bool = "false", Kind::Boolean;
    }
}

section! {
    /// Static wear levelling.
    pub struct WearSection("wear") {
        /// Move data that rests on a little worn block to a much worn one before blocks are `wear.threshold` erases apart: from an eighth
        /// less on, one block at a time.
        leveling: bool = "true", Kind::Boolean;
        /// Allowed difference of erase counts.
        threshold: u32 = "256", Kind::integer(1..=u32::MAX as u64), unit "erases";
    }
}

section! {
    /// Latencies and the queueing model.
    pub struct TimingSection("timing") {
        /// Named set of flash latencies.
        preset: String = "mlc", Kind::Policy("timings"), option "timing";
        /// Time model.
        mode: TimeMode = "serial", Kind::Choice(&["none", "serial", "open", "closed"]);
        /// Requests outstanding in mode `closed`.
        queue_depth: u32 = "32", Kind::integer(1..=65_536), unit "requests";
        /// Copy pages inside the array (no transfer); otherwise each copy crosses the channel twice.
        copy_back: bool = "true", Kind::Boolean;
        /// Cell read, overriding the preset.
        read_ns: Option<u64> = none "the preset's", LATENCY, unit "ns";
        /// Cell program, overriding the preset.
        program_ns: Option<u64> = none "the preset's", LATENCY, unit "ns";
        /// Block erase, overriding the preset.
        erase_ns: Option<u64> = none "the preset's", LATENCY, unit "ns";
        /// Transfer of one page over the channel, overriding the preset.
        transfer_ns: Option<u64> = none "the preset's", LATENCY, unit "ns";
    }
}

impl TimingSection {
    /// What the clock needs beside the latencies.
    pub fn options(&self) -> TimingOptions {
        TimingOptions { mode: self.mode, queue_depth: self.queue_depth, copy_back: self.copy_back }
    }
}
