//! Reads and writes that end in time: a socket's own timeout is for one call, and a client that sends or takes a byte now and then
//! would never run into it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A point in time by which a socket has to be done.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Reads what is there, at least a byte; 0 at the end.
    pub(crate) fn read(self, mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            stream.set_read_timeout(Some(self.left()?))?;
            match stream.read(buffer) {
                Err(error) if is_passing(&error) => {}
                done => return done,
            }
        }
    }

    /// Writes all of it.
    pub(crate) fn write(self, mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            stream.set_write_timeout(Some(self.left()?))?;
            match stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Never zero, which a socket takes for no timeout at all.
    fn left(self) -> io::Result<Duration> {
        match self.0.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// A signal, or a timeout of the socket: the deadline says whether time is really up.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
