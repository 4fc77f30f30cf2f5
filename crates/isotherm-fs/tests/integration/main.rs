//! Tests of the file system over devices that remember, and crash.

mod access;
mod attended;
mod check;
mod crash;
mod damaged_copies;
mod damaged_log;
mod decisions;
mod dump;
mod exercise;
mod extents;
mod failure;
mod full;
mod held_back;
mod log;
mod open_deleted;
mod repair;
mod support;
mod syncing;
mod trim;
mod unsynced;
