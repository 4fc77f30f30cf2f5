//! What keeps a server from being made, from listening or from stopping well.

use std::io;
use std::path::PathBuf;

use crate::ExportError;

/// See the module's text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The exports cannot be served together, or not at all.
    #[error("{0}")]
    Exports(String),
    /// An option has a value that no server can keep to.
    #[error("{0}")]
    Options(&'static str),
    /// A certificate or key cannot be used.
    #[error(
        "{path}: {reason}; the folder of certificates must hold server-cert.pem and server-key.pem, and ca-cert.pem where clients \
         are verified"
    )]
    Tls {
        /// The file, or the folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {place}: {reason}")]
    Listen {
        /// The path or address.
        place: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A socket failed.
    #[error("{place}: {cause}")]
    Io {
        /// The path or address.
        place: String,
        /// What the system says; part of the message.
        cause: io::Error,
    },
    /// What was acknowledged could not be made durable when the server stopped.
    #[error("{name:?} could not be flushed when the server stopped: {cause}")]
    Flush {
        /// The export's name.
        name: String,
        /// What the export says; part of the message.
        cause: ExportError,
    },
}
