//! Waits of the dispatcher beside its channels, and the gate of its executor.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use engine::PodFeed;
use orchestrator::Input;
use tokio::sync::RwLock;
use units::Instant;

use crate::time::MonotonicClock;

/// True while an executor acts. A start holds a read lock: a start is never left incomplete.
pub(crate) type Gate = Arc<RwLock<bool>>;

/// Wait between two tries to write after a failure.
const RETRY_MS: u64 = 500;
/// Quiet time before the state is rebuilt only for the recording.
const QUIET_MS: u64 = 5;

/// Returns after `QUIET_MS`, for a `select!` that waits for other events, too.
pub(crate) async fn quiet() {
    tokio::time::sleep(Duration::from_millis(QUIET_MS)).await;
}

pub(crate) async fn timer(clock: &MonotonicClock, due: Option<Instant>, stale: bool) {
    match due {
        _ if stale => tokio::time::sleep(Duration::from_millis(RETRY_MS)).await,
        Some(at) => clock.sleep_until(at).await,
        None => pending().await,
    }
}

/// The next changes of a feed, as inputs; without a feed there are none.
pub(crate) async fn changes(feed: Option<&Arc<dyn PodFeed>>) -> Vec<Input> {
    match feed {
        Some(feed) => feed.changes().await.into_iter().map(Input::Changed).collect(),
        None => pending().await,
    }
}
