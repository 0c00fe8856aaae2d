//! Recent usage of projects. Owns: updating the ledger, and keeping it over a restart.

use std::collections::BTreeMap;

use model::{EndedStep, PoolId, QueueId, UsageLedger, UsageWindow};
use records::{Change, UsageRow};
use units::Resources;

use crate::pools::Pool;
use crate::state::State;

impl Pool {
    /// Id of the node pool in rows of usage and of lags; empty for the default one.
    pub(super) fn kept_as(&self) -> &str {
        if self.model == PoolId::DEFAULT { "" } else { self.id() }
    }
}

impl State {
    /// Restores a ledger from its rows, or begins one. Present holdings count from the end of the
    /// last written step.
    pub(crate) fn restore_usage(&mut self, window: Option<UsageWindow>, rows: &[UsageRow]) {
        let Some(window) = window else { return };
        let mut ledger = UsageLedger::new(window);
        // Holdings of a department are the sum of those of its projects.
        let lineage = |id: &u64| {
            let project = self.org.project(*id).ok()?;
            let department = self.org.department(project.department_id).ok()?;
            Some([project.queue, department.queue])
        };
        // Rows in the future were written before the clock was set back.
        let past = rows.iter().filter(|row| row.step_start <= self.now).collect::<Vec<_>>();
        for rows in past.chunk_by(|l, r| l.step_start == r.step_start) {
            let (mut capacity, mut held) = (Vec::new(), BTreeMap::new());
            for row in rows {
                // Usage in a removed pool no longer counts.
                let mut pools = self.pools.iter();
                let Some(pool) = pools.find(|pool| pool.kept_as() == row.pool) else { continue };
                let pool = pool.model;
                match &row.project_id {
                    None => capacity.push((pool, row.held)),
                    Some(id) => {
                        for queue in lineage(id).into_iter().flatten() {
                            let queue = self.cluster.queue_in(queue, pool);
                            *held.entry(queue).or_insert(Resources::ZERO) += row.held;
                        }
                    }
                }
            }
            let step =
                EndedStep { start: rows[0].step_start, capacity, held: held.into_iter().collect() };
            ledger.replay(&self.cluster, &step);
        }
        ledger.book(&self.cluster, self.now);
        self.cluster.set_usages(ledger.usages(&self.cluster));
        self.ledger.usage = Some(ledger);
    }

    /// Adds the holdings until now, and writes the steps that have ended.
    pub(crate) fn observe_usage(&mut self) {
        let Some(ledger) = &mut self.ledger.usage else { return };
        let ended = ledger.book(&self.cluster, self.now);
        if ended == 0 {
            return;
        }
        self.cluster.set_usages(ledger.usages(&self.cluster));
        let mut by_queue: BTreeMap<QueueId, (u64, &str)> = BTreeMap::new();
        let pools: BTreeMap<PoolId, &str> =
            self.pools.iter().map(|pool| (pool.model, pool.kept_as())).collect();
        for project in self.org.projects() {
            for (&pool, &kept) in &pools {
                by_queue
                    .insert(self.cluster.queue_in(project.queue, pool), (project.unit.id, kept));
            }
        }
        for step in ledger.ended(ended) {
            let row = |project_id, pool: &str, held| {
                let pool = pool.to_owned();
                Change::Usage(UsageRow { step_start: step.start, project_id, pool, held })
            };
            let capacity = step.capacity.iter();
            let capacity =
                capacity.filter_map(|(pool, held)| Some(row(None, pools.get(pool)?, *held)));
            self.outbox.write(capacity);
            let held = step.held.iter().filter_map(|(queue, held)| {
                let (project, pool) = by_queue.get(queue)?;
                Some(row(Some(*project), pool, *held))
            });
            self.outbox.write(held);
        }
        let oldest = self.now.0.saturating_sub(ledger.window().length_ms());
        self.outbox.write([Change::UsageGone(units::Instant(oldest))]);
        self.outbox.recount(self.org.project_ids());
    }
}
