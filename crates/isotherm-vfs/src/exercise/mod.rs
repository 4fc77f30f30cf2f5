//! Random requests for any file system, each of whose answers, and the whole tree they lead to, is compared with a model's.
//!
//! An [`Operation`] names nodes by path, so that a list of them can be printed, kept, and applied to another file system, whole or
//! in part: what may be there after a crash is what some prefix of the list leads to. [`Generator`] makes them from a seed, over
//! few names, so that they meet one another. The model is a [`MemoryFileSystem`](crate::memory::MemoryFileSystem).
//!
//! ```
//! use isotherm_vfs::exercise::{Generator, compare};
//! use isotherm_vfs::memory::MemoryFileSystem;
//!
//! let (tested, model) = (MemoryFileSystem::default(), MemoryFileSystem::default());
//! compare(&tested, &model, Generator::new(1).take(500), 100).unwrap();
//! ```

mod apply;
mod generator;
mod operation;
mod tree;

pub use apply::apply;
pub use generator::Generator;
pub use operation::{NodeSeen, Operation, Outcome};
pub use tree::compare_trees;

use crate::FileSystem;

/// Applies operations to two file systems and compares every answer; and the trees each so many operations, and at the end.
///
/// # Errors
/// What differs, and after which operation.
pub fn compare(
    tested: &dyn FileSystem,
    model: &dyn FileSystem,
    operations: impl IntoIterator<Item = Operation>,
    tree_every: usize,
) -> Result<(), String> {
    let mut last = 0;
    for (number, operation) in operations.into_iter().enumerate() {
        let (answer, expected) = (apply(tested, &operation), apply(model, &operation));
        if answer != expected {
            return Err(format!("operation {number}, {operation:?}: {answer:?}, where the model has {expected:?}"));
        }
        if (number + 1).is_multiple_of(tree_every.max(1)) {
            compare_trees(tested, model)
                .map_err(|error| format!("after operation {number}, {operation:?}: {error}"))?;
        }
        last = number;
    }
    compare_trees(tested, model).map_err(|error| format!("after operation {last}, the last: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryFileSystem;

    #[test]
    fn every_operation_succeeds_now_and_then() {
        let files = MemoryFileSystem::default();
        let mut done = std::collections::BTreeSet::new();
        let mut kinds = std::collections::BTreeSet::new();
        for operation in Generator::new(7).take(20_000) {
            let name = format!("{operation:?}");
            let name = name.split([' ', '{']).next().unwrap_or_default().to_owned();
            if !matches!(apply(&files, &operation), Outcome::Failed(_)) {
                done.insert(name.clone());
            }
            kinds.insert(name);
        }
        assert_eq!(done, kinds);
        assert_eq!(kinds.len(), Operation::KINDS);
    }

    #[test]
    fn the_same_seed_gives_the_same_list() {
        let list = |seed| Generator::new(seed).take(100).collect::<Vec<_>>();
        assert_eq!(list(3), list(3));
        assert_ne!(list(3), list(4));
    }

    #[test]
    fn a_lost_operation_is_noticed() {
        let list: Vec<_> = Generator::new(11).take(2000).collect();
        let whole = MemoryFileSystem::default();
        let changes = |fs: &MemoryFileSystem, operation: &Operation| {
            operation.is_change() && !matches!(apply(fs, operation), Outcome::Failed(_))
        };
        let mut noticed = 0;
        let mut changed = 0;
        for (number, operation) in list.iter().enumerate().take(1000) {
            if changes(&whole, operation) {
                changed += 1;
                let without = MemoryFileSystem::default();
                for operation in &list[..number] {
                    apply(&without, operation);
                }
                noticed += usize::from(compare_trees(&whole, &without).is_err());
            }
        }
        // What is written over with the same, or set to what it was, leaves no trace.
        assert!(changed > 100 && noticed * 10 > changed * 7, "{noticed} of {changed}");
    }

    #[test]
    fn an_answer_that_differs_is_told_with_its_operation() {
        let (tested, model) = (MemoryFileSystem::default(), MemoryFileSystem::default());
        let make = Operation::MakeDirectory { path: "/d".into(), permissions: 0o755 };
        apply(&model, &make);
        let told = compare(&tested, &model, [make], 1).unwrap_err();
        assert!(told.contains("operation 0, MakeDirectory") && told.contains("File exists"), "{told}");
    }
}
