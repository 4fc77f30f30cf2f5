//! The live page as its readers get it: over raw TCP, and in a real headless Chromium.

#[path = "../../../isotherm-report/tests/integration/browser.rs"]
mod browser;
mod client;
mod events;
mod fake;
mod file_system;
mod http;
mod limits;
mod page;
