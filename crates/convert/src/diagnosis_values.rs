//! Values of a diagnosis on the wire. Owns: that the values of a sentence are beside it. Does not
//! know about: the sentences, and who may follow an advice.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{
    Advice, Instances, Millis, NodesAlike, NodesFailing, NotCounted, PodsPlaced, ProjectHolding,
    Raise, ResourceKind, WorkloadAhead, WorkloadHolding, WorkloadName,
};
use model::MigProfile;
use reasons::diagnosis as found;
use reasons::diagnosis::{Change, HowTo, Standing};
use reasons::{QueueNumbers, WorkloadRef};
use units::{Instant, Kind};
use uuid::Uuid;
use view::{View, WorkloadView};

/// Ids of the workloads in a diagnosis, by project and name.
pub(crate) struct Ids(BTreeMap<(String, String), Uuid>);

impl Ids {
    pub(crate) fn new(found: &found::Diagnosis, view: &View) -> Self {
        let ends = found.advice.iter().filter_map(|advice| match &advice.change {
            Change::End { workload } => Some(workload),
            _ => None,
        });
        let all = found.holders.workloads.iter().map(|holder| &holder.workload).chain(ends);
        let waiting = found.advice.iter().map(|advice| &advice.workload);
        let waiting = waiting.chain(found.ahead.named.iter().map(|one| &one.workload));
        let wanted: BTreeSet<_> = all.chain(waiting).map(key).collect();
        let own = |of: &WorkloadView| (of.project_name.clone(), of.spec.name.clone());
        let there = view.workloads.values().map(|workload| (own(workload), workload.id));
        Self(there.filter(|(key, _)| wanted.contains(key)).collect())
    }

    pub(crate) fn of(&self, of: &WorkloadRef) -> Option<Uuid> {
        self.0.get(&key(of)).copied()
    }

    pub(crate) fn named(&self, of: &WorkloadRef) -> WorkloadName {
        let key = key(of);
        let id = self.0.get(&key).map(ToString::to_string);
        let (project_name, name) = key;
        let revision = of.revision_of.as_ref().map(|_| of.name.clone());
        WorkloadName { id, name, revision, project_name }
    }
}

/// The project of a workload and its name for users.
fn key(of: &WorkloadRef) -> (String, String) {
    (of.queue.clone(), of.typed_name().to_owned())
}

const fn resource(kind: Kind) -> ResourceKind {
    match kind {
        Kind::Gpu => ResourceKind::Gpu,
        Kind::Cpu => ResourceKind::Cpu,
        Kind::Memory => ResourceKind::Memory,
    }
}

fn raise(of: &found::Raise) -> Raise {
    let found::Raise { queue, kind, from, to, .. } = of;
    Raise { name: queue.clone(), resource: resource(*kind), from: *from, to: *to }
}

/// The values of an advice, whose commands are known.
pub(crate) fn advised(advice: &found::Advice, how: HowTo, ids: &Ids, now: Instant) -> Advice {
    Advice {
        kind: advice.change.name().to_owned(),
        disturbs: advice.disturbs,
        message: how.sentence(advice, now),
        line: None,
        commands: how.commands,
        ask: how.ask,
        to: advice.change.to(),
        node_pools: match &advice.change {
            Change::NodePool { from, .. } => from.clone(),
            _ => Vec::new(),
        },
        set: match &advice.change {
            Change::Pods { role, .. } => Some(role.clone()).filter(|role| !role.is_empty()),
            _ => None,
        },
        until: match &advice.change {
            Change::Wait { until } => Some((*until).into()),
            _ => None,
        },
        workload: match &advice.change {
            Change::End { workload } => Some(ids.named(workload)),
            _ => None,
        },
        node: match &advice.change {
            Change::Uncordon { node: name }
            | Change::Untaint { node: name, .. }
            | Change::Label { node: name, .. }
            | Change::Nodes { like: name, .. } => Some(name.clone()),
            _ => None,
        },
        raises: match &advice.change {
            Change::Quota(raises) | Change::Limit(raises) => raises.iter().map(raise).collect(),
            _ => Vec::new(),
        },
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
