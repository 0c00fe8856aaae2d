//! Deleted workloads. Owns: for how long and how many are kept, the engine's remaining data of
//! them, and how they are shown: in their last state, without places. They are read from the
//! database on request; neither the state nor the view has them, so decisions and other lists cost
//! nothing for them.

use std::sync::Arc;

use engine::Engine;
use orchestrator::{Error, deleted_views};
use records::{Change, PastFilter};
use spec::UserLimit;
use store::Store;
use units::Instant;
use uuid::Uuid;
use view::{SharedMap, WorkloadView};

use crate::{Handle, stored};

/// How long they are kept.
const KEPT_MS: u64 = 30 * 86_400_000;

/// Time before which a deletion is not shown any more: of more than `count_max` the newest are
/// kept.
async fn kept_since(store: &Store, count_max: u64, now: Instant) -> Result<Instant, store::Error> {
    let oldest = Instant(now.0.saturating_sub(KEPT_MS));
    let newest = store.deleted_before(count_max.saturating_sub(1)).await?;
    Ok(newest.map_or(oldest, |at| at.max(oldest)))
}

/// Deletes records beyond their retention.
pub(crate) async fn forget(
    store: &Store,
    count_max: u64,
    now: Instant,
) -> Result<(), store::Error> {
    let before = kept_since(store, count_max, now).await?;
    store.apply(&[Change::PodsGone(before), Change::WorkloadsGone(before)]).await
}

/// Pods of deleted workloads with data at the engine: a crash interrupted their deletion. A pod
/// that the database does not know may belong to another database, so it stays.
pub(crate) async fn left(engine: &dyn Engine, store: &Store) -> Result<Vec<Uuid>, Error> {
    let kept = match engine.kept_pods().await {
        Ok(kept) => kept,
        Err(error) => {
            tracing::warn!("what deleted workloads left stays until the next start: {error}");
            return Ok(Vec::new());
        }
    };
    let deleted = store.deleted_pods(&kept).await.map_err(stored)?;
    let unknown = kept.len() - deleted.len();
    if unknown > 0 {
        tracing::warn!(
            "the runtime keeps files of {unknown} pods that the database does not know; they stay. \
             If it is the right database, they are of no use and may be deleted"
        );
    }
    Ok(deleted.into_iter().filter_map(|(pod, is_deleted)| is_deleted.then_some(pod)).collect())
}

impl Handle {
    /// The workloads that were deleted and are kept: 30 days, and no more than the limit.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn deleted(&self, now: Instant) -> Result<SharedMap<Uuid, Arc<WorkloadView>>, Error> {
        self.read_deleted(now, None).await
    }

    /// One of them.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn deleted_one(
        &self,
        id: Uuid,
        now: Instant,
    ) -> Result<Option<Arc<WorkloadView>>, Error> {
        Ok(self.read_deleted(now, Some(id)).await?.remove(&id))
    }

    /// The deleted workloads that are kept, or this one of them.
    async fn read_deleted(
        &self,
        now: Instant,
        id: Option<Uuid>,
    ) -> Result<SharedMap<Uuid, Arc<WorkloadView>>, Error> {
        let (store, limits) = (&self.shared.store, &self.shared.user_limits);
        let count_max = limits.get(UserLimit::DeletedWorkloads);
        let since = kept_since(store, count_max, now).await.map_err(stored)?;
        let past = store.past(PastFilter { since, id }).await.map_err(stored)?;
        deleted_views(past, &self.view().nodes)
    }
}
