//! Limits on requests in progress. Owns: the numbers, and the shared limits of the requests to one
//! workload.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Semaphore;
use uuid::Uuid;

/// Maximum number of requests to all workloads at a time, from their arrival to the end of their
/// responses or of the protocol after an upgrade.
pub const REQUESTS_MAX: usize = 4096;
/// Maximum number of requests to one workload at a time.
pub(crate) const OWN_MAX: usize = 512;
/// Maximum number of connections being established to one workload at a time.
pub(crate) const CONNECTING_MAX: usize = 16;

/// Shared limits of each workload with requests in progress.
pub(crate) type Shares = Arc<Mutex<BTreeMap<Uuid, Weak<Share>>>>;

/// Shared limits of the requests to one workload.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) connecting: Semaphore,
}
