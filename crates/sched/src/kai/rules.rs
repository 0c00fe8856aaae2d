//! Victims of each action. Owns: the jobs that may evict, the jobs that may be evicted, and the
//! check of the result. Source: scheduling reference §15 – §17.

use std::collections::{BTreeMap, BTreeSet};

use model::{GpuRequest, PodId, QueueId, WorkloadId};
use units::{Instant, Kind, Resources};

use super::jobs::{self, Evicted};
use super::order;
use crate::policy::{self, Profile, RuntimeFrom};
use crate::session::Session;
use crate::{Placement, Policy};
use reasons::{Cause, Strategy};

/// Resources of the queues at the start of a search: used, and the non-preemptible part of them.
pub(super) struct Books(BTreeMap<QueueId, (Resources, Resources)>);

impl Books {
    pub(super) fn of(s: &Session<'_>) -> Self {
        let queues = s.cluster.queues().iter();
        Self(queues.map(|(id, q)| (id, (q.allocated, q.allocated_non_preemptible))).collect())
    }

    fn held(&self, queue: QueueId) -> Resources {
        self.0[&queue].0
    }

    fn fixed(&self, queue: QueueId) -> Resources {
        self.0[&queue].1
    }
}

/// Result of a scenario.
pub(super) struct Outcome<'a> {
    pub(super) id: WorkloadId,
    /// Request of the whole job.
    pub(super) asked: Resources,
    /// The part of the request that counts in the balance between queues.
    pub(super) involved: Resources,
    pub(super) books: &'a Books,
    /// Active tasks of each possible victim at the start.
    pub(super) active: &'a BTreeMap<WorkloadId, Vec<PodId>>,
    /// The tasks of the scenario, in the order in which they were added.
    pub(super) all: &'a [PodId],
    /// The tasks that were stopped; they may have a place again.
    pub(super) evicted: &'a Evicted,
}

impl Outcome<'_> {
    /// Tasks that do not run in their earlier places.
    fn stopped(&self, s: &Session<'_>) -> Vec<PodId> {
        let changed = |pod: &PodId| {
            self.evicted.get(pod).is_some_and(|before| s.cluster.pods()[*pod].binding != *before)
        };
        self.all.iter().copied().filter(changed).collect()
    }

    /// Tasks that have lost their places.
    fn lost(&self, s: &Session<'_>) -> Vec<PodId> {
        let none = |pod: &PodId| s.cluster.pods()[*pod].binding.effective().is_none();
        self.all.iter().copied().filter(none).collect()
    }

    /// `true` if it takes a job below its minimum that `protects` keeps from that.
    fn breaks(&self, s: &Session<'_>, protects: impl Fn(WorkloadId) -> bool) -> bool {
        let stopped = self.stopped(s);
        let jobs: BTreeSet<_> = stopped.iter().map(|&pod| s.cluster.pods()[pod].workload).collect();
        jobs.into_iter().any(|job| {
            let left = self.active[&job].iter().filter(|pod| !stopped.contains(pod));
            let left: Vec<_> = left.map(|&pod| s.cluster.pods()[pod].set as usize).collect();
            let count = |set: usize| {
                u32::try_from(left.iter().filter(|&&of| of == set).count()).unwrap_or(u32::MAX)
            };
            !s.cluster.workloads()[job].enough(count) && protects(job)
        })
    }
}

/// Rules of an action for victims.
pub(super) trait Rule {
    /// `true` if the job may evict others at all.
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool;

    /// The jobs that may be its victims.
    fn victims(&self, s: &Session<'_>, id: WorkloadId) -> Vec<WorkloadId>;

    /// `true` if the result may be carried out.
    fn is_just(&self, s: &Session<'_>, outcome: &Outcome<'_>) -> bool;

    /// Time before which a job may not be taken below its minimum.
    fn safe_until(&self, _: &Session<'_>, _: WorkloadId, _victim: WorkloadId) -> Instant {
        Instant::default()
    }

    /// `true` if a failed job stands only for jobs of its own queue.
    fn is_per_queue(&self) -> bool {
        true
    }

    /// The cause given to a victim.
    fn cause(&self, s: &Session<'_>, id: WorkloadId, asked: Resources, victim: WorkloadId)
    -> Cause;
}

/// Preemptible jobs that have a place, from this or an earlier cycle, except the preemptor. A job
/// that would only start now does not start if it gives way.
fn preemptible<'a>(s: &'a Session<'_>, id: WorkloadId) -> impl Iterator<Item = WorkloadId> + 'a {
    let own = s.pool_of(id);
    let jobs = s.cluster.workloads().iter();
    jobs.filter(move |(victim, row)| {
        *victim != id
            && row.spec.preemptible
            && row.placed > 0
            && (!s.cluster.is_divided() || s.pool_of(*victim) == own)
    })
    .map(|(victim, _)| victim)
}

/// `true` if a job that cannot be preempted stays within the quota of these queues.
fn fits_quota<'a>(
    s: &Session<'_>,
    outcome: (WorkloadId, Resources),
    mut queues: impl Iterator<Item = (QueueId, Resources)> + 'a,
) -> bool {
    let (id, asked) = outcome;
    s.cluster.workloads()[id].spec.preemptible
        || queues
            .all(|(queue, fixed)| (fixed + asked).fits_in(s.cluster.queues()[queue].share.quota))
}

/// Reclaims resources that other queues use above their share.
pub(super) struct Reclaim;

impl Rule for Reclaim {
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool {
        let leaf = s.queue_of(id);
        let queue = &s.cluster.queues()[leaf];
        let fixed = queue.allocated_non_preemptible;
        (queue.allocated + asked).fits_in(s.fair()[&leaf])
            && fits_quota(s, (id, asked), std::iter::once((leaf, fixed)))
    }

    fn victims(&self, s: &Session<'_>, id: WorkloadId) -> Vec<WorkloadId> {
        let may = |victim: &WorkloadId| {
            s.queue_of(*victim) != s.queue_of(id)
                && (jobs::is_elastic(s, *victim) || self.safe_until(s, id, *victim) <= s.now)
        };
        preemptible(s, id).filter(may).collect()
    }

    fn is_just(&self, s: &Session<'_>, outcome: &Outcome<'_>) -> bool {
        !outcome.breaks(s, |victim| self.safe_until(s, outcome.id, victim) > s.now)
            && Ledger::new(s, outcome).balances()
    }

    /// Its guaranteed run time is that of the first queue that sets one, from its branch of the
    /// tree upwards, or from its own queue upwards.
    fn safe_until(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Instant {
        let kai = match s.policy.profile {
            Profile::Kai(kai) => kai,
            Profile::Default => policy::Kai::default(),
        };
        let leaf = s.queue_of(victim);
        let first = match kai.runtime_from {
            RuntimeFrom::Leaf => leaf,
            RuntimeFrom::Branch => branches(s, s.queue_of(id), leaf).map_or(leaf, |(_, own)| own),
        };
        let span_ms = s.guaranteed_ms(first, |share| share.reclaim_min_runtime_ms);
        let start = s.cluster.workloads()[victim].last_start;
        start.map_or(Instant::default(), |start| start.plus_ms(span_ms))
    }

    fn cause(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        victim: WorkloadId,
    ) -> Cause {
        let (leaf, from) = (s.queue_of(id), s.queue_of(victim));
        let (winner, loser) = branches(s, leaf, from).unwrap_or((leaf, from));
        let kind = Kind::ALL.into_iter().find(|&kind| asked[kind] > 0).unwrap_or(Kind::Gpu);
        let row = |queue: QueueId| &s.cluster.queues()[queue];
        let in_quota = (row(winner).allocated + asked).fits_in(row(winner).share.quota)
            && !row(loser).allocated.fits_in(row(loser).share.quota);
        Cause::Reclaimed {
            strategy: if in_quota {
                Strategy::QuotaGuaranteed
            } else {
                Strategy::FairShareMaintained
            },
            beneficiary: s.reference(id),
            requested: asked[kind],
            loser: s.numbers(loser, kind),
            winner: s.numbers(winner, kind),
            lost: s.lost(victim),
        }
    }
}

/// The ancestors (or selves) of both queues just below the point where their paths part; `None` if
/// the queues are equal.
fn branches(s: &Session<'_>, left: QueueId, right: QueueId) -> Option<(QueueId, QueueId)> {
    let path = |queue: QueueId| {
        let mut path: Vec<_> = s.cluster.lineage(queue).collect();
        path.reverse();
        path
    };
    path(left).into_iter().zip(path(right)).find(|(left, right)| left != right)
}

/// Resources of the queues during the check of a reclaim scenario, step by step.
struct Ledger<'a> {
    s: &'a Session<'a>,
    outcome: &'a Outcome<'a>,
    left: BTreeMap<QueueId, Resources>,
    touched: BTreeSet<QueueId>,
}

impl<'a> Ledger<'a> {
    fn new(s: &'a Session<'a>, outcome: &'a Outcome<'a>) -> Self {
        let left = outcome.books.0.iter().map(|(&queue, &(held, _))| (queue, held)).collect();
        Self { s, outcome, left, touched: BTreeSet::new() }
    }

    fn balances(mut self) -> bool {
        let steps = self.steps();
        steps.into_iter().all(|(queue, step)| self.take(queue, step)) && self.keeps_balance()
    }

    /// The resources taken from each queue: tasks beyond the minimum one by one, the rest of a job
    /// together.
    fn steps(&self) -> Vec<(QueueId, Resources)> {
        let (s, outcome) = (self.s, self.outcome);
        let taken = self.taken();
        let mut jobs: Vec<WorkloadId> = Vec::new();
        for &pod in &taken {
            let job = s.cluster.pods()[pod].workload;
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
        let taken: BTreeSet<PodId> = taken.into_iter().collect();
        let mut steps = Vec::new();
        for job in jobs {
            let queue = s.queue_of(job);
            let mut left = outcome.active[&job].clone();
            while !left.is_empty() {
                let step = jobs::next_to_evict(s, job, &left);
                left.retain(|pod| !step.contains(pod));
                let lost = step.iter().filter(|&pod| taken.contains(pod));
                let part: Resources = lost.map(|&pod| self.held_before(pod)).sum();
                if part != Resources::ZERO {
                    steps.push((queue, part));
                }
            }
        }
        steps.sort_by_key(|(queue, _)| *queue);
        steps
    }

    /// Tasks that count as taken.
    fn taken(&self) -> Vec<PodId> {
        let consolidating = match self.s.policy.profile {
            Profile::Kai(kai) => kai.consolidating_reclaim,
            Profile::Default => true,
        };
        if consolidating { self.outcome.lost(self.s) } else { self.outcome.all.to_vec() }
    }

    /// Requested and taken amounts of the resources in which balance is kept.
    fn involved(&self) -> Resources {
        let counted = |pod| jobs::without_mig(self.s, pod, self.held_before(pod));
        let taken: Resources = self.taken().into_iter().map(counted).sum();
        taken + self.outcome.involved
    }

    fn held_before(&self, pod: PodId) -> Resources {
        let now = &self.s.cluster.pods()[pod].binding;
        let place = self.outcome.evicted.get(&pod).unwrap_or(now).effective();
        place.map_or(Resources::ZERO, |place| self.s.cluster.amounts(pod, place))
    }

    /// Applies one step; `true` if one of the two strategies allows it.
    fn take(&mut self, victim: QueueId, step: Resources) -> bool {
        let (s, outcome) = (self.s, self.outcome);
        let Some((taker, giver)) = branches(s, s.queue_of(outcome.id), victim) else {
            return false;
        };
        let left = self.left[&giver];
        let quota = |queue: QueueId| s.cluster.queues()[queue].share.quota;
        let maintains_share = !left.fits_in(order::allocatable(s, giver));
        let guarantees_quota = (outcome.books.held(taker) + outcome.asked).fits_in(quota(taker))
            && !left.fits_in(quota(giver));
        if !maintains_share && !guarantees_quota {
            return false;
        }
        for queue in s.cluster.lineage(victim) {
            let left = self.left.entry(queue).or_default();
            *left = left.saturating_sub(step);
            self.touched.insert(queue);
        }
        true
    }

    /// `true` if no queue ends further above its fair share than the sibling it takes from, and
    /// non-preemptible work stays within the quota.
    fn keeps_balance(&self) -> bool {
        let (s, outcome) = (self.s, self.outcome);
        let leaf = s.queue_of(outcome.id);
        let lineage: Vec<_> = s.cluster.lineage(leaf).collect();
        let involved = self.involved();
        let fixed = lineage.iter().map(|&queue| (queue, outcome.books.fixed(queue)));
        fits_quota(s, (outcome.id, outcome.asked), fixed)
            && lineage.iter().all(|&queue| {
                let parent = s.cluster.queues()[queue].parent;
                let sibling = |&&other: &&QueueId| {
                    other != queue && s.cluster.queues()[other].parent == parent
                };
                self.touched
                    .iter()
                    .filter(sibling)
                    .all(|&other| self.may_exceed(queue, other, involved))
            })
    }

    fn may_exceed(&self, queue: QueueId, sibling: QueueId, involved: Resources) -> bool {
        let saturation_millis = match self.s.policy.profile {
            Profile::Kai(kai) => kai.saturation_millis,
            Profile::Default => 1000,
        };
        let held = self.left[&queue] + self.outcome.asked;
        let (fair, theirs) = (self.s.fair()[&queue], self.s.fair()[&sibling]);
        let wide = |amount: u64| u128::from(amount);
        Kind::ALL.into_iter().filter(|&kind| involved[kind] > 0).all(|kind| {
            let above = held[kind] > fair[kind] && theirs[kind] > 0;
            // ratio(queue) · multiplier ≥ ratio(sibling), without dividing.
            let own = wide(held[kind]) * wide(theirs[kind]);
            let other = wide(self.left[&sibling][kind]) * wide(fair[kind]);
            let reaches = own.saturating_mul(wide(saturation_millis)) >= other.saturating_mul(1000);
            !(above && (fair[kind] == 0 || reaches))
        })
    }
}

/// Preempts lower priorities of the queue.
pub(super) struct Preempt;

impl Rule for Preempt {
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool {
        let fixed = |queue| (queue, s.cluster.queues()[queue].allocated_non_preemptible);
        fits_quota(s, (id, asked), s.cluster.lineage(s.queue_of(id)).map(fixed))
    }

    fn victims(&self, s: &Session<'_>, id: WorkloadId) -> Vec<WorkloadId> {
        let priority = |id: WorkloadId| s.cluster.workloads()[id].spec.priority;
        let may = |victim: &WorkloadId| {
            s.queue_of(*victim) == s.queue_of(id)
                && priority(*victim) < priority(id)
                && (jobs::is_elastic(s, *victim) || self.safe_until(s, id, *victim) <= s.now)
        };
        preemptible(s, id).filter(may).collect()
    }

    fn is_just(&self, s: &Session<'_>, outcome: &Outcome<'_>) -> bool {
        !outcome.breaks(s, |victim| self.safe_until(s, outcome.id, victim) > s.now)
    }

    fn safe_until(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> Instant {
        s.safe_until(victim, |share| share.preempt_min_runtime_ms)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        let priority = |id: WorkloadId| s.cluster.workloads()[id].spec.priority;
        Cause::Preempted {
            beneficiary: s.reference(id),
            priority: priority(victim),
            beneficiary_priority: priority(id),
            lost: s.lost(victim),
        }
    }
}

/// Moves pods to reduce fragmentation.
pub(super) struct Consolidation;

impl Consolidation {
    /// `true` if any pod may be moved.
    pub(super) fn is_on(policy: &Policy) -> bool {
        policy.consolidation_moves_max > 0 && !policy.placements().any(Placement::spreads_nodes)
    }
}

impl Rule for Consolidation {
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool {
        let gpus = || s.nodes().flat_map(|(_, node)| &node.gpus);
        let free_millis: u64 = gpus().map(|gpu| gpu.free_millis(false)).sum();
        let free_bytes: u128 = gpus()
            .map(|gpu| u128::from(gpu.free_millis(false)) * u128::from(gpu.memory_bytes) / 1000)
            .sum();
        let none = Evicted::new();
        let wanted =
            jobs::next_tasks(s, id, &none).into_iter().map(|pod| match jobs::request(s, pod).gpu {
                GpuRequest::Memory { devices, bytes } => u128::from(devices) * u128::from(bytes),
                GpuRequest::Whole(_) | GpuRequest::Share { .. } | GpuRequest::Mig(_) => 0,
            });
        Self::is_on(s.policy)
            && s.cluster.workloads()[id].spec.preemptible
            && asked.gpu_millis <= free_millis
            && wanted.sum::<u128>() <= free_bytes
    }

    fn victims(&self, s: &Session<'_>, id: WorkloadId) -> Vec<WorkloadId> {
        preemptible(s, id).collect()
    }

    /// No workload loses its place. One victim more than the maximum is allowed, as described.
    fn is_just(&self, s: &Session<'_>, outcome: &Outcome<'_>) -> bool {
        let jobs: BTreeSet<_> =
            outcome.all.iter().map(|&pod| s.cluster.pods()[pod].workload).collect();
        jobs.len() <= s.policy.consolidation_moves_max.saturating_add(1)
            && outcome.lost(s).is_empty()
    }

    fn is_per_queue(&self) -> bool {
        false
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        Cause::Consolidated { beneficiary: s.reference(id), lost: s.lost(victim) }
    }
}
