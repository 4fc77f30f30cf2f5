//! What to change about a workload and its drive, with the years it buys.
//!
//! [`advise()`] takes a [`Question`] (a trace, a class of drives, how full it is) and gives an [`Advice`]: the drive as it is, changes one
//! by one, the best of them together, a placement that knows the future; each with write amplification, life, latency, and why it can
//! be trusted. Where writes that are tagged by the host help, the answer holds a [`Plan`] that can be replayed and exported.
//!
//! Plans are learnt on the first two thirds of the trace alone ([`watch`](mod@watch), [`handles`]); what they promise there is
//! checked on the last third. A change is recommended only where its run is valid and the promise was kept.
//!
//! # Order of the modules
//! Each uses only those before it: `drives`, [`lifetimes`], `plan`, `smart`, `files`, `copies`; `life`, `freed`; `view`, [`watch`](mod@watch); `question`,
//! [`handles`]; `change`, `groups`; `search`; `choice`; `candidates`; `advice`; `error`; `beside`; `advise`; [`page`];
//! [`export`].

mod advice;
mod advise;
mod beside;
mod candidates;
mod change;
mod choice;
mod copies;
mod drives;
mod error;
pub mod export;
mod files;
mod freed;
mod groups;
pub mod handles;
mod life;
pub mod lifetimes;
pub mod page;
mod plan;
mod question;
mod search;
mod smart;
mod view;
pub mod watch;

pub use advice::{ADVICE_VERSION, Advice, Promise, Recommendation, Row, time};
pub use advise::advise;
pub use beside::Beside;
pub use change::{Change, Kind, Price};
pub use drives::{DRIVES, DriveClass, KnownOfDrive};
pub use error::AdviceError;
pub use files::FileMap;
pub use freed::Freed;
pub use groups::Group;
pub use life::LifeInputs;
pub use plan::{HandleNote, Plan, PlanRange, PlanSize, Rule};
pub use question::{PAGE_BYTES, Question, Situation};
pub use search::{Dropped, Search, Tried};
pub use smart::{Calibration, calibrate};
pub use view::{Sample, View};
