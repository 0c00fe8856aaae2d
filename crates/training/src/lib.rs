//! Elastic trainings, as far as the server has to do with them: the conversation with their masters.
//!
//! ```text
//!   the published view -> a pod is stopped, a pod is gone -> master (it takes tasks back)
//!   master -> progress, workers, checkpoints -> readers, and what a stop costs -> control
//! ```
//!
//! Owns: which trainings are followed, what their masters get to know of the scheduler, and what they
//! said last. Stores nothing: after a restart everything is asked for again. Does not know about: who
//! is stopped and why (`sched`), what a master does with what it gets to know (`elastic-master`).

mod checkpoints;
mod conversation;
mod hangs;
mod partings;
mod service;

pub use elastic_proto::TLS_NAME;
pub use service::Service;
