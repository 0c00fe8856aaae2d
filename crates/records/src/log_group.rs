//! Groups of rows that share a log. Owns: what the rows of a group have in common. Does not know
//! about: their number, and when they go.

use serde::{Deserialize, Serialize};

/// Rows of a log of a project and a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogGroup {
    /// Id of the project of events; 0 for events of none, and for the audit log.
    pub project_id: u64,
    /// Submitter of the workloads of events, empty for events of none; subject of audit rows.
    pub user: String,
}
