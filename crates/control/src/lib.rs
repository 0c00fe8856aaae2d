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

mod admission;
mod command;
mod commands;
mod config_maps;
mod decider;
mod dispatcher;
mod ending;
mod error;
mod executor;
mod expiry;
pub mod feed;
mod gang;
mod handle;
mod health;
mod ledger;
mod lifecycle;
mod limits;
mod looking;
mod meter;
mod metrics;
mod node_access;
mod node_constraints;
mod objects;
mod observe;
mod options;
mod org;
mod past;
mod persist;
mod phases;
mod places;
mod planned;
mod pools;
mod primary;
mod publish;
mod reasons;
mod recover;
mod redate;
mod retention;
mod revisions;
mod runs;
mod secrets;
mod service;
mod set_aside;
mod shared_map;
mod state;
#[cfg(test)]
mod texts;
mod time;
mod topologies;
mod update;
mod usage;
pub mod view;
mod volumes;

pub use command::{OrgChange, Readiness};
pub use config_maps::{CONFIG_MAP_BYTES_MAX, bytes_of, check_config_map, texts_of};
pub use engine::RunKey;
pub use error::Error;
pub use handle::Handle;
pub use health::Trouble;
pub use looking::SchedulingState;
pub use meter::{Look, Requests, Subject, Traffic, Values, of};
pub use metrics::Metrics;
pub use model::{
    Effect, MigProfile, MigRequest, Operator, PRIORITY_CLASSES, Requirement, Term, Toleration,
    is_host,
};
pub use node_access::NodeAccess;
pub use node_constraints::node_constraints;
pub use objects::{
    Edit, NAMES, NewId, NewObject, Object, Objects, SECRETS, Scope, Shelf, check_name,
};
pub use options::{ClusterInfo, NodeGpu, NodeSpec, Options, Unseal};
pub use org::DEPARTMENT_DEFAULT;
pub use pools::{POOL_DEFAULT_ID, PoolChange, PoolSettings, PoolSpec, check_label};
pub use reasons::{FAILED, NOT_READY};
pub use records::{AuditDetail, AuditFilter, AuditRow, EventFilter, LedgerRow};
pub use retention::Kept;
pub use runs::Log;
pub use service::Service;
pub use set_aside::DecisionFault;
pub use shared_map::SharedMap;
pub use spec::{
    Audience, Bucket, CONFIG_MAP, CleanPods, Container, ExposedUrl, Framework, GpuSpec,
    HOME_FOLDER, Limits, MASTER, Metric, Mount, MountSource, Near, Place, PodSet, PodSpec, Port,
    Probe, Propagation, PullPolicy, REPLICAS_MAX, RelatedUrl, Repository, Restart, Revision,
    Scaling, Seccomp, SecretPlace, SecretTo, SecretUse, Security, Serving, ShareChange, Target,
    Together, TopologyUse, User, WORKER, WorkloadSpec,
};
pub use time::{Clock, SystemClock};
pub use topologies::{TOPOLOGY, levels_of, new_topology};
pub use update::WorkloadChange;
pub use volumes::{VOLUME, VOLUME_ENDING, volume_name};
