//! A server for a test, in a folder of its own; both are gone when the test ends, also by a panic.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isotherm_export::Export;
use isotherm_export::nbd::{Event, Handle, Listen, NamedExport, Server, ServerError, ServerOptions};
use tempfile::TempDir;

use crate::memory::Memory;
use crate::raw::Raw;

/// See the module's text.
pub struct Serving {
    // Before the folder, which its socket lies in.
    handle: Option<Handle>,
    pub server: Server,
    pub folder: TempDir,
    ends: Arc<Mutex<Vec<String>>>,
}

/// Options under which a server waits for hardly anything.
pub fn impatient() -> ServerOptions {
    let (handshake_time_max, patience) = (Duration::from_millis(800), Duration::from_millis(800));
    ServerOptions { handshake_time_max, patience, ..ServerOptions::default() }
}

/// An export under a name.
pub fn named(name: &str, export: Arc<dyn Export>) -> NamedExport {
    NamedExport { name: name.into(), description: format!("what {name} holds"), read_only: false, export }
}

impl Serving {
    /// Serves one export over a unix socket.
    pub fn unix(export: Arc<dyn Export>) -> Serving {
        Serving::with(vec![named("it", export)], ServerOptions::default(), true)
    }

    /// Serves zeros in memory over a unix socket.
    pub fn memory(size_bytes: usize) -> Serving {
        Serving::unix(Arc::new(Memory::new(size_bytes)))
    }

    /// Serves over a unix socket or a TCP port.
    pub fn with(exports: Vec<NamedExport>, mut options: ServerOptions, is_unix: bool) -> Serving {
        let (folder, ends) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&ends);
        options.observer = Some(Arc::new(move |event| {
            if let Event::Ended(_, end) = event {
                seen.lock().unwrap().push(end.to_string());
            }
        }));
        let listen = match is_unix {
            true => Listen::Unix(folder.path().join("s")),
            false => Listen::Tcp("127.0.0.1:0".parse().unwrap()),
        };
        let server = Server::new(exports, options).unwrap();
        let handle = Some(server.listen(&listen).unwrap());
        Serving { handle, server, folder, ends }
    }

    pub fn handle(&self) -> &Handle {
        self.handle.as_ref().unwrap()
    }

    pub fn uri(&self) -> String {
        self.handle().uri()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub fn connect(&self) -> Raw<UnixStream> {
        Raw::connect(&self.path())
    }

    pub fn ready(&self, structured: bool) -> Raw<UnixStream> {
        Raw::ready(&self.path(), structured)
    }

    pub fn connect_tcp(&self) -> Raw<TcpStream> {
        let stream = TcpStream::connect(self.handle().address().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Raw { stream }
    }

    pub fn stop(&mut self) -> Result<(), ServerError> {
        self.handle.take().unwrap().stop()
    }

    /// Waits until so many connections have ended; why they did.
    pub fn ends(&self, count: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let ends = self.ends.lock().unwrap().clone();
            if ends.len() >= count {
                return ends;
            }
            assert!(Instant::now() < until, "connections that should have ended are there: {ends:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A client that behaves is served.
    pub fn check_alive(&self) {
        let mut raw = self.ready(true);
        raw.write(512, &[42; 512]);
        raw.request(0, crate::raw::DISC, 0, 0, 0, &[]);
        raw.expect_end();
    }
}
