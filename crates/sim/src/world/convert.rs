//! Wire types to the model's. Owns: what a key of a scenario means to the scheduler. Refuses to
//! know: names and where an object stood.

use model::{Constraints, Effect, GpuRequest, PodRequest, Share, Taint, Toleration};
use sched::Policy;
use units::Resources;

use crate::scenario::{self as wire, Amounts, Strategy, Weights, Workload};

/// The knobs: what is not given has the scheduler's own default.
#[must_use]
pub fn policy(wire: &crate::scenario::Policy) -> Policy {
    let mut policy = Policy::default();
    if let Some(placement) = wire.placement {
        policy.placement = match placement {
            Strategy::BinPack => sched::Placement::BinPack,
            Strategy::Spread => sched::Placement::Spread,
        };
    }
    if let Some(moves) = wire.consolidation_moves_max {
        policy.consolidation_moves_max = moves;
    }
    if let Some(interval) = wire.grow_interval {
        policy.grow_interval_ms_min = interval.0;
    }
    if let Some(rule) = wire.over_quota {
        policy.over_quota = match rule {
            wire::OverQuota::ByWeight => sched::OverQuota::ByWeight,
            wire::OverQuota::ByQuota => sched::OverQuota::ByQuota,
        };
    }
    if let Some(weight) = wire.usage_weight {
        policy.usage_weight_millis = weight.0;
    }
    if let Some(grace) = wire.stale_grace {
        policy.stale_grace_ms = grace.0;
    }
    if let Some(trials) = wire.trials_max {
        policy.trials_max = trials;
    }
    policy
}

/// Changes amounts where others are given.
pub(crate) fn amounts(wire: &Amounts, before: Resources) -> Resources {
    Resources {
        gpu_millis: wire.gpu.map_or(before.gpu_millis, |amount| amount.0),
        cpu_millis: wire.cpu.map_or(before.cpu_millis, |amount| amount.0),
        memory_bytes: wire.memory.map_or(before.memory_bytes, |amount| amount.0),
    }
}

/// Changes weights where others are given.
pub(crate) fn weights(wire: &Weights, before: model::Weights) -> model::Weights {
    model::Weights {
        gpu: wire.gpu.map_or(before.gpu, u64::from),
        cpu: wire.cpu.map_or(before.cpu, u64::from),
        memory: wire.memory.map_or(before.memory, u64::from),
    }
}

/// What a queue is entitled to.
pub(crate) fn share(wire: &wire::Queue) -> Share {
    let none_of_gpus = Resources { gpu_millis: 0, ..Resources::UNLIMITED };
    let mut share =
        Share::new(amounts(&wire.quota, none_of_gpus), amounts(&wire.limit, Resources::UNLIMITED));
    share.over_quota_weight = weights(&wire.weight, share.over_quota_weight);
    share.priority = wire.priority.unwrap_or(share.priority);
    share.usage_ppm = wire.usage_ppm.map_or(0, u64::from);
    share.preempt_min_runtime_ms = wire.preempt_min_runtime.map_or(0, |span| span.0);
    share.reclaim_min_runtime_ms = wire.reclaim_min_runtime.map_or(0, |span| span.0);
    share
}

/// What each pod of a workload asks for.
pub(crate) fn request(wire: &Workload) -> PodRequest {
    PodRequest {
        gpu: wire.gpu.0,
        cpu_millis: wire.cpu.map_or(0, |amount| amount.0),
        memory_bytes: wire.memory.map_or(0, |amount| amount.0),
    }
}

/// The most a pod of this request can be counted with, whatever node it is on.
pub(crate) fn most(request: PodRequest) -> Resources {
    match request.gpu {
        GpuRequest::Memory { devices, .. } => Resources {
            gpu_millis: u64::from(devices) * units::GPU_MILLIS,
            cpu_millis: request.cpu_millis,
            memory_bytes: request.memory_bytes,
        },
        GpuRequest::Whole(_) | GpuRequest::Share { .. } => request.resources(1),
    }
}

fn effect(wire: wire::Effect) -> Effect {
    match wire {
        wire::Effect::NoSchedule => Effect::NoSchedule,
        wire::Effect::PreferNoSchedule => Effect::PreferNoSchedule,
        wire::Effect::NoExecute => Effect::NoExecute,
    }
}

/// The taints of a node.
pub(crate) fn taints(wire: &[wire::Taint]) -> Vec<Taint> {
    let taint = |wire: &wire::Taint| Taint {
        key: wire.key.clone(),
        value: wire.value.clone(),
        effect: effect(wire.effect),
    };
    wire.iter().map(taint).collect()
}

/// Which nodes a workload may go to.
pub(crate) fn constraints(wire: &Workload) -> Constraints {
    let toleration = |wire: &wire::Toleration| Toleration {
        key: wire.key.clone(),
        value: wire.value.clone(),
        effect: wire.effect.map(effect),
    };
    Constraints {
        selector: wire.selector.clone(),
        tolerations: wire.tolerations.iter().map(toleration).collect(),
        ..Constraints::default()
    }
}
