//! The words of mount(8), fstab(5) and fsck(8).

use super::{Stage, can_mount, said};
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;

/// The options that the table of mounts has of a mountpoint.
fn flags(mountpoint: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts can be listed");
    let mountpoint = mountpoint.canonicalize().expect("it is there");
    let line = mounts.lines().find(|line| line.split(' ').nth(1).map(Path::new) == Some(&mountpoint));
    let options = line.and_then(|line| line.split(' ').nth(3)).expect("it is mounted");
    options.split(',').map(str::to_owned).collect()
}

#[test]
fn what_mount_and_fstab_say_is_understood() {
    let stage = Stage::new();
    let (disk, mount) = (stage.text("disk"), stage.text("mnt"));
    let words = "defaults,user,users,user=me,owner,group,exec,noexec,suid,nosuid,dev,nodev,auto,noauto,nofail,_netdev,async,lazytime,\
                 strictatime,nodiratime,x-systemd.automount,x-gvfs-show";
    stage.ok(&["mount", &disk, &mount, "-n", "-f", "-v", "-t", "fuse.sfs", "-o", words]);
    assert!(!super::is_mounted(&stage.path("mnt")), "-f mounts nothing");
    assert_eq!(stage.run(&["mount", &disk, &mount, "-f", "-o", "nothing=1"]).status.code(), Some(2));
    stage.ok(&["mount", &disk, &mount, "-f", "-s", "-o", "nothing=1"]);
    for (option, fix) in [("dirty=0", "give 1MiB or more"), ("log=in_place", "give sfs"), ("log=", "-o log=")] {
        let refused = stage.run(&["mount", &disk, &mount, "-f", "-o", option]);
        assert!(refused.status.code() == Some(2) && said(&refused).contains(fix), "{option}: {}", said(&refused));
    }
}

/// What stands in a name reaches no terminal, and who reads no further is no reason to panic.
#[test]
fn a_listing_is_a_line_a_name_and_may_be_cut() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("rw");
    fs::write(stage.path("mnt/two\nlines\u{1b}[31m"), b"").expect("there is room");
    for number in 0..2000 {
        fs::write(stage.path(&format!("mnt/{number:0100}")), b"").expect("there is room");
    }
    server.unmount();
    let disk = stage.text("disk");
    let listed = stage.ok(&["ls", &disk, "/"]);
    assert!(listed.contains("two?lines?[31m") && listed.lines().count() == 2001, "{} lines", listed.lines().count());
    let program = env!("CARGO_BIN_EXE_isotherm");
    let script = r#""$0" sfs ls "$1" / | head -c 10 > /dev/null; "$0" sfs fsck -n "$1" > /dev/full; echo $?"#;
    let cut = Command::new("sh").args(["-c", script, program, &disk]).output().expect("a shell");
    assert!(!said(&cut).contains("panicked") && String::from_utf8_lossy(&cut.stdout).trim() == "8", "{}", said(&cut));
}

#[test]
fn helpers_are_the_verbs_that_their_names_say() {
    let stage = Stage::new();
    stage.ok(&["helpers", &stage.text("mnt")]);
    let helper = |name: &str, words: &[&str]| {
        Command::new(stage.path("mnt").join(name)).args(words).output().expect("the link leads to the program")
    };
    for (name, verb) in [
        ("mkfs.sfs", "mkfs"),
        ("fsck.sfs", "fsck"),
        ("dump.sfs", "dump"),
        ("mount.sfs", "mount"),
        ("mount.fuse.sfs", "mount"),
    ] {
        let help = helper(name, &["--help"]);
        assert!(String::from_utf8_lossy(&help.stdout).contains(&format!("Usage: isotherm sfs {verb} ")), "{name}");
    }
    let disk = stage.text("disk");
    assert_eq!(helper("fsck.sfs", &["-n", &disk]).status.code(), Some(0));
    assert_eq!(helper("fsck.sfs", &["--nothing", &disk]).status.code(), Some(16));
    assert_eq!(helper("mkfs.sfs", &[&disk]).status.code(), Some(2), "there is a volume already");
}

/// Opened for reading and no more: no read reaches the server.
#[test]
fn opening_to_read_sets_the_times_that_the_options_leave() {
    let Some(stage) = Stage::that_mounts() else { return };
    let (file, folder) = (stage.path("mnt/file"), stage.path("mnt/folder"));
    let server = stage.serve("noatime");
    fs::write(&file, b"content").expect("there is room");
    fs::create_dir(&folder).expect("there is room");
    server.unmount();
    // From mount to mount: relatime sets a time that is not later than the last change, and then not again.
    for (options, sets) in [
        ("noatime", [false, false]),
        ("ro,strictatime", [false, false]),
        ("noatime,atime,nodiratime", [true, false]),
        ("relatime", [false, true]),
        ("strictatime,nodiratime", [true, false]),
        ("strictatime,atime,norelatime,diratime", [true, true]),
        ("strictatime,nostrictatime", [false, false]),
    ] {
        let server = stage.serve(options);
        for (path, sets) in [&file, &folder].into_iter().zip(sets) {
            let accessed = || fs::metadata(path).map(|is| (is.atime(), is.atime_nsec())).expect("it is there");
            let before = accessed();
            fs::File::open(path).expect("it can be read");
            assert_eq!(accessed() > before, sets, "{options}: {}", path.display());
        }
        server.unmount();
    }
}

#[test]
fn flags_of_a_mount_are_those_that_were_named() {
    let Some(stage) = Stage::that_mounts() else { return };
    let (disk, mount) = (stage.text("disk"), stage.text("mnt"));
    for (options, there) in [
        ("rw", ["nosuid", "nodev"].as_slice()),
        ("suid", &["nodev"]),
        ("dev", &["nosuid"]),
        ("suid,dev", &[]),
        ("noexec", &["nosuid", "nodev", "noexec"]),
        ("user", &["nosuid", "nodev", "noexec"]),
        ("user,exec", &["nosuid", "nodev"]),
    ] {
        let server = stage.serve_with(&[&disk, &mount, "-o", options]);
        let flags = flags(&stage.path("mnt"));
        for flag in ["nosuid", "nodev", "noexec"] {
            assert_eq!(flags.iter().any(|other| other == flag), there.contains(&flag), "{options}: {flags:?}");
        }
        server.unmount();
    }
}

#[test]
fn a_remount_changes_flags_alone_and_says_what_it_cannot_change() {
    let Some(stage) = Stage::that_mounts() else { return };
    let (disk, mount) = (stage.text("disk"), stage.text("mnt"));
    let has = |flag: &str| flags(&stage.path("mnt")).iter().any(|other| other == flag);
    let remount = |options: &str| stage.run(&["mount", &disk, &mount, "-o", &format!("remount,{options}")]);
    let nowhere = remount("ro");
    assert_eq!(nowhere.status.code(), Some(2), "{}", said(&nowhere));
    let server = stage.serve("noexec");
    for options in ["noatime", "commit=10", "rw,groups=3"] {
        let refused = remount(options);
        assert_eq!(refused.status.code(), Some(2), "{options}: {}", said(&refused));
        assert!(said(&refused).contains("unmount it"), "{}", said(&refused));
    }
    // As from fstab(5): what can be done is done, and the rest named.
    let read_only = remount("ro,commit=10");
    assert_eq!(read_only.status.code(), Some(0), "{}", said(&read_only));
    assert!(said(&read_only).contains("commit=10") && has("ro") && has("noexec"), "{}", said(&read_only));
    assert_eq!(remount("rw").status.code(), Some(0));
    fs::write(stage.path("mnt/file"), b"").expect("it is writable again");
    server.unmount();
    let server = stage.serve("ro");
    let refused = remount("rw");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("-o ro") && has("ro"), "{}", said(&refused));
    server.unmount();
}

/// `-y` is named where it helps.
#[test]
fn a_check_does_not_promise_a_repair_that_fails() {
    let stage = Stage::new();
    let disk = stage.text("disk");
    let dumped = stage.ok(&["dump", &disk, "superblock"]);
    let places = dumped.split("checkpoints at blocks ").nth(1).expect("they are told");
    let places =
        places.split(',').next().expect("two").split(" and ").map(|block| block.parse::<u64>().expect("a block"));
    let places: Vec<u64> = places.collect();
    let spoil = |blocks: &[u64]| {
        let file = fs::File::options().write(true).open(&disk).expect("it is there");
        blocks.iter().for_each(|block| file.write_all_at(b"spoilt", block * 4096 + 20).expect("it can be written"));
    };
    let checked = |words: &[&str]| {
        let output = stage.run(&[&["fsck"], words, &[&disk]].concat());
        (output.status.code(), said(&output))
    };
    spoil(&[0]);
    let (code, said) = checked(&["-n"]);
    assert!(code == Some(4) && said.contains("`-y` repairs"), "{said}");
    let (code, said) = checked(&["-y"]);
    assert!(code == Some(1) && said.contains("(repaired)"), "{said}");
    spoil(&places);
    let (code, said) = checked(&["-n"]);
    assert!(code == Some(4) && said.contains("cannot repair") && !said.contains("`-y` repairs"), "{said}");
    assert_eq!(checked(&["-y"]).0, Some(4));
}

#[test]
fn a_check_is_called_as_fsck_calls_it() {
    let stage = Stage::new();
    let disk = stage.text("disk");
    for words in [vec!["-a", "-C0"], vec!["-C"], vec!["-C12", "-T", "-V", "-r"], vec!["-a", "-y"], vec!["-M", "-p"]] {
        stage.ok(&[&["fsck"][..], &words, &[&disk]].concat());
    }
    for words in [vec![], vec!["--nothing", &disk], vec!["-n", "-y", &disk], vec!["-Cx", &disk]] {
        let refused = stage.run(&[&["fsck"][..], &words].concat());
        assert_eq!(refused.status.code(), Some(16), "{words:?}: {}", said(&refused));
    }
    assert_eq!(stage.run(&["fsck", "--help"]).status.code(), Some(0));
    assert_eq!(stage.run(&["mkfs", "--nothing"]).status.code(), Some(2));
    if can_mount() {
        let server = stage.serve("rw");
        assert!(stage.ok(&["fsck", "-M", "-a", &disk]).contains("is mounted"));
        server.unmount();
    }
}
