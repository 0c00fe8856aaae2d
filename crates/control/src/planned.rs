//! What the scheduler decided, taken into the records: runs to start and stop, events, reasons.
//! Owns: carrying a plan over; the model already is as the plan leaves it.

use std::collections::{BTreeMap, BTreeSet};

use model::{PodId, WorkloadId};
use sched::{Cause, Pending, Plan, Policy, Step};
use uuid::Uuid;

use crate::reasons::CLEARING_UP;
use crate::state::{News, State};
use crate::view::ReasonView;

/// Most cycles in one batch. One is the rule; another follows when a stopped pod had no process
/// and its place is free at once.
const CYCLES_MAX: usize = 4;

/// When to decide again if the scheduler has more to do at once: its bound on work was reached.
const LOOK_AGAIN_MS: u64 = 10;

impl State {
    /// Lets the scheduler decide, and takes its plan over.
    pub(crate) fn decide(&mut self, policy: &Policy) {
        self.observe_usage();
        if self.halted {
            return;
        }
        if !self.strays.is_empty() {
            self.explain_clearing_up();
            return;
        }
        if self.aside.all {
            self.wake_at = None;
            self.explain_aside();
            return;
        }
        for _ in 0..CYCLES_MAX {
            self.fail_if_wanted(&self.cluster);
            let plan = self.memory.cycle(&mut self.cluster, self.now, policy);
            let freed = self.carry_over(plan);
            self.assemble();
            if !freed {
                break;
            }
        }
        self.explain_aside();
        self.observe_usage();
    }

    /// Returns whether a place became free at once, so that it is worth deciding again.
    fn carry_over(&mut self, plan: Plan) -> bool {
        let mut freed = false;
        let mut going = BTreeSet::new();
        for step in plan.steps {
            going.extend(self.goes_with(&step));
            freed |= self.carry_step(step);
        }
        // One that only gives back what it had beyond its least goes on.
        for id in going {
            if self.workloads.get(&id).is_some_and(|workload| !self.runs_on(workload)) {
                self.delete_preempted(id);
            }
        }
        let moved = self.memory.take_moved_shares().into_iter();
        let moved = moved.filter(|&queue| self.cluster.queues().get(queue).is_some());
        self.outbox.queues.extend(moved.map(|queue| self.cluster.project_of(queue)));
        // A scheduler that wants to look again at once must not starve the rest.
        let soon = self.now.plus_ms(LOOK_AGAIN_MS);
        self.wake_at = plan.wake_at.map(|at| if at > self.now { at } else { soon });
        self.explain(plan.pending);
        freed
    }

    /// The workload that an eviction is the end of.
    fn goes_with(&self, step: &Step) -> Option<Uuid> {
        let Step::Evict { pod, .. } = step else { return None };
        let (id, _) = self.home_of(*pod)?;
        self.workloads.get(&id).filter(|workload| workload.spec.delete_when_preempted).map(|_| id)
    }

    fn carry_step(&mut self, step: Step) -> bool {
        match step {
            Step::Bind { pod, to } => {
                let Some((id, number)) = self.home_of(pod) else { return false };
                self.placed(id, number);
                let message = format!("placed on {}", self.place_in_words(&to));
                self.say(id, News::new("Scheduled", message).pod(number));
                false
            }
            Step::Reserve { pod, to } => {
                let Some((id, number)) = self.home_of(pod) else { return false };
                self.touch(id);
                let place = self.place_in_words(&to);
                let message = format!("{place} is being freed for it");
                self.say(id, News::new("Reserved", message).pod(number));
                false
            }
            Step::Unreserve { pod } => {
                if let Some((id, _)) = self.home_of(pod) {
                    self.touch(id);
                }
                false
            }
            Step::Evict { pod, cause, .. } => {
                let kind = match cause {
                    Cause::Preempted { .. } => "Preempted",
                    _ => "Evicted",
                };
                self.carry_stop(pod, kind, &cause, "")
            }
            Step::Move { pod, to, cause, .. } => {
                let to = format!("; goes on at {}", self.place_in_words(&to));
                let freed = self.carry_stop(pod, "Moved", &cause, &to);
                if let Some((id, number)) = self.home_of(pod) {
                    self.move_with(id, number);
                }
                freed
            }
            Step::Resize { pod, cause, .. } => {
                if let Some((id, number)) = self.home_of(pod) {
                    let now = self.now;
                    if let Some(pod) = self.pod_mut(id, number) {
                        pod.resized_at = Some(now);
                    }
                }
                self.carry_stop(pod, "Resized", &cause, "")
            }
        }
    }

    fn carry_stop(&mut self, pod: PodId, kind: &'static str, cause: &Cause, then: &str) -> bool {
        let Some((id, number)) = self.home_of(pod) else { return false };
        let code = cause.code().code;
        let message = format!("{cause}{then}");
        self.evicted(id, code, message.clone());
        let news = News::new(kind, message).pod(number).code(code);
        self.say(id, if kind == "Resized" { news } else { news.warning() });
        let freed = self.stop_run(id, number);
        self.rewind_if_stopped(id);
        freed
    }

    /// Gives workloads their new reasons to wait, and takes them from those that wait no more.
    fn explain(&mut self, pending: BTreeMap<WorkloadId, Vec<Pending>>) {
        let (no_more, waiting): (Vec<_>, Vec<_>) = pending
            .iter()
            .filter_map(|(model, reasons)| Some((*self.by_model.get(model)?, reasons)))
            .filter(|(id, reasons)| reasons.is_empty() || !self.aside.ids.contains(id))
            .partition(|(_, reasons)| reasons.is_empty());
        for (id, _) in no_more {
            if self.explained.contains(&id) {
                self.explain_one(id, &[]);
            }
        }
        let waiting: BTreeMap<Uuid, &Vec<Pending>> = waiting.into_iter().collect();
        for (id, reasons) in waiting {
            let reasons = reasons.iter().map(|reason| (reason.code().code, reason.to_string()));
            self.explain_one(id, &reasons.collect::<Vec<_>>());
        }
    }

    /// What strays hold is not in the books, so nothing is given out before they are gone.
    fn explain_clearing_up(&mut self) {
        self.wake_at = None;
        // Without it, the next decision gives every waiting workload its reasons again.
        self.memory = sched::Memory::default();
        let count = self.strays.len();
        let message =
            format!("waits until {count} run(s) that should no longer exist have been stopped");
        for model in self.cluster.waiting().collect::<Vec<_>>() {
            if let Some(&id) = self.by_model.get(&model) {
                self.explain_one(id, &[(CLEARING_UP.code, message.clone())]);
            }
        }
    }

    pub(crate) fn explain_one(&mut self, id: Uuid, reasons: &[(&'static str, String)]) {
        let now = self.now;
        if reasons.is_empty() {
            self.explained.remove(&id);
        } else {
            self.explained.insert(id);
        }
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let since = |code: &str| {
            workload.pending.iter().find(|reason| reason.code == code).map_or(now, |r| r.at)
        };
        let fresh: Vec<_> = reasons
            .iter()
            .map(|(code, message)| {
                let (at, message) = (since(code), message.clone());
                ReasonView { code: (*code).to_owned(), message, at }
            })
            .collect();
        if fresh == workload.pending {
            return;
        }
        // Numbers change with every decision; what is worth an event is another kind of reason.
        let codes = |list: &[ReasonView]| list.iter().map(|r| r.code.clone()).collect::<Vec<_>>();
        let news = codes(&fresh) != codes(&workload.pending);
        workload.pending = fresh;
        self.outbox.shown.insert(id);
        if let Some((first, _)) = reasons.first().filter(|_| news) {
            let text: Vec<_> = reasons.iter().map(|(_, message)| message.as_str()).collect();
            self.say(id, News::new("Pending", text.join("; ")).code(first));
        }
    }
}
