//! Where a server listens: a unix socket that nobody else may open, or a TCP port of this machine.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode};
use rustix::net::{self, AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::error::ServerError;
use super::tls::TlsMode;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// How long another server that is about to listen in the same folder is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// A TCP client that is silent for this long is asked whether it is still there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// again after each of these,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// and given up after so many questions.
const KEEPALIVE_COUNT: u32 = 4;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A unix socket, which only its owner may open (mode 0600). What a dead server left there is replaced; a live server is
    /// left alone, and so is anything that is no socket.
    Unix(PathBuf),
    /// A TCP port; 0 for one that is free. Beyond this machine, only where TLS is required.
    Tcp(SocketAddr),
}

/// A socket that listens.
pub(super) struct Listener {
    descriptor: Arc<OwnedFd>,
    place: Place,
}

/// Where it listens in fact.
enum Place {
    /// A path, and the device and inode of what was put there.
    Unix(PathBuf, (u64, u64)),
    Tcp(SocketAddr),
}

impl Listener {
    /// Begins to listen.
    pub fn bind(listen: &Listen, tls: TlsMode) -> Result<Listener, ServerError> {
        match listen {
            Listen::Unix(path) => bind_unix(path),
            Listen::Tcp(address) => bind_tcp(*address, tls),
        }
    }

    /// The next client.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        let client = net::accept_with(&self.descriptor, SocketFlags::CLOEXEC)?;
        if let Place::Tcp(_) = self.place {
            sockopt::set_tcp_nodelay(&client, true)?;
            sockopt::set_socket_keepalive(&client, true)?;
            sockopt::set_tcp_keepidle(&client, KEEPALIVE_IDLE)?;
            sockopt::set_tcp_keepintvl(&client, KEEPALIVE_INTERVAL)?;
            sockopt::set_tcp_keepcnt(&client, KEEPALIVE_COUNT)?;
        }
        Ok(client)
    }

    /// Accepts no client any more; a call of [`accept`](Listener::accept) that waits returns.
    pub fn stop(&self) {
        // The one error that a listening socket can give is that it was stopped before.
        let _ = net::shutdown(&self.descriptor, Shutdown::Both);
    }

    /// As a URI of the protocol, with the default export.
    pub fn uri(&self) -> String {
        match &self.place {
            Place::Unix(path, _) => format!("nbd+unix:///?socket={}", path.display()),
            Place::Tcp(address) => format!("nbd://{address}"),
        }
    }

    /// The TCP address.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.place {
            Place::Unix(..) => None,
            Place::Tcp(address) => Some(address),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Place::Unix(path, identity) = &self.place else { return };
        // Another server may have taken the place over since.
        if fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == *identity) {
            let _ = fs::remove_file(path);
        }
    }
}

fn bind_unix(path: &Path) -> Result<Listener, ServerError> {
    let failed = |cause: io::Error| ServerError::Io { place: path.display().to_string(), cause };
    let refused = |reason: &str| ServerError::Listen { place: path.display().to_string(), reason: reason.into() };
    let address =
        SocketAddrUnix::new(path).map_err(|_| refused("the path is too long for a socket; 107 bytes is the most"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Between the look at an old socket and its replacement, no other server may do the same.
    let _lock =
        lock(folder).map_err(|error| refused(&format!("cannot lock the folder {}: {error}", folder.display())))?;
    let socket = || net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(refused("something else than a socket is there; choose another path"));
        }
        Ok(_) => match net::connect(socket().map_err(|error| failed(error.into()))?, &address) {
            Err(rustix::io::Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed)?,
            Err(error) => return Err(failed(error.into())),
            Ok(()) => return Err(refused("another server listens there; stop it, or choose another path")),
        },
    }
    let bound = || -> io::Result<(OwnedFd, (u64, u64))> {
        let socket = socket()?;
        // The file gets the mode of the socket: it is never open to more users, not even for a moment.
        rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        net::bind(&socket, &address)?;
        let found = fs::symlink_metadata(path)?;
        net::listen(&socket, BACKLOG)?;
        Ok((socket, (found.dev(), found.ino())))
    };
    let (socket, identity) = bound().map_err(failed)?;
    Ok(Listener { descriptor: Arc::new(socket), place: Place::Unix(path.into(), identity) })
}

/// Holds a lock on a folder until the descriptor is dropped.
fn lock(folder: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder)?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn bind_tcp(address: SocketAddr, tls: TlsMode) -> Result<Listener, ServerError> {
    if !address.ip().is_loopback() && tls != TlsMode::Require {
        return Err(ServerError::Listen {
            place: address.to_string(),
            reason:
                "without TLS, anyone on the network could read and write; require TLS, or listen on 127.0.0.1 or [::1]"
                    .into(),
        });
    }
    let failed = |cause: io::Error| ServerError::Io { place: address.to_string(), cause };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok(Listener { descriptor: Arc::new(listener.into()), place: Place::Tcp(bound) })
}
