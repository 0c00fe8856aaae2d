//! Application of inputs. Owns: the changes and effects of each. Does not know about: where inputs
//! come from.

use std::collections::BTreeSet;

use units::Instant;

use super::{Effect, Input, Job, Refused};
use crate::ledger::Answer;
use crate::task::{Measure, TaskId, WorkerId};

impl<R: Clone> Job<R> {
    /// Takes an input at a time that is not before that of the last one.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then, and the input does not belong into the journal.
    pub fn apply(&mut self, input: Input<R>, now: Instant) -> Result<Vec<Effect<R>>, Refused> {
        let mut effects = Vec::new();
        self.take(input, now, &mut effects)?;
        self.turn(now, &mut effects);
        self.serve(now, &mut effects);
        if let Some(outcome) = self.ledger.outcome().filter(|_| !self.ended) {
            effects.push(Effect::Ended(outcome.clone()));
            self.ended = true;
        }
        Ok(effects)
    }

    fn take(
        &mut self,
        input: Input<R>,
        now: Instant,
        effects: &mut Vec<Effect<R>>,
    ) -> Result<(), Refused> {
        match input {
            Input::Joined(worker) => self.join(worker)?,
            Input::Ready(worker) => {
                self.known(worker)?;
                if let Some(rendezvous) = &mut self.rendezvous {
                    rendezvous.join(worker, now);
                }
            }
            Input::Left(worker) => {
                self.known(worker)?;
                self.leave(worker, effects);
            }
            Input::Settled(worker, positions) => self.ledger.settle(worker, &positions),
            Input::Asked(worker) => {
                self.known(worker)?;
                self.ledger.check_room(worker)?;
                self.asking.insert(worker);
                self.depart(worker, effects);
            }
            Input::Advanced(worker, task, finished) => {
                self.ledger.advance((worker, task), finished, now)?;
            }
            Input::Finished(worker, task) => {
                if self.measures(worker, task).is_some() {
                    return Err(Refused::Unmeasured(task));
                }
                self.ledger.finish((worker, task), now)?;
                self.depart(worker, effects);
            }
            Input::HandedBack(worker, task, finished) => {
                self.ledger.hand_back((worker, task), finished, now)?;
                self.asking.remove(&worker);
                self.depart(worker, effects);
            }
            Input::Failed(worker, task, message) => {
                self.ledger.fail((worker, task), &message)?;
                self.depart(worker, effects);
            }
            Input::BadRecord(worker, task, record, message) => {
                self.ledger.bad_record((worker, task), record, &message)?;
            }
            Input::Measured(worker, task, report) => {
                effects.extend(self.measured((worker, task), report, now)?);
                self.depart(worker, effects);
            }
            Input::Version(version) => self.reach(version),
            Input::Held { version, positions } => {
                self.unconfirmed = Some((version, self.ledger.cut(&positions)));
            }
            Input::Checkpointed { version, oldest } => self.confirm(version, oldest)?,
            Input::Restored(version) => self.restore(version, effects)?,
            Input::Leaving(worker, deadline) => {
                self.known(worker)?;
                effects.extend(self.resize.take(worker, deadline).map(Effect::Resize));
                self.depart(worker, effects);
            }
            Input::Tick => self.replace(now, effects),
        }
        Ok(())
    }

    fn join(&mut self, worker: WorkerId) -> Result<(), Refused> {
        // A used number without a worker belongs to a worker that has left.
        if !self.workers.contains(&worker) && self.newest.is_some_and(|newest| worker <= newest) {
            return Err(Refused::Unknown(worker));
        }
        self.newest = self.newest.max(Some(worker));
        self.workers.insert(worker);
        Ok(())
    }

    fn leave(&mut self, worker: WorkerId, effects: &mut Vec<Effect<R>>) {
        self.workers.remove(&worker);
        self.asking.remove(&worker);
        match self.training.settles {
            true => self.ledger.orphan(worker),
            false => self.ledger.lose(worker),
        }
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.leave(worker);
        }
        effects.extend(self.resize.prepared(worker).map(Effect::Resize));
    }

    /// Lets a worker go that is to leave and has nothing in its hands.
    fn depart(&mut self, worker: WorkerId, effects: &mut Vec<Effect<R>>) {
        if !self.resize.is_leaving(worker) || self.ledger.held_by(worker).next().is_some() {
            return;
        }
        if self.asking.remove(&worker) {
            effects.push(Effect::Leave(worker));
        }
        effects.extend(self.resize.prepared(worker).map(Effect::Resize));
    }

    /// Measurement that a task of a worker is part of; `None` if the worker does not have the task,
    /// or it measures nothing.
    fn measures(&self, worker: WorkerId, task: TaskId) -> Option<Measure> {
        self.ledger.held_by(worker).find(|held| held.id == task)?.measures
    }

    fn unknown(&self, version: u64) -> Refused {
        Refused::Checkpoint { version, known: self.cuts.keys().copied().collect() }
    }

    fn known(&self, worker: WorkerId) -> Result<(), Refused> {
        self.workers.contains(&worker).then_some(()).ok_or(Refused::Unknown(worker))
    }

    fn measured(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        report: R,
        now: Instant,
    ) -> Result<Option<Effect<R>>, Refused> {
        let measures = self.measures(worker, task);
        self.ledger.finish((worker, task), now)?;
        let Some(Measure { version, piece }) = measures else { return Ok(None) };
        let whole = self.evaluations.report(version, piece, report);
        if whole.is_some()
            && let Some(next) = self.evaluations.due()
        {
            self.measure(next);
        }
        Ok(whole.map(Effect::Evaluated))
    }

    fn reach(&mut self, version: u64) {
        if let Some(due) = self.evaluations.reach(version) {
            self.measure(due);
        }
    }

    fn measure(&mut self, version: u64) {
        let Some((plan, _)) = &self.training.evaluation else { return };
        // The plan was checked when the training began.
        if let Ok(pieces @ 1..) = self.ledger.evaluate(version, plan) {
            self.evaluations.begin(version, pieces);
        }
    }

    /// Keeps the cut of a checkpoint that is complete.
    fn confirm(&mut self, version: u64, oldest: u64) -> Result<(), Refused> {
        let cut = self.unconfirmed.take_if(|(of, _)| *of == version);
        let (_, cut) = cut.ok_or_else(|| self.unknown(version))?;
        self.cuts.insert(version, cut);
        self.cuts.retain(|version, _| *version >= oldest);
        Ok(())
    }

    /// Goes back to a checkpoint: whatever is in the hands of a worker is dropped.
    fn restore(&mut self, version: u64, effects: &mut Vec<Effect<R>>) -> Result<(), Refused> {
        let cut = self.cuts.get(&version).cloned().ok_or_else(|| self.unknown(version))?;
        let held = |worker: &WorkerId| {
            let worker = *worker;
            self.ledger.held_by(worker).map(move |task| Effect::Drop(worker, task.id))
        };
        effects.extend(self.workers.iter().flat_map(held));
        self.ledger.rewind(cut);
        // A measurement that was under way had its tasks in those hands.
        self.evaluations.rewind(version);
        self.cuts.retain(|kept, _| *kept <= version);
        self.unconfirmed = None;
        self.ended = false;
        Ok(())
    }

    /// Gives up workers that are silent: their tasks go to others at once.
    fn replace(&mut self, now: Instant, effects: &mut Vec<Effect<R>>) {
        let Some(silent_ms) = self.training.silent_ms else { return };
        let silent = self.ledger.silent(silent_ms, now).map(|(worker, _)| worker);
        let silent: BTreeSet<_> = silent.collect();
        for worker in silent {
            self.leave(worker, effects);
            effects.push(Effect::Replace(worker));
        }
    }

    /// Applies the passing of time to resizes and to the world.
    fn turn(&mut self, now: Instant, effects: &mut Vec<Effect<R>>) {
        effects.extend(self.resize.turn(now).map(Effect::Resize));
        let world = self.rendezvous.as_mut().and_then(|rendezvous| rendezvous.turn(now));
        effects.extend(world.cloned().map(Effect::World));
    }

    /// Gives those who wait what there is.
    fn serve(&mut self, now: Instant, effects: &mut Vec<Effect<R>>) {
        let staying = |worker: &WorkerId| !self.resize.is_leaving(*worker);
        for worker in self.asking.iter().copied().filter(staying).collect::<Vec<_>>() {
            match self.ledger.next(worker, now) {
                Ok(Answer::Task(task)) => effects.push(Effect::Give(worker, task)),
                Ok(Answer::Ended) => effects.push(Effect::Leave(worker)),
                Ok(Answer::Wait) => return,
                // The limit was checked when it asked for a task, and it has got none since.
                Err(_) => {}
            }
            self.asking.remove(&worker);
        }
    }
}
