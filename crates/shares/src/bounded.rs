//! The division of GPUs where some are not usable by all work. Owns: the bound on the shares of any
//! set of queues by the GPUs that their work can use. Does not know about: the reasons why work
//! cannot use a GPU.
//!
//! Shares are feasible if, for every set of groups of nodes, the shares of the queues, less the
//! amounts that they could run outside the set, add up to at most the GPUs of the set. Where the
//! plain division violates that for a set, the queues that exceed it divide among themselves the
//! GPUs of the set plus the amounts they can have outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Claim, Cluster, Demand, GroupSet, Groups, PoolId, QueueId, Supply};
use units::{Kind, Resources};

use crate::division::{Rules, divide_one};

/// Maximum number of rounds for each set of groups.
const ROUNDS_OF_SET: usize = 8;

/// GPU thousandths that siblings have of each set of groups.
pub(crate) struct Bounds {
    /// Part of each queue's demand that can run only in a set, in GPU thousandths; the index is the
    /// set less one.
    inside: Arc<BTreeMap<QueueId, Vec<u64>>>,
    most: Vec<(GroupSet, u64)>,
}

/// A queue that divides with its siblings.
struct Sibling<'a> {
    asked: u64,
    /// Part of `asked` that can run only in a set; the index is the set less one.
    inside: &'a [u64],
    /// Maximum share in GPU thousandths.
    most: u64,
    share: u64,
    meets: Option<Meeting>,
}

/// Projects that divide the GPUs of a set of groups, since their work can use no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meeting {
    pub(crate) set: GroupSet,
    pub(crate) queues: Arc<[QueueId]>,
}

impl Bounds {
    /// Bounds of a node pool in which some GPUs are not usable by all work.
    pub(crate) fn new(
        cluster: &Cluster,
        demand: &Demand,
        (supply, groups): (&Supply, &Groups),
        pool: PoolId,
    ) -> Self {
        let mut inside = supply.inside(cluster, demand, groups, pool);
        for root in cluster.roots(pool) {
            add_up(cluster, demand, root, &mut inside);
        }
        let most = groups.sets().map(|set| (set, groups.of(set))).collect();
        Self { inside: Arc::new(inside), most }
    }

    /// Bounds for the children of each sibling: the rest of each set after the amounts that the
    /// other siblings need of it.
    pub(crate) fn below(
        &self,
        siblings: &[QueueId],
        claims: &[Claim<'_>],
        shares: &[Resources],
    ) -> Vec<Self> {
        let needs = |set: GroupSet| {
            let outside = |at: usize| self.start(siblings[at], claims[at]).outside(set);
            let need = |at: usize| shares[at].gpu_millis.saturating_sub(outside(at));
            (0..siblings.len()).map(need).collect::<Vec<u64>>()
        };
        let mut below = vec![Vec::with_capacity(self.most.len()); siblings.len()];
        for &(set, most) in &self.most {
            let needs = needs(set);
            let all = needs.iter().copied().fold(0, u64::saturating_add);
            for (of, need) in below.iter_mut().zip(needs) {
                of.push((set, most.saturating_sub(all - need)));
            }
        }
        below.into_iter().map(|most| Self { most, inside: self.inside.clone() }).collect()
    }

    fn start(&self, queue: QueueId, claim: Claim<'_>) -> Sibling<'_> {
        Sibling {
            asked: claim.demand.gpu_millis,
            inside: self.inside.get(&queue).map_or(&[], Vec::as_slice),
            most: claim.wanted(Kind::Gpu),
            share: 0,
            meets: None,
        }
    }

    /// The share of each sibling, and the set of GPUs that bounds it; `None` if no set does.
    pub(crate) fn divide(
        &self,
        cluster: &Cluster,
        (siblings, claims): (&[QueueId], &[Claim<'_>]),
        rules: Rules,
        total: u64,
    ) -> Vec<(u64, Option<Meeting>)> {
        let both = siblings.iter().zip(claims);
        let mut all: Vec<_> = both.map(|(&id, &claim)| self.start(id, claim)).collect();
        let everyone: Vec<usize> = (0..all.len()).collect();
        // Each round fixes the shares that one set bounds; the limit is for rounding.
        for _ in 0..=ROUNDS_OF_SET * self.most.len() {
            for (at, share) in divide_among(claims, rules, (&everyone, &all), total) {
                all[at].share = share;
            }
            let Some((set, most)) = self.worst(&all) else { break };
            let Some(meet) = share_set(claims, rules, (set, most), &mut all) else {
                break;
            };
            let mut queues = Vec::new();
            for &at in &meet {
                self.projects(cluster, siblings[at], set, &mut queues);
            }
            let meeting = Meeting { set, queues: queues.into() };
            meet.into_iter().for_each(|at| all[at].meets = Some(meeting.clone()));
        }
        all.into_iter().map(|one| (one.share, one.meets)).collect()
    }

    /// The set that the shares exceed most; `None` if they exceed no set.
    fn worst(&self, all: &[Sibling<'_>]) -> Option<(GroupSet, u64)> {
        let beyond = |&(set, most): &(GroupSet, u64)| {
            let inside = all.iter().map(|one| one.share.saturating_sub(one.outside(set)));
            inside.fold(0, u64::saturating_add).saturating_sub(most)
        };
        let sets = self.most.iter().map(|bound| (beyond(bound), *bound));
        let worst = sets.filter(|(beyond, _)| *beyond > 0).max_by_key(|(beyond, _)| *beyond);
        worst.map(|(_, bound)| bound)
    }

    /// Adds the projects below a queue that have demand in the set only.
    fn projects(&self, cluster: &Cluster, queue: QueueId, set: GroupSet, all: &mut Vec<QueueId>) {
        let inside = self.inside.get(&queue).and_then(|sets| sets.get(set - 1));
        if inside.is_none_or(|millis| *millis == 0) {
            return;
        }
        let children = &cluster.queues()[queue].children;
        if children.is_empty() {
            all.push(queue);
        }
        children.iter().for_each(|&child| self.projects(cluster, child, set, all));
    }
}

impl Sibling<'_> {
    /// Part of the demand that can run outside a set.
    fn outside(&self, set: GroupSet) -> u64 {
        let inside = self.inside.get(set - 1).copied().unwrap_or_default();
        self.asked.saturating_sub(inside)
    }
}

/// Divides a set, plus the amounts that siblings can have outside, among the siblings that exceed
/// it. Returns the siblings that get less than they want; `None` if every share is as before.
fn share_set(
    claims: &[Claim<'_>],
    rules: Rules,
    (set, most): (GroupSet, u64),
    all: &mut [Sibling<'_>],
) -> Option<Vec<usize>> {
    let outside: Vec<u64> = all.iter().map(|one| one.outside(set)).collect();
    let mut meet: Vec<usize> = (0..all.len()).filter(|&at| all[at].share > outside[at]).collect();
    let mut is_less = false;
    loop {
        let there = meet.iter().fold(most, |sum, &at| sum.saturating_add(outside[at]));
        let shares = divide_among(claims, rules, (&meet, all), there);
        // A queue that can have more outside than its part of both takes nothing from the set.
        let leaves = shares.iter().filter(|&&(at, share)| share < outside[at]);
        let leaving: Vec<usize> = leaves.map(|&(at, _)| at).collect();
        let capped: Vec<(usize, u64)> = match leaving.is_empty() {
            true => shares,
            false => leaving.iter().map(|&at| (at, outside[at])).collect(),
        };
        for (at, share) in capped {
            is_less |= share < all[at].most;
            all[at].most = all[at].most.min(share);
        }
        if leaving.is_empty() {
            return is_less.then_some(meet);
        }
        meet.retain(|at| !leaving.contains(at));
    }
}

/// Adds the demand of departments in each set only, from the demand of their projects, each within
/// its limit.
fn add_up(
    cluster: &Cluster,
    demand: &Demand,
    queue: QueueId,
    inside: &mut BTreeMap<QueueId, Vec<u64>>,
) {
    let children = &cluster.queues()[queue].children;
    if children.is_empty() {
        return;
    }
    let mut sums: Vec<u64> = Vec::new();
    for &child in children {
        add_up(cluster, demand, child, inside);
        let wanted = Claim::of(cluster, demand, child).wanted(Kind::Gpu);
        let of_child = inside.get(&child).map_or(&[][..], Vec::as_slice);
        sums.resize(sums.len().max(of_child.len()), 0);
        sums.iter_mut().zip(of_child).for_each(|(sum, millis)| *sum += millis.min(&wanted));
    }
    inside.insert(queue, sums);
}

/// Divides `total` among some siblings, each up to its maximum share.
fn divide_among(
    claims: &[Claim<'_>],
    rules: Rules,
    (some, all): (&[usize], &[Sibling<'_>]),
    total: u64,
) -> Vec<(usize, u64)> {
    let capped = |&at: &usize| {
        let demand = Resources { gpu_millis: all[at].most, ..claims[at].demand };
        Claim { demand, ..claims[at] }
    };
    let claims: Vec<_> = some.iter().map(capped).collect();
    let shares = divide_one(&claims, rules, Kind::Gpu, total);
    some.iter().copied().zip(shares).collect()
}
