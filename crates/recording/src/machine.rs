//! The control plane and its scheduler without the rest of the server: the processing of a batch by
//! the dispatcher, without waiting, storage and notifications.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::Cluster;
use orchestrator::{Decision, Error, Input, Moment, State, Subject};
use sched::{Memory, Policy};
use units::Instant;
use view::View;

use crate::line::Base;
use crate::outcome::BatchOutcome;

/// The control plane and its scheduler.
#[derive(Debug)]
pub struct Machine {
    state: State,
    view: View,
    policy: Policy,
    /// The scheduler's copy of the cluster, and its memory of earlier decisions; `None` before the
    /// first batch.
    replica: Option<(Box<Cluster>, Memory)>,
    /// The last decision of the scheduler, until an input takes it over.
    decided: Option<Box<Decision>>,
    /// Time of the last batch.
    now: Instant,
}

/// Reason for which a batch failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The batch takes over a decision, and there is none.
    NoDecision,
    /// The machine panicked.
    Panicked,
}

impl Machine {
    /// Builds the machine from the base of a segment.
    ///
    /// # Errors
    /// The stored rows make no valid state.
    pub fn new(base: Base) -> Result<Self, Error> {
        let Base { snapshot, nodes, gpus, usage, settled, handed_over, settings } = base;
        let mut state = State::recover(snapshot, &nodes, &gpus, usage, settled)?;
        state.take_over(handed_over);
        state.set(settings);
        let policy = Policy { usage, ..Policy::default() };
        let now = settled.at.now;
        Ok(Self { state, view: View::default(), policy, replica: None, decided: None, now })
    }

    /// Processes a batch, and makes a decision as of `asked_at` if the batch requests one.
    pub(crate) fn take(
        &mut self,
        moment: Option<Moment>,
        inputs: Vec<Option<Input>>,
        asked_at: Option<Instant>,
    ) -> Result<BatchOutcome, Failed> {
        let batch = || self.batch(moment, inputs, asked_at);
        catch_unwind(AssertUnwindSafe(batch)).unwrap_or(Err(Failed::Panicked))
    }

    fn batch(
        &mut self,
        moment: Option<Moment>,
        inputs: Vec<Option<Input>>,
        asked_at: Option<Instant>,
    ) -> Result<BatchOutcome, Failed> {
        if let Some(moment) = moment {
            self.state.begin(moment);
            self.now = moment.now;
        }
        if inputs.iter().flatten().any(|input| matches!(input, Input::DecisionFailed)) {
            self.replace();
        }
        let mut came = BatchOutcome::default();
        for input in inputs {
            let input = match input {
                Some(input) => input,
                None => {
                    let decision = self.decided.take().ok_or(Failed::NoDecision)?;
                    came.decision = Some(decision.clone());
                    Input::Decided(decision)
                }
            };
            came.answers.extend::<Option<Result<Subject, Error>>>(self.state.apply(input));
        }
        self.state.elapse();
        let pools = self.state.placements(self.policy.placement);
        if self.policy.pools != pools {
            self.policy.pools = pools;
            self.state.decide_again();
        }
        let batch = self.state.finish(&self.view);
        (came.changes, came.actions, came.asks) = (batch.changes, batch.actions, batch.decides);
        self.view = batch.view;
        match &mut self.replica {
            Some((cluster, _)) => batch.ops.into_iter().for_each(|op| op(cluster)),
            None => self.replace(),
        }
        if batch.decides {
            self.decide(asked_at.unwrap_or(self.now));
        }
        Ok(came)
    }

    /// Gives the scheduler a new copy of the cluster.
    fn replace(&mut self) {
        self.replica = Some((Box::new(self.state.replica()), Memory::default()));
        self.decided = None;
    }

    fn decide(&mut self, now: Instant) {
        let (forgets, again) = (self.state.take_retells(), self.state.take_unexplained());
        let (replica, policy) = (&mut self.replica, &self.policy);
        let decide = || {
            let (cluster, memory) = replica.as_mut()?;
            if forgets {
                *memory = Memory::default();
            }
            memory.tell_again(again);
            Some(Box::new(Decision::made(memory, cluster, now, policy)))
        };
        // After a failure the next input is `Input::DecisionFailed`, on which the scheduler gets a
        // new copy.
        self.decided = catch_unwind(AssertUnwindSafe(decide)).unwrap_or_default();
    }

    /// Time of the last batch.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The view published after the last batch.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The scheduler's copy of the cluster, its policy, and the time of the last batch; `None`
    /// before the first batch.
    #[must_use]
    pub fn scheduler(&self) -> Option<(&Cluster, &Policy, Instant)> {
        self.replica.as_ref().map(|(cluster, _)| (&**cluster, &self.policy, self.now))
    }
}
