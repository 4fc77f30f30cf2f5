//! A server of the Network Block Device protocol: fixed newstyle, structured replies, block status, TLS. After the protocol's
//! text, `doc/proto.md` of the project NetworkBlockDevice; `docs/nbd.md` says what of it is served, and with which limits.
//!
//! Each connection has one thread. It reads requests through a large buffer, carries them out in the order in which they came,
//! and sends replies together when it would wait for the next request. Memory of a connection is bounded whatever clients send.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use isotherm_export::Export;
//! use isotherm_export::nbd::{Listen, NamedExport, Server, ServerOptions};
//! # fn serve(drive: Arc<dyn Export>) -> Result<(), isotherm_export::nbd::ServerError> {
//! let export = NamedExport { name: "drive".into(), description: String::new(), read_only: false, export: drive };
//! let server = Server::new(vec![export], ServerOptions::default())?;
//! let handle = server.listen(&Listen::Unix("/run/user/1000/drive.sock".into()))?;
//! println!("{}", handle.uri());
//! handle.stop()
//! # }
//! ```

mod buffer;
mod channel;
mod end;
mod error;
mod export;
mod handshake;
mod held;
mod link;
mod listen;
mod reply;
mod server;
mod socket;
mod tls;
mod transmission;
mod wire;

pub use end::End;
pub use error::ServerError;
pub use export::NamedExport;
pub use listen::Listen;
pub use server::{Event, Handle, Observer, Server, ServerOptions};
pub use socket::{Socket, Wait};
pub use tls::{TlsMode, TlsOptions};
