//! The arrows between the modules of the crates that have layers point down: a module imports what stands below it, never what stands beside
//! or above. Crates are checked by cargo, which refuses circles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules of each crate, top first; those of one line know nothing of each other. A new module is put where it belongs.
const CRATES: &[(&str, &[&str])] = &[
    ("isotherm", CORE),
    (
        "isotherm-sfs",
        &[
            "build",
            "spec device byte_store",
            "below recover",
            "log",
            "summary",
            "disk",
            "checkpoint dirty",
            "content machine",
            "options",
            "segments",
            "snapshot",
            "drive",
            "blocks checksum",
        ],
    ),
    (
        "isotherm-eval",
        &[
            "sweep validate comparison",
            "compare",
            "run hotness",
            "pool",
            "verdict",
            "run_spec",
            "measure",
            "recorder heat lifetime laws",
            "estimate memory source",
            "fold kept",
            "files",
            "columns",
            "results",
            "control",
            "closed_form error steady",
        ],
    ),
];

/// The modules of the core.
const CORE: &[&str] = &[
    "build",
    "spec",
    "ssd",
    "dram",
    "ftl",
    "store",
    "placement victim",
    "blocks hotness nand",
    "device",
    "registry stats",
    "bits future",
    "address cause lambert memory quantity random request",
];

/// The source files under a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = Vec::new();
    for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The module of a crate that a file belongs to.
fn module(file: &Path, root: &Path) -> String {
    let relative = file.strip_prefix(root).expect("the file lies under the root");
    let first = relative.iter().next().expect("a path has a part").to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The modules that a text names after `crate::`, outside comments.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = code.flat_map(|line| line.split("crate::").skip(1).map(str::to_owned).collect::<Vec<_>>());
    let name = |rest: String| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect::<String>();
    named.map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn arrows_between_modules_point_down() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in a folder");
    let mut wrong = Vec::new();
    for (name, layers) in CRATES {
        let root = crates.join(name).join("src");
        let height = |module: &str| layers.iter().rev().position(|layer| layer.split(' ').any(|m| m == module));
        for file in sources(&root) {
            let from = module(&file, &root);
            if from == "lib" {
                continue;
            }
            let Some(at) = height(&from) else {
                wrong.push(format!("{name}::{from} is in no layer: put it into this test's table"));
                continue;
            };
            let text = std::fs::read_to_string(&file).expect("a source can be read");
            for to in imports(&text).iter().filter(|to| **to != from) {
                // What is no module of the crate is something that its root gives on.
                if height(to).is_some_and(|below| below >= at) {
                    wrong.push(format!("{}: {from} imports {to}, which does not lie below it", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "arrows point up:\n{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_and_comments_are_not() {
    let text = "use crate::store::{A, B};\n/// [`crate::build`]\nfn f() -> crate::nand::Move {}\nmacro!($crate::x)";
    assert_eq!(imports(text), ["nand", "store", "x"].map(str::to_owned).into());
}
