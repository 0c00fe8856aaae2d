//! Reasons why nothing is taken for a workload whose project is entitled to more. Owns: naming the
//! rule that protects the other work. Siblings are summed once a decision.

use std::collections::BTreeMap;

use model::{PoolId, QueueId, Share, WorkloadId};
use units::{Kind, Resources};

use crate::entitlement::{beyond, deserved, within};
use crate::session::Session;
use crate::victims::above_minimum_while_safe;
use crate::{Action, Profile};
use reasons::Pending;
use reasons::Protection;

/// Used resources of sibling queues in one kind, and the parts that may be taken.
#[derive(Debug, Clone, Default)]
struct Group {
    held: u64,
    fixed: u64,
    /// Preemptible and beyond the quotas, as far as these can be honoured.
    over_quota: u64,
    /// Preemptible and beyond the fair shares and the quotas.
    over_share: u64,
    /// The queues with the most preemptible use.
    largest: Vec<(u64, QueueId)>,
    /// Two of the queues beyond their quotas that have work outside of its guaranteed run time.
    open: Vec<QueueId>,
}

/// The groups that have been summed.
#[derive(Debug, Default)]
pub(crate) struct Protections(BTreeMap<(Option<QueueId>, PoolId, Kind), Group>);

impl Protections {
    /// The reason why nothing is taken for a workload that its queue accepts and has a share for.
    pub(crate) fn reason(
        &mut self,
        s: &Session<'_>,
        id: WorkloadId,
        kind: Kind,
    ) -> Option<Pending> {
        let takes = |action: &Action| matches!(action, Action::Reclaim | Action::Preempt);
        if s.policy.profile != Profile::Default || !s.policy.actions.iter().any(takes) {
            return None;
        }
        let asked = s.ask(id, None);
        let by = self.rule(s, id, kind, asked)?;
        Some(Pending::Protected { kind, requested: asked[kind], by })
    }

    fn rule(
        &mut self,
        s: &Session<'_>,
        id: WorkloadId,
        kind: Kind,
        asked: Resources,
    ) -> Option<Protection> {
        let leaf = s.queue_of(id);
        let (mut others, mut most) = (Group::default(), Resources::ZERO);
        let (mut surplus, mut is_within) = (0, true);
        let mut above = None;
        for queue in s.cluster.lineage(leaf) {
            let held = s.cluster.queues()[queue].held().saturating_sub(most);
            if beyond(held, asked, s.fair()[&queue]).is_some() {
                above = Some(queue);
                break;
            }
            is_within &= within(s, queue, asked, deserved(s, queue));
            let group = self.without(s, queue, kind);
            let over = if is_within { group.over_quota } else { group.over_share };
            surplus += over;
            most[kind] += over;
            others.held += group.held;
            others.fixed += group.fixed;
            others.open.extend(group.open);
            others.largest.extend(group.largest);
        }
        let workload = &s.cluster.workloads()[id];
        let (spec, priority) = (&workload.spec, workload.next_priority());
        let own = &s.cluster.queues()[leaf];
        let largest = others.largest.into_iter().max_by_key(|(held, _)| *held);
        let is_lowest = own.preemptible.keys().next().is_none_or(|least| *least >= priority);
        Some(match (others.held, surplus) {
            (0, _) if own.held()[kind] == 0 && above.is_none() => return None,
            _ if s.patient_until(id) > s.now => {
                Protection::Delay { delay_ms: spec.preemption_delay_ms }
            }
            (0, _) if is_lowest && above.is_none() => {
                Protection::OwnWork { queue: s.numbers(leaf, kind), priority }
            }
            (_, 1..) if s.guarantees_time() && others.open.is_empty() => {
                Protection::RunTime { held: surplus }
            }
            (_, 1..) => Protection::NoWay { held: surplus },
            (held @ 1.., 0) if others.fixed >= held => Protection::NotPreemptible { held },
            _ => match (above, largest) {
                (Some(above), _) => Protection::Above { queue: s.numbers(above, kind) },
                (None, Some((_, holder))) => {
                    Protection::WithinShare { holder: s.numbers(holder, kind) }
                }
                (None, None) => Protection::NoWay { held: surplus },
            },
        })
    }

    /// The sum of the siblings of a queue.
    fn without(&mut self, s: &Session<'_>, queue: QueueId, kind: Kind) -> Group {
        let row = &s.cluster.queues()[queue];
        let key = (row.parent, row.pool, kind);
        let sum_up = || {
            let mut group = Group::default();
            let all = s.siblings(queue).into_iter().chain([queue]);
            for sibling in all {
                group.add(s, sibling, kind);
                group.note_open(s, sibling, kind);
            }
            group.largest.sort_unstable_by(|left, right| right.cmp(left));
            group.largest.truncate(2);
            group
        };
        let mut group = self.0.entry(key).or_insert_with(sum_up).clone();
        let mut own = Group::default();
        own.add(s, queue, kind);
        group.held -= own.held;
        group.fixed -= own.fixed;
        group.over_quota -= own.over_quota;
        group.over_share -= own.over_share;
        group.largest.retain(|(_, other)| *other != queue);
        group.open.retain(|other| *other != queue);
        group
    }
}

impl Group {
    fn add(&mut self, s: &Session<'_>, id: QueueId, kind: Kind) {
        let row = &s.cluster.queues()[id];
        let (held, fixed) = (row.held()[kind], row.allocated_non_preemptible[kind]);
        let (quota, fair) = (deserved(s, id)[kind], s.fair()[&id][kind]);
        let preemptible = held.saturating_sub(fixed);
        let over = |most: u64| held.saturating_sub(most).min(preemptible);
        self.held += held;
        self.fixed += fixed.min(held);
        self.over_quota += over(quota);
        self.over_share += over(quota.max(fair));
        if preemptible > 0 {
            self.largest.push((preemptible, id));
        }
    }

    fn note_open(&mut self, s: &Session<'_>, id: QueueId, kind: Kind) {
        let held = s.cluster.queues()[id].held()[kind];
        if self.open.len() == 2 || !s.guarantees_time() || held <= deserved(s, id)[kind] {
            return;
        }
        let open = |who: WorkloadId| {
            let guaranteed = |share: &Share| share.reclaim_min_runtime_ms;
            s.can_give_way(who) && !above_minimum_while_safe(s, who, guaranteed).is_empty()
        };
        if s.workloads_below(id).into_iter().any(open) {
            self.open.push(id);
        }
    }
}
