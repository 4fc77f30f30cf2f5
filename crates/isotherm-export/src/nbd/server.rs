//! A server: exports, how they are served, and where. Each connection has a thread of its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use rustls::ServerConfig;

use super::end::End;
use super::error::ServerError;
use super::export::NamedExport;
use super::handshake::{Offer, negotiate};
use super::link::Link;
use super::listen::{Listen, Listener};
use super::socket::{Socket, SystemSocket};
use super::tls::TlsOptions;
use super::transmission;
use super::wire::STRING_BYTES_MAX;
use crate::ExportError;

/// How long a server rests where it cannot accept: descriptors or memory of the machine are used up.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Hears of events, from several threads at a time.
pub type Observer = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// The longest time that an option may give.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How a server treats its clients.
#[derive(Clone)]
pub struct ServerOptions {
    /// TLS; off unless told.
    pub tls: TlsOptions,
    /// Connections at a time, over all places that are listened on, 1 or more; 64 unless told. What comes beyond is closed at once.
    pub connections_max: usize,
    /// How long a handshake may take in all, above 0 and at most a day; 20 s unless told.
    pub handshake_time_max: Duration,
    /// How long a client may let the server wait in the midst of a request, or for room to send a reply, above 0 and at most a
    /// day; 30 s unless told. Between requests it may be idle as long as it likes.
    pub patience: Duration,
    /// Hears of what happens, from the threads of the connections; nothing unless told.
    pub observer: Option<Observer>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            tls: TlsOptions::default(),
            connections_max: 64,
            handshake_time_max: Duration::from_secs(20),
            patience: Duration::from_secs(30),
            observer: None,
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerOptions")
            .field("tls", &self.tls)
            .field("connections_max", &self.connections_max)
            .field("handshake_time_max", &self.handshake_time_max)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// What happens on a server; connections are numbered from 1 on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A client connected.
    Connected(u64),
    /// A client was turned away, because there are [`connections_max`](ServerOptions::connections_max).
    TurnedAway,
    /// A client chose an export, by this name.
    Chose(u64, &'a str),
    /// A request failed in the export.
    Failed(u64, &'a ExportError),
    /// A connection ended.
    Ended(u64, &'a End),
}

/// Serves exports to clients. Cloning gives another hand on the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    exports: Vec<NamedExport>,
    options: ServerOptions,
    tls_config: Option<Arc<ServerConfig>>,
    connections: Mutex<Connections>,
    ended: Condvar,
}

#[derive(Default)]
struct Connections {
    /// The place that a connection came in by, and its socket.
    open: HashMap<u64, (u64, Arc<OwnedFd>)>,
    /// The last number given out, to connections and to places alike.
    last: u64,
}

/// A place that is listened on. Dropping it stops it as [`stop`](Handle::stop) does.
pub struct Handle {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    stop: Arc<AtomicBool>,
    place: u64,
    acceptor: Option<JoinHandle<()>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("exports", &self.shared.exports).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handle").field("uri", &self.uri()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server of these exports, of which the first is also the one of clients that name none. Several may be views of one
    /// drive.
    ///
    /// # Errors
    /// Where there is no export, two have one name, a text is longer than 4096 bytes, an option is out of its range, or a
    /// certificate cannot be read.
    pub fn new(exports: Vec<NamedExport>, options: ServerOptions) -> Result<Server, ServerError> {
        check_exports(&exports).map_err(ServerError::Exports)?;
        check_options(&options).map_err(ServerError::Options)?;
        let tls_config = options.tls.load()?;
        let connections = Mutex::default();
        Ok(Server { shared: Arc::new(Shared { exports, options, tls_config, connections, ended: Condvar::new() }) })
    }

    /// Begins to listen, and to serve whoever comes. May be called several times, for several places.
    ///
    /// # Errors
    /// See [`Listen`]; also where the system refuses.
    pub fn listen(&self, listen: &Listen) -> Result<Handle, ServerError> {
        let shared = Arc::clone(&self.shared);
        let listener = Arc::new(Listener::bind(listen, shared.options.tls.mode)?);
        let stop = Arc::new(AtomicBool::new(false));
        let place = shared.connections().number();
        let acceptor = {
            let (shared, listener, stop) = (Arc::clone(&shared), Arc::clone(&listener), Arc::clone(&stop));
            thread::Builder::new().name("nbd-accept".into()).spawn(move || accept(&shared, &listener, &stop, place))
        };
        let acceptor = acceptor.map_err(|cause| ServerError::Io { place: listener.uri(), cause })?;
        Ok(Handle { shared, listener, stop, place, acceptor: Some(acceptor) })
    }

    /// Serves one client over any stream, on the calling thread, and says why it ended.
    pub fn serve<S: Socket>(&self, socket: S) -> End {
        let id = self.shared.connections().number();
        self.shared.serve(socket, id, Arc::default())
    }
}

impl Handle {
    /// As a URI of the protocol, with the default export: for messages, and for clients that take one.
    pub fn uri(&self) -> String {
        self.listener.uri()
    }

    /// The address that is listened on, where it is one of TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    /// Ends it: no client is accepted any more and no request read; what was read is carried out and answered, also where the
    /// answer is held back; then the connections close. At last everything that was acknowledged is made durable.
    ///
    /// # Errors
    /// Where an export cannot be flushed.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.end_connections();
        for named in &self.shared.exports {
            named.export.flush().map_err(|cause| ServerError::Flush { name: named.name.clone(), cause })?;
        }
        Ok(())
    }

    fn end_connections(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.listener.stop();
        if let Some(acceptor) = self.acceptor.take() {
            // It ends by the stop alone; a panic of it has been printed.
            let _ = acceptor.join();
        }
        let mut connections = self.shared.connections();
        for (_, socket) in connections.open.values().filter(|(place, _)| *place == self.place) {
            // Wakes the thread from waiting for the next request. A client that is gone need not be told.
            let _ = shutdown(socket, Shutdown::Read);
        }
        while connections.open.values().any(|(place, _)| *place == self.place) {
            connections = self.shared.ended.wait(connections).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.acceptor.is_some() {
            self.end_connections();
            for named in &self.shared.exports {
                // Whoever wants to hear of an error calls `stop`.
                let _ = named.export.flush();
            }
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe(&self, event: Event<'_>) {
        if let Some(observer) = &self.options.observer {
            observer(event);
        }
    }

    fn serve<S: Socket>(&self, socket: S, id: u64, stop: Arc<AtomicBool>) -> End {
        self.observe(Event::Connected(id));
        let deadline = Instant::now() + self.options.handshake_time_max;
        let mut link = Link::new(socket, deadline, stop);
        let tls = self.options.tls.mode;
        let offer = Offer { exports: &self.exports, tls, tls_config: self.tls_config.as_ref() };
        let end = negotiate(&mut link, offer).and_then(|session| {
            self.observe(Event::Chose(id, &session.export.name));
            transmission::serve(&mut link, &session, &|error| self.observe(Event::Failed(id, &error)))
        });
        let end = match end {
            Err(end) => end,
            Ok(never) => match never {},
        };
        link.finish(&end);
        self.observe(Event::Ended(id, &end));
        end
    }

    /// Serves an accepted client on a thread of its own.
    fn begin(self: &Arc<Self>, client: OwnedFd, stop: &Arc<AtomicBool>, place: u64) -> io::Result<()> {
        let client = Arc::new(client);
        let id = {
            let mut connections = self.connections();
            if connections.open.len() >= self.options.connections_max {
                drop(connections);
                self.observe(Event::TurnedAway);
                return Ok(());
            }
            let id = connections.number();
            connections.open.insert(id, (place, Arc::clone(&client)));
            id
        };
        let open = Open { shared: Arc::clone(self), id };
        let stop = Arc::clone(stop);
        thread::Builder::new().name(format!("nbd-{id}")).spawn(move || {
            // The kernel's 50 us would come on top of each wait for a reply that is due; without it replies are later, and no less
            // right.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            match SystemSocket::new(client, open.shared.options.patience) {
                Ok(socket) => drop(open.shared.serve(socket, id, stop)),
                Err(error) => open.shared.observe(Event::Ended(id, &End::Io(error))),
            }
        })?;
        Ok(())
    }
}

impl Connections {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// A connection's entry in the list, which goes when the connection's thread ends, by whatever way.
struct Open {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.id);
        self.shared.ended.notify_all();
    }
}

fn accept(shared: &Arc<Shared>, listener: &Listener, stop: &Arc<AtomicBool>, place: u64) {
    while !stop.load(Ordering::Acquire) {
        // A client that is gone before it was accepted costs nothing; where the machine lacks something, it may come back.
        let begun = listener.accept().and_then(|client| shared.begin(client, stop, place));
        if begun.is_err() && !stop.load(Ordering::Acquire) {
            thread::sleep(ACCEPT_REST);
        }
    }
}

fn check_exports(exports: &[NamedExport]) -> Result<(), String> {
    if exports.is_empty() {
        return Err("there is nothing to serve; give one export at least".into());
    }
    let mut names = HashSet::new();
    for NamedExport { name, description, export, .. } in exports {
        if !names.insert(name) {
            return Err(format!("two exports are called {name:?}; give each a name of its own"));
        }
        if name.len() > STRING_BYTES_MAX || description.len() > STRING_BYTES_MAX {
            return Err(format!("a name or description is longer than {STRING_BYTES_MAX} bytes; shorten it"));
        }
        if i64::try_from(export.size_bytes()).is_err() {
            return Err(format!("{name:?} is larger than 8 EiB; clients cannot address that"));
        }
        if !export.page_bytes().is_power_of_two() {
            return Err(format!("{name:?} has pages of {} bytes; a power of two is needed", export.page_bytes()));
        }
    }
    Ok(())
}

fn check_options(options: &ServerOptions) -> Result<(), &'static str> {
    let is_out_of_range = |time: Duration| time.is_zero() || time > TIME_MAX;
    if options.connections_max == 0 {
        return Err("connections_max is 0, and nobody could connect; give 1 or more");
    }
    if is_out_of_range(options.handshake_time_max) || is_out_of_range(options.patience) {
        return Err("handshake_time_max and patience must be above 0 and at most a day");
    }
    Ok(())
}
