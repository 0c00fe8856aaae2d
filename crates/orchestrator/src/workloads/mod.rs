//! The workloads that are not deleted, without archived ones. Owns: their records, which only the
//! files of this folder change, and everything by which one is found: by its name, by its pods, by
//! its place in the model, and those of a project that hold something.

mod archive;
mod binding;
mod checkpoints;
mod commands;
mod gang;
mod kept;
mod lifecycle;
mod lost;
mod members;
mod orphans;
mod phases;
mod ports;
mod quota;
mod reasons;
mod reconcile;
mod record;
mod relaunch;
mod restart_policy;
mod revisions;
mod storage;
mod succession;
mod timed_reasons;
mod update;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use std::sync::Arc;

use model::{PodId, WorkloadId};
use records::ArchivedKey;
use spec::{LimitsKept, WorkloadSpec};
use units::Instant;
use uuid::Uuid;
use view::{PendingClasses, PendingReason};

pub use archive::{ENDED_KEPT, leave_out_archived};
use orphans::Orphans;
use ports::Ports;
pub use ports::PortsWanted;
#[cfg(test)]
pub(crate) use reconcile::in_words;
pub(crate) use record::{
    Ended, Pod, Workload, model_request, pod_from_row, pod_name, workload_from_row,
};
pub(crate) use storage::by_workload;
use timed_reasons::TimedReasons;

/// A pod: its workload, and its number there.
pub(crate) type Home = (Uuid, usize);

/// The workloads that are not deleted.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    all: BTreeMap<Uuid, Workload>,
    /// By the id of the project, and by name. Revisions have no names of their own.
    names: BTreeMap<u64, BTreeMap<String, Uuid>>,
    /// By the ids of pods.
    homes: BTreeMap<Uuid, Home>,
    by_model: BTreeMap<WorkloadId, Uuid>,
    /// Bytes of the specifications of those of a project, as JSON.
    bytes: BTreeMap<u64, u64>,
    /// Those that hold something, by project.
    holders: BTreeMap<u64, BTreeSet<Uuid>>,
    /// Pods that wait in their place to be started again, by id.
    restarting: BTreeMap<Uuid, Instant>,
    /// Those that ended and may leave memory, by when they ended.
    ended: BTreeSet<(Instant, Uuid)>,
    /// How many of them stay.
    ended_kept: usize,
    /// What classes of them wait for.
    classes: PendingClasses,
    /// Reasons of which the text changes by itself.
    timed: TimedReasons,
    /// How many left, by project, kind and phase.
    archived: Arc<BTreeMap<ArchivedKey, u64>>,
    last_seq: u64,
}

/// What there is.
impl Workloads {
    pub(crate) fn new(last_seq: u64, archived: Vec<(ArchivedKey, u64)>) -> Self {
        let archived = Arc::new(archived.into_iter().collect());
        Self { last_seq, archived, ended_kept: archive::ENDED_KEPT, ..Self::default() }
    }

    pub(crate) fn get(&self, id: &Uuid) -> Option<&Workload> {
        self.all.get(id)
    }

    /// In their order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.all.keys().copied()
    }

    /// In the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Workload> {
        self.all.values()
    }

    pub(crate) fn pod(&self, id: Uuid, number: usize) -> Option<&Pod> {
        self.all.get(&id)?.pods.get(number)
    }

    /// Where the pod with this id is.
    pub(crate) fn home(&self, pod: Uuid) -> Option<Home> {
        self.homes.get(&pod).copied()
    }

    /// All pods, in the order of their ids.
    fn homes(&self) -> Vec<Home> {
        self.homes.values().copied().collect()
    }

    /// The workload at this place in the model.
    pub(crate) fn of_model(&self, model: WorkloadId) -> Option<Uuid> {
        self.by_model.get(&model).copied()
    }

    /// Those that have a place in the model, in the order of these.
    pub(crate) fn in_model(&self) -> impl Iterator<Item = Uuid> {
        self.by_model.values().copied()
    }

    /// What classes of them wait for.
    pub(crate) const fn classes(&self) -> &PendingClasses {
        &self.classes
    }

    /// Those of a project by name, if it has any.
    pub(crate) fn names_in(&self, project: u64) -> Option<&BTreeMap<String, Uuid>> {
        self.names.get(&project)
    }

    /// Those of a project; the revisions of its inferences are left out.
    pub(crate) fn ids_in(&self, project: u64) -> impl Iterator<Item = Uuid> {
        self.names.get(&project).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Number of those of a project; revisions of inferences are left out.
    pub(crate) fn count_in(&self, project: u64) -> u64 {
        self.names.get(&project).map_or(0, |names| names.len() as u64)
    }

    /// Bytes of the specifications of those of a project, as JSON.
    pub(crate) fn bytes_in(&self, project: u64) -> u64 {
        self.bytes.get(&project).copied().unwrap_or_default()
    }

    /// When a reason to wait has another text, if nothing but time passes.
    pub(crate) const fn timed_due(&self) -> Option<Instant> {
        self.timed.due()
    }

    /// When the first of the pods is started again that wait in their places.
    pub(crate) fn first_restart(&self) -> Option<Instant> {
        self.restarting.values().copied().min()
    }

    /// True if all by which one is found is as the records say, for tests.
    pub(crate) fn is_in_step(&self) -> bool {
        let mut fresh = Self::default();
        self.all.values().for_each(|workload| fresh.insert(workload.clone()));
        let waits = |(pod, at): (&Uuid, &Instant)| {
            let home = self.home(*pod).and_then(|(id, number)| self.pod(id, number));
            home.is_some_and(|pod| pod.restart_at == Some(*at))
        };
        (&fresh.names, &fresh.homes, &fresh.by_model) == (&self.names, &self.homes, &self.by_model)
            && fresh.bytes == self.bytes
            && self.restarting.iter().all(waits)
            && self.classes.all_members().eq(fresh.classes.all_members())
            && self.holders.values().flatten().all(|id| self.all.contains_key(id))
    }
}

impl Index<&Uuid> for Workloads {
    type Output = Workload;

    fn index(&self, id: &Uuid) -> &Workload {
        &self.all[id]
    }
}

/// Changes.
impl Workloads {
    fn get_mut(&mut self, id: &Uuid) -> Option<&mut Workload> {
        self.all.get_mut(id)
    }

    fn pod_mut(&mut self, id: Uuid, number: usize) -> Option<&mut Pod> {
        self.all.get_mut(&id)?.pods.get_mut(number)
    }

    /// Takes one in as it is, with its places in the model.
    fn insert(&mut self, workload: Workload) {
        let id = workload.id;
        *self.bytes.entry(workload.project_id).or_default() += workload.spec.json_bytes();
        if workload.spec.revision.is_none() {
            let names = self.names.entry(workload.project_id).or_default();
            names.insert(workload.spec.name.clone(), id);
        }
        self.by_model.extend(workload.model.map(|model| (model, id)));
        self.homes.extend(workload.pods.iter().map(|pod| (pod.id, (id, pod.number()))));
        if let Some(class) = workload.pending_class() {
            self.classes.join(class, id);
        }
        self.all.insert(id, workload);
    }

    /// Takes in a pod of a number that the workload has not had yet.
    fn insert_pod(&mut self, id: Uuid, pod: Pod) {
        let Some(workload) = self.all.get_mut(&id) else { return };
        self.homes.insert(pod.id, (id, pod.number()));
        workload.pods.insert(pod);
    }

    /// Gives one another specification.
    fn set_spec(&mut self, id: Uuid, spec: Arc<WorkloadSpec>) {
        let Some(workload) = self.all.get_mut(&id) else { return };
        let (project, added) = (workload.project_id, spec.json_bytes());
        let removed = std::mem::replace(&mut workload.spec, spec).json_bytes();
        *self.bytes.entry(project).or_default() += added;
        self.free_bytes(project, removed);
    }

    /// Counts bytes of specifications of a project no more.
    fn free_bytes(&mut self, project: u64, bytes: u64) {
        if let Entry::Occupied(mut there) = self.bytes.entry(project) {
            *there.get_mut() = there.get().saturating_sub(bytes);
            if *there.get() == 0 {
                there.remove();
            }
        }
    }

    /// Takes its places in the model from one: its own, and those of its pods.
    fn leave_model(&mut self, id: Uuid) -> Option<(WorkloadId, Vec<PodId>)> {
        let workload = self.all.get_mut(&id)?;
        let pods = workload.pods.iter_mut().filter_map(|pod| pod.model.take()).collect();
        let model = workload.model.take()?;
        self.by_model.remove(&model);
        Some((model, pods))
    }

    fn remove(&mut self, id: Uuid) -> Option<Workload> {
        let workload = self.all.remove(&id)?;
        self.free_bytes(workload.project_id, workload.spec.json_bytes());
        self.note_holding(workload.project_id, id, false);
        if let Some(class) = workload.pending_class() {
            self.classes.leave(class, id);
        }
        if let Some(at) = workload.completed_at {
            self.ended.remove(&(at, id));
        }
        if let Some(names) = self.names.get_mut(&workload.project_id)
            && workload.spec.revision.is_none()
        {
            names.remove(&workload.spec.name);
            if names.is_empty() {
                self.names.remove(&workload.project_id);
            }
        }
        for pod in workload.pods.iter() {
            self.homes.remove(&pod.id);
            self.restarting.remove(&pod.id);
        }
        Some(workload)
    }

    /// Says why one waits.
    fn set_pending(&mut self, id: Uuid, pending: Arc<[PendingReason]>) {
        let Some(workload) = self.all.get_mut(&id) else { return };
        let before = workload.pending_class();
        workload.pending = pending;
        let now = workload.pending_class();
        if before != now {
            before.into_iter().for_each(|class| self.classes.leave(class, id));
            now.into_iter().for_each(|class| self.classes.join(class, id));
        }
    }

    /// Notes whether one holds anything.
    fn note_holding(&mut self, project: u64, id: Uuid, holds: bool) {
        let holders = self.holders.entry(project).or_default();
        if holds {
            holders.insert(id);
        } else {
            holders.remove(&id);
        }
        if holders.is_empty() {
            self.holders.remove(&project);
        }
    }

    fn holders_in(&self, project: u64) -> impl Iterator<Item = Uuid> {
        self.holders.get(&project).into_iter().flatten().copied()
    }

    /// Says when a pod is started again in its place, if it waits for that.
    fn set_restart(&mut self, (id, number): Home, at: Option<Instant>) {
        let Some(pod) = self.all.get_mut(&id).and_then(|workload| workload.pods.get_mut(number))
        else {
            return;
        };
        pod.restart_at = at;
        match at {
            Some(at) => self.restarting.insert(pod.id, at),
            None => self.restarting.remove(&pod.id),
        };
    }

    /// The pods that have waited long enough in their places; they are not listed again.
    fn take_restarts_due(&mut self, now: Instant) -> Vec<Home> {
        let due: Vec<Uuid> =
            self.restarting.extract_if(.., |_, at| *at <= now).map(|(pod, _)| pod).collect();
        due.into_iter().filter_map(|pod| self.home(pod)).collect()
    }
}

/// What is known of runs beside the records of their pods. Not stored: it is found again at each
/// start.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Runs that exist and should not. They are being stopped, and their pods start nothing
    /// before they are gone.
    orphans: Orphans,
    /// Gangs of which a pod got its place, or its process, in this batch.
    assembling: BTreeSet<Uuid>,
    ports: Ports,
    /// Which limits of a run the engine keeps it to.
    limits_kept: LimitsKept,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            orphans: Orphans::new(),
            assembling: BTreeSet::new(),
            ports: Ports::default(),
            limits_kept: LimitsKept::ALL,
        }
    }
}

impl Runs {
    /// When ports are to be searched for again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.ports.due()
    }
}
