//! Reasons: a coded reason for every pending workload, a coded cause for every pod that is stopped.
//! Owns: the codes and their numbers; `text` has the one sentence of each, `diagnosis` the long
//! answer. Each code has a page in `docs/reference/codes/`. Does not know about: how they are
//! found.

mod as_of;
mod cause_text;
pub mod diagnosis;
pub mod plan;
#[cfg(test)]
mod tests;
mod text;

pub use as_of::PendingAsOf;
pub use text::{number, of};

use model::{Cluster, GpuRequest, MigRequest, WorkloadId};
use units::{Instant, Kind, Resources};

/// A stable code with its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `P###` for pending, `E###` for evictions.
    pub code: &'static str,
    /// Short name in the words of the field.
    pub name: &'static str,
}

/// Pods are held back by a scheduling gate.
pub const GATED: Code = Code { code: "P305", name: "Gated" };

/// Number of an equivalence class of waiting workloads, which all decisions treat alike and which
/// wait for the same reason. A scheduler never uses a number again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(pub u64);

/// Reason why a workload waits. All numbers are those at the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// No node could hold it even when empty.
    LargerThanAnyNode {
        /// GPU request of one pod.
        request: GpuRequest,
        /// All requests of one pod as amounts.
        demand: Resources,
        /// Maximum number of GPUs of one node that could each hold their part.
        gpus_max: usize,
        /// The largest MIG instance for parts of GPUs, in thousandths of a GPU and in bytes; `None`
        /// if there are whole GPUs.
        part_max: Option<(u64, u64)>,
        /// The largest node with enough GPUs, component by component.
        largest: Resources,
        /// Number of nodes.
        nodes: usize,
    },
    /// Too few whole GPUs free on any one node.
    NotEnoughGpus {
        /// Requested whole GPUs.
        gpus: u32,
        /// Number of nodes.
        nodes: usize,
        /// Maximum number of wholly free GPUs on one node.
        free_on_one_node_max: u32,
        /// Number of wholly free GPUs on all nodes.
        free_total: u64,
    },
    /// No GPU has enough of its share free.
    NoGpuShareFree {
        /// Requested devices.
        devices: u32,
        /// Thousandths of each, on the largest device.
        millis: u64,
        /// Largest share that is free on this number of GPUs of one node, in thousandths.
        free_millis_max: u64,
    },
    /// Nodes have the MIG instances it requests, but too few of them are free on each.
    NoMigInstanceFree {
        /// MIG request of one pod.
        request: MigRequest,
        /// Number of nodes.
        nodes: usize,
        /// Number of nodes that have enough of them when empty.
        with: usize,
    },
    /// Parts of GPUs are MIG instances, and no free one is large enough.
    NoInstanceForPart {
        /// GPU request of one pod.
        request: GpuRequest,
        /// Number of MIG instances that are assigned to parts of GPUs.
        instances: usize,
        /// Number of these instances that are large enough.
        large: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// GPUs are free, but not CPU on the same node.
    NotEnoughCpu {
        /// Request, in thousandths of a core.
        cpu_millis: u64,
        /// Maximum that is free on a node that has the GPUs.
        free_millis_max: u64,
    },
    /// GPUs are free, but not memory on the same node.
    NotEnoughMemory {
        /// Request, in bytes.
        memory_bytes: u64,
        /// Maximum that is free on a node that has the GPUs.
        free_bytes_max: u64,
    },
    /// Single pods would fit, but not the minimum that must start together.
    GangIncomplete {
        /// Number of pods that must start together.
        pods_min: u32,
        /// Number of its pods, ended ones left out.
        pods: u32,
        /// Number of pods, of those that must start together, that fit one after the other.
        fitting: u32,
        /// Node label whose value must be the same for all of them.
        near: Option<String>,
    },
    /// Nodes are excluded for other reasons than free resources. Reported in addition to the
    /// shortage on the rest.
    NodesRuledOut {
        /// Number of nodes.
        nodes: usize,
        /// Cordoned nodes.
        cordoned: usize,
        /// Nodes without a label of the selector.
        selector: usize,
        /// Nodes that match none of the affinity terms.
        affinity: usize,
        /// Nodes with a taint that it does not tolerate.
        taint: usize,
        /// Nodes in none of its node pools.
        pool: usize,
    },
    /// Placed pods exclude nodes for it. Reported in addition to the shortage on the rest.
    KeptAwayByPods {
        /// Number of nodes that are not excluded otherwise.
        nodes: usize,
        /// Nodes without a pod that its affinity requires.
        affinity: usize,
        /// Nodes with a pod that its anti-affinity excludes.
        anti_affinity: usize,
        /// Nodes with a pod whose anti-affinity excludes it.
        repelled: usize,
    },
    /// No domain of the required topology level has room for all its pods.
    NoTopologyDomain(NoDomain),
    /// Usable GPUs are broken, or used by foreign processes. Reported in addition to the shortage
    /// on the rest.
    GpusOutOfService {
        /// Number of GPUs on possible nodes that would fit it if they were in service.
        gpus: usize,
        /// Number of these GPUs that are out of service.
        out: usize,
        /// Node and index of the first of these.
        first: (String, u32),
    },
    /// The project, or a department above it, would hold more than its limit.
    OverLimit {
        /// Name of the queue.
        queue: String,
        /// The resource.
        kind: Kind,
        /// Its limit, in the unit of `kind`.
        limit: u64,
        /// Allocated amount, in the unit of `kind`.
        allocated: u64,
        /// Requested amount, in the unit of `kind`.
        requested: u64,
    },
    /// Non-preemptible workloads must stay within the quota.
    NonPreemptibleOverQuota {
        /// Name of the queue.
        queue: String,
        /// The resource.
        kind: Kind,
        /// Its quota, in the unit of `kind`.
        quota: u64,
        /// Allocation of its non-preemptible workloads, in the unit of `kind`.
        allocated: u64,
        /// Requested amount, in the unit of `kind`.
        requested: u64,
    },
    /// Nothing is taken from others for it: the project holds its fair share.
    NotEntitledToMore {
        /// Share and allocation of the project.
        queue: QueueNumbers,
        /// Requested amount, in the unit of the queue's `kind`.
        requested: u64,
        /// The only GPUs that its work, and that of these projects, can use, if they limit its fair
        /// share.
        common: Option<Box<CommonGpus>>,
    },
    /// Its request, or a part of it, could not be placed if everything were free, and does not
    /// lower the fair shares of others.
    NotCounted {
        /// Name of the queue that requests it.
        queue: String,
        /// The resource.
        kind: Kind,
        /// Amount that is not counted, in the unit of `kind`.
        left_out: u64,
        /// Requested amount, in the unit of `kind`.
        requested: u64,
        /// Number of pods that would fit if everything were free: each pod set by itself, and all
        /// by their amounts.
        fitting: u32,
        /// Number of pod sets; `fitting` is a bound where there are several.
        sets: usize,
        /// Number of its pods.
        pods: u32,
    },
    /// Its project is entitled to it, and a rule protects the allocations of others.
    Protected {
        /// The resource.
        kind: Kind,
        /// Requested amount, in the unit of `kind`.
        requested: u64,
        /// The rule.
        by: Protection,
    },
    /// One of the reasons above, in many node pools.
    InPools {
        /// The reason in the first of the pools.
        first: Box<Self>,
        /// Number of other pools with the same reason and other numbers.
        others: usize,
    },
    /// It is bound to a node where resources are being released.
    WaitingForRelease {
        /// Name of the node.
        node: String,
        /// Other workloads being stopped there; empty if it only waits for its own last run.
        holders: Vec<String>,
    },
    /// Scheduling gates hold pods back; they are not considered until the gates are removed.
    Gated {
        /// Number of pods that are held back.
        gated: usize,
        /// Number of its pods.
        pods: usize,
    },
    /// It failed and waits before the next try.
    BackingOff {
        /// End of the back-off.
        until: Instant,
    },
    /// There is room for it, but that is reserved for a workload that goes first and needs more.
    BehindReservation {
        /// The workload with the reservation.
        holder: WorkloadRef,
        /// Start of its wait.
        since: Instant,
        /// Its request, in GPU thousandths.
        gpu_millis: u64,
        /// Its latest start; `None` if it is not known.
        starts_at: Option<Instant>,
    },
    /// The cycle reached its bound on work first; the next cycle tries it again.
    SearchCutShort {
        /// The bound, in trial placements.
        trials: u64,
    },
}

/// A rule that protects the allocations of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// Its preemption delay is not over.
    Delay {
        /// The delay, in milliseconds.
        delay_ms: u64,
    },
    /// Only its own project holds any, for work whose priority is not lower.
    OwnWork {
        /// Share and allocation of the project.
        queue: QueueNumbers,
        /// The priority of the waiting workload.
        priority: u32,
    },
    /// All allocations of other projects are non-preemptible.
    NotPreemptible {
        /// Amount that they hold.
        held: u64,
    },
    /// No other project holds more than its fair share.
    WithinShare {
        /// The project that holds most.
        holder: QueueNumbers,
    },
    /// A queue above would hold more than its fair share.
    Above {
        /// Share and allocation of this queue.
        queue: QueueNumbers,
    },
    /// Allocations of others beyond their share are in their guaranteed run time.
    RunTime {
        /// Amount that they hold beyond it.
        held: u64,
    },
    /// Some of it could be taken, and no set of victims was found that makes room.
    NoWay {
        /// Amount that others hold beyond their share.
        held: u64,
    },
}

/// Domains of a topology level without enough room, and the best of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDomain {
    /// Name of the topology.
    pub topology: String,
    /// The label of the level.
    pub level: String,
    /// The group or the pod set that must be in one domain; empty for the workload.
    pub part: String,
    /// Number of domains of this level that it may go to.
    pub domains: usize,
    /// Name of the domain with the most room; empty if there is none.
    pub best: String,
    /// Number of pods that it has room for.
    pub room: u32,
    /// Number of pods that must start together in one domain.
    pub pods: u32,
    /// True if other pods of it are in the domain already.
    pub bound: bool,
}

/// A workload by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRef {
    /// Its id in the model.
    pub id: WorkloadId,
    /// Name.
    pub name: String,
    /// Name of the inference that it is a revision of; `None` for other workloads.
    pub revision_of: Option<String>,
    /// Name of its project.
    pub queue: String,
}

impl WorkloadRef {
    /// A workload of a cluster.
    #[must_use]
    pub fn new(cluster: &Cluster, id: WorkloadId) -> Self {
        let spec = &cluster.workloads()[id].spec;
        let queue = cluster.queues()[spec.queue].name.clone();
        Self { id, name: spec.name.clone(), revision_of: spec.revision_of.clone(), queue }
    }

    /// The name for a command line: that of the inference for a revision.
    #[must_use]
    pub fn typed_name(&self) -> &str {
        self.revision_of.as_deref().unwrap_or(&self.name)
    }

    /// True for two revisions of one inference.
    #[must_use]
    pub fn is_other_revision_of(&self, other: &Self) -> bool {
        let is_same = self.revision_of == other.revision_of && self.queue == other.queue;
        self.revision_of.is_some() && is_same && self.name != other.name
    }
}

/// Share and allocation of a queue at a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Name.
    pub name: String,
    /// The resource of all amounts.
    pub kind: Kind,
    /// Amount that it held before the decision.
    pub allocated: u64,
    /// Part of it that elastic workloads held beyond their requests. It counts against no share.
    pub lent: u64,
    /// Its quota.
    pub quota: u64,
    /// Its fair share.
    pub fair_share: u64,
    /// `true` if the fair share is a claim, less than the quota, because quotas exceed the
    /// capacity.
    pub is_claim: bool,
}

impl QueueNumbers {
    /// Name of the fair share in texts: `claim` or `fair share`.
    #[must_use]
    pub const fn share_name(&self) -> &'static str {
        if self.is_claim { "claim" } else { "fair share" }
    }
}

/// Right by which one queue reclaims from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The taker stays within its quota, the other was above its own quota or claim.
    QuotaGuaranteed,
    /// The taker stays within its fair share, the other was above its own and keeps its quota.
    FairShareMaintained,
}

/// Progress that a workload loses when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Time that it ran without saving its progress, in milliseconds.
    pub unsaved_ms: u64,
    /// True if this time is counted from a checkpoint; otherwise from its start.
    pub checkpointed: bool,
}

/// Cause why something running was stopped, and the beneficiary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Its project holds more than its share, another less.
    Reclaimed {
        /// The right to reclaim.
        strategy: Strategy,
        /// The workload that gets it.
        beneficiary: WorkloadRef,
        /// Requested amount of the beneficiary.
        requested: u64,
        /// The project that lost.
        loser: QueueNumbers,
        /// The project that gained.
        winner: QueueNumbers,
        /// Lost progress.
        lost: Lost,
    },
    /// A higher priority in the same project.
    Preempted {
        /// The workload that gets it.
        beneficiary: WorkloadRef,
        /// Priority of the loser.
        priority: u32,
        /// Priority of the beneficiary.
        beneficiary_priority: u32,
        /// Lost progress.
        lost: Lost,
    },
    /// Moved so that free resources come together.
    Consolidated {
        /// The workload that needs them together.
        beneficiary: WorkloadRef,
        /// Lost progress.
        lost: Lost,
    },
    /// An elastic workload changed size: down for another workload, or up into idle GPUs.
    Resized {
        /// GPUs before.
        gpus_before: usize,
        /// GPUs after.
        gpus_after: usize,
        /// The workload that gets the difference; `None` when it grew.
        beneficiary: Option<WorkloadRef>,
    },
    /// An elastic workload got back what it requested, within its project's quota, from others that
    /// held more than their share.
    GrownBack {
        /// GPUs before.
        gpus_before: usize,
        /// GPUs after.
        gpus_after: usize,
    },
    /// Fewer of its pods than the minimum ran for too long.
    StaleGang {
        /// Number of pods that must run together.
        pods_min: u32,
        /// Number of pods that were left.
        pods: u32,
    },
    /// Its node is being drained.
    Drained {
        /// Name of the node.
        node: String,
    },
}

/// GPUs that projects divide because their work can use no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonGpus {
    /// Names of some of the projects.
    pub queues: Vec<String>,
    /// Number of further projects.
    pub others: usize,
    /// GPU thousandths.
    pub gpu_millis: u64,
    /// Name of a node that has some.
    pub node: String,
    /// Number of nodes that have some.
    pub nodes: usize,
}

impl Pending {
    /// True if the reason would remain if all other workloads ended.
    #[must_use]
    pub const fn outlasts_others(&self) -> bool {
        match *self {
            Self::LargerThanAnyNode { .. } | Self::NotCounted { .. } => true,
            Self::NodesRuledOut { nodes, cordoned, selector, affinity, taint, pool } => {
                cordoned + selector + affinity + taint + pool == nodes
            }
            _ => false,
        }
    }

    /// Code and name.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::InPools { first, .. } => first.code(),
            Self::LargerThanAnyNode { .. } => Code { code: "P101", name: "LargerThanAnyNode" },
            Self::NotEnoughGpus { .. } => Code { code: "P102", name: "NotEnoughGpus" },
            Self::NoGpuShareFree { .. } => Code { code: "P103", name: "NoGpuShareFree" },
            Self::NotEnoughCpu { .. } => Code { code: "P104", name: "NotEnoughCpu" },
            Self::NotEnoughMemory { .. } => Code { code: "P105", name: "NotEnoughMemory" },
            Self::GangIncomplete { .. } => Code { code: "P106", name: "GangIncomplete" },
            Self::NodesRuledOut { .. } => Code { code: "P107", name: "NodesRuledOut" },
            Self::NoTopologyDomain(_) => Code { code: "P108", name: "NoTopologyDomain" },
            Self::NoMigInstanceFree { .. } => Code { code: "P109", name: "NoMigInstanceFree" },
            Self::KeptAwayByPods { .. } => Code { code: "P110", name: "KeptAwayByPods" },
            Self::GpusOutOfService { .. } => Code { code: "P111", name: "GpusOutOfService" },
            Self::NoInstanceForPart { .. } => Code { code: "P112", name: "NoInstanceForPart" },
            Self::OverLimit { .. } => Code { code: "P201", name: "OverLimit" },
            Self::NonPreemptibleOverQuota { .. } => {
                Code { code: "P202", name: "NonPreemptibleOverQuota" }
            }
            Self::NotEntitledToMore { .. } => Code { code: "P203", name: "NotEntitledToMore" },
            Self::NotCounted { .. } => Code { code: "P204", name: "NotCounted" },
            Self::Protected { .. } => Code { code: "P205", name: "Protected" },
            Self::WaitingForRelease { .. } => Code { code: "P301", name: "WaitingForRelease" },
            Self::Gated { .. } => GATED,
            Self::BackingOff { .. } => Code { code: "P302", name: "BackingOff" },
            Self::SearchCutShort { .. } => Code { code: "P303", name: "SearchCutShort" },
            Self::BehindReservation { .. } => Code { code: "P306", name: "BehindReservation" },
        }
    }
}

impl Cause {
    /// Code and name.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Reclaimed { .. } => Code { code: "E101", name: "Reclaimed" },
            Self::Preempted { .. } => Code { code: "E102", name: "Preempted" },
            Self::Consolidated { .. } => Code { code: "E103", name: "Consolidated" },
            Self::Resized { .. } | Self::GrownBack { .. } => Code { code: "E104", name: "Resized" },
            Self::StaleGang { .. } => Code { code: "E105", name: "StaleGang" },
            Self::Drained { .. } => Code { code: "E106", name: "Drained" },
        }
    }

    /// True if it was preempted or reclaimed for another.
    pub const fn takes(&self) -> bool {
        matches!(self, Self::Reclaimed { .. } | Self::Preempted { .. })
    }

    /// The workload that got the resources; `None` if the cause has none.
    #[must_use]
    pub const fn beneficiary(&self) -> Option<&WorkloadRef> {
        match self {
            Self::Reclaimed { beneficiary, .. }
            | Self::Preempted { beneficiary, .. }
            | Self::Consolidated { beneficiary, .. } => Some(beneficiary),
            Self::Resized { beneficiary, .. } => beneficiary.as_ref(),
            Self::GrownBack { .. } | Self::StaleGang { .. } | Self::Drained { .. } => None,
        }
    }

    /// The cause without lost progress, for a workload that saves its work before it stops.
    #[must_use]
    pub fn without_loss(&self) -> Self {
        let mut cause = self.clone();
        match &mut cause {
            Self::Reclaimed { lost, .. }
            | Self::Preempted { lost, .. }
            | Self::Consolidated { lost, .. } => lost.unsaved_ms = 0,
            Self::Resized { .. }
            | Self::GrownBack { .. }
            | Self::StaleGang { .. }
            | Self::Drained { .. } => {}
        }
        cause
    }

    /// [`Self::beneficiary`], mutable.
    pub const fn beneficiary_mut(&mut self) -> Option<&mut WorkloadRef> {
        match self {
            Self::Reclaimed { beneficiary, .. }
            | Self::Preempted { beneficiary, .. }
            | Self::Consolidated { beneficiary, .. } => Some(beneficiary),
            Self::Resized { beneficiary, .. } => beneficiary.as_mut(),
            Self::GrownBack { .. } | Self::StaleGang { .. } | Self::Drained { .. } => None,
        }
    }
}
