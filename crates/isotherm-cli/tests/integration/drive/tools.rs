//! Programs that tests run beside the drive. What is missing skips a test with a printed reason, or fails it where
//! `ISOTHERM_REQUIRE_CLIENTS=1` says that all clients are there, or `ISOTHERM_REQUIRE_MOUNTS=1` that drives can be attached.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Skips the rest of a test, past the capture of its output; fails it where the environment variable is 1.
fn skip<T>(required_by: &str, reason: &str) -> Option<T> {
    let is_required = std::env::var_os(required_by).is_some_and(|value| value == "1");
    assert!(!is_required, "{reason}, and {required_by}=1 requires it");
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test").to_owned();
    writeln!(std::io::stderr(), "skipped: {name}: {reason}").expect("standard error is open");
    None
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A client by its name, such as `fio`; none, with a printed reason, where it is missing.
pub fn client(name: &str) -> Option<PathBuf> {
    let found = find(name).or_else(|| skip("ISOTHERM_REQUIRE_CLIENTS", &format!("{name} is not installed")))?;
    if name == "fio" && !run(&found, &["--enghelp"]).contains("nbd") {
        return skip("ISOTHERM_REQUIRE_CLIENTS", "this fio has no engine nbd");
    }
    Some(found)
}

/// A Python that has libnbd: that of the system, which it was installed with, or the first on the path.
pub fn python() -> Option<PathBuf> {
    let candidates = [Some(PathBuf::from("/usr/bin/python3")), find("python3")];
    let has_libnbd = |python: &PathBuf| {
        Command::new(python).args(["-c", "import nbd"]).output().is_ok_and(|output| output.status.success())
    };
    let found = candidates.into_iter().flatten().find(has_libnbd);
    found.or_else(|| skip("ISOTHERM_REQUIRE_CLIENTS", "no python3 has the module nbd of libnbd"))
}

/// Whether drives can be attached here, and file systems made on them by these programs.
pub fn can_attach(programs: &[&str]) -> Option<()> {
    const REQUIRED_BY: &str = "ISOTHERM_REQUIRE_MOUNTS";
    let id = run(&find("id")?, &["-u"]);
    if id.trim() != "0" {
        return skip(REQUIRED_BY, "attaching a drive takes root");
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            return skip(REQUIRED_BY, &format!("there is no {device}"));
        }
    }
    let missing = programs.iter().chain(&["losetup", "mount", "umount"]).find(|program| find(program).is_none());
    match missing {
        Some(program) => skip(REQUIRED_BY, &format!("{program} is not installed")),
        None => Some(()),
    }
}

/// Runs a program that must succeed; what it printed.
#[track_caller]
pub fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program can be started");
    let text = both(&output);
    assert!(output.status.success(), "{} {arguments:?} failed with {}:\n{text}", program.display(), output.status);
    text
}

/// What a program printed, errors last.
pub fn both(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
