//! The seam to pods that exist elsewhere: a feed of nodes and pods, and operations on pods.

use async_trait::async_trait;
use spec::{FeedChange, FeedListing, FeedOutcome, PlacementReport};
use uuid::Uuid;

use crate::Error;

/// Maximum number of changes that a feed returns at a time.
pub const FEED_CHANGES_MAX: usize = 256;

/// Nodes and pods of a cluster with an API of its own, which decides about their existence. An
/// engine may have one.
///
/// A feed is pulled and keeps the newest state of each object, so its memory is bounded by the
/// number of objects, not of changes. After a lost connection to the cluster it lists again and reports
/// the differences.
#[async_trait]
pub trait PodFeed: Send + Sync + 'static {
    /// All nodes and pods, after a full listing: an object that is not in it does not exist. The
    /// next [`changes`](PodFeed::changes) are those after it.
    ///
    /// # Errors
    /// The cluster cannot be listed.
    async fn listing(&self) -> Result<FeedListing, Error>;

    /// Waits for changes, and returns at most [`FEED_CHANGES_MAX`] of them, each the newest state
    /// of its object. A caller may stop waiting: nothing is lost.
    async fn changes(&self) -> Vec<FeedChange>;

    /// Binds a pod to a node. Idempotent: a pod that is bound there is done. A lost answer is not
    /// guessed: the pod is read, and while that is not possible the outcome is unknown.
    async fn bind(&self, pod: Uuid, node: &str) -> FeedOutcome;

    /// Evicts a pod with its own grace period. A pod that is being deleted is done.
    async fn evict(&self, pod: Uuid) -> FeedOutcome;

    /// Publishes why a pod is not placed, as soon as the rate of such writes allows. A later report
    /// replaces one that is not written yet.
    fn report(&self, pod: Uuid, report: PlacementReport);

    /// Publishes the node on which room is kept for a pod that waits, or that there is none any
    /// more, as [`report`](PodFeed::report) does.
    fn nominate(&self, pod: Uuid, node: Option<String>);
}
