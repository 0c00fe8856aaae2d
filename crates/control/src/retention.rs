//! Retention of the logs. Owns: that they stay bounded, that a deletion is on record, and that
//! nothing waits for it: a few rows at a time, beside the dispatcher.

use std::collections::BTreeMap;

use records::{AuditDetail, AuditRow, Change, Log};
use store::Store;
use units::Instant;

use crate::log_shares::{Excess, LogShares};
use orchestrator::SYSTEM;
use spec::{UserLimit, UserLimits};

/// Rows that are forgotten in one transaction.
const AT_ONCE: u32 = 1000;
/// Maximum number of such transactions for a log at each call.
const TRANSACTIONS_MAX: usize = 20;
const DAY_MS: u64 = 86_400_000;
const LOGS: [Log; 2] = [Log::Events, Log::Audit];

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
    /// Shares of each log that may have had too many rows.
    shares: BTreeMap<Log, LogShares>,
}

impl Retention {
    pub(crate) const fn new(kept: RetentionPolicy, limits: UserLimits) -> Self {
        Self { kept, limits, day: 0, due: Vec::new(), shares: BTreeMap::new() }
    }

    /// Forgets some rows, if there are any to forget.
    pub(crate) async fn forget_some(
        &mut self,
        store: &Store,
        now: Instant,
    ) -> Result<(), store::Error> {
        if self.day != now.0 / DAY_MS {
            self.day = now.0 / DAY_MS;
            self.due = LOGS.to_vec();
        }
        for log in self.due.clone() {
            for _ in 0..TRANSACTIONS_MAX {
                if self.forget_of(store, log, now).await? < AT_ONCE as usize {
                    self.due.retain(|due| *due != log);
                    break;
                }
            }
        }
        for log in LOGS {
            self.forget_beyond_shares(store, log, now).await?;
        }
        Ok(())
    }

    /// Forgets rows beyond the maximum number: those of the projects with the most, and within a
    /// project those of the users with the most.
    async fn forget_beyond_shares(
        &mut self,
        store: &Store,
        log: Log,
        now: Instant,
    ) -> Result<(), store::Error> {
        if !self.has_too_many(store, log).await? {
            return Ok(());
        }
        // Rows that went from between others make the positions an upper bound of their number.
        let (rows_max, newest) = (self.rows_max(log), store.newest(log).await?);
        let shares = self.shares.entry(log).or_insert_with(|| LogShares::new(log));
        shares.count(store, newest).await?;
        if shares.total() < rows_max.saturating_add(u64::from(AT_ONCE)) {
            return Ok(());
        }
        for _ in 0..TRANSACTIONS_MAX {
            let Some(gone) = shares.excess(store, rows_max, u64::from(AT_ONCE)).await? else {
                break;
            };
            let Excess { group, from, until, count } = &gone;
            let of = match log {
                Log::Events => format!("project {} and `{}`", group.project_id, group.user),
                Log::Audit => format!("`{}`", group.user),
            };
            let until_last = format!("{from} to {}, {count} of {of}", until - 1);
            let target = format!("{until_last}, beyond the newest {rows_max}");
            let changes = [
                Change::LogGroupKeptFrom(log, group.clone(), *until),
                Change::LogGroupGone(log, group.clone(), *from, *until),
                deletion(now, log, target),
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

    /// Forgets some rows of a log that are too old; how many.
    async fn forget_of(
        &mut self,
        store: &Store,
        log: Log,
        now: Instant,
    ) -> Result<usize, store::Error> {
        let kept_ms = match log {
            Log::Events => self.kept.events_ms,
            Log::Audit => self.kept.audit_ms,
        };
        let old = Instant(now.0.saturating_sub(kept_ms));
        // One more than go, which stays: it may be the newest.
        let rows = store.oldest(log, AT_ONCE + 1).await?;
        let is_old = |(_, at): &&(u64, Instant)| *at < old;
        let count = rows.iter().take_while(is_old).count().min(rows.len().saturating_sub(1));
        let (Some((first, _)), Some((from, _))) = (rows.first(), rows.get(count)) else {
            return Ok(0);
        };
        if count == 0 {
            return Ok(0);
        }
        let target = format!("{first} to {}, after {} days", from - 1, kept_ms / DAY_MS);
        let row = deletion(now, log, target);
        store.apply(&[Change::LogKeptFrom(log, *from), Change::LogGone(log), row]).await?;
        self.shares.remove(&log);
        Ok(count)
    }
}

/// Audit row of the deletion of rows of a log.
fn deletion(now: Instant, log: Log, target: String) -> Change {
    let what = match log {
        Log::Events => "events.delete",
        Log::Audit => "audit.delete",
    };
    Change::Audit(AuditRow {
        at: now,
        who: SYSTEM.to_owned(),
        what: what.to_owned(),
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
                beneficiary: None,
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
    async fn a_flood_of_audit_rows_of_one_user_takes_the_place_of_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).await.expect("a new database");
        let row = |who: &str| {
            Change::Audit(AuditRow { at: Instant(DAY_MS), who: who.into(), ..AuditRow::default() })
        };
        let mut limits = UserLimits::default();
        limits.set(UserLimit::AuditRows, 1500);
        let mut retention = Retention::new(RetentionPolicy::default(), limits);
        store.apply(&vec![row("bob"); 500]).await.expect("written");
        for _ in 0..3 {
            store.apply(&vec![row("ann"); 2500]).await.expect("written");
            retention.forget_some(&store, Instant(DAY_MS)).await.expect("readable");
            let left = store.audit(9999).await.expect("readable");
            let of = |who: &str| left.iter().filter(|row| row.who == who).count();
            assert_eq!(of("bob"), 500);
            assert!(of("ann") <= 1000, "{}", of("ann"));
            let last = left.iter().find(|row| row.who == SYSTEM).expect("a deletion");
            assert!(last.target.contains(" of `ann`, beyond the newest 1500"), "{}", last.target);
        }
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
