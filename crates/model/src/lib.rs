//! The scheduler's model of the cluster: nodes and their GPUs, the queue tree, workloads and their
//! pods, and the place of each pod.
//!
//! Owns: every account of holdings and requests, updated by each change, and the undo log that
//! limits the cost of a trial placement to the rows it touched. Does not know about: how decisions
//! are made, the current time, how anything is stored or sent. Pure: no I/O, no clock, no
//! randomness.

mod cluster;
mod constraint;
mod demand;
mod empty_nodes;
pub mod equivalence_class;
mod fill;
pub mod fragmentation;
mod free_gpu_index;
mod kept_room;
mod lag;
mod mig;
mod node;
mod placement;
mod pod_set;
mod pod_term;
mod primary;
mod priority;
mod queue;
mod request;
mod request_histogram;
mod room;
mod shrinks;
pub mod spare;
mod supply;
mod topology;
mod usage;
mod workload;

pub use cluster::{Change, Changes, Checkpoint, Cluster, ConflictingPods, Error};
pub use constraint::{
    CORDONED, Constraints, ConstraintsId, Effect, Mismatch, Operator, POOL_DEFAULT, POOL_LABEL,
    PoolId, Preference, Requirement, Taint, Term, Toleration, pool_of,
};
pub use demand::{Claim, Demand, Room, fitting_at_most};
pub use fill::Fill;
pub use kept_room::KeptRoom;
pub use lag::Lag;
pub use mig::{
    GpuPart, MIG_PROFILES_MAX, MIG_SLICES, MigError, MigInstance, MigProfile, MigRequest,
    SliceValue,
};
pub use node::{Gpu, Node, NodeSpec};
pub use placement::{DeviceShare, Placement};
pub use pod_set::{PodSet, PodSetSpec};
pub use pod_term::{HOST_LABEL, PodMismatch, PodPreference, PodTerm, WORKLOAD_LABEL, is_host};
pub use primary::{Op, Primary};
pub use priority::{PRIORITY_CLASSES, priority_steps};
pub use queue::{DEPARTMENT_PREFIX, Queue, QueueSpec, Share, SummedQuota, Tier, Usage, Weights};
pub use request::{GpuRequest, PodRequest};
pub use request_histogram::RequestHistogram;
pub use room::fitting;
pub use shrinks::Shrinks;
pub use supply::{GROUPS_MAX, GroupSet, Groups, Supply};
pub use topology::{Domain, DomainId, Topology, TopologyConstraint, TopologyId};
pub use usage::{EndedStep, UsageLedger, UsageWindow, UsageWindowError, WindowKind};
pub use workload::{
    Activity, Child, Completeness, GroupSpec, Pod, PodBinding, ShapeId, Workload, WorkloadSpec,
    next_pods, next_pods_among, next_pods_if, set_rank, task_priority,
};

/// Id of a node.
pub type NodeId = units::Idx<Node>;
/// Id of a queue.
pub type QueueId = units::Idx<Queue>;
/// Id of a workload.
pub type WorkloadId = units::Idx<Workload>;
/// Id of a pod.
pub type PodId = units::Idx<Pod>;
