//! `isotherm drive` from outside: images, the served drive with real clients, and what is left of it after every kind of end.

mod attached;
#[path = "../../../isotherm-report/tests/integration/browser.rs"]
mod browser;
#[path = "../../../isotherm-export/tests/integration/certificates.rs"]
mod certificates;
mod clients;
mod ends;
mod full;
mod images;
mod page;
mod records;
mod stage;
mod tls;
mod tools;
