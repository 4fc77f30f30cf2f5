//! Collections that only owners of pages take part in do what collections page by page do.

use isotherm::address::{Geometry, Lpn};
use isotherm::blocks::AgeBase;
use isotherm::cause::Cause;
use isotherm::device::DeviceError;
use isotherm::ftl::Ftl;
use isotherm::ftl::page::PageFtl;
use isotherm::nand::array::NandArray;
use isotherm::nand::payload::NoBytes;
use isotherm::placement::{AnyPlacement, PlacementContext, build_placement};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm::stats::Snapshot;
use isotherm::store::StoreOptions;
use isotherm::victim::{AnyVictim, VICTIMS, VictimContext, build_victim};

type Device = PageFtl<NandArray<NoBytes>, AnyPlacement, AnyVictim>;

fn device(
    geometry: Geometry,
    logical_pages: u32,
    placement: &str,
    victim: &str,
    floor: u32,
    endurance: u32,
    recovery: bool,
) -> Device {
    let (blocks, pages_per_block) = (geometry.blocks, geometry.pages_per_block());
    let context = PlacementContext {
        logical_pages,
        pages_per_block,
        page_bytes: 4096,
        blocks,
        seed: 3,
        future: None,
        external: None,
    };
    let placement: AnyPlacement = build_placement(&PolicyName::plain(placement), &context).unwrap();
    let context = VictimContext { blocks, pages_per_block, logical_pages, seed: 3, ..VictimContext::default() };
    let victim: AnyVictim = build_victim(&PolicyName::plain(victim), &context).unwrap();
    let options =
        StoreOptions { floor, age: AgeBase::Sealed, meta_streams: 0, meta_blocks: 0, wear_threshold: Some(20) };
    PageFtl::new(NandArray::without_bytes(geometry, endurance, recovery), placement, victim, logical_pages, options)
}

/// Writes, mostly to a fifth of the pages, with trims and flushes between, so that pages of trims lie among those of data. The length of
/// runs and where they begin is random.
fn exercise(ftl: &mut Device, writes: u32) -> Result<(), DeviceError> {
    let pages = ftl.logical_pages();
    let mut random = Random::new(8);
    for turn in 0..writes {
        let among = if random.chance(0.8) { pages / 5 } else { pages };
        let lpn = random.below(among.into()) as u32;
        match random.below(60) {
            0 => ftl.trim(Lpn(lpn.min(pages - 5)), 5)?,
            1 if turn % 7 == 0 => ftl.flush()?,
            _ => {
                ftl.begin_write(1);
                ftl.write(Lpn(lpn), (), Cause::Host)?;
            }
        }
    }
    Ok(())
}

fn snapshot(ftl: &Device) -> String {
    let mut snapshot = Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    assert!(snapshot.collector.collections > 100, "{} collections test little", snapshot.collector.collections);
    format!("{snapshot:?} {:?}", ftl.blocks())
}

#[test]
fn every_victim_policy_finds_the_same_blocks() {
    for pages_per_block in [4, 64, 256] {
        let logical_pages = 25 * pages_per_block;
        for placement in ["single", "host_gc", "epoch"] {
            for victim in VICTIMS {
                let run = |recovery| {
                    let mut ftl = device(
                        Geometry::simple(32, pages_per_block, 4096),
                        logical_pages,
                        placement,
                        victim.name,
                        3,
                        0,
                        recovery,
                    );
                    exercise(&mut ftl, 40 * logical_pages).unwrap();
                    ftl.check().unwrap();
                    snapshot(&ftl)
                };
                assert_eq!(run(false), run(true), "{placement} {} {pages_per_block}", victim.name);
            }
        }
    }
}

/// As blocks wear out, the reserve shrinks, until a collection finds no block for what does not fit into the open one. What has moved by
/// then stays moved.
#[test]
fn a_collection_that_ends_halfway_leaves_a_map_that_is_right() {
    for recovery in [false, true] {
        for endurance in 2..40 {
            let mut ftl = device(Geometry::simple(24, 128, 4096), 1500, "host_gc", "greedy", 1, endurance, recovery);
            assert!(exercise(&mut ftl, u32::MAX).is_err());
            ftl.check().unwrap();
        }
    }
}
