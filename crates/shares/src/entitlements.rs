//! The fair shares of all queues, kept from one decision to the next. Owns: the selection of the
//! shares that can change when some queues demand more or less. The kept shares equal the result of
//! [`fair_shares`].
//!
//! Siblings divide the share of their parent. A sibling whose demand grows gets more only if its
//! share covered its demand before: mostly no other share changes, and the others need not be
//! visited.

use std::collections::{BTreeMap, BTreeSet};

use model::{Claim, Cluster, Demand, NodeId, PoolId, QueueId, Supply, WorkloadId};
use units::{Kind, Resources};

use crate::Rules;
use crate::bounded::Meeting;
use crate::division::divide_one;
use crate::levels::{Shares, divide_pool, fair_shares};

/// The fair share of each queue, and the state to update it.
#[derive(Debug, Clone, Default)]
pub struct Entitlements {
    /// The fair share of each queue.
    pub fair: BTreeMap<QueueId, Resources>,
    /// Queues whose fair shares have changed since the caller last took this set.
    pub moved: BTreeSet<QueueId>,
    /// Part of each queue's demand that counts.
    pub demand: Demand,
    /// Counted demand of each queue at the last update.
    pub requested: BTreeMap<QueueId, Resources>,
    groups: BTreeMap<Siblings, Group>,
    /// GPUs that each workload can use.
    supply: Supply,
    /// `true` if the GPUs that some work can use have changed since the last update.
    is_supply_new: bool,
    meetings: BTreeMap<QueueId, Meeting>,
    /// Non-preemptible holdings of siblings whose quotas exceeded the capacity at the last update.
    fixed: BTreeMap<Siblings, Vec<Resources>>,
}

/// GPUs that projects divide since their work can use no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The projects.
    pub queues: Vec<QueueId>,
    /// Nodes that have the GPUs.
    pub nodes: BTreeSet<NodeId>,
    /// GPU thousandths.
    pub gpu_millis: u64,
}

/// Children of a queue, or the queues without a parent, in a node pool.
type Siblings = (Option<QueueId>, PoolId);

/// Sums over siblings.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    total: Resources,
    /// Sum of the demands within quotas, by kind.
    promised: [u128; 3],
    /// Number of siblings that want more than their quota, by kind.
    hungry: [usize; 3],
}

const fn place(kind: Kind) -> usize {
    match kind {
        Kind::Gpu => 0,
        Kind::Cpu => 1,
        Kind::Memory => 2,
    }
}

/// Remaining work of an update.
#[derive(Default)]
struct Work {
    /// Siblings by their distance from the root, and those with a changed demand.
    groups: BTreeMap<(usize, Siblings), BTreeSet<QueueId>>,
    /// Siblings that are divided again even if all ask for as much as before.
    due: BTreeSet<Siblings>,
    /// True if a decision about what waited before may be another one.
    matters: bool,
}

impl Entitlements {
    /// Recomputes the GPUs that each workload can use from all nodes and workloads.
    pub fn renew_supply(&mut self, cluster: &Cluster) {
        self.supply.renew(cluster);
    }

    /// Recomputes the GPUs that these workloads can use.
    pub fn update_supply(&mut self, cluster: &Cluster, changed: &BTreeSet<WorkloadId>) {
        self.is_supply_new |= self.supply.update(cluster, changed);
    }

    /// Recomputes the shares of all queues.
    pub fn renew(&mut self, cluster: &Cluster, rules: Rules) {
        let shares = fair_shares(cluster, rules, &self.demand, &self.supply);
        self.set(cluster, shares.fair);
        self.meetings = shares.meetings;
    }

    /// The GPUs that a project divides with others since its work can use no others; `None` if they
    /// bound neither its share nor that of a queue above it.
    #[must_use]
    pub fn common(&self, cluster: &Cluster, queue: QueueId) -> Option<Common> {
        let Meeting { set, queues } =
            cluster.lineage(queue).find_map(|id| self.meetings.get(&id))?;
        if !queues.contains(&queue) {
            return None;
        }
        let groups = self.supply.groups(cluster.queues()[queue].pool)?;
        let (nodes, gpu_millis) = (groups.nodes_of(*set), groups.of(*set));
        Some(Common { queues: queues.to_vec(), nodes, gpu_millis })
    }

    /// Sets the fair shares to given ones instead of computed ones.
    pub fn set(&mut self, cluster: &Cluster, fair: BTreeMap<QueueId, Resources>) {
        let before = std::mem::replace(&mut self.fair, fair);
        let demand = &self.demand;
        self.requested = cluster.queues().ids().map(|id| (id, demand.of(cluster, id))).collect();
        self.groups.clear();
        for pool in cluster.divisions() {
            self.learn(cluster, (None, pool));
        }
        self.learn_fixed(cluster);
        self.is_supply_new = false;
        let other = |(id, fair): &(&QueueId, &Resources)| before.get(*id) != Some(*fair);
        self.moved.extend(self.fair.iter().filter(other).map(|(id, _)| *id));
    }

    /// Recomputes the sums over siblings, and over all queues below them.
    fn learn(&mut self, cluster: &Cluster, at: Siblings) {
        let siblings = siblings(cluster, at);
        let mut group = Group { total: self.total(cluster, at), ..Group::default() };
        for kind in Kind::ALL {
            group.count(&self.claims(cluster, &siblings), kind);
        }
        self.groups.insert(at, group);
        for queue in siblings {
            if !cluster.queues()[queue].children.is_empty() {
                self.learn(cluster, (Some(queue), at.1));
            }
        }
    }

    fn claims<'a>(&self, cluster: &'a Cluster, queues: &[QueueId]) -> Vec<Claim<'a>> {
        queues.iter().map(|&id| Claim::of(cluster, &self.demand, id)).collect()
    }

    fn total(&self, cluster: &Cluster, (above, pool): Siblings) -> Resources {
        match above {
            Some(above) => self.fair.get(&above).copied().unwrap_or_default(),
            None => cluster.capacity_of(pool),
        }
    }

    /// Updates the shares that can change, given that only the demand of these queues has changed;
    /// returns `true` if the decision about a pending workload can differ from the last one.
    pub fn update(&mut self, cluster: &Cluster, rules: Rules, asks: &BTreeSet<QueueId>) -> bool {
        let mut work = Work::default();
        let is_supply_new = std::mem::take(&mut self.is_supply_new);
        let mut bounded = BTreeSet::new();
        if is_supply_new {
            bounded.extend(cluster.divisions());
        }
        for &id in asks {
            let Some(queue) = cluster.queues().get(id) else { continue };
            if self.supply.groups(queue.pool).is_some() {
                bounded.insert(queue.pool);
                continue;
            }
            if self.requested.get(&id) != Some(&self.demand.of(cluster, id)) {
                let depth = cluster.lineage(id).count();
                let group = work.groups.entry((depth, (queue.parent, queue.pool))).or_default();
                group.insert(id);
            }
        }
        self.note_fixed(cluster, &mut bounded, &mut work);
        for &pool in &bounded {
            work.groups.retain(|(_, (_, other)), _| *other != pool);
            self.divide_pool_again(cluster, rules, pool, &mut work);
        }
        while let Some(((depth, at), changed)) = work.groups.pop_first() {
            // The pool was removed.
            if self.groups.contains_key(&at) {
                self.divide_again(cluster, rules, (depth, at), &changed, &mut work);
            }
        }
        self.learn_fixed(cluster);
        work.matters
    }

    /// Makes siblings due if the non-preemptible holdings of any have changed since the last
    /// update.
    fn note_fixed(&self, cluster: &Cluster, bounded: &mut BTreeSet<PoolId>, work: &mut Work) {
        for (&at, before) in &self.fixed {
            let is_gone = at.0.is_some_and(|above| cluster.queues().get(above).is_none());
            if is_gone || *before == fixed(cluster, at) {
                continue;
            }
            if self.supply.groups(at.1).is_some() {
                bounded.insert(at.1);
            } else {
                let depth = at.0.map_or(0, |above| cluster.lineage(above).count()) + 1;
                work.groups.entry((depth, at)).or_default();
                work.due.insert(at);
            }
        }
    }

    fn learn_fixed(&mut self, cluster: &Cluster) {
        let short = self
            .groups
            .iter()
            .filter(|(_, group)| Kind::ALL.into_iter().any(|kind| group.is_short(kind)));
        self.fixed = short.map(|(&at, _)| (at, fixed(cluster, at))).collect();
    }

    /// Divides a pool again in which some work cannot use all GPUs.
    fn divide_pool_again(
        &mut self,
        cluster: &Cluster,
        rules: Rules,
        pool: PoolId,
        work: &mut Work,
    ) {
        let mut shares = Shares::default();
        divide_pool((cluster, rules, &self.demand, &self.supply), pool, &mut shares);
        for (id, fair) in shares.fair {
            // Reasons to wait name the GPUs that bound a share.
            let meeting = shares.meetings.get(&id);
            work.matters |= self.meetings.get(&id) != meeting;
            match meeting {
                Some(meeting) => drop(self.meetings.insert(id, meeting.clone())),
                None => drop(self.meetings.remove(&id)),
            }
            self.entitle(cluster, id, fair, work);
        }
        self.learn(cluster, (None, pool));
    }

    /// Stores the share of a queue; returns `true` if it has changed.
    fn entitle(
        &mut self,
        cluster: &Cluster,
        id: QueueId,
        fair: Resources,
        work: &mut Work,
    ) -> bool {
        let demand = self.demand.of(cluster, id);
        let requested = self.requested.insert(id, demand).unwrap_or_default();
        let before = self.fair.insert(id, fair).unwrap_or_default();
        work.matters |= matters(cluster, id, (before, requested), (fair, demand));
        if before != fair {
            self.moved.insert(id);
        }
        before != fair
    }

    fn divide_again(
        &mut self,
        cluster: &Cluster,
        rules: Rules,
        (depth, at): (usize, Siblings),
        changed: &BTreeSet<QueueId>,
        work: &mut Work,
    ) {
        let mut group = self.groups.remove(&at).unwrap_or_default();
        let total = self.total(cluster, at);
        let mut touched: BTreeMap<QueueId, Resources> = BTreeMap::new();
        for kind in Kind::ALL {
            let before = group;
            let other_total = before.total[kind] != total[kind] || work.due.contains(&at);
            group.total[kind] = total[kind];
            for &id in changed {
                group.recount(Claim::of(cluster, &self.demand, id), self.requested[&id], kind);
            }
            let easy = before.is_easy(kind) && group.is_easy(kind);
            let bound = before.is_short(kind) == group.is_short(kind);
            let same =
                |id: &QueueId| bound && !other_total && self.gets_the_same(cluster, *id, kind);
            if easy {
                for &id in changed {
                    let gets = Claim::of(cluster, &self.demand, id).wanted(kind);
                    touched.entry(id).or_insert_with(|| self.fair[&id])[kind] = gets;
                }
            } else if other_total || !changed.iter().all(same) {
                let all = siblings(cluster, at);
                let shares = divide_one(&self.claims(cluster, &all), rules, kind, total[kind]);
                for (&id, gets) in all.iter().zip(shares) {
                    if self.fair[&id][kind] != gets {
                        touched.entry(id).or_insert_with(|| self.fair[&id])[kind] = gets;
                    }
                }
            }
        }
        self.groups.insert(at, group);
        for &id in changed {
            touched.entry(id).or_insert_with(|| self.fair[&id]);
        }
        for (id, fair) in touched {
            let queue = &cluster.queues()[id];
            if self.entitle(cluster, id, fair, work) && !queue.children.is_empty() {
                work.groups.entry((depth + 1, (Some(id), queue.pool))).or_default();
            }
        }
    }

    /// `true` if a queue wanted more than it got, and still does: the amount does not matter.
    fn gets_the_same(&self, cluster: &Cluster, id: QueueId, kind: Kind) -> bool {
        let queue = &cluster.queues()[id];
        let now = Claim::of(cluster, &self.demand, id).wanted(kind);
        let before = self.requested[&id][kind].min(queue.share.limit[kind]);
        let least = before.min(now);
        let enough = self.fair[&id][kind].saturating_add(kind.share_unit());
        before == now || (least >= enough && least >= queue.share.quota[kind])
    }
}

impl Group {
    fn count(&mut self, siblings: &[Claim<'_>], kind: Kind) {
        let hungry = siblings.iter().filter(|one| one.wanted(kind) > one.promised(kind)).count();
        self.hungry[place(kind)] = hungry;
        let promised = siblings.iter().map(|one| u128::from(one.promised(kind)));
        self.promised[place(kind)] = promised.sum();
    }

    /// Updates the sums for a changed demand of a sibling.
    fn recount(&mut self, now: Claim<'_>, before: Resources, kind: Kind) {
        let before = Claim { demand: before, ..now };
        let (wanted_before, promised_before) = (before.wanted(kind), before.promised(kind));
        let sum = &mut self.promised[place(kind)];
        *sum = *sum + u128::from(now.promised(kind)) - u128::from(promised_before);
        let hungry = &mut self.hungry[place(kind)];
        *hungry += usize::from(now.wanted(kind) > now.promised(kind));
        *hungry -= usize::from(wanted_before > promised_before);
    }

    /// `true` if the requested quotas exceed the total.
    fn is_short(&self, kind: Kind) -> bool {
        self.promised[place(kind)] > u128::from(self.total[kind])
    }

    /// `true` if every sibling gets all it wants within its quota, and wants no more.
    fn is_easy(&self, kind: Kind) -> bool {
        !self.is_short(kind) && self.hungry[place(kind)] == 0
    }
}

fn siblings(cluster: &Cluster, (above, pool): Siblings) -> Vec<QueueId> {
    match above {
        Some(above) => {
            let above = cluster.queues().get(above);
            above.into_iter().flat_map(|above| &above.children).copied().collect()
        }
        None => cluster.roots(pool).collect(),
    }
}

/// Non-preemptible holdings of each sibling.
fn fixed(cluster: &Cluster, at: Siblings) -> Vec<Resources> {
    let held = |id: QueueId| cluster.queues()[id].allocated_non_preemptible;
    siblings(cluster, at).into_iter().map(held).collect()
}

/// `true` if the decision about a pending workload can change because a queue has another share or
/// demand. Cores and memory change nothing if the queue gets all it requests of them, then and now:
/// its holdings and the request of each of its workloads are no more than that.
fn matters(
    cluster: &Cluster,
    id: QueueId,
    (fair, requested): (Resources, Resources),
    (fair_now, requested_now): (Resources, Resources),
) -> bool {
    let queue = &cluster.queues()[id];
    let held = queue.held();
    Kind::ALL.into_iter().any(|kind| {
        let sated = |fair: Resources, requested: Resources| {
            kind != Kind::Gpu && fair[kind] >= requested[kind] && held[kind] <= requested[kind]
        };
        if sated(fair, requested) && sated(fair_now, requested_now) {
            return false;
        }
        let deserved = |fair: Resources, requested: Resources| {
            let most = queue.share.quota[kind].min(requested[kind]).min(queue.share.limit[kind]);
            if fair[kind] < most { fair[kind] } else { queue.share.quota[kind] }
        };
        fair[kind] != fair_now[kind]
            || deserved(fair, requested) != deserved(fair_now, requested_now)
    })
}
