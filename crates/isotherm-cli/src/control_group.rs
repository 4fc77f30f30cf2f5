//! How much memory the control groups of this process leave it (Linux, "Control Group v2" and "Memory Resource Controller" of the
//! kernel's administration guide).
//!
//! A group may use no more than its ancestors may, so that the least limit from the root down counts. In version 2 limits stand in
//! `memory.max`, in version 1 in `memory.limit_in_bytes` below a tree of the controller's own.

use std::fs;
use std::path::Path;

/// Limits from here on are how version 1 says that there is none.
const UNLIMITED_BYTES: u64 = 1 << 50;

/// The limit that binds first, and the group that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// Path of the group, as `/proc/self/cgroup` writes it.
    pub group: String,
}

/// The least limit of the groups that `own`, the text of `/proc/self/cgroup`, names, and of all of their ancestors below `root`,
/// where control groups are mounted; of equal ones the outermost.
pub fn memory_limit(root: &Path, own: &str) -> Option<MemoryLimit> {
    let mut least: Option<MemoryLimit> = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (mut folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut group = String::new();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        loop {
            let told = fs::read_to_string(folder.join(file)).ok();
            let bytes = told.and_then(|text| text.trim().parse::<u64>().ok()).filter(|bytes| *bytes < UNLIMITED_BYTES);
            if let Some(bytes) = bytes.filter(|bytes| least.as_ref().is_none_or(|least| *bytes < least.bytes)) {
                let group = if group.is_empty() { "/".to_owned() } else { group.clone() };
                least = Some(MemoryLimit { bytes, group });
            }
            match parts.next() {
                // The group lies outside of what this process sees.
                None | Some("..") => break,
                Some(part) => {
                    folder.push(part);
                    group = format!("{group}/{part}");
                }
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    fn limit(root: &tempfile::TempDir, own: &str) -> Option<(u64, String)> {
        memory_limit(root.path(), own).map(|limit| (limit.bytes, limit.group))
    }

    #[test]
    fn the_least_limit_from_the_root_to_the_own_group_counts() {
        let root = tree(&[
            ("memory.max", "8000"),
            ("a/memory.max", "3000"),
            ("a/b/memory.max", "max"),
            ("a/b/c/memory.max", "5000"),
            ("other/memory.max", "1"),
        ]);
        assert_eq!(limit(&root, "0::/a/b/c\n"), Some((3000, "/a".to_owned())));
        assert_eq!(limit(&root, "0::/a/b\n"), Some((3000, "/a".to_owned())));
        assert_eq!(limit(&root, "0::/\n"), Some((8000, "/".to_owned())));
        // The own group is the narrowest; a group that is not to be seen leaves what is.
        fs::write(root.path().join("a/b/c/memory.max"), "2000\n").unwrap();
        assert_eq!(limit(&root, "0::/a/b/c\n"), Some((2000, "/a/b/c".to_owned())));
        assert_eq!(limit(&root, "0::/../a\n"), Some((8000, "/".to_owned())));
        assert_eq!(limit(&root, "0::/gone/c\n"), Some((8000, "/".to_owned())));
    }

    #[test]
    fn version_1_has_a_tree_of_its_own_and_may_stand_beside_version_2() {
        let none = "9223372036854771712";
        let root = tree(&[
            ("memory/memory.limit_in_bytes", none),
            ("memory/jobs/memory.limit_in_bytes", "7000"),
            ("memory/jobs/1/memory.limit_in_bytes", none),
            ("cpu/jobs/memory.limit_in_bytes", "1"),
        ]);
        let own = "4:cpu,cpuacct:/jobs\n3:hugetlb,memory:/jobs/1\n0::/\n";
        assert_eq!(limit(&root, own), Some((7000, "/jobs".to_owned())));
        assert_eq!(limit(&root, "3:memory:/\n0::/\n"), None);
        assert_eq!(limit(&root, ""), None);
    }
}
