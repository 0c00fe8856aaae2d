//! Fair shares of all queues at this moment. Owns: the division of capacity level by level. Does
//! not know about: the division among siblings.

use std::collections::BTreeMap;

use model::{Claim, Cluster, Demand, PoolId, QueueId, Supply};
use units::{Kind, Resources};

use crate::bounded::{Bounds, Meeting};
use crate::division::{Rules, divide_one};

/// Fair shares of all queues: the quota part, plus a part of the rest. Where quotas exceed the
/// capacity and the rules allow it, the shares are claims. Where node pools have queues of their
/// own, the capacity of each pool is divided among its own queues. Where some GPUs are not usable
/// by all work, the share of a queue has only GPUs that its work can use.
pub(crate) fn fair_shares(
    cluster: &Cluster,
    rules: Rules,
    demand: &Demand,
    supply: &Supply,
) -> Shares {
    let mut shares = Shares::default();
    for pool in cluster.divisions() {
        divide_pool((cluster, rules, demand, supply), pool, &mut shares);
    }
    shares
}

/// Shares of queues, and the reasons why they are no larger.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares {
    pub(crate) fair: BTreeMap<QueueId, Resources>,
    /// Sets of GPUs that a queue divides with others since its work can use no others.
    pub(crate) meetings: BTreeMap<QueueId, Meeting>,
}

type World<'a> = (&'a Cluster, Rules, &'a Demand, &'a Supply);

/// Divides the capacity of a node pool among all of its queues.
pub(crate) fn divide_pool(world: World<'_>, pool: PoolId, shares: &mut Shares) {
    let (cluster, _, demand, supply) = world;
    let roots: Vec<_> = cluster.roots(pool).collect();
    let mut total = cluster.capacity_of(pool);
    let bounds = supply.groups(pool).map(|groups| {
        total.gpu_millis = groups.total();
        Bounds::new(cluster, demand, (supply, groups), pool)
    });
    divide(world, &roots, (total, bounds.as_ref()), shares);
}

fn divide(
    world: World<'_>,
    siblings: &[QueueId],
    (total, bounds): (Resources, Option<&Bounds>),
    shares: &mut Shares,
) {
    let (cluster, rules, demand, _) = world;
    let claims: Vec<_> = siblings.iter().map(|&id| Claim::of(cluster, demand, id)).collect();
    let mut result = vec![Resources::ZERO; claims.len()];
    for kind in Kind::ALL {
        let Some(bounds) = bounds.filter(|_| kind == Kind::Gpu) else {
            let of_kind = divide_one(&claims, rules, kind, total[kind]);
            result.iter_mut().zip(of_kind).for_each(|(share, of_kind)| share[kind] = of_kind);
            continue;
        };
        let of_gpus = bounds.divide(cluster, (siblings, &claims), rules, total[kind]);
        for (at, (share, meeting)) in of_gpus.into_iter().enumerate() {
            result[at][kind] = share;
            shares.meetings.extend(meeting.map(|meeting| (siblings[at], meeting)));
        }
    }
    shares.fair.extend(siblings.iter().copied().zip(result.iter().copied()));
    let children =
        |at: usize| -> Vec<QueueId> { claims[at].queue.children.iter().copied().collect() };
    let parents: Vec<usize> = (0..siblings.len()).filter(|&at| !children(at).is_empty()).collect();
    let has_any = !parents.is_empty();
    let below = bounds.filter(|_| has_any).map(|bounds| bounds.below(siblings, &claims, &result));
    for at in parents {
        let below = below.as_ref().map(|below| &below[at]);
        divide(world, &children(at), (result[at], below), shares);
    }
}
