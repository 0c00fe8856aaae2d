//! Archiving of ended workloads: the newest stay in memory, the others are archived, and only the
//! database has them. Owns: the choice and the time, the archived workloads that an input needs
//! before it is applied, and that these are restored completely.
//!
//! A workload with a pending task stays: one that is deleted some time after its end, and one that
//! keeps volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use command::{Command, WorkloadUse};
use records::clock_shift::not_after;
use records::{Archived, ArchivedKey, ArchivedLookup, Change, Desired, WorkloadRow};
use spec::{ListedRun, RunKey, RunState, WorkloadSpec};
use units::Instant;
use uuid::Uuid;

use crate::effect::Note;
use crate::input::Input;
use crate::state::State;
use crate::workloads::{Workload, Workloads};
use view::Phase;

impl Workload {
    /// Time of its end, if it may leave memory.
    fn leaves_since(&self) -> Option<Instant> {
        let has_ended = matches!(self.phase, Phase::Completed | Phase::Failed);
        let is_single = self.spec.revision.is_none() && !self.spec.has_revisions();
        let does_nothing = self.model.is_none()
            && !self.is_adopted
            && self.desired != Desired::Delete
            && self.spec.delete_after_ms.is_none()
            && self.spec.volumes().next().is_none();
        self.completed_at.filter(|_| has_ended && is_single && does_nothing)
    }

    fn archived_key(&self) -> ArchivedKey {
        let failed = self.phase == Phase::Failed;
        ArchivedKey { project_id: self.project_id, kind: self.spec.kind, failed }
    }
}

impl Workloads {
    /// Number of archived workloads.
    pub(crate) const fn archived(&self) -> &Arc<BTreeMap<ArchivedKey, u64>> {
        &self.archived
    }

    pub(super) fn add_archived(&mut self, key: ArchivedKey, user: &str, used: WorkloadUse) {
        *Arc::make_mut(&mut self.archived).entry(key).or_default() += used.archived;
        self.used.add(key.project_id, user, used);
    }

    fn remove_archived(&mut self, key: ArchivedKey, spec: &WorkloadSpec) {
        let counts = Arc::make_mut(&mut self.archived);
        match counts.get(&key).map_or(0, |count| count.saturating_sub(1)) {
            0 => counts.remove(&key),
            left => counts.insert(key, left),
        };
        let used = WorkloadUse::of_archived(1, spec.json_bytes());
        self.used.free(key.project_id, &spec.submitted_by, used);
    }

    /// Records whether an ended workload may leave memory, and its end.
    fn note_ended(&mut self, id: Uuid, leaves_since: Option<Instant>) {
        let completed_at = self.all.get(&id).and_then(|workload| workload.completed_at);
        if let Some(at) = leaves_since {
            self.ended.insert((at, id));
        } else if let Some(at) = completed_at {
            self.ended.remove(&(at, id));
        }
    }

    /// The workload that leaves memory next, if there are more than this number.
    fn leaves_next(&self, kept: usize) -> Option<Uuid> {
        let first = self.ended.first().filter(|_| self.ended.len() > kept);
        first.map(|(_, id)| *id)
    }
}

impl State {
    /// Archives the oldest ended workloads, at the end of a batch.
    pub(crate) fn archive_ended(&mut self) {
        let touched = self.outbox.touched();
        let touched: BTreeSet<Uuid> = touched.workloads.union(&touched.shown).copied().collect();
        for id in touched {
            let found = self.workloads.get(&id);
            let is_free = |workload: &&Workload| {
                !workload.pods.iter().any(|pod| self.runs.has_orphan(pod.id))
            };
            let leaves_since = found.filter(is_free).and_then(Workload::leaves_since);
            self.workloads.note_ended(id, leaves_since);
        }
        while let Some(id) = self.workloads.leaves_next(self.settings.ended_kept) {
            self.archive(id);
        }
    }

    fn archive(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        // Lists in either order use one index.
        debug_assert_eq!(workload.completed_at, Some(workload.phase_since));
        let last = Arc::new(self.workload_view(workload));
        if self.outbox.archive(last) {
            let rows = self.changed_rows(&BTreeSet::from([id]));
            self.outbox.write(rows);
        }
        let Some(workload) = self.workloads.remove(id) else { return };
        let (kind, user) = (workload.spec.kind, workload.spec.submitted_by.clone());
        let used = WorkloadUse::of_archived(1, workload.spec.json_bytes());
        self.workloads.add_archived(workload.archived_key(), &user, used);
        self.outbox.write([Change::WorkloadArchived(id, kind, user)]);
    }

    /// Restores archived workloads that an input of this batch needs.
    pub(crate) fn restore_archived(&mut self, mut found: Archived) {
        found.workloads.retain(|row| self.workloads.get(&row.id).is_none());
        let ids: Vec<Uuid> = found.workloads.iter().map(|row| row.id).collect();
        let is_to_come = |row: &&WorkloadRow| row.state.completed_at > Some(self.now);
        let dated: Vec<Uuid> =
            found.workloads.iter().filter(is_to_come).map(|row| row.id).collect();
        not_after(self.now, &mut found);
        let Archived { workloads, pods } = found;
        if let Err(error) = self.restore_workloads(workloads, pods) {
            let note = format!("an archived workload cannot be read: {error}");
            self.outbox.note(Note::Error(note));
        }
        for id in ids {
            let Some(workload) = self.workloads.get(&id) else { continue };
            let (key, spec) = (workload.archived_key(), workload.spec.clone());
            self.workloads.remove_archived(key, &spec);
            self.outbox.write([Change::WorkloadRestored(id)]);
            self.outbox.show([id]);
        }
        self.workloads.write_again(&dated);
        self.outbox.touch(dated);
    }

    /// The archived workloads that an input needs. They are to be read and applied as an input
    /// before it.
    #[must_use]
    pub fn lookups(&self, input: &Input) -> Vec<ArchivedLookup> {
        if self.workloads.archived.is_empty() {
            return Vec::new();
        }
        let unknown_pod = |key: RunKey| {
            let is_unknown = self.workloads.home(key.pod).is_none();
            is_unknown.then_some(ArchivedLookup::Pod(key.pod))
        };
        match input {
            Input::Command(command, _) => self.lookup(command).into_iter().collect(),
            Input::Run(seen) => unknown_pod(seen.key).into_iter().collect(),
            Input::Engine(listed, _) => {
                listed.iter().filter_map(|run| unknown_pod(run.key)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn lookup(&self, command: &Command) -> Option<ArchivedLookup> {
        match command {
            Command::Submit { project_id, wanted } => {
                self.lookup_name(*project_id, &wanted.spec.name)
            }
            Command::Delete { id, .. }
            | Command::Suspend { id, .. }
            | Command::Resume { id, .. }
            | Command::UpdateWorkload { id, .. } => {
                self.workloads.get(id).is_none().then_some(ArchivedLookup::Id(*id))
            }
            _ => None,
        }
    }

    /// The archived workload that may have this name in a project.
    #[must_use]
    pub fn lookup_name(&self, project: u64, name: &str) -> Option<ArchivedLookup> {
        let is_here = self.workloads.names_in(project).is_some_and(|all| all.contains_key(name));
        (!is_here && self.workloads.used().of_project(project).archived > 0)
            .then(|| ArchivedLookup::Name(project, name.to_owned()))
    }

    /// The pods of ended runs that the state does not know. If their workloads are archived, these
    /// runs are expected, and the state need not get them at a start.
    #[must_use]
    pub fn unknown_ended(&self, listed: &[ListedRun]) -> Vec<Uuid> {
        if self.workloads.archived.is_empty() {
            return Vec::new();
        }
        let unknown = listed
            .iter()
            .filter(|run| has_ended(run) && self.workloads.home(run.key.pod).is_none());
        unknown.map(|run| run.key.pod).collect()
    }
}

/// Removes the ended runs of pods of archived workloads from the list of the engine's runs.
pub fn leave_out_archived(listed: &mut Vec<ListedRun>, pods: &BTreeSet<Uuid>) {
    listed.retain(|run| !(has_ended(run) && pods.contains(&run.key.pod)));
}

const fn has_ended(run: &ListedRun) -> bool {
    matches!(run.state, RunState::Exited { .. })
}
