//! Use of the limits for workloads. Owns: what the workloads of each user take in each project, and
//! if they may take more. Does not know about: workloads.

use std::collections::BTreeMap;

use spec::{OverLimit, UserLimit, UserLimits, WorkloadSpec};

/// Amounts of workloads that limits are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadUse {
    /// Workloads, without revisions of inferences.
    pub workloads: u64,
    /// Pods that wait, run or ended.
    pub pods: u64,
    /// Specifications as JSON.
    pub bytes: u64,
    /// Ended workloads that left memory, which are not among the others.
    pub archived: u64,
    /// Their specifications as JSON.
    pub archived_bytes: u64,
}

impl WorkloadUse {
    /// Use of a workload with this number of pods.
    #[must_use]
    pub fn of(spec: &WorkloadSpec, pods: u64) -> Self {
        let workloads = u64::from(spec.revision.is_none());
        Self { workloads, pods, bytes: spec.json_bytes(), ..Self::default() }
    }

    /// Use of a number of archived workloads with so many bytes.
    #[must_use]
    pub fn of_archived(archived: u64, archived_bytes: u64) -> Self {
        Self { archived, archived_bytes, ..Self::default() }
    }

    const fn plus(self, more: Self) -> Self {
        Self {
            workloads: self.workloads.saturating_add(more.workloads),
            pods: self.pods.saturating_add(more.pods),
            bytes: self.bytes.saturating_add(more.bytes),
            archived: self.archived.saturating_add(more.archived),
            archived_bytes: self.archived_bytes.saturating_add(more.archived_bytes),
        }
    }

    const fn minus(self, less: Self) -> Self {
        let archived = self.archived.saturating_sub(less.archived);
        // The database counts the stored documents, which are a few bytes larger.
        let archived_bytes = match archived {
            0 => 0,
            _ => self.archived_bytes.saturating_sub(less.archived_bytes),
        };
        Self {
            workloads: self.workloads.saturating_sub(less.workloads),
            pods: self.pods.saturating_sub(less.pods),
            bytes: self.bytes.saturating_sub(less.bytes),
            archived,
            archived_bytes,
        }
    }
}

/// Use by project and user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UseTable(BTreeMap<u64, ProjectUse>);

/// Use of a project.
#[derive(Debug, Default, PartialEq, Eq)]
struct ProjectUse {
    /// Sum of all users.
    all: WorkloadUse,
    users: BTreeMap<String, WorkloadUse>,
}

impl UseTable {
    /// Adds to the use of a user in a project.
    pub fn add(&mut self, project: u64, user: &str, more: WorkloadUse) {
        let project = self.0.entry(project).or_default();
        project.all = project.all.plus(more);
        let used = project.users.entry(user.to_owned()).or_default();
        *used = used.plus(more);
    }

    /// Takes from the use of a user in a project.
    pub fn free(&mut self, project_id: u64, user: &str, less: WorkloadUse) {
        let Some(project) = self.0.get_mut(&project_id) else { return };
        let Some(used) = project.users.get_mut(user) else { return };
        let left = used.minus(less);
        project.all = project.all.minus(*used).plus(left);
        *used = left;
        if left == WorkloadUse::default() {
            project.users.remove(user);
        }
        if project.users.is_empty() {
            self.0.remove(&project_id);
        }
    }

    /// Use of a project.
    #[must_use]
    pub fn of_project(&self, project: u64) -> WorkloadUse {
        self.0.get(&project).map(|project| project.all).unwrap_or_default()
    }

    /// Use by archived workloads alone.
    #[must_use]
    pub fn of_archived(&self) -> Self {
        let mut table = Self::default();
        for (id, project) in &self.0 {
            for (user, used) in project.users.iter().filter(|(_, used)| used.archived > 0) {
                table.add(*id, user, WorkloadUse::of_archived(used.archived, used.archived_bytes));
            }
        }
        table
    }

    /// Checks if a project and a user in it may have more. What is not asked for is not checked.
    ///
    /// # Errors
    /// It would be more than a limit.
    pub fn check(
        &self,
        limits: &UserLimits,
        (project, user): (u64, &str),
        more: WorkloadUse,
    ) -> Result<(), OverLimit> {
        let own = self.0.get(&project).and_then(|project| project.users.get(user));
        let (all, own) = (self.of_project(project), own.copied().unwrap_or_default());
        for (limit, used, more) in [
            (UserLimit::ProjectWorkloads, all.workloads, more.workloads),
            (UserLimit::UserWorkloads, own.workloads, more.workloads),
            (UserLimit::ProjectPods, all.pods, more.pods),
            (UserLimit::UserPods, own.pods, more.pods),
            (UserLimit::ProjectWorkloadBytes, all.bytes, more.bytes),
            (UserLimit::UserWorkloadBytes, own.bytes, more.bytes),
            (UserLimit::ProjectArchivedWorkloads, all.archived, more.archived),
            (UserLimit::UserArchivedWorkloads, own.archived, more.archived),
            (UserLimit::ProjectArchivedBytes, all.archived_bytes, more.archived_bytes),
            (UserLimit::UserArchivedBytes, own.archived_bytes, more.archived_bytes),
        ] {
            if more > 0 {
                limits.check(limit, used.saturating_add(more))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_free_again_for_whom_it_was_taken_and_only_more_is_refused() {
        let one = WorkloadUse { workloads: 1, pods: 3, bytes: 10, ..WorkloadUse::default() };
        let mut limits = UserLimits::default();
        limits.set(UserLimit::ProjectPods, 9);
        limits.set(UserLimit::UserPods, 6);
        let mut table = UseTable::default();
        table.add(1, "ann", one);
        table.add(1, "ann", one);
        let over = |table: &UseTable, project, user, more| {
            table.check(&limits, (project, user), more).err().map(|over| over.limit)
        };
        assert_eq!(over(&table, 1, "ann", one), Some(UserLimit::UserPods));
        assert_eq!(over(&table, 1, "bob", one), None);
        assert_eq!(over(&table, 2, "ann", one), None);
        table.add(1, "bob", one);
        assert_eq!(over(&table, 1, "bob", one), Some(UserLimit::ProjectPods));
        let bytes = WorkloadUse { bytes: 1, ..WorkloadUse::default() };
        assert_eq!(over(&table, 1, "ann", bytes), None, "it has not more pods");
        table.free(1, "ann", one);
        assert_eq!(over(&table, 1, "ann", one), None);
        // More than there is frees what there is, and nothing of others.
        let most = WorkloadUse { pods: 9, ..one };
        table.free(1, "ann", most);
        table.free(1, "eve", most);
        assert_eq!(table.of_project(1), one);
        table.free(1, "bob", one);
        assert_eq!(table, UseTable::default());
        // As the database counts it, and as it is restored.
        table.add(1, "ann", WorkloadUse::of_archived(2, 220));
        table.free(1, "ann", WorkloadUse::of_archived(1, 100));
        assert_eq!(table.of_project(1), WorkloadUse::of_archived(1, 120));
        table.free(1, "ann", WorkloadUse::of_archived(1, 100));
        assert_eq!(table, UseTable::default());
    }
}
