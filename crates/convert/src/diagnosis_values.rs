//! Values of a diagnosis on the wire. Owns: that the values of a sentence are beside it. Does not
//! know about: the sentences, and who may follow an advice.

use api_types::{
    Advice, AdvisedRequest, Instances, Millis, NodesAlike, NodesFailing, NotCounted, PodsPlaced,
    ProjectHolding, WorkloadAhead, WorkloadHolding,
};
use model::MigProfile;
use reasons::QueueNumbers;
use reasons::diagnosis as found;
use reasons::diagnosis::{HowTo, Standing};
use units::Instant;

use super::advised::change_of;
use super::diagnosis_ids::{Ids, resource};

/// The values of an advice, whose commands are known, with the request that makes the change.
pub(crate) fn advised(
    advice: &found::Advice,
    (how, request): (HowTo, Option<AdvisedRequest>),
    ids: &Ids,
    now: Instant,
) -> Advice {
    Advice {
        kind: advice.change.name().to_owned(),
        change: change_of(&advice.change, ids),
        disturbs: advice.disturbs,
        message: how.sentence(advice, now),
        line: None,
        commands: how.commands,
        request,
        ask: how.ask,
        to: advice.change.to(),
    }
}

/// The classes of nodes that are looked at for a set.
pub(crate) fn node_classes(part: &found::Part) -> impl Iterator<Item = NodesAlike> {
    part.classes.iter().map(|of| {
        let whole = |(profile, count): &(MigProfile, u32)| Instances {
            profile: Some(profile.to_string()),
            millis: None,
            memory_bytes: None,
            count: *count,
        };
        let of_part = |&(millis, bytes, count): &(u64, u64, u32)| Instances {
            profile: None,
            millis: Some(millis),
            memory_bytes: Some(bytes),
            count,
        };
        NodesAlike {
            set: part.set.clone(),
            like: of.like.clone(),
            nodes: of.nodes,
            room: of.room,
            kinds: of.classes,
            gpus: of.gpus,
            gpu_memory_bytes: of.gpu_memory_bytes,
            instances: of.mig.iter().map(whole).chain(of.parts.iter().map(of_part)).collect(),
            cpu_millis: of.capacity.cpu_millis,
            memory_bytes: of.capacity.memory_bytes,
            labels: of.labels.iter().cloned().collect(),
            taints: of.taints.iter().map(ToString::to_string).collect(),
            failing: of.failing.iter().map(failing).collect(),
        }
    })
}

fn failing(of: &found::Failing) -> NodesFailing {
    let has_amount = of.needed > 0;
    NodesFailing {
        obstacle: of.obstacle.name().to_owned(),
        nodes: of.nodes,
        needed: has_amount.then_some(of.needed),
        most: has_amount.then_some(of.most),
        closest: has_amount.then(|| of.closest.clone()),
    }
}

/// Pods of a set to be placed; `None` for a single pod.
pub(crate) fn pods_placed(part: &found::Part) -> Option<PodsPlaced> {
    let found::Part { set, pods, placeable, .. } = part;
    let (pods, placeable) = (*pods, *placeable);
    (pods > 1 || !set.is_empty()).then(|| PodsPlaced { set: set.clone(), pods, placeable })
}

/// Demand of its own project that does not count.
pub(crate) fn not_counted(of: &found::OwnDemand) -> NotCounted {
    let found::OwnDemand { queue, kind, requested, left_out } = of;
    NotCounted {
        name: queue.clone(),
        resource: resource(*kind),
        requested: *requested,
        left_out: *left_out,
    }
}

pub(crate) fn held(of: &found::Holder, ids: &Ids) -> WorkloadHolding {
    WorkloadHolding {
        workload: ids.named(&of.workload),
        resource: resource(of.kind),
        held: of.held,
        standing: of.standing.name().to_owned(),
        priority: match of.standing {
            Standing::AsImportant { priority } => Some(priority),
            _ => None,
        },
        until: match of.standing {
            Standing::GuaranteedUntil(until) | Standing::TurnUntil(until) => Some(until.into()),
            _ => None,
        },
    }
}

pub(crate) fn before(of: &found::Before, ids: &Ids) -> WorkloadAhead {
    let priority = match of.precedence {
        found::Precedence::MoreImportant { priority } => Some(priority),
        _ => None,
    };
    WorkloadAhead {
        workload: ids.named(&of.workload),
        requested_gpus: Millis(of.gpu_millis),
        precedence: of.precedence.name().to_owned(),
        priority,
        message: of.precedence.text(),
    }
}

pub(crate) fn held_by_queue(of: &found::HoldingQueue) -> ProjectHolding {
    let QueueNumbers { name, kind, allocated, lent, quota, fair_share, is_claim } = &of.queue;
    ProjectHolding {
        name: name.clone(),
        resource: resource(*kind),
        held: of.held,
        allocated: *allocated,
        quota: *quota,
        fair_share: *fair_share,
        is_claim: *is_claim,
        lent: *lent,
    }
}
