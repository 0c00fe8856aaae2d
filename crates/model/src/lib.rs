//! The cluster as the scheduler sees it: nodes and their GPUs, the queue tree, workloads and
//! their pods, and where each pod is.
//!
//! Owns: every account (who uses what), kept up to date by each change, and the undo log that
//! makes a trial placement cost what it touched. Refuses to know: who decides, what time it is,
//! how anything is stored or sent. Pure: no I/O, no clock, no randomness.

mod account;
mod changes;
mod cluster;
mod company;
mod constraint;
mod eligible;
mod free;
mod group;
mod machines;
mod members;
mod mig;
mod node;
mod pod_set;
mod pool;
mod priority;
mod queue;
mod queues;
mod request;
mod requests;
mod together;
mod topology;
mod usage;
mod verify;
mod wishes;
mod workload;

pub use changes::Changes;
pub use cluster::{Change, Checkpoint, Cluster, Error};
pub use company::{HOST_LABEL, Opponents, PodMismatch, PodPreference, PodTerm, is_host};
pub use constraint::{
    Constraints, Effect, Mismatch, Operator, POOL_DEFAULT, POOL_LABEL, Preference, Requirement,
    Taint, Term, Toleration, pool_of,
};
pub use eligible::ConstraintsId;
pub use group::{Child, GroupSpec, ShapeId, Standing};
pub use mig::{
    MIG_PROFILES_MAX, MIG_SLICES, MigError, MigInstance, MigProfile, MigRequest, SliceValue,
};
pub use node::{Gpu, Node, NodeSpec};
pub use pod_set::{PodSet, PodSetSpec};
pub use pool::{Fill, PoolId};
pub use priority::{PRIORITY_CLASSES, class_at_least};
pub use queue::{Queue, QueueSpec, Share, Tier, Weights};
pub use request::{GpuRequest, PodRequest};
pub use requests::Requests;
pub use topology::{Domain, DomainId, Topology, TopologyConstraint, TopologyId};
pub use usage::{EndedStep, Usage, UsageLedger, UsageWindow, UsageWindowError, WindowKind};
pub use workload::{DeviceShare, Occupancy, Placement, Pod, Workload, WorkloadSpec};

/// Id of a node.
pub type NodeId = units::Idx<Node>;
/// Id of a queue.
pub type QueueId = units::Idx<Queue>;
/// Id of a workload.
pub type WorkloadId = units::Idx<Workload>;
/// Id of a pod.
pub type PodId = units::Idx<Pod>;
