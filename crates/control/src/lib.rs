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
//! workloads, restart and recovery. Refuses to know: how scheduling is decided (`sched`), how a
//! pod is run (`engine`), who may ask (`auth`), and the shapes on the wire (`api`).

mod archived;
mod culprits;
mod decider;
mod dispatcher;
mod executor;
pub mod feed;
mod gpu_watch;
mod handle;
mod looking;
mod meter;
mod metrics;
mod new_node;
mod node_access;
mod options;
mod past;
mod recorder;
mod retention;
mod runs;
mod secrets;
mod service;
mod time;
mod wanted;

pub use culprits::DecisionFault;
pub use engine::RunKey;
pub use handle::Handle;
pub use looking::SchedulingState;
pub use meter::{Look, Requests, Subject, Traffic, Values, of};
pub use metrics::Metrics;
pub use model::{
    Effect, MigProfile, MigRequest, Operator, PRIORITY_CLASSES, Requirement, Taint, Term,
    Toleration, is_host,
};
pub use new_node::{NewNode, node_on_host};
pub use node_access::NodeAccess;
pub use options::{ClusterInfo, Options, Unseal};
pub use orchestrator::{
    CONFIG_MAP_BYTES_MAX, DEPARTMENT_DEFAULT, ENDED_KEPT, Edit, Error, FAILED, NAMES, NOT_READY,
    NewId, NewObject, NodeChange, NodeList, Object, Objects, ObjectsById, OrgChange,
    POOL_DEFAULT_ID, PoolChange, PoolSettings, PoolSpec, Readiness, SECRETS, Scope, SharedMap,
    TOPOLOGY, Trouble, VOLUME, VOLUME_ENDING, WorkloadChange, bytes_of, check_config_map,
    check_label, check_name, levels_of, new_topology, node_constraints, texts_of, view,
    volume_name,
};
pub use records::{
    ArchivedFilter, ArchivedKey, ArchivedOrder, ArchivedPlace, AuditDetail, AuditFilter, AuditRow,
    EventFilter, LedgerRow,
};
pub use retention::Kept;
pub use runs::Log;
pub use service::Service;
pub use spec::{
    Audience, Bounds, Bucket, CONFIG_MAP, CleanPods, Container, ExposedUrl, Framework, GpuRequest,
    HOME_FOLDER, Limits, MASTER, Metric, Mount, MountSource, Near, NodeGpu, NodeSpec, Place,
    PodSet, PodSpec, Port, Probe, Propagation, PullPolicy, REPLICAS_MAX, RelatedUrl, Repository,
    Restart, Revision, Scaling, Scheduling, Seccomp, SecretPlace, SecretTo, SecretUse, Security,
    Serving, ShareChange, SharedGpus, Target, Together, TopologyUse, User, WORKER, WorkloadSpec,
};
pub use time::{Clock, SystemClock};

/// A failure of the database, as the error of a request.
pub(crate) fn stored(error: store::Error) -> Error {
    match error {
        store::Error::Row { .. } => Error::Internal { message: error.to_string() },
        _ => Error::Unavailable { message: error.to_string() },
    }
}
