//! One file per trace format.

pub(crate) mod csv;
