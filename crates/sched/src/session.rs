//! One cycle in progress: the cluster under an open transaction, and the findings so far. Owns:
//! placing a workload (all its pods or none), stopping and resizing pods, the checks of limit and
//! quota, and the bound on work. Does not know about: the action in progress.

pub(crate) mod pools;
pub(crate) mod reserve;
pub(crate) mod topology;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    Activity, Checkpoint, Cluster, DeviceShare, GpuRequest, NodeId, Placement, PodBinding, PodId,
    PodMismatch, QueueId, Share, WorkloadId, next_pods, next_pods_if,
};
use units::{Instant, Kind, Ratio, Resources};

use crate::candidates::FailedTurns;
use crate::free_places::FreePlaces;
use crate::knowledge::Knowledge;
use crate::order::Shares;
use crate::place::PodRequirements;
use crate::{NodeScoring, Policy, Stats, node_scoring, place};
use model::equivalence_class::patient_until;
use pools::Trying;
use reasons::{Cause, Lost, Pending, WorkloadRef};
use reserve::{ReservationScope, Reservations};
use topology::Free;

pub(crate) struct Session<'a> {
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) now: Instant,
    pub(crate) policy: &'a Policy,
    pub(crate) known: Knowledge,
    pub(crate) causes: BTreeMap<PodId, Cause>,
    /// Beneficiaries that the causes may name.
    pub(crate) beneficiaries: BTreeSet<WorkloadId>,
    /// Workloads that have had too few pods since a time, or have enough again (`None`).
    pub(crate) stale: BTreeMap<WorkloadId, Option<Instant>>,
    pub(crate) stats: Stats,
    /// Trials left to the present action: each has its own, so that none starves another.
    pub(crate) trials_left: u64,
    /// Sets of victims that the present action may still try.
    pub(crate) sets_left: u64,
    pub(crate) wake_at: Option<Instant>,
    pub(crate) node_scoring: NodeScoring,
    /// Free places for moved pods; a cell, as it is filled by reads.
    pub(crate) free_places: RefCell<FreePlaces>,
    pub(crate) reservations: Reservations,
    pub(crate) trying: Trying,
    /// The revision of the state in which no waiting workload has a free place.
    pub(crate) full_at: Option<u64>,
    /// The turns of the last pass, if all of them failed.
    pub(crate) failed_turns: Option<FailedTurns>,
}

/// A queue that may not use the requested resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    queue: QueueId,
    /// Kind of resource that it would exceed.
    kind: Kind,
    /// `true` if it would exceed its limit; else its non-preemptible work would exceed its quota.
    by_limit: bool,
}

impl Refusal {
    /// Code of the reason that describes it.
    pub(crate) const fn code(self) -> &'static str {
        if self.by_limit { "P201" } else { "P202" }
    }
}

/// Reason why a workload was not placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Its queue may not use more; evictions elsewhere cannot help.
    Queue,
    /// There is no room.
    Room,
}

impl<'a> Session<'a> {
    /// Opens a transaction on the cluster.
    pub(crate) fn begin(cluster: &'a mut Cluster, now: Instant, policy: &'a Policy) -> Self {
        Self::resume(Knowledge::of_shares(cluster, policy), cluster, now, policy)
    }

    /// Opens a transaction with the knowledge of earlier decisions.
    pub(crate) fn resume(
        known: Knowledge,
        cluster: &'a mut Cluster,
        now: Instant,
        policy: &'a Policy,
    ) -> Self {
        cluster.begin();
        Self {
            cluster,
            now,
            policy,
            known,
            causes: BTreeMap::new(),
            beneficiaries: BTreeSet::new(),
            stale: BTreeMap::new(),
            stats: Stats::default(),
            trials_left: 0,
            sets_left: 0,
            wake_at: None,
            node_scoring: NodeScoring::default(),
            free_places: RefCell::default(),
            reservations: Reservations::default(),
            trying: Trying::default(),
            full_at: None,
            failed_turns: None,
        }
    }
}

impl Session<'_> {
    /// `true` if any queue guarantees a run time to its workloads.
    pub(crate) fn guarantees_time(&self) -> bool {
        let guaranteed =
            |share: &Share| share.reclaim_min_runtime_ms.max(share.preempt_min_runtime_ms);
        guaranteed(&self.policy.usual_share()) > Some(0)
            || self.cluster.queues().iter().any(|(_, queue)| guaranteed(&queue.share) > Some(0))
    }

    pub(crate) fn shares(&self) -> Shares<'_> {
        Shares { cluster: self.cluster, known: &self.known, now: self.now }
    }

    /// Fair share of each queue.
    pub(crate) const fn fair(&self) -> &BTreeMap<QueueId, Resources> {
        self.known.shares()
    }

    /// Records that a workload has had too few pods since a time, or has enough (`None`).
    pub(crate) fn mark_stale(&mut self, id: WorkloadId, since: Option<Instant>) {
        match self.cluster.workloads()[id].stale_since == since {
            true => drop(self.stale.remove(&id)),
            false => drop(self.stale.insert(id, since)),
        }
    }

    /// Applies the changes of the last action to the knowledge.
    pub(crate) fn follow(&mut self) {
        self.known.follow(self.cluster, self.now);
    }

    /// Workloads that need a place and may be considered now.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = WorkloadId> {
        let waiting = self.cluster.waiting();
        waiting.filter(|&id| self.cluster.workloads()[id].not_before <= self.now)
    }

    /// Queues of projects whose use has changed since a point of this cycle.
    pub(crate) fn queues_changed_since(&self, point: Checkpoint) -> BTreeSet<QueueId> {
        let pods = self.cluster.changed_since(point);
        let projects = pods.map(|pod| self.cluster.workload_of(pod).spec.queue);
        projects.flat_map(|project| self.cluster.queues_of(project)).collect()
    }

    /// Workloads of which a pod was placed, removed or changed since a point of this cycle.
    pub(crate) fn workloads_changed_since(&self, point: Checkpoint) -> BTreeSet<WorkloadId> {
        self.cluster.changed_since(point).map(|pod| self.cluster.pods()[pod].workload).collect()
    }

    /// Spends one trial; `false` if the action has no trials left.
    pub(crate) fn may_try(&mut self) -> bool {
        let Some(left) = self.trials_left.checked_sub(1) else {
            self.stats.exhausted = true;
            return false;
        };
        self.trials_left = left;
        self.stats.trials += 1;
        true
    }

    /// Finds a place for a pod: free at once (`now`), or free after releasing pods have terminated.
    pub(crate) fn find(&mut self, ask: PodRequirements, now: bool) -> Option<Placement> {
        node_scoring::find(self.cluster, &mut self.node_scoring, ask, now, self.policy, |_| true)
    }

    /// As [`Session::find`], but only where no reservation forbids it.
    pub(crate) fn find_respecting(
        &mut self,
        pod: PodId,
        ask: PodRequirements,
        now: bool,
        respected: Option<ReservationScope>,
    ) -> Option<Placement> {
        let mut node_scoring = std::mem::take(&mut self.node_scoring);
        let open =
            |to: &Placement| respected.is_none_or(|respected| self.is_open(pod, respected, to));
        let found =
            node_scoring::find(self.cluster, &mut node_scoring, ask, now, self.policy, open);
        self.node_scoring = node_scoring;
        found
    }

    /// As [`Session::find`], but only on nodes to which the other pods of its workload bind it.
    pub(crate) fn find_beside(
        &mut self,
        pod: PodId,
        ask: PodRequirements,
        now: bool,
    ) -> Option<Placement> {
        if !self.cluster.workload_of(pod).spec.has_topology() {
            return self.find(ask, now);
        }
        let nodes = self.cluster.nodes().ids();
        let nodes = nodes.filter(|&node| topology::may_go(self.cluster, pod, node));
        let nodes: Vec<_> = nodes.collect();
        let Self { cluster, node_scoring, policy, .. } = self;
        let ranked = nodes.into_iter().filter_map(|node| {
            node_scoring.rank(cluster, node, ask, now, policy).map(|rank| (rank, node))
        });
        let node = ranked.min()?.1;
        let devices = policy.placement_in(cluster.nodes()[node].pool).devices;
        place::on_node(cluster, node, ask, now, devices)
    }

    /// Places the next pods of a workload in the first of its node pools in which they fit.
    pub(crate) fn place(&mut self, id: WorkloadId, gpus: Option<u32>) -> Result<(), Blocked> {
        pools::in_order(self, id, |s| s.place_here(id, gpus))
    }

    /// Places the next pods of a workload: all that it lacks of its minimum, or else those by which
    /// it grows. Places that are free at once are taken; if one is not, all are reserved until the
    /// last is free. If a part finds no room, another replaces it where the minimum allows it.
    fn place_here(&mut self, id: WorkloadId, gpus: Option<u32>) -> Result<(), Blocked> {
        let (mut excluded, mut blocked) = (Vec::new(), None);
        loop {
            let pods = next_pods(self.cluster, id, &excluded);
            let Some(&last) = pods.last() else { return blocked.map_or(Ok(()), Err) };
            let asked = self.asked(&pods, gpus);
            let set = match self.check_queue(id, asked) {
                Err(_) => {
                    blocked.get_or_insert(Blocked::Queue);
                    self.cluster.pods()[last].set as usize
                }
                Ok(()) => match self.place_turn(id, &pods, gpus, asked) {
                    Ok(()) => return Ok(()),
                    Err(set) => {
                        blocked.get_or_insert(Blocked::Room);
                        set
                    }
                },
            };
            if self.cluster.workloads()[id].pod_sets.len() == 1 {
                return blocked.map_or(Ok(()), Err);
            }
            excluded.push(set);
        }
    }

    /// Finds places for all these pods outside of reservations; or else returns a pod set that
    /// found none.
    fn place_turn(
        &mut self,
        id: WorkloadId,
        pods: &[PodId],
        gpus: Option<u32>,
        asked: Resources,
    ) -> Result<(), usize> {
        let start = self.cluster.checkpoint();
        self.place_all(id, pods, gpus, None)?;
        if !self.is_room_kept() && !self.is_reservation_due(id) {
            return Ok(());
        }
        self.cluster.rollback(start);
        self.keep_room();
        // Preferably outside of all reservations, else inside of those that do not bind it.
        let mut placed = Err(pods.first().map_or(0, |&pod| self.cluster.pods()[pod].set as usize));
        if self.leaves_headroom(id, asked) {
            placed = self.place_all(id, pods, gpus, Some(ReservationScope::All));
            placed =
                placed.or_else(|_| self.place_all(id, pods, gpus, Some(ReservationScope::Binding)));
        }
        if placed.is_err() {
            self.note_behind(id);
        }
        placed
    }

    /// Places pods again that were stopped for another workload, except those of the sets that are
    /// `full`; never in the reservation of another workload, which would lose it otherwise.
    pub(crate) fn place_again(&mut self, id: WorkloadId, full: &[usize]) -> bool {
        let again = |s: &mut Session<'_>| {
            let pods = s.next_pods_beside(id, full);
            s.check_queue(id, s.asked(&pods, None)).map_err(|_| Blocked::Queue)?;
            s.place_rest(id, &pods).map_err(|_| Blocked::Room)
        };
        pools::in_order(self, id, again).is_ok()
    }

    /// Finds places for all these pods; those that can continue in their places do, if the others
    /// have places then.
    fn place_rest(&mut self, id: WorkloadId, pods: &[PodId]) -> Result<(), usize> {
        let start = self.cluster.checkpoint();
        let mut rest = Vec::new();
        let pool = self.pool_of(id);
        for &pod in pods {
            let here = self.place_it_left(pod).filter(|here| {
                pool.is_none_or(|pool| pool == self.cluster.nodes()[here.node].pool)
            });
            match here {
                Some(here) => self.set_target(pod, Some(here), false),
                None => rest.push(pod),
            }
        }
        let placed = self.place_all(id, &rest, None, Some(ReservationScope::All));
        if placed.is_ok() || rest.len() == pods.len() {
            return placed;
        }
        self.cluster.rollback(start);
        self.place_all(id, pods, None, Some(ReservationScope::All))
    }

    /// Finds places for all these pods, or for none; then returns a pod set that found none.
    fn place_all(
        &mut self,
        id: WorkloadId,
        pods: &[PodId],
        gpus: Option<u32>,
        respected: Option<ReservationScope>,
    ) -> Result<(), usize> {
        let start = self.cluster.checkpoint();
        let placed = topology::place(self, &mut Free { gpus, respected }, id, pods);
        if placed.is_err() {
            self.cluster.rollback(start);
        }
        placed
    }

    /// Puts pods stopped in this cycle back where they still run, if the place is free; then they
    /// were never stopped. All of the next pods or none, and no pods of the sets that are `full`.
    pub(crate) fn put_back(&mut self, id: WorkloadId, full: &[usize]) -> bool {
        let start = self.cluster.checkpoint();
        let stays = |pod: PodId| self.place_it_left(pod).is_some();
        let pods = next_pods_if(self.cluster, id, full, stays);
        if pods.is_empty() || self.check_queue(id, self.asked(&pods, None)).is_err() {
            return false;
        }
        for pod in pods {
            let Some(here) = self.place_it_left(pod) else {
                self.cluster.rollback(start);
                return false;
            };
            self.set_target(pod, Some(here), false);
        }
        true
    }

    /// The place in which a pod stopped in this cycle still runs, if it could continue there.
    pub(crate) fn place_it_left(&self, pod: PodId) -> Option<Placement> {
        let original = self.cluster.original(pod);
        let here = original.current.as_ref().filter(|_| !original.releasing)?;
        let node = &self.cluster.nodes()[here.node];
        let host = Resources { gpu_millis: 0, ..self.cluster.amounts(pod, here) };
        let share = |at: &DeviceShare| node.gpus[at.gpu as usize].unused_millis(false) >= at.millis;
        let stays = !self.cluster.draining().contains(&here.node)
            && topology::may_go(self.cluster, pod, here.node)
            && self.cluster.in_its_pool(pod, here.node)
            && self.lets_stay(pod, here.node)
            && host.fits_in(node.free(false))
            && here.devices.iter().all(share);
        stays.then(|| here.clone())
    }

    /// `true` if no pod that conflicts by anti-affinity has been placed on the node meanwhile. Pods
    /// that it has affinity to may have left.
    fn lets_stay(&self, pod: PodId, node: NodeId) -> bool {
        let constraints = self.constraints_of(pod);
        let check = self.cluster.check_pods(constraints, node, false);
        matches!(check, Ok(()) | Err(PodMismatch::Affinity))
    }

    /// The pods to place next; empty if too few are left to reach a minimum.
    pub(crate) fn next_pods(&self, id: WorkloadId) -> Vec<PodId> {
        self.next_pods_beside(id, &[])
    }

    /// The pods to place next without those of some sets.
    pub(crate) fn next_pods_beside(&self, id: WorkloadId, full: &[usize]) -> Vec<PodId> {
        next_pods(self.cluster, id, full)
    }

    /// Sets the place of a pod. The effect on its processes follows from its place when the cycle
    /// began, so a pod stopped and put back was never stopped.
    pub(crate) fn set_target(&mut self, pod: PodId, target: Option<Placement>, at_once: bool) {
        let original = self.cluster.original(pod);
        let (running, stopping) = (original.current.clone(), original.releasing);
        let binding = match (running, target) {
            (None, Some(to)) if at_once => PodBinding::at(to),
            (None, next) => PodBinding { current: None, releasing: false, next },
            (Some(here), Some(to)) if here == to && !stopping => PodBinding::at(here),
            (Some(here), next) => PodBinding { current: Some(here), releasing: true, next },
        };
        self.cluster.set_binding(pod, binding);
    }

    /// Checks limit and quota at every level of the tree. Source: scheduling reference §9.
    pub(crate) fn check_queue(&self, id: WorkloadId, asked: Resources) -> Result<(), Refusal> {
        let preemptible = self.cluster.workloads()[id].spec.preemptible;
        let mut lineage = self.cluster.lineage(self.queue_of(id));
        lineage.try_for_each(|queue| self.check_level(queue, preemptible, asked))
    }

    fn check_level(&self, id: QueueId, preemptible: bool, asked: Resources) -> Result<(), Refusal> {
        let queue = &self.cluster.queues()[id];
        let (held, fixed) = (queue.allocated, queue.allocated_non_preemptible);
        for kind in Kind::ALL.into_iter().filter(|&kind| asked[kind] > 0) {
            let by_limit = held[kind].saturating_add(asked[kind]) > queue.share.limit[kind];
            let by_quota = fixed[kind].saturating_add(asked[kind]) > queue.share.quota[kind];
            if by_limit || (!preemptible && by_quota) {
                return Err(Refusal { queue: id, kind, by_limit });
            }
        }
        Ok(())
    }

    /// The reason that describes a refusal of this request.
    pub(crate) fn refused(&self, refusal: Refusal, asked: Resources) -> Pending {
        let Refusal { queue: id, kind, by_limit } = refusal;
        let (row, requested) = (&self.cluster.queues()[id], asked[kind]);
        let queue = self.cluster.queue_name(id);
        if by_limit {
            let (limit, allocated) = (row.share.limit[kind], row.allocated[kind]);
            return Pending::OverLimit { queue, kind, limit, allocated, requested };
        }
        let (quota, allocated) = (row.share.quota[kind], row.allocated_non_preemptible[kind]);
        Pending::NonPreemptibleOverQuota { queue, kind, quota, allocated, requested }
    }

    /// The queue that refuses a workload by its limit or quota; its own if none does.
    pub(crate) fn refusing_queue(&self, id: WorkloadId, asked: Resources) -> QueueId {
        let preemptible = self.cluster.workloads()[id].spec.preemptible;
        let refuses = |queue: &QueueId| self.check_level(*queue, preemptible, asked).is_err();
        let own = self.queue_of(id);
        self.cluster.lineage(own).find(refuses).unwrap_or(own)
    }

    /// Resources that elastic workloads use beyond their requests in the pool in question.
    pub(crate) fn lent(&self, id: WorkloadId) -> Resources {
        let roots = self.cluster.roots(self.division_of(id));
        let gpu_millis = roots.map(|queue| self.cluster.queues()[queue].lent_gpu_millis).sum();
        Resources { gpu_millis, ..Resources::ZERO }
    }

    /// The other queues with the same parent.
    pub(crate) fn siblings(&self, queue: QueueId) -> Vec<QueueId> {
        let row = &self.cluster.queues()[queue];
        let all: Vec<_> = match row.parent {
            Some(parent) => self.cluster.queues()[parent].children.iter().copied().collect(),
            None => self.cluster.roots(row.pool).collect(),
        };
        all.into_iter().filter(|&other| other != queue).collect()
    }

    /// Workloads with a place, or a reserved one, that are charged to a queue or to one below it.
    pub(crate) fn workloads_below(&self, queue: QueueId) -> Vec<WorkloadId> {
        let children = &self.cluster.queues()[queue].children;
        let below = children.iter().flat_map(|&child| self.workloads_below(child));
        self.workloads_in(queue).chain(below).collect()
    }

    /// Workloads with a place, or a reserved one, that are charged to this very queue.
    pub(crate) fn workloads_in(&self, queue: QueueId) -> impl Iterator<Item = WorkloadId> {
        let project = &self.cluster.queues()[self.cluster.project_of(queue)];
        let all = project.placed.iter().copied();
        all.filter(move |&id| !self.cluster.is_divided() || self.queue_of(id) == queue)
    }

    /// Sum of the requests of a workload's next pods, at the given size.
    pub(crate) fn ask(&self, id: WorkloadId, gpus: Option<u32>) -> Resources {
        self.asked(&self.next_pods(id), gpus)
    }

    /// Sum of the requests of pods; `gpus` replaces the size of elastic ones.
    pub(crate) fn asked(&self, pods: &[PodId], gpus: Option<u32>) -> Resources {
        let each = pods.iter().map(|&pod| self.cluster.set_of(pod).demand);
        let resized = |demand: Resources| match gpus {
            Some(gpus) => Resources { gpu_millis: u64::from(gpus) * units::GPU_MILLIS, ..demand },
            None => demand,
        };
        each.map(resized).sum()
    }

    /// Lower bound of the resources that a request needs.
    pub(crate) fn least(&self, id: WorkloadId, asked: Resources) -> Resources {
        let sets = &self.cluster.workloads()[id].spec.pod_sets;
        // A larger device gives a smaller part.
        let by_memory = sets.iter().any(|set| matches!(set.request.gpu, GpuRequest::Memory { .. }));
        if by_memory { Resources { gpu_millis: 0, ..asked } } else { asked }
    }

    /// The used fraction of the resources that a queue may use.
    pub(crate) fn saturation(&self, queue: QueueId) -> Ratio {
        self.shares().dominant(queue, Resources::ZERO)
    }

    /// Time before which a workload may not preempt others.
    pub(crate) fn patient_until(&self, id: WorkloadId) -> Instant {
        patient_until(self.cluster, id).unwrap_or_default()
    }

    /// Start of a workload's wait: its submission, or its last eviction.
    pub(crate) fn waits_since(&self, id: WorkloadId) -> Instant {
        self.cluster.workloads()[id].waits_since()
    }

    /// Time before which a running workload is safe by the run time `what` that its queue, or the
    /// nearest one above that sets one, guarantees.
    pub(crate) fn safe_until(
        &self,
        id: WorkloadId,
        what: impl Fn(&Share) -> Option<u64>,
    ) -> Instant {
        let span_ms = self.guaranteed_ms(self.queue_of(id), what);
        let workload = &self.cluster.workloads()[id];
        let last_start = workload.last_start.filter(|_| workload.activity != Activity::Pauses);
        last_start.map_or(Instant::default(), |start| start.plus_ms(span_ms))
    }

    /// Run time guaranteed by a queue, or by the nearest above that sets one, or by the policy.
    pub(crate) fn guaranteed_ms(
        &self,
        queue: QueueId,
        what: impl Fn(&Share) -> Option<u64>,
    ) -> u64 {
        let mut lineage = self.cluster.lineage(queue);
        let given = lineage.find_map(|queue| what(&self.cluster.queues()[queue].share));
        given.or_else(|| what(&self.policy.usual_share())).unwrap_or(0)
    }

    /// Run time of a workload that would be lost if it stopped now: the time since its last
    /// checkpoint, or else since its start; 0 if no pod of it runs.
    pub(crate) fn unsaved_ms(&self, id: WorkloadId) -> u64 {
        let workload = &self.cluster.workloads()[id];
        let since = workload.last_start.max(workload.checkpointed_at).filter(|_| workload.runs());
        since.map_or(0, |since| self.now.0.saturating_sub(since.0))
    }

    /// The loss in the cause of an eviction.
    pub(crate) fn lost(&self, id: WorkloadId) -> Lost {
        let workload = &self.cluster.workloads()[id];
        let checkpointed = workload.checkpointed_at > workload.last_start;
        Lost { unsaved_ms: self.unsaved_ms(id), checkpointed }
    }

    /// `true` if a workload has a place and may be stopped for others.
    pub(crate) fn can_give_way(&self, id: WorkloadId) -> bool {
        let workload = &self.cluster.workloads()[id];
        workload.gives_way() && workload.placed > 0
    }

    pub(crate) fn reference(&self, id: WorkloadId) -> WorkloadRef {
        WorkloadRef::new(self.cluster, id)
    }

    /// Requests a decision no later than `at`.
    pub(crate) fn wake(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
    }
}
