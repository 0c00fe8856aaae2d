//! The incremental cluster state. Owns: every mutation, and with it every account and index.
//!
//! Every scheduling change has one form: a pod's [`PodBinding`] becomes another. So the undo log is
//! a list of (pod, binding before), and a rollback sets the bindings again in reverse.

mod account;
mod changes;
mod desired;
mod eligibility;
mod inherit;
mod members;
mod nodes;
mod pod_affinity;
mod pools;
mod queue_tree;
mod sign;
mod topologies;
mod transaction;
mod verify;
mod verify_topology;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

pub use changes::Changes;
pub use pod_affinity::ConflictingPods;
use thiserror::Error;
use units::{Instant, Resources, Table};

use self::changes::Tracker;
use self::eligibility::Eligibility;
use self::pod_affinity::AffinityIndex;
use self::pools::Pools;
use self::transaction::Revisions;
use crate::free_gpu_index::FreeGpuIndex;
use crate::node::Hardware;
use crate::placement::amounts;
use crate::request_histogram::RequestHistogram;
use crate::workload::Shapes;
use crate::{
    Activity, Node, NodeId, Placement, Pod, PodBinding, PodId, PodRequest, PodSet, PoolId, Queue,
    QueueId, Shrinks, Topology, Workload, WorkloadId, WorkloadSpec,
};

/// Errors of changes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The queue does not exist.
    #[error("no such queue")]
    NoSuchQueue,
    /// The queue still has workloads or queues below it.
    #[error("queue {0} is not empty")]
    QueueNotEmpty(String),
    /// Only leaves hold workloads, and only queues without workloads have children.
    #[error("queue {0} cannot hold both queues and workloads")]
    NotALeaf(String),
    /// A pod of the workload still holds or has reserved a place.
    #[error("workload {0} still holds or has reserved a place")]
    StillPlaced(String),
    /// A minimum larger than its set, or a workload that could start without any pod.
    #[error("workload {0} needs between 1 and its number of pods to start together")]
    BadGang(String),
    /// Groups that form no tree, or a minimum above the number of parts.
    #[error("workload {0} has groups without parts, in a circle, or with a minimum beyond them")]
    BadGroups(String),
    /// The topology or the level does not exist.
    #[error("workload {0} names a topology or a level that is not there")]
    NoSuchTopology(String),
    /// A topology without levels, with a duplicate level, or with a name that is taken.
    #[error("topology {0} has no levels, one twice, or the name of another")]
    BadTopology(String),
    /// The default node pool, or one that has nodes or is named by workloads.
    #[error("node pool {0} is in use, or the one of nodes that do not say")]
    PoolInUse(String),
    /// An elastic workload has more than one pod set; the size of elastic pods is one for all of
    /// them.
    #[error("elastic workload {0} has one pod set")]
    ElasticPodSets(String),
}

/// A position in the undo log to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint(usize);

/// A pod whose place was changed by a committed transaction, and its binding before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The pod.
    pub pod: PodId,
    /// Its binding when the transaction began.
    pub before: PodBinding,
}

/// Nodes, queues, workloads and pods with their accounts.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    pub(crate) nodes: Table<Node>,
    pub(crate) queues: Table<Queue>,
    pub(crate) workloads: Table<Workload>,
    pub(crate) pods: Table<Pod>,
    pub(crate) capacity: Resources,
    /// Free resources of all nodes after pending releases.
    pub(crate) free_soon: Resources,
    pub(crate) pools: Pools,
    pub(crate) free: FreeGpuIndex,
    pub(crate) eligibility: Eligibility,
    pub(crate) affinity: AffinityIndex,
    pub(crate) requests: RequestHistogram,
    /// Revision of each node, and the highest that there was: a revision is never used again for
    /// another state.
    pub(crate) revisions: Vec<u64>,
    pub(crate) newest_revision: u64,
    /// Number of nodes with GPUs, by hardware.
    pub(crate) gpu_nodes: BTreeMap<Hardware, u32>,
    /// Number of GPUs by memory size in bytes, without GPUs that are divided into instances.
    pub(crate) gpu_memories: BTreeMap<u64, u32>,
    pub(crate) topologies: Vec<Topology>,
    pub(crate) shapes: Shapes,
    /// True if any node has a soft taint (`PreferNoSchedule`).
    pub(crate) soft_taints: bool,
    /// Nodes that are being drained.
    pub(crate) draining: BTreeSet<NodeId>,
    /// Workloads with placed pods, but fewer than their minimum.
    pub(crate) partial: BTreeSet<WorkloadId>,
    /// Number of pods that need a place and have none, by workload.
    pub(crate) waiting: BTreeMap<WorkloadId, u32>,
    /// Workloads marked by [`Cluster::set_stale`].
    pub(crate) stale: BTreeSet<WorkloadId>,
    /// Elastic workloads with a place.
    pub(crate) elastic: BTreeSet<WorkloadId>,
    /// Pods with a reserved place.
    pub(crate) reserved: BTreeSet<PodId>,
    /// Gated pods that should run.
    pub(crate) gated: BTreeSet<PodId>,
    pub(crate) log: Vec<Change>,
    /// Revisions before and after each entry of `log`.
    pub(crate) log_revisions: Vec<Revisions>,
    /// Binding of each pod touched by the open transaction when it began.
    pub(crate) originals: BTreeMap<PodId, PodBinding>,
    pub(crate) recording: bool,
    pub(crate) tracker: Tracker,
    /// Number of workloads with a place.
    pub(crate) placed: u64,
    /// Queues without a parent, by node pool.
    pub(crate) roots: BTreeMap<PoolId, BTreeSet<QueueId>>,
}

/// Reading.
impl Cluster {
    /// An empty cluster.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nodes.
    #[must_use]
    pub const fn nodes(&self) -> &Table<Node> {
        &self.nodes
    }

    /// Queues.
    #[must_use]
    pub const fn queues(&self) -> &Table<Queue> {
        &self.queues
    }

    /// Workloads.
    #[must_use]
    pub const fn workloads(&self) -> &Table<Workload> {
        &self.workloads
    }

    /// Pods.
    #[must_use]
    pub const fn pods(&self) -> &Table<Pod> {
        &self.pods
    }

    /// Capacity of all nodes.
    #[must_use]
    pub const fn capacity(&self) -> Resources {
        self.capacity
    }

    /// Free resources of all nodes together after pending releases.
    #[must_use]
    pub const fn free_soon(&self) -> Resources {
        self.free_soon
    }

    /// Workloads with pods that need a place, in id order.
    #[must_use]
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = WorkloadId> + use<'_> {
        self.waiting.keys().copied()
    }

    /// True if a workload has pods that need a place.
    #[must_use]
    pub fn is_waiting(&self, id: WorkloadId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Nodes that are being drained, in id order.
    #[must_use]
    pub const fn draining(&self) -> &BTreeSet<NodeId> {
        &self.draining
    }

    /// Requests of the pods that should run.
    #[must_use]
    pub const fn requests(&self) -> &RequestHistogram {
        &self.requests
    }

    /// A number that changes whenever the node does: its free resources, its labels, or if pods may
    /// be placed. A rollback restores the earlier number.
    #[must_use]
    pub fn revision(&self, node: NodeId) -> u64 {
        self.revisions.get(node.raw() as usize).copied().unwrap_or(0)
    }

    /// True if all nodes with GPUs have the same hardware.
    #[must_use]
    pub fn gpu_nodes_alike(&self) -> bool {
        self.gpu_nodes.len() <= 1
    }

    /// Workloads with placed pods, but fewer than their minimum.
    #[must_use]
    pub const fn partial(&self) -> &BTreeSet<WorkloadId> {
        &self.partial
    }

    /// Workloads marked by [`Cluster::set_stale`].
    #[must_use]
    pub const fn stale(&self) -> &BTreeSet<WorkloadId> {
        &self.stale
    }

    /// Elastic workloads with a place.
    #[must_use]
    pub const fn elastic(&self) -> &BTreeSet<WorkloadId> {
        &self.elastic
    }

    /// Gated pods that should run, in id order.
    #[must_use]
    pub const fn gated(&self) -> &BTreeSet<PodId> {
        &self.gated
    }

    /// Pods with a reserved place, in id order.
    #[must_use]
    pub const fn reserved(&self) -> &BTreeSet<PodId> {
        &self.reserved
    }

    /// The workload a pod belongs to.
    #[must_use]
    pub fn workload_of(&self, pod: PodId) -> &Workload {
        &self.workloads[self.pods[pod].workload]
    }

    /// The queue and all its ancestors, nearest first.
    pub fn lineage(&self, queue: QueueId) -> impl Iterator<Item = QueueId> + use<'_> {
        std::iter::successors(Some(queue), |&queue| self.queues[queue].parent)
    }

    /// The pod set a pod belongs to.
    #[must_use]
    pub fn set_of(&self, pod: PodId) -> &PodSet {
        let pod = &self.pods[pod];
        &self.workloads[pod.workload].pod_sets[pod.set as usize]
    }

    /// True if the pods that run and are not being stopped reach the minimum of a workload.
    #[must_use]
    pub fn runs(&self, id: WorkloadId) -> bool {
        let workload = &self.workloads[id];
        let runs = |pod: &&PodId| self.pods[**pod].runs();
        let pods = |set| workload.pods_of(set).iter().filter(runs).count();
        workload.spec.is_whole(&|set| u32::try_from(pods(set)).unwrap_or(u32::MAX))
    }

    /// The amounts that a pod would hold at a place.
    #[must_use]
    pub fn amounts(&self, pod: PodId, place: &Placement) -> Resources {
        amounts(place, self.set_of(pod).demand)
    }
}

/// External changes: objects added and removed, and observations of the engine.
impl Cluster {
    /// Adds a workload with all its pods, none of which should run yet.
    ///
    /// # Errors
    /// The queue does not exist or is no leaf, or the minimum of the gang is invalid.
    pub fn add_workload(&mut self, spec: WorkloadSpec) -> Result<WorkloadId, Error> {
        let numbers = 0..spec.pods();
        let id = self.add_empty_workload(spec)?;
        for number in numbers {
            self.join(id, number);
        }
        Ok(id)
    }

    /// Adds a workload without members.
    ///
    /// # Errors
    /// As [`Cluster::add_workload`].
    pub fn add_empty_workload(&mut self, spec: WorkloadSpec) -> Result<WorkloadId, Error> {
        let queue_id = spec.queue;
        let queue = self.queues.get(queue_id).ok_or(Error::NoSuchQueue)?;
        if !queue.children.is_empty() {
            return Err(Error::NotALeaf(queue.name.clone()));
        }
        self.check_parts(&spec)?;
        let shape = self.shapes.intern(&spec);
        self.forget_constraints();
        let choices = self.intern_choices(&spec.pod_sets);
        let pod_sets = spec.pod_sets.iter().map(|set| {
            let demand = self.demand(set.request);
            let constraints = self.eligibility.intern(&set.constraints, self.nodes.iter());
            let pools = self.intern_alone(constraints, &choices);
            PodSet { demand, constraints, pools, first: 0, members: 0, placed: 0, succeeded: 0 }
        });
        let pod_sets = pod_sets.collect();
        self.learn_affinity();
        let id = self.workloads.insert(Workload {
            spec,
            pod_sets,
            shape,
            pods: Vec::new(),
            not_before: Instant::default(),
            last_start: None,
            activity: Activity::Runs,
            last_resize: None,
            shrinks: Shrinks::default(),
            last_eviction: None,
            checkpointed_at: None,
            restarts: 0,
            stale_since: None,
            grace_ms: None,
            placed: 0,
            succeeded: 0,
            pools: choices,
        });
        self.queues[queue_id].workloads.insert(id);
        self.tracker.workload(id);
        if !self.affinity.is_unused() {
            // The set of conflicting pods may have changed.
            self.tracker.touch();
        }
        Ok(id)
    }

    /// Amounts that a pod without a place requests, valued on the existing GPUs.
    pub fn demand(&self, request: PodRequest) -> Resources {
        request.demand(self.gpu_memories.keys().copied())
    }

    /// Removes a workload without placed pods.
    ///
    /// # Errors
    /// A pod of it still holds or has reserved a place.
    pub fn remove_workload(&mut self, id: WorkloadId) -> Result<(), Error> {
        let Some(workload) = self.workloads.get(id) else { return Ok(()) };
        if workload.pods.iter().any(|&pod| self.pods[pod].binding != PodBinding::default()) {
            return Err(Error::StillPlaced(workload.spec.name.clone()));
        }
        for pod in workload.pods.clone() {
            self.set_wants(pod, false);
            self.pods.remove(pod);
        }
        let queue = self.workloads[id].spec.queue;
        self.queues[queue].workloads.remove(&id);
        self.stale.remove(&id);
        self.workloads.remove(id);
        self.tracker.workload(id);
        Ok(())
    }

    /// Excludes a workload from scheduling until an instant.
    pub fn set_not_before(&mut self, workload: WorkloadId, not_before: Instant) {
        self.workloads[workload].not_before = not_before;
        self.tracker.workload(workload);
    }

    /// Records that a workload changed in more than its request for a place.
    pub(crate) fn note(&mut self, id: WorkloadId) {
        self.tracker.workload(id);
        self.tracker.touch();
    }

    /// Records when a workload was last placed and last changed size.
    pub fn set_starts(
        &mut self,
        workload: WorkloadId,
        last_start: Option<Instant>,
        last_resize: Option<Instant>,
    ) {
        self.note(workload);
        let workload = &mut self.workloads[workload];
        workload.last_start = last_start;
        workload.last_resize = last_resize;
    }

    /// Bounds how long a workload may hold places with fewer pods than its minimum.
    pub fn set_grace(&mut self, workload: WorkloadId, grace_ms: Option<u64>) {
        self.note(workload);
        self.workloads[workload].grace_ms = grace_ms;
    }

    /// Records the shrinks of a workload.
    pub fn set_shrinks(&mut self, workload: WorkloadId, shrinks: Shrinks) {
        self.note(workload);
        self.workloads[workload].shrinks = shrinks;
    }

    /// Records when a workload was last evicted.
    pub fn set_evicted(&mut self, workload: WorkloadId, at: Instant) {
        self.note(workload);
        self.workloads[workload].last_eviction = Some(at);
    }

    /// Records that a workload saved its progress.
    pub fn set_checkpointed(&mut self, workload: WorkloadId, at: Option<Instant>) {
        self.note(workload);
        self.workloads[workload].checkpointed_at = at;
    }

    /// Sets the maximum run time of a workload from now on.
    pub fn set_time_limit(&mut self, workload: WorkloadId, limit_ms: Option<u64>) {
        self.note(workload);
        self.workloads[workload].spec.time_limit_ms = limit_ms;
    }

    /// Records how often a workload was preempted, moved or resized.
    pub fn set_restarts(&mut self, workload: WorkloadId, restarts: u32) {
        self.note(workload);
        self.workloads[workload].restarts = restarts;
    }

    /// Records since when a workload has fewer pods than its minimum.
    pub fn set_stale(&mut self, workload: WorkloadId, since: Option<Instant>) {
        if self.workloads[workload].stale_since != since {
            self.note(workload);
        }
        self.workloads[workload].stale_since = since;
        keep(&mut self.stale, workload, since.is_some());
    }

    /// Frees the current place of a pod whose processes are gone.
    pub fn vacate(&mut self, pod: PodId) {
        let next = self.pods[pod].binding.next.clone();
        self.set_binding(pod, PodBinding { current: None, releasing: false, next });
    }

    /// Marks a pod whose processes are being stopped.
    pub fn release(&mut self, pod: PodId) {
        let mut binding = self.pods[pod].binding.clone();
        binding.releasing = binding.current.is_some();
        self.set_binding(pod, binding);
    }
}

/// Indexes that follow from a change.
impl Cluster {
    /// Updates the indexes after a pod changed; `waited`: it waited before the change.
    pub(crate) fn index(&mut self, id: PodId, waited: bool) {
        let pod = &self.pods[id];
        match (waited, pod.waits()) {
            (false, true) => *self.waiting.entry(pod.workload).or_insert(0) += 1,
            (true, false) => {
                if let Entry::Occupied(mut waiting) = self.waiting.entry(pod.workload) {
                    *waiting.get_mut() -= 1;
                    if *waiting.get() == 0 {
                        waiting.remove();
                    }
                }
            }
            _ => {}
        }
        keep(&mut self.reserved, id, pod.binding.next.is_some());
        keep(&mut self.gated, id, pod.wants && pod.gated);
    }
}

/// Adds an id to an index or removes it.
pub(crate) fn keep<T: Ord>(set: &mut BTreeSet<T>, id: T, member: bool) {
    if member {
        set.insert(id);
    } else {
        set.remove(&id);
    }
}
