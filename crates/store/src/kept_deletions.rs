//! Deleted workloads beyond their retention. Does not know about: how many are kept, and for how
//! long.

use records::KeptDeletions;
use uuid::Uuid;

use crate::connection::Connection;
use crate::fault::Result;
use crate::reading::read_with;
use crate::statement::Statement;

/// Selects the deleted workloads beyond the limit. Of each project one is kept, then a second of
/// each, and so on; of a project in the same way the newest of each submitter, then the second.
const BEYOND: &str = "SELECT id FROM workloads WHERE deleted_at IS NOT NULL AND seq NOT IN (
    SELECT seq FROM (
        SELECT seq, deleted_at, ROW_NUMBER() OVER
            (PARTITION BY project_id ORDER BY place, deleted_at DESC, seq DESC) AS place
        FROM (
            SELECT seq, project_id, deleted_at, ROW_NUMBER() OVER
                (PARTITION BY project_id, submitted_by ORDER BY deleted_at DESC, seq DESC) AS place
            FROM workloads WHERE deleted_at >= $1
        ) AS of_submitters
    ) AS of_projects ORDER BY place, deleted_at DESC, seq DESC LIMIT $2
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
