//! What a server offers: exports with names.

use std::fmt;
use std::sync::Arc;

use super::wire::{PAYLOAD_BYTES_MAX, transmission_flag as flag};
use crate::Export;

/// The smallest unit that clients are asked to keep to, in bytes.
const MINIMUM_BLOCK_BYTES: u32 = 512;

/// An export under the name that clients ask for.
#[derive(Clone)]
pub struct NamedExport {
    /// At most 4096 bytes, and unlike the others of a server.
    pub name: String,
    /// Shown to people; at most 4096 bytes, and may be empty.
    pub description: String,
    /// Refuses whatever would change the content (EPERM).
    pub read_only: bool,
    /// The bytes.
    pub export: Arc<dyn Export>,
}

impl fmt::Debug for NamedExport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamedExport { name, description, read_only, export } = self;
        formatter
            .debug_struct("NamedExport")
            .field("name", name)
            .field("description", description)
            .field("read_only", read_only)
            .field("size_bytes", &export.size_bytes())
            .finish()
    }
}

impl NamedExport {
    /// `NBD_INFO_BLOCK_SIZE`: minimum, preferred and maximum, in bytes. A size that is no multiple of the minimum would put its
    /// last bytes out of reach: then every byte can be addressed.
    pub(super) fn block_bytes(&self) -> [u32; 3] {
        let minimum =
            if self.export.size_bytes().is_multiple_of(MINIMUM_BLOCK_BYTES.into()) { MINIMUM_BLOCK_BYTES } else { 1 };
        [minimum, self.export.page_bytes().clamp(MINIMUM_BLOCK_BYTES, PAYLOAD_BYTES_MAX), PAYLOAD_BYTES_MAX]
    }

    /// The transmission flags, for a client with or without structured replies.
    pub(super) fn flags(&self, structured: bool) -> u16 {
        let mut flags = flag::HAS_FLAGS
            | flag::SEND_FLUSH
            | flag::SEND_FUA
            | flag::SEND_TRIM
            | flag::SEND_WRITE_ZEROES
            | flag::CAN_MULTI_CONN
            | flag::SEND_CACHE
            | flag::SEND_FAST_ZERO;
        if self.read_only {
            flags |= flag::READ_ONLY;
        }
        if structured {
            flags |= flag::SEND_DF;
        }
        flags
    }
}
