//! `isotherm drive` from outside: images, the served drive with real clients, and what is left of it after every kind of end.

mod attached;
#[path = "../../../isotherm-export/tests/integration/certificates.rs"]
mod certificates;
mod clients;
mod ends;
mod images;
mod records;
mod stage;
mod tls;
mod tools;
