//! The rows of a database, in memory. Owns: the effect of changes, and the refusal of changes that
//! a database would refuse. Does not keep rows that only users read: events, audit rows, samples.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    AllocationRow, Archived, ArchivedCount, ArchivedKey, ArchivedLookup, Change, ClockRow,
    ClusterRow, DepartmentRow, LagRow, LagUnit, ObjectRow, PodRow, ProjectRow, Snapshot, UsageRow,
    WorkloadRow, WorkloadState,
};
use spec::WorkloadPast;
use units::Instant;
use uuid::Uuid;

/// Stored rows.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    cluster: ClusterRow,
    clock: Option<ClockRow>,
    departments: BTreeMap<u64, DepartmentRow>,
    projects: BTreeMap<u64, ProjectRow>,
    workloads: BTreeMap<Uuid, WorkloadRow>,
    /// Ended workloads that are no longer in memory.
    archived: BTreeSet<Uuid>,
    /// Deleted workloads.
    deleted: BTreeSet<Uuid>,
    /// Pods of deleted workloads.
    deleted_pods: BTreeSet<Uuid>,
    pods: BTreeMap<(Uuid, u32), PodRow>,
    objects: BTreeMap<u64, ObjectRow>,
    usage: BTreeMap<(Instant, Option<u64>, String), UsageRow>,
    lags: BTreeMap<(LagUnit, String), LagRow>,
    allocations: BTreeMap<(Uuid, Instant), AllocationRow>,
    pasts: BTreeMap<Uuid, WorkloadPast>,
    /// Id of the owner of each name, by scope and name.
    names: BTreeMap<(String, String), String>,
    /// Name of each object, by scope and id.
    named: BTreeMap<(String, String), String>,
    last_department_id: u64,
    last_project_id: u64,
    last_workload_seq: u64,
    last_object_seq: u64,
    last_event_seq: u64,
}

impl Rows {
    /// The rows of a new database.
    #[must_use]
    pub fn new(uuid: Uuid, created_at: Instant) -> Self {
        Self { cluster: ClusterRow { uuid, created_at }, ..Self::default() }
    }

    /// Rows read from a database; archived workloads are not among them.
    ///
    /// # Errors
    /// No database can have such rows.
    pub fn of(stored: Snapshot) -> Result<Self, String> {
        let Snapshot { cluster, clock, departments, projects, workloads, pods, objects, .. } =
            stored;
        let Snapshot { usage, lags, allocations, .. } = stored;
        let changes: Vec<_> = (departments.into_iter().map(Change::Department))
            .chain(projects.into_iter().map(Change::Project))
            .chain(workloads.into_iter().map(|row| Change::Workload(Box::new(row))))
            .chain(pods.into_iter().map(Change::Pod))
            .chain(objects.into_iter().map(|row| Change::Object(Box::new(row))))
            .chain(usage.into_iter().map(Change::Usage))
            .chain(lags.into_iter().map(Change::Lag))
            .chain(allocations.into_iter().map(Change::Allocation))
            .collect();
        let mut rows = Self { clock, ..Self::new(cluster.uuid, cluster.created_at) };
        rows.apply(&changes)?;
        Ok(Self {
            last_department_id: stored.last_department_id,
            last_project_id: stored.last_project_id,
            last_workload_seq: stored.last_workload_seq,
            last_object_seq: stored.last_object_seq,
            last_event_seq: stored.last_event_seq,
            pasts: stored.pasts,
            ..rows
        })
    }

    /// Writes changes as one transaction would.
    ///
    /// # Errors
    /// A database would refuse a change. The changes before it are written: the rows must not be
    /// used any more.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), String> {
        let (pods, others): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| matches!(change, Change::Pod(_)));
        others.into_iter().chain(pods).try_for_each(|change| self.write(change))
    }

    fn write(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Clock(row) => self.clock = Some(*row),
            Change::Department(row) => {
                self.last_department_id = self.last_department_id.max(row.id);
                let lives = row.deleted_at.is_none();
                self.name("departments", &row.id.to_string(), &row.name, lives)?;
                keep(&mut self.departments, row.id, row, lives);
            }
            Change::Project(row) => {
                self.last_project_id = self.last_project_id.max(row.id);
                let lives = row.deleted_at.is_none();
                self.name("projects", &row.id.to_string(), &row.name, lives)?;
                keep(&mut self.projects, row.id, row, lives);
            }
            Change::Workload(row) => self.insert(row)?,
            Change::WorkloadSpec(id, spec) => {
                self.workload(*id, "WorkloadSpec")?.spec = spec.clone();
            }
            Change::WorkloadState(id, state) => self.state(*id, state)?,
            Change::WorkloadPast(id, past) => {
                self.workload(*id, "WorkloadPast")?;
                self.pasts.insert(*id, *past);
            }
            Change::WorkloadArchived(id, ..) => self.archive(*id, true)?,
            Change::WorkloadRestored(id) => self.archive(*id, false)?,
            Change::Pod(row) => self.pod(row)?,
            Change::Event(row) if row.seq <= self.last_event_seq => {
                return Err(format!("event {} was written already", row.seq));
            }
            Change::Event(row) => self.last_event_seq = row.seq,
            Change::Object(row) => self.object(row)?,
            Change::Usage(row) => {
                let key = (row.step_start, row.project_id, row.pool.clone());
                self.usage.insert(key, row.clone());
            }
            Change::UsageGone(before) => self.usage.retain(|(start, ..), _| start >= before),
            Change::Lag(row) => {
                self.lags.insert((row.unit, row.pool.clone()), row.clone());
            }
            Change::Allocation(row) => {
                keep(
                    &mut self.allocations,
                    (row.pod_id, row.started_at),
                    row,
                    row.ended_at.is_none(),
                );
            }
            Change::WorkloadSeqGiven
            | Change::PodsGone(_)
            | Change::WorkloadGone(_)
            | Change::Audit(_)
            | Change::LogKeptFrom(..)
            | Change::LogGroupKeptFrom(..)
            | Change::LogGroupGone(..)
            | Change::LogGone(_)
            | Change::Credential(_)
            | Change::CredentialGone(_)
            | Change::Sample(_)
            | Change::SamplesGone { .. }
            | Change::AllocationsGone(_)
            | Change::GpuUse(_)
            | Change::GpuUseGone(_) => {}
        }
        Ok(())
    }

    fn pod(&mut self, row: &PodRow) -> Result<(), String> {
        let id = row.workload_id;
        match self.workloads.contains_key(&id) {
            true => drop(self.pods.insert((id, row.index), row.clone())),
            false if self.deleted.contains(&id) => drop(self.deleted_pods.insert(row.id)),
            false => return Err(format!("a pod of workload {id}, which is not there")),
        }
        Ok(())
    }

    fn insert(&mut self, row: &WorkloadRow) -> Result<(), String> {
        let is_known = self.workloads.contains_key(&row.id) || self.deleted.contains(&row.id);
        if is_known || row.seq <= self.last_workload_seq {
            return Err(format!("workload {} (number {}) was there before", row.id, row.seq));
        }
        self.last_workload_seq = row.seq;
        self.name(&of_project(row.project_id), &row.id.to_string(), &row.spec.name, true)?;
        self.workloads.insert(row.id, row.clone());
        Ok(())
    }

    fn state(&mut self, id: Uuid, state: &WorkloadState) -> Result<(), String> {
        let row = self.workload(id, "WorkloadState")?;
        row.state = state.clone();
        if state.deleted_at.is_some() {
            let (room, name) = (of_project(row.project_id), row.spec.name.clone());
            self.name(&room, &id.to_string(), &name, false)?;
            self.workloads.remove(&id);
            self.deleted.insert(id);
            self.pasts.remove(&id);
            let pods = self.pods.extract_if((id, 0)..=(id, u32::MAX), |_, _| true);
            self.deleted_pods.extend(pods.map(|(_, row)| row.id));
        }
        Ok(())
    }

    /// Records that a workload was archived, or restored.
    fn archive(&mut self, id: Uuid, leaves: bool) -> Result<(), String> {
        self.workload(id, if leaves { "WorkloadArchived" } else { "WorkloadRestored" })?;
        match if leaves { self.archived.insert(id) } else { self.archived.remove(&id) } {
            true => Ok(()),
            false if leaves => Err(format!("workload {id} is archived already")),
            false => Err(format!("workload {id} is not archived")),
        }
    }

    fn workload(&mut self, id: Uuid, what: &str) -> Result<&mut WorkloadRow, String> {
        self.workloads.get_mut(&id).ok_or_else(|| format!("{what} of {id}, which is not there"))
    }

    fn object(&mut self, row: &ObjectRow) -> Result<(), String> {
        self.last_object_seq = self.last_object_seq.max(row.seq);
        let room = format!("{} of {} and {}", row.kind, row.scope, row.owner);
        let lives = row.deleted_at.is_none();
        self.name(&room, &row.id, &row.name, lives)?;
        keep(&mut self.objects, row.seq, row, lives);
        Ok(())
    }

    /// Records that `id` takes a name, or gives it up.
    fn name(&mut self, room: &str, id: &str, name: &str, lives: bool) -> Result<(), String> {
        let of = |what: &str| (room.to_owned(), what.to_owned());
        if let Some(before) = self.named.remove(&of(id)) {
            self.names.remove(&of(&before));
        }
        if !lives {
            return Ok(());
        }
        self.named.insert(of(id), name.to_owned());
        match self.names.insert(of(name), id.to_owned()) {
            Some(other) => Err(format!("`{name}` is twice among {room}: {other} and {id}")),
            None => Ok(()),
        }
    }

    /// The archived workloads that match the lookups.
    #[must_use]
    pub fn archived(&self, lookups: &[ArchivedLookup]) -> Archived {
        let has_pod = |id: Uuid, pod: Uuid| {
            self.pods.range((id, 0)..=(id, u32::MAX)).any(|(_, row)| row.id == pod)
        };
        let is_meant = |row: &&WorkloadRow| {
            lookups.iter().any(|lookup| match lookup {
                ArchivedLookup::Id(id) => row.id == *id,
                ArchivedLookup::Name(project, name) => {
                    row.project_id == *project && row.spec.name == *name
                }
                ArchivedLookup::Pod(pod) => has_pod(row.id, *pod),
            })
        };
        let rows = self.archived.iter().filter_map(|id| self.workloads.get(id));
        let mut workloads: Vec<_> = rows.filter(is_meant).cloned().collect();
        workloads.sort_by_key(|row| row.seq);
        let pods =
            workloads.iter().flat_map(|row| self.pods.range((row.id, 0)..=(row.id, u32::MAX)));
        let pods = pods.map(|(_, row)| row.clone()).collect();
        Archived { workloads, pods }
    }

    /// The pods of deleted workloads.
    #[must_use]
    pub const fn deleted_pods(&self) -> &BTreeSet<Uuid> {
        &self.deleted_pods
    }

    /// The pods of archived workloads.
    #[must_use]
    pub fn archived_pods(&self) -> BTreeSet<Uuid> {
        let pods = self.pods.iter().filter(|((workload, _), _)| self.archived.contains(workload));
        pods.map(|(_, row)| row.id).collect()
    }

    /// The archived workloads.
    #[must_use]
    pub const fn archived_ids(&self) -> &BTreeSet<Uuid> {
        &self.archived
    }

    /// Number of archived workloads, by project, kind, phase and submitter.
    fn archived_counts(&self) -> Vec<ArchivedCount> {
        let count = |id| {
            let row = self.workloads.get(id)?;
            let failed = row.state.phase == "failed";
            let key = ArchivedKey { project_id: row.project_id, kind: row.spec.kind, failed };
            let (submitted_by, bytes) = (row.spec.submitted_by.clone(), row.spec.json_bytes());
            Some(ArchivedCount { key, submitted_by, count: 1, bytes })
        };
        self.archived.iter().filter_map(count).collect()
    }

    /// All rows needed to continue after a restart.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let in_memory = |id: &Uuid| !self.archived.contains(id);
        let workloads = self.workloads.values().filter(|row| in_memory(&row.id));
        let mut workloads: Vec<_> = workloads.cloned().collect();
        workloads.sort_by_key(|row| row.seq);
        let pods = self.pods.values().filter(|row| in_memory(&row.workload_id));
        Snapshot {
            cluster: self.cluster.clone(),
            clock: self.clock,
            departments: self.departments.values().cloned().collect(),
            projects: self.projects.values().cloned().collect(),
            workloads,
            pods: pods.cloned().collect(),
            archived: self.archived_counts(),
            objects: self.objects.values().cloned().collect(),
            usage: self.usage.values().cloned().collect(),
            lags: self.lags.values().cloned().collect(),
            allocations: self.allocations.values().cloned().collect(),
            last_department_id: self.last_department_id,
            last_project_id: self.last_project_id,
            last_workload_seq: self.last_workload_seq,
            last_object_seq: self.last_object_seq,
            last_event_seq: self.last_event_seq,
            pasts: self.pasts.clone(),
        }
    }
}

fn of_project(id: u64) -> String {
    format!("workloads of project {id}")
}

fn keep<K: Ord, R: Clone>(rows: &mut BTreeMap<K, R>, key: K, row: &R, lives: bool) {
    match lives {
        true => drop(rows.insert(key, row.clone())),
        false => drop(rows.remove(&key)),
    }
}
