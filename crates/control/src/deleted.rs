//! Deleted workloads. Owns: for how long and how many are kept, the engine's remaining data of
//! them, and how they are shown: in their last state, without places. They are read from the
//! database on request; neither the state nor the view has them, so decisions and other lists cost
//! nothing for them.

use std::sync::Arc;

use engine::Engine;
use orchestrator::{Error, deleted_views};
use records::{Change, KeptDeletions, PastFilter};
use spec::UserLimit;
use store::Store;
use units::Instant;
use uuid::Uuid;
use view::{SharedMap, WorkloadView};

use crate::{Handle, stored};

/// How long they are kept.
const KEPT_MS: u64 = 30 * 86_400_000;

/// Deleted workloads beyond their number after which those beyond go before the hour is over.
const BEYOND_MAX: u64 = 1000;

/// The deleted workloads that are shown. Of more than `count_max` those of the projects with the
/// most go, the oldest first: no project takes the place of another one's.
async fn kept(store: &Store, count_max: u64, now: Instant) -> Result<KeptDeletions, store::Error> {
    let since = Instant(now.0.saturating_sub(KEPT_MS));
    let counts = store.deleted_counts(since).await?;
    Ok(KeptDeletions { since, of_project: share(counts, count_max) })
}

/// Largest number that each project may have so that all have no more than `count_max` together;
/// [`u64::MAX`] if they have no more.
fn share(mut counts: Vec<u64>, count_max: u64) -> u64 {
    counts.sort_unstable();
    let (mut left, mut projects) = (count_max, counts.len() as u64);
    for count in counts {
        let share = left / projects;
        if count > share {
            return share.max(1);
        }
        left -= count;
        projects -= 1;
    }
    u64::MAX
}

/// True if so many are kept beyond the limit that they go now.
pub(crate) async fn are_too_many(
    store: &Store,
    count_max: u64,
    now: Instant,
) -> Result<bool, store::Error> {
    let since = Instant(now.0.saturating_sub(KEPT_MS));
    let count: u64 = store.deleted_counts(since).await?.into_iter().sum();
    Ok(count > count_max.saturating_add(BEYOND_MAX))
}

/// Deletes records beyond their retention.
pub(crate) async fn forget(
    store: &Store,
    count_max: u64,
    now: Instant,
) -> Result<(), store::Error> {
    let kept = kept(store, count_max, now).await?;
    store.apply(&[Change::PodsGone(kept), Change::WorkloadsGone(kept)]).await
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
        let kept = kept(store, count_max, now).await.map_err(stored)?;
        let past = store.past(PastFilter { kept, id }).await.map_err(stored)?;
        deleted_views(past, &self.view().nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_with_the_most_give_up_theirs_and_no_other_does() {
        assert_eq!(share(vec![], 10), u64::MAX);
        assert_eq!(share(vec![3, 7], 10), u64::MAX);
        assert_eq!(share(vec![3, 8], 10), 7);
        assert_eq!(share(vec![100_000, 3, 2], 10), 5);
        assert_eq!(share(vec![9, 1, 9], 10), 4);
        assert_eq!(share(vec![1; 20], 10), 1, "a project keeps its newest");
    }
}
