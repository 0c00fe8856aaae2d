//! Application of a plan to the records: runs to start and stop, events, reasons. Owns: carrying a
//! plan over; the model already is in the state after the plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::Placement;
use reasons::Cause;
use sched::{Plan, Step};
use units::Instant;
use uuid::Uuid;

use crate::decisions::{Decision, PLANS_DROPPED_MAX};
use crate::emit::EventBuilder;
use crate::state::State;

/// Time until the next decision if the scheduler reached its bound on work, in milliseconds.
const LOOK_AGAIN_MS: u64 = 10;

/// Effect of a change of the number of GPUs on a workload: running processes cannot get or lose
/// GPUs.
const RESTARTS: &str = "; its processes restart, from a checkpoint if they write one";

impl State {
    /// True if decisions are allowed now.
    fn may_decide(&self) -> bool {
        !self.halted && !self.decisions.aside.all
    }

    /// True if a decision of the scheduler is requested now. One decision is requested at a time;
    /// changes meanwhile are left to the next.
    pub(crate) fn asks_for_decision(&mut self) -> bool {
        let is_due = self.decisions.wake_at.is_some_and(|at| at <= self.now);
        if self.decisions.is_deciding || !self.may_decide() || !(is_due || self.cluster.has_news())
        {
            return false;
        }
        self.cluster.take_news();
        self.decisions.wake_at = None;
        self.decisions.is_deciding = true;
        true
    }

    /// True if no change is left to decide about.
    pub fn is_decided(&self) -> bool {
        !(self.decisions.is_deciding || self.may_decide() && self.cluster.has_news())
    }

    /// True if so many plans were dropped that the state must not change before the next is
    /// applied.
    pub const fn waits_for_decision(&self) -> bool {
        self.decisions.is_deciding && self.decisions.plans_dropped >= PLANS_DROPPED_MAX
    }

    /// True if nothing that a plan depends on has changed since it was requested.
    fn admits(&self, plan: &Plan) -> bool {
        let pods = plan.steps.iter().map(|step| self.cluster.pods().get(step.pod()));
        let moved = pods.map(|pod| pod.map(|pod| pod.workload));
        let stale = plan.stale.keys().copied().map(Some);
        plan.steps.is_empty() && plan.stale.is_empty() || self.cluster.holds_for(moved.chain(stale))
    }

    /// Applies a decision of the scheduler. If the plan depends on something that has changed
    /// meanwhile, it is dropped, and a new decision is requested.
    pub(crate) fn decided(&mut self, decision: Decision) {
        let Decision { now, mut plan, shares } = decision;
        self.decisions.is_deciding = false;
        let shares = shares.into_iter();
        for (queue, share) in
            shares.filter(|(queue, _)| self.cluster.queues().get(*queue).is_some())
        {
            self.outbox.entitle([self.cluster.project_of(queue)]);
            self.org.set_fair_share(queue, share);
        }
        if self.may_decide() && self.admits(&plan) {
            self.decisions.plans_dropped = 0;
        } else {
            Arc::make_mut(&mut plan).drop_steps(&self.cluster);
            self.decisions.plans_dropped += 1;
            self.cluster.renew();
        }
        if self.may_decide() {
            self.carry_over(&plan, now);
            self.explain_aside();
        }
        self.follow_lags();
    }

    /// Publishes the reason of workloads without decisions, or of all if there are no decisions.
    pub(crate) fn explain_undecided(&mut self) {
        if self.halted {
            return;
        }
        self.explain_orphans();
        if self.decisions.aside.all {
            self.explain_aside();
        }
    }

    fn carry_over(&mut self, plan: &Arc<Plan>, decided_at: Instant) {
        if !plan.steps.is_empty() || !plan.stale.is_empty() {
            let (now, carried) = (self.now, plan.clone());
            let since = |model| self.cluster.workloads().get(model).and_then(|row| row.stale_since);
            let stale: Vec<_> = plan.stale.keys().map(|&model| (model, since(model))).collect();
            self.cluster.carry(move |cluster| sched::carry(cluster, now, &carried));
            stale.into_iter().for_each(|(model, before)| self.note_stale(model, before));
            // This is the first state in which these pods have their places: the best places for
            // others, or for them, may have changed. A plan without steps ends this.
            self.cluster.renew();
        }
        let mut going = BTreeSet::new();
        for step in &plan.steps {
            going.extend(self.goes_with(step));
            self.carry_step(step);
        }
        // A workload that only gives back pods above its minimum continues.
        for id in going {
            if self.workloads.get(&id).is_some_and(|workload| !self.runs_on(workload)) {
                self.delete_preempted(id);
            }
        }
        // A scheduler with an immediate next decision must not starve the other work.
        let soon = self.now.plus_ms(LOOK_AGAIN_MS);
        self.decisions.wake_at = plan.wake_at.map(|at| if at > decided_at { at } else { soon });
        self.explain(plan);
    }

    /// The workload that an eviction deletes.
    fn goes_with(&self, step: &Step) -> Option<Uuid> {
        let (Step::Evict { pod, .. } | Step::Move { pod, .. }) = step else { return None };
        let (id, _) = self.home_of(*pod)?;
        let is_moved = matches!(step, Step::Move { .. });
        // An adopted pod cannot continue elsewhere: its controller makes another.
        let goes = self.workloads.get(&id).filter(|workload| {
            workload.spec.delete_when_preempted && (!is_moved || workload.is_adopted)
        });
        goes.map(|_| id)
    }

    /// Publishes that a place is reserved for a pod.
    pub(crate) fn reserved(&mut self, id: Uuid, number: usize, to: &Placement) {
        self.touch(id);
        // Its GPUs there may be others when they are free.
        let node = &self.cluster.nodes()[to.node].name;
        let message =
            format!("has a place on {node} reserved, and starts once all that it needs is free");
        self.emit(id, EventBuilder::new("Reserved", message).pod(number));
        self.nominate((id, number), Some(self.node_name(to.node)));
    }

    /// Publishes that a pod has no place reserved any more.
    pub(crate) fn unreserved(&mut self, (id, number): (Uuid, usize)) {
        self.touch(id);
        self.nominate((id, number), None);
    }

    fn carry_step(&mut self, step: &Step) {
        let pod = step.pod();
        let Some((id, number)) = self.home_of(pod) else { return };
        match step {
            Step::Bind { to, .. } => {
                // It may have paused in another place.
                self.note_begun(id);
                self.placed(id, number);
                let message = format!("placed on {}", self.place_in_words(to));
                self.emit(id, EventBuilder::new("Scheduled", message).pod(number));
            }
            Step::Reserve { to, .. } => self.reserved(id, number, to),
            Step::Unreserve { .. } => self.unreserved((id, number)),
            Step::Evict { cause, .. } => {
                let kind = match cause {
                    Cause::Preempted { .. } => "Preempted",
                    _ => "Evicted",
                };
                self.carry_stop((id, number), kind, cause, "");
                if let Cause::Drained { .. } = cause {
                    self.hold_with(id, number);
                }
            }
            Step::Move { to, cause, .. } => {
                let to = format!("; goes on at {}", self.place_in_words(to));
                self.carry_stop((id, number), "Moved", cause, &to);
                self.hold_with(id, number);
            }
            Step::Resize { cause, .. } => {
                self.note_resize(id, number);
                self.carry_stop((id, number), "Resized", cause, RESTARTS);
            }
        }
    }

    /// Cause of the stop of a pod, and its cost. A pod of an elastic training has its grace period
    /// to hand back its tasks, or to save the model.
    fn stop_in_words(&self, (id, number): (Uuid, usize), cause: &Cause) -> String {
        match self.workloads.get(&id).filter(|workload| workload.is_elastic_training()) {
            None => cause.to_string(),
            Some(training) => {
                let grace = units::format_millis(training.spec.set_of(number).0.pod.grace_ms);
                let cause = cause.without_loss();
                format!("{cause}; it has {grace} s to hand back or save its work")
            }
        }
    }

    fn carry_stop(
        &mut self,
        (id, number): (Uuid, usize),
        kind: &'static str,
        cause: &Cause,
        then: &str,
    ) {
        let code = cause.code().code;
        let message = format!("{}{then}", self.stop_in_words((id, number), cause));
        let beneficiary = cause.beneficiary().and_then(|one| self.beneficiary(one));
        self.evicted_for(id, code, message.clone(), beneficiary.clone());
        let event = EventBuilder::new(kind, message).pod(number).code(code);
        let event = event.beneficiary(beneficiary);
        self.emit(id, if kind == "Resized" { event } else { event.warning() });
        self.evict_run(id, number);
        self.rewind_if_stopped(id);
    }
}
