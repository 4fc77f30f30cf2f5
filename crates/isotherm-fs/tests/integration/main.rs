//! Tests of the file system over devices that remember, and crash.

mod log;
mod support;
