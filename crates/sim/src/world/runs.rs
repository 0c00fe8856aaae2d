//! Workloads whose pods end one by one: so many at a time until so many have finished, failed ones
//! again. Owns: counting the runs. Refuses to know: which pod runs when; that is the scheduler's.

use std::collections::BTreeMap;

use model::{PodBinding, PodId};
use sched::Step;
use units::Instant;

use super::{START, Simulation};
use crate::scenario::State;

/// Pause after the first failure, and the longest; it doubles with each.
const BACKOFF_MS: (u64, u64) = (10_000, 360_000);
/// Failures after which a workload is given up, if it does not say.
pub(super) const BACKOFF_LIMIT: u32 = 6;

/// What became of a workload's runs so far.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    /// How many have to finish; none means that all pods end together.
    pub(super) completions: Option<u32>,
    pub(super) backoff_limit: u32,
    pub(super) finished: u32,
    pub(super) failed: u32,
    /// When each pod last started; only of workloads whose pods end one by one.
    started: BTreeMap<PodId, Instant>,
}

impl Runs {
    pub(super) const fn new(completions: Option<u32>, backoff_limit: u32) -> Self {
        Self { completions, backoff_limit, finished: 0, failed: 0, started: BTreeMap::new() }
    }
}

impl Simulation {
    /// Remembers which pods were started.
    pub(super) fn note_starts(&mut self) {
        for step in &self.plan.steps {
            let Step::Bind { pod, .. } = *step else { continue };
            let job = self.by_model.get(&self.cluster.pods()[pod].workload);
            if let Some(&job) = job
                && self.jobs[job].runs.completions.is_some()
            {
                self.jobs[job].runs.started.insert(pod, self.now);
            }
        }
    }

    /// When a pod that ends by itself will have run long enough, for each that runs.
    pub(super) fn ends_of_pods(&self, job: usize) -> Vec<(Instant, PodId)> {
        let row = &self.jobs[job];
        let (Some(id), Some(span), Some(_)) = (row.model, row.runs_for_ms, row.runs.completions)
        else {
            return Vec::new();
        };
        let workload = &self.cluster.workloads()[id];
        let running = workload.pods.iter().filter(|pod| self.cluster.pods()[**pod].runs());
        let start = |pod| row.runs.started.get(pod).copied().or(workload.last_start);
        running.map(|pod| (start(pod).unwrap_or(START).plus_ms(span), *pod)).collect()
    }

    /// A run has finished. The pod runs again if more runs are needed than pods are left for.
    pub(super) fn complete(&mut self, job: usize, pod: PodId) {
        let Some(id) = self.jobs[job].model else { return };
        let runs = &mut self.jobs[job].runs;
        runs.finished += 1;
        let left = runs.completions.unwrap_or(0).saturating_sub(runs.finished);
        if left == 0 {
            // It is alive.
            let _ = self.finish(job);
            return;
        }
        self.cluster.set_binding(pod, PodBinding::default());
        let pods = &self.cluster.workloads()[id].pods;
        let wanted = pods.iter().filter(|pod| self.cluster.pods()[**pod].wants).count();
        if wanted > left as usize {
            self.cluster.set_wants(pod, false);
            self.cluster.set_succeeded(pod, true);
        }
    }

    /// Pods for which no run is left do not want to run.
    pub(super) fn spare_pods(&mut self, job: usize) {
        let row = &self.jobs[job];
        let (Some(id), Some(completions)) = (row.model, row.runs.completions) else { return };
        let left = completions.saturating_sub(row.runs.finished) as usize;
        for &pod in self.cluster.workloads()[id].pods.clone().iter().skip(left) {
            self.cluster.set_wants(pod, false);
        }
    }

    /// A pod that runs fails. It runs again after a pause, with the rest of its gang; after too
    /// many failures the workload is given up.
    pub(super) fn fail(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        let pods = self.cluster.workloads()[id].pods.clone();
        let Some(&first) = pods.iter().find(|pod| self.cluster.pods()[**pod].runs()) else {
            let label = self.label(&self.jobs[job]);
            return Err(format!("workload `{label}` has no pod that runs"));
        };
        let runs = &mut self.jobs[job].runs;
        runs.failed += 1;
        let (failed, given_up) = (runs.failed, runs.failed > runs.backoff_limit);
        let alone = runs.completions.is_some() && !given_up;
        for pod in if alone { vec![first] } else { pods } {
            if given_up {
                self.cluster.set_wants(pod, false);
            }
            self.cluster.set_binding(pod, PodBinding::default());
        }
        if given_up {
            self.end(id, job, State::Failed);
            return Ok(());
        }
        let (pause_ms, pause_ms_max) = BACKOFF_MS;
        let doubled = pause_ms.saturating_mul(1 << (failed - 1).min(30));
        self.cluster.set_not_before(id, self.now.plus_ms(doubled.min(pause_ms_max)));
        Ok(())
    }

    pub(super) fn ungate(&mut self, job: usize) -> Result<(), String> {
        let id = self.alive(job)?;
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_gated(pod, false);
        }
        Ok(())
    }
}
