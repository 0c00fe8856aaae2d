//! From the state to what is written and what is shown. Owns: emptying the [`Outbox`] into
//! changes, and building views; unchanged views are shared with the ones before.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::QueueId;
use store::{Change, Desired};
use units::{Instant, Kind, Resources};
use uuid::Uuid;

use crate::metrics::Tally;
use crate::observe::{LOST, NOT_NOW};
use crate::persist;
use crate::pools::Pool;
use crate::reasons::NOT_STARTED;
use crate::state::{
    Action, Department, Ended, Outbox, Pod, Project, State, Unit, Workload, pod_name,
};
use crate::view::{
    Event, NodeView, OrgUnit, Phase, PodState, PodView, PoolShare, PoolView, ProjectView, Share,
    Standing, View, WorkloadView,
};

/// Code of the reason of those that failed and wait before the next try.
const BACKING_OFF: &str = "P302";

/// Departments and projects, by id.
type OrgViews = (BTreeMap<u64, Arc<OrgUnit>>, BTreeMap<u64, Arc<ProjectView>>);

/// A batch, ready to be written, shown and acted on, in this order.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
    pub(crate) view: View,
    /// Last views of what was deleted.
    pub(crate) deleted: BTreeMap<Uuid, Arc<WorkloadView>>,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) actions: Vec<Action>,
    /// Counted once the batch is on disk.
    pub(crate) tally: Tally,
}

impl State {
    /// Ends the batch: brings phases and flags up to date and empties the outbox.
    pub(crate) fn finish(&mut self, before: &View) -> Batch {
        let touched: Vec<_> = self.outbox.workloads.iter().copied().collect();
        // The phase of an inference follows from those of its revisions.
        let (revisions, others): (Vec<_>, Vec<_>) = touched
            .into_iter()
            .partition(|id| self.workloads.get(id).is_some_and(|w| w.spec.revision.is_some()));
        for id in revisions.into_iter().chain(others) {
            self.settle(id);
        }
        self.plan_limits();
        self.book_allocations();
        self.flag_over_quota();
        debug_assert!(self.books_are_right());
        let outbox = std::mem::take(&mut self.outbox);
        let view = self.view(before, &outbox);
        let deleted = outbox.deleted.values();
        let last_view = |workload: &Workload| {
            let deleted_at = Some(self.now);
            (workload.id, Arc::new(WorkloadView { deleted_at, ..self.workload_view(workload) }))
        };
        let deleted = deleted.map(last_view).collect();
        let changes = self.changes(&outbox);
        let events = outbox.events.into_iter().map(|(event, _)| event).collect();
        Batch { changes, view, deleted, events, actions: outbox.actions, tally: outbox.tally }
    }

    /// Computes every account anew, for tests; too slow for large clusters.
    fn books_are_right(&self) -> bool {
        const CHECKED_MAX: usize = 100;
        self.cluster.pods().len() > CHECKED_MAX || self.cluster.verify() == Ok(())
    }

    /// What has changed, as rows. A pod that stands as it was written is not written again: a revision
    /// may have many that are not wanted.
    fn changes(&mut self, outbox: &Outbox) -> Vec<Change> {
        let mut changes = outbox.changes.clone();
        for id in &outbox.workloads {
            let Some(workload) = self.workloads.get(id) else { continue };
            changes.push(Change::WorkloadState(*id, persist::workload_state(workload, None)));
            let row = |pod| {
                let place = self.occupancy(pod);
                persist::pod_row(workload, pod, &place, |node| self.node_name(node))
            };
            let rows: Vec<_> = workload.pods.iter().map(row).collect();
            let pods = self.workloads.get_mut(id).into_iter().flat_map(|w| &mut w.pods);
            for (pod, row) in pods.zip(rows) {
                if pod.written.as_deref() != Some(&row) {
                    pod.written = Some(Box::new(row.clone()));
                    changes.push(Change::Pod(row));
                }
            }
        }
        let rows = outbox.events.iter().map(|(event, project)| persist::event_row(event, *project));
        changes.extend(rows.map(Change::Event));
        changes
    }

    /// Of the projects that changed, marks the workloads whose places, in the order they are
    /// protected, pass the quota.
    fn flag_over_quota(&mut self) {
        let mut of_project: BTreeMap<u64, BTreeSet<Uuid>> =
            self.outbox.projects.iter().map(|id| (*id, BTreeSet::new())).collect();
        // Those that have ended hold nothing; they were touched when they did, and may be many.
        for id in self.by_model.values().chain(&self.outbox.workloads) {
            let project = self.workloads.get(id).map(|workload| workload.project_id);
            if let Some(ids) = project.and_then(|project| of_project.get_mut(&project)) {
                ids.insert(*id);
            }
        }
        for (project, ids) in of_project {
            let over = self.over_quota(project, &ids);
            for id in ids {
                let Some(workload) = self.workloads.get_mut(&id) else { continue };
                let now_over = over.contains(&id);
                if workload.over_quota != now_over {
                    workload.over_quota = now_over;
                    self.outbox.shown.insert(id);
                }
            }
        }
    }

    /// Those of these workloads of a project that pass its quota.
    fn over_quota(&self, project_id: u64, ids: &BTreeSet<Uuid>) -> BTreeSet<Uuid> {
        let mut over = BTreeSet::new();
        let Some(project) = self.projects.get(&project_id).map(|project| project.queue) else {
            return over;
        };
        let mut holders: Vec<_> = ids
            .iter()
            .filter_map(|id| self.workloads.get(id))
            .map(|w| (w, self.allocated(w)))
            .filter(|(_, holds)| *holds != Resources::ZERO)
            .collect();
        holders.sort_by_key(|(w, _)| {
            (w.spec.preemptible, w.pods.iter().filter_map(|pod| pod.placed_at).min(), w.seq)
        });
        // Each pool is one account.
        let mut sums = BTreeMap::new();
        for (workload, holds) in holders {
            let pool = workload.model.and_then(|id| self.cluster.pool_of(id)).unwrap_or_default();
            let quota = self.cluster.queues()[self.cluster.queue_in(project, pool)].share.quota;
            let sum = sums.entry(pool).or_insert(Resources::ZERO);
            *sum += holds;
            if Kind::ALL.iter().any(|&kind| holds[kind] > 0 && sum[kind] > quota[kind]) {
                over.insert(workload.id);
            }
        }
        over
    }

    fn view(&self, before: &View, outbox: &Outbox) -> View {
        let mut workloads =
            if outbox.everything { BTreeMap::new() } else { before.workloads.clone() };
        let mut revisions =
            if outbox.everything { BTreeMap::new() } else { before.revisions.clone() };
        let mut by_name = if outbox.everything { Arc::default() } else { before.by_name.clone() };
        // What is seen of a revision is seen of its inference too.
        let changed = outbox.workloads.iter().chain(&outbox.shown).chain(outbox.deleted.keys());
        let changed: BTreeSet<Uuid> = changed.flat_map(|id| [*id, self.head_of(*id)]).collect();
        for id in &changed {
            match self.workloads.get(id) {
                Some(workload) => {
                    let shelf = match workload.spec.revision {
                        None => &mut workloads,
                        Some(_) => &mut revisions,
                    };
                    let fresh = Arc::new(self.workload_view(workload));
                    let before = shelf.insert(*id, fresh.clone());
                    call(&mut by_name, before.as_deref(), Some(&fresh));
                }
                None => {
                    let before = workloads.remove(id);
                    revisions.remove(id);
                    call(&mut by_name, before.as_deref(), None);
                }
            }
        }
        let (departments, projects) = self.org_views(before, outbox.says_other_of_org());
        let nodes = self.nodes.values().enumerate();
        let nodes = nodes
            .filter_map(|(at, node)| Some(shared(before.nodes.get(at), self.node_view(node)?)));
        View {
            event_seq: self.last_event_seq,
            departments,
            projects,
            workloads,
            revisions,
            by_name,
            objects: self.objects.clone(),
            nodes: nodes.collect(),
            pools: self.pool_views(before),
            capacity: self.cluster.capacity(),
        }
    }

    /// Departments and projects. As long as nothing else is said of them, those that stand as they
    /// stood are not built anew: there may be many, in many pools.
    fn org_views(&self, before: &View, anew: bool) -> OrgViews {
        let same = |unit: &OrgUnit, queue| !anew && self.stands_as(unit, queue);
        let project = |project: &Project| {
            let shown = before.projects.get(&project.unit.id);
            match shown.filter(|shown| same(&shown.unit, project.queue)) {
                Some(shown) => {
                    debug_assert_eq!(**shown, self.project_view(project));
                    shown.clone()
                }
                None => shared(shown, self.project_view(project)),
            }
        };
        let by_department = LazyCell::new(|| self.projects_by_department());
        let fresh = |own: &Department| {
            let mine = by_department.get(&own.unit.id).map_or(&[][..], Vec::as_slice);
            self.department_view(own, mine)
        };
        let department = |own: &Department| {
            let shown = before.departments.get(&own.unit.id);
            match shown.filter(|shown| same(shown, own.queue)) {
                Some(shown) => {
                    debug_assert_eq!(**shown, fresh(own));
                    shown.clone()
                }
                None => shared(shown, fresh(own)),
            }
        };
        let departments = self.departments.values().map(|own| (own.unit.id, department(own)));
        let projects = self.projects.values().map(|own| (own.unit.id, project(own)));
        (departments.collect(), projects.collect())
    }

    /// Whether what a queue holds and may hold is what is shown.
    fn stands_as(&self, shown: &OrgUnit, queue: QueueId) -> bool {
        let in_pool = |(pool, shown): (&Pool, &PoolShare)| {
            self.standing_of(self.cluster.queue_in(queue, pool.model)) == shown.standing
        };
        self.pools.len() == shown.pools.len()
            && self.standing(queue) == shown.standing
            && self.pools.iter().zip(&shown.pools).all(in_pool)
    }

    /// Given its projects: looking for them for each department would take squares.
    pub(crate) fn department_view(
        &self,
        department: &Department,
        projects: &[&Project],
    ) -> OrgUnit {
        let usual = |pool: &str| department.usual_in(pool, projects);
        self.unit_view(&department.unit, department.queue, usual)
    }

    pub(crate) fn project_view(&self, project: &Project) -> ProjectView {
        ProjectView {
            unit: self.unit_view(&project.unit, project.queue, |_| Share::USUAL),
            department_id: project.department_id,
            department_name: self.department_name(project.department_id),
            effective_rules: self.effective_rules(project),
            effective_pools: self.effective_pools(project).to_vec(),
            effective_types: self.effective_types(project),
        }
    }

    fn unit_view(&self, unit: &Unit, queue: QueueId, usual: impl Fn(&str) -> Share) -> OrgUnit {
        let in_pool = |pool: &Pool| {
            let usual = usual(pool.id());
            PoolShare {
                id: pool.id().to_owned(),
                name: pool.name().to_owned(),
                share: unit.given(pool.id()).made_to(usual),
                usual,
                standing: self.standing_of(self.cluster.queue_in(queue, pool.model)),
            }
        };
        OrgUnit {
            id: unit.id,
            name: unit.name.clone(),
            description: unit.description.clone(),
            created_by: unit.created_by.clone(),
            created_at: unit.created_at,
            updated_by: unit.updated_by.clone(),
            updated_at: unit.updated_at,
            rules: unit.rules,
            default_pools: unit.default_pools.clone(),
            node_types: unit.node_types.clone(),
            standing: self.standing(queue),
            pools: self.pools.iter().map(in_pool).collect(),
        }
    }

    fn department_name(&self, id: u64) -> String {
        self.departments.get(&id).map(|found| found.unit.name.clone()).unwrap_or_default()
    }

    /// How it stands in all pools together.
    fn standing(&self, queue: QueueId) -> Standing {
        if !self.cluster.is_divided() {
            return self.standing_of(queue);
        }
        let each = self.cluster.queues_of(queue).map(|queue| self.standing_of(queue));
        // What may be got in several pools is asked for in each of them, and counts once.
        let requested = self.cluster.queues()[queue].wanted;
        each.fold(Standing { requested, ..Standing::default() }, |sum, one| Standing {
            allocated: sum.allocated + one.allocated,
            allocated_non_preemptible: sum.allocated_non_preemptible
                + one.allocated_non_preemptible,
            requested: sum.requested,
            fair_share: sum.fair_share + one.fair_share,
            // A part of one pool and a part of another have no sum.
            usage: None,
        })
    }

    fn standing_of(&self, id: QueueId) -> Standing {
        let Some(queue) = self.cluster.queues().get(id) else { return Standing::default() };
        Standing {
            allocated: queue.allocated,
            allocated_non_preemptible: queue.allocated_non_preemptible,
            requested: queue.requested,
            fair_share: self.memory.shares().get(&id).copied().unwrap_or_default(),
            usage: self.usage.as_ref().map(|_| queue.usage),
        }
    }

    fn pool_views(&self, before: &View) -> Vec<Arc<PoolView>> {
        let views = self.pools.iter().enumerate().map(|(at, pool)| {
            let nodes = self.nodes.values().filter(|node| node.pool == pool.id());
            let nodes = nodes.map(|node| node.spec.name.clone()).collect();
            let fresh = pool.view(nodes, self.cluster.capacity_of(pool.model));
            shared(before.pools.get(at), fresh)
        });
        views.collect()
    }

    fn node_view(&self, node: &crate::state::Node) -> Option<NodeView> {
        let found = self.cluster.nodes().get(node.id)?;
        Some(NodeView {
            name: node.spec.name.clone(),
            gpu_type: node.spec.gpu_type.clone(),
            simulated: node.spec.simulated,
            gpu_memory_bytes: found.gpus.iter().map(|gpu| gpu.memory_bytes).collect(),
            gpu_used_millis: found.gpus.iter().map(|gpu| gpu.used_millis).collect(),
            troubles: node.troubles.clone(),
            capacity: found.capacity,
            used: found.used,
            pool: self.cluster.pool_name(found.pool).to_owned(),
            labels: node.labels.clone(),
            created_at: self.cluster_created_at,
        })
    }

    fn workload_view(&self, workload: &Workload) -> WorkloadView {
        let own = self.view_of_one(workload);
        let newest = workload.revisions.last();
        let revisions = self.revisions_of(workload).map(|revision| self.view_of_one(revision));
        revisions.fold(own, |mut all, one| {
            let seen = |pod: &PodView| pod.wanted || pod.node_name.is_some();
            let is_live = !matches!(one.phase, Phase::Stopped | Phase::Failed | Phase::Deleting);
            // What it failed of is seen by the pods that did.
            let is_shown = is_live || (all.phase == Phase::Failed && newest == Some(&one.id));
            all.pods.extend(one.pods.into_iter().filter(|pod| seen(pod) && is_shown));
            all.failure = one.failure;
            all.allocated += one.allocated;
            if is_live {
                all.requested += one.requested;
                all.pending.extend(one.pending);
            }
            all.over_quota |= one.over_quota;
            all.pool = all.pool.or(one.pool);
            all.restarts += one.restarts;
            all.last_eviction =
                all.last_eviction.into_iter().chain(one.last_eviction).max_by_key(|e| e.at);
            all
        })
    }

    /// A workload without what its revisions have.
    fn view_of_one(&self, workload: &Workload) -> WorkloadView {
        let project = self.projects.get(&workload.project_id);
        let department_id = project.map_or(0, |project| project.department_id);
        let pods = workload.pods.iter().zip(workload.turns());
        let pods: Vec<_> = pods.map(|(pod, turn)| self.pod_view(workload, pod, turn)).collect();
        let mut reasons = workload.pending.clone();
        // Of many pods with the same trouble the first is shown.
        for condition in pods.iter().filter_map(|pod| pod.condition.as_ref()) {
            if reasons.iter().all(|reason| reason.code != condition.code) {
                reasons.push(condition.clone());
            }
        }
        WorkloadView {
            id: workload.id,
            seq: workload.seq,
            project_id: workload.project_id,
            project_name: project.map(|project| project.unit.name.clone()).unwrap_or_default(),
            department_id,
            department_name: self.department_name(department_id),
            spec: workload.spec.clone(),
            created_at: workload.created_at,
            phase: workload.phase,
            phase_since: workload.phase_since,
            completed_at: workload.completed_at,
            deleted_at: None,
            allocated: self.allocated(workload),
            requested: workload.requested,
            over_quota: workload.over_quota,
            pods,
            revisions: workload.revisions.clone(),
            pending: reasons,
            last_eviction: workload.last_eviction.clone(),
            restarts: workload.restarts,
            failure: workload.failure().map(str::to_owned),
            pool: self.pool_in_use(workload),
            waited_ms: workload.waited_ms,
            ran_ms: workload.ran_ms,
        }
    }

    /// Name of the pool a workload is in.
    fn pool_in_use(&self, workload: &Workload) -> Option<String> {
        let mut places = workload.pods.iter().filter_map(|pod| self.occupancy(pod).current);
        let node = self.cluster.nodes().get(places.next()?.node)?;
        Some(self.cluster.pool_name(node.pool).to_owned())
    }

    /// When a pod is started again that gave up its place after a failure.
    fn backs_off_until(workload: &Workload, pod: &Pod) -> Option<Instant> {
        let waits = workload.pending.iter().any(|reason| reason.code == BACKING_OFF);
        let by_itself = |exit: &str| exit != LOST && !exit.starts_with(NOT_NOW);
        let failed = pod.last_exit.as_deref().is_some_and(by_itself);
        workload.not_before.filter(|_| waits && failed && workload.restarts > 0)
    }

    fn pod_view(&self, workload: &Workload, pod: &Pod, turn: bool) -> PodView {
        let occupancy = self.occupancy(pod);
        let state = match (&occupancy.current, &occupancy.next) {
            (Some(_), _) if occupancy.releasing => PodState::Terminating,
            (Some(_), _) if pod.started_at.is_some() => PodState::Running,
            (Some(_), _) => PodState::Starting,
            (None, Some(_)) => PodState::Reserved,
            (None, None) => match pod.ended {
                Some(Ended::Succeeded) => PodState::Succeeded,
                Some(Ended::Failed) => PodState::Failed,
                // A replica that is not wanted has no turn either; that is told by `wanted`.
                None if !turn && !pod.parked => PodState::Later,
                // Stopped because its workload had ended.
                None if workload.phase == Phase::Completed => PodState::Succeeded,
                None if workload.phase == Phase::Failed => PodState::Failed,
                None if workload.phase == Phase::Stopped => PodState::Suspended,
                None => PodState::Pending,
            },
        };
        let restart_at = match state {
            PodState::Pending => Self::backs_off_until(workload, pod),
            _ => pod.restart_at,
        };
        let place = occupancy.current.as_ref().or(occupancy.next.as_ref());
        let gpus = place.map(|p| p.devices.iter().map(|share| (share.gpu, share.millis)).collect());
        PodView {
            id: pod.id,
            created_at: workload.pod_since(pod),
            index: pod.index,
            generation: pod.generation,
            name: pod_name(&workload.spec, pod),
            revision: workload.spec.revision.map(|_| workload.id),
            port: pod.port,
            wanted: !pod.parked && workload.desired == Desired::Run,
            state,
            node_name: place.map(|place| self.node_name(place.node)),
            gpus: gpus.unwrap_or_default(),
            placed_at: pod.placed_at,
            held_since: pod.held_since,
            started_at: pod.started_at,
            last_exit: pod.last_exit.clone(),
            restart_at,
            condition: pod.condition.clone().filter(|why| {
                // What kept the machine from starting it is why it waits.
                let waits = why.code == NOT_STARTED.code && !workload.pending.is_empty();
                state.is_starting_or_running() || waits
            }),
        }
    }
}

/// Keeps the names by which requests come to workloads as they are shown.
fn call(
    by_name: &mut Arc<BTreeMap<(String, String), Uuid>>,
    before: Option<&WorkloadView>,
    now: Option<&WorkloadView>,
) {
    let name = |view: &WorkloadView| {
        let named = (view.project_name.clone(), view.spec.name.clone());
        let comes = view.spec.has_revisions() || !view.spec.urls.is_empty();
        comes.then_some((named, view.id))
    };
    let (before, now) = (before.and_then(name), now.and_then(name));
    if before != now {
        let by_name = Arc::make_mut(by_name);
        // Another may have come to its name meanwhile.
        if let Some((name, id)) = before
            && by_name.get(&name) == Some(&id)
        {
            by_name.remove(&name);
        }
        by_name.extend(now);
    }
}

/// The view there was, if nothing has changed.
fn shared<T: PartialEq>(before: Option<&Arc<T>>, fresh: T) -> Arc<T> {
    match before {
        Some(before) if **before == fresh => before.clone(),
        _ => Arc::new(fresh),
    }
}
