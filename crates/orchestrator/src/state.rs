//! Everything the dispatcher knows. Owns: the records, their places in the model, and what has to be
//! written, told and done because of the present batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Cluster, NodeId, PodId, QueueId, UsageLedger, WorkloadId};
use records::Desired;
use serde::{Deserialize, Serialize};
use spec::{LimitsKept, PodSpec, RunKey, ShareChange, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::Error;
use crate::command::Subject;
use crate::effect::Outbox;
use crate::gang::PortSearch;
use crate::health::{Trouble, Troubles};
use crate::idle::IdleSince;
use crate::input::{Ids, Input};
use crate::limits::{Limit, Planned};
use crate::moment::Moment;
use crate::node::NodeSpec;
use crate::pools::Pool;
use crate::primary::Primary;
use crate::set_aside::Aside;
use crate::view::{Event, NodeTypes, Phase, ReasonView, Rules, Share};

/// What departments and projects have in common, beside their place in the model.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) created_by: String,
    pub(crate) created_at: Instant,
    pub(crate) updated_by: String,
    pub(crate) updated_at: Instant,
    /// What it was given in node pools, by their ids.
    pub(crate) shares: BTreeMap<String, ShareChange>,
    pub(crate) rules: Rules,
    pub(crate) default_pools: Vec<String>,
    pub(crate) node_types: NodeTypes,
}

/// A department.
#[derive(Debug, Clone)]
pub(crate) struct Department {
    pub(crate) unit: Unit,
    /// Its place in the model.
    pub(crate) queue: QueueId,
}

/// A project.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) unit: Unit,
    pub(crate) department_id: u64,
    /// Its place in the model.
    pub(crate) queue: QueueId,
    /// Its workloads that are not deleted, by name.
    pub(crate) names: BTreeMap<String, Uuid>,
}

/// A workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) id: Uuid,
    pub(crate) seq: u64,
    pub(crate) project_id: u64,
    pub(crate) spec: Arc<WorkloadSpec>,
    pub(crate) created_at: Instant,
    /// Its place in the model; none once it has ended.
    pub(crate) model: Option<WorkloadId>,
    pub(crate) phase: Phase,
    pub(crate) phase_since: Instant,
    pub(crate) desired: Desired,
    pub(crate) restarts: u32,
    pub(crate) not_before: Option<Instant>,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) waited_ms: u64,
    pub(crate) ran_ms: u64,
    pub(crate) pending: Vec<ReasonView>,
    pub(crate) last_eviction: Option<ReasonView>,
    pub(crate) over_quota: bool,
    /// What all its pods ask for together.
    pub(crate) requested: Resources,
    pub(crate) pods: Vec<Pod>,
    /// Its revisions, the oldest first, if it is an inference.
    pub(crate) revisions: Vec<Uuid>,
}

/// How a pod ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Succeeded,
    Failed,
}

/// A pod. Where it is, the model knows.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) id: Uuid,
    pub(crate) index: u32,
    pub(crate) generation: u32,
    /// Its place in the model; none once the workload has ended.
    pub(crate) model: Option<PodId>,
    pub(crate) placed_at: Option<Instant>,
    /// Since when its workload has held places without a break.
    pub(crate) held_since: Option<Instant>,
    pub(crate) started_at: Option<Instant>,
    pub(crate) resized_at: Option<Instant>,
    /// The run has ended and is to be started again in its place at this time. While this is
    /// set the pod holds its place without a process.
    pub(crate) restart_at: Option<Instant>,
    /// It has its place, and begins when the others of its gang have theirs. Until then it holds
    /// the place without a process, too.
    pub(crate) waits_for_others: bool,
    /// It is a replica that is not wanted.
    pub(crate) parked: bool,
    /// Its own port, where the pods of its workload work together or serve.
    pub(crate) port: Option<u16>,
    pub(crate) ended: Option<Ended>,
    pub(crate) last_exit: Option<String>,
    /// What keeps its run from starting, or from serving; not stored, because it is found again.
    pub(crate) condition: Option<ReasonView>,
    /// When its run was told to stop, by the machine's clock. Not stored: it only tells an end of its own accord from
    /// one that was asked for, and after a restart of the server the latter is assumed.
    pub(crate) released_at: Option<Instant>,
    /// Runs lost in a row, and failures in its place in a row: only delays follow from them, so
    /// they are not stored.
    pub(crate) setbacks: u32,
    pub(crate) failures: u32,
    /// As it was written last.
    pub(crate) written: Option<Box<records::PodRow>>,
}

impl Pod {
    /// A pod that has not run yet.
    pub(crate) fn new(id: Uuid, index: u32) -> Self {
        Self {
            id,
            index,
            generation: 0,
            model: None,
            placed_at: None,
            held_since: None,
            started_at: None,
            resized_at: None,
            restart_at: None,
            waits_for_others: false,
            parked: false,
            port: None,
            ended: None,
            last_exit: None,
            condition: None,
            released_at: None,
            setbacks: 0,
            failures: 0,
            written: None,
        }
    }

    /// Whether it holds its place without a process.
    pub(crate) const fn is_idle(&self) -> bool {
        self.restart_at.is_some() || self.waits_for_others
    }

    pub(crate) const fn run(&self) -> RunKey {
        RunKey { pod: self.id, generation: self.generation }
    }
}

/// A node and its place in the model.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) spec: NodeSpec,
    pub(crate) id: NodeId,
    /// Those it came with, and those it was given.
    pub(crate) labels: BTreeMap<String, String>,
    /// Id of its pool.
    pub(crate) pool: String,
    /// What is the matter with its GPUs, by their numbers: those are out of service.
    pub(crate) troubles: BTreeMap<u32, Trouble>,
    /// The revision of it in the model that is shown.
    pub(crate) shown: Option<u64>,
}

/// What a state that is built again takes over from the one before, because it is not stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HandedOver {
    aside: Aside,
    /// Everything is being stopped.
    halted: bool,
}

/// Everything the dispatcher knows.
#[derive(Debug)]
pub struct State {
    pub(crate) now: Instant,
    /// What the machine's clock says: what engines date their observations by. Not `now` after
    /// the clock was set back.
    pub(crate) clock: Instant,
    /// Ids for what this batch makes.
    pub(crate) ids: Ids,
    pub(crate) cluster: Primary,
    pub(crate) cluster_created_at: Instant,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// Node pools, `default` first, then in order of creation.
    pub(crate) pools: Vec<Pool>,
    pub(crate) departments: BTreeMap<u64, Department>,
    pub(crate) projects: BTreeMap<u64, Project>,
    pub(crate) workloads: BTreeMap<Uuid, Workload>,
    /// What the scheduler does not need.
    pub(crate) objects: crate::Objects,
    /// Which workload a pod belongs to, and its number there.
    pub(crate) homes: BTreeMap<Uuid, (Uuid, usize)>,
    pub(crate) by_model: BTreeMap<WorkloadId, Uuid>,
    /// Workloads that hold something, by project.
    pub(crate) holders: BTreeMap<u64, BTreeSet<Uuid>>,
    /// What each queue is entitled to.
    pub(crate) fair_shares: BTreeMap<QueueId, Resources>,
    /// A decision is under way.
    pub(crate) is_deciding: bool,
    /// Plans in a row that were dropped because something happened meanwhile.
    pub(crate) plans_dropped: u32,
    /// The next decision has to give all reasons again.
    pub(crate) retells: bool,
    /// Workloads that the next decision has to give their reasons again.
    pub(crate) unexplained: BTreeSet<WorkloadId>,
    pub(crate) aside: Aside,
    /// Gangs of which somebody got a place in this decision.
    pub(crate) assembling: BTreeSet<Uuid>,
    /// Those of them that need ports, until they have them.
    pub(crate) ports: BTreeMap<Uuid, PortSearch>,
    /// Pods that wait in their place to be started again.
    pub(crate) restarting: BTreeMap<Uuid, Instant>,
    /// Runs that exist and should not. They are being stopped, and their pods start nothing
    /// before they are gone. Found anew at each start, so they are not stored.
    pub(crate) strays: BTreeSet<RunKey>,
    /// Workloads that are shown with a reason to wait.
    pub(crate) explained: BTreeSet<Uuid>,
    /// What the projects used of late, if that matters.
    pub(crate) usage: Option<UsageLedger>,
    /// The GPUs that each pod holds, as the ledger has them.
    pub(crate) allocations: BTreeMap<Uuid, records::AllocationRow>,
    /// Workloads that were told when they will be stopped, and by which limit: since when that
    /// counts, and when they were told. Not stored: after a restart they are told again.
    pub(crate) warned: BTreeMap<(Uuid, Limit), (Instant, Instant)>,
    /// Since when workloads that may not be idle for ever have been, as far as it is measured.
    pub(crate) idle: IdleSince,
    /// What is the matter with real GPUs. Not stored: it is looked at anew at each start.
    pub(crate) gpus_seen: Troubles,
    /// When limits in time have something to do.
    pub(crate) limits: Planned,
    /// Workloads that have ended, by when they are to be deleted.
    pub(crate) expiring: BTreeSet<(Instant, Uuid)>,
    /// When the scheduler wants to look again.
    pub(crate) wake_at: Option<Instant>,
    /// Everything is being stopped; nothing is started.
    pub(crate) halted: bool,
    /// Which limits of a run the engine keeps it to.
    pub(crate) keeps: LimitsKept,
    pub(crate) last_department_id: u64,
    pub(crate) last_project_id: u64,
    pub(crate) last_workload_seq: u64,
    pub(crate) last_object_seq: u64,
    pub(crate) last_event_seq: u64,
    pub(crate) outbox: Outbox,
}

impl State {
    /// Begins a batch.
    pub fn begin(&mut self, at: Moment) {
        (self.now, self.clock, self.ids) = (at.now, at.clock, Ids::from_seed(at.seed));
    }

    /// Takes something that happened. A command has an outcome.
    pub fn apply(&mut self, input: Input) -> Option<Result<Subject, Error>> {
        match input {
            Input::Command(command, origin) => return Some(self.command(*command, &origin)),
            Input::Run(seen) => self.observe(&seen),
            Input::Volume(name, error) => self.volume_ends(&name, error),
            Input::Ports(wanted, found) => self.ports_found(&wanted, found),
            Input::Idle(idle) => self.idle = idle,
            Input::Gpus(seen) => self.see_gpus(seen),
            Input::Engine(listed, keeps) => {
                self.keeps = keeps;
                self.reconcile(&listed);
            }
            Input::Decided(decision) => self.decided(*decision),
            Input::DecisionFailed => {
                // Until it is known on what.
                self.is_deciding = true;
                self.plans_dropped = 0;
            }
            Input::Culprits(culprits) => self.set_culprits_aside(culprits),
        }
        None
    }

    /// Does what is to be done because of the time.
    pub fn elapse(&mut self) {
        self.restart_due();
        self.search_ports_due();
        self.enforce_limits();
        self.expire_due();
        self.retry_aside_due();
        if !self.halted && self.strays.is_empty() {
            self.assemble();
        }
        self.observe_usage();
        self.explain_undecided();
    }

    /// Since when workloads have been idle, as it was told last.
    #[must_use]
    pub const fn idle(&self) -> &IdleSince {
        &self.idle
    }

    /// What is the matter with real GPUs, as it was told last.
    #[must_use]
    pub const fn gpus_seen(&self) -> &Troubles {
        &self.gpus_seen
    }

    /// Whether everything is being stopped.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// What the state that replaces this one has to know beside what is stored.
    pub fn hand_over(&self, halted: bool) -> HandedOver {
        HandedOver { aside: self.aside.clone(), halted }
    }

    /// Goes on in place of another state of the same server.
    pub fn take_over(&mut self, HandedOver { aside, halted }: HandedOver) {
        self.keep_aside(aside);
        self.halted = halted;
    }

    /// What the scheduler's replica begins with.
    pub fn replica(&mut self) -> Cluster {
        self.cluster.replica()
    }

    /// Whether the next decision has to give all reasons again.
    pub fn take_retells(&mut self) -> bool {
        std::mem::take(&mut self.retells)
    }

    /// The workloads that the next decision has to give their reasons again.
    pub fn take_unexplained(&mut self) -> BTreeSet<WorkloadId> {
        std::mem::take(&mut self.unexplained)
    }

    /// Decisions depend on something else that is different now.
    pub const fn decide_again(&mut self) {
        self.cluster.renew();
    }

    /// The next time anything is to be done without being asked.
    pub fn due(&self) -> Option<Instant> {
        let timers = self.wake_at.into_iter().chain(self.limits.first()).chain(self.aside.again_at);
        let timers = timers.chain(self.expiring.first().map(|(at, _)| *at));
        let ports = self.ports.values().filter_map(|search| search.again_at);
        timers.chain(self.restarting.values().copied()).chain(ports).min()
    }

    /// Marks a workload as changed.
    pub(crate) fn touch(&mut self, id: Uuid) {
        if let Some(workload) = self.workloads.get(&id) {
            self.outbox.workloads.insert(id);
            self.outbox.projects.insert(workload.project_id);
            if let Some(revision) = workload.spec.revision {
                self.outbox.workloads.insert(revision.of);
            }
        }
    }

    /// The place of a pod in the model.
    pub(crate) fn occupancy(&self, pod: &Pod) -> model::Occupancy {
        let found = pod.model.and_then(|id| self.cluster.pods().get(id));
        found.map(|pod| pod.occupancy.clone()).unwrap_or_default()
    }

    /// The workload and number of the pod that the model knows by this id.
    pub(crate) fn home_of(&self, pod: PodId) -> Option<(Uuid, usize)> {
        let pod = self.cluster.pods().get(pod)?;
        let id = *self.by_model.get(&pod.workload)?;
        Some((id, pod.index as usize))
    }

    /// Name of a node.
    pub(crate) fn node_name(&self, id: NodeId) -> String {
        self.nodes.get(&id).map(|node| node.spec.name.clone()).unwrap_or_default()
    }

    /// A placement in words: `node-1, GPUs 0 and 1` or `node-1, 0.5 of GPU 0`.
    pub(crate) fn place_in_words(&self, place: &model::Placement) -> String {
        let node = self.node_name(place.node);
        let shares: Vec<_> = place
            .devices
            .iter()
            .map(|share| match share.millis {
                units::GPU_MILLIS => format!("GPU {}", share.gpu),
                millis => format!("{} of GPU {}", units::format_millis(millis), share.gpu),
            })
            .collect();
        if shares.is_empty() { node } else { format!("{node}, {}", shares.join(" and ")) }
    }

    /// Records an event about a workload.
    pub(crate) fn say(&mut self, id: Uuid, news: News) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let project_id = workload.project_id;
        let pod_name = news
            .pod
            .and_then(|index| workload.pods.get(index))
            .map(|pod| pod_name(&workload.spec, pod));
        let event = Event {
            seq: self.last_event_seq + 1,
            at: self.now,
            kind: news.kind.to_owned(),
            warning: news.warning,
            workload_id: Some(self.head_of(id)),
            workload_name: workload.spec.name.clone(),
            pod_name,
            project_id: Some(project_id),
            project_name: self
                .projects
                .get(&project_id)
                .map(|p| p.unit.name.clone())
                .unwrap_or_default(),
            code: news.code.map(ToOwned::to_owned),
            message: news.message,
        };
        self.last_event_seq += 1;
        self.outbox.events.push((Arc::new(event), Some(project_id)));
    }

    /// Records an event about a project.
    pub(crate) fn say_of_project(&mut self, id: u64, news: News) {
        self.say_apart(Some(id), news);
    }

    /// Records an event about the machines.
    pub(crate) fn say_of_cluster(&mut self, news: News) {
        self.say_apart(None, news);
    }

    fn say_apart(&mut self, project_id: Option<u64>, news: News) {
        let project = project_id.and_then(|id| self.projects.get(&id));
        let event = Event {
            seq: self.last_event_seq + 1,
            at: self.now,
            kind: news.kind.to_owned(),
            warning: news.warning,
            workload_id: None,
            workload_name: String::new(),
            pod_name: None,
            project_id,
            project_name: project.map(|project| project.unit.name.clone()).unwrap_or_default(),
            code: news.code.map(ToOwned::to_owned),
            message: news.message,
        };
        self.last_event_seq += 1;
        self.outbox.events.push((Arc::new(event), project_id));
    }
}

/// An event about a workload in the making.
#[derive(Debug, Clone)]
pub(crate) struct News {
    kind: &'static str,
    warning: bool,
    pod: Option<usize>,
    code: Option<&'static str>,
    message: String,
}

impl News {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, warning: false, pod: None, code: None, message: message.into() }
    }

    pub(crate) fn warning(self) -> Self {
        Self { warning: true, ..self }
    }

    pub(crate) fn pod(self, index: usize) -> Self {
        Self { pod: Some(index), ..self }
    }

    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }
}

/// Name of a pod: of its run, or of the one that begins as soon as the pod need not wait in its
/// place. One with a role has the same name in all its runs, as published.
pub(crate) fn pod_name(spec: &WorkloadSpec, pod: &Pod) -> String {
    let (workload, (set, number)) = (&spec.name, spec.set_of(pod.index as usize));
    let generation = pod.generation + u32::from(pod.waits_for_others);
    match set.role.as_str() {
        "" => format!("{workload}-{}-{generation}", pod.index),
        role => format!("{workload}-{role}-{number}"),
    }
}

/// A share in the scheduler's terms.
pub(crate) fn model_share(share: &Share) -> model::Share {
    let or_max = |value: Option<u64>| value.unwrap_or(u64::MAX);
    let quota = Resources {
        gpu_millis: share.gpu_quota_millis,
        cpu_millis: or_max(share.cpu_quota_millis),
        memory_bytes: or_max(share.memory_quota_bytes),
    };
    let limit = Resources {
        gpu_millis: or_max(share.gpu_limit_millis),
        cpu_millis: or_max(share.cpu_limit_millis),
        memory_bytes: or_max(share.memory_limit_bytes),
    };
    let gpu = share.over_quota_weight;
    model::Share {
        over_quota_weight: model::Weights {
            gpu,
            cpu: share.cpu_weight.unwrap_or(gpu),
            memory: share.memory_weight.unwrap_or(gpu),
        },
        priority: share.rank.value(),
        ..model::Share::new(quota, limit)
    }
}

/// A pod's request in the scheduler's terms.
pub(crate) const fn model_request(spec: &PodSpec) -> model::PodRequest {
    model::PodRequest {
        gpu: spec.gpu,
        cpu_millis: spec.cpu_millis,
        memory_bytes: spec.memory_bytes,
    }
}
