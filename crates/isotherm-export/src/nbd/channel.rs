//! A socket as the protocol sees it: plain, or within TLS once the client has asked for it.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::socket::{Socket, Wait};

/// See the module's text.
pub(super) struct Channel<S> {
    socket: S,
    tls: Option<Box<ServerConnection>>,
}

impl<S: Socket> Channel<S> {
    pub fn new(socket: S) -> Channel<S> {
        Channel { socket, tls: None }
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// From here on, everything is within TLS. The handshake of TLS happens as bytes are received.
    pub fn start_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        self.tls = Some(Box::new(ServerConnection::new(config).map_err(io::Error::other)?));
        Ok(())
    }

    /// As [`Socket::receive`].
    pub fn receive(&mut self, into: &mut [u8], wait: Wait) -> io::Result<usize> {
        let Channel { socket, tls } = self;
        let Some(tls) = tls else { return socket.receive(into, wait) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A client that leaves without a farewell is treated as one that took its leave: what it sent was complete
                // requests, each with its length, so that nothing can be cut off unnoticed.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            // The end of the stream is remembered, and shows in the next read above.
            tls.read_tls(&mut Records { socket, wait })?;
            let processed = tls.process_new_packets().map_err(io::Error::other);
            // Also after a failure: the client is to hear of it.
            send_records(tls, socket)?;
            processed?;
        }
    }

    /// Sends all bytes.
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Channel { socket, tls } = self;
        let Some(tls) = tls else { return send_all(socket, bytes) };
        while !bytes.is_empty() {
            // Takes as much as its own buffer allows.
            let taken = tls.writer().write(bytes)?;
            bytes = &bytes[taken..];
            send_records(tls, socket)?;
        }
        Ok(())
    }

    /// Tells the client that nothing more will come.
    pub fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // A client that is gone need not be told.
            let _ = send_records(tls, &mut self.socket);
        }
        self.socket.end();
    }
}

fn send_all<S: Socket>(socket: &mut S, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.send(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send_records<S: Socket>(tls: &mut ServerConnection, socket: &mut S) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut Records { socket, wait: Wait::Patiently }) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A socket as TLS sees it.
struct Records<'a, S> {
    socket: &'a mut S,
    wait: Wait,
}

impl<S: Socket> Read for Records<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.receive(into, self.wait)
    }
}

impl<S: Socket> Write for Records<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
