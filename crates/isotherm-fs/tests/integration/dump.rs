//! dump: every structure is shown, and what is shown is what is there.

use crate::support::sample::{Sample, sample};
use isotherm_fs::check::dump::{DumpError, What, dump};
use isotherm_fs::device::Device;
use isotherm_fs::log::read_superblock;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_vfs::ROOT;
use std::sync::Arc;

fn text(device: &Arc<MemoryDevice>, what: What) -> String {
    let mut out = String::new();
    dump(device.clone(), what, &mut out).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    out
}

#[test]
fn every_structure_is_shown() {
    let Sample { device, directory, inner, large, with_xattrs, .. } = sample(true);
    let superblock = text(&device, What::Superblock);
    assert!(superblock.contains("label \"sample\"") && superblock.contains("superblock 1"), "{superblock}");
    let checkpoints = text(&device, What::Checkpoints);
    assert!(checkpoints.contains("unmounted") && checkpoints.contains("table page 0"), "{checkpoints}");
    let segments = text(&device, What::Segments);
    let count = read_superblock(&*device).expect("it is whole").segments as usize;
    assert!(segments.lines().count() >= count + 2 && segments.contains("Written"), "{segments}");
    let root = text(&device, What::Directory(ROOT));
    assert!(root.contains(&format!("inode {directory}, Directory, directory")), "{root}");
    let names = text(&device, What::Directory(inner));
    assert!(names.contains(&format!("inode {large}, Regular, large")), "{names}");
    let inode = text(&device, What::Inode(large));
    assert!(inode.contains("Regular") && inode.contains("  block 699: block "), "{inode}");
    let inode = text(&device, What::Inode(with_xattrs));
    assert!(inode.contains("2 links") && inode.contains("block 39: set aside"), "{inode}");
    let hole = text(&device, What::Block { ino: large, block: 1 });
    assert!(hole.contains("hole"), "{hole}");
}

#[test]
fn where_a_block_is_said_to_lie_it_lies_and_its_summary_says_so_too() {
    let Sample { device, large, .. } = sample(true);
    let block = text(&device, What::Block { ino: large, block: 3 });
    let number = |text: &str| -> u32 {
        text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    let position = number(block.split(": block ").nth(1).expect("it is stored"));
    let mut content = [0; 4096];
    device.read(u64::from(position) * 4096, &mut content).expect("it is within the device");
    assert_eq!(content, [3; 4096]);
    let slot = block.trim_end().rsplit(", ").next().expect("a slot");
    let superblock = read_superblock(&*device).expect("it is whole");
    let segment = superblock.segment_of(position).expect("it lies in one");
    let writes = text(&device, What::Summaries(segment));
    assert!(writes.contains(&format!("data, {slot}: block {position},")), "{writes}");
    let page = number(slot.rsplit("page ").next().expect("a page"));
    let page = text(&device, What::Page(page));
    let index = number(slot.trim_start_matches("slot "));
    assert!(page.contains(&format!("slot {index}: block {position},")) || page.contains("inodes"), "{page}");
}

#[test]
fn every_page_is_shown_by_its_kind_and_a_damaged_one_says_so() {
    let Sample { device, .. } = sample(true);
    let mut kinds = std::collections::BTreeSet::new();
    for id in 0..60 {
        let mut out = String::new();
        if dump(device.clone(), What::Page(id), &mut out).is_err() {
            continue;
        }
        let line = out.lines().nth(1).expect("two lines");
        kinds.insert(line.split([' ', ',']).next().expect("a word").to_owned());
    }
    for kind in ["inodes", "root", "leaf", "map", "names", "target", "extended"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let first = text(&device, What::Page(0));
    let position: u64 = first["page 0: block ".len()..].split(',').next().expect("a number").parse().expect("a number");
    device.write(position * 4096 + 300, &[0xff; 3]).expect("it is within the device");
    assert!(text(&device, What::Page(0)).contains("its checksum is wrong"));
}

/// What roll-forward has changed is shown changed, and its checksum is not compared with that of the page before.
#[test]
fn after_a_crash_pages_are_as_the_log_leads_to() {
    let Sample { device, .. } = sample(false);
    let shown: Vec<String> = [0, 1].map(|id| text(&device, What::Page(id))).into();
    assert!(shown.iter().all(|text| text.contains("as the log since") && !text.contains("is wrong")), "{shown:?}");
}

#[test]
fn what_there_is_not_is_an_error() {
    let Sample { device, large, .. } = sample(true);
    let mut out = String::new();
    for what in [
        What::Summaries(1000),
        What::Page(9999),
        What::Page(u32::MAX),
        What::Inode(0),
        What::Inode(u64::MAX),
        What::Directory(large),
        What::Block { ino: ROOT, block: 0 },
    ] {
        assert!(dump(device.clone(), what, &mut out).is_err(), "{what:?}: {out}");
    }
    let nothing = Arc::new(MemoryDevice::new(1 << 20));
    assert!(matches!(dump(nothing, What::Segments, &mut out), Err(DumpError::Open(_))));
}
