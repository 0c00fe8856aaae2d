//! Time since which workloads have left their GPUs idle. Owns: the definition of idle. Does not
//! know about: how long they may be.
//!
//! A workload is idle while every GPU of each of its pods does not compute in every sample. A GPU
//! without a measurement is not idle, nor is a workload without GPUs, or one that has not begun to
//! run. An idle workload stays so while one of its pods restarts in its place.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use units::Instant;
use uuid::Uuid;

use super::sample::{Sample, Subject, of, placed};
use orchestrator::{IdleSince, Step};
use view::{PodState, PodView, View};

pub(super) struct Idle {
    since: BTreeMap<Uuid, Instant>,
    told: watch::Sender<IdleSince>,
}

impl Idle {
    pub(super) const fn new(told: watch::Sender<IdleSince>) -> Self {
        Self { since: BTreeMap::new(), told }
    }

    /// Recomputes the times since which workloads are idle.
    pub(super) fn shift(&mut self, step: Step) {
        self.since.values_mut().for_each(|at| *at = step.since(*at));
    }

    /// Has the dispatcher look at the time.
    pub(super) fn wake(&self) {
        self.told.send_modify(|_| {});
    }

    /// Determines the idle workloads. Publishes them only on a change: each is a batch for the
    /// dispatcher.
    pub(super) fn update(&mut self, view: &View, sample: &Sample) {
        // For each workload: whether all its running pods are idle, whether all its pods run, and
        // since when it has held places.
        let mut all: BTreeMap<Uuid, (bool, bool, Option<Instant>)> = BTreeMap::new();
        for (workload, pod) in placed(view).filter(|(_, pod)| !pod.gpus.is_empty()) {
            let (idle, runs, began) = all.entry(workload.id).or_insert((true, true, None));
            match pod.state {
                PodState::Running => *idle &= is_idle(pod, sample),
                _ => *runs = false,
            }
            *began = pod.held_since;
        }
        let idle = all.into_iter().filter(|(_, (idle, ..))| *idle);
        // A workload that was suspended and resumed starts again, even if no sample has seen it.
        let known = |id, began| self.since.get(&id).copied().filter(|at| Some(*at) >= began);
        let since = |(id, (_, runs, began)): (Uuid, (_, bool, _))| {
            let begins = runs.then_some(sample.at);
            Some((id, known(id, began).or(begins)?))
        };
        self.since = idle.filter_map(since).collect();
        self.told.send_if_modified(|told| {
            let news = *told.since != self.since;
            let since = if news { Arc::new(self.since.clone()) } else { told.since.clone() };
            *told = IdleSince { measured_at: sample.at, since };
            news
        });
    }
}

fn is_idle(pod: &PodView, sample: &Sample) -> bool {
    let busy = |index| sample.value(&Subject::Pod(pod.id), &of::gpu(of::BUSY, index));
    pod.gpus.iter().all(|(index, _)| busy(*index) == Some(0))
}
