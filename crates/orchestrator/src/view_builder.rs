//! The published view of the state; unchanged parts are shared with the view before.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{NodeId, Placement, QueueId};
use pod_life::Fault;
use records::Desired;
use units::{Instant, Resources};
use uuid::Uuid;

use crate::effect::Outbox;
use crate::nodes::Node;
use crate::org::{Department, Owner, Project, Unit};
use crate::pools::Pool;
use crate::state::State;
use crate::workloads::{Pod, Workload, pod_name};
use spec::{ExitKind, Share};
use view::{
    GpuPod, NodeView, Objects, OrgUnit, PendingReason, Phase, PodState, PodView, PoolShare,
    PoolView, ProjectView, QueueStatus, ReasonView, SharedMap, View, WorkloadView,
};

/// Code of the reason of workloads that failed and wait before the next try.
const BACKING_OFF: &str = "P302";

/// Maximum number of projects up to which a test checks the views after each batch.
const CHECKED_MAX: usize = 100;

/// Views of departments and projects, by id.
type OrgViews = (SharedMap<u64, Arc<OrgUnit>>, SharedMap<u64, Arc<ProjectView>>);

impl State {
    pub(crate) fn view(&self, before: &View, outbox: &Outbox) -> View {
        let (nothing, touched) = (View::default(), outbox.touched());
        let before = if touched.everything { &nothing } else { before };
        let mut workloads = before.workloads.clone();
        let mut revisions = before.revisions.clone();
        let mut by_name = before.by_name.clone();
        // A change of a revision changes the view of its inference too.
        let changed = touched.workloads.iter().chain(&touched.shown).chain(touched.deleted.keys());
        let changed = changed.chain(touched.archived.keys());
        let changed: BTreeSet<Uuid> =
            changed.flat_map(|id| [*id, self.workloads.head_of(*id)]).collect();
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
        let (departments, projects) = self.org_views(before, outbox);
        View {
            event_seq: self.last_event_seq,
            departments,
            projects,
            workloads,
            revisions,
            pending: self.workloads.classes().clone(),
            by_name,
            archived: self.workloads.archived().clone(),
            objects: Objects::clone(&self.documents),
            nodes: self.node_views(before, outbox.touched().nodes),
            pools: self.pool_views(before, outbox),
            capacity: self.cluster.capacity(),
            is_kubernetes: self.adopted.is_open(),
            adopted: self.adopted.shown().clone(),
        }
    }

    /// Departments and projects. A view is rebuilt only if its settings changed; otherwise only its
    /// status is updated, if that may have changed: there may be many of them, in many pools.
    fn org_views(&self, before: &View, outbox: &Outbox) -> OrgViews {
        let (changed_org, mut queues) = (outbox.org_changes(), outbox.touched().queues.clone());
        let mut views = match changed_org.all {
            true => OrgViews::default(),
            false => (before.departments.clone(), before.projects.clone()),
        };
        for project in outbox.touched().projects.iter().filter_map(|id| self.org.project(*id).ok())
        {
            queues.extend(std::iter::once(project.queue).chain(self.department_of(project)));
        }
        // A project shows its department, which shows the sum of its projects.
        let inside = changed_org.departments.iter().flat_map(|id| self.org.projects_in(*id));
        let mut projects: BTreeSet<u64> = inside.map(|project| project.unit.id).collect();
        projects.extend(changed_org.projects.keys());
        projects.extend(self.org.project_ids().filter(|_| changed_org.all));
        for id in projects {
            let shown = before.projects.get(&id);
            match self.org.project(id) {
                Ok(project) => drop(views.1.insert(id, shared(shown, self.project_view(project)))),
                Err(_) => drop(views.1.remove(&id)),
            }
        }
        let mut departments = changed_org.departments;
        departments.extend(changed_org.projects.values());
        departments
            .extend(self.org.departments().map(|own| own.unit.id).filter(|_| changed_org.all));
        for id in departments {
            let shown = before.departments.get(&id);
            match self.org.department(id) {
                Ok(own) => drop(views.0.insert(id, shared(shown, self.department_view(own)))),
                Err(_) => drop(views.0.remove(&id)),
            }
        }
        for queue in queues.into_iter().filter(|_| !changed_org.all) {
            self.renew_standing(queue, &mut views);
        }
        debug_assert!(self.stand_as(&views.0, &views.1), "a project or department was missed");
        views
    }

    /// The queue of the department of a project.
    fn department_of(&self, project: &Project) -> Option<QueueId> {
        self.org.department(project.department_id).ok().map(|department| department.queue)
    }

    /// Updates the status of the department or project of a queue.
    fn renew_standing(&self, queue: QueueId, views: &mut OrgViews) {
        match self.org.of_queue(&self.cluster, queue) {
            Some(Owner::Department(id)) => {
                let Some(shown) = views.0.get(&id) else { return };
                if !self.stands_as(shown, queue) {
                    let fresh = self.with_standing(shown, queue);
                    views.0.insert(id, Arc::new(fresh));
                }
            }
            Some(Owner::Project(id)) => {
                let Some(shown) = views.1.get(&id) else { return };
                if !self.stands_as(&shown.unit, queue) {
                    let unit = self.with_standing(&shown.unit, queue);
                    let fresh = ProjectView { unit, ..ProjectView::clone(shown) };
                    views.1.insert(id, Arc::new(fresh));
                }
            }
            None => {}
        }
    }

    /// The view of a department or project with its present status.
    fn with_standing(&self, shown: &OrgUnit, queue: QueueId) -> OrgUnit {
        let mut fresh = OrgUnit { status: self.status(queue), ..shown.clone() };
        for (pool, share) in self.pools.iter().zip(&mut fresh.pools) {
            share.status = self.status_of(self.cluster.queue_in(queue, pool.model));
        }
        fresh
    }

    /// True if departments and projects are shown with their present state, for tests.
    fn stand_as(
        &self,
        departments: &SharedMap<u64, Arc<OrgUnit>>,
        projects: &SharedMap<u64, Arc<ProjectView>>,
    ) -> bool {
        let department = |own: &Department| {
            let shown = departments.get(&own.unit.id);
            shown.is_some_and(|shown| **shown == self.department_view(own))
        };
        let project = |own: &Project| {
            let shown = projects.get(&own.unit.id);
            shown.is_some_and(|shown| **shown == self.project_view(own))
        };
        self.org.project_ids().nth(CHECKED_MAX).is_some()
            || (self.org.departments().all(department) && self.org.projects().all(project))
    }

    /// True if the shown status of a queue is the present one.
    fn stands_as(&self, shown: &OrgUnit, queue: QueueId) -> bool {
        let in_pool = |(pool, shown): (&Pool, &PoolShare)| {
            self.status_of(self.cluster.queue_in(queue, pool.model)) == shown.status
        };
        self.pools.len() == shown.pools.len()
            && self.status(queue) == shown.status
            && self.pools.iter().zip(&shown.pools).all(in_pool)
    }

    fn department_view(&self, department: &Department) -> OrgUnit {
        self.unit_view(&department.unit, department.queue, Some(department))
    }

    fn project_view(&self, project: &Project) -> ProjectView {
        ProjectView {
            unit: self.unit_view(&project.unit, project.queue, None),
            department_id: project.department_id,
            department_name: self.org.department_name(project.department_id),
            effective_rules: self.org.effective_rules(project),
            effective_pools: self.org.effective_pools(project).to_vec(),
            effective_types: self.org.effective_types(project),
            namespaces: project.unit.namespaces.clone(),
        }
    }

    /// A department, or the values that a project has in common with one.
    fn unit_view(&self, unit: &Unit, queue: QueueId, of: Option<&Department>) -> OrgUnit {
        let below = of.map(|of| self.org.below(of.unit.id)).unwrap_or_default();
        let in_pool = |pool: &Pool| {
            let usual = of.map_or(Share::USUAL, |of| of.usual_in(pool.id(), &below));
            PoolShare {
                id: pool.id().into(),
                name: pool.name().into(),
                share: unit.given(pool.id()).made_to(usual),
                usual,
                projects_gpu_quota_millis: below.in_pool(pool.id()).gpu_quota_millis,
                status: self.status_of(self.cluster.queue_in(queue, pool.model)),
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
            status: self.status(queue),
            pools: self.pools.iter().map(in_pool).collect(),
        }
    }

    /// Sum of the status in all pools.
    fn status(&self, queue: QueueId) -> QueueStatus {
        if !self.cluster.is_divided() {
            return self.status_of(queue);
        }
        // A deleted pool leaves queues whose shares are no longer computed.
        let queues = self.cluster.divisions().map(|pool| self.cluster.queue_in(queue, pool));
        let each = queues.map(|queue| self.status_of(queue));
        // A request that can be met in several pools is made in each of them, and counts once.
        let requested = self.cluster.queues()[queue].wanted;
        each.fold(QueueStatus { requested, ..QueueStatus::default() }, |sum, one| QueueStatus {
            allocated: sum.allocated + one.allocated,
            allocated_non_preemptible: sum.allocated_non_preemptible
                + one.allocated_non_preemptible,
            requested: sum.requested,
            fair_share: sum.fair_share + one.fair_share,
            // Usage in different pools has no sum.
            usage: None,
        })
    }

    fn status_of(&self, id: QueueId) -> QueueStatus {
        let Some(queue) = self.cluster.queues().get(id) else { return QueueStatus::default() };
        QueueStatus {
            allocated: queue.allocated,
            allocated_non_preemptible: queue.allocated_non_preemptible,
            requested: queue.requested,
            fair_share: self.org.fair_share(id),
            usage: self.ledger.counts_usage().then_some(queue.usage),
        }
    }

    /// Views of nodes. Those of unchanged nodes are kept.
    fn node_views(&self, before: &View, rebuild_all: bool) -> Vec<Arc<NodeView>> {
        let view = |(at, node): (usize, &Node)| {
            let shown = before.nodes.get(at);
            let is_shown = !rebuild_all && node.is_shown(self.cluster.revision(node.id));
            match shown.filter(|_| is_shown) {
                Some(shown) => {
                    debug_assert_eq!(Some(&**shown), self.node_view(node).as_ref());
                    Some(shown.clone())
                }
                None => Some(shared(shown, self.node_view(node)?)),
            }
        };
        self.nodes.iter().enumerate().filter_map(view).collect()
    }

    fn pool_views(&self, before: &View, outbox: &Outbox) -> Vec<Arc<PoolView>> {
        let rebuild_all = outbox.touched().nodes || outbox.org_changes().all;
        let members = LazyCell::new(|| {
            let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for node in self.nodes.iter() {
                members.entry(&node.pool).or_default().push(node.spec.name.clone());
            }
            members
        });
        let view = |(at, pool): (usize, &Pool)| {
            let (shown, capacity) = (before.pools.get(at), self.cluster.capacity_of(pool.model));
            match shown.filter(|shown| !rebuild_all && shown.capacity == capacity) {
                Some(shown) => shown.clone(),
                None => {
                    let nodes = members.get(pool.id()).cloned().unwrap_or_default();
                    shared(shown, pool.view(nodes, capacity))
                }
            }
        };
        self.pools.iter().enumerate().map(view).collect()
    }

    fn node_view(&self, node: &Node) -> Option<NodeView> {
        let found = self.cluster.nodes().get(node.id)?;
        Some(NodeView {
            spec: node.spec.clone(),
            name: node.spec.name.clone(),
            gpu_type: node.spec.gpu_type.clone(),
            simulated: node.spec.simulated,
            gpu_memory_bytes: found.gpus.iter().map(|gpu| gpu.memory_bytes).collect(),
            gpu_used_millis: found.gpus.iter().map(|gpu| gpu.used_millis).collect(),
            gpu_pods: self.gpu_pods(node.id, found),
            gpu_faults: node.gpu_faults.clone(),
            capacity: found.capacity,
            used: found.used,
            pool: self.cluster.pool_name(found.pool).to_owned(),
            time_slicing: self.time_slicing_on(node.id),
            fractions: self.fractions_on(node.id),
            labels: node.labels(),
            taints: node.taints(),
            scheduling: node.scheduling(),
            created_at: node.created_at,
        })
    }

    /// The pods on each GPU of a node.
    fn gpu_pods(&self, id: NodeId, node: &model::Node) -> Vec<Vec<GpuPod>> {
        let mut pods = vec![Vec::new(); node.gpus.len()];
        // The pods of a node without GPUs are not needed here.
        for &pod in node.pods.iter().filter(|_| !node.gpus.is_empty()) {
            let place = self.cluster.pods()[pod].binding.current.as_ref();
            let Some(place) = place.filter(|place| place.node == id) else { continue };
            let Some((workload_id, number)) = self.home_of(pod) else { continue };
            let home = self.workloads.get(&workload_id);
            let Some(pod) = home.and_then(|home| home.pods.get(number)) else { continue };
            for share in &place.devices {
                if let Some(pods) = pods.get_mut(share.gpu as usize) {
                    let (pod_id, millis) = (pod.id, share.millis);
                    pods.push(GpuPod { workload_id, pod_id, millis });
                }
            }
        }
        // Sorted by ids: a restart does not know the order of placement.
        pods.iter_mut().for_each(|on| on.sort_unstable_by_key(|pod| (pod.workload_id, pod.pod_id)));
        pods
    }

    pub(crate) fn workload_view(&self, workload: &Workload) -> WorkloadView {
        let own = self.view_of_one(workload);
        let newest = workload.revisions.last();
        let revisions =
            self.workloads.revisions_of(workload).map(|revision| self.view_of_one(revision));
        let mut shown = revisions.fold(own, |mut all, one| {
            let seen = |pod: &PodView| pod.wanted || pod.node_name.is_some();
            let is_live = !matches!(one.phase, Phase::Stopped | Phase::Failed | Phase::Deleting);
            // The failure of an inference is shown with its failed pods.
            let is_shown = is_live || (all.phase == Phase::Failed && newest == Some(&one.id));
            all.pods.extend(one.pods.into_iter().filter(|pod| seen(pod) && is_shown));
            all.failure = one.failure;
            all.failure_kind = one.failure_kind;
            all.allocated += one.allocated;
            if is_live {
                all.model = one.model;
                all.requested += one.requested;
                all.pending = all.pending.iter().chain(&*one.pending).cloned().collect();
            }
            all.over_quota |= one.over_quota;
            all.pool = all.pool.or(one.pool);
            all.restarts += one.restarts;
            all.last_eviction =
                all.last_eviction.into_iter().chain(one.last_eviction).max_by_key(|e| e.at);
            all
        });
        if let Some((failed, serves)) = self.failed_update(workload) {
            shown.serves = Some(serves);
            shown.pending =
                shown.pending.iter().cloned().chain([PendingReason::Own(failed)]).collect();
        }
        shown
    }

    /// View of a workload without the fields of its revisions.
    fn view_of_one(&self, workload: &Workload) -> WorkloadView {
        let project = self.org.project(workload.project_id);
        let department_id = project.map_or(0, |project| project.department_id);
        let pods = workload.pods.iter().zip(workload.turns());
        let pods: Vec<_> = pods.map(|(pod, turn)| self.pod_view(workload, pod, turn)).collect();
        let mut reasons = workload.pending.clone();
        // The first of many pods with the same fault is shown.
        for condition in pods.iter().filter_map(|pod| pod.condition.as_ref()) {
            // The reason of an equivalence class is no condition of a pod.
            if reasons.iter().filter_map(PendingReason::own).all(|why| why.code != condition.code) {
                let condition = PendingReason::Own(condition.clone());
                reasons = reasons.iter().cloned().chain([condition]).collect();
            }
        }
        if let Some(kept) = self.keeps_places(workload) {
            let is_other =
                |reason: &&PendingReason| reason.own().is_none_or(|own| own.code != kept.code);
            let others: Vec<_> = reasons.iter().filter(is_other).cloned().collect();
            // For a gang in its grace this matters most.
            reasons = std::iter::once(PendingReason::Own(kept)).chain(others).collect();
        }
        let department = (department_id, self.org.department_name(department_id));
        let model = workload.model.map(|model| &self.cluster.workloads()[model]);
        WorkloadView {
            allocated: self.allocated(workload),
            pods,
            pending: reasons,
            pool: self.pool_in_use(workload),
            idle_since: self.idle_since(workload),
            checkpointed_at: model.and_then(|model| model.checkpointed_at),
            unsaved_since: model.filter(|model| model.placed > 0).and_then(|model| {
                let began = workload.pods.iter().filter_map(|pod| pod.life().started_at()).min()?;
                Some(model.checkpointed_at.map_or(began, |at| at.max(began)))
            }),
            ..without_places(workload, self.org.project_name(workload.project_id), department)
        }
    }

    /// Name of the pool of a workload's placed pods.
    fn pool_in_use(&self, workload: &Workload) -> Option<String> {
        let mut places = workload.pods.iter().filter_map(|pod| self.binding(pod).current);
        let node = self.cluster.nodes().get(places.next()?.node)?;
        Some(self.cluster.pool_name(node.pool).to_owned())
    }

    /// Time of the restart of a pod that gave up its place after a failure.
    fn backs_off_until(workload: &Workload, pod: &Pod) -> Option<Instant> {
        let mut own = workload.pending.iter().filter_map(PendingReason::own);
        let waits = own.any(|why| why.code == BACKING_OFF);
        let of_machine = pod.last_exit_kind.is_some_and(ExitKind::is_of_machine);
        let failed = pod.last_exit.is_some() && !of_machine;
        workload.not_before.filter(|_| waits && failed && workload.restarts > 0)
    }

    /// The fault of a pod in this state, or the reason why it holds its place without a process.
    fn condition(&self, workload: &Workload, pod: &Pod, state: PodState) -> Option<ReasonView> {
        let own = pod.life().fault().filter(|_| {
            // A machine that could not start it is the reason why it waits.
            state.is_starting_or_running() || !workload.pending.is_empty()
        });
        let holds = pod.life().is_assembling();
        own.map(Fault::reason).or_else(|| holds.then(|| self.keeps_places(workload)).flatten())
    }

    /// Memory of the devices of a place, in bytes.
    fn gpu_memory_bytes(&self, place: &Placement) -> u64 {
        let Some(node) = self.nodes.get(place.node) else { return 0 };
        let bytes = place.devices.iter().filter_map(|share| {
            Some(node.spec.gpus.get(share.gpu as usize)?.memory_of(share.millis))
        });
        bytes.sum()
    }

    fn pod_view(&self, workload: &Workload, pod: &Pod, turn: bool) -> PodView {
        let binding = self.binding(pod);
        let shown = pod.life().shown(binding.next.is_some());
        let shown = shown.unwrap_or_else(|| state_without_place(workload, pod, turn));
        let of_machine = pod.last_exit_kind.is_some_and(ExitKind::is_of_machine);
        let restart_at = match shown {
            PodState::Pending => Self::backs_off_until(workload, pod),
            _ => pod.life().restarts_at().filter(|_| !of_machine),
        };
        let state = match shown {
            PodState::Pending if restart_at.is_some() => PodState::BackingOff,
            // The fault of the machine is no failure of its own.
            PodState::Paused if of_machine => PodState::Starting,
            PodState::Starting
                if pod.life().is_assembling() && self.keeps_places(workload).is_some() =>
            {
                PodState::PlacesKept
            }
            other => other,
        };
        let place = binding.current.as_ref().or(binding.next.as_ref());
        let gpus = place.map(|p| p.devices.iter().map(|share| (share.gpu, share.millis)).collect());
        let held = place.filter(|_| state.holds_place());
        PodView {
            revision: workload.spec.revision.map(|_| workload.id),
            port: pod.port,
            wanted: is_wanted(workload, pod),
            node_name: place.map(|place| self.node_name(place.node)),
            gpus: gpus.unwrap_or_default(),
            gpu_memory_bytes: held.map_or(0, |place| self.gpu_memory_bytes(place)),
            restart_at,
            condition: self.condition(workload, pod, state),
            ..pod_without_place(workload, pod, state)
        }
    }
}

/// True if a pod should run.
pub(crate) fn is_wanted(workload: &Workload, pod: &Pod) -> bool {
    !pod.left && workload.desired == Desired::Run
}

/// The state of a pod without a place; `turn`: it is its turn to run.
pub(crate) fn state_without_place(workload: &Workload, pod: &Pod, turn: bool) -> PodState {
    // A replica that should not run has no turn either; `wanted` shows that.
    pod.life().shown_without_place(!turn && !pod.left, workload.phase)
}

/// View of a workload from its record, without places.
pub(crate) fn without_places(
    workload: &Workload,
    project_name: String,
    (department_id, department_name): (u64, String),
) -> WorkloadView {
    WorkloadView {
        id: workload.id,
        seq: workload.seq,
        model: workload.model,
        project_id: workload.project_id,
        project_name,
        department_id,
        department_name,
        spec: workload.spec.clone(),
        created_at: workload.created_at,
        phase: workload.phase,
        phase_since: workload.phase_since,
        completed_at: workload.completed_at,
        deleted_at: None,
        allocated: Resources::ZERO,
        requested: workload.requested,
        over_quota: workload.over_quota,
        pods: Vec::new(),
        revisions: workload.revisions.clone(),
        pending: workload.pending.clone(),
        last_eviction: workload.last_eviction.clone(),
        idle_since: None,
        checkpointed_at: None,
        unsaved_since: None,
        restarts: workload.restarts,
        failure: workload.failure().map(str::to_owned),
        failure_kind: workload.failed_pod().and_then(|pod| pod.last_exit_kind),
        serves: None,
        pool: None,
        waited_ms: workload.waited_ms,
        ran_ms: workload.ran_ms,
    }
}

/// View of a pod in this state from its record, without a place.
pub(crate) fn pod_without_place(workload: &Workload, pod: &Pod, state: PodState) -> PodView {
    PodView {
        id: pod.id,
        created_at: workload.pod_since(pod),
        index: pod.index,
        generation: pod.generation,
        restarts: pod.restarts(),
        name: pod_name(&workload.spec, pod),
        revision: None,
        port: None,
        wanted: false,
        state,
        node_name: None,
        gpus: Vec::new(),
        gpu_memory_bytes: 0,
        placed_at: pod.placed_at,
        held_since: pod.held_since,
        started_at: pod.life().started_at(),
        last_exit: pod.last_exit.clone(),
        failed_after_ms: pod.failed_after_ms,
        restart_at: None,
        condition: None,
    }
}

/// Updates the names by which requests find workloads.
fn call(
    by_name: &mut SharedMap<(String, String), Uuid>,
    before: Option<&WorkloadView>,
    now: Option<&WorkloadView>,
) {
    let name = |view: &WorkloadView| {
        let comes = view.spec.has_revisions() || !view.spec.urls.is_empty();
        comes.then(|| ((view.project_name.clone(), view.spec.name.clone()), view.id))
    };
    let (before, now) = (before.and_then(name), now.and_then(name));
    if before != now {
        // Another workload may have got this name meanwhile.
        if let Some((name, id)) = before
            && by_name.get(&name) == Some(&id)
        {
            by_name.remove(&name);
        }
        by_name.extend(now);
    }
}

/// The view before, if it is equal.
fn shared<T: PartialEq>(before: Option<&Arc<T>>, fresh: T) -> Arc<T> {
    match before {
        Some(before) if **before == fresh => before.clone(),
        _ => Arc::new(fresh),
    }
}
