//! The tutorials' commands, run as they stand: in a folder of their own, beside the traces of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A block of commands and the exit code that its last one has.
struct Commands {
    text: String,
    exit: i32,
    line: usize,
}

/// The blocks that begin with ```` ```sh ```` or ```` ```sh exit=N ````.
fn commands(tutorial: &str) -> Vec<Commands> {
    let mut blocks = Vec::new();
    let mut current: Option<Commands> = None;
    for (at, line) in tutorial.lines().enumerate() {
        match (&mut current, line.strip_prefix("```")) {
            (None, Some(info)) if info == "sh" || info.starts_with("sh ") => {
                let exit = info.strip_prefix("sh exit=").map_or(0, |code| code.parse().expect("exit=N"));
                current = Some(Commands { text: String::new(), exit, line: at + 1 });
            }
            (Some(_), Some("")) => blocks.extend(current.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

fn follow(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("traces"), folder.path().join("traces")).unwrap();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_isotherm"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let text = std::fs::read_to_string(root.join("docs").join(name)).unwrap();
    let blocks = commands(&text);
    assert!(blocks.len() >= 4, "{name} has commands");
    for block in blocks {
        let output = Command::new("sh")
            .args(["-ec", &block.text])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .expect("there is a shell");
        assert_eq!(
            output.status.code(),
            Some(block.exit),
            "{name}, line {}: {}\n{}{}",
            block.line,
            block.text,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let said = String::from_utf8_lossy(&output.stdout);
        let is_valid = !said.contains("not valid") && !said.lines().any(|line| line.ends_with("   no"));
        assert!(is_valid, "{name}, line {}: {}\n{said}", block.line, block.text);
    }
}

#[test]
fn the_researcher_can_follow() {
    follow("tutorial-researcher.md");
}

#[test]
fn the_firmware_engineer_can_follow() {
    follow("tutorial-firmware.md");
}

#[test]
fn the_database_engineer_can_follow() {
    follow("tutorial-database.md");
}
