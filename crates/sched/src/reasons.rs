//! Why: a coded reason for every pending workload, a coded cause for every pod that is stopped.
//! Owns: the codes, their numbers and their one sentence. Each code has a page in
//! `docs/reference/codes/`.

use std::fmt;

use model::{GpuRequest, WorkloadId};
use units::{Instant, Resources, format_bytes, format_millis};

/// A stable code with its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `P###` for pending, `E###` for evictions.
    pub code: &'static str,
    /// Short name in the words of the field.
    pub name: &'static str,
}

/// Every code this crate gives out.
pub const CODES: [Code; 16] = [
    Code { code: "P101", name: "LargerThanAnyNode" },
    Code { code: "P102", name: "NotEnoughGpus" },
    Code { code: "P103", name: "NoGpuShareFree" },
    Code { code: "P104", name: "NotEnoughCpu" },
    Code { code: "P105", name: "NotEnoughMemory" },
    Code { code: "P106", name: "GangIncomplete" },
    Code { code: "P201", name: "OverLimit" },
    Code { code: "P202", name: "NonPreemptibleOverQuota" },
    Code { code: "P203", name: "NotEntitledToMore" },
    Code { code: "P301", name: "WaitingForRelease" },
    Code { code: "P302", name: "BackingOff" },
    Code { code: "P303", name: "SearchCutShort" },
    Code { code: "E101", name: "Reclaimed" },
    Code { code: "E102", name: "Preempted" },
    Code { code: "E103", name: "Consolidated" },
    Code { code: "E104", name: "Resized" },
];

/// Why a workload waits. Every number is of the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// No node could hold it even if empty.
    LargerThanAnyNode {
        /// What one pod asks for.
        request: GpuRequest,
        /// The same as amounts.
        demand: Resources,
        /// The largest node, component by component.
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
        free_on_one_node_max: usize,
        /// Wholly free GPUs on all nodes.
        free_total: usize,
    },
    /// No GPU has so large a share free.
    NoGpuShareFree {
        /// Devices asked for.
        devices: u32,
        /// Thousandths of each, on the largest device.
        millis: u64,
        /// Largest free share of one GPU, in thousandths.
        free_millis_max: u64,
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
    },
    /// The project, or one above it, would hold more than its limit.
    OverLimit {
        /// Which queue.
        queue: String,
        /// Its limit in GPU thousandths.
        limit_millis: u64,
        /// What it holds.
        allocated_millis: u64,
        /// What is asked for.
        requested_millis: u64,
    },
    /// What cannot be preempted must stay within the quota.
    NonPreemptibleOverQuota {
        /// Which queue.
        queue: String,
        /// Its quota in GPU thousandths.
        quota_millis: u64,
        /// What its non-preemptible workloads hold.
        allocated_millis: u64,
        /// What is asked for.
        requested_millis: u64,
    },
    /// Nothing is taken from others for it: the project has what it is entitled to.
    NotEntitledToMore {
        /// The project's numbers.
        queue: QueueNumbers,
        /// What is asked for, in GPU thousandths.
        requested_millis: u64,
    },
    /// It has a place, which is being freed.
    WaitingForRelease {
        /// Node.
        node: String,
        /// Workloads being stopped there.
        holders: Vec<String>,
    },
    /// It failed and waits before the next try.
    BackingOff {
        /// Until when.
        until: Instant,
    },
    /// The cycle's bound on work was reached first; it is tried again in the next cycle.
    SearchCutShort {
        /// The bound, in trial placements.
        trials: u64,
    },
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

/// How a queue stood when a decision was taken, in GPU thousandths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Name.
    pub name: String,
    /// What it held, before the decision.
    pub allocated_millis: u64,
    /// Its quota.
    pub quota_millis: u64,
    /// Its fair share.
    pub fair_share_millis: u64,
}

/// Why something running was stopped, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Its project holds more than its share, another less.
    Reclaimed {
        /// Who gets it.
        beneficiary: WorkloadRef,
        /// The project that lost.
        loser: QueueNumbers,
        /// The project that gained.
        winner: QueueNumbers,
    },
    /// A higher priority in the same project.
    Preempted {
        /// Who gets it.
        beneficiary: WorkloadRef,
        /// Priority of the loser.
        priority: u32,
        /// Priority of the beneficiary.
        beneficiary_priority: u32,
    },
    /// Moved so that free resources come together.
    Consolidated {
        /// Who needs them together.
        beneficiary: WorkloadRef,
    },
    /// An elastic workload changed size: down for somebody, or up into idle GPUs.
    Resized {
        /// GPUs before.
        gpus_before: usize,
        /// GPUs after.
        gpus_after: usize,
        /// Who gets the difference; none when it grew.
        beneficiary: Option<WorkloadRef>,
    },
}

impl Pending {
    /// Code and name.
    #[must_use]
    pub const fn code(&self) -> Code {
        CODES[match self {
            Self::LargerThanAnyNode { .. } => 0,
            Self::NotEnoughGpus { .. } => 1,
            Self::NoGpuShareFree { .. } => 2,
            Self::NotEnoughCpu { .. } => 3,
            Self::NotEnoughMemory { .. } => 4,
            Self::GangIncomplete { .. } => 5,
            Self::OverLimit { .. } => 6,
            Self::NonPreemptibleOverQuota { .. } => 7,
            Self::NotEntitledToMore { .. } => 8,
            Self::WaitingForRelease { .. } => 9,
            Self::BackingOff { .. } => 10,
            Self::SearchCutShort { .. } => 11,
        }]
    }
}

impl Cause {
    /// Code and name.
    #[must_use]
    pub const fn code(&self) -> Code {
        CODES[match self {
            Self::Reclaimed { .. } => 12,
            Self::Preempted { .. } => 13,
            Self::Consolidated { .. } => 14,
            Self::Resized { .. } => 15,
        }]
    }

    /// Who got what was taken.
    #[must_use]
    pub const fn beneficiary(&self) -> Option<&WorkloadRef> {
        match self {
            Self::Reclaimed { beneficiary, .. }
            | Self::Preempted { beneficiary, .. }
            | Self::Consolidated { beneficiary } => Some(beneficiary),
            Self::Resized { beneficiary, .. } => beneficiary.as_ref(),
        }
    }
}

/// `1 GPU`, `2 GPUs`, `0.5 GPU`.
fn gpus(millis: u64) -> String {
    let plural = if millis > units::GPU_MILLIS || millis == 0 { "s" } else { "" };
    format!("{} GPU{plural}", amount(millis))
}

fn amount(millis: u64) -> String {
    if millis == u64::MAX { "unlimited".to_owned() } else { format_millis(millis) }
}

impl fmt::Display for WorkloadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.name)
    }
}

impl fmt::Display for QueueNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, allocated_millis, quota_millis, fair_share_millis } = self;
        write!(
            f,
            "{name} holds {} (quota {}, fair share {})",
            gpus(*allocated_millis),
            amount(*quota_millis),
            amount(*fair_share_millis)
        )
    }
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LargerThanAnyNode { request, demand, largest, nodes } => {
                larger_than_any_node(f, *request, *demand, *largest, *nodes)
            }
            Self::NotEnoughGpus { gpus: need, nodes, free_total: 0, .. } => write!(
                f,
                "needs {}; every GPU of the {nodes} node(s) is in use",
                gpus(u64::from(*need) * units::GPU_MILLIS)
            ),
            Self::NotEnoughGpus { gpus: need, nodes, free_on_one_node_max, free_total } => write!(
                f,
                "needs {} on one node; {free_total} are free on {nodes} node(s), at most \
                 {free_on_one_node_max} on one",
                gpus(u64::from(*need) * units::GPU_MILLIS)
            ),
            Self::NoGpuShareFree { devices, millis, free_millis_max } => write!(
                f,
                "needs {} of {devices} GPU(s); the largest free share of a GPU is {}",
                format_millis(*millis),
                format_millis(*free_millis_max)
            ),
            Self::NotEnoughCpu { cpu_millis, free_millis_max } => write!(
                f,
                "needs {} CPU core(s) beside its GPUs; at most {} are free on a node that has them",
                format_millis(*cpu_millis),
                format_millis(*free_millis_max)
            ),
            Self::NotEnoughMemory { memory_bytes, free_bytes_max } => write!(
                f,
                "needs {} of memory beside its GPUs; at most {} are free on a node that has them",
                format_bytes(*memory_bytes),
                format_bytes(*free_bytes_max)
            ),
            Self::GangIncomplete { pods_min } => {
                write!(f, "{pods_min} pods must start together; fewer fit at the moment")
            }
            Self::OverLimit { queue, limit_millis, allocated_millis, requested_millis } => write!(
                f,
                "{queue} may hold {} and holds {}; {} more would pass its limit",
                gpus(*limit_millis),
                amount(*allocated_millis),
                amount(*requested_millis)
            ),
            Self::NonPreemptibleOverQuota {
                queue,
                quota_millis,
                allocated_millis,
                requested_millis,
            } => write!(
                f,
                "non-preemptible workloads stay within the quota: {queue} has a quota of {}, its \
                 non-preemptible workloads hold {}, this one asks for {}; submit it as preemptible \
                 to go over quota",
                gpus(*quota_millis),
                amount(*allocated_millis),
                amount(*requested_millis)
            ),
            Self::NotEntitledToMore { queue, requested_millis } => {
                write!(f, "nothing is taken from others for {}: {queue}", gpus(*requested_millis))
            }
            Self::WaitingForRelease { node, holders } => {
                write!(f, "has a place on {node}, which is being freed by {}", holders.join(", "))
            }
            Self::BackingOff { .. } => {
                write!(f, "it failed; the next try waits for the end of the back-off")
            }
            Self::SearchCutShort { trials } => {
                write!(
                    f,
                    "the search stopped after {trials} trial placements and goes on next time"
                )
            }
        }
    }
}

fn larger_than_any_node(
    f: &mut fmt::Formatter<'_>,
    request: GpuRequest,
    demand: Resources,
    largest: Resources,
    nodes: usize,
) -> fmt::Result {
    if nodes == 0 {
        return write!(f, "there are no nodes");
    }
    match request {
        GpuRequest::Memory { bytes, .. } if largest.gpu_millis > 0 => {
            write!(
                f,
                "asks for {} of GPU memory; no GPU of any node has that much",
                format_bytes(bytes)
            )
        }
        _ if demand.gpu_millis > largest.gpu_millis => write!(
            f,
            "asks for {} on one node; the largest node has {}",
            gpus(demand.gpu_millis),
            amount(largest.gpu_millis)
        ),
        _ => write!(
            f,
            "asks for {} core(s) and {} of memory; no node with the GPUs has that much (largest: {} \
             core(s), {})",
            format_millis(demand.cpu_millis),
            format_bytes(demand.memory_bytes),
            format_millis(largest.cpu_millis),
            format_bytes(largest.memory_bytes)
        ),
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reclaimed { beneficiary, loser, winner } => {
                write!(f, "stopped so that {beneficiary} gets its share: {loser}; {winner}")
            }
            Self::Preempted { beneficiary, priority, beneficiary_priority } => write!(
                f,
                "stopped for {beneficiary} of higher priority ({beneficiary_priority} over {priority})"
            ),
            Self::Consolidated { beneficiary } => {
                write!(f, "moved so that {beneficiary} finds its GPUs together on one node")
            }
            Self::Resized { gpus_before, gpus_after, beneficiary: Some(who) } => {
                write!(f, "shrunk from {gpus_before} to {gpus_after} GPU(s) for {who}")
            }
            Self::Resized { gpus_before, gpus_after, beneficiary: None } => {
                write!(f, "grown from {gpus_before} to {gpus_after} GPU(s) that nobody needs")
            }
        }
    }
}
