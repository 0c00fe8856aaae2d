//! Since when workloads have left their GPUs idle. Owns: what idle means. Refuses to know: how long
//! they may be.
//!
//! A workload is idle while every GPU of each of its pods is seen not to compute at every look. What
//! is not measured is not idle, nor is a workload without GPUs, or one that has not begun to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use units::Instant;
use uuid::Uuid;

use super::look::{Look, Subject, of, placed};
use crate::view::{PodState, PodView, View};

/// Since when workloads have been idle.
pub(crate) type IdleSince = Arc<BTreeMap<Uuid, Instant>>;

pub(super) struct Idle {
    since: BTreeMap<Uuid, Instant>,
    told: watch::Sender<IdleSince>,
}

impl Idle {
    pub(super) const fn new(told: watch::Sender<IdleSince>) -> Self {
        Self { since: BTreeMap::new(), told }
    }

    /// Who is idle now. Tells it where there is a limit, and only if it is news: each is a batch for
    /// the dispatcher.
    pub(super) fn look(&mut self, view: &View, look: &Look) {
        let mut all: BTreeMap<Uuid, bool> = BTreeMap::new();
        for (workload, pod) in placed(view).filter(|(_, pod)| !pod.gpus.is_empty()) {
            *all.entry(workload.id).or_insert(true) &= is_idle(pod, look);
        }
        let idle = all.into_iter().filter(|(_, idle)| *idle);
        let since = |id| self.since.get(&id).copied().unwrap_or(look.at);
        self.since = idle.map(|(id, _)| (id, since(id))).collect();
        let limited: BTreeMap<_, _> = self
            .since
            .iter()
            .filter(|(id, _)| is_limited(view, id))
            .map(|(id, at)| (*id, *at))
            .collect();
        self.told.send_if_modified(|told| {
            let news = **told != limited;
            *told = Arc::new(limited);
            news
        });
    }
}

fn is_idle(pod: &PodView, look: &Look) -> bool {
    let busy = |index| look.value(&Subject::Pod(pod.id), &of::gpu(of::BUSY, index));
    pod.state == PodState::Running && pod.gpus.iter().all(|(index, _)| busy(*index) == Some(0))
}

fn is_limited(view: &View, id: &Uuid) -> bool {
    let found = view.workloads.get(id).and_then(|workload| {
        let rules = view.projects.get(&workload.project_id)?.effective_rules;
        rules.idle_ms_max(workload.spec.kind, workload.spec.preemptible)
    });
    found.is_some()
}
