//! Groups of events that share the event log. Owns: what the events of a group have in common. Does
//! not know about: their number, and when they go.

use serde::{Deserialize, Serialize};

/// Events of a project and of a submitter.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventGroup {
    /// Id of the project; 0 for events of none.
    pub project_id: u64,
    /// Submitter of the workloads; empty for events of none.
    pub owner: String,
}
