//! Why: a coded reason for every pending workload, a coded cause for every pod that is stopped.
//! Owns: the codes and their numbers; `text` has the one sentence of each, `diagnosis` the long
//! answer. Each code has a page in `docs/reference/codes/`. Does not know about: finding any of it
//! out.

mod as_of;
pub mod diagnosis;
#[cfg(test)]
mod tests;
mod text;

pub use as_of::PendingAsOf;
pub use text::{number, of};

use model::{GpuRequest, MigRequest, WorkloadId};
use units::{Instant, Kind, Resources};

/// A stable code with its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `P###` for pending, `E###` for evictions.
    pub code: &'static str,
    /// Short name in the words of the field.
    pub name: &'static str,
}

/// Number of a class of waiting workloads: those that are the same to every decision wait for the
/// same. One scheduler gives no number again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(pub u64);

/// Why a workload waits. Every number is of the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// No node could hold it even if empty.
    LargerThanAnyNode {
        /// What one pod asks for.
        request: GpuRequest,
        /// The same as amounts.
        demand: Resources,
        /// Most GPUs of one node, each of which could hold its part.
        gpus_max: usize,
        /// The largest MIG instance for parts of a GPU, in thousandths of it and in bytes; none: there are
        /// whole GPUs.
        part_max: Option<(u64, u64)>,
        /// The largest node with enough GPUs, component by component.
        largest: Resources,
        /// Number of nodes.
        nodes: usize,
    },
    /// Too few whole GPUs free on any one node.
    NotEnoughGpus {
        /// Whole GPUs asked for.
        gpus: u32,
        /// Number of nodes.
        nodes: usize,
        /// Most wholly free GPUs on one node.
        free_on_one_node_max: u32,
        /// Wholly free GPUs on all nodes.
        free_total: u64,
    },
    /// No GPU has so large a share free.
    NoGpuShareFree {
        /// Devices asked for.
        devices: u32,
        /// Thousandths of each, on the largest device.
        millis: u64,
        /// Largest share that is free on so many GPUs of one node, in thousandths.
        free_millis_max: u64,
    },
    /// Nodes have the MIG instances it asks for, and not enough of them are free on any.
    NoMigInstanceFree {
        /// What one pod asks for.
        request: MigRequest,
        /// Number of nodes.
        nodes: usize,
        /// Nodes that have enough of them when empty.
        with: usize,
    },
    /// Parts of GPUs are MIG instances, and none that holds what it asks for is free.
    NoInstanceForPart {
        /// GPUs of one pod.
        request: GpuRequest,
        /// MIG instances that are given out for parts of GPUs.
        instances: usize,
        /// Those of them that hold it.
        large: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// GPUs are free, but not CPU on the same node.
    NotEnoughCpu {
        /// Asked for, in thousandths of a core.
        cpu_millis: u64,
        /// Most free on a node that has the GPUs.
        free_millis_max: u64,
    },
    /// GPUs are free, but not memory on the same node.
    NotEnoughMemory {
        /// Asked for, in bytes.
        memory_bytes: u64,
        /// Most free on a node that has the GPUs.
        free_bytes_max: u64,
    },
    /// Single pods would fit, but not as many at the same time as must start together.
    GangIncomplete {
        /// Pods that must start together.
        pods_min: u32,
        /// Pods it has, those that ended not counted.
        pods: u32,
        /// Pods of those that must start together that find a place one after the other.
        fitting: u32,
    },
    /// Nodes are out of the question for other reasons than room. Stands beside what the rest
    /// lacks.
    NodesRuledOut {
        /// Number of nodes.
        nodes: usize,
        /// Closed for new pods.
        cordoned: usize,
        /// Without a label the selector wants.
        selector: usize,
        /// Without any of the terms the affinity wants.
        affinity: usize,
        /// With a taint it does not tolerate.
        taint: usize,
        /// In none of its node pools.
        pool: usize,
    },
    /// Pods that are somewhere keep it from nodes. Stands beside what the rest lacks.
    KeptAwayByPods {
        /// Number of nodes it may go to apart from that.
        nodes: usize,
        /// Without a pod that it must be with.
        affinity: usize,
        /// With a pod that it must not be with.
        anti_affinity: usize,
        /// With a pod that must not be with it.
        repelled: usize,
    },
    /// Its pods must be close together, and no domain of the topology has room for all of them.
    NoTopologyDomain(NoDomain),
    /// GPUs that would do are broken, or used by foreign processes. Stands beside what the rest lacks.
    GpusOutOfService {
        /// GPUs of nodes it may go to that would do, if each had nothing the matter with it.
        gpus: usize,
        /// How many of them are out of service.
        out: usize,
        /// The first of them: its node, and its number there.
        first: (String, u32),
    },
    /// The project, or one above it, would hold more than its limit.
    OverLimit {
        /// Which queue.
        queue: String,
        /// Of what.
        kind: Kind,
        /// Its limit.
        limit: u64,
        /// What it holds.
        allocated: u64,
        /// What is asked for.
        requested: u64,
    },
    /// What cannot be preempted must stay within the quota.
    NonPreemptibleOverQuota {
        /// Which queue.
        queue: String,
        /// Of what.
        kind: Kind,
        /// Its quota.
        quota: u64,
        /// What its non-preemptible workloads hold.
        allocated: u64,
        /// What is asked for.
        requested: u64,
    },
    /// Nothing is taken from others for it: the project has what it is entitled to.
    NotEntitledToMore {
        /// The project's numbers.
        queue: QueueNumbers,
        /// What is asked for.
        requested: u64,
        /// The only GPUs that its work, and that of these, can use, if that is why it is entitled to no
        /// more.
        common: Option<Box<CommonGpus>>,
    },
    /// What it asks for, or a part of it, could not be placed if everything were free, and does not
    /// lower the fair shares of others.
    NotCounted {
        /// Which queue asks for it.
        queue: String,
        /// Of what.
        kind: Kind,
        /// What does not count.
        left_out: u64,
        /// What is asked for.
        requested: u64,
        /// Pods that would fit if everything were free.
        fitting: u32,
        /// Pods it has.
        pods: u32,
    },
    /// Its project is entitled to it, and a rule protects what others hold.
    Protected {
        /// Of what.
        kind: Kind,
        /// What is asked for.
        requested: u64,
        /// Which rule.
        by: Protection,
    },
    /// What one of the reasons above says, of many node pools.
    InPools {
        /// In the first of the pools.
        first: Box<Self>,
        /// In how many others it says the same, with other numbers.
        others: usize,
    },
    /// It has a place, which is being freed.
    WaitingForRelease {
        /// Node.
        node: String,
        /// Other workloads being stopped there; none if it only waits for its own last run.
        holders: Vec<String>,
    },
    /// Something outside holds pods back; they are not considered before that is taken away.
    Gated {
        /// Pods that are held back.
        gated: usize,
        /// Pods it has.
        pods: usize,
    },
    /// It failed and waits before the next try.
    BackingOff {
        /// Until when.
        until: Instant,
    },
    /// There is room for it, but it is kept for a workload that goes first and needs more.
    BehindReservation {
        /// For whom.
        holder: WorkloadRef,
        /// Since when that one has waited.
        since: Instant,
        /// What that one needs, in GPU thousandths.
        gpu_millis: u64,
        /// When that one starts at the latest, if it is known.
        starts_at: Option<Instant>,
    },
    /// The cycle's bound on work was reached first; it is tried again in the next cycle.
    SearchCutShort {
        /// The bound, in trial placements.
        trials: u64,
    },
}

/// A rule that protects what others hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// It may not preempt others yet.
    Delay {
        /// How long it has to wait first, in milliseconds.
        delay_ms: u64,
    },
    /// Only its own project holds any, for work that is not less important.
    OwnWork {
        /// How the project stands.
        queue: QueueNumbers,
        /// The priority of the one that waits.
        priority: u32,
    },
    /// All that other projects hold cannot be preempted.
    NotPreemptible {
        /// What they hold.
        held: u64,
    },
    /// No other project holds more than it is entitled to.
    WithinShare {
        /// The one that holds most.
        holder: QueueNumbers,
    },
    /// A queue above would hold more than its fair share.
    Above {
        /// How it stands.
        queue: QueueNumbers,
    },
    /// What others hold beyond their share is in its guaranteed run time.
    RunTime {
        /// What they hold beyond it.
        held: u64,
    },
    /// Some of it could be taken, and no way was found by which that makes room.
    NoWay {
        /// What others hold beyond their share.
        held: u64,
    },
}

/// Which domains were looked at, and what the best of them lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDomain {
    /// The topology.
    pub topology: String,
    /// The label of the level.
    pub level: String,
    /// The group or the pod set that must be in one domain; empty for the workload.
    pub part: String,
    /// Domains of this level that it may go to.
    pub domains: usize,
    /// The one with the most room; empty if there is none.
    pub best: String,
    /// Pods that it has room for.
    pub room: u32,
    /// Pods that must start together in one domain.
    pub pods: u32,
    /// True if others of its pods are there already.
    pub bound: bool,
}

/// A workload, as people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRef {
    /// Its id in the model.
    pub id: WorkloadId,
    /// Name.
    pub name: String,
    /// Its project.
    pub queue: String,
}

impl WorkloadRef {
    /// The name to type. A revision of an inference has the name of that with a number behind a dot,
    /// which is in no other name.
    #[must_use]
    pub fn typed_name(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// True for two revisions of one inference.
    #[must_use]
    pub fn is_other_revision_of(&self, other: &Self) -> bool {
        let (own, others) = (self.typed_name(), other.typed_name());
        let both = own.len() < self.name.len() && others.len() < other.name.len();
        both && self.name != other.name && own == others && self.queue == other.queue
    }
}

/// How a queue stood when a decision was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Name.
    pub name: String,
    /// Of what.
    pub kind: Kind,
    /// What it held, before the decision.
    pub allocated: u64,
    /// What elastic workloads held of that beyond their requests. It counts against no share.
    pub lent: u64,
    /// Its quota.
    pub quota: u64,
    /// Its fair share.
    pub fair_share: u64,
}

/// By what right one queue takes from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The taker stays within its quota, the other was above its own.
    QuotaGuaranteed,
    /// The taker stays within its fair share, the other was above its own and keeps its quota.
    FairShareMaintained,
}

/// What a workload loses when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// How long it ran without saving its progress, in milliseconds.
    pub unsaved_ms: u64,
    /// True if that is counted from a checkpoint; otherwise from its start.
    pub checkpointed: bool,
}

/// Why something running was stopped, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Its project holds more than its share, another less.
    Reclaimed {
        /// By what right.
        strategy: Strategy,
        /// Who gets it.
        beneficiary: WorkloadRef,
        /// What the beneficiary asks for.
        requested: u64,
        /// The project that lost.
        loser: QueueNumbers,
        /// The project that gained.
        winner: QueueNumbers,
        /// What is lost by it.
        lost: Lost,
    },
    /// A higher priority in the same project.
    Preempted {
        /// Who gets it.
        beneficiary: WorkloadRef,
        /// Priority of the loser.
        priority: u32,
        /// Priority of the beneficiary.
        beneficiary_priority: u32,
        /// What is lost by it.
        lost: Lost,
    },
    /// Moved so that free resources come together.
    Consolidated {
        /// Who needs them together.
        beneficiary: WorkloadRef,
        /// What is lost by it.
        lost: Lost,
    },
    /// An elastic workload changed size: down for another workload, or up into idle GPUs.
    Resized {
        /// GPUs before.
        gpus_before: usize,
        /// GPUs after.
        gpus_after: usize,
        /// Who gets the difference; none when it grew.
        beneficiary: Option<WorkloadRef>,
    },
    /// An elastic workload got back what it asked for, within its project's quota, from others who
    /// held more than is theirs.
    GrownBack {
        /// GPUs before.
        gpus_before: usize,
        /// GPUs after.
        gpus_after: usize,
    },
    /// Too few of its pods were left for too long.
    StaleGang {
        /// Pods that must run together.
        pods_min: u32,
        /// Pods that were left.
        pods: u32,
    },
    /// Its node is being emptied.
    Drained {
        /// Which node.
        node: String,
    },
}

/// GPUs that projects divide since their work can use no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonGpus {
    /// Names of some of the projects.
    pub queues: Vec<String>,
    /// Projects beside these.
    pub others: usize,
    /// GPU thousandths.
    pub gpu_millis: u64,
    /// A node that has some.
    pub node: String,
    /// Nodes that have some.
    pub nodes: usize,
}

impl Pending {
    /// True if it stays true if everybody else ends.
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
            Self::Gated { .. } => Code { code: "P305", name: "Gated" },
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

    /// True if it was stopped by the right of another to its place.
    pub const fn takes(&self) -> bool {
        matches!(self, Self::Reclaimed { .. } | Self::Preempted { .. })
    }

    /// Who got what was taken.
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

    /// The same for one that saves its work before it stops.
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

    /// [`Self::beneficiary`], to name another.
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
