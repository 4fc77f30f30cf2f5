//! A drive from outside.

mod crashes;
mod images;
mod support;
