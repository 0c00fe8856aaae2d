//! Groups of rows that share a log. Owns: statements for their numbers, their oldest rows, and the
//! deletion of these. Does not know about: how many a group may have.

use records::{Log, LogGroup};

use crate::statement::Statement;

/// Counts the rows of each group after a position, until the position `until`: columns `project_id`,
/// `member` and `n`.
pub(crate) fn counts(log: Log, after: u64, until: u64) -> Statement<'static> {
    // All are counted by the index of groups, for which SQLite must not see the column: by the
    // positions it would read all rows.
    let seq = if after == 0 { "seq + 0" } else { "seq" };
    let (rows, group) = match log {
        Log::Events => {
            ("project_id, owner AS member, COUNT(*) AS n FROM events", "project_id, owner")
        }
        Log::Audit => {
            ("CAST(0 AS BIGINT) AS project_id, who AS member, COUNT(*) AS n FROM audit", "who")
        }
    };
    let sql = format!("SELECT {rows} WHERE {seq} > $1 AND {seq} <= $2 GROUP BY {group}");
    Statement::new("count the rows of a log", sql).int(after).int(until)
}

/// Positions of the oldest rows of a group from a position on.
pub(crate) fn oldest((log, group): (Log, &LogGroup), from: u64, count: u64) -> Statement<'_> {
    let rows = rows_of(log, group);
    let sql = format!("SELECT seq FROM {rows} AND seq >= $3 ORDER BY seq LIMIT $4");
    let statement = Statement::new("read the oldest rows of a group", sql);
    statement.int(group.project_id).text(&group.user).int(from).int(count)
}

/// Writes from where on the rows of a group are kept.
pub(crate) fn kept_from(log: Log, group: &LogGroup, seq: u64) -> Statement<'_> {
    let what = "write from where on rows of a group are kept";
    match log {
        Log::Events => Statement::new(
            what,
            "INSERT INTO events_kept_from (project_id, owner, seq) VALUES ($1, $2, $3)
             ON CONFLICT (project_id, owner) DO UPDATE SET seq = excluded.seq",
        )
        .int(group.project_id),
        Log::Audit => Statement::new(
            what,
            "INSERT INTO audit_kept_from (who, seq) VALUES ($1, $2)
             ON CONFLICT (who) DO UPDATE SET seq = excluded.seq",
        ),
    }
    .text(&group.user)
    .int(seq)
}

/// Deletes rows of a group: from a position until before another. The newest row of the log stays.
pub(crate) fn gone((log, group): (Log, &LogGroup), from: u64, until: u64) -> Statement<'_> {
    let (rows, table) = (rows_of(log, group), table(log));
    let sql = format!(
        "DELETE FROM {rows} AND seq >= $3 AND seq < $4 AND seq < (SELECT MAX(seq) FROM {table})"
    );
    let statement = Statement::new("delete rows of a group", sql).int(group.project_id);
    statement.text(&group.user).int(from).int(until)
}

/// Table of a log.
pub(crate) const fn table(log: Log) -> &'static str {
    match log {
        Log::Events => "events",
        Log::Audit => "audit",
    }
}

/// The rows of a group with the project `$1` and the user `$2`, by the index that there is for them.
const fn rows_of(log: Log, group: &LogGroup) -> &'static str {
    match (log, group.project_id) {
        (Log::Events, 0) => "events WHERE project_id IS NULL AND $1 = 0 AND owner = $2",
        (Log::Events, _) => "events WHERE project_id = $1 AND owner = $2",
        (Log::Audit, _) => "audit WHERE $1 = 0 AND who = $2",
    }
}
