//! What is counted from a moment, after the wall clock was set. Owns: which moments of the stored state
//! are dated anew, so that as much has passed since them, and is left until them, as before. What is only
//! told (when something was made, what happened) keeps the date that the clock showed.

use model::UsageWindow;
use records::{AllocationRow, Change, PodBody, Snapshot, WorkloadState};
use spec::WorkloadPast;
use units::Instant;

use crate::moment::Step;

impl Step {
    /// Dates the state anew; the changes are those that no row of it will make by itself.
    pub(crate) fn shift(self, snapshot: &mut Snapshot, usage: Option<UsageWindow>) -> Vec<Change> {
        for workload in &mut snapshot.workloads {
            let WorkloadState { phase_since, not_before, completed_at, .. } = &mut workload.state;
            *phase_since = self.since(*phase_since);
            *not_before = not_before.map(|at| self.due(at));
            *completed_at = completed_at.map(|at| self.since(at));
        }
        for pod in &mut snapshot.pods {
            self.shift_pod(&mut pod.body);
        }
        for at in snapshot.pasts.values_mut().flat_map(WorkloadPast::moments_mut) {
            *at = at.map(|at| self.since(at));
        }
        let mut changes = Vec::new();
        // What is held is one entry until the step and another from now on: no time is in both, except what
        // is gone through twice after the clock was set back while no server ran.
        changes.extend(snapshot.allocations.drain(..).map(|row| {
            let ended_at = Some(self.before.max(row.started_at));
            Change::Allocation(AllocationRow { ended_at, ..row })
        }));
        if let Some(window) = usage.filter(|_| !snapshot.usage.is_empty()) {
            let last = snapshot.usage.iter().map(|row| row.step_start.0).max().unwrap_or_default();
            changes.push(Change::UsageGone(Instant(last + 1)));
            for row in &mut snapshot.usage {
                row.step_start = window.step_start(self.since(row.step_start));
                changes.push(Change::Usage(row.clone()));
            }
        }
        changes
    }

    fn shift_pod(self, body: &mut PodBody) {
        let since = [
            &mut body.placed_at_ms,
            &mut body.held_since_ms,
            &mut body.started_at_ms,
            &mut body.resized_at_ms,
        ];
        for at in since.into_iter().flatten() {
            *at = self.since(Instant(*at)).0;
        }
        if let Some(at) = &mut body.restart_at_ms {
            *at = self.due(Instant(*at)).0;
        }
    }
}
