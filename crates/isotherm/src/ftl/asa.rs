//! ASA-FTL: DFTL whose translation pages and cached entries also hold the recency of pages, and whose host writes and copies
//! go to the hot, warm or cold block (Xie, Chen & Roth, "ASA-FTL: an adaptive separation aware flash translation layer").
//!
//! It is a composition: the demand-paged map of [`super::dftl`] with extended entries, and the placement
//! [`crate::placement::asa`], whose recency the map stores. What that costs is charged here: an extended entry takes
//! `etb_entry_bytes` of a translation page and `cht_entry_bytes` beside each cached entry of the map; a write that misses
//! always reads (its recency is needed); a collection reads the translation pages of the pages it moves before it places
//! them; sampled pages whose recency is not cached cost reads of the cause `sampling`, one for each translation page.
//!
//! Departure from the paper: recency and its clock are exact in the simulator, and start anew after a loss of power.

use super::ReadDesign;
use super::dftl::DemandDesign;
use super::dftl::{DemandOptions, PARAMETERS, SHARED_PARAMETERS, WriteMiss};
use crate::placement::asa::{self, Asa, AsaOptions, Keeps};
use crate::placement::{AnyPlacement, PlacementContext};
use crate::registry::{Entry, Parameter};

const OWN: [Parameter; 2] = [
    Parameter::choice("etb_entry_bytes", &["8", "16", "32"], "8")
        .help("flash bytes of one entry of an extended translation page: map, last write, recency"),
    Parameter::integer("cht_entry_bytes", 1..=64, "8").help("DRAM of the recency cached beside each entry of the map"),
];

const COUNT: usize = SHARED_PARAMETERS + OWN.len() + asa::PARAMETERS.len();

/// The map's parameters, those of extended entries, and the placement's.
static ALL: [Parameter; COUNT] = {
    let mut all = [OWN[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = if at < SHARED_PARAMETERS {
            PARAMETERS[at]
        } else if at < SHARED_PARAMETERS + OWN.len() {
            OWN[at - SHARED_PARAMETERS]
        } else {
            asa::PARAMETERS[at - SHARED_PARAMETERS - OWN.len()]
        };
        at += 1;
    }
    all
};

pub(super) const ENTRY: Entry<ReadDesign> = Entry {
    name: "asa",
    summary: "dftl that clusters the recency of pages into hot, warm and cold blocks",
    paper: "Xie, Chen & Roth, ASA-FTL",
    memory: "16 bytes a logical page and 8 to 32 bytes a cached entry",
    parameters: &ALL,
    build: |parameters, wishes| {
        let asa = AsaOptions::read(parameters);
        let map = DemandOptions {
            write_miss: WriteMiss::Fetch,
            reads_before_copies: true,
            translation_entry_bytes: parameters.choice("etb_entry_bytes", &[("8", 8), ("16", 16), ("32", 32)]),
            hotness_entry_bytes: parameters.integer("cht_entry_bytes") as u32,
            // One byte each, as the paper's 16 KB for 16,384 samples: a logarithm serves to cluster.
            sample_bytes: asa.samples.into(),
            ..DemandOptions::read_shared(parameters, wishes)?
        };
        Ok(AsaDesign { map, asa }.into())
    },
};

/// ASA-FTL, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsaDesign {
    /// How its map behaves.
    pub map: DemandOptions,
    /// The placement that it brings along, its hotness kept in the translation pages.
    pub asa: AsaOptions,
}

impl DemandDesign for AsaDesign {
    const PLACES: bool = true;

    fn map(&self) -> &DemandOptions {
        &self.map
    }
    fn placement(&self, context: &PlacementContext) -> Option<AnyPlacement> {
        let asa = Asa::new(self.asa, context.logical_pages, context.seed, Keeps::InTranslationPages);
        Some(AnyPlacement::Asa(asa))
    }
}
