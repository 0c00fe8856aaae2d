//! When limits in time have something to do: how long workloads run, leave their GPUs idle, and are
//! kept after their end. Owns: these times, and which workloads were warned.

mod enforce;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::workloads::Workload;

/// How often it is measured what workloads use.
pub const MEASURE_EVERY_MS: u64 = 15_000;

/// Since when workloads have been idle, as of the last sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleSince {
    /// When that sample was taken.
    #[serde(rename = "looked_at")]
    pub measured_at: Instant,
    /// Since when, by workload; those that have no limit are left out.
    pub since: Arc<BTreeMap<Uuid, Instant>>,
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    /// The time it runs.
    Run,
    /// The time its GPUs are idle.
    Idle,
}

/// Limits in time.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Warnings of workloads that will be stopped, by limit: since when the limit counts, and when
    /// the warning was given. Not stored: it is repeated after a restart.
    warned: BTreeMap<(Uuid, Limit), (Instant, Instant)>,
    /// Since when workloads that may not be idle for ever have been, as far as it is measured.
    idle: IdleSince,
    planned: Planned,
    /// Workloads that have ended, by when they are to be deleted.
    expiring: BTreeSet<(Instant, Uuid)>,
}

impl Limits {
    /// Takes over since when workloads have been idle.
    pub(crate) fn see_idle(&mut self, idle: IdleSince) {
        self.idle = idle;
    }

    pub(crate) const fn idle(&self) -> &IdleSince {
        &self.idle
    }

    /// Notes when a workload that has ended is to be deleted, if it is.
    pub(crate) fn note_expiry(&mut self, workload: &Workload) {
        self.expiring.extend(expiry(workload));
    }

    /// That time is about to change.
    pub(crate) fn forget_expiry(&mut self, workload: &Workload) {
        if let Some(expiry) = expiry(workload) {
            self.expiring.remove(&expiry);
        }
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let planned = self.planned.order.first().map(|(at, _)| *at);
        planned.into_iter().chain(self.expiring.first().map(|(at, _)| *at)).min()
    }
}

fn expiry(workload: &Workload) -> Option<(Instant, Uuid)> {
    let (ended_at, after_ms) = (workload.completed_at?, workload.spec.delete_after_ms?);
    Some((Instant(ended_at.0.saturating_add(after_ms)), workload.id))
}

/// When limits have something to do, by workload. It is kept from one batch to the next: few
/// workloads change in one.
#[derive(Debug, Default)]
struct Planned {
    at: BTreeMap<Uuid, Instant>,
    order: BTreeSet<(Instant, Uuid)>,
    /// The sample that it was made with.
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
