//! Ghost caches: what a cache would hold if it were larger. They keep addresses, not data.

pub mod audit;
pub mod bitmap;
pub mod lru;

pub use audit::{GhostAudit, GhostAuditCounters, GhostAuditResults};
pub use bitmap::GhostBitmap;
pub use lru::GhostLru;
