//! Retention of the logs. Owns: that they stay bounded, that a deletion is on record, and that
//! nothing waits for it: a few rows at a time, beside the dispatcher.

use records::{AuditDetail, AuditRow, Change, Log};
use store::Store;
use units::Instant;

use crate::event_shares::{EventShares, Excess};
use orchestrator::SYSTEM;
use spec::{UserLimit, UserLimits};

/// Rows that are forgotten in one transaction.
const AT_ONCE: u32 = 1000;
/// Maximum number of such transactions for a log at each call.
const TRANSACTIONS_MAX: usize = 20;
const DAY_MS: u64 = 86_400_000;

/// How long rows of the logs are kept, in milliseconds. How many are kept is a limit of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Events.
    pub events_ms: u64,
    /// Rows of the audit log.
    pub audit_ms: u64,
}

/// 90 days of events; 400 days, a year and a month, of the audit log.
impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { events_ms: 90 * DAY_MS, audit_ms: 400 * DAY_MS }
    }
}

/// Deletes rows that are too old, once a day, and those beyond the maximum number, soon after they
/// are that many.
pub(crate) struct Retention {
    kept: RetentionPolicy,
    limits: UserLimits,
    /// The day in which it was last begun, and the logs that are not done yet.
    day: u64,
    due: Vec<Log>,
    /// Counted once there may be too many events.
    shares: Option<EventShares>,
}

impl Retention {
    pub(crate) const fn new(kept: RetentionPolicy, limits: UserLimits) -> Self {
        Self { kept, limits, day: 0, due: Vec::new(), shares: None }
    }

    /// Forgets some rows, if there are any to forget.
    pub(crate) async fn forget_some(
        &mut self,
        store: &Store,
        now: Instant,
    ) -> Result<(), store::Error> {
        if self.day != now.0 / DAY_MS {
            self.day = now.0 / DAY_MS;
            self.due = vec![Log::Events, Log::Audit];
        }
        if !self.due.contains(&Log::Audit) && self.has_too_many(store, Log::Audit).await? {
            self.due.push(Log::Audit);
        }
        for log in self.due.clone() {
            for _ in 0..TRANSACTIONS_MAX {
                if self.forget_of(store, log, now).await? < AT_ONCE as usize {
                    self.due.retain(|due| *due != log);
                    break;
                }
            }
        }
        self.forget_beyond_shares(store, now).await
    }

    /// Forgets events beyond the maximum number: those of the projects with the most, and within a
    /// project those of the submitters with the most.
    async fn forget_beyond_shares(
        &mut self,
        store: &Store,
        now: Instant,
    ) -> Result<(), store::Error> {
        if !self.has_too_many(store, Log::Events).await? {
            return Ok(());
        }
        // Events that went from between others make the positions an upper bound of their number.
        let (rows_max, newest) = (self.rows_max(Log::Events), store.newest(Log::Events).await?);
        let shares = self.shares.get_or_insert_default();
        shares.count(store, newest).await?;
        if shares.total() < rows_max.saturating_add(u64::from(AT_ONCE)) {
            return Ok(());
        }
        for _ in 0..TRANSACTIONS_MAX {
            let Some(gone) = shares.excess(store, rows_max, u64::from(AT_ONCE)).await? else {
                break;
            };
            let Excess { group, from, until, count } = &gone;
            let of = format!("{count} of project {} and `{}`", group.project_id, group.owner);
            let target = format!("{from} to {}, {of}, beyond the newest {rows_max}", until - 1);
            let changes = [
                Change::EventsKeptFrom(group.clone(), *until),
                Change::EventsGone(group.clone(), *from, *until),
                deletion(now, "events", target),
            ];
            store.apply(&changes).await?;
            shares.deleted(&gone);
        }
        Ok(())
    }

    /// True if a log has so many rows beyond its maximum that one transaction deletes only those.
    async fn has_too_many(&self, store: &Store, log: Log) -> Result<bool, store::Error> {
        let oldest = store.oldest(log, 1).await?;
        let Some((first, _)) = oldest.first() else { return Ok(false) };
        let rows_max = self.rows_max(log);
        let rows = store.newest(log).await?.saturating_sub(*first).saturating_add(1);
        Ok(rows >= rows_max.saturating_add(u64::from(AT_ONCE)))
    }

    fn rows_max(&self, log: Log) -> u64 {
        self.limits.get(match log {
            Log::Events => UserLimit::Events,
            Log::Audit => UserLimit::AuditRows,
        })
    }

    /// Forgets some rows of a log that are too old or, of the audit log, too many; how many.
    async fn forget_of(
        &mut self,
        store: &Store,
        log: Log,
        now: Instant,
    ) -> Result<usize, store::Error> {
        let (name, kept_ms) = match log {
            Log::Events => ("events", self.kept.events_ms),
            Log::Audit => ("audit", self.kept.audit_ms),
        };
        let rows_max = match log {
            Log::Events => u64::MAX,
            Log::Audit => self.rows_max(log),
        };
        let old = Instant(now.0.saturating_sub(kept_ms));
        // One more than go, which stays: it may be the newest.
        let rows = store.oldest(log, AT_ONCE + 1).await?;
        let newest = store.newest(log).await?;
        let goes =
            |(seq, at): &&(u64, Instant)| *at < old || seq.saturating_add(rows_max) <= newest;
        let count = rows.iter().take_while(goes).count().min(rows.len().saturating_sub(1));
        let (Some((first, _)), Some((from, _))) = (rows.first(), rows.get(count)) else {
            return Ok(0);
        };
        if count == 0 {
            return Ok(0);
        }
        let why = match rows.get(count - 1) {
            Some((_, at)) if *at < old => format!("after {} days", kept_ms / DAY_MS),
            _ => format!("beyond the newest {rows_max}"),
        };
        let row = deletion(now, name, format!("{first} to {}, {why}", from - 1));
        store.apply(&[Change::LogKeptFrom(log, *from), Change::LogGone(log), row]).await?;
        if log == Log::Events {
            self.shares = None;
        }
        Ok(count)
    }
}

/// Audit row of the deletion of rows of a log.
fn deletion(now: Instant, log: &str, target: String) -> Change {
    Change::Audit(AuditRow {
        at: now,
        who: SYSTEM.to_owned(),
        what: format!("{log}.delete"),
        target,
        result: "ok".to_owned(),
        detail: AuditDetail::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use records::{EventFilter, EventRow};

    use super::*;

    #[tokio::test]
    async fn a_flood_of_events_of_one_user_takes_the_place_of_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).await.expect("a new database");
        let mut seq = 0;
        let mut happen = |project_id, owner: &str, count| {
            let event = |seq| EventRow {
                seq,
                at: Instant(DAY_MS),
                kind: "Submitted".to_owned(),
                warning: false,
                project_id,
                project_name: String::new(),
                workload_id: None,
                workload_name: String::new(),
                pod_name: None,
                code: None,
                message: String::new(),
                owner: owner.to_owned(),
            };
            seq += count;
            (seq - count + 1..=seq).map(|seq| Change::Event(event(seq))).collect::<Vec<_>>()
        };
        let left = async || {
            let mut counts: BTreeMap<_, u64> = BTreeMap::new();
            for row in store.events(&EventFilter::default()).await.expect("readable") {
                *counts.entry((row.project_id, row.owner)).or_default() += 1;
            }
            counts.into_iter().map(|((project, owner), n)| (project, owner, n)).collect::<Vec<_>>()
        };
        let mut limits = UserLimits::default();
        limits.set(UserLimit::Events, 3000);
        let mut retention = Retention::new(RetentionPolicy::default(), limits);
        let of = |project, owner: &str, n| (project, owner.to_owned(), n);
        let others = [(None, "", 10), (Some(1), "bob", 500), (Some(2), "ann", 900)];
        for (project, owner, count) in others {
            store.apply(&happen(project, owner, count)).await.expect("written");
        }
        // The user floods the log, and reads of others' events return what they did.
        for flood in [2500, 1500, 9000] {
            store.apply(&happen(Some(1), "ann", flood)).await.expect("written");
            retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
            let want = [
                of(None, "", 10),
                of(Some(1), "ann", 1590),
                of(Some(1), "bob", 500),
                of(Some(2), "ann", 900),
            ];
            if flood == 2500 {
                assert_eq!(left().await[1], of(Some(1), "ann", 2500), "not yet");
            } else {
                assert_eq!(left().await, want);
            }
        }
        // A restart counts again, and the newest stays whatever the limit.
        let mut limits = UserLimits::default();
        limits.set(UserLimit::Events, 0);
        let mut retention = Retention::new(RetentionPolicy::default(), limits);
        retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
        assert_eq!(left().await, [of(Some(1), "ann", 1)]);
    }

    #[tokio::test]
    async fn of_a_log_with_too_many_rows_the_newest_are_kept_however_young() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).await.expect("a new database");
        let row = AuditRow { at: Instant(DAY_MS), who: "alice".into(), ..AuditRow::default() };
        store.apply(&vec![Change::Audit(row); 9]).await.expect("written");
        let mut limits = UserLimits::default();
        limits.set(UserLimit::AuditRows, 4);
        let mut retention = Retention::new(RetentionPolicy::default(), limits);
        retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
        let left = store.audit(9).await.expect("readable");
        let left: Vec<_> = left.iter().map(|row| format!("{} {}", row.who, row.target)).collect();
        let (forgotten, alice) = ("elastane 1 to 5, beyond the newest 4", "alice ");
        assert_eq!(left, [forgotten, alice, alice, alice, alice]);
    }

    #[tokio::test]
    async fn a_flood_within_a_day_does_not_pass_the_maximum_for_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).await.expect("a new database");
        let row = AuditRow { at: Instant(DAY_MS), who: "alice".into(), ..AuditRow::default() };
        let mut limits = UserLimits::default();
        limits.set(UserLimit::AuditRows, 4);
        let mut retention = Retention::new(RetentionPolicy::default(), limits);
        retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
        for _ in 0..3 {
            store.apply(&vec![Change::Audit(row.clone()); 2500]).await.expect("written");
            retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
            let left = store.audit(5000).await.expect("readable").len();
            assert!(left < 1100, "{left}");
        }
    }
}
