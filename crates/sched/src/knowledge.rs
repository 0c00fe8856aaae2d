//! Knowledge about workloads and queues from earlier decisions. Owns: the classes of waiting
//! workloads, their reasons to wait, and the test whether anything is left to decide.
//!
//! After a decision that changed nothing, waiting workloads go on waiting as long as only their
//! number changes: another workload of a class that found no place finds none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Changes, Cluster, Demand, PodId, QueueId, WorkloadId, next_pods};
use units::{Instant, Resources};

use crate::rank::{Rank, by_rank};
use crate::{Plan, Policy, Profile, Waits};
use model::equivalence_class::EquivalenceClass;
use reasons::{ClassId, Pending};
use shares::Entitlements;

/// Knowledge about a cluster from earlier decisions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    /// Number of the cluster's changes that have been taken; `None` before the first decision.
    taken: Option<u64>,
    policy: Option<Policy>,
    pub(crate) entitlements: Entitlements,
    /// Queues whose demand changed in the last decision.
    asks: BTreeSet<QueueId>,
    /// Workloads that changed in the last decision, whose counted demand was kept constant in it.
    later: BTreeSet<WorkloadId>,
    /// Workloads that may be considered now, by class.
    rows: BTreeMap<ClassId, Row>,
    ids: BTreeMap<EquivalenceClass, ClassId>,
    last_id: u64,
    /// `true` if classes have been renumbered since the last plan.
    is_renumbered: bool,
    /// Workloads that wait, have a place reserved, or are gated.
    known: BTreeMap<WorkloadId, Known>,
    /// Workloads in back-off, by its end.
    pub(crate) resting: BTreeSet<(Instant, WorkloadId)>,
    /// Workloads with reasons of their own to wait.
    pub(crate) odd: BTreeMap<WorkloadId, Arc<[Pending]>>,
    /// Workloads whose reasons no plan has listed yet.
    pub(crate) fresh: BTreeSet<WorkloadId>,
    /// The last decision, if it changed nothing and was complete.
    pub(crate) quiet: Option<QuietCycle>,
    /// The only classes to consider; all classes if `None`.
    pub(crate) only: Option<BTreeSet<ClassId>>,
}

/// Waiting workloads that are equal to every decision.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) class: EquivalenceClass,
    pub(crate) members: BTreeSet<(Rank, WorkloadId)>,
    pub(crate) reasons: Option<Arc<[Pending]>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    rank: Rank,
    row: Option<ClassId>,
    not_before: Instant,
}

/// A decision that changed nothing.
#[derive(Debug, Clone)]
pub(crate) struct QuietCycle {
    pub(crate) revision: u64,
    pub(crate) wake_at: Option<Instant>,
    pub(crate) trials: u64,
    /// Number of workloads with a reservation due.
    pub(crate) due: usize,
}

/// Changes since the last decision.
pub(crate) struct CacheUpdate {
    /// New classes.
    pub(crate) classes: BTreeSet<ClassId>,
    /// `true` if there are no changes besides more workloads of known classes, and new classes.
    pub(crate) is_more_of_the_same: bool,
}

/// Fair shares of all queues.
#[must_use]
pub fn fair_shares(cluster: &Cluster, policy: &Policy) -> BTreeMap<QueueId, Resources> {
    Knowledge::of_shares(cluster, policy).into_shares()
}

impl Knowledge {
    /// Knowledge that has only the fair shares of queues.
    pub(crate) fn of_shares(cluster: &Cluster, policy: &Policy) -> Self {
        let mut known = Self::default();
        known.entitlements.demand = counted(cluster, policy);
        renew_shares(&mut known.entitlements, cluster, policy, true);
        known.entitlements.moved.clear();
        known
    }

    /// Fair share of each queue, as of the last decision.
    pub(crate) const fn shares(&self) -> &BTreeMap<QueueId, Resources> {
        &self.entitlements.fair
    }

    pub(crate) fn into_shares(self) -> BTreeMap<QueueId, Resources> {
        self.entitlements.fair
    }

    pub(crate) fn row(&self, id: ClassId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The known id of a class.
    pub(crate) fn row_like(&self, class: &EquivalenceClass) -> Option<ClassId> {
        self.ids.get(class).copied()
    }

    /// The classes to consider.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (ClassId, &Row)> {
        let wanted = |id: &ClassId| self.only.as_ref().is_none_or(|only| only.contains(id));
        self.rows.iter().filter(move |(id, _)| wanted(id)).map(|(id, row)| (*id, row))
    }

    /// Stores the reasons of a class; adds them to `renewed` if earlier plans listed others.
    pub(crate) fn explain_class(
        &mut self,
        at: ClassId,
        reasons: Vec<Pending>,
        renewed: &mut BTreeMap<ClassId, Arc<[Pending]>>,
    ) {
        let Some(row) = self.rows.get_mut(&at) else { return };
        if row.reasons.as_deref() == Some(&reasons) {
            return;
        }
        let reasons: Arc<[Pending]> = reasons.into();
        if row.reasons.replace(reasons.clone()).is_some() {
            renewed.insert(at, reasons);
        } else {
            self.fresh.extend(row.members.iter().map(|&(_, id)| id));
        }
    }

    /// The class of a candidate, and its position in the queue.
    pub(crate) fn row_of(&self, id: WorkloadId) -> Option<(ClassId, Rank)> {
        let known = self.known.get(&id)?;
        known.row.map(|row| (row, known.rank))
    }

    /// Applies the changes since the last decision.
    pub(crate) fn learn(
        &mut self,
        cluster: &mut Cluster,
        now: Instant,
        policy: &Policy,
    ) -> CacheUpdate {
        // Profile `kai` starts without knowledge each time.
        let is_first = self.taken != Some(cluster.changes_taken())
            || self.policy.as_ref() != Some(policy)
            || matches!(policy.profile, Profile::Kai(_));
        let changes = cluster.take_changes();
        let mut changed = changes.workloads.clone();
        if is_first || changes.renamed {
            let mut fresh = std::mem::take(&mut self.fresh);
            fresh.extend(std::mem::take(&mut self.known).into_keys());
            self.forget(policy);
            self.fresh = fresh;
            changed.extend(cluster.waiting());
            let pods = cluster.reserved().iter().chain(cluster.gated());
            changed.extend(pods.map(|&pod| cluster.pods()[pod].workload));
            self.entitlements.demand = counted(cluster, policy);
            renew_shares(&mut self.entitlements, cluster, policy, true);
        } else {
            self.learn_demand(cluster, &changes);
        }
        self.taken = Some(cluster.changes_taken());
        // The first time, everything is computed already.
        let matters = match is_first || changes.renamed {
            true => changes.division || !changes.shares.is_empty(),
            false => self.learn_shares(cluster, policy, &changes),
        };
        let rested = self.resting.iter().take_while(|(until, _)| *until <= now);
        changed.extend(rested.map(|&(_, id)| id).collect::<Vec<_>>());
        let mut update = self.index(cluster, now, &changed);
        update.is_more_of_the_same &= !matters;
        update
    }

    /// Applies the changes of the present decision, which affect only places of pods.
    pub(crate) fn follow(&mut self, cluster: &mut Cluster, now: Instant) {
        let changes = cluster.take_changes();
        self.taken = Some(cluster.changes_taken());
        // Shares stay constant until the next decision.
        self.asks.extend(changes.asks);
        self.later.extend(&changes.workloads);
        self.index(cluster, now, &changes.workloads);
    }

    /// Updates the counted demand. Equal workloads are computed once.
    fn learn_demand(&mut self, cluster: &Cluster, changes: &Changes) {
        let mut changed = std::mem::take(&mut self.later);
        changed.extend(&changes.workloads);
        let demand = &mut self.entitlements.demand;
        let renewed = changes.division || !changes.shares.is_empty();
        if renewed {
            let same = |id: &WorkloadId| !changed.contains(id);
            let alike = self.rows.values().map(|row| {
                let members = row.members.iter().map(|member| member.1);
                members.filter(same)
            });
            demand.renew(cluster, alike);
            changed.extend(self.resting.iter().map(|&(_, id)| id));
            changed.extend(cluster.elastic());
        }
        self.asks.extend(demand.update(cluster, &changed));
        if !changes.division {
            self.entitlements.update_supply(cluster, &changed);
        }
        let demand = &mut self.entitlements.demand;
        self.asks.extend(&changes.asks);
        match renewed {
            true => demand.limit_all(cluster),
            false => demand.limit(cluster, &self.asks),
        }
    }

    fn forget(&mut self, policy: &Policy) {
        *self = Self { policy: Some(policy.clone()), is_renumbered: true, ..Self::default() };
    }

    fn learn_shares(&mut self, cluster: &Cluster, policy: &Policy, changes: &Changes) -> bool {
        if changes.division || !changes.shares.is_empty() {
            renew_shares(&mut self.entitlements, cluster, policy, changes.division);
            return true;
        }
        let asks = std::mem::take(&mut self.asks);
        self.entitlements.update(cluster, policy.division(), &asks)
    }

    /// Updates the state of these workloads.
    fn index(
        &mut self,
        cluster: &Cluster,
        now: Instant,
        changed: &BTreeSet<WorkloadId>,
    ) -> CacheUpdate {
        let mut update = CacheUpdate { classes: BTreeSet::new(), is_more_of_the_same: true };
        for &id in changed {
            let now = WorkloadState::of(cluster, now, id);
            let was_odd = self.odd.contains_key(&id);
            let same = match (&now, self.known.get(&id)) {
                (None, None) => true,
                (Some(now), Some(known)) => {
                    let row = now.class.as_ref().map(|class| self.ids.get(class).copied());
                    (now.rank, now.not_before) == (known.rank, known.not_before)
                        && row.map_or(known.row.is_none(), |row| row.is_some() && row == known.row)
                        && !(now.is_odd || was_odd)
                }
                _ => false,
            };
            if same {
                continue;
            }
            let was_first = self.leave(id);
            self.fresh.insert(id);
            let Some(now) = now else {
                update.is_more_of_the_same &= !was_odd && !was_first;
                continue;
            };
            let is_odd = now.is_odd;
            let joined = self.join(id, now);
            let is_first = |row: &Row| row.members.first().is_some_and(|first| first.1 == id);
            match joined.and_then(|at| Some((at, self.rows.get(&at)?))) {
                Some((at, row)) if is_first(row) && row.reasons.is_none() => {
                    update.classes.insert(at);
                }
                Some((_, row)) if is_first(row) => update.is_more_of_the_same = false,
                _ => {}
            }
            update.is_more_of_the_same &= !was_odd && !was_first && !is_odd;
        }
        update
    }

    /// Removes a workload; returns `true` if it was the first of its class.
    fn leave(&mut self, id: WorkloadId) -> bool {
        self.odd.remove(&id);
        let Some(known) = self.known.remove(&id) else { return false };
        self.resting.remove(&(known.not_before, id));
        let Some((at, row)) = known.row.and_then(|at| Some((at, self.rows.get_mut(&at)?))) else {
            return false;
        };
        let was_first = row.members.first().is_some_and(|member| member.1 == id);
        row.members.remove(&(known.rank, id));
        if row.members.is_empty()
            && let Some(row) = self.rows.remove(&at)
        {
            self.ids.remove(&row.class);
        }
        was_first
    }

    /// Records the state of a workload; returns its class, if it may be considered.
    fn join(&mut self, id: WorkloadId, now: WorkloadState) -> Option<ClassId> {
        let WorkloadState { rank, not_before, class, rests, is_odd } = now;
        let row = class.map(|class| {
            let at = self.ids.get(&class).copied().unwrap_or_else(|| {
                self.last_id += 1;
                let id = ClassId(self.last_id);
                self.ids.insert(class.clone(), id);
                let row = Row { class, members: BTreeSet::new(), reasons: None };
                self.rows.insert(id, row);
                id
            });
            if let Some(row) = self.rows.get_mut(&at) {
                row.members.insert((rank, id));
            }
            at
        });
        if rests {
            self.resting.insert((not_before, id));
        }
        if is_odd {
            self.odd.insert(id, Arc::default());
        }
        self.known.insert(id, Known { rank, row, not_before });
        row
    }

    /// Lists the reasons of workloads that are new or changed since the last decision.
    pub(crate) fn tell_fresh(&mut self, plan: &mut Plan) {
        plan.is_renumbered = std::mem::take(&mut self.is_renumbered);
        for id in std::mem::take(&mut self.fresh) {
            let of_class = || {
                let class = self.known.get(&id)?.row?;
                let reasons = self.rows.get(&class)?.reasons.clone()?;
                Some(Waits { reasons, class: Some(class) })
            };
            let alone = |own: &Arc<[Pending]>| Waits { reasons: own.clone(), class: None };
            let waits = self.odd.get(&id).map(alone).or_else(of_class);
            plan.pending.insert(id, waits.unwrap_or_default());
        }
    }

    /// The first of a class that has no reasons of its own.
    pub(crate) fn plain_member(&self, row: &Row) -> Option<WorkloadId> {
        row.members.iter().map(|member| member.1).find(|id| !self.odd.contains_key(id))
    }
}

/// The state of a workload that waits, has a place reserved, or is gated.
struct WorkloadState {
    rank: Rank,
    not_before: Instant,
    /// Its class, if it may be considered.
    class: Option<EquivalenceClass>,
    rests: bool,
    /// `true` if it waits for reasons of its own.
    is_odd: bool,
}

impl WorkloadState {
    fn of(cluster: &Cluster, now: Instant, id: WorkloadId) -> Option<Self> {
        let workload = cluster.workloads().get(id)?;
        let waits = cluster.is_waiting(id);
        let next = |pod: &PodId| cluster.pods()[*pod].binding.next.is_some();
        let reserved = !cluster.reserved().is_empty() && workload.pods.iter().any(next);
        let gated = workload.pods.iter().any(|pod| cluster.gated().contains(pod));
        if !(waits || reserved || gated) {
            return None;
        }
        let rests = waits && workload.not_before > now;
        let is_odd = reserved || gated || rests || next_pods(cluster, id, &[]).is_empty();
        Some(Self {
            rank: by_rank(cluster, id),
            not_before: workload.not_before,
            class: (waits && !rests).then(|| EquivalenceClass::of(cluster, id)),
            rests,
            is_odd,
        })
    }
}

/// The counted demand: in profile `kai` all requests.
fn counted(cluster: &Cluster, policy: &Policy) -> Demand {
    match policy.profile {
        Profile::Default => Demand::all(cluster),
        Profile::Kai(_) => Demand::default(),
    }
}

/// Recomputes the fair shares of all queues, and the usable GPUs of workloads if new.
fn renew_shares(
    entitlements: &mut Entitlements,
    cluster: &Cluster,
    policy: &Policy,
    is_supply_new: bool,
) {
    #[cfg(feature = "kai")]
    if matches!(policy.profile, Profile::Kai(_)) {
        return entitlements.set(cluster, crate::kai::kai_fair_shares(cluster, policy));
    }
    if is_supply_new {
        entitlements.renew_supply(cluster);
    }
    entitlements.renew(cluster, policy.division());
}
