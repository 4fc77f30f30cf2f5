//! The table of schemes, and the enum through which all of them are called.
//!
//! The enum costs one predictable branch per call and none inside [`Hotness::observe_all`], where a virtual call per
//! page would cost more than MBF itself.

use std::sync::Arc;

use super::oracle::{self, Oracle};
use super::{Hotness, Temperature};
use super::{dac, dam, fms, mbf, mhf, two_level_lru, wdac};
use crate::address::Lpn;
use crate::future::Future;
use crate::registry::{self, Entry, Parameters, PolicyName, SpecError};

/// What a scheme may know of the device and the trace when it is built.
#[derive(Clone, Debug, Default)]
pub struct HotnessContext {
    /// Pages of the host's address space: every page that is observed or judged lies below.
    pub logical_pages: u32,
    /// The writes to come, where the caller has the whole trace; only the oracle asks.
    pub future: Option<Arc<Future>>,
}

/// How a scheme is built, and what it has to be told for that.
#[derive(Clone, Copy)]
pub struct BuildScheme {
    /// Builds it from its checked parameters.
    pub build: fn(&Parameters<'_>, &HotnessContext) -> Result<AnyHotness, SpecError>,
    /// Whether it has to be told the writes to come ([`HotnessContext::future`]).
    pub needs_future: bool,
}

impl BuildScheme {
    /// A scheme that judges by the past alone, as a drive has to.
    const fn online(build: fn(&Parameters<'_>, &HotnessContext) -> Result<AnyHotness, SpecError>) -> Self {
        Self { build, needs_future: false }
    }
}

macro_rules! schemes {
    ($($variant:ident($scheme:ty)),* $(,)?) => {
        /// Any scheme of [`SCHEMES`].
        #[derive(Clone, Debug)]
        pub enum AnyHotness {
            $(#[doc = concat!("See [`", stringify!($scheme), "`].")] $variant($scheme)),*
        }

        impl Hotness for AnyHotness {
            #[inline]
            fn observe(&mut self, lpn: Lpn) -> Temperature {
                match self { $(Self::$variant(scheme) => scheme.observe(lpn)),* }
            }

            #[inline]
            fn observe_all(&mut self, lpns: &[Lpn], verdicts: &mut [Temperature]) {
                match self { $(Self::$variant(scheme) => scheme.observe_all(lpns, verdicts)),* }
            }

            #[inline]
            fn peek(&self, lpn: Lpn) -> Temperature {
                match self { $(Self::$variant(scheme) => scheme.peek(lpn)),* }
            }

            #[inline]
            fn on_gc_copy(&mut self, lpn: Lpn) {
                match self { $(Self::$variant(scheme) => scheme.on_gc_copy(lpn)),* }
            }

            fn decay(&mut self) {
                match self { $(Self::$variant(scheme) => scheme.decay()),* }
            }

            fn decay_interval(&self) -> Option<u64> {
                match self { $(Self::$variant(scheme) => scheme.decay_interval()),* }
            }

            fn temperatures(&self) -> u8 {
                match self { $(Self::$variant(scheme) => scheme.temperatures()),* }
            }

            fn memory_bytes(&self) -> u64 {
                match self { $(Self::$variant(scheme) => scheme.memory_bytes()),* }
            }
        }
    };
}

schemes! {
    Mbf(mbf::Mbf),
    Mhf(mhf::Mhf),
    Wdac(wdac::Wdac),
    Dam(dam::Dam),
    TwoLevelLru(two_level_lru::TwoLevelLru),
    Fms(fms::Fms),
    Dac(dac::Dac),
    Oracle(Oracle),
}

/// Every scheme there is: the one list that feeds parsing, help, the documentation and the tests.
pub const SCHEMES: &[Entry<BuildScheme>] = &[
    Entry {
        name: "mbf",
        summary: "multiple Bloom filters with recency weights",
        paper: "Park and Du, MSST 2011",
        memory: "filter_bits x filters / 8 bytes (filters rounded up to a power of two); 1 KiB by default",
        parameters: mbf::PARAMETERS,
        build: BuildScheme::online(|parameters, _| mbf::Mbf::build(parameters).map(AnyHotness::Mbf)),
    },
    Entry {
        name: "mhf",
        summary: "multiple hash functions over one array of small counters",
        paper: "Hsieh, Kuo and Chang, ACM TOS 2(1), 2006",
        memory: "counters x counter_bits / 8 bytes; 2 KiB by default",
        parameters: mhf::PARAMETERS,
        build: BuildScheme::online(|parameters, _| mhf::Mhf::build(parameters).map(AnyHotness::Mhf)),
    },
    Entry {
        name: "wdac",
        summary: "window-based direct address counting: the MBF paper's ideal",
        paper: "Park and Du, MSST 2011",
        memory: "8 bytes for each logical page, 4 for each write in the window",
        parameters: wdac::PARAMETERS,
        build: BuildScheme::online(|parameters, context| wdac::Wdac::build(parameters, context).map(AnyHotness::Wdac)),
    },
    Entry {
        name: "dam",
        summary: "direct address method: one halving counter for each page",
        paper: "Hsieh, Kuo and Chang, ACM TOS 2(1), 2006",
        memory: "8 bytes for each logical page",
        parameters: dam::PARAMETERS,
        build: BuildScheme::online(|parameters, context| dam::Dam::build(parameters, context).map(AnyHotness::Dam)),
    },
    Entry {
        name: "two_level_lru",
        summary: "a hot and a candidate list, both LRU",
        paper: "Chang and Kuo, RTAS 2002",
        memory: "21 bytes for each entry of both lists",
        parameters: two_level_lru::PARAMETERS,
        build: BuildScheme::online(|parameters, _| {
            two_level_lru::TwoLevelLru::build(parameters).map(AnyHotness::TwoLevelLru)
        }),
    },
    Entry {
        name: "fms",
        summary: "last write time of every page",
        paper: "Chiang, Lee and Chang, ISCE 1997",
        memory: "4 bytes for each logical page",
        parameters: fms::PARAMETERS,
        build: BuildScheme::online(|parameters, context| fms::Fms::build(parameters, context).map(AnyHotness::Fms)),
    },
    Entry {
        name: "dac",
        summary: "regions: rewritten climbs, copied by the collector descends",
        paper: "Chiang, Lee and Chang, SP&E 29(3), 1999",
        memory: "1 byte for each logical page, 5 with a time bound",
        parameters: dac::PARAMETERS,
        build: BuildScheme::online(|parameters, context| dac::Dac::build(parameters, context).map(AnyHotness::Dac)),
    },
    Entry {
        name: "oracle",
        summary: "knows the next write of every page",
        paper: "none: the yardstick",
        memory: "4 bytes for each write of the trace and for each logical page",
        parameters: oracle::PARAMETERS,
        build: BuildScheme {
            build: |parameters, context| Oracle::build(parameters, context).map(AnyHotness::Oracle),
            needs_future: true,
        },
    },
];

/// Builds the scheme that `name` names.
///
/// # Errors
/// An unknown scheme or parameter, a value outside its range, or a scheme that needs more than `context` has.
pub fn build_scheme(name: &PolicyName, context: &HotnessContext) -> Result<AnyHotness, SpecError> {
    let entry = registry::find(SCHEMES, "hotness scheme", name)?;
    (entry.build.build)(&Parameters::new(name, entry.parameters)?, context)
}

/// Whether the scheme that `name` names has to be told the writes to come.
pub fn scheme_needs_future(name: &PolicyName) -> bool {
    registry::find(SCHEMES, "hotness scheme", name).is_ok_and(|entry| entry.build.needs_future)
}
