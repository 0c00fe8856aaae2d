//! Ended workloads that left memory (archived). Owns: reading them for the dispatcher and for
//! handles. Neither the state nor the view knows them, so decisions and views cost nothing for
//! them; a command about one has the dispatcher read it first.

use std::collections::BTreeSet;
use std::sync::Arc;

use orchestrator::{Error, Input, State, archived_views, leave_out_archived};
use records::{Archived, ArchivedFilter, ArchivedLookup, ArchivedPlace};
use spec::ListedRun;
use store::Store;
use uuid::Uuid;
use view::WorkloadView;

use crate::{Handle, stored};

/// The archived workloads that inputs refer to, as the input that comes before them.
pub(crate) async fn before(
    store: &Store,
    state: &State,
    inputs: &[Input],
) -> Result<Option<Input>, Error> {
    read(store, inputs.iter().flat_map(|input| state.lookups(input))).await
}

/// The archived workloads that match `lookups`, as an input; `None` if there are none.
pub(crate) async fn read(
    store: &Store,
    lookups: impl IntoIterator<Item = ArchivedLookup>,
) -> Result<Option<Input>, Error> {
    // Several inputs may refer to one workload.
    let lookups: Vec<_> = lookups.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    if lookups.is_empty() {
        return Ok(None);
    }
    let found = store.archived(&lookups).await.map_err(stored)?;
    Ok(Some(found).filter(|found| !found.workloads.is_empty()).map(Input::Archived))
}

/// Leaves out of all that the engine has the runs of archived workloads that have ended.
pub(crate) async fn leave_out(
    store: &Store,
    state: &State,
    listed: &mut Vec<ListedRun>,
) -> Result<(), Error> {
    let unknown = state.unknown_ended(listed);
    if !unknown.is_empty() {
        let pods = store.archived_pods(&unknown).await.map_err(stored)?;
        leave_out_archived(listed, &pods);
    }
    Ok(())
}

impl Handle {
    /// The workload with this id, in memory or archived.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn find_workload(&self, id: Uuid) -> Result<Option<Arc<WorkloadView>>, Error> {
        let view = self.view();
        let living = view.workloads.get(&id).cloned();
        if living.is_some() || view.archived.is_empty() {
            return Ok(living);
        }
        let found = Box::pin(self.archived_with(&[id])).await?.pop();
        // It may have come back meanwhile.
        Ok(found.or_else(|| self.view().workloads.get(&id).cloned()))
    }

    /// Workloads with these ids that are archived, by age.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn archived_with(&self, ids: &[Uuid]) -> Result<Vec<Arc<WorkloadView>>, Error> {
        let lookups: Vec<_> = ids.iter().map(|id| ArchivedLookup::Id(*id)).collect();
        archived_views(self.archived_rows(&lookups).await?, &self.view())
    }

    /// Rows of the archived workloads that match `lookups`.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn archived_rows(&self, lookups: &[ArchivedLookup]) -> Result<Archived, Error> {
        self.shared.store.archived(lookups).await.map_err(stored)
    }

    /// The first archived workloads that a filter selects, by age.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn archived_first(
        &self,
        filter: &ArchivedFilter,
        limit: u64,
    ) -> Result<Vec<Arc<WorkloadView>>, Error> {
        let found = self.shared.store.archived_first(filter, limit).await.map_err(stored)?;
        archived_views(found, &self.view())
    }

    /// How many archived workloads a filter selects.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn archived_count(&self, filter: &ArchivedFilter) -> Result<u64, Error> {
        self.shared.store.archived_count(filter).await.map_err(stored)
    }

    /// Where archived workloads are in the order of a filter, without the first `skip`.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn archived_places(
        &self,
        filter: &ArchivedFilter,
        skip: u64,
        limit: u64,
    ) -> Result<Vec<ArchivedPlace>, Error> {
        self.shared.store.archived_places(filter, skip, limit).await.map_err(stored)
    }
}
