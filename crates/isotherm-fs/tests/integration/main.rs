//! Tests of the file system over devices that remember, and crash.

mod crash;
mod log;
mod support;
