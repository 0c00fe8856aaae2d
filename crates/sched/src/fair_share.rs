//! What each queue is entitled to at this moment. Owns: the division of capacity among
//! siblings, level by level. Source: scheduling reference §7, Run:ai reference D.3 and D.3b.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{Cluster, Queue, QueueId};
use units::{Kind, Resources};

/// Fair shares of all queues: the quota part, plus the part of what is left over.
#[must_use]
pub fn fair_shares(cluster: &Cluster) -> BTreeMap<QueueId, Resources> {
    let mut shares = BTreeMap::new();
    let roots = cluster.queues().iter().filter(|(_, q)| q.parent.is_none()).map(|(id, _)| id);
    divide(cluster, &roots.collect::<Vec<_>>(), cluster.capacity(), &mut shares);
    shares
}

fn divide(
    cluster: &Cluster,
    siblings: &[QueueId],
    total: Resources,
    shares: &mut BTreeMap<QueueId, Resources>,
) {
    let queues: Vec<_> = siblings.iter().map(|&id| &cluster.queues()[id]).collect();
    let mut result = vec![Resources::ZERO; queues.len()];
    for kind in Kind::ALL {
        for (at, share) in divide_one(&queues, kind, total[kind]).into_iter().enumerate() {
            result[at][kind] = share;
        }
    }
    for (at, &id) in siblings.iter().enumerate() {
        shares.insert(id, result[at]);
        let children: Vec<_> = queues[at].children.iter().copied().collect();
        divide(cluster, &children, result[at], shares);
    }
}

/// A fraction left over by rounding down: `part / whole` of the resource's unit.
#[derive(Clone, Copy)]
struct Remainder {
    part: u128,
    whole: u128,
}

fn divide_one(queues: &[&Queue], kind: Kind, total: u64) -> Vec<u64> {
    let wanted = |q: &Queue| q.requested[kind].min(q.share.limit[kind]);
    let mut shares: Vec<u64> =
        queues.iter().map(|q| wanted(q).min(q.share.quota[kind]).min(total)).collect();
    let given: u128 = shares.iter().map(|&s| u128::from(s)).sum();
    // Quotas may promise more than there is; then nothing is left to divide.
    let mut left = u64::try_from(u128::from(total).saturating_sub(given)).unwrap_or(0);
    let mut priorities: Vec<_> = queues.iter().map(|q| q.share.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    for &priority in priorities.iter().rev() {
        let group: Vec<_> =
            (0..queues.len()).filter(|&at| queues[at].share.priority == priority).collect();
        left = by_weight(queues, kind, &group, left, &mut shares);
    }
    shares
}

/// Divides what is left among one priority group; returns what the group did not take.
fn by_weight(
    queues: &[&Queue],
    kind: Kind,
    group: &[usize],
    mut left: u64,
    shares: &mut [u64],
) -> u64 {
    let unit = kind.share_unit();
    let want = |at: usize, shares: &[u64]| {
        let q = queues[at];
        q.requested[kind].min(q.share.limit[kind]).saturating_sub(shares[at])
    };
    let weight = |at: usize| u128::from(queues[at].share.over_quota_weight.of(kind));
    let mut remainders: BTreeMap<usize, Remainder> = BTreeMap::new();
    loop {
        let hungry: Vec<_> =
            group.iter().copied().filter(|&at| want(at, shares) > 0 && weight(at) > 0).collect();
        let weights: u128 = hungry.iter().map(|&at| weight(at)).sum();
        if left == 0 || weights == 0 {
            break;
        }
        let round = u128::from(left);
        let mut again = false;
        for &at in &hungry {
            let (part, whole) = (round * weight(at), weights);
            let wanted = want(at, shares);
            let give = if u128::from(wanted) * whole <= part {
                remainders.remove(&at);
                again |= u128::from(wanted) * whole < part;
                wanted
            } else {
                let units = part / (whole * u128::from(unit));
                remainders
                    .insert(at, Remainder { part: part - units * whole * u128::from(unit), whole });
                u64::try_from(units * u128::from(unit)).unwrap_or(u64::MAX)
            };
            shares[at] += give;
            left -= give;
        }
        if !again {
            break;
        }
    }
    by_remainder(queues, unit, &remainders, left, |at, shares| want(at, shares), shares)
}

/// Hands out what rounding left over, one unit each: largest remainder first, then the older.
fn by_remainder(
    queues: &[&Queue],
    unit: u64,
    remainders: &BTreeMap<usize, Remainder>,
    mut left: u64,
    want: impl Fn(usize, &[u64]) -> u64,
    shares: &mut [u64],
) -> u64 {
    let mut order: Vec<_> = remainders.iter().collect();
    order.sort_by(|(a, ra), (b, rb)| {
        let larger = (rb.part * ra.whole).cmp(&(ra.part * rb.whole));
        larger.then_with(|| queues[**a].seq.cmp(&queues[**b].seq)).then(Ordering::Equal)
    });
    for (&at, _) in order {
        let give = unit.min(left).min(want(at, shares));
        shares[at] += give;
        left -= give;
    }
    left
}
