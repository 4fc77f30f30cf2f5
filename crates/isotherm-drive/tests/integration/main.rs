//! A drive from outside.

mod crashes;
mod support;
