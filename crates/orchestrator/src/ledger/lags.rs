//! Lags of queues behind their fair shares. Owns: updating them from the holdings, and keeping them
//! over a restart.

use std::collections::BTreeSet;

use model::{Lag, QueueId};
use records::{Change, LagRow, LagUnit};
use units::Instant;

use crate::pools::Pool;
use crate::state::State;

/// Minimum time between two writes of lags, in milliseconds.
const WRITE_INTERVAL_MS: u64 = 60_000;

/// Lags that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Lags {
    unwritten: BTreeSet<QueueId>,
    written_at: Instant,
}

impl Lags {
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.written_at.plus_ms(WRITE_INTERVAL_MS);
        (!self.unwritten.is_empty()).then_some(due)
    }
}

impl State {
    /// Restores the lags of queues from the rows.
    pub(crate) fn restore_lags(&mut self, rows: &[LagRow]) {
        for row in rows {
            let pool = self.pools.iter().find(|pool| pool.kept_as() == row.pool);
            let queue = match row.unit {
                LagUnit::Department(id) => self.org.department(id).ok().map(|unit| unit.queue),
                LagUnit::Project(id) => self.org.project(id).ok().map(|unit| unit.queue),
            };
            let Some((pool, queue)) = pool.map(|pool| pool.model).zip(queue) else { continue };
            let LagRow { value, since, fair_millis, held_millis, turn_since, .. } = *row;
            let lag = Lag { value, since, fair_millis, held_millis, turn_since };
            let queue = self.cluster.queue_in(queue, pool);
            self.cluster.set_lag(queue, lag);
            // The clock may have been set since it was written.
            self.ledger.lags.unwritten.insert(queue);
        }
    }

    /// Updates lags from the holdings and fair shares of queues.
    pub(crate) fn follow_lags(&mut self) {
        let followed = self.cluster.follow_lags(self.now, self.org.fair_shares());
        self.ledger.lags.unwritten.extend(followed);
    }

    /// Writes changed lags, at most once a minute.
    pub(crate) fn write_lags(&mut self) {
        if self.ledger.lags.due().is_none_or(|due| due > self.now) {
            return;
        }
        self.ledger.lags.written_at = self.now;
        let unwritten = std::mem::take(&mut self.ledger.lags.unwritten);
        let departments = self.org.departments();
        let departments = departments.map(|unit| (LagUnit::Department(unit.unit.id), unit.queue));
        let projects = self.org.projects();
        let units =
            departments.chain(projects.map(|unit| (LagUnit::Project(unit.unit.id), unit.queue)));
        let rows = units.flat_map(|(unit, queue)| {
            let row = |pool: &Pool| {
                let queue = self.cluster.queue_in(queue, pool.model);
                let Lag { value, since, fair_millis, held_millis, turn_since } =
                    self.cluster.queues()[queue].lag;
                let pool = pool.kept_as().to_owned();
                let row = LagRow { unit, pool, value, since, fair_millis, held_millis, turn_since };
                unwritten.contains(&queue).then_some(Change::Lag(row))
            };
            let mut pools: Vec<_> = self.pools.iter().filter_map(row).collect();
            if !self.cluster.is_divided() {
                pools.truncate(1);
            }
            pools
        });
        let rows: Vec<_> = rows.collect();
        self.outbox.write(rows);
    }
}
