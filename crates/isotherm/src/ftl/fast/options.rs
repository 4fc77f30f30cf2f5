//! What can be set: the registry's entry, what a specification asks, and what a device is built with.

use super::FastDesign;
use crate::ftl::{FtlPlan, ReadDesign};
use crate::registry::{Entry, Kind, Parameter, Parameters, SpecError, parse_integer};

/// All spare blocks, a number of blocks, or a share of the data blocks.
const LOG_BLOCKS: &[Kind] =
    &[Kind::word(&["all"]), Kind::integer(1..=u32::MAX as u64), Kind::share(f64::MIN_POSITIVE..=10.0)];

pub(in crate::ftl) const ENTRY: Entry<ReadDesign> = Entry {
    name: "fast",
    summary: "hybrid: data blocks mapped by block, log blocks by page, merged when the log is full",
    paper: "Lee et al., FAST (ACM TECS 2007)",
    memory: "4 bytes a logical page",
    parameters: &[
        Parameter::any("log_blocks", LOG_BLOCKS, "all").help(
            "random-write log blocks, a number or a share of the data blocks; one for sequential writes is beside them",
        ),
        Parameter::boolean("in_place_first_write", "false")
            .help("write a page that holds no data straight to its data block where NAND's order allows"),
    ],
    build: |parameters, wishes| {
        // Without a buffer the map of fewer log blocks fits any DRAM, and the number counts.
        if parameters.is_given("log_blocks") && wishes.dram.is_some_and(|dram| dram.has_buffer) {
            wishes.refuse_beside_dram(&parameters.place("log_blocks"))?;
        }
        Ok(FastDesign::read(parameters).into())
    },
};

/// Free blocks that FAST needs beside data and log blocks: the target of a merge, a log block opened for tombstones while
/// the victim still stands, and one for a program that fails meanwhile.
pub const RESERVE_BLOCKS: u32 = 3;

/// How many random-write log blocks a specification asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LogShare {
    /// All spare blocks but the sequential one.
    All,
    /// A number.
    Blocks(u32),
    /// A share of the data blocks, above 0; at least one block.
    OfDataBlocks(f64),
}

/// How a FAST device is built.
#[derive(Clone, Copy, Debug)]
pub struct FastOptions {
    /// Random-write log blocks, at least 1 and at most [`FastFtl::log_blocks_max`](super::FastFtl::log_blocks_max).
    pub log_blocks: u32,
    /// Blocks beyond data and log blocks, at least [`RESERVE_BLOCKS`]. Those beyond that stand in for blocks that fail.
    pub reserve: u32,
    /// Write a page that holds no data straight to its place where NAND's order allows.
    pub in_place_first_write: bool,
    /// Difference of erase counts that static wear levelling allows; `None` switches it off.
    pub wear_threshold: Option<u32>,
}

impl FastDesign {
    /// Reads the checked parameters.
    fn read(parameters: &Parameters<'_>) -> Self {
        let log_blocks = match parse_integer(parameters.text("log_blocks")) {
            _ if parameters.is("log_blocks", "all") => LogShare::All,
            Some(blocks) => LogShare::Blocks(blocks as u32),
            None => LogShare::OfDataBlocks(parameters.share("log_blocks")),
        };
        Self { log_blocks, in_place_first_write: parameters.boolean("in_place_first_write") }
    }

    /// What to build on the device of `plan`.
    ///
    /// # Errors
    /// More log blocks than there are spare blocks.
    pub(super) fn resolve(&self, plan: &FtlPlan) -> Result<FastOptions, SpecError> {
        let data_blocks = plan.logical_pages.div_ceil(plan.geometry.pages_per_block());
        let spare_blocks = plan.geometry.blocks - plan.store.floor - data_blocks;
        if spare_blocks < 2 {
            return Err(SpecError::new(
                "ftl",
                format!("FAST needs two spare blocks for its log, there is {spare_blocks}"),
                "give more device.over_provisioning, fewer device.pages_per_block or a larger device",
            ));
        }
        let most = spare_blocks - 1;
        let log_blocks = match self.log_blocks {
            LogShare::All => most,
            LogShare::Blocks(blocks) => blocks,
            LogShare::OfDataBlocks(share) => ((f64::from(data_blocks) * share).round() as u32).max(1),
        };
        if log_blocks > most {
            return Err(SpecError::new(
                "fast:log_blocks",
                format!("{log_blocks} blocks are too many beside {data_blocks} data blocks"),
                format!("1 to {most} fit: give fewer, or more device.over_provisioning"),
            ));
        }
        Ok(FastOptions {
            log_blocks,
            reserve: plan.store.floor,
            in_place_first_write: self.in_place_first_write,
            wear_threshold: plan.store.wear_threshold,
        })
    }
}
