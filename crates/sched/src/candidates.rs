//! The queue of waiting workloads in one action. Owns: the choice of the next one. Workloads of one
//! equivalence class are queued together, and only the first of them is examined.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use model::{PoolId, QueueId, WorkloadId};

use crate::order::{QueueRank, Shares};
use crate::rank::{Rank, by_rank};
use model::equivalence_class::EquivalenceClass;
use reasons::ClassId;

/// Waiting workloads, ranked within each queue, and the ranked queues, which are ranked again only
/// after a change.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    groups: BTreeMap<GroupId, Group>,
    last: GroupId,
    /// The groups that began with a known class.
    begun: BTreeMap<ClassId, GroupId>,
    /// Workloads in another group than the one they began in; `None` if they are dropped.
    moved: BTreeMap<WorkloadId, Option<GroupId>>,
    /// The first workload of each group, by the queue in which it is a candidate.
    ranked: BTreeMap<QueueId, BTreeSet<(Turn, WorkloadId, GroupId)>>,
    /// The child queues with candidates of each queue (`None`: the root of each node pool), and the
    /// first candidate of each.
    orders: BTreeMap<(Option<QueueId>, PoolId), QueueOrder>,
    /// The position of each queue among its siblings.
    queue_ranks: BTreeMap<QueueId, QueueRank>,
    /// Groups that did not begin with a known class: only they can equal another group.
    loose: BTreeSet<GroupId>,
    infeasible: InfeasiblePools,
}

/// Node pools in which no waiting workload can be placed; `None` for workloads without a pool.
pub(crate) type InfeasiblePools = BTreeSet<Option<PoolId>>;

/// Failed turns in order: the workload, and the pool. They come in this order again as long as the
/// state does not change.
#[derive(Debug)]
pub(crate) struct FailedTurns {
    pub(crate) revision: u64,
    pub(crate) infeasible: InfeasiblePools,
    pub(crate) turns: Vec<(WorkloadId, Option<PoolId>)>,
}

impl FailedTurns {
    /// `true` if the turns belong to this state.
    pub(crate) fn are_of(&self, revision: u64, infeasible: &InfeasiblePools) -> bool {
        self.revision == revision && self.infeasible == *infeasible
    }
}

type GroupId = u64;

/// Position in a queue: by priority; of equals, workloads that lack pods of their minimum before
/// those that grow, then the older.
type Turn = (Reverse<u32>, bool, u64);

/// Queues in the order in which they are served, and the first candidate of each.
type QueueOrder = BTreeMap<(QueueRank, QueueId), (WorkloadId, GroupId)>;

/// Equal workloads that are queued for one pool.
#[derive(Debug, Default)]
struct Group {
    /// The class whose members began in the group, without those that have moved.
    row: Option<ClassId>,
    /// Lower bound of the members still in the group: a moved workload does not come back.
    begin: Option<(Rank, WorkloadId)>,
    others: BTreeSet<(Rank, WorkloadId)>,
    /// The node pool that they are queued for; `None` if they may use all pools.
    pool: Option<PoolId>,
    /// Its key in `ranked`.
    first: Option<(QueueId, Turn, WorkloadId)>,
}

impl Candidates {
    /// All waiting workloads, in pools that are not infeasible.
    pub(crate) fn new(shares: &Shares<'_>, infeasible: InfeasiblePools) -> Self {
        let mut candidates = Self { infeasible, ..Self::default() };
        for (row, known) in shares.known.rows() {
            let Some(&(_, first)) = known.members.first() else { continue };
            let choices = shares.cluster.choices(first);
            let may = |pool: &Option<PoolId>| !candidates.infeasible.contains(pool);
            let pool = match choices.is_empty() {
                true => Some(None).filter(may),
                false => choices.iter().map(|&pool| Some(pool)).find(may),
            };
            let Some(pool) = pool else { continue };
            let at = candidates.add(Group { row: Some(row), pool, ..Group::default() });
            candidates.begun.insert(row, at);
            candidates.rank(shares, at);
        }
        for queue in candidates.ranked.keys().copied().collect::<Vec<_>>() {
            candidates.refresh(shares, queue);
        }
        candidates
    }

    /// The candidates after the first `turns` of these failed turns.
    pub(crate) fn after(shares: &Shares<'_>, known: &FailedTurns, turns: usize) -> Self {
        let mut candidates = Self::new(shares, known.infeasible.clone());
        let mut turns = known.turns[..turns].iter();
        while let Some(one) = candidates.first() {
            if candidates.goes_elsewhere(shares, one) {
                continue;
            }
            let Some(turn) = turns.next() else { break };
            debug_assert_eq!(*turn, (one.id, candidates.pool(one)), "the order is the same");
            candidates.fail_equals(shares, one);
        }
        candidates
    }

    fn add(&mut self, group: Group) -> GroupId {
        self.last += 1;
        if group.row.is_none() {
            self.loose.insert(self.last);
        }
        self.groups.insert(self.last, group);
        self.last
    }

    /// The workload to try next: the neediest department, in it the neediest project, in it the
    /// first by rank. Every pool has an order of its own; one pool follows the other.
    pub(crate) fn first(&self) -> Option<Candidate> {
        let top = self.orders.iter().take_while(|((above, _), _)| above.is_none());
        let first = top.filter_map(|(_, line)| line.first_key_value()).next();
        first.map(|(_, &(id, group))| Candidate { id, group })
    }

    /// The node pool to try a workload in; `None` if it may use all pools.
    pub(crate) fn pool(&self, of: Candidate) -> Option<PoolId> {
        self.groups.get(&of.group).and_then(|group| group.pool)
    }

    /// Moves a workload that is now bound to another pool to the queue there; `true` if it is.
    pub(crate) fn goes_elsewhere(&mut self, shares: &Shares<'_>, one: Candidate) -> bool {
        let Some(pool) = self.pool(one) else { return false };
        let choices = shares.cluster.choices(one.id);
        let Some(&first) = choices.first().filter(|_| !choices.contains(&pool)) else {
            return false;
        };
        self.take(shares, one);
        self.put(shares, one.id, Some(first));
        true
    }

    fn queue(shares: &Shares<'_>, id: WorkloadId, pool: Option<PoolId>) -> QueueId {
        let project = shares.cluster.workloads()[id].spec.queue;
        shares.cluster.queue_in(project, pool.unwrap_or_default())
    }

    /// Updates the position of a group after a change of its first member.
    fn rank(&mut self, shares: &Shares<'_>, at: GroupId) {
        let Some(group) = self.groups.get_mut(&at) else { return };
        let row = group.row.and_then(|row| shares.known.row(row));
        let begin = group.begin.map_or(Bound::Unbounded, Bound::Included);
        let mut members =
            row.into_iter().flat_map(|row| row.members.range((begin, Bound::Unbounded)));
        let begun = members.find(|(_, id)| !self.moved.contains_key(id)).copied();
        group.begin = begun.or_else(|| row?.members.last().copied());
        let first = begun.into_iter().chain(group.others.first().copied()).min();
        let pool = group.pool;
        let place = first.map(|((_, seq), id)| {
            let workload = &shares.cluster.workloads()[id];
            let grows = workload.enough(|set| workload.pod_sets[set].counted());
            let priority = Reverse(workload.next_priority());
            (Self::queue(shares, id, pool), (priority, grows, seq), id)
        });
        let before = std::mem::replace(&mut group.first, place);
        if before == place {
            return;
        }
        if let Some((queue, turn, id)) = before
            && let Some(ranked) = self.ranked.get_mut(&queue)
        {
            ranked.remove(&(turn, id, at));
        }
        if let Some((queue, turn, id)) = place {
            self.ranked.entry(queue).or_default().insert((turn, id, at));
        }
    }

    /// Updates the ranks of a queue whose use has changed, and of all queues above it.
    pub(crate) fn refresh(&mut self, shares: &Shares<'_>, leaf: QueueId) {
        let first = self.ranked.get(&leaf).and_then(|ranked| ranked.first());
        let mut sends = first.map(|&(_, id, group)| (id, group));
        for queue in shares.cluster.lineage(leaf) {
            let row = &shares.cluster.queues()[queue];
            let line = self.orders.entry((row.parent, row.pool)).or_default();
            if let Some(turn) = self.queue_ranks.remove(&queue) {
                line.remove(&(turn, queue));
            }
            if let Some((id, group)) = sends {
                let turn = shares.queue_rank(queue, id);
                line.insert((turn, queue), (id, group));
                self.queue_ranks.insert(queue, turn);
            }
            sends = line.first_key_value().map(|(_, &sent)| sent);
            if sends.is_none() {
                self.orders.remove(&(row.parent, row.pool));
            }
        }
    }

    /// Removes a workload from its group.
    fn take(&mut self, shares: &Shares<'_>, one: Candidate) {
        let Some(group) = self.groups.get_mut(&one.group) else { return };
        let pool = group.pool;
        group.others.remove(&(by_rank(shares.cluster, one.id), one.id));
        self.moved.insert(one.id, None);
        self.rank(shares, one.group);
        self.refresh(shares, Self::queue(shares, one.id, pool));
    }

    /// Adds a workload to the group of its equals for this pool.
    fn put(&mut self, shares: &Shares<'_>, id: WorkloadId, pool: Option<PoolId>) {
        let at = self.alike(shares, &EquivalenceClass::of(shares.cluster, id), pool, None);
        let at = at.unwrap_or_else(|| self.add(Group { pool, ..Group::default() }));
        if let Some(group) = self.groups.get_mut(&at) {
            group.others.insert((by_rank(shares.cluster, id), id));
        }
        self.moved.insert(id, Some(at));
        self.rank(shares, at);
        self.refresh(shares, Self::queue(shares, id, pool));
    }

    /// The group of a class in a pool, except one.
    fn alike(
        &self,
        shares: &Shares<'_>,
        class: &EquivalenceClass,
        pool: Option<PoolId>,
        but: Option<GroupId>,
    ) -> Option<GroupId> {
        let first = |at: &GroupId| {
            let group = self.groups.get(at).filter(|group| group.pool == pool)?;
            group.first.filter(|_| Some(*at) != but).map(|(.., id)| id)
        };
        let row = shares.known.row_like(class).and_then(|row| self.begun.get(&row));
        let begun = row.filter(|at| first(at).is_some());
        let is_alike = |id| EquivalenceClass::of(shares.cluster, id) == *class;
        let loose = self.loose.iter().find(|at| first(at).is_some_and(is_alike));
        begun.into_iter().chain(loose).min().copied()
    }

    /// `true` if another group of the class is possible.
    fn may_have_likes(&self, at: GroupId) -> bool {
        self.loose.iter().any(|loose| self.loose.contains(&at) || *loose != at)
    }

    /// Drops a workload.
    pub(crate) fn remove(&mut self, shares: &Shares<'_>, one: Candidate) {
        self.take(shares, one);
    }

    /// Moves workloads whose class has changed to other groups.
    pub(crate) fn regroup(&mut self, shares: &Shares<'_>, ids: &BTreeSet<WorkloadId>) {
        for &id in ids {
            let Some(group) = self.group_of(shares, id) else { continue };
            let one = Candidate { id, group };
            let pool = self.pool(one);
            self.take(shares, one);
            self.put(shares, id, pool);
        }
    }

    /// The group in which a workload is a candidate.
    fn group_of(&self, shares: &Shares<'_>, id: WorkloadId) -> Option<GroupId> {
        if let Some(moved) = self.moved.get(&id) {
            return *moved;
        }
        let (row, _) = shares.known.row_of(id)?;
        self.begun.get(&row).copied().filter(|at| self.groups.contains_key(at))
    }

    /// A place that a workload could not get is not available to its equals either: the group goes
    /// on to its next pool, or is dropped.
    pub(crate) fn fail_equals(&mut self, shares: &Shares<'_>, one: Candidate) {
        let Some(mut group) = self.groups.remove(&one.group) else { return };
        let queue = Self::queue(shares, one.id, group.pool);
        if let (Some((queue, turn, id)), at) = (group.first.take(), one.group)
            && let Some(ranked) = self.ranked.get_mut(&queue)
        {
            ranked.remove(&(turn, id, at));
        }
        let choices = shares.cluster.choices(one.id);
        let at = choices.iter().position(|&choice| Some(choice) == group.pool);
        let mut rest = at.into_iter().flat_map(|at| &choices[at + 1..]);
        match rest.find(|pool| !self.infeasible.contains(&Some(**pool))) {
            Some(&next) => {
                group.pool = Some(next);
                self.join(shares, one, group);
                self.refresh(shares, Self::queue(shares, one.id, Some(next)));
            }
            None => {
                for (_, id) in group.others {
                    self.moved.insert(id, None);
                }
            }
        }
        self.refresh(shares, queue);
    }

    /// Moves a group to another pool, and merges it with a group of equal workloads there.
    fn join(&mut self, shares: &Shares<'_>, one: Candidate, mut group: Group) {
        let other = self.may_have_likes(one.group).then(|| {
            let class = EquivalenceClass::of(shares.cluster, one.id);
            self.alike(shares, &class, group.pool, Some(one.group))
        });
        if let Some(other) = other.flatten()
            && let Some(other) = self.groups.remove(&other)
        {
            if let Some((queue, turn, id)) = other.first
                && let Some(ranked) = self.ranked.get_mut(&queue)
            {
                ranked.retain(|ranked| (ranked.0, ranked.1) != (turn, id));
            }
            if group.row.is_none() {
                (group.row, group.begin) = (other.row, other.begin);
            }
            group.others.extend(other.others);
        }
        if let Some(row) = group.row {
            self.begun.insert(row, one.group);
        }
        for (_, id) in &group.others {
            self.moved.insert(*id, Some(one.group));
        }
        self.groups.insert(one.group, group);
        self.rank(shares, one.group);
    }
}

/// A workload that takes its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) id: WorkloadId,
    group: GroupId,
}
