//! What a crash leaves after any transaction: a whole tree, once the list of orphans is worked through.

use isotherm_vfs::Change;
use proptest::prelude::*;

use super::operations::operation;
use super::random::Pair;
use super::*;
use crate::store::Found;

fn opened(store: MemoryStore) -> Tree<MemoryStore> {
    Tree::open_store(store).unwrap()
}

/// Whatever was durable of the data, everything agrees but numbers of blocks, nothing waits to be freed, and a file that grows
/// shows zeros. Blocks that became durable alone may not be counted, but none is counted that is not there.
fn assert_recovers(store: MemoryStore) {
    let mut tree = opened(store);
    tree.recover_orphans().unwrap();
    assert_eq!(tree.next_orphan(0).unwrap(), None);
    let serious: Vec<_> =
        tree.check().unwrap().into_iter().filter(|finding| finding.kind != FindingKind::BlockCount).collect();
    assert_eq!(serious, []);
    let mut from = Some(0);
    let mut files = Vec::new();
    while let Some(id) = from.and_then(|id| tree.store.next_page(id).unwrap()) {
        files.extend((1..16).map(|index| u64::from(id) * 16 + index).filter(|ino| tree.regular(*ino).is_ok()));
        from = id.checked_add(1);
    }
    for ino in files {
        let counted = tree.stored_inode(ino).unwrap().blocks;
        tree.recount(ino).unwrap();
        let found = tree.stored_inode(ino).unwrap().blocks;
        assert!(counted <= found, "inode {ino}: {counted} blocks are counted, {found} are there");
        let size = tree.attributes(ino).unwrap().size;
        if size <= (1 << 32) * 4096 - 20_000 {
            tree.change(CALLER, ino, Change { size: Some(size + 20_000), ..Change::default() }).unwrap();
            assert!(tree.read(ino, size, 20_000).unwrap().iter().all(|byte| *byte == 0), "inode {ino} from {size} on");
        }
    }
    assert_whole(&mut tree);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_transaction_leaves_a_whole_tree(
        operations in prop::collection::vec(operation(), 1..40),
        kept in any::<u8>(),
    ) {
        let mut pair = Pair::new(100_000);
        for (i, operation) in operations.iter().enumerate() {
            pair.model.now = time(10 + i as i64);
            pair.tree().set_now(time(10 + i as i64));
            pair.tree().store_mut().record_history();
            pair.run(operation, false);
            let mut history = pair.tree().store_mut().take_history();
            history.push(pair.tree().store().clone());
            for store in history {
                assert_recovers(store.crash(|slot| kept > 200 || (slot.index ^ kept) % 4 == 0));
                assert_recovers(store.crash(|_| false));
            }
        }
    }
}

/// A size gets into the page of its inode after the data below it, whatever else happens to the inode.
#[test]
fn a_size_waits_for_its_data() {
    let mut tree = tree();
    let file = tree.make(ROOT, "f", FileKind::Regular);
    tree.put(file, 0, &[1; 5000]).unwrap();
    let size_after_crash =
        |tree: &Tree<MemoryStore>| opened(tree.store().crash(|_| false)).attributes(file).unwrap().size;
    tree.settle_idle().unwrap();
    assert_eq!(size_after_crash(&tree), 0);
    let change = Change { permissions: Some(0o600), ..Change::default() };
    tree.change(CALLER, file, change).unwrap();
    tree.link(file, ROOT, b"g").unwrap();
    tree.change(CALLER, file, Change { size: Some(9000), ..Change::default() }).unwrap();
    tree.change(CALLER, file, Change { size: Some(7000), ..Change::default() }).unwrap();
    assert_eq!(size_after_crash(&tree), 0);
    assert_eq!(tree.attributes(file).unwrap().size, 7000);
    tree.store_mut().write_out(|_| true);
    assert_eq!(tree.settle_idle().unwrap(), 1);
    assert_eq!(size_after_crash(&tree), 7000);
    let mut after = opened(tree.store().crash(|_| false));
    assert_eq!(after.read(file, 0, 9000).unwrap(), [&[1; 5000][..], &[0; 2000]].concat());
    assert_eq!(after.attributes(file).unwrap().permissions, 0o600);
    assert_eq!(tree.unsettled().count(), 0);
    assert_whole(&mut after);
}

/// A write to blocks that are there is no transaction.
#[test]
fn overwriting_needs_no_transaction() {
    let mut tree = tree();
    let file = tree.make(ROOT, "f", FileKind::Regular);
    tree.put(file, 0, &[1; 50_000]).unwrap();
    tree.store_mut().record_history();
    tree.set_now(time(9));
    tree.put(file, 10, &[2; 49_000]).unwrap();
    tree.put(file, 50_000, &[3; 5]).unwrap();
    assert_eq!(tree.store_mut().take_history().len(), 0);
    assert_eq!(tree.attributes(file).unwrap().modified, time(9));
    assert_eq!(tree.attributes(file).unwrap().size, 50_005);
    assert_eq!(tree.inode(file).unwrap().heat.writes, 13 + 12 + 1);
}

/// A truncation of many pages is done in bounded transactions, and a crash between them loses none of the rest.
#[test]
fn a_large_truncation_is_finished_after_a_crash() {
    let mut tree = tree();
    tree.batch_pages = 3;
    let file = tree.make(ROOT, "f", FileKind::Regular);
    for i in 0..20 {
        tree.put(file, i * 255 * 4096 * 4, &[1; 4096]).unwrap();
    }
    tree.store_mut().write_out(|_| true);
    tree.settle_all().unwrap();
    let before = tree.store().space().free;
    tree.store_mut().record_history();
    tree.change(CALLER, file, Change { size: Some(10), ..Change::default() }).unwrap();
    let history = tree.store_mut().take_history();
    assert!(history.len() >= 20 / 3, "{}", history.len());
    let free = tree.store().space().free;
    assert!(free > before + 38);
    for store in history {
        let mut after = opened(store.crash(|_| true));
        assert_eq!(after.attributes(file).unwrap().size, 10);
        after.recover_orphans().unwrap();
        assert_eq!(after.store().space().free, free);
        assert_whole(&mut after);
    }
}

/// What lies behind the end of a file after a crash is no part of it when it grows, but what was set aside stays.
#[test]
fn data_behind_the_end_goes_before_a_file_grows() {
    let mut tree = tree();
    let file = tree.make(ROOT, "f", FileKind::Regular);
    tree.allocate(file, 4096 * 20, 4096, isotherm_vfs::Allocation::Reserve { keep_size: true }).unwrap();
    tree.put(file, 0, &[1; 40_000]).unwrap();
    let mut after = opened(tree.store().crash(|_| true));
    assert_eq!(after.attributes(file).unwrap().size, 0);
    after.put(file, 30_000, &[2; 10]).unwrap();
    assert_eq!(after.whole(file), [&[0; 30_000][..], &[2; 10]].concat());
    let inode = after.inode(file).unwrap();
    let slot = after.slot(file, &inode, 20).unwrap().unwrap();
    assert!(matches!(after.store.find_block(slot).unwrap(), Found::Reserved));
    after.recount(file).unwrap();
    assert_whole(&mut after);
}
