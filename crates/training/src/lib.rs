//! Elastic trainings in the server: the conversation with their masters.
//!
//! ```text
//!   the published view -> a pod is stopped, a pod is gone -> master (it takes tasks back)
//!   master -> progress, workers, checkpoints -> readers, and what a stop costs -> control
//! ```
//!
//! Owns: the trainings that are followed, the events that their masters get from the scheduler, and
//! their last status. Stores nothing: after a restart everything is requested again. Does not know
//! about: the choice of stopped pods (`sched`), the handling of events by a master
//! (`elastic-master`).

mod checkpoints;
mod conversation;
mod hangs;
mod partings;
mod service;

pub use elastic_proto::TLS_NAME;
pub use service::Service;
