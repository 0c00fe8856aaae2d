//! The master of an elastic training: hands out data, knows its workers, survives its own death.
//!
//! ```text
//!   workers, parameter servers, outside --gRPC--> service --> desk, ONE thread
//!                                                             1 apply entries to the state (pure)
//!                                                             2 append them to the journal, sync
//!                                                             3 answer, publish requests
//! ```
//!
//! Owns: the order of events in a job, and its journal. Does not know about: tensors, models, or
//! how a pod is started; its requests about pods go to [`Outside`].

mod clock;
mod config;
mod desk;
mod entry;
mod journal;
mod outside;
mod replies;
mod run;
mod service;
mod state;

pub use clock::Clock;
pub use config::{JobConfig, Mode, Settings, Sync};
pub use journal::JournalError;
pub use outside::{Outside, Print, Want};
pub use run::{Error, Master, run};
pub use state::Ended;
