//! A drive from outside.

mod crashes;
mod images;
mod protected;
mod support;
