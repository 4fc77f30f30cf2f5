//! `isotherm sfs` from outside: volumes that are made, mounted, killed, checked, and looked at without a mount.

mod copying;
mod devices;
mod mounting;
mod words;

use crate::command::isotherm;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a volume and an empty mountpoint. Whatever a test leaves mounted in it goes with it.
struct Stage(TempDir);

impl Drop for Stage {
    fn drop(&mut self) {
        // Every path begins with an empty one.
        let Ok(folder) = self.0.path().canonicalize() else { return };
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
        for place in places.filter(|place| place.starts_with(&folder)) {
            let _ = Command::new("umount").arg("-l").arg(place).stderr(Stdio::null()).status();
        }
    }
}

impl Stage {
    /// For a test that mounts; if this machine cannot, says so.
    fn that_mounts() -> Option<Self> {
        can_mount().then(Self::new)
    }

    fn new() -> Self {
        let stage = Self(tempfile::tempdir().expect("a temporary folder"));
        fs::create_dir(stage.path("mnt")).expect("a folder");
        stage.ok(&["mkfs", &stage.text("disk"), "--size", "64MiB"]);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("temporary folders have names in UTF-8").to_owned()
    }

    /// Holds the volume as a server does that makes its last checkpoint, until it is dropped.
    fn lock(&self) -> fs::File {
        let disk = fs::File::open(self.path("disk")).expect("the volume");
        flock(&disk, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
        disk
    }

    fn run(&self, words: &[&str]) -> Output {
        isotherm(&[&["sfs"], words].concat())
    }

    /// Runs `isotherm sfs`, which must succeed; its standard output.
    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    fn serve(&self, options: &str) -> Server {
        self.serve_with(&[&self.text("disk"), &self.text("mnt"), "-o", options])
    }

    fn serve_with(&self, words: &[&str]) -> Server {
        let child = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .args(["sfs", "serve"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut server = Server { child, mountpoint: self.path("mnt") };
        let start = Instant::now();
        while !is_mounted(&self.path("mnt")) {
            assert!(server.child.try_wait().expect("it can be asked").is_none(), "the server ended");
            assert!(start.elapsed() < PATIENCE, "not mounted");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts can be listed");
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    mounts.lines().any(|line| line.split(' ').nth(1).map(OsStr::new) == Some(folder.as_os_str()))
}

struct Server {
    child: Child,
    mountpoint: PathBuf,
}

impl Server {
    /// Unmounts, and waits until the last checkpoint is made.
    fn unmount(mut self) {
        let done = Command::new("umount").arg(&self.mountpoint).status().expect("umount starts");
        assert!(done.success(), "umount failed");
        let start = Instant::now();
        while self.child.try_wait().expect("it can be asked").is_none() {
            assert!(start.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
        let _ = Command::new("umount").arg("-l").arg(&self.mountpoint).status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mountpoint).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this machine can mount; if not, says so.
fn can_mount() -> bool {
    let can = rustix::process::getuid().is_root() && PathBuf::from("/dev/fuse").exists();
    if !can {
        let thread = std::thread::current();
        writeln!(
            std::io::stderr(),
            "skipped: {}: mounting needs root and /dev/fuse",
            thread.name().unwrap_or("a test")
        )
        .expect("standard error is open");
    }
    can
}

#[test]
fn what_was_written_to_a_mount_is_there_without_it_and_the_volume_is_clean() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("suid,dev");
    let mount = stage.path("mnt");
    fs::create_dir(mount.join("d")).expect("a folder");
    fs::write(mount.join("d/file"), b"hello\n").expect("a file");
    fs::hard_link(mount.join("d/file"), mount.join("link")).expect("a link");
    for (to, from) in [("d/file", "soft"), ("../..", "d/up"), ("/ring", "ring")] {
        std::os::unix::fs::symlink(to, mount.join(from)).expect("a link");
    }
    fs::set_permissions(mount.join("link"), fs::Permissions::from_mode(0o4711)).expect("it is ours");
    stage.ok(&["sync", &stage.text("mnt")]);
    let stats: serde_json::Value = serde_json::from_str(&stage.ok(&["stats", &stage.text("mnt")])).expect("JSON");
    assert_eq!(stats["blocks_waiting"], 0, "{stats}");
    assert!(stats["transactions"].as_u64() >= Some(4), "{stats}");
    server.unmount();
    assert!(stage.ok(&["fsck", &stage.text("disk"), "--data"]).contains("clean"));
    for name in ["/link", "/soft", "/d/up/soft"] {
        assert_eq!(stage.ok(&["cat", &stage.text("disk"), name]), "hello\n", "{name}");
    }
    let ring = stage.run(&["cat", &stage.text("disk"), "/ring"]);
    assert!(ring.status.code() == Some(2) && said(&ring).contains("symbolic links"), "{}", said(&ring));
    let listed = stage.ok(&["ls", &stage.text("disk"), "/"]);
    assert!(listed.contains("-4711     2") && listed.contains("soft"), "{listed}");
    stage.ok(&["cp", &stage.text("disk"), "/", &stage.text("copy")]);
    assert_eq!(fs::read(stage.path("copy/d/file")).expect("it was copied"), b"hello\n");
    assert!(stage.ok(&["dump", &stage.text("disk"), "directory", "1"]).contains("link"));
}

#[test]
fn what_was_synced_is_there_after_the_server_was_killed() {
    let Some(stage) = Stage::that_mounts() else { return };
    for round in 0..5u8 {
        let server = stage.serve("commit=0.2,checkpoint=0.5");
        let mount = stage.path("mnt");
        for earlier in 0..round {
            let content = fs::read(mount.join(format!("kept{earlier}"))).expect("it was synced");
            assert_eq!(content, vec![earlier; 100_000 + usize::from(earlier)], "round {round}");
        }
        let mut file = fs::File::create(mount.join(format!("kept{round}"))).expect("a file");
        file.write_all(&vec![round; 100_000 + usize::from(round)]).expect("there is room");
        file.sync_all().expect("it becomes durable");
        fs::write(mount.join("lost"), vec![round; 300_000]).expect("there is room");
        server.kill();
        let check = stage.run(&["fsck", "-n", "--data", &stage.text("disk")]);
        assert_eq!(check.status.code(), Some(0), "round {round}: {}", said(&check));
        assert!(said(&check).contains("clean when its log is rolled forward"), "round {round}: {}", said(&check));
    }
}

#[test]
fn what_is_damaged_since_the_last_checkpoint_is_told_by_whoever_reads_the_volume() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("checkpoint=60");
    for name in ["damaged", "whole"] {
        let mut file = fs::File::create(stage.path("mnt").join(name)).expect("a file");
        file.write_all(name.repeat(1000).as_bytes()).expect("there is room");
        file.sync_all().expect("it becomes durable");
    }
    server.kill();
    let mut disk = fs::read(stage.path("disk")).expect("the volume");
    let content = "damaged".repeat(100);
    let at = disk.windows(content.len()).position(|window| window == content.as_bytes()).expect("it was synced");
    disk[at] ^= 1;
    fs::write(stage.path("disk"), disk).expect("there is room");
    let disk = stage.text("disk");
    for (words, code) in [
        (vec!["ls", &disk], 0),
        (vec!["cat", &disk, "whole"], 0),
        (vec!["cat", &disk, "damaged"], 2),
        (vec!["cp", &disk, "whole", &stage.text("copy")], 0),
        (vec!["files", &disk], 0),
    ] {
        let output = stage.run(&words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        let told = said(&output).contains("damaged blocks of file data since the last checkpoint: 1;");
        assert!(told, "{words:?}: {}", said(&output));
    }
    assert_eq!(stage.ok(&["cat", &disk, "whole"]), "whole".repeat(1000));
}

#[test]
fn a_volume_that_is_mounted_is_locked() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("ro");
    assert!(fs::write(stage.path("mnt/x"), b"").is_err(), "a read-only mount was written to");
    // Others may read what is mounted read-only.
    assert!(stage.ok(&["fsck", "-n", &stage.text("disk")]).contains("clean"));
    // Nothing waits there that would have to be made durable first.
    assert_eq!(stage.ok(&["files", &stage.text("mnt")]), "Filesystem type is: sfs\n");
    server.unmount();

    // Nobody is kept waiting for what may stay mounted for ever.
    let server = stage.serve("rw");
    let (disk, mount) = (stage.text("disk"), stage.text("mnt"));
    let start = Instant::now();
    for (words, code) in [(vec!["ls", &disk], 2), (vec!["mkfs", &disk, "--force"], 2), (vec!["fsck", "-y", &disk], 8)] {
        let refused = stage.run(&words);
        assert_eq!(refused.status.code(), Some(code), "{words:?}: {}", said(&refused));
        let names_it = said(&refused).contains(&format!("is mounted on {mount}; unmount it first"));
        assert!(names_it, "{words:?}: {}", said(&refused));
    }
    assert!(start.elapsed() < PATIENCE / 3, "they waited {:?}", start.elapsed());
    server.unmount();
    // A server that was unmounted may still be making its last checkpoint.
    let held = stage.lock();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        let end = Instant::now();
        drop(held);
        end
    });
    stage.ok(&["ls", &disk]);
    let listed = Instant::now();
    assert!(listed >= ends.join().expect("no panic"), "it did not wait");
}

#[test]
fn a_volume_on_a_simulated_drive_counts_what_the_flash_does() {
    let Some(stage) = Stage::that_mounts() else { return };
    let mount = stage.path("mnt");
    let stats = || -> serde_json::Value {
        stage.ok(&["sync", &stage.text("mnt")]);
        serde_json::from_str(&stage.ok(&["stats", &stage.text("mnt")])).expect("JSON")
    };
    let drive = "sim:--logical-size 96MiB --op 10% --placement sepbit";
    let server = stage.serve_with(&[&stage.text("mnt"), "--on", drive, "--record", &stage.text("recording")]);
    let file = fs::File::create(mount.join("file")).expect("a file");
    let block = vec![7; 4096];
    for at in 0..60_000u64 {
        std::os::unix::fs::FileExt::write_all_at(&file, &block, at * 7919 % 12_000 * 4096).expect("there is room");
    }
    file.sync_all().expect("it becomes durable");
    // A file that is open keeps the volume from being unmounted.
    drop(file);
    let told = stats();
    let number =
        |path: &str| told.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{path}: {told}"));
    // The drive was written to by the file system alone, mkfs aside: its first blocks and a checkpoint.
    let of_file_system = number("/written_blocks") * 4096.0;
    assert!((number("/device/host_bytes_written") / of_file_system - 1.0).abs() < 0.05, "{told}");
    assert!(number("/device/write_amplification") >= 1.0 && number("/device/blocks_erased") > 0.0, "{told}");
    let product = number("/write_amplification") * number("/device/write_amplification");
    assert!((number("/write_amplification_end_to_end") / product - 1.0).abs() < 1e-9, "{told}");
    assert_eq!(told["device"]["specification"]["placement"]["name"], "sepbit");
    server.unmount();
    // The simulator's machine decides the same from what was recorded.
    let replayed = stage.ok(&["replay", &stage.text("recording")]);
    assert!(replayed.contains("are the same") && !replayed.contains("ends before"), "{replayed}");
    assert_eq!(stage.run(&["replay", &stage.text("nowhere")]).status.code(), Some(2));
    // An image keeps what is in it.
    let image = format!("sim:{}", stage.text("disk.flash"));
    let made = isotherm(&["drive", "create", &stage.text("disk.flash"), "--logical-size", "64MiB", "--op", "10%"]);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    let server = stage.serve_with(&[&stage.text("mnt"), "--on", &image]);
    fs::write(mount.join("kept"), b"kept").expect("there is room");
    server.unmount();
    let server = stage.serve_with(&[&stage.text("mnt"), "--on", &image]);
    assert_eq!(fs::read(mount.join("kept")).expect("it was kept"), b"kept");
    server.unmount();
}

/// Blocks of each file of a map: its number in the file, and the byte of the device where it lies.
fn blocks_of(map: &str) -> std::collections::BTreeMap<String, Vec<(u64, u64)>> {
    let mut files = std::collections::BTreeMap::new();
    let mut blocks = &mut Vec::new();
    for line in map.lines() {
        let columns: Vec<&str> = line.split(':').map(str::trim).collect();
        if let Some(rest) = line.strip_prefix("File size of ") {
            let name = rest.split_once(" is ").expect("it names a size").0;
            blocks = files.entry(name.to_owned()).or_insert_with(Vec::new);
        } else if columns[0].parse::<u64>().is_ok() {
            let range = |text: &str| text.split_once("..").map(|(from, _)| from.trim().parse().expect("a number"));
            let (block, place): (u64, u64) = (range(columns[1]).expect("a range"), range(columns[2]).expect("a range"));
            let count: u64 = columns[3].parse().expect("a number");
            blocks.extend((0..count).map(|i| (block + i, (place + i) * 4096)));
        }
    }
    files
}

#[test]
fn a_map_says_where_the_bytes_of_files_lie_and_advise_names_them() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("noatime");
    let mount = stage.path("mnt");
    fs::create_dir(mount.join("db")).expect("a folder");
    let sizes = [("/db/hot", 1024u64), ("/db/cold", 4096)];
    let tag =
        |name: &str, block: u64, version: u64| format!("{name} {block} {version};").repeat(600)[..4096].to_owned();
    for (name, blocks) in sizes {
        let file = fs::File::create(mount.join(&name[1..])).expect("a file");
        let write = |block: u64, version: u64| {
            let content = tag(name, block, version);
            std::os::unix::fs::FileExt::write_all_at(&file, content.as_bytes(), block * 4096).expect("there is room");
        };
        (0..blocks).for_each(|block| write(block, 0));
        stage.ok(&["sync", &stage.text("mnt")]);
        // Every other block moves: there are more extents than one answer of the server holds.
        (0..blocks).step_by(2).for_each(|block| write(block, 1));
    }
    fs::hard_link(mount.join("db/hot"), mount.join("db/same")).expect("a link");
    fs::write(mount.join("empty"), b"").expect("a file");
    fs::create_dir(mount.join("none")).expect("a folder");
    let mounted = stage.ok(&["files", &stage.text("mnt")]);
    server.unmount();
    let map = stage.ok(&["files", &stage.text("disk")]);
    assert!(map == mounted, "the same volume has two maps");
    assert!(map.starts_with("Filesystem type is: sfs\n"), "{map:.200}");
    let files = blocks_of(&map);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["/db/cold", "/db/hot"], "one name of each file that has blocks");
    let disk = fs::read(stage.path("disk")).expect("the volume");
    for (name, blocks) in sizes {
        assert_eq!(files[name].iter().map(|at| at.0).collect::<Vec<_>>(), (0..blocks).collect::<Vec<_>>());
        for &(block, place) in &files[name] {
            let found = &disk[place as usize..place as usize + 4096];
            assert!(found == tag(name, block, (block + 1) % 2).as_bytes(), "block {block} of {name}");
        }
    }
    for words in [["files", &stage.text("nowhere")], ["files", stage.0.path().to_str().expect("a path")]] {
        assert_eq!(stage.run(&words).status.code(), Some(2), "{words:?}");
    }

    // Nine of ten writes go to where one file lies.
    let mut trace = String::from("ts_ns,op,offset,length\n");
    let all: Vec<u64> = files.values().flatten().map(|at| at.1).collect();
    for at in 0..60_000usize {
        let hot = &files["/db/hot"];
        let place = if at % 10 > 0 { hot[at * 7919 % hot.len()].1 } else { all[at / 10 % all.len()] };
        trace.push_str(&format!("{at}000000,W,{place},4096\n"));
    }
    fs::write(stage.path("trace.csv"), trace).expect("a file");
    fs::write(stage.path("map.txt"), map).expect("a file");
    let (trace, map, out) = (stage.text("trace.csv"), stage.text("map.txt"), stage.text("out"));
    let output = isotherm(&["advise", &trace, "--fill", "100%", "--file-map", &map, "--json", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let advice: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(advice["files"][0]["name"], "/db/hot", "{}", advice["files"]);
    // Counted by pieces of 16 pages, some of which hold blocks of both.
    let share = advice["files"][0]["write_share"].as_f64().expect("a number");
    assert!((share - 0.92).abs() < 0.05, "{share}");
    let notes = advice["situation"]["notes"].to_string();
    assert!(notes.contains("a log, whose files move") && notes.contains("at most 9 % of"), "{notes}");
}

/// What the live page at an address answers; none where nobody listens.
fn fetch(address: &str, path: &str) -> Option<serde_json::Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("the page listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer ends with the connection");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
    Some(serde_json::from_str(body).expect("JSON"))
}

#[test]
fn a_live_page_has_the_numbers_of_the_statistics_and_ends_with_the_mount() {
    let Some(stage) = Stage::that_mounts() else { return };
    let mount = stage.path("mnt");
    let sim = "sim:--logical-size 96MiB --op 10%";
    for place in [vec![stage.text("disk"), stage.text("mnt")], vec![stage.text("mnt"), "--on".into(), sim.into()]] {
        let mut words = vec!["mount"];
        words.extend(place.iter().map(String::as_str));
        // Nothing happens by itself while two numbers are compared.
        words.extend(["--ui", "127.0.0.1:0", "-o", "commit=1000,checkpoint=1000"]);
        let mounted = stage.run(&words);
        assert_eq!(mounted.status.code(), Some(0), "{}", said(&mounted));
        let said = said(&mounted);
        let address = said.strip_prefix("live page: http://").and_then(|rest| rest.strip_suffix("/\n"));
        let address = address.unwrap_or_else(|| panic!("it says where the page is, and nothing else: {said}"));

        let file = fs::File::create(mount.join("file")).expect("a file");
        for at in 0..20_000u64 {
            let block = [at as u8; 4096];
            std::os::unix::fs::FileExt::write_all_at(&file, &block, at * 7919 % 8_000 * 4096).expect("there is room");
        }
        drop(file);
        stage.ok(&["sync", &stage.text("mnt")]);
        // The background may be cleaning.
        let start = Instant::now();
        let (told, shown) = loop {
            let told: serde_json::Value =
                serde_json::from_str(&stage.ok(&["stats", &stage.text("mnt")])).expect("JSON");
            // What is published is half a second old at most.
            std::thread::sleep(Duration::from_millis(600));
            let shown = fetch(address, "/stats").expect("the page is there");
            if shown == told || start.elapsed() > PATIENCE {
                break (told, shown);
            }
        };
        assert_eq!(shown, told);
        assert!(told["host_blocks"].as_u64() >= Some(20_000) && told["write_cost"].as_f64() >= Some(1.0), "{told}");
        assert_eq!(told["device"].is_object(), place.len() == 3, "{told}");
        let cells = fetch(address, "/cells").expect("the page is there");
        assert_eq!((&cells["units"], &cells["by_state"][0]), (&told["segments"], &told["segments_free"]));

        let status = Command::new("umount").arg(&mount).status().expect("umount starts");
        assert!(status.success(), "umount failed");
        let start = Instant::now();
        while TcpStream::connect(address).is_ok() {
            assert!(start.elapsed() < PATIENCE, "the page outlives the mount");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let remote = stage.run(&["serve", &stage.text("disk"), &stage.text("mnt"), "--ui", "0.0.0.0:0"]);
    assert_eq!(remote.status.code(), Some(2), "{}", said(&remote));
    assert!(said(&remote).contains("127.0.0.1"), "{}", said(&remote));
    assert!(!is_mounted(&mount));
}

#[test]
fn wrong_input_is_an_error_that_names_the_place() {
    let stage = Stage::new();
    let disk = stage.text("disk");
    fs::write(stage.path("foreign"), vec![7; 1 << 20]).expect("a file");
    for (words, part) in [
        (vec!["mkfs", disk.as_str()], "--force"),
        (vec!["mkfs", &stage.text("small"), "--size", "1MiB"], "larger device"),
        (vec!["mkfs", &stage.text("odd"), "--size", "64MiB", "--segment", "300KB"], "multiple of 4 KiB"),
        (vec!["ls", &stage.text("foreign")], "no SFS volume"),
        (vec!["ls", &stage.text("nowhere")], "cannot be opened"),
        (vec!["cat", disk.as_str(), "/nothing"], "nothing"),
        (vec!["mount", disk.as_str(), &stage.text("mnt"), "-o", "group=4"], "no such option"),
        (vec!["mount", disk.as_str(), &stage.text("mnt"), "-o", "groups=99"], "groups"),
        (vec!["mount", disk.as_str(), &stage.text("mnt"), "-o", "segment=1MiB"], "mkfs --segment"),
        (vec!["mount", disk.as_str(), &stage.text("mnt"), "-o", "sync"], "fsync(2)"),
        (vec!["dump", &stage.text("foreign"), "superblock"], "no superblock"),
        (vec!["dump", disk.as_str(), "page"], "number is missing"),
        (vec!["serve", &stage.text("mnt"), "--on", "sim:"], "--logical-size"),
        (vec!["serve", &stage.text("mnt"), "--on", "sim:--logical-size 1GiB --ftl nothing"], "nothing"),
        (vec!["serve", &stage.text("mnt"), "--on", "sim:--size 1GiB"], "--size"),
        (vec!["serve", &stage.text("mnt"), "--on", "ram"], "write sim:"),
        (vec!["serve", disk.as_str(), &stage.text("mnt"), "--on", "sim:"], "mountpoint alone"),
        (vec!["serve", disk.as_str()], "mountpoint is missing"),
        (vec!["mount", &stage.text("mnt"), "--on", "sim:nowhere.flash"], "nowhere.flash"),
    ] {
        let output = stage.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
    }
    let check = stage.run(&["fsck", &stage.text("foreign")]);
    assert_eq!(check.status.code(), Some(8), "{}", said(&check));
}
