//! Placement by any hotness scheme: one stream for each of its temperatures.
//!
//! `hotness:mbf` writes hot and cold pages to open blocks of their own, `hotness:dac,regions=6` uses six; what the scheme
//! can be told is told after its name. A host write is observed and goes where its verdict says. A copied page is not
//! written by the host: the scheme hears of the copy (DAC moves it one region colder) and is then asked, without
//! recording anything, how hot the page is now.
//!
//! Verdicts are the scheme's (see [`crate::hotness`] for papers and complexity); memory is the scheme's.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::StreamId;
use crate::hotness::{AnyHotness, Hotness, HotnessContext, Temperature, build_scheme, scheme_needs_future};
use crate::registry::{Entry, Kind, Parameter, WRAPPED};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "hotness",
    summary: "by the verdicts of a hotness scheme: hotness:mbf, hotness:dac,regions=6",
    paper: "that of the scheme",
    memory: "that of the scheme",
    parameters: &[Parameter::new(WRAPPED, Kind::Policy("schemes"), "mbf").help("who judges")],
    build: BuildPlacement {
        build: |parameters, context| {
            let context = HotnessContext { logical_pages: context.logical_pages, future: context.future.clone() };
            Ok(AnyPlacement::ByHotness(ByHotness { scheme: build_scheme(&parameters.wrapped(), &context)? }))
        },
        needs_future: |parameters| scheme_needs_future(&parameters.wrapped()),
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ByHotness {
    scheme: AnyHotness,
}

/// The coldest pages are in stream 0.
#[inline(always)]
fn stream_of(temperature: Temperature) -> StreamId {
    StreamId(u16::from(temperature.0))
}

impl Placement for ByHotness {
    fn streams(&self) -> u16 {
        u16::from(self.scheme.temperatures())
    }
    fn gc_streams(&self) -> u16 {
        self.streams()
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        stream_of(self.scheme.observe(write.lpn))
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.scheme.on_gc_copy(copy.lpn);
        stream_of(self.scheme.peek(copy.lpn))
    }
    fn memory_bytes(&self) -> u64 {
        self.scheme.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlacementContext, build_placement};
    use super::*;
    use crate::address::Lpn;

    fn build(text: &str) -> Result<AnyPlacement, crate::registry::SpecError> {
        let context = PlacementContext {
            logical_pages: 1024,
            pages_per_block: 64,
            page_bytes: 4096,
            blocks: 32,
            seed: 1,
            future: None,
            external: None,
        };
        build_placement(&text.parse()?, &context)
    }

    fn write(lpn: u32) -> HostWrite {
        HostWrite { lpn: Lpn(lpn), now: 0, rewrite: true }
    }

    fn copy(lpn: u32) -> GcCopy {
        GcCopy { lpn: Lpn(lpn), now: 0, from: StreamId(0), stamp: 0 }
    }

    #[test]
    fn a_stream_for_each_temperature() {
        assert_eq!(build("hotness").unwrap().streams(), 2);
        assert_eq!(build("hotness:mbf").unwrap().memory_bytes(), 1024);
        assert_eq!(build("hotness:dac,regions=6").unwrap().streams(), 6);
    }

    #[test]
    fn writes_are_observed_and_copies_only_looked_at() {
        let mut placement = build("hotness:mbf").unwrap();
        let streams: Vec<_> = (0..4).map(|_| placement.host(&write(7), &mut PageHistory::default()).0).collect();
        assert_eq!(streams, [0, 0, 1, 1], "the two newest filters and an older one after three writes");
        assert_eq!(placement.gc(&copy(7), &PageHistory::default()), StreamId(1));
        assert!(
            (0..10).all(|_| placement.gc(&copy(8), &PageHistory::default()) == StreamId(0)),
            "copies do not make a page hot"
        );
        let mut placement = build("hotness:dac,regions=3").unwrap();
        assert_eq!(
            (0..3).map(|_| placement.host(&write(7), &mut PageHistory::default()).0).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert_eq!((0..3).map(|_| placement.gc(&copy(7), &PageHistory::default()).0).collect::<Vec<_>>(), [1, 0, 0]);
    }

    #[test]
    fn the_schemes_parameters_are_checked_by_the_scheme() {
        for (text, part) in [
            ("hotness:nobody", "choose from mbf"),
            ("hotness:mbf,filters=0", "mbf:filters"),
            ("hotness:mbf,regions=3", "unknown parameter \"regions\""),
            ("hotness:mbf,filters=4,filters=4", "given twice"),
        ] {
            let message = build(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
