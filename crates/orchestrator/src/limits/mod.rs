//! Next actions of time limits: how long workloads run, leave their GPUs idle, and are kept after
//! their end. Owns: these times, and the warned workloads.

mod enforce;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::workloads::Workload;

/// Time between two samples of the usage of workloads, in milliseconds.
pub const MEASURE_EVERY_MS: u64 = 15_000;

/// Start of the idle time of workloads, as of the last sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleSince {
    /// Time of this sample.
    #[serde(rename = "looked_at")]
    pub measured_at: Instant,
    /// Start of the idle time by workload.
    pub since: Arc<BTreeMap<Uuid, Instant>>,
}

impl IdleSince {
    /// Workloads whose idle time differs in a later sample.
    fn changed_to(&self, later: &Self) -> Vec<Uuid> {
        if Arc::ptr_eq(&self.since, &later.since) {
            return Vec::new();
        }
        let ids = self.since.keys().chain(later.since.keys()).copied();
        ids.filter(|id| self.since.get(id) != later.since.get(id)).collect()
    }
}

/// Limited time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    /// Run time.
    Run,
    /// Idle time of the GPUs.
    Idle,
}

/// Time limits.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Warnings of workloads that will be stopped, by limit: start of the limited time, and time of
    /// the warning. Not stored: they are repeated after a restart.
    warned: BTreeMap<(Uuid, Limit), (Instant, Instant)>,
    /// Start of the idle time of workloads, as far as it is measured.
    idle: IdleSince,
    planned: Planned,
    /// Ended workloads, by the time of their deletion.
    expiring: BTreeSet<(Instant, Uuid)>,
}

impl Limits {
    /// Takes over the idle times of workloads. Returns the workloads whose time has changed.
    pub(crate) fn see_idle(&mut self, idle: IdleSince) -> Vec<Uuid> {
        std::mem::replace(&mut self.idle, idle).changed_to(&self.idle)
    }

    pub(crate) const fn idle(&self) -> &IdleSince {
        &self.idle
    }

    /// Records when an ended workload is to be deleted, if it is.
    pub(crate) fn note_expiry(&mut self, workload: &Workload) {
        self.expiring.extend(expiry(workload));
    }

    /// Removes this record, before the time changes.
    pub(crate) fn forget_expiry(&mut self, workload: &Workload) {
        if let Some(expiry) = expiry(workload) {
            self.expiring.remove(&expiry);
        }
    }

    /// Time of the next action.
    pub(crate) fn due(&self) -> Option<Instant> {
        let planned = self.planned.order.first().map(|(at, _)| *at);
        planned.into_iter().chain(self.expiring.first().map(|(at, _)| *at)).min()
    }
}

fn expiry(workload: &Workload) -> Option<(Instant, Uuid)> {
    let (ended_at, after_ms) = (workload.completed_at?, workload.spec.delete_after_ms?);
    Some((Instant(ended_at.0.saturating_add(after_ms)), workload.id))
}

/// Next actions of limits, by workload. They are kept from one batch to the next: few workloads
/// change in one.
#[derive(Debug, Default)]
struct Planned {
    at: BTreeMap<Uuid, Instant>,
    order: BTreeSet<(Instant, Uuid)>,
    /// The sample from which it was made.
    idle: IdleSince,
}

impl Planned {
    fn due(&self, now: Instant) -> impl Iterator<Item = Uuid> {
        self.order.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id)
    }

    fn set(&mut self, id: Uuid, next: Option<Instant>) {
        if let Some(at) = self.at.remove(&id) {
            self.order.remove(&(at, id));
        }
        if let Some(at) = next {
            self.at.insert(id, at);
            self.order.insert((at, id));
        }
    }
}
