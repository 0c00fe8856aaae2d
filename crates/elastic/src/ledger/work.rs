//! Giving tasks out and taking them back. Owns: what each report changes.

use units::Instant;

use super::{Answer, Held, Ledger, LedgerError, Outcome};
use crate::plan::{Cuts, Plan, PlanError};
use crate::task::{Kind, Measure, Records, Task, TaskId, WorkerId};

impl Ledger {
    /// Gives a worker something to do: an evaluation first, then what came back, then what is new.
    /// There is no barrier between passes.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TooMany`], if it has as much as it may have.
    pub fn next(&mut self, worker: WorkerId, now: Instant) -> Result<Answer, LedgerError> {
        if self.outcome.is_some() {
            return Ok(Answer::Ended);
        }
        self.check_room(worker)?;
        let task = self.evaluations.pop_front().or_else(|| self.returned.pop_front());
        let Some(task) = task.or_else(|| self.fresh()).or_else(|| self.save()) else {
            return Ok(Answer::Wait);
        };
        *self.held_by.entry(worker).or_default() += 1;
        let kept = Held { worker, task: task.clone(), finished: 0, since: now, heard: now };
        self.held.insert(task.id, kept);
        Ok(Answer::Task(task))
    }

    /// Checks that a worker may have another task.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TooMany`], if not.
    pub fn check_room(&self, worker: WorkerId) -> Result<(), LedgerError> {
        let held = self.held_by.get(&worker).copied().unwrap_or_default();
        let held_max = self.limits.held_max;
        let too_many = LedgerError::TooMany { worker, held, held_max };
        (held < held_max).then_some(()).ok_or(too_many)
    }

    /// A worker has visited so many records of a task, from its start on, and their effect is in
    /// the model: they are not given out again if the worker is lost. Fewer than reported before
    /// change nothing, so a report may come twice.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotHeld`], [`LedgerError::Finished`].
    pub fn advance(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        finished: u64,
        now: Instant,
    ) -> Result<(), LedgerError> {
        let held = self.held_mut(worker, task)?;
        let count = held.task.records.count();
        if finished > count {
            return Err(LedgerError::Finished { task, count, finished });
        }
        held.heard = held.heard.max(now);
        let more = finished.saturating_sub(held.finished);
        held.finished += more;
        if counts(held.task.kind) {
            self.progress.records += more;
        }
        Ok(())
    }

    /// A worker has finished a task.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotHeld`].
    pub fn finish(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        now: Instant,
    ) -> Result<(), LedgerError> {
        let count = self.held_mut(worker, task)?.task.records.count();
        self.advance((worker, task), count, now)?;
        let held = self.take(worker, task)?;
        let longest = self.longest_ms.entry(held.task.kind).or_default();
        *longest = (*longest).max(now.since_ms(held.since));
        self.progress.tasks += 1;
        if held.task.kind == Kind::Evaluate && held.task.measures.is_none() {
            self.progress.records += count;
        }
        self.end();
        Ok(())
    }

    /// A worker that leaves in time gives a task back after so many records of it. The others are
    /// given out again, before anything new.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotHeld`], [`LedgerError::Finished`].
    pub fn hand_back(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        finished: u64,
        now: Instant,
    ) -> Result<(), LedgerError> {
        self.advance((worker, task), finished, now)?;
        let held = self.take(worker, task)?;
        self.progress.handed_back += 1;
        self.give_back(held);
        self.end();
        Ok(())
    }

    /// The code of a worker has failed on a task, after what it reported before.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotHeld`].
    pub fn fail(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        message: &str,
    ) -> Result<(), LedgerError> {
        let mut held = self.take(worker, task)?;
        self.progress.failed += 1;
        held.task.failures += 1;
        if held.task.failures > self.limits.failures_max && self.outcome.is_none() {
            let Task { ref records, epoch, .. } = held.task;
            let message = message.to_owned();
            self.outcome = Some(Outcome::Failed { records: records.clone(), epoch, message });
        }
        self.give_back(held);
        self.end();
        Ok(())
    }

    /// A record of a task cannot be read. The worker goes on behind it, and counts it as visited.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotHeld`], [`LedgerError::Record`].
    pub fn bad_record(
        &mut self,
        (worker, task): (WorkerId, TaskId),
        record: u64,
        message: &str,
    ) -> Result<(), LedgerError> {
        let of = self.held_mut(worker, task)?.task.clone();
        let range = of.records.range.clone();
        if !range.contains(&record) {
            let (start, end) = (range.start, range.end);
            return Err(LedgerError::Record { task, record, start, end });
        }
        if self.outcome.is_some()
            || !self.bad.insert(self.plan.record(of.epoch, &of.records, record))
        {
            return Ok(());
        }
        let count = self.bad.len() as u64;
        self.progress.bad_records = count;
        if count > self.limits.bad_records_max {
            self.outcome = Some(Outcome::BadRecords { count, record, message: message.to_owned() });
        }
        Ok(())
    }

    /// A worker is gone without handing back: killed, preempted without grace, its node lost. Its
    /// unreported records are given out again.
    pub fn lose(&mut self, worker: WorkerId) {
        let ids = self.held.iter().filter(|(_, held)| held.worker == worker).map(|(id, _)| *id);
        // The oldest is put at the front last, so it is given out first.
        for id in ids.collect::<Vec<_>>().into_iter().rev() {
            if let Ok(held) = self.take(worker, id) {
                self.progress.lost += 1;
                self.give_back(held);
            }
        }
        self.end();
    }

    /// Measures a version of the model with all records of a plan, once. Returns how many tasks
    /// that makes.
    ///
    /// # Errors
    ///
    /// [`PlanError`], if the plan cannot be carried out.
    pub fn evaluate(&mut self, version: u64, plan: &Plan) -> Result<u64, PlanError> {
        let cuts = Cuts::of(plan)?;
        if self.outcome.is_some() {
            return Ok(0);
        }
        for piece in 0..cuts.count() {
            let mut task = self.task(Kind::Evaluate, cuts.at(plan, 0, piece));
            task.measures = Some(Measure { version, piece });
            self.evaluations.push_back(task);
        }
        Ok(cuts.count())
    }

    fn held_mut(&mut self, worker: WorkerId, task: TaskId) -> Result<&mut Held, LedgerError> {
        let held = self.held.get_mut(&task).filter(|held| held.worker == worker);
        held.ok_or(LedgerError::NotHeld { worker, task })
    }

    pub(super) fn take(&mut self, worker: WorkerId, task: TaskId) -> Result<Held, LedgerError> {
        self.held_mut(worker, task)?;
        let held = self.held.remove(&task).ok_or(LedgerError::NotHeld { worker, task })?;
        if let Some(count) = self.held_by.get_mut(&worker) {
            *count -= 1;
            if *count == 0 {
                self.held_by.remove(&worker);
            }
        }
        Ok(held)
    }

    /// Puts the rest of a task at the front, under a new number: reports about the old one come too
    /// late. A measurement restarts from its first record.
    pub(super) fn give_back(&mut self, held: Held) {
        let Held { mut task, finished, .. } = held;
        if counts(task.kind) {
            task.records.range.start += finished;
        }
        if task.records.range.is_empty() {
            return;
        }
        task.id = self.new_id();
        match task.kind {
            _ if task.measures.is_some() => self.evaluations.push_front(task),
            _ => self.returned.push_front(task),
        }
    }

    fn fresh(&mut self) -> Option<Task> {
        if self.given == self.cuts.count() {
            if !self.plan.has_epoch(self.epoch.checked_add(1)?) {
                return None;
            }
            (self.epoch, self.given) = (self.epoch + 1, 0);
        }
        let left = self.plan.records_max.map(|max| max.saturating_sub(self.given_records));
        if left == Some(0) {
            return None;
        }
        let mut records = self.cuts.at(&self.plan, self.epoch, self.given);
        if let Some(left) = left {
            let end = records.range.start.saturating_add(left);
            records.range.end = records.range.end.min(end);
        }
        self.given += 1;
        self.given_records += records.count();
        Some(self.task(self.plan.kind, records))
    }

    fn save(&mut self) -> Option<Task> {
        if !self.plan.saves || self.has_save || !self.none_is_out() {
            return None;
        }
        self.has_save = true;
        let records = self.cuts.at(&self.plan, self.epoch, 0);
        Some(self.task(Kind::Save, records))
    }

    fn task(&mut self, kind: Kind, records: Records) -> Task {
        let id = self.new_id();
        Task { id, kind, records, epoch: self.epoch, measures: None, failures: 0 }
    }

    pub(super) fn new_id(&mut self) -> TaskId {
        let id = TaskId(self.next_id);
        self.next_id += 1;
        id
    }

    /// Ends the job if nothing is left and nothing can come back.
    pub(super) fn end(&mut self) {
        let idle = self.none_is_out() && self.returned.is_empty() && self.evaluations.is_empty();
        let saved = self.has_save || !self.plan.saves;
        if idle && saved && !self.has_fresh() && self.outcome.is_none() {
            self.outcome = Some(Outcome::Finished);
        }
    }

    /// True if no task can come back.
    fn none_is_out(&self) -> bool {
        self.held.is_empty() && self.orphans.is_empty()
    }

    fn has_fresh(&self) -> bool {
        let more = |max| max > self.given_records;
        let epochs = self.given < self.cuts.count()
            || self.epoch.checked_add(1).is_some_and(|next| self.plan.has_epoch(next));
        epochs && self.plan.records_max.is_none_or(more)
    }
}

/// True if its records count as visited one by one: measuring and saving count whole or not at all.
pub(super) fn counts(kind: Kind) -> bool {
    matches!(kind, Kind::Train | Kind::Predict)
}
