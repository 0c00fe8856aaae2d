//! Published reasons why workloads wait. Owns: that the reasons of an equivalence class are stored
//! once, and the events when they change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::WorkloadId;
use reasons::{ClassId, Pending};
use records::Desired;
use sched::{Plan, Waits};
use units::Instant;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Workload;
use view::codes::{CLEARING_UP, NOT_CONSIDERED};
use view::{Membership, PENDING, PendingReason, ReasonView};

/// A code and its text, created once for all workloads that wait for it.
pub(crate) type ReasonText = (&'static str, Arc<str>);

const NOT_CONSIDERED_YET: &str = "the scheduler has not looked at it yet";

/// Reasons as text at an instant, each list created once for any number of workloads.
pub(crate) struct InWords {
    now: Instant,
    lists: BTreeMap<*const Pending, Arc<[ReasonText]>>,
}

impl InWords {
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now, lists: BTreeMap::new() }
    }

    pub(crate) fn of(&mut self, reasons: &[Pending]) -> Arc<[ReasonText]> {
        let now = self.now;
        let tell = |why: &Pending| (why.code().code, why.as_of(now).to_string().into());
        let in_words = || reasons.iter().map(tell).collect();
        self.lists.entry(reasons.as_ptr()).or_insert_with(in_words).clone()
    }
}

impl Workload {
    pub(crate) fn wants_to_run(&self) -> bool {
        self.desired == Desired::Run && self.completed_at.is_none()
    }

    /// Its equivalence class, if it waits.
    pub(crate) fn pending_class(&self) -> Option<ClassId> {
        self.pending.iter().find_map(PendingReason::class)
    }
}

impl State {
    /// Sets "not considered" as the reason of a workload that waits without one, as long as that is
    /// so. Also removes the reason of an earlier run that has ended.
    pub(crate) fn explain_unconsidered(&mut self, id: Uuid) {
        let (now, clears_up) = (self.now, self.waits_for_orphan(id));
        let Some(workload) = self.workloads.get(&id) else { return };
        let is_gated = |pod| self.cluster.gated().contains(&pod);
        let waits = workload.model.is_some_and(|model| self.cluster.is_waiting(model))
            || workload.pods.iter().filter_map(|pod| pod.model).any(is_gated);
        let is_past = |why: &ReasonView| {
            why.code == NOT_CONSIDERED.code || why.code == CLEARING_UP.code && !clears_up
        };
        let is_told = workload.pending.iter().filter_map(PendingReason::own).any(is_past);
        if waits && workload.pending.is_empty() && !self.halted {
            self.decisions.ask_why(workload.model);
            let (code, message) = (NOT_CONSIDERED.code.into(), NOT_CONSIDERED_YET.into());
            let why = PendingReason::Own(ReasonView { code, message, at: now });
            self.workloads.set_pending(id, [why].into());
        } else if !waits && (is_told || workload.desired != Desired::Run) {
            self.workloads.set_pending(id, Arc::default());
        }
    }

    /// Reasons why a workload waits now.
    fn why(&self, id: Uuid) -> Vec<ReasonView> {
        let pending = self.workloads.get(&id).map(|workload| &*workload.pending);
        self.workloads.classes().in_full(pending.unwrap_or_default())
    }

    /// Sets the reasons why a workload waits; an empty list for none.
    pub(crate) fn explain_one(&mut self, id: Uuid, reasons: &[ReasonText]) {
        self.explain_as(id, &self.why(id), reasons, None);
    }

    /// Replaces the reasons why a workload waits, by those of a class or its own.
    fn explain_as(
        &mut self,
        id: Uuid,
        before: &[ReasonView],
        reasons: &[ReasonText],
        class: Option<ClassId>,
    ) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let is_there = class == workload.pending_class();
        if is_same(reasons, before) && is_there {
            return;
        }
        if class.is_none() || !is_there {
            let fresh = renewed(reasons, before, self.now);
            let pending = match class {
                None => fresh.map(PendingReason::Own).collect(),
                Some(class) => {
                    let had = |why: &ReasonView| before.iter().any(|old| old.code == why.code);
                    let earlier = fresh.filter(had).map(|why| (why.code, why.at)).collect();
                    let membership = Membership { class, since: self.now, earlier };
                    [PendingReason::OfClass(membership)].into()
                }
            };
            self.workloads.set_pending(id, pending);
            self.outbox.show([id]);
        }
        self.tell_if_new(id, before, reasons);
    }

    /// Emits an event for another kind of reason. Numbers, and the number of pools, change with
    /// every decision and cause none.
    fn tell_if_new(&mut self, id: Uuid, before: &[ReasonView], reasons: &[ReasonText]) {
        let Some((first, _)) = reasons.first().filter(|_| !is_like(reasons, before)) else {
            return;
        };
        let text: Vec<_> = reasons.iter().map(|(_, message)| &**message).collect();
        self.emit(id, EventBuilder::new(PENDING, text.join("; ")).code(first));
    }

    /// Replaces the reasons of a class for all its members. Events of the members in `told` are
    /// emitted individually.
    pub(super) fn explain_class(
        &mut self,
        class: ClassId,
        reasons: &[ReasonText],
        told: &BTreeMap<Uuid, (&Waits, Vec<ReasonView>)>,
    ) {
        let classes = self.workloads.classes();
        let before = classes.reasons(class).cloned().unwrap_or_default();
        if is_same(reasons, &before) || classes.members(class).next().is_none() {
            return;
        }
        let members: Vec<Uuid> = match is_like(reasons, &before) {
            true => Vec::new(),
            false => classes.members(class).filter(|id| !told.contains_key(id)).collect(),
        };
        let fresh = renewed(reasons, &before, self.now).collect();
        self.workloads.classes.set(class, fresh);
        for id in members {
            self.tell_if_new(id, &before, reasons);
        }
    }

    /// Sets the new reasons of waiting workloads, and removes those of workloads that no longer
    /// wait.
    pub(crate) fn explain(&mut self, plan: &Plan) {
        let (mut told, mut words) = (BTreeMap::new(), InWords::at(self.now));
        let mut classes: BTreeMap<ClassId, &Arc<[Pending]>> =
            plan.renewed.iter().map(|(class, reasons)| (*class, reasons)).collect();
        for (model, waits) in &plan.pending {
            let Some(id) = self.workloads.of_model(*model) else { continue };
            if !waits.is_empty() {
                if self.is_told(id, *model) {
                    classes.extend(waits.class.map(|class| (class, &waits.reasons)));
                    told.insert(id, (waits, self.why(id)));
                }
            } else if !self.waits_for_orphan(id) {
                self.explain_one(id, &[]);
                // It may have lost its place since the decision.
                self.explain_unconsidered(id);
            }
        }
        if plan.is_renumbered {
            self.end_classes(&told);
            self.workloads.timed.end_classes();
        }
        for (id, (waits, before)) in &told {
            let own = waits.class.is_none().then_some(&waits.reasons);
            self.workloads.timed.follow(*id, own, self.now);
            self.explain_as(*id, before, &words.of(&waits.reasons), waits.class);
        }
        // After all members have moved: a class ends with the last member that leaves it, even if
        // another joins.
        for (class, reasons) in classes {
            self.workloads.timed.follow_class(class, reasons, self.now);
            self.explain_class(class, &words.of(reasons), &told);
        }
        self.workloads.timed.schedule(self.now);
    }

    /// True if the scheduler's reasons are published for a workload.
    fn is_told(&mut self, id: Uuid, model: WorkloadId) -> bool {
        if self.decisions.is_aside(id) {
            return false;
        }
        let wants = self.workloads.get(&id).is_some_and(Workload::wants_to_run);
        if !wants {
            // It was suspended meanwhile. If it is resumed before the scheduler sees that, nothing
            // changes for the scheduler, and it would not give the reasons again.
            self.decisions.ask_why(Some(model));
        }
        wants
    }

    /// Ends renumbered classes: the former members keep their reasons as their own until new ones
    /// are published.
    fn end_classes(&mut self, told: &BTreeMap<Uuid, (&Waits, Vec<ReasonView>)>) {
        let stays = |class: ClassId, id: &Uuid| {
            told.get(id).is_some_and(|(waits, _)| waits.class == Some(class))
        };
        let ended = self.workloads.classes().all_members().filter(|(class, id)| !stays(*class, id));
        for (_, id) in ended.collect::<Vec<_>>() {
            let own = self.why(id).into_iter().map(PendingReason::Own);
            self.workloads.set_pending(id, own.collect());
            self.outbox.show([id]);
        }
    }
}

/// True if these reasons are published already.
fn is_same(reasons: &[ReasonText], told: &[ReasonView]) -> bool {
    let same =
        |(new, told): (&ReasonText, &ReasonView)| new.0 == told.code && new.1 == told.message;
    reasons.len() == told.len() && reasons.iter().zip(told).all(same)
}

/// True if these reasons have the same codes.
fn is_like(reasons: &[ReasonText], told: &[ReasonView]) -> bool {
    let mut new: Vec<&str> = reasons.iter().map(|(code, _)| *code).collect();
    let mut old: Vec<&str> = told.iter().map(|why| &*why.code).collect();
    new.dedup();
    old.dedup();
    new == old
}

/// Reasons for publication: each since the first with its code.
fn renewed(
    reasons: &[ReasonText],
    told: &[ReasonView],
    now: Instant,
) -> impl Iterator<Item = ReasonView> {
    let since = move |code| told.iter().find(|why| why.code == code).map_or(now, |why| why.at);
    reasons.iter().map(move |(code, message)| ReasonView {
        code: Cow::Borrowed(code),
        message: message.clone(),
        at: since(*code),
    })
}
