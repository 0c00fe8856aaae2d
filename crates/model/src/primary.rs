//! The dispatcher's copy of the cluster. Owns: that the scheduler's replica gets every change in
//! the same order, and the changes that invalidate a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;

use units::{Instant, Resources};

use crate::{
    Cluster, Error, Lag, NodeId, NodeSpec, PodBinding, PodId, PoolId, QueueId, QueueSpec, Share,
    Taint, TopologyId, Usage, WorkloadId, WorkloadSpec,
};

/// A change for replicas.
pub type Op = Box<dyn FnOnce(&mut Cluster) + Send + Sync>;

/// Part of the state that a change concerns.
enum About {
    /// Nodes, pools, queues and shares, on which every plan depends.
    Structure,
    Workload(WorkloadId),
    /// New objects, on which no earlier plan depends.
    New,
}

/// A cluster with read access by `Deref`, and changes by the methods here.
#[derive(Default)]
pub struct Primary {
    cluster: Cluster,
    /// Changes that replicas have not received.
    ops: Vec<Op>,
    /// True if anything changed since the last request for a decision, except by its plan.
    has_news: bool,
    /// True if something changed since then on which every plan depends.
    is_restructured: bool,
    /// Workloads that changed since then.
    touched: BTreeSet<WorkloadId>,
}

impl Deref for Primary {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl fmt::Debug for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Primary").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

/// Inputs of decisions.
impl Primary {
    /// True if there were changes to decide about since the last call. Plans requested now are
    /// checked against changes from now on.
    pub fn take_news(&mut self) -> bool {
        self.touched.clear();
        self.is_restructured = false;
        std::mem::take(&mut self.has_news)
    }

    /// True if there are changes to decide about that [`Primary::take_news`] has not taken.
    pub const fn has_news(&self) -> bool {
        self.has_news
    }

    /// Changes that replicas have not received.
    pub fn take_ops(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.ops)
    }

    /// Requests a decision although nothing has changed.
    pub const fn renew(&mut self) {
        self.has_news = true;
    }

    /// A new replica with all changes so far.
    pub fn replica(&mut self) -> Cluster {
        self.ops.clear();
        self.has_news = true;
        self.cluster.clone()
    }

    /// True if nothing that a plan depends on has changed since the last call of
    /// [`Primary::take_news`]: neither the structure nor the workloads of the plan.
    pub fn holds_for(&self, mut workloads: impl Iterator<Item = Option<WorkloadId>>) -> bool {
        !self.is_restructured
            && workloads.all(|id| id.is_some_and(|id| !self.touched.contains(&id)))
    }

    /// Records a checkpoint: it requests no decision, and no plan depends on it.
    pub fn set_checkpointed(&mut self, workload: WorkloadId, at: Option<Instant>) {
        self.cluster.set_checkpointed(workload, at);
        self.ops.push(Box::new(move |cluster| cluster.set_checkpointed(workload, at)));
    }

    /// Records a lag: it requests no decision, and no plan depends on it.
    pub fn set_lag(&mut self, queue: QueueId, lag: Lag) {
        self.cluster.set_lag(queue, lag);
        self.ops.push(Box::new(move |cluster| cluster.set_lag(queue, lag)));
    }

    /// Updates lags from the holdings and fair shares of queues; returns the queues whose lag
    /// changed.
    pub fn follow_lags<'a>(
        &mut self,
        now: Instant,
        fair: impl Iterator<Item = (&'a QueueId, &'a Resources)>,
    ) -> Vec<QueueId> {
        let followed = self.cluster.follow_lags(now, fair);
        let queues = followed.iter().map(|(queue, _)| *queue).collect();
        if !followed.is_empty() {
            self.ops.push(Box::new(move |cluster| {
                followed.iter().for_each(|&(queue, lag)| cluster.set_lag(queue, lag));
            }));
        }
        queues
    }

    /// Makes the changes of a decision, which request no other decision.
    pub fn carry(&mut self, op: impl Fn(&mut Cluster) + Send + Sync + 'static) {
        op(&mut self.cluster);
        self.ops.push(Box::new(op));
    }
}

/// Changes, each by the cluster's method of this name.
impl Primary {
    fn change<R>(
        &mut self,
        about: About,
        op: impl Fn(&mut Cluster) -> R + Send + Sync + 'static,
    ) -> R {
        self.has_news = true;
        match about {
            About::Structure => self.is_restructured = true,
            About::Workload(id) => drop(self.touched.insert(id)),
            About::New => {}
        }
        let result = op(&mut self.cluster);
        self.ops.push(Box::new(move |cluster| drop(op(cluster))));
        result
    }

    fn change_pod<R>(
        &mut self,
        pod: PodId,
        op: impl Fn(&mut Cluster) -> R + Send + Sync + 'static,
    ) -> R {
        self.change(About::Workload(self.cluster.pods()[pod].workload), op)
    }

    /// [`Cluster::add_node`], here and on replicas.
    pub fn add_node(&mut self, spec: NodeSpec) -> NodeId {
        self.change(About::Structure, move |cluster| cluster.add_node(spec.clone()))
    }

    /// [`Cluster::remove_node`], here and on replicas.
    pub fn remove_node(&mut self, node: NodeId) {
        self.change(About::Structure, move |cluster| cluster.remove_node(node));
    }

    /// [`Cluster::set_hardware`], here and on replicas.
    pub fn set_hardware(
        &mut self,
        node: NodeId,
        gpu_memory_bytes: Vec<u64>,
        cpu_millis: u64,
        memory_bytes: u64,
    ) {
        let op = move |cluster: &mut Cluster| {
            cluster.set_hardware(node, &gpu_memory_bytes, cpu_millis, memory_bytes);
        };
        self.change(About::Structure, op);
    }

    /// [`Cluster::set_schedulable`], here and on replicas.
    pub fn set_schedulable(&mut self, node: NodeId, schedulable: bool) {
        self.change(About::Structure, move |cluster| cluster.set_schedulable(node, schedulable));
    }

    /// [`Cluster::drain`], here and on replicas.
    pub fn drain(&mut self, node: NodeId) {
        self.change(About::Structure, move |cluster| cluster.drain(node));
    }

    /// [`Cluster::set_labels`], here and on replicas.
    pub fn set_labels(
        &mut self,
        node: NodeId,
        labels: BTreeMap<String, String>,
        taints: Vec<Taint>,
    ) {
        let op =
            move |cluster: &mut Cluster| cluster.set_labels(node, labels.clone(), taints.clone());
        self.change(About::Structure, op);
    }

    /// [`Cluster::set_in_service`], here and on replicas.
    pub fn set_in_service(&mut self, node: NodeId, gpu: u32, is: bool) -> Vec<PodId> {
        self.change(About::Structure, move |cluster| cluster.set_in_service(node, gpu, is))
    }

    /// [`Cluster::divide_by_pool`], here and on replicas.
    pub fn divide_by_pool(&mut self) {
        self.change(About::Structure, Cluster::divide_by_pool);
    }

    /// [`Cluster::add_pool`], here and on replicas.
    pub fn add_pool(&mut self, name: &str) -> PoolId {
        let name = name.to_owned();
        self.change(About::Structure, move |cluster| cluster.add_pool(&name))
    }

    /// [`Cluster::remove_pool`], here and on replicas.
    pub fn remove_pool(&mut self, name: &str) -> Result<(), Error> {
        let name = name.to_owned();
        self.change(About::Structure, move |cluster| cluster.remove_pool(&name))
    }

    /// [`Cluster::add_topology`], here and on replicas.
    pub fn add_topology(&mut self, name: &str, levels: Vec<String>) -> Result<TopologyId, Error> {
        let name = name.to_owned();
        self.change(About::Structure, move |cluster| cluster.add_topology(&name, levels.clone()))
    }

    /// [`Cluster::retire_topology`], here and on replicas.
    pub fn retire_topology(&mut self, name: &str) {
        let name = name.to_owned();
        self.change(About::Structure, move |cluster| cluster.retire_topology(&name));
    }

    /// [`Cluster::add_queue`], here and on replicas.
    pub fn add_queue(&mut self, spec: QueueSpec) -> Result<QueueId, Error> {
        self.change(About::Structure, move |cluster| cluster.add_queue(spec.clone()))
    }

    /// [`Cluster::rename_queue`], here and on replicas.
    pub fn rename_queue(&mut self, queue: QueueId, name: String) -> Result<(), Error> {
        self.change(About::Structure, move |cluster| cluster.rename_queue(queue, name.clone()))
    }

    /// [`Cluster::remove_queue`], here and on replicas.
    pub fn remove_queue(&mut self, queue: QueueId) -> Result<(), Error> {
        self.change(About::Structure, move |cluster| cluster.remove_queue(queue))
    }

    /// [`Cluster::set_share_in`], here and on replicas.
    pub fn set_share_in(
        &mut self,
        project: QueueId,
        pool: PoolId,
        share: Share,
    ) -> Result<(), Error> {
        let queue = self.cluster.queue_in(project, pool);
        if self.cluster.queues().get(queue).is_some_and(|queue| queue.share == share) {
            return Ok(());
        }
        let op = move |cluster: &mut Cluster| cluster.set_share_in(project, pool, share);
        self.change(About::Structure, op)
    }

    /// Records the usage of queues; earlier plans stay valid.
    pub fn set_usages(&mut self, usages: Vec<(QueueId, Usage)>) {
        self.change(About::New, move |cluster| {
            usages.iter().for_each(|&(queue, usage)| cluster.set_usage(queue, usage));
        });
    }

    /// [`Cluster::add_empty_workload`], here and on replicas.
    pub fn add_empty_workload(&mut self, spec: WorkloadSpec) -> Result<WorkloadId, Error> {
        self.change(About::New, move |cluster| cluster.add_empty_workload(spec.clone()))
    }

    /// [`Cluster::join`], here and on replicas.
    pub fn join(&mut self, id: WorkloadId, index: u32) -> Option<PodId> {
        self.change(About::Workload(id), move |cluster| cluster.join(id, index))
    }

    /// [`Cluster::leave`], here and on replicas. A plan with a pod that has left is not admitted.
    pub fn leave(&mut self, pod: PodId) -> Result<(), Error> {
        self.change_pod(pod, move |cluster| cluster.leave(pod))
    }

    /// [`Cluster::remove_workload`], here and on replicas.
    pub fn remove_workload(&mut self, id: WorkloadId) -> Result<(), Error> {
        self.change(About::Workload(id), move |cluster| cluster.remove_workload(id))
    }

    /// [`Cluster::set_precedence`], here and on replicas.
    pub fn set_precedence(&mut self, id: WorkloadId, priority: u32, preemptible: bool) {
        let now = &self.cluster.workloads()[id].spec;
        if (now.priority, now.preemptible) != (priority, preemptible) {
            self.change(About::Structure, move |cluster| {
                cluster.set_precedence(id, priority, preemptible);
            });
        }
    }

    /// [`Cluster::set_time_limit`], here and on replicas.
    pub fn set_time_limit(&mut self, id: WorkloadId, limit_ms: Option<u64>) {
        if self.cluster.workloads()[id].spec.time_limit_ms != limit_ms {
            self.change(About::Workload(id), move |cluster| cluster.set_time_limit(id, limit_ms));
        }
    }

    /// [`Cluster::set_not_before`], here and on replicas.
    pub fn set_not_before(&mut self, id: WorkloadId, at: Instant) {
        if self.cluster.workloads()[id].not_before != at {
            self.change(About::Workload(id), move |cluster| cluster.set_not_before(id, at));
        }
    }

    /// Makes changes to a workload that have no method of their own.
    pub fn change_workload(
        &mut self,
        id: WorkloadId,
        op: impl Fn(&mut Cluster) + Send + Sync + 'static,
    ) {
        self.change(About::Workload(id), op);
    }

    /// [`Cluster::set_wants`], here and on replicas.
    pub fn set_wants(&mut self, pod: PodId, wants: bool) {
        let now = &self.cluster.pods()[pod];
        if now.wants != wants || (wants && now.succeeded) {
            self.change_pod(pod, move |cluster| cluster.set_wants(pod, wants));
        }
    }

    /// [`Cluster::set_gated`], here and on replicas.
    pub fn set_gated(&mut self, pod: PodId, gated: bool) {
        if self.cluster.pods()[pod].gated != gated {
            self.change_pod(pod, move |cluster| cluster.set_gated(pod, gated));
        }
    }

    /// [`Cluster::set_succeeded`], here and on replicas.
    pub fn set_succeeded(&mut self, pod: PodId, succeeded: bool) {
        if self.cluster.pods()[pod].succeeded != succeeded {
            self.change_pod(pod, move |cluster| cluster.set_succeeded(pod, succeeded));
        }
    }

    /// [`Cluster::vacate`], here and on replicas.
    pub fn vacate(&mut self, pod: PodId) {
        self.change_pod(pod, move |cluster| cluster.vacate(pod));
    }

    /// [`Cluster::release`], here and on replicas.
    pub fn release(&mut self, pod: PodId) {
        self.change_pod(pod, move |cluster| cluster.release(pod));
    }

    /// [`Cluster::set_binding`], here and on replicas.
    pub fn set_binding(&mut self, pod: PodId, binding: PodBinding) {
        self.change_pod(pod, move |cluster| cluster.set_binding(pod, binding.clone()));
    }
}
