//! Deleted workloads. Owns: for how long and how many are kept, the engine's remaining data of
//! them, and how they are shown: in their last state, without places. They are read from the
//! database on request; neither the state nor the view has them, so decisions and other lists cost
//! nothing for them.

use std::sync::Arc;

use engine::Engine;
use orchestrator::{Error, deleted_views};
use records::{Change, KeptDeletions, PastFilter};
use store::Store;
use units::Instant;
use uuid::Uuid;
use view::{SharedMap, WorkloadView};

use crate::{Handle, stored};

/// How long they are kept.
const KEPT_MS: u64 = 30 * 86_400_000;

/// Deleted workloads that are forgotten in one transaction, so that decisions do not wait for long.
const AT_ONCE: u32 = 500;

/// Earliest time of deletion of those that are kept.
const fn kept_since(now: Instant) -> Instant {
    Instant(now.0.saturating_sub(KEPT_MS))
}

/// True if more are kept than the limit allows.
pub(crate) async fn are_too_many(store: &Store, count_max: u64) -> Result<bool, store::Error> {
    Ok(store.deleted_count().await? > count_max)
}

/// Deletes records beyond their retention. Of more than `count_max` those of the projects with the
/// most go, and within a project those of the submitters with the most, the oldest first: no
/// project and no user takes the place of another's.
pub(crate) async fn forget(
    store: &Store,
    count_max: u64,
    now: Instant,
) -> Result<(), store::Error> {
    let kept = KeptDeletions { since: kept_since(now), count_max };
    loop {
        let gone = store.deleted_beyond(kept, AT_ONCE).await?;
        let pods = gone.iter().copied().map(Change::PodsGone);
        let workloads = gone.iter().copied().map(Change::WorkloadGone);
        let changes = [Change::WorkloadSeqGiven].into_iter().chain(pods).chain(workloads);
        if !gone.is_empty() {
            store.apply(&changes.collect::<Vec<_>>()).await?;
        }
        if gone.len() < AT_ONCE as usize {
            return Ok(());
        }
    }
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
    /// The workloads that were deleted and are kept: 30 days, and from the next sample on no more
    /// than the limit.
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
        let filter = PastFilter { since: kept_since(now), id };
        let past = self.shared.store.past(filter).await.map_err(stored)?;
        deleted_views(past, &self.view().nodes)
    }
}
