//! The tests of the crate from outside, in one binary: each module is a subject, and `support` is what they share.

mod asa;
mod bytes;
mod closed_forms;
mod device;
mod dftl;
mod external;
mod fast_device;
mod fast_merges;
mod fast_oracle;
mod known_rates;
mod layers;
mod learnt_lifetimes;
mod levelling;
mod owner_copies;
mod page_ftl_oracle;
mod parameters;
mod partition;
mod separation;
mod support;
mod victims;
mod worn_out;
mod write_buffer;
