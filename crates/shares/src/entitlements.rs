//! The fair shares of all queues, kept from one decision to the next. Owns: which of them can be
//! different after some queues ask for more or less. What is kept equals what [`fair_shares`] says.
//!
//! Siblings divide what the queue above has. A sibling that asks for more gets more only where it does
//! not yet ask for more than it gets: mostly none of the others is touched, and those need not even
//! be looked at.

use std::collections::{BTreeMap, BTreeSet};

use model::{Claim, Cluster, Demand, NodeId, PoolId, QueueId, Supply, WorkloadId};
use units::{Kind, Resources};

use crate::Rules;
use crate::bounded::Meeting;
use crate::division::divide_one;
use crate::levels::{Shares, divide_pool, fair_shares};

/// What each queue is entitled to.
#[derive(Debug, Clone, Default)]
pub struct Entitlements {
    /// The fair share of each queue.
    pub fair: BTreeMap<QueueId, Resources>,
    /// Queues that are entitled to more or less than when that was last asked for.
    pub moved: BTreeSet<QueueId>,
    /// The part of what is asked for that counts.
    pub demand: Demand,
    /// What counted of what each asked for when it was last looked at.
    pub requested: BTreeMap<QueueId, Resources>,
    groups: BTreeMap<Siblings, Group>,
    /// Who can use which GPUs.
    supply: Supply,
    /// `true` if other work can use some GPUs than at the last update.
    is_supply_new: bool,
    meetings: BTreeMap<QueueId, Meeting>,
    /// What each of siblings held that cannot be preempted, where quotas promise more than there is.
    fixed: BTreeMap<Siblings, Vec<Resources>>,
}

/// GPUs that queues divide since their work can use no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The projects.
    pub queues: Vec<QueueId>,
    /// Nodes that have the GPUs.
    pub nodes: BTreeSet<NodeId>,
    /// GPU thousandths.
    pub gpu_millis: u64,
}

/// The queues below one, or without one above them, in a node pool.
type Siblings = (Option<QueueId>, PoolId);

/// What siblings divide.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    total: Resources,
    /// What they want within their quotas.
    promised: [u128; 3],
    /// How many of them want more than that.
    hungry: [usize; 3],
}

const fn place(kind: Kind) -> usize {
    match kind {
        Kind::Gpu => 0,
        Kind::Cpu => 1,
        Kind::Memory => 2,
    }
}

/// What is left to do of an update.
#[derive(Default)]
struct Work {
    /// Siblings by their distance from the root: those of them that ask for more or less.
    groups: BTreeMap<(usize, Siblings), BTreeSet<QueueId>>,
    /// Siblings that are divided again whatever they ask for.
    due: BTreeSet<Siblings>,
    /// True if a decision about what waited before may be another one.
    matters: bool,
}

impl Entitlements {
    /// Looks at all nodes and workloads again: which GPUs can be used by whom.
    pub fn renew_supply(&mut self, cluster: &Cluster) {
        self.supply.renew(cluster);
    }

    /// Looks at these workloads again: which GPUs they can use.
    pub fn update_supply(&mut self, cluster: &Cluster, changed: &BTreeSet<WorkloadId>) {
        self.is_supply_new |= self.supply.update(cluster, changed);
    }

    /// Looks at all queues again.
    pub fn renew(&mut self, cluster: &Cluster, rules: Rules) {
        let shares = fair_shares(cluster, rules, &self.demand, &self.supply);
        self.set(cluster, shares.fair);
        self.meetings = shares.meetings;
    }

    /// The GPUs that a project divides with others since its work can use no others; none where neither it
    /// nor a queue above it is kept from a larger share by that.
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

    /// These are the fair shares, whatever we would say.
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

    /// Remembers what siblings, and all below them, divide.
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

    /// Looks at what can be different now that these ask for more or less, and nothing else has
    /// changed; says whether a decision about what waited before may be another one.
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
            // A pool that was removed is divided no more.
            if self.groups.contains_key(&at) {
                self.divide_again(cluster, rules, (depth, at), &changed, &mut work);
            }
        }
        self.learn_fixed(cluster);
        work.matters
    }

    /// Siblings of which any holds more or less that cannot be preempted than at the last update are due.
    fn note_fixed(&self, cluster: &Cluster, bounded: &mut BTreeSet<PoolId>, work: &mut Work) {
        for (&at, before) in &self.fixed {
            if *before == fixed(cluster, at) {
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

    /// Looks at all queues of a pool of which some GPUs are not for all work.
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
            // Reasons to wait name the GPUs that keep a share from being larger.
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

    /// Takes in the share of a queue as it is now; says whether it is another one.
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

    /// True if a queue wanted more than it got, and still does: how much more does not matter.
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

    /// A sibling asks for something else than before.
    fn recount(&mut self, now: Claim<'_>, before: Resources, kind: Kind) {
        let before = Claim { demand: before, ..now };
        let (wanted_before, promised_before) = (before.wanted(kind), before.promised(kind));
        let sum = &mut self.promised[place(kind)];
        *sum = *sum + u128::from(now.promised(kind)) - u128::from(promised_before);
        let hungry = &mut self.hungry[place(kind)];
        *hungry += usize::from(now.wanted(kind) > now.promised(kind));
        *hungry -= usize::from(wanted_before > promised_before);
    }

    /// True if there is less than the quotas promise.
    fn is_short(&self, kind: Kind) -> bool {
        self.promised[place(kind)] > u128::from(self.total[kind])
    }

    /// True if everybody gets what it wants, because that is promised to all.
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

/// What each of siblings holds that cannot be preempted.
fn fixed(cluster: &Cluster, at: Siblings) -> Vec<Resources> {
    let held = |id: QueueId| cluster.queues()[id].allocated_non_preemptible;
    siblings(cluster, at).into_iter().map(held).collect()
}

/// True if anything that waited before could be decided in another way, as a queue has this share and
/// asks for so much. It could not if the queue gets all it asks for, then and now: what is held and
/// what one of its workloads asks for is no more than that.
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
