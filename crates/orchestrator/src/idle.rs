//! Since when workloads have been idle: an input of the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// How often it is measured what workloads use.
pub const LOOK_EVERY_MS: u64 = 15_000;

/// Since when workloads have been idle, as of the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleSince {
    /// When that look was.
    pub looked_at: Instant,
    /// Since when, by workload; those that have no limit are left out.
    pub since: Arc<BTreeMap<Uuid, Instant>>,
}
