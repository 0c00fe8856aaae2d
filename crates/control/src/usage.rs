//! What the projects used of late. Owns: feeding the ledger, and keeping it over a restart.

use std::collections::BTreeMap;

use model::{EndedStep, PoolId, QueueId, UsageLedger, UsageWindow};
use store::{Change, UsageRow};
use units::Resources;

use crate::state::State;

impl State {
    /// Goes on with a ledger where it ended, or begins one. What is held now counts from the end of
    /// the last step that was written.
    pub(crate) fn restore_usage(&mut self, window: Option<UsageWindow>, rows: &[UsageRow]) {
        let Some(window) = window else { return };
        let mut ledger = UsageLedger::new(window);
        // What a department held is what its projects held.
        let lineage = |id: &u64| {
            let project = self.projects.get(id)?;
            let department = self.departments.get(&project.department_id)?;
            Some([project.queue, department.queue])
        };
        // What the clock has not reached yet was written before it was set back.
        let past = rows.iter().filter(|row| row.step_start <= self.now).collect::<Vec<_>>();
        for rows in past.chunk_by(|l, r| l.step_start == r.step_start) {
            let (mut capacity, mut held) = (Vec::new(), BTreeMap::new());
            for row in rows {
                match &row.project_id {
                    None => capacity.push((PoolId::DEFAULT, row.held)),
                    Some(id) => {
                        for queue in lineage(id).into_iter().flatten() {
                            *held.entry(queue).or_insert(Resources::ZERO) += row.held;
                        }
                    }
                }
            }
            let step =
                EndedStep { start: rows[0].step_start, capacity, held: held.into_iter().collect() };
            ledger.replay(&self.cluster, &step);
        }
        ledger.observe(&mut self.cluster, self.now);
        ledger.publish(&mut self.cluster);
        self.usage = Some(ledger);
    }

    /// Books what was held until now, and writes down the steps that have ended.
    pub(crate) fn observe_usage(&mut self) {
        let Some(ledger) = &mut self.usage else { return };
        let ended = ledger.observe(&mut self.cluster, self.now);
        if ended == 0 {
            return;
        }
        let by_queue: BTreeMap<QueueId, u64> =
            self.projects.values().map(|project| (project.queue, project.id)).collect();
        for step in ledger.ended(ended) {
            let row = |project_id, held| {
                Change::Usage(UsageRow { step_start: step.start, project_id, held })
            };
            let capacity = step.capacity.iter().map(|&(_, capacity)| row(None, capacity));
            self.outbox.changes.extend(capacity);
            let held = step.held.iter();
            let rows =
                held.filter_map(|(queue, held)| Some(row(Some(*by_queue.get(queue)?), *held)));
            self.outbox.changes.extend(rows);
        }
        let oldest = self.now.0.saturating_sub(ledger.window().length_ms());
        self.outbox.changes.push(Change::UsageGone(units::Instant(oldest)));
        self.outbox.projects.extend(self.projects.keys().copied());
    }
}
