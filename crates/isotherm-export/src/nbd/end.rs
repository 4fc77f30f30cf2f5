//! Why a connection ended.

use std::io;

/// Why a connection ended. None of these concerns any other connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// The client took its leave.
    #[error("the client disconnected")]
    Disconnected,
    /// The client closed its side between two requests.
    #[error("the client closed the connection")]
    Closed,
    /// The client closed its side in the midst of a message.
    #[error("the client closed the connection in the midst of a message")]
    Cut,
    /// The server was stopped.
    #[error("the server was stopped")]
    Stopped,
    /// The client neither sent nor took bytes that were awaited, or took too long over the handshake.
    #[error("the client took too long")]
    TooSlow,
    /// The client broke the protocol in a way that leaves no place to go on from.
    #[error("the client broke the protocol: {0}")]
    Misbehaved(&'static str),
    /// The socket, or TLS upon it, failed.
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
}

impl End {
    /// Whether nothing more can be sent.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self, End::TooSlow | End::Io(_))
    }
}
