//! Making room for a workload at the expense of others. Owns: the search over whom to ask, the
//! proof that it helps (the placement is made before anybody is told), and keeping the loss as
//! small as it can be. Refuses to know what is just: that is each action's [`Rule`].
//!
//! Each node is priced on its own: the cheapest set of its pods whose going would make room for
//! one pod of the workload. The cheapest node is taken, priced anew, and so on until every pod
//! has a place. A price is an estimate that reads the state and changes nothing; the taking is
//! done in the transaction, where each piece is judged by the rule.

mod bound;
mod cost;
mod near;
mod price;
mod refused;
mod take;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use model::{ConflictingPods, NodeId, PodId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::Resources;

use crate::place::{self, Ask};
use crate::pools;
use crate::session::Session;
use crate::{Cause, WorkloadRef, topology};
pub(crate) use bound::Lumps;
use bound::Outlook;
use cost::Price;
pub(crate) use refused::Refused;
pub(crate) use take::{
    Taking, Takings, above_minimum_while_safe, freed, halvings, is_elastic, take, whole_workload,
};

/// What an action may take, and why.
pub(crate) trait Rule {
    /// Whether the workload may ask anybody at all.
    fn may_ask(&self, _: &Session<'_>, _: WorkloadId, _: Resources) -> bool {
        true
    }

    /// Whether this one may be asked.
    fn may_be_asked(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool;

    /// No more than this can come free by asking. It may say too much, never too little: what is
    /// refused by it could not have been served.
    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        lumps: &mut Lumps,
    ) -> Resources;

    /// In what pieces this one gives, each on top of the one before.
    fn takings(&self, s: &Session<'_>, victim: WorkloadId) -> Takings {
        whole_workload(s, victim)
    }

    /// Whether this one of its own queue gives way to remove what speaks against the workload:
    /// the limit or quota of the queue, or its entitlement.
    fn own_gives_way(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        self.may_be_asked(s, id, victim)
    }

    /// Whether queues that hold no more than their fair share are asked last.
    fn spares_the_entitled(&self) -> bool {
        false
    }

    /// Whether the queue may end with what it holds now; it held `held_before`.
    fn fair_outcome(&self, _: &Session<'_>, _: WorkloadId, _held_before: Resources) -> bool {
        true
    }

    /// Whether anybody's work is interrupted that was not on loan.
    fn disrupts(&self) -> bool {
        true
    }

    /// Whether one more taking from the victim is just, after what was already taken. What is not,
    /// is not either in a larger piece, of more important work of the same queue, or after more was
    /// taken from that queue, as long as the taker's queues would hold no less; and how much of
    /// something nobody asks for does not matter. [`Refused`] relies on it.
    fn just(&self, _: &Session<'_>, _: WorkloadId, _: Resources, _: WorkloadId, _: Taking) -> bool {
        true
    }

    /// Most workloads that may be asked for one; none of them may lose its place for good.
    fn moves_max(&self, _: &Session<'_>) -> Option<usize> {
        None
    }

    /// What the victim is told.
    fn cause(&self, s: &Session<'_>, id: WorkloadId, asked: Resources, victim: WorkloadId)
    -> Cause;
}

/// Nodes by price. Prices change as the search goes on; one is believed when it still holds at
/// the moment its node is taken.
#[derive(Debug, Default)]
pub(crate) struct Market {
    nodes: BinaryHeap<Reverse<(Price, NodeId)>>,
    /// Nodes that have nothing to offer because something was refused.
    dropped: Vec<NodeId>,
    /// Whether that was in an earlier deal.
    is_used: bool,
}

/// A workload that needs room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) id: WorkloadId,
    /// The size it is tried with, if elastic.
    gpus: Option<u32>,
    /// What the pod that is being placed needs of a place.
    pub(crate) ask: Ask,
    /// What the pods without a place ask for together.
    pub(crate) asked: Resources,
}

/// Makes room for `id` (at `gpus`, if elastic) within the rule, and places it. Nothing changes
/// when it returns false. `markets` keeps the prices between equal workloads of one action.
pub(crate) fn make_room(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    markets: &mut Markets,
    id: WorkloadId,
    gpus: Option<u32>,
) -> bool {
    let attempt = |s: &mut Session<'_>| {
        if make_room_here(s, rule, markets, id, gpus) { Ok(()) } else { Err(()) }
    };
    pools::in_order(s, id, attempt).is_ok()
}

/// The same within the node pool that is tried.
fn make_room_here(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    markets: &mut Markets,
    id: WorkloadId,
    gpus: Option<u32>,
) -> bool {
    let pods = s.next_pods(id);
    let Some(&first) = pods.first() else { return true };
    let patient_until = s.patient_until(id);
    if rule.disrupts() && patient_until > s.now {
        s.wake(patient_until);
        return false;
    }
    let ask = Ask::of(s, first, gpus);
    let need = Need { id, gpus, ask, asked: s.asked(&pods, gpus) };
    let start = s.cluster.checkpoint();
    let mut deal = Deal::new(s, rule, need);
    let done = deal.clear_own(s) && deal.conclude(s, markets);
    let keep_room_first = done && s.is_reservation_due(id);
    if !done || keep_room_first {
        s.cluster.rollback(start);
        markets.forget(s, &need);
        if !keep_room_first {
            return false;
        }
        s.keep_room();
        return make_room(s, rule, markets, id, gpus);
    }
    deal.tell(s);
    true
}

/// Makes room on its own node for a pod that is to run again with `gpus` GPUs, and places it there.
/// Nothing changes when it returns false.
pub(crate) fn make_room_in_place(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    pod: PodId,
    gpus: u32,
) -> bool {
    let Some(here) = s.cluster.pods()[pod].binding.effective() else { return false };
    let (id, node) = (s.cluster.pods()[pod].workload, here.node);
    let (pool, start) = (s.cluster.pool_of(id), s.cluster.checkpoint());
    s.settle(pod, None, false);
    let done = pools::within(s, id, pool, |s| {
        let ask = Ask::of(s, pod, Some(gpus));
        let need = Need { id, gpus: Some(gpus), ask, asked: s.asked(&[pod], Some(gpus)) };
        let mut deal = Deal::new(s, rule, need);
        let done = s.next_pods(id) == [pod] && deal.conclude_on(s, pod, node);
        done.then_some(deal)
    });
    let Some(deal) = done else {
        s.cluster.rollback(start);
        return false;
    };
    if s.is_reservation_due(id) {
        s.cluster.rollback(start);
        s.keep_room();
        return make_room_in_place(s, rule, pod, gpus);
    }
    deal.tell(s);
    true
}

impl Market {
    fn new(s: &Session<'_>, deal: &mut Deal<'_>, nodes: impl Iterator<Item = NodeId>) -> Self {
        let priced = nodes.filter_map(|node| {
            price::node(s, deal, node, &Refused::default())
                .map(|offer| Reverse((offer.price, node)))
        });
        Self { nodes: priced.collect(), ..Self::default() }
    }

    /// A node has another price than before, or none.
    fn put(&mut self, node: NodeId, price: Option<Price>, refused: &Refused) {
        match price {
            Some(price) => self.nodes.push(Reverse((price, node))),
            None if !refused.is_empty() => self.dropped.push(node),
            None => {}
        }
    }

    /// Asks those again who may have something to offer by now; false if nobody may.
    fn ask_again(&mut self, s: &Session<'_>, need: &Need, refused: &mut Refused) -> bool {
        if !std::mem::take(&mut self.is_used) && !refused.forgive(s, need) {
            return false;
        }
        self.nodes.extend(self.dropped.drain(..).map(|node| Reverse((Price::NOTHING, node))));
        !self.nodes.is_empty()
    }
}

/// Prices kept between equal workloads of one action.
#[derive(Debug, Default)]
pub(crate) struct Markets(Vec<(Need, Market)>);

impl Markets {
    fn of(&mut self, s: &Session<'_>, deal: &mut Deal<'_>) -> &mut Market {
        let at = self.0.iter().position(|(other, _)| same_market(s, other, &deal.need));
        let at = at.unwrap_or_else(|| {
            self.0.push((deal.need, Market::new(s, deal, s.cluster.nodes().ids())));
            self.0.len() - 1
        });
        let market = &mut self.0[at].1;
        market.is_used = !market.dropped.is_empty();
        market
    }

    /// What was rolled back has its old price again, whichever pod of the workload it was for.
    fn forget(&mut self, s: &Session<'_>, need: &Need) {
        self.0.retain(|(other, _)| !same_taker(s, other, need));
    }
}

fn same_market(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    left.ask == right.ask && same_taker(s, left, right)
}

fn same_taker(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
    let (l, r) = (spec(left.id), spec(right.id));
    (l.queue, l.priority) == (r.queue, r.priority)
}

/// One attempt to make room.
#[derive(Clone)]
struct Deal<'r> {
    rule: &'r dyn Rule,
    need: Need,
    /// Who was asked, in order, and how many pods of each of its sets had a place.
    givers: Vec<(WorkloadId, SmallVec<[u32; 1]>)>,
    /// What each is told: the numbers are of before anything was taken from it.
    causes: BTreeMap<WorkloadId, Cause>,
    /// What the taker's queue held.
    held_before: Resources,
    lumps: Lumps,
    conflicting: ConflictingPods,
    /// Whether to search even where the outcome is known.
    exhaustive: bool,
}

impl<'r> Deal<'r> {
    fn new(s: &Session<'_>, rule: &'r dyn Rule, need: Need) -> Self {
        Self {
            rule,
            need,
            givers: Vec::new(),
            causes: BTreeMap::new(),
            held_before: s.cluster.queues()[s.queue_of(need.id)].held(),
            lumps: Lumps::default(),
            conflicting: ConflictingPods::default(),
            exhaustive: false,
        }
    }
}

impl Deal<'_> {
    /// If its own queue is the obstacle (limit, quota, entitlement), only that queue can remove it:
    /// takes from it, the least important first, of them the cheapest and youngest, until nothing speaks against the
    /// workload. What turns out not to have been needed is put back in the end.
    fn clear_own(&mut self, s: &mut Session<'_>) -> bool {
        if self.is_clear(s) {
            return true;
        }
        let id = self.need.id;
        let mut own = s.workloads_below(s.refusing_queue(id, self.need.asked));
        own.retain(|&victim| victim != id && self.rule.own_gives_way(s, id, victim));
        own.sort_by_cached_key(|&victim| {
            let spec = &s.cluster.workloads()[victim].spec;
            let lost = cost::lost(s, victim, &[Taking::All(victim)]);
            (spec.priority, lost, Reverse(spec.seq))
        });
        for victim in own {
            for taking in self.rule.takings(s, victim) {
                if !self.take(s, victim, taking) {
                    break;
                }
                if self.is_clear(s) {
                    return true;
                }
            }
        }
        false
    }

    fn is_clear(&self, s: &Session<'_>) -> bool {
        let Need { id, asked, .. } = self.need;
        s.check_queue(id, asked).is_ok()
            && s.leaves_headroom(id, asked)
            && self.rule.may_ask(s, id, asked)
    }

    /// Finds places, for the workload and for whom it was taken from.
    fn conclude(&mut self, s: &mut Session<'_>, markets: &mut Markets) -> bool {
        self.place(s, markets)
            && self.rule.fair_outcome(s, self.need.id, self.held_before)
            && self.go_on(s)
    }

    /// Finds a place for every pod. No node is priced when the outcome is known without it.
    fn place(&mut self, s: &mut Session<'_>, markets: &mut Markets) -> bool {
        match self.outlook(s) {
            Outlook::Hopeless => {
                debug_assert!(!self.found_anyway(s), "a search would have succeeded");
                false
            }
            Outlook::OnlyWhatIsFree => s.place(self.need.id, self.need.gpus).is_ok(),
            Outlook::Open => self.place_all(s, markets),
        }
    }

    /// The same for one pod, on one node only.
    fn conclude_on(&mut self, s: &mut Session<'_>, pod: PodId, node: NodeId) -> bool {
        let refused = &mut Refused::default();
        self.is_clear(s)
            && price::node(s, self, node, refused)
                .is_some_and(|offer| self.accept(s, node, &offer, refused))
            && self.settle(s, pod, node)
            && self.rule.fair_outcome(s, self.need.id, self.held_before)
            && self.go_on(s)
    }

    /// One cheapest node at a time.
    fn place_all(&mut self, s: &mut Session<'_>, markets: &mut Markets) -> bool {
        let id = self.need.id;
        let pods = s.next_pods(id);
        let placed = topology::place(s, &mut near::Bidder::new(self, markets), id, &pods).is_ok();
        if placed {
            s.reserve_together(id, &pods);
        }
        placed
    }

    fn place_one(
        &mut self,
        s: &mut Session<'_>,
        market: &mut Market,
        pod: PodId,
        refused: &mut Refused,
    ) -> bool {
        let mut looked = false;
        loop {
            let Some(Reverse((believed, node))) = market.nodes.pop() else {
                if market.ask_again(s, &self.need, refused) {
                    continue;
                }
                return false;
            };
            if !s.may_try() {
                return false;
            }
            let offer = price::node(s, self, node, refused);
            let price = offer.as_ref().map(|offer| offer.price);
            let Some(offer) = offer.filter(|offer| offer.price <= believed) else {
                market.put(node, price, refused);
                continue;
            };
            let accepted = self.accept(s, node, &offer, refused);
            // What is refused changes nothing, so once is enough.
            if !accepted
                && !std::mem::replace(&mut looked, true)
                && self.outlook(s) == Outlook::Hopeless
            {
                debug_assert!(!self.found_anyway(s), "a search would have succeeded");
                return false;
            }
            let placed = accepted && self.settle(s, pod, node);
            // Whatever came of it, the node has another price now.
            let offer = price::node(s, self, node, refused);
            market.put(node, offer.map(|offer| offer.price), refused);
            if placed {
                return true;
            }
        }
    }

    /// Takes what a node's price is made of; false when a piece of it turned out to be unjust,
    /// and what was taken was given back.
    fn accept(
        &mut self,
        s: &mut Session<'_>,
        node: NodeId,
        offer: &price::Offer,
        refused: &mut Refused,
    ) -> bool {
        if let Some((victim, taking)) = self.known_to_fail(s, offer, refused) {
            refused.here(s, &self.need, (node, victim, taking));
            return false;
        }
        let start = s.cluster.checkpoint();
        let before = self.givers.len();
        let mut taken = Resources::ZERO;
        for &(victim, pieces) in &offer.victims {
            let takings = self.rule.takings(s, victim);
            for &taking in takings.iter().take(pieces) {
                let piece = freed(s, taking);
                if self.take(s, victim, taking) {
                    taken += piece;
                    continue;
                }
                s.cluster.rollback(start);
                for (victim, _) in self.givers.drain(before..) {
                    self.causes.remove(&victim);
                }
                let is_new = !self.causes.contains_key(&victim);
                let most = self.rule.moves_max(s).filter(|_| is_new);
                if most.is_some_and(|most| self.givers.len() >= most) {
                    refused.all_but(self.givers.iter().map(|&(giver, _)| giver).collect());
                    return false;
                }
                if most.is_none() {
                    refused.piece(s, &self.need, victim, (taken, piece));
                }
                refused.here(s, &self.need, (node, victim, taking));
                return false;
            }
        }
        true
    }

    /// The first of these pieces of which it is known that it will be refused. What is taken from less
    /// important work of its queue does not count, because that changes nothing for it.
    fn known_to_fail(
        &self,
        s: &Session<'_>,
        offer: &price::Offer,
        refused: &Refused,
    ) -> Option<(WorkloadId, Taking)> {
        if refused.is_empty() {
            return None;
        }
        let mut taken: Vec<(QueueId, u32, Resources)> = Vec::new();
        for &(victim, pieces) in &offer.victims {
            let (queue, priority) =
                (s.queue_of(victim), s.cluster.workloads()[victim].spec.priority);
            let takings = self.rule.takings(s, victim);
            // Only of the first piece it is plain how much it frees.
            let (&first, piece) = takings.first().map(|first| (first, freed(s, *first)))?;
            let own =
                taken.iter().filter(|(other, least, _)| *other == queue && *least >= priority);
            let before = own.map(|&(.., freed)| freed).sum();
            if refused.knows(s, &self.need, victim, (before, piece)) {
                return Some((victim, first));
            }
            let all = takings.get(pieces - 1).map_or(piece, |&last| freed(s, last));
            taken.push((queue, priority, all));
        }
        None
    }

    fn settle(&mut self, s: &mut Session<'_>, pod: PodId, node: NodeId) -> bool {
        let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
        let place = |now| place::on_node(s.cluster, node, self.need.ask, now, fill);
        let found = place(true).map(|to| (to, true)).or_else(|| place(false).map(|to| (to, false)));
        let Some((to, at_once)) = found else { return false };
        // What has a place is on the accounts now, and no longer asked for.
        let placed = s.cluster.amounts(pod, &to);
        self.need.asked = self.need.asked.saturating_sub(placed);
        s.settle(pod, Some(to), at_once);
        true
    }

    /// One piece, if it is just.
    fn take(&mut self, s: &mut Session<'_>, victim: WorkloadId, taking: Taking) -> bool {
        if !self.rule.just(s, self.need.id, self.need.asked, victim, taking) {
            return false;
        }
        if !self.causes.contains_key(&victim) {
            let most = self.rule.moves_max(s);
            if most.is_some_and(|most| self.givers.len() >= most) {
                return false;
            }
            let cause = self.rule.cause(s, self.need.id, self.need.asked, victim);
            self.causes.insert(victim, cause);
            let sets = &s.cluster.workloads()[victim].pod_sets;
            self.givers.push((victim, sets.iter().map(|set| set.placed).collect()));
        }
        take::take(s, taking);
        true
    }

    /// Finds other places for who was asked, the first by rank first. True unless the rule
    /// demands that all of them find one and somebody did not.
    /// Nobody comes back whose queue would then hold more than the rule lets the taker have.
    fn go_on(&self, s: &mut Session<'_>) -> bool {
        let mut order: Vec<_> = self.givers.iter().collect();
        order.sort_by_key(|&&(victim, _)| crate::order::by_rank(s.cluster, victim));
        for (victim, had) in order {
            let full = |s: &Session<'_>| {
                let sets = (0..).zip(&s.cluster.workloads()[*victim].pod_sets).zip(had);
                let full = sets.filter(|((_, set), had)| set.placed >= **had);
                full.map(|((at, _), _)| at).collect::<SmallVec<[usize; 1]>>()
            };
            // It is put back as it was: no set grows in place of another. A gang that has lost a pod
            // for good has no next ones: it cannot be put anywhere.
            let mut sets = full(s);
            while sets.len() < had.len() && !s.next_pods_beside(*victim, &sets).is_empty() {
                let start = s.cluster.checkpoint();
                let placed = s.put_back(*victim, &sets) || s.place_again(*victim, &sets);
                if !placed || !self.rule.fair_outcome(s, self.need.id, self.held_before) {
                    s.cluster.rollback(start);
                    break;
                }
                sets = full(s);
            }
            if sets.len() < had.len() && self.rule.moves_max(s).is_some() {
                return false;
            }
        }
        true
    }

    /// Records why each pod that is stopped is stopped. One that only changes size is told so,
    /// whatever the rule.
    fn tell(self, s: &mut Session<'_>) {
        let beneficiary = s.reference(self.need.id);
        for (victim, cause) in self.causes {
            inherit(s, victim, &beneficiary);
            for pod in s.cluster.workloads()[victim].pods.clone() {
                let before = s.cluster.original(pod).current.as_ref();
                let after = s.cluster.pods()[pod].binding.effective();
                let cause = match (before, after) {
                    (Some(before), Some(after))
                        if before.node == after.node
                            && before.devices.len() != after.devices.len() =>
                    {
                        Cause::Resized {
                            gpus_before: before.devices.len(),
                            gpus_after: after.devices.len(),
                            beneficiary: Some(beneficiary.clone()),
                        }
                    }
                    _ => cause.clone(),
                };
                s.causes.insert(pod, cause);
            }
        }
    }
}

/// Others may have been stopped in this cycle for one that lost its place again: they were
/// stopped for whoever has it now.
fn inherit(s: &mut Session<'_>, from: WorkloadId, to: &WorkloadRef) {
    let workload = &s.cluster.workloads()[from];
    let had_none = |pod: &PodId| s.cluster.original(*pod).effective().is_none();
    if workload.placed > 0 || !workload.pods.iter().any(had_none) {
        return;
    }
    for cause in s.causes.values_mut() {
        if let Some(beneficiary) = cause.beneficiary_mut().filter(|other| other.id == from) {
            *beneficiary = to.clone();
        }
    }
}
