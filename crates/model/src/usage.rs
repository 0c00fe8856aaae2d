//! What each queue held recently. Owns: the ledger that time-based fairness reads, kept in steps of
//! time. Does not know about: what follows from it.
//!
//! `usage = Σ held(t)·w(t) / Σ capacity(t)·w(t)` over the window, for each queue and resource. Time
//! passes in steps ([`UsageWindow::step_ms`]); what was held is exact inside each, every step has
//! one weight, and the figures stand until the next step ends. So a figure differs from the
//! integral over the true window by the step that is under way (1/168 of the window, or 1/16 of a
//! half-life: below 5 %), by the weight inside a step (a factor of at most `2^(1/16)`), and by the
//! rounding of a step's mean (a thousandth of a GPU or core, a byte). Memory is bounded: so
//! many steps for each queue that held anything.

mod window;

use std::collections::{BTreeMap, VecDeque};

use units::{Instant, Kind, Resources};

use crate::{Cluster, PoolId, Queue, QueueId, Usage};
pub use window::{UsageWindow, UsageWindowError, WindowKind};

/// Who held how much in the steps of the window.
#[derive(Debug, Clone)]
pub struct UsageLedger {
    window: UsageWindow,
    /// Weights of the past steps, the newest first.
    weights: Vec<u64>,
    queues: BTreeMap<QueueId, Row>,
    /// Of each node pool that has queues of its own, or of the cluster.
    capacity: BTreeMap<PoolId, Row>,
    /// Start of the step that is under way; none before the first observation.
    step: Option<Instant>,
}

/// One account: what is held, and what was.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Tells a queue from a later one in the same place.
    seq: u64,
    pool: PoolId,
    held: Resources,
    /// Up to when `open` is complete.
    since: Instant,
    /// Amount times milliseconds in the step under way.
    open: [u128; 3],
    /// The mean of each past step, the newest first.
    past: VecDeque<Resources>,
}

/// What the queues of each pool divide among themselves.
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

    /// The past that counts.
    #[must_use]
    pub const fn window(&self) -> UsageWindow {
        self.window
    }

    /// Adds what was held until now, records what is held from now on, and updates the usage of the
    /// queues when a step has ended; returns how many have. Call it before each decision, and
    /// preferably after each change. Costs a comparison for each queue, work for those that
    /// changed, and a pass over all steps when one ends.
    pub fn observe(&mut self, cluster: &mut Cluster, now: Instant) -> usize {
        let ended = self.book(cluster, now);
        if ended > 0 {
            self.publish(cluster);
        }
        ended
    }

    /// The same without giving the queues their figures.
    pub fn book(&mut self, cluster: &Cluster, now: Instant) -> usize {
        let ended = self.pass(now);
        self.take_down(cluster, now, &capacities(cluster), |_, queue| queue.held());
        if ended > 0 {
            self.queues.retain(|&id, _| cluster.queues().get(id).is_some());
        }
        ended
    }

    /// From now on the cluster has this capacity and each queue holds so much.
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

    /// Ends the steps that are over by now; says how many.
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
        // Of a long silence only what the window still sees is gone through.
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

    /// Gives every queue its figures.
    pub fn publish(&self, cluster: &mut Cluster) {
        for (id, usage) in self.usages(cluster) {
            cluster.set_usage(id, usage);
        }
    }

    /// What each queue used of the capacity.
    #[must_use]
    pub fn usages(&self, cluster: &Cluster) -> Vec<(QueueId, Usage)> {
        cluster.queues().ids().map(|id| (id, self.usage(id))).collect()
    }

    /// What a queue used of the capacity.
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

/// What was held in a step that has ended, on average.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedStep {
    /// When it began.
    pub start: Instant,
    /// The capacity of each node pool that has queues of its own, or of the cluster.
    pub capacity: Vec<(PoolId, Resources)>,
    /// What each queue held; those that held nothing are left out.
    pub held: Vec<(QueueId, Resources)>,
}

/// History: read to be stored, and restored from elsewhere.
impl UsageLedger {
    /// The last so many steps that have ended, the newest first, as far as they still count.
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

    /// Goes through a step of the past again; the oldest first, before anything is observed. What
    /// was held in it is taken to have been held until the next.
    pub fn replay(&mut self, cluster: &Cluster, past: &EndedStep) {
        self.pass(past.start);
        let held: BTreeMap<_, _> = past.held.iter().copied().collect();
        self.take_down(cluster, past.start, &past.capacity, |id, _| {
            held.get(&id).copied().unwrap_or_default()
        });
    }

    /// Pretends that the cluster was as it is for the whole window, and that each queue held its
    /// present figure of it all the time: what a snapshot, which has no history, goes on from.
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
