//! A folder with an image, and a server of it that goes away with the test.

use super::tools::{both, run};
use crate::command::isotherm;
use serde_json::Value;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with the image `d.flash`.
pub struct Stage(TempDir);

impl Stage {
    /// An empty folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with an image of a device with these options.
    pub fn with(device: &[&str]) -> Self {
        let stage = Self::new();
        stage.ok(&[&["create", &stage.image()], device].concat());
        stage
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("temporary folders have names in UTF-8").to_owned()
    }

    pub fn image(&self) -> String {
        self.path("d.flash")
    }

    /// Runs `isotherm drive`, which must succeed; its standard output.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = isotherm(&[&["drive"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", both(&output));
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    /// Serves the image over a unix socket.
    pub fn serve(&self, options: &[&str]) -> Server {
        let server = self.start(&[&[self.image().as_str()], options].concat());
        assert!(server.is_up(), "the drive is not served: {}", server.said());
        server
    }

    /// Starts a server with these arguments, and waits until it serves or has ended.
    pub fn start(&self, arguments: &[&str]) -> Server {
        let (log, socket) = (self.path("log"), self.path("nbd.sock"));
        // A server that was killed leaves its sockets.
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(self.path("d.ctl"));
        let errors = File::create(&log).expect("the log can be made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        command.args(["drive", "serve", "--nbd", &format!("unix:{socket}")]).args(arguments).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(errors).spawn().expect("the binary was built for this test");
        let mounted =
            arguments.iter().skip_while(|argument| **argument != "--fuse").nth(1).map(|&folder| folder.to_owned());
        let mut server = Server { child, image: self.image(), control: self.path("d.ctl"), socket, log, mounted };
        let start = Instant::now();
        while !server.is_up() && server.child.try_wait().expect("a child").is_none() {
            assert!(start.elapsed() < PATIENCE, "the drive is not served: {}", server.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }
}

/// A server; killed where it still runs at the end.
pub struct Server {
    child: Child,
    image: String,
    control: String,
    socket: String,
    log: String,
    /// Folder that is served with FUSE.
    mounted: Option<String>,
}

impl Server {
    fn is_up(&self) -> bool {
        UnixStream::connect(&self.control).is_ok()
    }

    /// What it wrote to standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log can be read")
    }

    /// Where the whole drive is.
    pub fn uri(&self) -> String {
        self.uri_of("disk")
    }

    pub fn uri_of(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket)
    }

    /// Asks with a verb of `isotherm drive`; what it printed.
    #[track_caller]
    pub fn ask(&self, verb: &[&str], rest: &[&str]) -> String {
        let output = isotherm(&[&["drive"], verb, &[&self.image], rest].concat());
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {}", both(&output));
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    /// The answer to a verb as JSON.
    #[track_caller]
    pub fn json(&self, verb: &[&str], rest: &[&str]) -> Value {
        serde_json::from_str(&self.ask(verb, rest)).expect("the answer is JSON")
    }

    /// Runs a script with an open handle `h` of libnbd.
    #[track_caller]
    pub fn script(&self, python: &Path, text: &str) -> String {
        run(python, &["-m", "nbd", "--base-allocation", "--uri", &self.uri(), "-c", text])
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("a child");
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn terminate(self) -> String {
        run(Path::new("/bin/sh"), &["-c", &format!("kill -TERM {}", self.child.id())]);
        self.ended()
    }

    /// Stops it in order.
    #[track_caller]
    pub fn stop(self) -> String {
        self.ask(&["stop"], &[]);
        self.ended()
    }

    /// Cuts the drive's power.
    #[track_caller]
    pub fn cut(self) -> String {
        self.ask(&["power-cut"], &[]);
        self.ended()
    }

    /// Waits for an end with exit code 0; what it said.
    #[track_caller]
    pub fn ended(self) -> String {
        self.ended_with(0)
    }

    /// Waits for an end with this exit code; what it said.
    #[track_caller]
    pub fn ended_with(mut self, code: i32) -> String {
        let status = self.wait();
        assert_eq!(status.code(), Some(code), "{}", self.said());
        assert!(!Path::new(&self.control).exists(), "the control socket is left");
        self.said()
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the server does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A server that was killed leaves what it had mounted.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        if let Some(folder) = self.mounted.as_ref().filter(|folder| mounts.contains(folder.as_str())) {
            let _ = Command::new("umount").args(["--lazy", folder]).status();
        }
    }
}
