//! A mounted file system with the threads that serve it, from the mount to its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fuser::{Config, Filesystem, Notifier, Session, SessionACL};

use super::attach::{Attach, Rights, attach, can_open_device};
use super::detach::{Force, abort, detach};
use super::error::MountError;
use super::mountpoint::{check, facts};
use crate::write_back::promise_to_write_back;

/// How often a busy mountpoint is tried again.
const RETRY: Duration = Duration::from_millis(20);
/// How long a server may take to notice that its mount is gone. It has nothing left to do by then.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a mount is waited for when it is dropped: programs that look at new files (udev, indexers) close them by then.
const PATIENCE_OF_DROP: Duration = Duration::from_secs(1);

/// Who may use a mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Users {
    /// Who mounted it.
    Owner,
    /// They, and root.
    OwnerAndRoot,
    /// Everybody, as far as permissions go.
    All,
}

/// How a file system is mounted and served.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// The type behind `fuse.`.
    pub kind: &'static str,
    /// What the mount table shows as the source.
    pub source: String,
    /// Threads that take requests.
    pub threads: usize,
    /// No writes.
    pub read_only: bool,
    /// Who may use it.
    pub users: Users,
    /// What its files may do.
    pub rights: Rights,
    /// Gets, before the first request, what tells the kernel that something it remembers is old.
    pub notifier: Arc<OnceLock<Notifier>>,
}

/// A mounted file system. It is unmounted when this is dropped, as by [`unmount`](Mounted::unmount) with a second's patience.
#[derive(Debug)]
pub struct Mounted {
    mountpoint: PathBuf,
    device: (u32, u32),
    server: Option<JoinHandle<()>>,
    /// Behind a lock that nobody waits for, so that threads may share this.
    ended: Mutex<Receiver<io::Result<()>>>,
}

/// How a mount ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Ending {
    /// Nobody had a file of it open. Nothing is served any more.
    Clean,
    /// Somebody had a file open to the last. The mountpoint is free, and who has the file open gets `ENOTCONN` from now on: what was
    /// still to be written through it, as by a file system on a loop device, is lost. A user other than root, on a machine without
    /// the file system `fusectl`, cannot have the kernel say so: there the file is served until it is closed.
    Forced,
}

impl Mounted {
    /// Mounts `filesystem` and serves it from threads of its own.
    pub(crate) fn new<F: Filesystem>(filesystem: F, mountpoint: &Path, service: Service) -> Result<Self, MountError> {
        let mountpoint = check(mountpoint)?;
        let mut config = Config::default();
        config.n_threads = Some(service.threads);
        // With a descriptor each, threads do not queue for one another's lock in the kernel.
        config.clone_fd = can_open_device();
        config.acl = match service.users {
            Users::Owner => SessionACL::Owner,
            Users::OwnerAndRoot => SessionACL::RootAndOwner,
            Users::All => SessionACL::All,
        };
        let how = Attach {
            kind: service.kind,
            source: &service.source,
            read_only: service.read_only,
            allow_other: service.users != Users::Owner,
            rights: service.rights,
        };
        let descriptor = attach(&mountpoint, how)?;
        let device = facts(&mountpoint).map(|found| found.device);
        let (say_ended, ended) = channel();
        let serving = device.map_err(io::Error::from).and_then(|device| {
            let session = Session::from_fd(filesystem, descriptor, config.acl, config)?;
            let _ = service.notifier.set(session.notifier());
            let server = thread::Builder::new().name("fuse".into()).spawn(move || {
                promise_to_write_back();
                // Nobody listens any more where the mount outlives its owner.
                let _ = say_ended.send(session.run());
            })?;
            Ok((device, server))
        });
        match serving {
            Ok((device, server)) => Ok(Self { mountpoint, device, server: Some(server), ended: Mutex::new(ended) }),
            Err(error) => {
                // The descriptor is closed, so that the mount is dead already, and nothing was handed out that could be lost.
                let _ = detach(&mountpoint, (0, 0), Force::Final);
                Err(MountError::system(format!("serving {}", mountpoint.display()), error))
            }
        }
    }

    /// How much the kernel reads ahead. The protocol can only lower it, so root sets it where the system's files have it; for others it stays.
    pub(crate) fn set_read_ahead(&self, kib: u32) {
        let (major, minor) = self.device;
        let _ = std::fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), kib.to_string());
    }

    /// Where it is mounted: an absolute path without symbolic links.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Waits until somebody else unmounts it, at most for `longest`, and says whether it is still mounted then.
    #[must_use]
    pub fn wait(&mut self, longest: Duration) -> bool {
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.server.is_some() && !matches!(ended.recv_timeout(longest), Err(RecvTimeoutError::Timeout)) {
            self.join();
        }
        self.server.is_some()
    }

    /// Unmounts it. While somebody has a file open, tries again for `patience`, and then takes the file away from them:
    /// [`Ending`] says which it was.
    ///
    /// # Errors
    /// Something else is mounted over it, or the system refuses. It stays mounted then, and the next attempt is made on drop.
    pub fn unmount(mut self, patience: Duration) -> Result<Ending, MountError> {
        self.end(patience)
    }

    fn end(&mut self, patience: Duration) -> Result<Ending, MountError> {
        let deadline = Instant::now() + patience;
        loop {
            if !self.wait(Duration::ZERO) {
                return Ok(Ending::Clean);
            }
            if !self.is_on_top() {
                // Unmounted by somebody else just now, or covered by another mount.
                if !self.wait(LAST_WORDS) {
                    return Ok(Ending::Clean);
                }
                return Err(MountError::Mountpoint {
                    path: self.mountpoint.clone(),
                    problem: "something else was mounted over this file system; unmount that first".into(),
                });
            }
            match detach(&self.mountpoint, self.device, Force::Polite) {
                Ok(()) => break,
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    if Instant::now() >= deadline {
                        self.detach_now()?;
                        self.forget_server();
                        return Ok(Ending::Forced);
                    }
                    thread::sleep(RETRY);
                }
                Err(error) => return Err(self.cannot_unmount(error)),
            }
        }
        if !self.wait(LAST_WORDS) {
            return Ok(Ending::Clean);
        }
        // Gone from here, but a copy of the mount lives on in another mount namespace.
        abort(self.device);
        self.forget_server();
        Ok(Ending::Forced)
    }

    fn detach_now(&self) -> Result<(), MountError> {
        detach(&self.mountpoint, self.device, Force::Final).map_err(|error| self.cannot_unmount(error))
    }

    fn cannot_unmount(&self, error: io::Error) -> MountError {
        MountError::system(format!("unmounting {}", self.mountpoint.display()), error)
    }

    fn is_on_top(&self) -> bool {
        facts(&self.mountpoint).is_ok_and(|found| found.is_mount_root && found.device == self.device)
    }

    fn join(&mut self) {
        if let Some(server) = self.server.take() {
            // A panic of the server has been printed, and ended it as well as an error would.
            let _ = server.join();
        }
    }

    /// Waits for a server whose connection was cut; one that could not be cut is left to whoever has the file open.
    fn forget_server(&mut self) {
        let _ = self.wait(LAST_WORDS);
        self.server = None;
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.server.is_some() {
            // Whoever wants to know calls `unmount`.
            let _ = self.end(PATIENCE_OF_DROP);
        }
    }
}
