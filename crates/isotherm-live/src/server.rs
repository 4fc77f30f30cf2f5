//! The server: a thread that accepts, one that samples, and one for each connection.

use crate::board::Board;
use crate::connections::Connections;
use crate::response::{self, Status};
use crate::source::Source;
use crate::{routes, sampler};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long to wait after the system refused a connection, for want of descriptors perhaps.
const PAUSE: Duration = Duration::from_millis(50);

/// A page that is being served; dropping it ends that.
pub struct LivePage {
    address: SocketAddr,
    board: Arc<Board>,
    connections: Arc<Connections>,
    /// Closed to wake the thread that accepts.
    alive: Option<PipeWriter>,
    threads: Vec<JoinHandle<()>>,
}

impl LivePage {
    /// Serves a page over `source` on `addr`; port 0 takes a free one. Everybody who reaches an address that is not a loopback one
    /// can read the page, so it takes `allow_remote`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an address that is not a loopback one without `allow_remote`; else what the system says to
    /// binding the address and to starting threads.
    pub fn start(addr: SocketAddr, source: Arc<dyn Source>, allow_remote: bool) -> io::Result<Self> {
        if !addr.ip().to_canonical().is_loopback() && !allow_remote {
            let words = format!(
                "{addr} can be reached from other machines, and whoever reaches it could read the live page: \
                 serve it on 127.0.0.1 or [::1], or allow remote readers"
            );
            return Err(io::Error::new(ErrorKind::InvalidInput, words));
        }
        let listener = TcpListener::bind(addr)
            .map_err(|e| io::Error::new(e.kind(), format!("the live page cannot be served on {addr}: {e}")))?;
        // A client may go between the wait for it and its acceptance, which must not block.
        listener.set_nonblocking(true)?;
        let (ended, alive) = io::pipe()?;
        let mut page = Self {
            address: listener.local_addr()?,
            board: Arc::new(Board::new(source.about())),
            connections: Arc::default(),
            alive: Some(alive),
            threads: Vec::new(),
        };
        let board = page.board.clone();
        page.spawn("live sampler", move || sampler::run(&*source, &board))?;
        let (board, connections) = (page.board.clone(), page.connections.clone());
        page.spawn("live page", move || accept(&listener, &ended, &board, &connections))?;
        Ok(page)
    }

    /// Where the page is: the address asked for, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the page: when this returns, its connections are closed, its threads have ended and its address is free.
    pub fn stop(self) {}

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        self.board.stop();
        self.alive = None;
        // The one that accepts ends first, so that no connection comes after all were closed.
        while let Some(thread) = self.threads.pop() {
            // A panic of the source has been printed by then, and a page that ends is no place for another.
            let _ = thread.join();
            self.connections.close_all();
        }
    }
}

/// Accepts connections until the other end of `ended` is closed.
fn accept(listener: &TcpListener, ended: &PipeReader, board: &Arc<Board>, connections: &Arc<Connections>) {
    loop {
        let mut waits = [PollFd::new(listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut waits, None) {
            Ok(_) if !waits[1].revents().is_empty() => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => thread::sleep(PAUSE),
        }
        match listener.accept() {
            Ok((stream, _)) => serve(stream, board, connections),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn serve(stream: TcpStream, board: &Arc<Board>, connections: &Arc<Connections>) {
    // Some systems hand the listener's mode down. Small events must not wait for one another.
    if stream.set_nonblocking(false).is_err() || stream.set_nodelay(true).is_err() {
        return;
    }
    let board = board.clone();
    let answer = move |stream: &TcpStream| {
        // A client that went or was too slow is no one's to hear of.
        let _ = routes::answer(stream, &board);
        response::close(stream);
    };
    if let Err(refused) = connections.serve(stream, answer) {
        // A few bytes for the buffer of a new socket: this does not wait.
        let words = "64 connections are open already; close a page and try again";
        let _ = response::send_words(&refused, Status::Unavailable, words, false);
    }
}
