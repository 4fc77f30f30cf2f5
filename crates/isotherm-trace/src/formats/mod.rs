//! One file per trace format; [`event`] is what the logs of block events share.

pub(crate) mod alibaba;
pub(crate) mod biotracer;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod csv;
pub(crate) mod disksim;
mod event;
pub(crate) mod fiu;
pub(crate) mod iolog;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod oracle_general;
#[cfg_attr(not(feature = "parquet"), path = "parquet_absent.rs")]
pub(crate) mod parquet;
pub(crate) mod spc;
pub(crate) mod systor;
pub(crate) mod tencent;
pub(crate) mod vscsi;
pub(crate) mod wiscsee;
