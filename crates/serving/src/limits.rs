//! How many requests may be under way at a time. Owns: the numbers, and what the requests to one
//! workload have together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Semaphore;
use uuid::Uuid;

/// Most requests to all workloads at a time, from their arrival to the end of their answers or of
/// what they went over to.
pub const REQUESTS_MAX: usize = 4096;
/// Most requests to one workload at a time.
pub(crate) const OWN_MAX: usize = 512;
/// Most connections that are being made to one workload at a time.
pub(crate) const CONNECTING_MAX: usize = 16;

/// What the requests to each workload have together, as long as there are any.
pub(crate) type Shares = Arc<Mutex<BTreeMap<Uuid, Weak<Share>>>>;

/// What the requests to one workload have together.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) connecting: Semaphore,
}
