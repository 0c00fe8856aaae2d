//! The search for victims: scenario after scenario, each tried by placing all jobs involved. Owns:
//! the order in which victims are added, and the choice of those that lose their places. Does not
//! know about: the rules, which are each action's [`Rule`]. Source: scheduling reference §14.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, PodId, QueueId, WorkloadId};
use units::Resources;

use super::allocate::{pipeline, place_all, queue_depth};
use super::amounts::amounts;
use super::jobs::{self, Evicted};
use super::order::{self, Change, Line};
use super::place::Aim;
use super::rules::{Books, Outcome, Rule};
use super::signature::Failed;
use crate::session::Session;
use reasons::Cause;

/// Makes room by a rule for each pending job, once.
pub(super) fn run(s: &mut Session<'_>, rule: &dyn Rule) {
    let mut failed = Failed::default();
    let none = Evicted::new();
    let pending = Line::pending(s, queue_depth(s));
    let mut line = pending.clone();
    while let Some(id) =
        line.pop(s, &|id| Change::Plus(jobs::expected(s, &jobs::next_tasks(s, id, &none))))
    {
        if !s.may_try() {
            return;
        }
        let patient_until = s.patient_until(id);
        if patient_until > s.now {
            s.wake(patient_until);
            continue;
        }
        let tasks = jobs::next_tasks(s, id, &none);
        let asked = jobs::asked(s, &tasks);
        if failed.covers(s, id, rule.is_per_queue()) || !rule.may_evict(s, id, asked) {
            continue;
        }
        let search = Search::new(s, rule, id, tasks, &pending);
        if !search.run(s) {
            failed.insert(s, id, rule.is_per_queue());
        }
    }
}

/// Tasks of a job that are evicted together.
struct Step {
    job: WorkloadId,
    tasks: Vec<PodId>,
}

/// The search for one job.
struct Search<'r> {
    rule: &'r dyn Rule,
    id: WorkloadId,
    tasks: Vec<PodId>,
    pending: &'r Line,
    /// The queues before any eviction, and the active tasks of each possible victim.
    books: Books,
    active: BTreeMap<WorkloadId, Vec<PodId>>,
    /// Nodes on which anything is or was free.
    open: BTreeSet<NodeId>,
    /// The cause given to each victim: its numbers are those before any eviction.
    causes: BTreeMap<WorkloadId, Cause>,
}

impl<'r> Search<'r> {
    fn new(
        s: &Session<'_>,
        rule: &'r dyn Rule,
        id: WorkloadId,
        tasks: Vec<PodId>,
        pending: &'r Line,
    ) -> Self {
        let all = !jobs::all_need_gpus(s, id);
        let open = s.nodes().filter(|(_, node)| all || node.free(false).gpu_millis > 0);
        let open = open.map(|(node, _)| node).collect();
        let victims = rule.victims(s, id).into_iter();
        let active = victims.map(|victim| (victim, jobs::active(s, victim))).collect();
        let books = Books::of(s);
        Self { rule, id, tasks, pending, books, active, open, causes: BTreeMap::new() }
    }

    /// Grows the job task by task; victims of fewer tasks are victims of more.
    fn run(mut self, s: &mut Session<'_>) -> bool {
        let start = s.cluster.checkpoint();
        let mut recorded = Vec::new();
        for tasks in 1..=self.tasks.len() {
            s.cluster.rollback(start);
            let Some((evicted, victims)) = self.grow(s, tasks, &recorded) else {
                s.cluster.rollback(start);
                return false;
            };
            recorded = victims;
            if tasks == self.tasks.len() {
                self.tell(s, &evicted);
            }
        }
        !self.tasks.is_empty()
    }

    /// Finds the first scenario in which `tasks` tasks of the job have a place.
    fn grow(
        &mut self,
        s: &mut Session<'_>,
        tasks: usize,
        recorded: &[PodId],
    ) -> Option<(Evicted, Vec<PodId>)> {
        let mut room = Room::of(s, &self.tasks[..tasks]);
        room.add(s, recorded);
        let set: BTreeSet<PodId> = recorded.iter().copied().collect();
        let known = |pod: &PodId| set.contains(pod);
        if !recorded.is_empty()
            && let Some(evicted) = self.attempt(s, tasks, recorded, &[], recorded.to_vec())
        {
            return Some(self.victims(s, evicted));
        }
        let mut victims = Victims::new(s, &self.active);
        let mut potential: Vec<Step> = Vec::new();
        while let Some(step) = victims.next(s) {
            if step.tasks.iter().all(known) {
                continue;
            }
            let (id, job) = (self.id, step.job);
            let (rule, asked) = (self.rule, jobs::asked(s, &self.tasks));
            self.causes.entry(job).or_insert_with(|| rule.cause(s, id, asked, job));
            room.add(s, &step.tasks);
            potential.push(step);
            if !room.is_enough() {
                continue;
            }
            if s.trials_left == 0 {
                s.may_try();
                return None;
            }
            if let Some(evicted) = self.scenario(s, tasks, recorded, &potential) {
                return Some(self.victims(s, evicted));
            }
        }
        None
    }

    /// Tries each node of the latest victim; the rule judges the first on which the job finds its
    /// place.
    fn scenario(
        &mut self,
        s: &mut Session<'_>,
        tasks: usize,
        recorded: &[PodId],
        potential: &[Step],
    ) -> Option<Evicted> {
        let latest = potential.last()?;
        let added = potential.iter().flat_map(|step| &step.tasks);
        let added = added.filter(|pod| !recorded.contains(pod));
        let all: Vec<PodId> = recorded.iter().chain(added).copied().collect();
        let nodes: BTreeSet<NodeId> =
            latest.tasks.iter().filter_map(|&pod| node_of(s, pod)).collect();
        for node in nodes {
            let here = |step: &&Step| step.tasks.iter().any(|&pod| node_of(s, pod) == Some(node));
            let jobs: BTreeSet<_> = potential.iter().filter(here).map(|step| step.job).collect();
            let of = |step: &&Step| jobs.contains(&step.job);
            let going: Vec<PodId> =
                potential.iter().filter(of).flat_map(|step| &step.tasks).copied().collect();
            let start = s.cluster.checkpoint();
            let evicted = self.evict(s, recorded.iter().chain(&going).copied());
            if self.place(s, tasks, &evicted) {
                if self.is_just(s, &evicted, &all) {
                    return Some(evicted);
                }
                s.cluster.rollback(start);
                return None;
            }
            s.cluster.rollback(start);
        }
        None
    }

    /// One trial in which exactly these tasks are stopped.
    fn attempt(
        &mut self,
        s: &mut Session<'_>,
        tasks: usize,
        recorded: &[PodId],
        going: &[PodId],
        all: Vec<PodId>,
    ) -> Option<Evicted> {
        let start = s.cluster.checkpoint();
        let evicted = self.evict(s, recorded.iter().chain(going).copied());
        if self.place(s, tasks, &evicted) && self.is_just(s, &evicted, &all) {
            return Some(evicted);
        }
        s.cluster.rollback(start);
        None
    }

    fn evict(&mut self, s: &mut Session<'_>, tasks: impl Iterator<Item = PodId>) -> Evicted {
        let mut evicted = Evicted::new();
        for pod in tasks {
            if evicted.contains_key(&pod) {
                continue;
            }
            self.open.extend(node_of(s, pod));
            evicted.insert(pod, s.cluster.pods()[pod].binding.clone());
            s.set_target(pod, None, false);
        }
        evicted
    }

    /// Offers places in the order of queues to the job and to all stopped jobs, as reservations.
    /// `false` if the job gets none.
    fn place(&self, s: &mut Session<'_>, tasks: usize, evicted: &Evicted) -> bool {
        let tasks = &self.tasks[..tasks];
        let mut waiting: BTreeSet<WorkloadId> =
            evicted.keys().map(|&pod| s.cluster.pods()[pod].workload).collect();
        waiting.insert(self.id);
        let mut line = self.pending.clone();
        for &id in &waiting {
            line.remove(s, id);
            line.push(s, id);
        }
        let next = |s: &Session<'_>, id: WorkloadId| {
            if id == self.id { tasks.to_vec() } else { jobs::next_tasks(s, id, evicted) }
        };
        let change = |s: &Session<'_>, id| Change::Plus(jobs::expected(s, &next(s, id)));
        let mut placed = false;
        while let Some(id) = line.pop(s, &|id| change(s, id)) {
            if !waiting.contains(&id) {
                continue;
            }
            let open = |node| self.open.contains(&node);
            let reserve = |s: &mut Session<'_>, pod, to| pipeline(s, evicted, pod, to);
            let found =
                s.may_try() && place_all(s, id, &next(s, id), &open, Aim::Reserve, &reserve);
            placed |= found && id == self.id;
            let lacks = |pod: &PodId| {
                let row = &s.cluster.pods()[*pod];
                row.workload == id && row.binding.effective().is_none()
            };
            if !found && id == self.id {
                return false;
            }
            if found && id != self.id && evicted.keys().any(lacks) {
                line.push(s, id);
            } else {
                waiting.remove(&id);
            }
            if waiting.is_empty() {
                break;
            }
        }
        placed
    }

    fn is_just(&self, s: &Session<'_>, evicted: &Evicted, all: &[PodId]) -> bool {
        let outcome = Outcome {
            id: self.id,
            asked: jobs::asked(s, &self.tasks),
            involved: jobs::involved(s, &self.tasks),
            books: &self.books,
            active: &self.active,
            all,
            evicted,
        };
        self.rule.is_just(s, &outcome)
    }

    /// The evicted tasks, and those of them that lost or changed their places.
    fn victims(&self, s: &Session<'_>, evicted: Evicted) -> (Evicted, Vec<PodId>) {
        let changed = |(&pod, before): (&PodId, &_)| {
            (s.cluster.pods()[pod].binding != *before).then_some(pod)
        };
        let victims = evicted.iter().filter_map(changed).collect();
        (evicted, victims)
    }

    fn tell(&self, s: &mut Session<'_>, evicted: &Evicted) {
        for (&pod, before) in evicted {
            let row = &s.cluster.pods()[pod];
            if row.binding != *before
                && let Some(cause) = self.causes.get(&row.workload)
            {
                s.causes.insert(pod, cause.clone());
            }
        }
    }
}

fn node_of(s: &Session<'_>, pod: PodId) -> Option<NodeId> {
    s.cluster.pods()[pod].binding.effective().map(|place| place.node)
}

/// Possible victims in their order, step by step.
struct Victims {
    line: Line,
    left: BTreeMap<WorkloadId, Vec<PodId>>,
    /// Resources taken already, by queue.
    popped: BTreeMap<QueueId, Resources>,
}

impl Victims {
    fn new(s: &Session<'_>, active: &BTreeMap<WorkloadId, Vec<PodId>>) -> Self {
        let mut victims =
            Self { line: Line::reversed(), left: active.clone(), popped: BTreeMap::new() };
        for &id in active.keys() {
            victims.push(s, id);
        }
        victims
    }

    fn push(&mut self, s: &Session<'_>, id: WorkloadId) {
        let left = &self.left[&id];
        let active = |set: usize| {
            let of = left.iter().filter(|&&pod| s.cluster.pods()[pod].set as usize == set);
            u32::try_from(of.count()).unwrap_or(u32::MAX)
        };
        self.line.push_ranked(s, id, order::rank(s, id, active));
    }

    fn next(&mut self, s: &Session<'_>) -> Option<Step> {
        let Self { line, left, popped } = self;
        let queue = |id: WorkloadId| s.queue_of(id);
        let job = line.pop(s, &|id| {
            let taken = popped.get(&queue(id)).copied().unwrap_or_default();
            Change::Minus(taken + jobs::held(s, &left[&id]))
        })?;
        let remaining = left.get_mut(&job)?;
        let tasks = jobs::next_to_evict(s, job, remaining);
        remaining.retain(|pod| !tasks.contains(pod));
        let more = !remaining.is_empty();
        *popped.entry(queue(job)).or_default() += jobs::held(s, &tasks);
        if more {
            self.push(s, job);
        }
        Some(Step { job, tasks })
    }
}

/// Quick check of the GPUs that are free or would be freed, by sums per node: it may only prove
/// that they are not enough.
struct Room {
    millis: BTreeMap<NodeId, u64>,
    /// GPU thousandths that each task needs, descending.
    needs: Vec<u64>,
}

impl Room {
    fn of(s: &Session<'_>, tasks: &[PodId]) -> Self {
        let millis = s.nodes().map(|(id, node)| (id, node.free(false).gpu_millis)).collect();
        let mut needs: Vec<_> =
            tasks.iter().map(|&pod| amounts(jobs::request(s, pod)).gpu_millis).collect();
        needs.sort_unstable_by(|left, right| right.cmp(left));
        Self { millis, needs }
    }

    fn add(&mut self, s: &Session<'_>, victims: &[PodId]) {
        for &pod in victims {
            if let Some(place) = s.cluster.pods()[pod].binding.effective() {
                *self.millis.entry(place.node).or_default() += place.gpu_millis();
            }
        }
    }

    /// `true` if each need finds a node, the largest on the one with the most.
    fn is_enough(&self) -> bool {
        let mut nodes: std::collections::BinaryHeap<u64> = self.millis.values().copied().collect();
        self.needs.iter().all(|&need| {
            let left = nodes.pop().and_then(|most| most.checked_sub(need));
            left.is_some_and(|left| {
                nodes.push(left);
                true
            })
        })
    }
}
