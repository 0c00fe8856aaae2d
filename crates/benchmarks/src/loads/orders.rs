//! Makespan of a load under a scheduler that knows all run times from the beginning, and preempts
//! nothing. Owns: a search over the orders in which jobs start. It finds a good order, not the
//! best: its result is no bound, but a scheduler that knows less cannot be expected to do better.
//!
//! It is enough to search over orders: without preemption, with equal nodes and one node for each
//! pod, each job can start, in the order of starts, as soon as enough nodes are free.

use std::collections::BTreeMap;

use super::{Job, Load, Service};

/// Maximum number of states kept after each start, and of those with equal remaining jobs.
const KEPT: usize = 100;
const KEPT_ALIKE: usize = 10;

/// Idle node time that a start may cost, in milliseconds for each pair of its pods.
const IDLE_MS: u64 = 30;

/// State of the nodes after a prefix of an order.
#[derive(Clone)]
struct State {
    /// Time at which each node becomes free, ascending.
    free_ms: Vec<u64>,
    started_ms: u64,
    /// Idle node time, less the idle time that the starts may cost.
    score_ms: i128,
    /// Jobs of the present batch that have not started.
    left: Vec<usize>,
}

/// A job, as far as the order matters.
struct Runs {
    arrives_ms: u64,
    /// Time from the start of the job to the end of each of its pods, ascending.
    ends_ms: Vec<u64>,
}

impl Runs {
    fn of(job: &Job, service: Service) -> Self {
        let ends = job.runs_ms.iter().zip(0_u64..).map(|(&runs_ms, number)| {
            let turn = number / service.binds_at_once as u64 + 1;
            turn * service.bind_ms + service.start_ms + runs_ms
        });
        let mut ends_ms: Vec<_> = ends.collect();
        ends_ms.sort_unstable();
        Self { arrives_ms: job.arrives_ms, ends_ms }
    }
}

impl Load {
    /// End of the last pod in the best order of starts found, in milliseconds after the first
    /// submission. Jobs change places only within batches of `batch` jobs. For loads whose pods
    /// take a node each.
    #[must_use]
    pub fn best_order_ms(&self, batch: usize) -> u64 {
        let free_ms = vec![0; self.nodes.len()];
        let mut states = vec![State { free_ms, started_ms: 0, score_ms: 0, left: Vec::new() }];
        let jobs: Vec<_> = self.jobs.iter().map(|job| Runs::of(job, self.service)).collect();
        let all: Vec<usize> = (0..jobs.len()).collect();
        for batch in all.chunks(batch.max(1)) {
            states.iter_mut().for_each(|state| state.left = batch.to_vec());
            for _ in batch {
                let next = states.iter().flat_map(|state| {
                    state.left.iter().map(|&job| self.started(state, job, &jobs[job]))
                });
                states = best(next.collect());
            }
        }
        let ends = states.iter().filter_map(|state| state.free_ms.last().copied());
        ends.min().unwrap_or(0)
    }

    /// The state after a job has started as soon as it can.
    fn started(&self, state: &State, at: usize, job: &Runs) -> State {
        let pods = job.ends_ms.len().min(state.free_ms.len());
        let (taken, others) = state.free_ms.split_at(pods);
        let free_ms = taken.last().copied().unwrap_or(0);
        let soonest = free_ms.max(job.arrives_ms).max(state.started_ms);
        let start_ms = soonest.next_multiple_of(self.service.cycle_ms);
        let idle_ms: u64 = taken.iter().map(|&free_ms| start_ms - free_ms).sum();
        let allowed_ms = IDLE_MS * (pods as u64).pow(2);
        // Two sorted runs: the sort is a merge.
        let ends = job.ends_ms.iter().map(|ends_ms| start_ms + ends_ms);
        let mut free_ms: Vec<u64> = others.iter().copied().chain(ends).collect();
        free_ms.sort();
        State {
            free_ms,
            started_ms: start_ms,
            score_ms: state.score_ms + i128::from(idle_ms) - i128::from(allowed_ms),
            left: state.left.iter().copied().filter(|&other| other != at).collect(),
        }
    }
}

/// The states with the best scores, with few that have equal remaining jobs.
fn best(mut states: Vec<State>) -> Vec<State> {
    states.sort_by(|l, r| (l.score_ms, &l.free_ms).cmp(&(r.score_ms, &r.free_ms)));
    states.dedup_by(|l, r| l.free_ms == r.free_ms && l.left == r.left);
    let mut alike: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    states.retain(|state| {
        let count = alike.entry(state.left.clone()).or_default();
        *count += 1;
        *count <= KEPT_ALIKE
    });
    states.truncate(KEPT);
    states
}
