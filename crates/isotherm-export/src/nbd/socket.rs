//! What a connection runs over: the system's stream sockets, or anything else that carries bytes both ways.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, sockopt};

/// How long a call waits for bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until then.
    Until(Instant),
    /// As long as the socket's own patience lasts, which its maker chose.
    Patiently,
}

/// Bytes in both directions.
///
/// # Contract
/// - [`receive`](Socket::receive) returns what is there without waiting for more, 0 once the client has ended its side, and
///   [`ErrorKind::WouldBlock`] when nothing came in the time given. `into` is not empty.
/// - [`send`](Socket::send) waits for room as long as the socket's patience lasts, and returns how many bytes went out, one at
///   least.
/// - [`ErrorKind::Interrupted`] has the call repeated; any other error ends the connection.
pub trait Socket {
    /// Receives bytes.
    ///
    /// # Errors
    /// See the contract.
    fn receive(&mut self, into: &mut [u8], wait: Wait) -> io::Result<usize>;
    /// Sends bytes.
    ///
    /// # Errors
    /// See the contract; [`ErrorKind::WouldBlock`] where the client reads nothing for too long.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Tells the client that nothing more will come.
    fn end(&mut self);
}

/// A unix or TCP socket of the system. The descriptor is shared with whoever ends the connection from another thread.
pub(super) struct SystemSocket {
    descriptor: Arc<OwnedFd>,
}

impl SystemSocket {
    /// Takes a connected socket that blocks; calls wait for `patience`.
    pub fn new(descriptor: Arc<OwnedFd>, patience: Duration) -> io::Result<SystemSocket> {
        for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&descriptor, direction, Some(patience))?;
        }
        Ok(SystemSocket { descriptor })
    }
}

impl Socket for SystemSocket {
    fn receive(&mut self, into: &mut [u8], wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::Patiently => RecvFlags::empty(),
            Wait::No => RecvFlags::DONTWAIT,
            Wait::Until(until) => {
                wait_readable(&self.descriptor, until)?;
                RecvFlags::DONTWAIT
            }
        };
        let (count, _) = net::recv(&self.descriptor, into, flags)?;
        Ok(count)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.descriptor, bytes, SendFlags::NOSIGNAL)?)
    }

    fn end(&mut self) {
        // A client that is gone need not be told.
        let _ = net::shutdown(&self.descriptor, Shutdown::Write);
    }
}

/// Waits until there is something to receive, or `until` has come.
fn wait_readable(descriptor: &OwnedFd, until: Instant) -> io::Result<()> {
    let rest = until.saturating_duration_since(Instant::now());
    let seconds = i64::try_from(rest.as_secs()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    let rest = Timespec { tv_sec: seconds, tv_nsec: rest.subsec_nanos().into() };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&rest))?;
    Ok(())
}
