//! The files of the page, part of the program.

/// A file of the page.
pub(crate) struct Asset {
    path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("assets/page.html") },
    Asset { path: "/assets/page.css", kind: "text/css; charset=utf-8", text: include_str!("assets/page.css") },
    Asset { path: "/assets/icon.svg", kind: "image/svg+xml", text: include_str!("assets/icon.svg") },
    Asset { path: "/assets/page.js", kind: SCRIPT, text: include_str!("assets/page.js") },
    Asset { path: "/assets/connection.js", kind: SCRIPT, text: include_str!("assets/connection.js") },
    Asset { path: "/assets/history.js", kind: SCRIPT, text: include_str!("assets/history.js") },
    Asset { path: "/assets/chart.js", kind: SCRIPT, text: include_str!("assets/chart.js") },
    Asset { path: "/assets/bars.js", kind: SCRIPT, text: include_str!("assets/bars.js") },
    Asset { path: "/assets/tables.js", kind: SCRIPT, text: include_str!("assets/tables.js") },
    Asset { path: "/assets/map.js", kind: SCRIPT, text: include_str!("assets/map.js") },
    Asset { path: "/assets/format.js", kind: SCRIPT, text: include_str!("assets/format.js") },
];

/// The file at an address.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
