//! The demand-paged FTL against the page-mapped one and against theory.

use isotherm::build::{Environment, build, plan};
use isotherm::cause::Cause;
use isotherm::device::Replay;
use isotherm::ftl::dftl::MappingCounters;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::stats::Snapshot;

const PAGES: u32 = 1 << 15;

fn device(sets: &[&str]) -> Box<dyn Replay> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, ..Environment::default() };
    build(&spec, &environment).unwrap()
}

/// Writes the device full, then `turns` times as many pages: `hot` of the writes go to the first tenth.
fn churn(device: &mut dyn Replay, turns: u32, hot: f64) -> Snapshot {
    let mut random = Random::new(9);
    for turn in 0..=turns {
        let batch: Vec<Request> = (0..PAGES)
            .map(|i| {
                let page = match turn {
                    0 => u64::from(i),
                    _ if random.chance(hot) => random.below(u64::from(PAGES) / 10),
                    _ => random.below(PAGES.into()),
                };
                Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write, source: 0, durable: false }
            })
            .collect();
        device.submit(&batch).unwrap();
    }
    device.check().unwrap();
    device.snapshot()
}

#[test]
fn with_the_whole_map_cached_it_counts_as_the_page_mapped_ftl_does() {
    for victim in ["greedy", "cost_benefit", "fifo"] {
        for placement in ["single", "host_gc", "epoch:length=0.5"] {
            let gc = format!("gc.victim={victim}");
            let placement = format!("placement.name={placement}");
            // Greedy looks at all blocks anew after a number of picks that follows from the number of blocks, with 572
            // blocks as with the 3 more of the translation area; then ties fall alike.
            let shared = ["device.spare=0.1", "gc.floor=3", &gc, &placement];
            let page = churn(&mut *device(&shared), 6, 0.5);
            let mut sets = shared.to_vec();
            sets.extend(["ftl.name=dftl", "dram.cache_bytes=1MiB"]);
            let dftl = churn(&mut *device(&sets), 6, 0.5);
            for cause in [Cause::Host, Cause::Gc] {
                assert_eq!(page.medium.programs[cause], dftl.medium.programs[cause], "{gc} {placement} {cause:?}");
                assert_eq!(page.medium.copies[cause], dftl.medium.copies[cause], "{gc} {placement} {cause:?}");
                assert_eq!(page.medium.erases[cause], dftl.medium.erases[cause], "{gc} {placement} {cause:?}");
            }
            assert_eq!(page.collector, dftl.collector, "{gc} {placement}");
            assert_eq!(page.valid_pages + 32, dftl.valid_pages);
        }
    }
}

#[test]
fn data_is_collected_as_under_the_page_mapped_ftl_whatever_the_cache() {
    for spare in ["0.05", "0.1"] {
        let spare = format!("device.spare={spare}");
        let page = churn(&mut *device(&[&spare, "gc.floor=4"]), 8, 0.5);
        let dftl = churn(&mut *device(&[&spare, "gc.floor=4", "ftl.name=dftl", "dram.cache_bytes=32KiB"]), 8, 0.5);
        let copies = [&page, &dftl].map(|end| end.medium.copies[Cause::Gc] as f64);
        println!("{spare}: {copies:?} copies, {} translation pages", dftl.medium.programs[Cause::Translation]);
        assert!((copies[1] / copies[0] - 1.0).abs() < 0.005, "{spare}: {copies:?} copies");
        assert!(dftl.medium.programs[Cause::Translation] > u64::from(PAGES), "the cache holds too much of the map");
    }
}

/// A cache too small for the map costs translation reads and programs, and nothing of them is lost.
#[test]
fn translation_operations_carry_their_causes() {
    let mut device = device(&["device.spare=0.2", "ftl.name=dftl:write_miss=fetch", "dram.cache_bytes=32KiB"]);
    let end = churn(&mut *device, 4, 0.5);
    let mapping = end.sections.get::<MappingCounters>().unwrap();
    assert_eq!(mapping.hits + mapping.misses, end.host.pages_written);
    assert_eq!(mapping.fetches, mapping.misses);
    assert_eq!(mapping.translation_reads(), end.medium.reads[Cause::Translation]);
    assert_eq!(mapping.translation_programs(), end.medium.programs[Cause::Translation]);
    assert!(end.medium.copies[Cause::TranslationGc] > 0 && end.medium.erases[Cause::TranslationGc] > 0);
    assert!(mapping.entries_per_writeback_mean().unwrap() > 1.5, "{mapping:?}");
    let dram: u64 = end.dram.iter().filter(|(name, _)| ["cmt", "directory"].contains(name)).map(|d| d.1).sum();
    assert!(dram <= 32 << 10, "{dram} bytes of DRAM");
}

#[test]
fn plans_state_the_spare_that_translation_blocks_leave() {
    let sets = |space: &str| {
        ["device.spare=0.1".to_owned(), format!("ftl.name=dftl:translation_entry_bytes=16,translation_space={space}")]
    };
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, ..Environment::default() };
    let plan = |space| plan(&DeviceSpec::from_toml("", &sets(space)).unwrap(), &environment).unwrap();
    let (on_top, inside) = (plan("on_top"), plan("inside"));
    assert_eq!(on_top.spare_left, on_top.spare);
    assert!(inside.spare_left < inside.spare && inside.spare == on_top.spare);
    assert_eq!(on_top.geometry.blocks - inside.geometry.blocks, on_top.translation_blocks);
    // 16 bytes for each of 32,768 pages are 128 pages of 4 KiB, two blocks; a quarter and two more to clean them in.
    assert_eq!(inside.translation_blocks, 4);
}

#[test]
fn a_cache_that_holds_nothing_is_refused() {
    let spec = DeviceSpec::from_toml("", &["ftl.name=dftl".to_owned(), "dram.cache_bytes=128".to_owned()]).unwrap();
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, ..Environment::default() };
    let error = plan(&spec, &environment).unwrap_err().to_string();
    assert!(error.contains("dram.cache_bytes") && error.contains("give at least 136"), "{error}");
}

#[test]
fn the_least_floor_is_enough_and_a_smaller_one_is_refused() {
    let sets = |floor: u32, placement: &str| {
        let placement = format!("placement.name={placement}");
        ["device.spare=0.02", "ftl.name=dftl:write_miss=fetch", "dram.cache_bytes=8KiB", &placement]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("gc.floor={floor}")])
            .collect::<Vec<_>>()
    };
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, ..Environment::default() };
    let error = plan(&DeviceSpec::from_toml("", &sets(1, "single")).unwrap(), &environment).unwrap_err().to_string();
    assert!(error.contains("gc.floor") && error.contains("give 2 to 65536 blocks, or leave it out for 4"), "{error}");
    // Hardly any spare space and hardly any cache: victims are nearly full, and nearly every copy costs a translation page.
    for placement in ["single", "host_gc", "asa:samples=100", "dac"] {
        let sets = sets(2, placement);
        let mut device = device(&sets.iter().map(String::as_str).collect::<Vec<_>>());
        churn(&mut *device, 2, 0.0);
    }
}
