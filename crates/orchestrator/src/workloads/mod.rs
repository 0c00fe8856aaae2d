//! The workloads that are not deleted, without archived ones. Owns: their records, which only the
//! files of this folder change, and the indexes: by name, by pod, by id in the model, and the
//! workloads of a project with holdings.

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
mod transitions;
mod update;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use std::sync::Arc;

use command::{UseTable, WorkloadUse};
use model::{PodId, WorkloadId};
use pod_life::Life;
use records::{ArchivedCount, ArchivedKey};
use spec::{LimitsKept, WorkloadSpec};
use units::Instant;
use uuid::Uuid;
use view::{PendingClasses, PendingReason};

pub use archive::leave_out_archived;
use orphans::Orphans;
use ports::Ports;
pub use ports::PortsWanted;
pub(crate) use record::{Pod, Workload, model_request, pod_from_row, pod_name, workload_from_row};
pub(crate) use storage::by_workload;
use timed_reasons::TimedReasons;

/// Workload of a pod, and its number there.
pub(crate) type Home = (Uuid, usize);

/// The workloads that are not deleted.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    all: BTreeMap<Uuid, Workload>,
    /// Ids by project id and name. Revisions have no names of their own.
    names: BTreeMap<u64, BTreeMap<String, Uuid>>,
    /// Workload and number of each pod, by pod id.
    homes: BTreeMap<Uuid, Home>,
    by_model: BTreeMap<WorkloadId, Uuid>,
    /// Use of the limits for workloads.
    used: UseTable,
    /// Workloads with holdings, by project.
    holders: BTreeMap<u64, BTreeSet<Uuid>>,
    /// Restart time of pods that wait in their place, by id.
    restarting: BTreeMap<Uuid, Instant>,
    /// Ended workloads that may leave memory, by the time of their end.
    ended: BTreeSet<(Instant, Uuid)>,
    /// Reasons of equivalence classes of waiting workloads.
    classes: PendingClasses,
    /// Reasons whose text changes as time passes.
    timed: TimedReasons,
    /// Number of archived workloads, by project, kind and phase.
    archived: Arc<BTreeMap<ArchivedKey, u64>>,
    last_seq: u64,
}

/// Reading.
impl Workloads {
    pub(crate) fn new(last_seq: u64, archived: Vec<ArchivedCount>) -> Self {
        let mut workloads = Self { last_seq, ..Self::default() };
        for ArchivedCount { key, submitted_by, count, bytes } in archived {
            let used = WorkloadUse::of_archived(count, bytes);
            workloads.add_archived(key, &submitted_by, used);
        }
        workloads
    }

    pub(crate) fn get(&self, id: &Uuid) -> Option<&Workload> {
        self.all.get(id)
    }

    /// Ids, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.all.keys().copied()
    }

    /// Number of the next workload that is not stored.
    pub(crate) const fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }

    /// Workloads, in the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Workload> {
        self.all.values()
    }

    pub(crate) fn pod(&self, id: Uuid, number: usize) -> Option<&Pod> {
        self.all.get(&id)?.pods.get(number)
    }

    /// Workload and number of the pod with this id.
    pub(crate) fn home(&self, pod: Uuid) -> Option<Home> {
        self.homes.get(&pod).copied()
    }

    /// Workload and number of all pods, in the order of their ids.
    fn homes(&self) -> Vec<Home> {
        self.homes.values().copied().collect()
    }

    /// The workload with this id in the model.
    pub(crate) fn of_model(&self, model: WorkloadId) -> Option<Uuid> {
        self.by_model.get(&model).copied()
    }

    /// Workloads that are in the model, in the order of their ids there.
    pub(crate) fn in_model(&self) -> impl Iterator<Item = Uuid> {
        self.by_model.values().copied()
    }

    /// Reasons of equivalence classes of waiting workloads.
    pub(crate) const fn classes(&self) -> &PendingClasses {
        &self.classes
    }

    /// Workloads of a project by name; `None` if it has none.
    pub(crate) fn names_in(&self, project: u64) -> Option<&BTreeMap<String, Uuid>> {
        self.names.get(&project)
    }

    /// Workloads of a project, without revisions of inferences.
    pub(crate) fn ids_in(&self, project: u64) -> impl Iterator<Item = Uuid> {
        self.names.get(&project).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Use of the limits for workloads.
    pub(crate) const fn used(&self) -> &UseTable {
        &self.used
    }

    /// Time at which the text of a pending reason changes, if only time passes.
    pub(crate) const fn timed_due(&self) -> Option<Instant> {
        self.timed.due()
    }

    /// Earliest restart of a pod that waits in its place.
    pub(crate) fn first_restart(&self) -> Option<Instant> {
        self.restarting.values().copied().min()
    }

    /// True if all indexes agree with the records, for tests.
    pub(crate) fn is_in_step(&self) -> bool {
        let mut fresh = Self { used: self.used.of_archived(), ..Self::default() };
        self.all.values().for_each(|workload| fresh.insert(workload.clone()));
        (&fresh.names, &fresh.homes, &fresh.by_model) == (&self.names, &self.homes, &self.by_model)
            && fresh.used == self.used
            && fresh.restarting == self.restarting
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

    /// Adds a workload as it is, with its ids in the model.
    fn insert(&mut self, workload: Workload) {
        let id = workload.id;
        let pods = workload.pods.iter().count() as u64;
        let spec = &workload.spec;
        self.used.add(workload.project_id, &spec.submitted_by, WorkloadUse::of(spec, pods));
        if workload.spec.revision.is_none() {
            let names = self.names.entry(workload.project_id).or_default();
            names.insert(workload.spec.name.clone(), id);
        }
        self.by_model.extend(workload.model.map(|model| (model, id)));
        self.homes.extend(workload.pods.iter().map(|pod| (pod.id, (id, pod.number()))));
        let paused = workload.pods.iter();
        let paused = paused.filter_map(|pod| Some((pod.id, pod.life().restarts_at()?)));
        self.restarting.extend(paused);
        if let Some(class) = workload.pending_class() {
            self.classes.join(class, id);
        }
        self.all.insert(id, workload);
    }

    /// Adds a pod with a number that the workload has not had yet.
    fn insert_pod(&mut self, id: Uuid, pod: Pod) {
        let Some(workload) = self.all.get_mut(&id) else { return };
        self.homes.insert(pod.id, (id, pod.number()));
        workload.pods.insert(pod);
        let more = WorkloadUse { pods: 1, ..WorkloadUse::default() };
        self.used.add(workload.project_id, &workload.spec.submitted_by, more);
    }

    /// Puts a pod in the place of the one with its number; returns the id of that.
    fn replace_pod(&mut self, id: Uuid, pod: Pod) -> Option<Uuid> {
        let before = self.all.get_mut(&id)?.pods.get_mut(pod.number())?;
        self.homes.remove(&before.id);
        self.restarting.remove(&before.id);
        self.homes.insert(pod.id, (id, pod.number()));
        Some(std::mem::replace(before, pod).id)
    }

    /// Replaces the specification of a workload.
    fn set_spec(&mut self, id: Uuid, spec: Arc<WorkloadSpec>) {
        let Some(workload) = self.all.get_mut(&id) else { return };
        let pods = workload.pods.iter().count() as u64;
        self.used.add(workload.project_id, &spec.submitted_by, WorkloadUse::of(&spec, pods));
        let before = std::mem::replace(&mut workload.spec, spec);
        self.used.free(workload.project_id, &before.submitted_by, WorkloadUse::of(&before, pods));
    }

    /// Removes the ids in the model from a workload and its pods; returns them.
    fn leave_model(&mut self, id: Uuid) -> Option<(WorkloadId, Vec<PodId>)> {
        let workload = self.all.get_mut(&id)?;
        let pods = workload.pods.iter_mut().filter_map(|pod| pod.model.take()).collect();
        let model = workload.model.take()?;
        self.by_model.remove(&model);
        Some((model, pods))
    }

    fn remove(&mut self, id: Uuid) -> Option<Workload> {
        let workload = self.all.remove(&id)?;
        let pods = workload.pods.iter().count() as u64;
        let spec = &workload.spec;
        self.used.free(workload.project_id, &spec.submitted_by, WorkloadUse::of(spec, pods));
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

    /// Sets the reasons why a workload waits.
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

    /// Records whether a workload has holdings.
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

    /// Sets the life of a pod; returns the one before.
    fn set_life(&mut self, (id, number): Home, life: Life) -> Option<Life> {
        let pod = self.all.get_mut(&id)?.pods.get_mut(number)?;
        match life.restarts_at() {
            Some(at) => self.restarting.insert(pod.id, at),
            None => self.restarting.remove(&pod.id),
        };
        Some(pod.set_life(life))
    }

    /// The pods whose restart in their place is due.
    fn restarts_due(&self, now: Instant) -> Vec<Home> {
        let due = self.restarting.iter().filter(|(_, at)| **at <= now);
        due.filter_map(|(pod, _)| self.home(*pod)).collect()
    }
}

/// State of runs in addition to the records of their pods. Not stored: it is determined again at
/// each start.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Orphaned runs. They are being stopped, and their pods start nothing before they have ended.
    orphans: Orphans,
    /// Gangs with a pod that was placed, or whose process started, in this batch.
    assembling: BTreeSet<Uuid>,
    ports: Ports,
    /// Limits of runs that the engine enforces.
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
    /// Time of the next search for ports.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.ports.due()
    }
}
