//! Deleted workloads beyond their retention. Does not know about: how many are kept, and for how
//! long.

use records::KeptDeletions;
use uuid::Uuid;

use crate::connection::Connection;
use crate::fault::Result;
use crate::reading::read_with;
use crate::statement::Statement;

/// Selects the deleted workloads beyond the limit: the newest of each project is kept first, then the
/// second of each, and so on.
const BEYOND: &str = "SELECT id FROM workloads WHERE deleted_at IS NOT NULL AND seq NOT IN (
    SELECT seq FROM (
        SELECT seq, deleted_at, ROW_NUMBER()
            OVER (PARTITION BY project_id ORDER BY deleted_at DESC, seq DESC) AS place
        FROM workloads WHERE deleted_at >= $1
    ) AS ranked ORDER BY place, deleted_at DESC, seq DESC LIMIT $2
) LIMIT $3";

/// Some deleted workloads that are not kept.
pub(crate) async fn beyond(
    db: &mut Connection<'_>,
    kept: KeptDeletions,
    limit: u32,
) -> Result<Vec<Uuid>> {
    let statement = Statement::new("find deleted workloads that are not kept", BEYOND)
        .at(kept.since)
        .int(kept.count_max)
        .int(limit.into());
    read_with(db, "workloads", statement, |r| r.uuid("id")).await
}
