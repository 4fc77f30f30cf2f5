//! Programs that speak the protocol: what one writes another reads, over unix sockets and TCP.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::memory::Memory;
use crate::serving::{Serving, named};
use crate::tools::{self, Running, run};

const SIZE: usize = 64 << 20;

/// A server over a unix socket, and one over TCP.
fn both() -> [Serving; 2] {
    [true, false]
        .map(|is_unix| Serving::with(vec![named("it", Arc::new(Memory::new(SIZE)))], Default::default(), is_unix))
}

/// A file of the size of the export: data, a hole, and data again.
fn image(folder: &Path) -> PathBuf {
    let path = folder.join("image");
    let data: Vec<u8> = (0..5_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut bytes = vec![0; SIZE];
    bytes[..data.len()].copy_from_slice(&data);
    bytes[SIZE - data.len()..].copy_from_slice(&data);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn nbdinfo_sees_sizes_flags_and_names() {
    let Some(nbdinfo) = tools::find("nbdinfo") else { return };
    for serving in both() {
        let facts = run(&nbdinfo, &["--json", &serving.uri()]);
        for fact in [
            "\"protocol\": \"newstyle-fixed\"",
            "\"structured\": true",
            "\"export-size\": 67108864",
            "\"description\": \"what it holds\"",
            "\"base:allocation\"",
            "\"is_read_only\": false",
            "\"can_cache\": true",
            "\"can_df\": true",
            "\"can_fast_zero\": true",
            "\"can_flush\": true",
            "\"can_fua\": true",
            "\"can_multi_conn\": true",
            "\"can_trim\": true",
            "\"can_zero\": true",
            "\"block_size_minimum\": 512",
            "\"block_size_preferred\": 4096",
            "\"block_size_maximum\": 33554432",
        ] {
            assert!(facts.contains(fact), "{fact} is missing in {facts}");
        }
        assert!(run(&nbdinfo, &["--list", "--json", &serving.uri()]).contains("\"export-name\": \"it\""));
    }
}

#[test]
fn nbdcopy_brings_back_what_it_took() {
    let (Some(nbdcopy), Some(nbdinfo)) = (tools::find("nbdcopy"), tools::find("nbdinfo")) else { return };
    for serving in both() {
        let source = image(serving.folder.path());
        let target = serving.folder.path().join("target");
        run(&nbdcopy, &[source.to_str().unwrap(), &serving.uri()]);
        run(&nbdcopy, &[&serving.uri(), target.to_str().unwrap()]);
        assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());
        let map = run(&nbdinfo, &["--map", &serving.uri()]);
        assert!(map.contains("hole,zero") && map.contains("data"), "{map}");
    }
}

#[test]
fn qemu_img_writes_and_compares() {
    let Some(qemu_img) = tools::find("qemu-img") else { return };
    for serving in both() {
        let (source, uri) = (image(serving.folder.path()), serving.uri());
        let source = source.to_str().unwrap();
        run(&qemu_img, &["convert", "-n", "-f", "raw", "-O", "raw", source, &uri]);
        let verdict = run(&qemu_img, &["compare", "-f", "raw", "-F", "raw", source, &uri]);
        assert!(verdict.contains("identical"), "{verdict}");
        assert!(run(&qemu_img, &["map", "-f", "raw", "--output=json", &uri]).contains("\"zero\": true"));
        // A byte that differs is found: the comparison compares.
        serving_write(&serving, 4321);
        let arguments: Vec<&OsStr> = ["compare", "-f", "raw", "-F", "raw", source, &uri].map(OsStr::new).into();
        assert!(!Running::start(&qemu_img, &arguments).wait().0);
    }
}

fn serving_write(serving: &Serving, offset: u64) {
    match serving.handle().address() {
        None => serving.ready(false).write(offset, b"other"),
        Some(_) => {
            let mut raw = serving.connect_tcp();
            raw.greet(1);
            raw.go("");
            raw.write(offset, b"other");
        }
    }
}

#[test]
fn qemu_io_reads_the_patterns_it_wrote() {
    let Some(qemu_io) = tools::find("qemu-io") else { return };
    for serving in both() {
        let commands = [
            "write -P 7 1M 3M",
            "read -P 7 1M 3M",
            "write -f -P 9 700 5000",
            "read -P 9 700 5000",
            "write -z 1M 64k",
            "read -P 0 1M 64k",
            "write -z -u 2M 64k",
            "read -P 0 2M 64k",
            "discard 3M 1M",
            "read -P 0 3M 1M",
            "read -P 7 1114112 512k",
            "aio_write -P 5 10M 1M",
            "aio_write -P 6 12M 1M",
            "aio_flush",
            "flush",
            "read -P 5 10M 1M",
            "read -P 6 12M 1M",
        ];
        let mut arguments = vec!["-f", "raw"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
        let uri = serving.uri();
        arguments.push(&uri);
        let text = run(&qemu_io, &arguments);
        assert!(!text.contains("failed"), "{text}");
    }
}

#[test]
fn fio_verifies_what_it_wrote_and_trims() {
    let Some(fio) = tools::find("fio") else { return };
    if !run(&fio, &["--enghelp"]).contains("nbd") {
        return tools::skip("this fio has no engine nbd");
    }
    for serving in both() {
        let uri = format!("--uri={}", serving.uri());
        for workload in [
            &["--rw=randwrite", "--bsrange=512-256k", "--verify=crc32c", "--verify_state_save=0", "--iodepth=32"][..],
            &["--rw=randtrimwrite", "--bs=4k", "--iodepth=8"],
            &["--rw=randrw", "--bs=8k", "--iodepth=16", "--fsync=20"],
        ] {
            let mut arguments = vec!["--name=test", "--ioengine=nbd", "--size=16m", "--randrepeat=1", &uri];
            arguments.extend(workload);
            let text = run(&fio, &arguments);
            assert!(text.contains("err= 0"), "{text}");
        }
    }
}

#[test]
fn a_file_system_lives_in_an_export_that_nbdfuse_shows_as_a_file() {
    let (Some(nbdfuse), Some(mkfs)) = (tools::find("nbdfuse"), tools::find("mkfs.ext4")) else { return };
    let Some(e2fsck) = tools::find("e2fsck") else { return };
    if !Path::new("/dev/fuse").exists() {
        return tools::skip("there is no /dev/fuse");
    }
    let Some(fusermount) = tools::find("fusermount3") else { return };
    let serving = Serving::memory(SIZE);
    let mountpoint = serving.folder.path().join("mount");
    fs::create_dir(&mountpoint).unwrap();
    let uri = serving.uri();
    let running = Running::start(&nbdfuse, &[mountpoint.as_os_str(), OsStr::new(&uri)]);
    let unmount = Unmount { fusermount: &fusermount, mountpoint: &mountpoint };
    let file = mountpoint.join("nbd");
    let until = Instant::now() + Duration::from_secs(20);
    while !file.exists() {
        assert!(Instant::now() < until, "nbdfuse shows no file");
        std::thread::sleep(Duration::from_millis(20));
    }
    run(&mkfs, &["-q", "-F", file.to_str().unwrap()]);
    let text = run(&e2fsck, &["-f", "-n", file.to_str().unwrap()]);
    assert!(text.contains("Pass 5"), "{text}");
    drop(unmount);
    drop(running);
    // What was written through the file is in the export: the mark of the file system, by a client of its own.
    assert_eq!(serving.ready(false).read_simple(1024 + 56, 2), [0x53, 0xef]);
}

/// Takes a mount away, whatever happens.
struct Unmount<'a> {
    fusermount: &'a Path,
    mountpoint: &'a Path,
}

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let arguments = [OsStr::new("-u"), OsStr::new("-z"), self.mountpoint.as_os_str()];
        let _ = Running::start(self.fusermount, &arguments).wait();
    }
}
