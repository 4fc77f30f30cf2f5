//! Drives a headless Chromium over a pipe, with nothing but the standard library and JSON: one page, its console, its
//! requests. The protocol is Chromium's own DevTools protocol, messages ending in a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running Chromium with one page.
pub struct Browser {
    child: Child,
    /// Its folder, which goes with it.
    profile: PathBuf,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    last_id: u64,
    /// What the page said on its console, and exceptions that nothing caught.
    pub console: Vec<String>,
    /// Addresses that the page asked for, its own aside.
    pub requests: Vec<String>,
}

/// The browser to test with: `CHROMIUM`, or the first of the usual names on the path.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file())
}

impl Browser {
    /// Starts Chromium, or says on standard error why the test is skipped. With `ISOTHERM_REQUIRE_CHROMIUM` set, as
    /// `make test` sets it where Chromium could be installed, a missing browser fails the test.
    pub fn start(scratch: &Path) -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("ISOTHERM_REQUIRE_CHROMIUM").is_none(), "no chromium on the path");
            // Not `eprintln!`: the test harness would swallow it.
            let reason = "skipped: no chromium on the path, so the page is not tested in a browser";
            writeln!(std::io::stderr(), "{reason}").expect("standard error is open");
            return None;
        };
        let profile = scratch.join(format!("profile-{}", std::process::id()));
        std::fs::create_dir_all(&profile).expect("the folder is ours");
        let mut child = Command::new("sh")
            // The browser reads commands on descriptor 3 and answers on 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(program)
            .args(
                "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
                    .split(' '),
            )
            .args(
                "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe".split(' '),
            )
            .arg(format!("--user-data-dir={}", profile.display()))
            // What it leaves behind when it is killed lies there too.
            .env("TMPDIR", &profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let (sender, messages) = channel();
        let mut answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while matches!(answers.read_until(0, &mut message), Ok(n) if n > 1) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let commands = child.stdin.take().expect("stdin is piped");
        let mut browser = Self {
            child,
            profile,
            commands,
            messages,
            session: String::new(),
            last_id: 0,
            console: Vec::new(),
            requests: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Opens an address in a window of this size, light or dark, and waits until it has loaded.
    pub fn open(&mut self, address: &str, width: u32, height: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.scheme(scheme);
        self.call("Page.navigate", json!({ "url": address }));
        let end = Instant::now() + PATIENCE;
        while self.evaluate("document.readyState") != "complete" || self.evaluate("location.href") == "about:blank" {
            assert!(Instant::now() < end, "the page did not load");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Switches the page to a light or dark colour scheme.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The value of a JavaScript expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Sends a command and waits for its answer; events that come before it are kept.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("a command is JSON");
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser listens");
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("no answer to {method}: {e}"));
            if message["id"] == self.last_id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        match event["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.console.push(event["params"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                let address = event["params"]["request"]["url"].as_str().unwrap_or("").to_owned();
                if event["params"]["type"] != "Document" {
                    self.requests.push(address);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have gone already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its children may still be writing there, for a moment.
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
