//! The control plane and its scheduler without the rest of the server: what the dispatcher does
//! with a batch, as far as it is not waiting, writing or telling.

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
    /// What the scheduler sees, and what it remembers; none until it is given a copy of the
    /// cluster.
    replica: Option<(Box<Cluster>, Memory)>,
    /// What the scheduler decided and was not taken over yet.
    decided: Option<Box<Decision>>,
    /// When the last batch was.
    now: Instant,
}

/// What a batch failed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// A decision is taken over that was never made.
    NoDecision,
    /// The machine panicked.
    Panicked,
}

impl Machine {
    /// The machine as it was built.
    ///
    /// # Errors
    /// What is stored makes no state.
    pub fn new(base: Base) -> Result<Self, Error> {
        let Base { snapshot, nodes, gpus, usage, settled, handed_over, ended_kept, user_limits } =
            base;
        let mut state = State::recover(snapshot, &nodes, &gpus, usage, settled)?;
        state.take_over(handed_over);
        state.keep_ended(ended_kept);
        state.set_user_limits(user_limits);
        let policy = Policy { usage, ..Policy::default() };
        let now = settled.at.now;
        Ok(Self { state, view: View::default(), policy, replica: None, decided: None, now })
    }

    /// Takes a batch, and decides as of `asked_at` if the scheduler is asked.
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
        // After a failure the machine that is recorded says so, too, and gets another copy.
        self.decided = catch_unwind(AssertUnwindSafe(decide)).unwrap_or_default();
    }

    /// When its last batch was.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// What is shown of the state.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// What the scheduler sees, how it decides, and the time.
    #[must_use]
    pub fn scheduler(&self) -> Option<(&Cluster, &Policy, Instant)> {
        self.replica.as_ref().map(|(cluster, _)| (&**cluster, &self.policy, self.now))
    }
}
