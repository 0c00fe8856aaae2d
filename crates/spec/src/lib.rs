//! The vocabulary: what a workload, a pod, a GPU request, a share of an organisation *is*, once for
//! the whole house. Command lines, REST and manifests convert to these types at the edge; the
//! database keeps them as documents of the JSON that their serde attributes say.
//!
//! A document is read for good: a field may be added with a default; another shape is another
//! version (`document`). `tests/documents` has one of each kind as each version wrote it.

mod adopted;
mod check;
mod container;
mod differences;
pub mod document;
mod gang;
mod gpu;
mod group;
mod invalid;
mod kind;
mod node;
mod node_constraints;
mod org;
mod past;
mod pods;
mod pool;
mod pool_fractions;
mod priority;
mod request_error;
mod rescale;
mod run;
mod serving;
mod time_slicing;
mod used_object;
mod user_limits;
mod without_place;
pub mod words;
mod workload;

pub use adopted::{
    AdoptedGang, AdoptedPhase, AdoptedPod, FeedChange, FeedListing, FeedOutcome, FeedVerb, Hold,
    PlacementReport,
};
pub use check::{
    CPU_MILLIS_MAX, DEVICES_MAX, GROUPS_MAX, MEMORY_BYTES_MAX, QUOTA_BYTES_MAX, QUOTA_MILLIS_MAX,
    check_backoff_limit, check_gpu, check_labels, check_share, check_workload,
};
pub use container::{
    Bucket, Container, HOME_FOLDER, Limits, Login, Mount, MountSource, Port, Propagation,
    PullPolicy, RegistryLogin, Repository, Seccomp, Security, TASKS_MAX, User,
};
pub use differences::differences;
pub use gang::{
    Gang, JOB_PROGRAM, JOB_TLS_VARIABLE, JOB_TOKEN_FILE, JOB_TOKEN_VARIABLE, Member,
    TORCHRUN_MEETING,
};
pub use gpu::{Bounds, GpuLimit, GpuRequest, SharedGpus};
pub use group::Group;
pub use invalid::Invalid;
pub use kind::WorkloadKind;
pub use node::{Instance, NodeGiven, NodeGpu, NodeSpec, Scheduling, taint_keys, taints};
pub use node_constraints::{NODE_TYPE_LABEL, node_constraints};
pub use org::{NodeTypes, Rank, Rules, Share, ShareChange, SummedQuotas};
pub use past::WorkloadPast;
pub use pods::{
    CONFIG_MAP, CleanPods, Colocation, DistributedSpec, Framework, LEADER, MASTER,
    PARAMETER_SERVER, Place, PodSet, PodSpec, Restart, SecretPlace, SecretTo, SecretUse,
    TopologyUse, WORKER,
};
pub use pool::{PoolSettings, PoolSpec, TOPOLOGY};
pub use pool_fractions::PoolFractions;
pub use priority::Priority;
pub use request_error::RequestError;
pub use run::{
    BadRunKey, CheckpointNews, Device, DiskRoom, Exit, ExitKind, ForeignProcess, GPU_LIMIT_HARD,
    GPU_LIMIT_LABEL, GpuHealth, GpuOver, LimitsKept, ListedRun, Observation, PullFailure, RunEvent,
    RunKey, RunNews, RunPlace, RunSpec, RunState, SIMULATED_DRIVER_LABEL, Secret,
};
pub use serving::{
    Audience, ExposedUrl, Metric, Probe, REPLICAS_MAX, RelatedUrl, Revision, Scaling, Serving,
    Target,
};
pub use time_slicing::TimeSlicing;
pub use used_object::UsedObject;
pub use user_limits::{AtLimit, OverLimit, Unit, UserLimit, UserLimits};
pub use without_place::without_place;
pub use workload::{BACKOFF_LIMIT_DEFAULT, WorkloadSpec};
