//! Recent usage of queues. Owns: the ledger for time-based fairness, kept in time steps. Does not
//! know about: how fairness uses it.
//!
//! `usage = Σ held(t)·w(t) / Σ capacity(t)·w(t)` over the window, for each queue and resource. Time
//! passes in steps ([`UsageWindow::step_ms`]); holdings are exact inside each, every step has one
//! weight, and the figures stay until the next step ends. So a figure differs from the integral
//! over the true window by the current step (1/168 of the window, or 1/16 of a half-life: below 5
//! %), by the weight inside a step (a factor of at most `2^(1/16)`), and by the rounding of a
//! step's mean (a thousandth of a GPU or core, a byte). Memory is bounded: this number of steps for
//! each queue that held anything.

mod window;

use std::collections::{BTreeMap, VecDeque};

use units::{Instant, Kind, Resources};

use crate::{Cluster, PoolId, Queue, QueueId, Usage};
pub use window::{UsageWindow, UsageWindowError, WindowKind};

/// Holdings of each queue in the steps of the window.
#[derive(Debug, Clone)]
pub struct UsageLedger {
    window: UsageWindow,
    /// Weights of the past steps, the newest first.
    weights: Vec<u64>,
    queues: BTreeMap<QueueId, Row>,
    /// Capacity of each node pool that has queues of its own, or of the cluster.
    capacity: BTreeMap<PoolId, Row>,
    /// Start of the current step; `None` before the first observation.
    step: Option<Instant>,
}

/// One account: present and past amounts.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Distinguishes a queue from a later one with the same index.
    seq: u64,
    pool: PoolId,
    held: Resources,
    /// Time up to which `open` is complete.
    since: Instant,
    /// Amount times milliseconds in the current step.
    open: [u128; 3],
    /// The mean of each past step, the newest first.
    past: VecDeque<Resources>,
}

/// Capacity that the queues of each pool divide.
fn capacities(cluster: &Cluster) -> Vec<(PoolId, Resources)> {
    cluster.divisions().map(|pool| (pool, cluster.capacity_of(pool))).collect()
}

impl Row {
    fn new(since: Instant) -> Self {
        Self { since, ..Self::default() }
    }

    fn book(&mut self, until: Instant) {
        let ms = u128::from(until.since_ms(self.since));
        for (sum, kind) in self.open.iter_mut().zip(Kind::ALL) {
            *sum += u128::from(self.held[kind]) * ms;
        }
        self.since = self.since.max(until);
    }

    fn close(&mut self, end: Instant, step_ms: u64, steps: usize) {
        self.book(end);
        let mut mean = Resources::ZERO;
        for (sum, kind) in std::mem::take(&mut self.open).into_iter().zip(Kind::ALL) {
            mean[kind] = u64::try_from(sum / u128::from(step_ms)).unwrap_or(u64::MAX);
        }
        self.past.push_front(mean);
        self.past.truncate(steps);
    }

    fn weighed(&self, weights: &[u64], kind: Kind) -> u128 {
        let parts = self.past.iter().zip(weights);
        parts.map(|(mean, &weight)| u128::from(mean[kind]) * u128::from(weight)).sum()
    }
}

impl UsageLedger {
    /// A ledger without history.
    #[must_use]
    pub fn new(window: UsageWindow) -> Self {
        let weights = window.weights();
        let (queues, capacity) = (BTreeMap::new(), BTreeMap::new());
        Self { window, weights, queues, capacity, step: None }
    }

    /// The window of time that counts.
    #[must_use]
    pub const fn window(&self) -> UsageWindow {
        self.window
    }

    /// Adds the holdings until now, records those from now on, and updates the usage of the queues
    /// when a step has ended; returns the number of ended steps. Call it before each decision, and
    /// preferably after each change. It costs a comparison for each queue, work for those that
    /// changed, and a pass over all steps when one ends.
    pub fn observe(&mut self, cluster: &mut Cluster, now: Instant) -> usize {
        let ended = self.book(cluster, now);
        if ended > 0 {
            self.publish(cluster);
        }
        ended
    }

    /// [`Self::observe`] without updating the usage of the queues.
    pub fn book(&mut self, cluster: &Cluster, now: Instant) -> usize {
        let ended = self.pass(now);
        self.take_down(cluster, now, &capacities(cluster), |_, queue| queue.held());
        if ended > 0 {
            self.queues.retain(|&id, _| cluster.queues().get(id).is_some());
        }
        ended
    }

    /// Records the capacity and the holdings of each queue from now on.
    fn take_down(
        &mut self,
        cluster: &Cluster,
        now: Instant,
        capacity: &[(PoolId, Resources)],
        held: impl Fn(QueueId, &Queue) -> Resources,
    ) {
        for &(pool, capacity) in capacity {
            let row = self.capacity.entry(pool).or_insert_with(|| Row::new(now));
            row.book(now);
            row.held = capacity;
        }
        for (id, queue) in cluster.queues().iter() {
            let held = held(id, queue);
            let key = (queue.seq, queue.pool);
            let known = self.queues.get_mut(&id).filter(|row| (row.seq, row.pool) == key);
            match known {
                Some(row) if row.held == held => {}
                Some(row) => {
                    row.book(now);
                    row.held = held;
                }
                None => {
                    let row = Row { seq: queue.seq, pool: queue.pool, held, ..Row::new(now) };
                    self.queues.insert(id, row);
                }
            }
        }
    }

    /// Ends the steps that are over by now; returns their number.
    fn pass(&mut self, now: Instant) -> usize {
        let Some(mut step) = self.step else {
            self.step = Some(self.window.step_start(now));
            return 0;
        };
        let mut next = self.window.next_step(step);
        let mut ended = 0;
        if next > now {
            return ended;
        }
        // After a long pause only the part inside the window is processed.
        let seen_ms = self.window.step_ms().saturating_mul(self.weights.len() as u64 + 1);
        let oldest = self.window.step_start(Instant(now.0.saturating_sub(seen_ms)));
        if oldest > step {
            (step, next) = (oldest, self.window.next_step(oldest));
            for row in self.rows_mut() {
                (row.since, row.open) = (row.since.max(step), [0; 3]);
            }
        }
        while next <= now {
            let (window, steps) = (self.window, self.weights.len());
            for row in self.rows_mut() {
                row.close(next, window.step_ms(), steps);
                if window.begins_at(next) {
                    row.past.clear();
                }
            }
            (step, next) = (next, self.window.next_step(next));
            ended += 1;
        }
        self.step = Some(step);
        ended
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.queues.values_mut().chain(self.capacity.values_mut())
    }

    /// Sets the usage of every queue.
    pub fn publish(&self, cluster: &mut Cluster) {
        for (id, usage) in self.usages(cluster) {
            cluster.set_usage(id, usage);
        }
    }

    /// Usage of each queue.
    #[must_use]
    pub fn usages(&self, cluster: &Cluster) -> Vec<(QueueId, Usage)> {
        cluster.queues().ids().map(|id| (id, self.usage(id))).collect()
    }

    /// Usage of a queue.
    #[must_use]
    pub fn usage(&self, queue: QueueId) -> Usage {
        let Some(row) = self.queues.get(&queue) else { return Usage::default() };
        let capacity = self.capacity.get(&row.pool);
        let ppm = |kind| {
            let whole = capacity.map_or(0, |row| row.weighed(&self.weights, kind));
            let part = row.weighed(&self.weights, kind).saturating_mul(1_000_000);
            part.checked_div(whole).and_then(|ppm| u64::try_from(ppm).ok()).unwrap_or(0)
        };
        Usage { gpu_ppm: ppm(Kind::Gpu), cpu_ppm: ppm(Kind::Cpu), memory_ppm: ppm(Kind::Memory) }
    }
}

/// Mean holdings in a step that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedStep {
    /// Start of the step.
    pub start: Instant,
    /// The capacity of each node pool that has queues of its own, or of the cluster.
    pub capacity: Vec<(PoolId, Resources)>,
    /// Holdings of each queue; queues without any are left out.
    pub held: Vec<(QueueId, Resources)>,
}

/// History: read to be stored, and restored.
impl UsageLedger {
    /// The last `count` ended steps, the newest first, as far as they are in the window.
    #[must_use]
    pub fn ended(&self, count: usize) -> Vec<EndedStep> {
        let before = |at: Instant| Some(self.window.step_start(Instant(at.0.checked_sub(1)?)));
        let starts = std::iter::successors(self.step.and_then(before), |&start| before(start));
        let known = self.capacity.values().map(|row| row.past.len()).max().unwrap_or(0);
        let steps = starts.take(known.min(count)).enumerate();
        let step = |(age, start): (usize, Instant)| {
            let pools = self.capacity.iter();
            let capacity = pools.filter_map(|(&pool, row)| Some((pool, *row.past.get(age)?)));
            let capacity = capacity.collect();
            let rows = self.queues.iter();
            let held = rows.filter_map(|(&id, row)| Some((id, *row.past.get(age)?)));
            let held = held.filter(|(_, mean)| *mean != Resources::ZERO).collect();
            EndedStep { start, capacity, held }
        };
        steps.map(step).collect()
    }

    /// Replays a past step; the oldest first, before anything is observed. Its holdings are assumed
    /// to last until the next one.
    pub fn replay(&mut self, cluster: &Cluster, past: &EndedStep) {
        self.pass(past.start);
        let held: BTreeMap<_, _> = past.held.iter().copied().collect();
        self.take_down(cluster, past.start, &past.capacity, |id, _| {
            held.get(&id).copied().unwrap_or_default()
        });
    }

    /// Assumes that the cluster was unchanged for the whole window, and that each queue always held
    /// its present usage: the starting point of a snapshot, which has no history.
    pub fn assume_even_past(&mut self, cluster: &Cluster, now: Instant) {
        let steps = self.window.steps_before(now);
        let past = |mean: Resources| std::iter::repeat_n(mean, steps).collect();
        for (pool, held) in capacities(cluster) {
            let row = Row { past: past(held), pool, held, ..Row::new(now) };
            self.capacity.insert(pool, row);
        }
        for (id, queue) in cluster.queues().iter() {
            let (mut mean, capacity) = (Resources::ZERO, cluster.capacity_of(queue.pool));
            for kind in Kind::ALL {
                let part = u128::from(capacity[kind]) * u128::from(queue.usage.of(kind));
                mean[kind] = u64::try_from(part.div_ceil(1_000_000)).unwrap_or(u64::MAX);
            }
            let (seq, pool, held) = (queue.seq, queue.pool, queue.held());
            let row = Row { past: past(mean), seq, pool, held, ..Row::new(now) };
            self.queues.insert(id, row);
        }
        self.step = Some(self.window.step_start(now));
    }
}
