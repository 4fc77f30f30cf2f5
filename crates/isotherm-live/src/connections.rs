//! The connections that are open, at most 64 of them, each with a thread of its own.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The most connections at a time.
pub(crate) const MOST: usize = 64;
/// A thread holds the head of a request and calls little.
const STACK_BYTES: usize = 256 * 1024;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
    closed_one: Condvar,
}

#[derive(Default)]
struct Open {
    streams: HashMap<u64, Arc<TcpStream>>,
    next: u64,
}

impl Connections {
    /// Serves a connection in a thread of its own. Where that cannot be, it gives the connection back.
    pub(crate) fn serve(
        self: &Arc<Self>,
        stream: TcpStream,
        serve: impl FnOnce(&TcpStream) + Send + 'static,
    ) -> Result<(), Arc<TcpStream>> {
        let stream = Arc::new(stream);
        let Some(place) = self.enter(&stream) else { return Err(stream) };
        let own = stream.clone();
        let run = move || {
            let _place = place;
            serve(&own);
        };
        let started: io::Result<_> = thread::Builder::new().name("live page".into()).stack_size(STACK_BYTES).spawn(run);
        started.map(|_| ()).map_err(|_| stream)
    }

    /// Closes every connection and waits until their threads have let go of them.
    pub(crate) fn close_all(&self) {
        let mut open = self.lock();
        for stream in open.streams.values() {
            // One that the client has closed is closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        while !open.streams.is_empty() {
            open = self.closed_one.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn enter(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Place> {
        let mut open = self.lock();
        if open.streams.len() == MOST {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.streams.insert(id, stream.clone());
        Some(Place { connections: self.clone(), id })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place among the open ones, given back even when its thread panics.
struct Place {
    connections: Arc<Connections>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().streams.remove(&self.id);
        self.connections.closed_one.notify_all();
    }
}
