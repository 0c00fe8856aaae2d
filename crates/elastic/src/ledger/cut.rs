//! Cuts: the records that a checkpoint of the model contains. Owns: taking a cut and restoring one.
//! A checkpoint and its cut are written together: one without the other is worthless.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::work::counts;
use super::{Ledger, Progress};
use crate::task::{Task, TaskId};

/// A document of all records that are not in the model, small whatever the size of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cut {
    #[serde(deserialize_with = "form")]
    form: u32,
    epoch: u32,
    given: u64,
    given_records: u64,
    open: Vec<Task>,
    has_save: bool,
    progress: Progress,
}

impl Cut {
    /// Version of the document that this build writes and reads.
    pub const FORM: u32 = 1;

    /// Records that count as visited in it.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.progress.records
    }
}

impl Ledger {
    /// The cut of the model while no update is under way. `positions` is the number of visited
    /// records of each task, if more than its worker has reported.
    #[must_use]
    pub fn cut(&self, positions: &BTreeMap<TaskId, u64>) -> Cut {
        let mut progress = self.progress;
        let trains = |task: &Task| task.kind == self.plan.kind && task.measures.is_none();
        let out = self.held.iter().chain(&self.orphans);
        let rest = out.filter(|(_, held)| trains(&held.task)).map(|(id, held)| {
            let count = held.task.records.count();
            let reported = positions.get(id).copied().unwrap_or_default().min(count);
            let visited = reported.max(held.finished);
            let finished = if counts(held.task.kind) { visited } else { held.finished };
            progress.records += finished - held.finished;
            let mut task = held.task.clone();
            task.records.range.start += if counts(task.kind) { finished } else { 0 };
            task
        });
        let returned = self.returned.iter().filter(|task| trains(task)).cloned();
        let mut open: Vec<Task> = rest.chain(returned).collect();
        open.retain(|task| task.records.count() > 0);
        open.sort_by_key(|task| task.id);
        Cut {
            form: Cut::FORM,
            epoch: self.epoch,
            given: self.given,
            given_records: self.given_records,
            open,
            // The model has to be saved again if it is trained again.
            has_save: false,
            progress,
        }
    }

    /// Restores a cut: every record that is not in it is open again, whatever was finished since.
    /// No worker holds a task any more; reports about earlier tasks are refused. Task numbers
    /// continue.
    pub fn rewind(&mut self, cut: Cut) {
        let Cut { epoch, given, given_records, open, has_save, progress, .. } = cut;
        (self.epoch, self.given, self.given_records) = (epoch, given, given_records);
        self.has_save = has_save;
        self.held.clear();
        self.held_by.clear();
        self.orphans.clear();
        // A version that is gone is not measured any more.
        self.evaluations.clear();
        self.returned.clear();
        for mut task in open {
            task.id = self.new_id();
            self.returned.push_back(task);
        }
        // Counters of events stay; the visited records are those of the cut.
        self.progress = Progress { records: progress.records, ..self.progress };
        self.outcome = None;
        self.end();
    }
}

fn form<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let form = u32::deserialize(from)?;
    let newer = || {
        let known = Cut::FORM;
        D::Error::custom(format!("a cut of form {form}; this build reads form {known}: update it"))
    };
    (form == Cut::FORM).then_some(form).ok_or_else(newer)
}
