//! Shift of stored moments after the wall clock was set. Owns: the moments of the stored state that
//! are shifted, so that the time since them and until them stays as before. Moments that are only
//! shown (creation of an object, events) keep the date that the clock showed.

use model::UsageWindow;
use spec::WorkloadPast;
use units::Instant;

use crate::{
    AllocationRow, Archived, Change, PodBody, PodRow, Snapshot, Step, WorkloadRow, WorkloadState,
};

/// Shifts the dates of the state; returns the changes of tables that the rows themselves do not
/// cause.
pub fn shift(step: Step, snapshot: &mut Snapshot, usage: Option<UsageWindow>) -> Vec<Change> {
    each_since(snapshot, |at| step.since(at));
    for workload in &mut snapshot.workloads {
        let not_before = &mut workload.state.not_before;
        *not_before = not_before.map(|at| step.due(at));
    }
    for pod in &mut snapshot.pods {
        let restart_at_ms = &mut pod.body.restart_at_ms;
        *restart_at_ms = restart_at_ms.map(|at| step.due(Instant(at)).0);
    }
    let pasts = snapshot.pasts.iter();
    let mut changes: Vec<_> = pasts.map(|(id, past)| Change::WorkloadPast(*id, *past)).collect();
    // Each allocation becomes one entry until the step and another from now on: no time is counted
    // in both, except for time that is repeated after the clock was set back while no server ran.
    changes.extend(snapshot.allocations.drain(..).map(|row| {
        let ended_at = Some(step.before.max(row.started_at));
        Change::Allocation(AllocationRow { ended_at, ..row })
    }));
    if let Some(window) = usage.filter(|_| !snapshot.usage.is_empty()) {
        let last = snapshot.usage.iter().map(|row| row.step_start.0).max().unwrap_or_default();
        changes.push(Change::UsageGone(Instant(last + 1)));
        for row in &mut snapshot.usage {
            row.step_start = window.step_start(step.since(row.step_start));
            changes.push(Change::Usage(row.clone()));
        }
    }
    changes
}

/// The step of a clock that was set back while the machine was off, if the state has moments in the
/// future: at least so far that the newest moment becomes now.
#[must_use]
pub fn unseen(snapshot: &mut Snapshot, now: Instant) -> Option<Step> {
    let mut newest = now;
    each_since(snapshot, |at| {
        newest = newest.max(at);
        at
    });
    let ms = -newest.since_ms(now).cast_signed();
    (newest > now).then_some(Step { before: newest, ms })
}

/// Limits the moments of archived workloads to now: they are not shifted when the clock is set
/// back, and none may be in the future when a workload returns to memory.
pub fn not_after(now: Instant, Archived { workloads, pods }: &mut Archived) {
    each_of_rows(workloads, pods, &mut |at| at.min(now));
}

/// Replaces every moment from which time is counted.
fn each_since(snapshot: &mut Snapshot, mut dated: impl FnMut(Instant) -> Instant) {
    each_of_rows(&mut snapshot.workloads, &mut snapshot.pods, &mut dated);
    for lag in &mut snapshot.lags {
        lag.since = dated(lag.since);
        lag.turn_since = lag.turn_since.map(&mut dated);
    }
    for at in snapshot.pasts.values_mut().flat_map(WorkloadPast::moments_mut) {
        *at = at.map(&mut dated);
    }
}

fn each_of_rows(
    workloads: &mut [WorkloadRow],
    pods: &mut [PodRow],
    dated: &mut impl FnMut(Instant) -> Instant,
) {
    for workload in workloads {
        let WorkloadState { phase_since, completed_at, .. } = &mut workload.state;
        *phase_since = dated(*phase_since);
        *completed_at = completed_at.map(&mut *dated);
    }
    for pod in pods {
        let PodBody { placed_at_ms, held_since_ms, started_at_ms, resized_at_ms, .. } =
            &mut pod.body;
        for at in [placed_at_ms, held_since_ms, started_at_ms, resized_at_ms].into_iter().flatten()
        {
            *at = dated(Instant(*at)).0;
        }
    }
}
