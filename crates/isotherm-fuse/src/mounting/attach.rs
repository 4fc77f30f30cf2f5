//! Asking the kernel for a FUSE mount: mount(2) where this process may, else through `fusermount3`, which is installed setuid.
//!
//! What the kernel takes as options is in its Documentation/filesystems/fuse/fuse.rst, how the helper hands over the descriptor in
//! libfuse's doc/fusermount3.1: it is named a socket by `_FUSE_COMMFD`, and sends the descriptor of /dev/fuse there as a control
//! message (SCM_RIGHTS). Here that socket is the helper's standard input, the one descriptor that a child can be given safely.

use std::ffi::CString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::MountFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getgid, getuid};

use super::error::MountError;

/// The program that mounts for users who may not.
pub(crate) const HELPER: &str = "fusermount3";
const DEVICE: &str = "/dev/fuse";

/// How a directory is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attach<'a> {
    /// The type behind `fuse.`.
    pub kind: &'a str,
    /// What the mount table shows as the source.
    pub source: &'a str,
    /// No writes.
    pub read_only: bool,
    /// Users other than the one who mounts get as far as the session, which then decides.
    pub allow_other: bool,
    /// What its files may do.
    pub rights: Rights,
}

/// What the files of a mount may do beyond being read and written: flags of mount(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Set-user-ID bits have their effect; root only.
    pub suid: bool,
    /// Device nodes have their effect; root only.
    pub dev: bool,
    /// Programs can be started.
    pub exec: bool,
}

impl Default for Rights {
    fn default() -> Self {
        Self { suid: false, dev: false, exec: true }
    }
}

/// Mounts a file system without a server yet, and returns the descriptor to serve it by.
pub(crate) fn attach(mountpoint: &Path, how: Attach<'_>) -> Result<OwnedFd, MountError> {
    if let Err(error) = Path::new(DEVICE).metadata() {
        return Err(MountError::NoDevice(error));
    }
    match mount_directly(mountpoint, how) {
        Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => mount_by_helper(mountpoint, how),
        done => done.map_err(|error| match error {
            // The device node is there, the driver behind it is not.
            rustix::io::Errno::NODEV | rustix::io::Errno::NXIO => MountError::NoDevice(error.into()),
            _ => MountError::system(format!("mounting {}", mountpoint.display()), error),
        }),
    }
}

/// Whether this process can open the device itself, which a descriptor for each thread needs.
pub(crate) fn can_open_device() -> bool {
    open_device().is_ok()
}

fn open_device() -> rustix::io::Result<OwnedFd> {
    openat(CWD, DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

fn mount_directly(mountpoint: &Path, how: Attach<'_>) -> rustix::io::Result<OwnedFd> {
    let device = open_device()?;
    let mut options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        getuid().as_raw(),
        getgid().as_raw()
    );
    if how.allow_other {
        options.push_str(",allow_other");
    }
    let options = CString::new(options).expect("the options hold no NUL");
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, how.read_only);
    flags.set(MountFlags::NOSUID, !how.rights.suid);
    flags.set(MountFlags::NODEV, !how.rights.dev);
    flags.set(MountFlags::NOEXEC, !how.rights.exec);
    rustix::mount::mount(how.source, mountpoint, format!("fuse.{}", how.kind), flags, options.as_c_str())?;
    Ok(device)
}

fn mount_by_helper(mountpoint: &Path, how: Attach<'_>) -> Result<OwnedFd, MountError> {
    if how.rights.suid || how.rights.dev {
        let problem = "set-user-ID bits and device nodes of a mount have their effect only where root mounts it";
        return Err(MountError::Options(problem.into()));
    }
    let mut options = format!("fsname={},subtype={},default_permissions,nosuid,nodev", how.source, how.kind);
    if how.read_only {
        options.push_str(",ro");
    }
    if !how.rights.exec {
        options.push_str(",noexec");
    }
    if how.allow_other {
        options.push_str(",allow_other");
    }
    let (ours, theirs) = UnixStream::pair().map_err(|error| MountError::system("opening a socket pair", error))?;
    // The command holds the child's end; it must be gone before the socket is read, or a helper that fails would not end it.
    let child = Command::new(HELPER)
        .args(["-o", &options, "--"])
        .arg(mountpoint)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => MountError::NoHelper,
            _ => MountError::system(format!("starting {HELPER}"), error),
        })?;
    let received = receive_descriptor(&ours);
    let output =
        child.wait_with_output().map_err(|error| MountError::system(format!("waiting for {HELPER}"), error))?;
    match received {
        Ok(Some(device)) => Ok(device),
        // The helper opens the device as the user.
        Ok(None) if !can_open_device() => {
            let fix = "run as root, or let this user read and write /dev/fuse (mode 0666 is usual)";
            Err(MountError::Helper(format!("{}; {fix}", first_line(&output.stderr))))
        }
        Ok(None) => Err(MountError::Helper(first_line(&output.stderr))),
        Err(error) => Err(MountError::system(format!("hearing from {HELPER}"), error)),
    }
}

/// The descriptor that the helper sends, or `None` if it ends without one.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

/// What a program said first, without its own name.
pub(crate) fn first_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().next().unwrap_or("ended without a reason").trim();
    line.strip_prefix(HELPER).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_helper_says_is_quoted_once() {
        assert_eq!(
            first_line(b"fusermount3: user has no write access to mountpoint /x\nmore"),
            "user has no write access to mountpoint /x"
        );
        assert_eq!(first_line(b"mount failed"), "mount failed");
        assert_eq!(first_line(b""), "ended without a reason");
    }

    #[test]
    fn a_helper_that_ends_without_a_descriptor_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert!(receive_descriptor(&ours).unwrap().is_none());
    }
}
