//! Ghost caches: what a cache would hold if it were larger. They keep addresses, not data.

pub mod bitmap;
pub mod lru;

pub use bitmap::GhostBitmap;
pub use lru::GhostLru;
