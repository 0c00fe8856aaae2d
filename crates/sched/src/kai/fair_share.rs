//! Fair shares, resource by resource and level by level. Owns: the division among siblings, with
//! rounding down and remainders. Source: scheduling reference §7, §8.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::slice;

use model::{Cluster, Pod, PodId, PoolId, Queue, QueueId};
use units::{Kind, Resources};

use super::amounts::demand;
use crate::Policy;

/// Millionths, the unit of usage; and thousandths, the unit of its weight.
const PPM: u128 = 1_000_000;
const MILLIS: u128 = 1000;

/// Fair shares of all queues.
pub(crate) fn kai_fair_shares(cluster: &Cluster, policy: &Policy) -> BTreeMap<QueueId, Resources> {
    let asked = requests(cluster);
    let mut shares = BTreeMap::new();
    let pools = cluster.divisions();
    let mut levels: Vec<_> = pools
        .map(|pool| (cluster.roots(pool).collect::<Vec<_>>(), cluster.capacity_of(pool)))
        .collect();
    while let Some((siblings, total)) = levels.pop() {
        let mut given = vec![Resources::ZERO; siblings.len()];
        for kind in Kind::ALL {
            let line = |&id: &QueueId| {
                let asked = asked.get(&id).map_or(0, |asked| asked[kind]);
                Line::new(&cluster.queues()[id], kind, asked, total[kind])
            };
            let mut lines: Vec<_> = siblings.iter().map(line).collect();
            divide(&mut lines, total[kind], kind.share_unit(), policy.usage_weight_millis);
            for (given, line) in given.iter_mut().zip(lines) {
                given[kind] = line.given;
            }
        }
        for (id, share) in siblings.into_iter().zip(given) {
            shares.insert(id, share);
            let children: Vec<_> = cluster.queues()[id].children.iter().copied().collect();
            if !children.is_empty() {
                levels.push((children, share));
            }
        }
    }
    shares
}

/// Resources of running and pending pods in and below each queue.
fn requests(cluster: &Cluster) -> BTreeMap<QueueId, Resources> {
    let mut asked: BTreeMap<QueueId, Resources> = BTreeMap::new();
    for (id, pod) in cluster.pods().iter() {
        let part = part(cluster, id, pod);
        let project = cluster.workload_of(id).spec.queue;
        for &pool in pools(cluster, pod) {
            for queue in cluster.lineage(cluster.queue_in(project, pool)) {
                *asked.entry(queue).or_default() += part;
            }
        }
    }
    asked
}

/// The pools in which a pod counts: the pool where it runs, or else each in which it may get a
/// place.
fn pools<'a>(cluster: &'a Cluster, pod: &Pod) -> &'a [PoolId] {
    match &pod.binding.current {
        Some(place) => slice::from_ref(&cluster.nodes()[place.node].pool),
        None if cluster.is_divided() => cluster.choices(pod.workload),
        None => &[PoolId::DEFAULT],
    }
}

fn part(cluster: &Cluster, id: PodId, pod: &Pod) -> Resources {
    match &pod.binding.current {
        Some(place) if !pod.binding.releasing => cluster.amounts(id, place),
        None if pod.asks() => {
            demand(cluster.workload_of(id).spec.pod_sets[pod.set as usize].request)
        }
        _ => Resources::ZERO,
    }
}

/// A queue among its siblings, for one resource.
struct Line {
    quota: u64,
    /// Amount that it can use: its demand, up to its limit.
    wants: u64,
    weight: u128,
    usage_ppm: u128,
    priority: u32,
    seq: u64,
    given: u64,
    /// Remainder of the last rounding down, as a fraction of a unit.
    remainder: Option<(u128, u128)>,
}

impl Line {
    fn new(queue: &Queue, kind: Kind, asked: u64, total: u64) -> Self {
        let quota = queue.share.quota[kind];
        Self {
            quota: if quota == u64::MAX { total } else { quota },
            wants: asked.min(queue.share.limit[kind]),
            weight: u128::from(queue.share.over_quota_weight.of(kind)),
            usage_ppm: u128::from(queue.usage.of(kind)),
            priority: queue.share.priority,
            seq: queue.seq,
            given: 0,
            remainder: None,
        }
    }

    const fn is_hungry(&self) -> bool {
        self.wants > self.given
    }
}

/// Divides the guaranteed part, then the rest by weight, priority by priority, then the remainders
/// of rounding down.
fn divide(lines: &mut [Line], total: u64, unit: u64, usage_weight_millis: u64) {
    for line in lines.iter_mut() {
        line.given = line.quota.min(line.wants);
    }
    let promised: u128 = lines.iter().map(|line| u128::from(line.given)).sum();
    let Ok(mut left) = u64::try_from(u128::from(total).saturating_sub(promised)) else { return };
    let mut priorities: Vec<_> = lines.iter().map(|line| line.priority).collect();
    priorities.sort_unstable_by_key(|&priority| Reverse(priority));
    priorities.dedup();
    for &priority in &priorities {
        while left > 0 && round(lines, priority, &mut left, unit, usage_weight_millis) {}
    }
    for &priority in &priorities {
        leftovers(lines, priority, &mut left, unit);
    }
}

/// One round of one priority; `true` if a queue took less than its part, so that another round is
/// due.
fn round(
    lines: &mut [Line],
    priority: u32,
    left: &mut u64,
    unit: u64,
    usage_weight_millis: u64,
) -> bool {
    let hungry = |line: &&mut Line| line.priority == priority && line.is_hungry();
    let weights: u128 = lines.iter_mut().filter(hungry).map(|line| line.weight).sum();
    let k = u128::from(usage_weight_millis);
    // max(0, n + k (n - u)) with n = weight / weights, times weights and the units of k and u.
    let part = |line: &Line| {
        let plus = line.weight.saturating_mul(PPM).saturating_mul(MILLIS + k);
        plus.saturating_sub(k * line.usage_ppm * weights)
    };
    let parts: u128 = lines.iter_mut().filter(hungry).map(|line| part(line)).sum();
    if parts == 0 {
        return false;
    }
    let round = u128::from(*left);
    let mut again = false;
    for line in lines.iter_mut().filter(hungry).filter(|line| line.weight > 0) {
        let fair = round.saturating_mul(part(line));
        let want = u128::from(line.wants - line.given).saturating_mul(parts);
        let give = if want <= fair {
            line.remainder = None;
            again |= want < fair;
            line.wants - line.given
        } else {
            let step = parts * u128::from(unit);
            line.remainder = Some((fair % step, step));
            u64::try_from(fair / step).unwrap_or(u64::MAX).saturating_mul(unit)
        };
        line.given += give;
        *left -= give.min(*left);
    }
    again
}

/// Distributes one unit each: largest remainder first, then the older queue.
fn leftovers(lines: &mut [Line], priority: u32, left: &mut u64, unit: u64) {
    let of = |line: &Line| line.remainder.filter(|_| line.priority == priority);
    let mut order: Vec<_> =
        (0..lines.len()).filter_map(|at| of(&lines[at]).map(|part| (at, part))).collect();
    order.sort_by(|&(a, (pa, wa)), &(b, (pb, wb))| {
        let by_part = pb.saturating_mul(wa).cmp(&pa.saturating_mul(wb));
        by_part.then(lines[a].seq.cmp(&lines[b].seq))
    });
    for (at, _) in order {
        let give = unit.min(*left);
        lines[at].given += give;
        *left -= give;
    }
}
