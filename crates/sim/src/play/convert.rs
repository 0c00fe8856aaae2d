//! Conversion of wire types to those of the model. Owns: the meaning of the keys of a scenario to
//! the scheduler. Does not know about: names and positions of objects.

use model::Fill;
use model::{Constraints, Effect, SliceValue, Taint, Toleration};
use sched::{Action, Policy, Profile, RuntimeFrom};
use spec::{QUOTA_MILLIS_MAX, ShareChange};
use units::Instant;

use super::ranks::Ranks;
use crate::scenario::{self as wire, Amounts, PodSet, QuotaChange, Strategy};

/// The policy: parameters that are not given have the default of the profile.
///
/// # Errors
/// The profile does not have a parameter.
pub fn policy(wire: &wire::Policy) -> Result<Policy, String> {
    let mut policy = match wire.profile {
        Some(wire::Profile::Kai) => built(Policy::kai())?,
        Some(wire::Profile::Default) | None => Policy::default(),
    };
    policy.profile = profile(wire, policy.profile)?;
    if let Some(given) = &wire.actions {
        policy.actions = actions(policy.profile, given.as_slice())?;
    }
    if let Some(given) = wire.placement {
        policy.placement = placement(given);
    }
    if let Some(moves) = wire.consolidation_moves_max {
        policy.consolidation_moves_max = moves;
    }
    if let Some(interval) = wire.grow_interval {
        policy.grow_interval_ms_min = interval.0;
    }
    if let Some(span) = wire.restart {
        policy.restart_ms = span.0;
    }
    if let Some(span) = wire.turn {
        policy.turn_ms = span.0;
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
    if let Some(span) = wire.reclaim_min_runtime {
        policy.reclaim_min_runtime_ms = span.0;
    }
    if let Some(span) = wire.preempt_min_runtime {
        policy.preempt_min_runtime_ms = span.0;
    }
    if let Some(grace) = wire.stale_grace {
        policy.stale_grace_ms = grace.0;
    }
    if let Some(span) = wire.reserve_after {
        policy.reserve_after_ms = span.0;
    }
    if let Some(most) = wire.reservations_max {
        policy.reservations_max = most;
    }
    if let Some(trials) = wire.trials_max {
        policy.trials_max = trials;
    }
    Ok(policy)
}

/// Profile `kai`, if this build has it.
fn built(kai: Option<Policy>) -> Result<Policy, String> {
    kai.ok_or_else(|| {
        "policy `profile: kai` needs a build with the feature `kai`, which this one has not; \
         `cargo build --release -p elastane-cli --features kai` makes one, `profile: default` is in \
         every build"
            .to_owned()
    })
}

/// The placement strategy.
pub(super) fn placement(wire: wire::Placement) -> sched::Placement {
    let fill = |strategy| match strategy {
        Strategy::BinPack => Fill::BinPack,
        Strategy::Spread => Fill::Spread,
    };
    sched::Placement { gpu: fill(wire.gpu), cpu: fill(wire.cpu), devices: fill(wire.devices) }
}

/// The parameters that only one profile has.
fn profile(wire: &wire::Policy, profile: Profile) -> Result<Profile, String> {
    let Profile::Kai(mut kai) = profile else {
        let given = [
            ("saturation_multiplier", wire.saturation_multiplier.is_some()),
            ("consolidating_reclaim", wire.consolidating_reclaim.is_some()),
            ("queue_depth", wire.queue_depth.is_some()),
            ("reclaim_runtime", wire.reclaim_runtime.is_some()),
        ];
        return match given.iter().find(|(_, is)| *is) {
            Some((key, _)) => Err(format!("policy `{key}` needs `profile: kai`")),
            None => Ok(profile),
        };
    };
    if let Some(multiplier) = wire.saturation_multiplier {
        if multiplier.0 < 1000 {
            return Err("policy `saturation_multiplier` is below 1; 1 or more is allowed".into());
        }
        kai.saturation_millis = multiplier.0;
    }
    kai.consolidating_reclaim = wire.consolidating_reclaim.unwrap_or(kai.consolidating_reclaim);
    kai.queue_depth = wire.queue_depth.unwrap_or(kai.queue_depth);
    if let Some(from) = wire.reclaim_runtime {
        kai.runtime_from = match from {
            wire::RuntimeFrom::Lca => RuntimeFrom::Branch,
            wire::RuntimeFrom::Queue => RuntimeFrom::Leaf,
        };
    }
    Ok(Profile::Kai(kai))
}

/// The actions of a decision.
///
/// # Errors
/// The profile does not have an action.
pub(crate) fn actions(profile: Profile, wire: &[wire::Action]) -> Result<Vec<Action>, String> {
    let kai = matches!(profile, Profile::Kai(_));
    if kai && wire.contains(&wire::Action::Promote) {
        let why = "profile `kai` finds reserved places again in each cycle";
        return Err(format!("action `promote` is not allowed: {why}"));
    }
    let action = |wire: &wire::Action| match wire {
        wire::Action::Promote => Action::Promote,
        wire::Action::Allocate => Action::Allocate,
        wire::Action::GiveBack => Action::GiveBack,
        wire::Action::Consolidate => Action::Consolidate,
        wire::Action::Reclaim => Action::Reclaim,
        wire::Action::Preempt => Action::Preempt,
        wire::Action::Stale => Action::Stale,
        wire::Action::Fit => Action::Fit,
        wire::Action::Grow => Action::Grow,
    };
    Ok(wire.iter().map(action).collect())
}

/// The window of past usage that counts for fairness.
///
/// # Errors
/// A length that is not allowed.
pub(crate) fn usage_window(
    wire: &wire::UsageWindow,
    now: Instant,
) -> Result<model::UsageWindow, String> {
    let kind = match (wire.kind, wire.began) {
        (wire::WindowKind::Sliding, None) => model::WindowKind::Sliding,
        (wire::WindowKind::Sliding, Some(_)) => {
            return Err("`usage`: a sliding window does not begin; leave `began` out".into());
        }
        (wire::WindowKind::Tumbling, began) => {
            let began_ms = began.map_or(0, |span| span.0);
            if began_ms > wire.window.0 {
                return Err("`usage`: the window `began` longer ago than it lasts".into());
            }
            model::WindowKind::Tumbling { start: Instant(now.0.saturating_sub(began_ms)) }
        }
    };
    let half_life_ms = wire.half_life.map(|span| span.0);
    model::UsageWindow::new(wire.window.0, kind, half_life_ms)
        .map_err(|error| format!("`usage`: {error}"))
}

/// The share of a project or department in a node pool.
pub(super) fn share(wire: &wire::QueueShare, ranks: &Ranks) -> Result<ShareChange, String> {
    let given = QuotaChange {
        quota: wire.quota,
        limit: wire.limit,
        weight: wire.weight,
        priority: wire.priority,
        ..QuotaChange::default()
    };
    let weight = |weight: Option<u32>| Some(u64::from(weight.unwrap_or(1)));
    Ok(ShareChange {
        gpu_quota_millis: Some(wire.quota.gpu.map_or(0, |amount| amount.0)),
        over_quota_weight: weight(wire.weight.gpu),
        cpu_weight: weight(wire.weight.cpu).map(Some),
        memory_weight: weight(wire.weight.memory).map(Some),
        preempt_min_runtime_ms: wire.preempt_min_runtime.map(|span| span.0),
        reclaim_min_runtime_ms: wire.reclaim_min_runtime.map(|span| span.0),
        ..share_change(&given, ranks)?
    })
}

/// The change of the share of a project or department.
pub(super) fn share_change(change: &QuotaChange, ranks: &Ranks) -> Result<ShareChange, String> {
    let limit = |amount: u64| (amount < u64::MAX).then_some(amount);
    let Amounts { gpu, cpu, memory } = change.quota;
    let (most, weight) = (change.limit, change.weight);
    Ok(ShareChange {
        gpu_quota_millis: gpu.map(|amount| amount.0.min(QUOTA_MILLIS_MAX)),
        gpu_limit_millis: most.gpu.map(|amount| limit(amount.0)),
        over_quota_weight: weight.gpu.map(u64::from),
        cpu_quota_millis: cpu.map(|amount| limit(amount.0)),
        memory_quota_bytes: memory.map(|amount| limit(amount.0)),
        cpu_limit_millis: most.cpu.map(|amount| limit(amount.0)),
        memory_limit_bytes: most.memory.map(|amount| limit(amount.0)),
        cpu_weight: weight.cpu.map(|weight| Some(weight.into())),
        memory_weight: weight.memory.map(|weight| Some(weight.into())),
        rank: change.priority.map(|priority| ranks.of(priority)).transpose()?,
        ..ShareChange::default()
    })
}

/// The amount that a MIG slice counts for.
pub(crate) const fn slice_value(profile: Profile) -> SliceValue {
    match profile {
        Profile::Default => SliceValue::Seventh,
        Profile::Kai(_) => SliceValue::Gpu,
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

/// The node constraints of a pod set.
///
/// # Errors
/// An affinity that is not possible.
pub(super) fn constraints(wire: &PodSet) -> Result<Constraints, String> {
    let toleration = |wire: &wire::Toleration| Toleration {
        key: wire.key.clone(),
        value: wire.value.clone(),
        effect: wire.effect.map(effect),
    };
    let (required, preferred) = wire.affinity.terms()?;
    let (pod_affinity, mut pod_preferences) = wire.pod_affinity.terms(false)?;
    let (pod_anti_affinity, worse) = wire.pod_anti_affinity.terms(true)?;
    pod_preferences.extend(worse);
    Ok(Constraints {
        selector: wire.selector.clone(),
        required,
        preferred,
        tolerations: wire.tolerations.iter().map(toleration).collect(),
        labels: wire.labels.clone(),
        pod_affinity,
        pod_anti_affinity,
        pod_preferences,
        ..Constraints::default()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_build_without_profile_kai_says_how_to_get_one_that_has_it() {
        let refused = super::built(None).unwrap_err();
        assert!(refused.contains("needs a build with the feature `kai`"), "{refused}");
        assert!(refused.contains("-p elastane-cli --features kai`"), "{refused}");
        assert!(super::built(sched::Policy::kai()).is_ok());
    }
}
