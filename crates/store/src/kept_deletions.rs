//! Deleted workloads that are kept, as a condition of statements. Does not know about: how many and
//! for how long.

use records::KeptDeletions;

/// Condition that a workload is kept, where `$1` is the earliest time of deletion.
pub(crate) fn is_kept(kept: KeptDeletions) -> String {
    let since = "workloads.deleted_at >= $1";
    match kept.of_project {
        u64::MAX => since.to_owned(),
        most => format!(
            "{since} AND workloads.id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER
             (PARTITION BY project_id ORDER BY deleted_at DESC, seq DESC) AS place
             FROM workloads WHERE deleted_at IS NOT NULL) AS ranked WHERE place <= {most})"
        ),
    }
}
