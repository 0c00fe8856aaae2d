//! The dispatcher: one task owns the state of the cluster and linearises everything that
//! happens to it.
//!
//! ```text
//!  command ---.                      .--> store    one transaction: intent, plan, events
//!  observation +--> State --> sched --+--> View    replaced as a whole, then the answers
//!  timer -----'                      '--> engine   start and stop, in tasks of their own
//! ```
//!
//! Owns: the order of things (nothing acts that is not on disk), admission, the life cycle of
//! workloads, restart and recovery. Does not know about: how scheduling is decided (`sched`), how a
//! pod is run (`engine`), who may ask (`auth`), and the shapes on the wire (`api`).

mod archived;
mod checked;
mod culprits;
mod database;
mod decider;
mod deleted;
mod dispatcher;
mod engine_status;
mod executor;
mod faults;
pub mod feed;
mod feed_verbs;
mod gpu_watch;
mod handle;
mod log_shares;
mod logs_exec;
mod meter;
mod metrics;
mod new_node;
mod node_access;
mod options;
mod queries;
mod recorder;
mod requests;
mod retention;
mod secrets;
mod service;
mod shared;
mod tail;
mod time;
mod waits;
mod wanted;

pub use culprits::DecisionFault;
pub use handle::Handle;
pub use logs_exec::Log;
pub use meter::{Requests, Sample, Subject, Traffic, Values, of};
pub use metrics::Metrics;
pub use new_node::{NewNode, node_on_host};
pub use node_access::NodeAccess;
pub use options::{BatchFault, ClusterInfo, JOB_TOKEN, JOB_TOKEN_TLS, Options, Unseal, job_token};
pub use reasons::diagnosis::Diagnosis;
pub use requests::{SchedulingState, Submitted};
pub use retention::RetentionPolicy;
pub use service::Service;
pub use tail::Tail;
pub use time::{Clock, SystemClock};

/// A failure of the database, as the error of a request.
pub(crate) fn stored(error: store::Error) -> orchestrator::Error {
    use orchestrator::Error;
    match error {
        store::Error::Row { .. } => Error::Internal { message: error.to_string() },
        _ => Error::Unavailable { message: error.to_string() },
    }
}
