//! The dispatcher's side of the recording. Owns: that it records only data that the dispatcher has
//! anyway, and that nothing waits for it.

use orchestrator::{
    Action, Error, HandedOver, Input, Moment, NodeList, Settings, Settled, State, Subject,
};
use recording::{Base, BatchOutcome, Taken, Writer};
use records::{Change, Snapshot};
use sched::Policy;
use units::Instant;
use view::GpuFaults;

/// The recorded part of the current batch.
pub(crate) struct Recorder {
    writer: Writer,
    settings: Settings,
    /// Inputs from which the state was built, until its first batch is written; `None` afterwards.
    base: Option<Box<Base>>,
    moment: Option<Moment>,
    inputs: Vec<Input>,
    answers: Vec<Result<Subject, Error>>,
}

impl Recorder {
    /// Records with this writer, if decisions are made as every server makes them: a recording does
    /// not say how.
    pub(crate) fn new(writer: Writer, policy: &Policy, settings: Settings) -> Self {
        let usual = Policy { usage: policy.usage, ..Policy::default() };
        let writer = if *policy == usual { writer } else { Writer::default() };
        Self { writer, settings, base: None, moment: None, inputs: Vec::new(), answers: Vec::new() }
    }

    /// True if it is time to build the state again, so that the recording goes on from there.
    pub(crate) fn wants_base(&self, workloads: usize) -> bool {
        self.writer.wants_base(workloads)
    }

    /// Returns when [`wants_base`](Self::wants_base) may have become true.
    pub(crate) async fn base_due(&self) {
        self.writer.base_due().await;
    }

    /// Builds a state.
    pub(crate) fn build(
        &mut self,
        snapshot: Snapshot,
        (nodes, gpus): (&NodeList, &GpuFaults),
        usage: Option<model::UsageWindow>,
        settled: Settled,
        handed_over: HandedOver,
    ) -> Result<State, Error> {
        let base = || Base {
            snapshot: snapshot.clone(),
            nodes: nodes.clone(),
            gpus: gpus.clone(),
            usage,
            settled,
            handed_over: handed_over.clone(),
            settings: self.settings.clone(),
        };
        self.base = self.writer.is_on().then(|| Box::new(base()));
        self.begin(None);
        let mut state = State::recover(snapshot, nodes, gpus, usage, settled)?;
        state.take_over(handed_over);
        state.set(self.settings.clone());
        Ok(state)
    }

    fn takes(&self) -> bool {
        self.base.is_some() || self.writer.takes_batches()
    }

    /// A batch begins.
    pub(crate) fn begin(&mut self, moment: Option<Moment>) {
        self.moment = moment;
        self.inputs.clear();
        self.answers.clear();
    }

    /// An input is to be applied.
    pub(crate) fn note(&mut self, input: &Input) {
        if self.takes() {
            self.inputs.push(input.clone());
        }
    }

    /// Records the answers of commands.
    pub(crate) fn answer(&mut self, answers: &[Result<Subject, Error>]) {
        if self.takes() {
            self.answers.extend_from_slice(answers);
        }
    }

    /// The actions of the batch, if they are recorded.
    pub(crate) fn actions(&self, actions: &[Action]) -> Vec<Action> {
        if self.takes() { actions.to_vec() } else { Vec::new() }
    }

    /// The batch is written and shown.
    pub(crate) fn came(
        &mut self,
        changes: Vec<Change>,
        actions: Vec<Action>,
        asked_at: Option<Instant>,
    ) {
        if let Some(base) = self.base.take() {
            self.writer.begin(base);
        }
        let answers = std::mem::take(&mut self.answers);
        let asks = asked_at.is_some();
        self.take(
            asked_at,
            Ok(BatchOutcome { answers, changes, actions, asks, ..BatchOutcome::default() }),
        );
    }

    /// Nothing of the batch counts.
    pub(crate) fn failed(&mut self, error: &Error) {
        // The state that is built next is another one.
        if self.base.take().is_none() {
            self.take(None, Err(error.to_string()));
        }
    }

    fn take(&mut self, asked_at: Option<Instant>, came: Result<BatchOutcome, String>) {
        let (moment, inputs) = (self.moment.take(), std::mem::take(&mut self.inputs));
        if self.writer.takes_batches() {
            self.writer.take(Taken { moment, inputs, asked_at, came });
        }
    }
}
