//! Programs that tests run beside the server. One that is missing skips its test with a printed reason, or fails it where
//! `ISOTHERM_REQUIRE_CLIENTS=1` says that all are there.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may run.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program by its name; none, with a printed reason, where it is missing.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Skips the rest of a test.
pub fn skip(reason: &str) {
    let is_required = std::env::var_os("ISOTHERM_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
    assert!(!is_required, "{reason}, and ISOTHERM_REQUIRE_CLIENTS=1 requires it");
    println!("skipped: {reason}");
}

/// A program that runs; killed where it is still there at the end.
pub struct Running {
    pub child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub fn start(program: &Path, arguments: &[&OsStr]) -> Running {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().unwrap() }
    }

    /// Waits for its end; whether it succeeded, and what it printed.
    pub fn wait(mut self) -> (bool, String) {
        // What it prints is read aside, so that it never waits for room.
        let mut out = self.child.stdout.take().unwrap();
        let mut errors = self.child.stderr.take().unwrap();
        let readers =
            [std::thread::spawn(move || read_all(&mut out)), std::thread::spawn(move || read_all(&mut errors))];
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "a program takes longer than {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(5));
        };
        let text: String = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        (status.success(), text)
    }
}

/// Runs a program, which must succeed; what it printed.
pub fn run<T: AsRef<OsStr>>(program: &Path, arguments: &[T]) -> String {
    let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let (succeeded, text) = Running::start(program, &arguments).wait();
    assert!(succeeded, "{} {arguments:?} failed:\n{text}", program.display());
    text
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
