//! Queries, which change nothing. Owns: the scheduler's view, the specification that a submission
//! would be accepted with, and the long answer to why a workload waits. Does not know about: how
//! the dispatcher finds time for them.

use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::requests::{Query, SchedulingState};
use crate::wanted::wanted;
use crate::{Handle, stored};
use orchestrator::{Error, NodeList, StoredState};
use reasons::diagnosis::Diagnosis;
use spec::{NodeSpec, WorkloadSpec};

impl Handle {
    /// The scheduler's view of the cluster, as of the last decision. Changes and writes nothing.
    ///
    /// # Errors
    /// The server is stopping, or its state is being built again.
    pub async fn scheduling_state(&self) -> Result<SchedulingState, Error> {
        let (to, seen) = oneshot::channel();
        self.queries.send(Query::State(to)).await.map_err(|_| Error::stopping())?;
        let state = seen.await.map_err(|_| Error::stopping())?;
        Ok(*state)
    }

    /// The stored state, and the other inputs of a state, to play it forward. It is read beside the
    /// dispatcher, which goes on.
    ///
    /// # Errors
    /// The server is stopping, its state is being built again, or the database cannot be read.
    pub async fn stored_state(&self) -> Result<StoredState, Error> {
        let (to, terms) = oneshot::channel();
        self.queries.send(Query::Terms(to)).await.map_err(|_| Error::stopping())?;
        let (policy, settings, now) = terms.await.map_err(|_| Error::stopping())?;
        let rows = self.shared.store.load().await.map_err(stored)?;
        let view = self.view();
        let nodes = view.nodes.iter().map(|node| NodeSpec::clone(&node.spec)).collect();
        let faults = view.nodes.iter().flat_map(|node| {
            let uuid =
                |gpu: &u32| node.spec.gpus.get(*gpu as usize).map(|gpu| gpu.looked_at().to_owned());
            node.gpu_faults.iter().filter_map(move |(gpu, fault)| Some((uuid(gpu)?, fault.clone())))
        });
        let gpus = Arc::new(faults.collect());
        // These are all: what commands added or removed is among them.
        let nodes = NodeList { nodes, origin: "as they are".to_owned() };
        Ok(StoredState { rows, nodes, gpus, policy, settings, now })
    }

    /// A submission as it would be taken in, with the places that its project has for it. Nothing
    /// is changed or written.
    ///
    /// # Errors
    /// It would be refused; the server is stopping, or its state is being built again.
    pub async fn settled(
        &self,
        project_id: u64,
        spec: WorkloadSpec,
        strict: bool,
    ) -> Result<WorkloadSpec, Error> {
        let (to, settled) = oneshot::channel();
        let wanted = wanted(&*self.shared.engine, spec, strict);
        let query = Query::Submission { project_id, wanted, to };
        self.queries.send(query).await.map_err(|_| Error::stopping())?;
        settled.await.map_err(|_| Error::stopping())?
    }

    /// Detailed reasons why a workload waits, and their time; `None` if it does not wait. Computed
    /// on a copy, while the server goes on. The turn is held to the end, also if the caller is gone:
    /// a diagnosis keeps a core busy.
    ///
    /// # Errors
    /// The server is stopping, or its state is being built again.
    pub async fn diagnose(
        &self,
        id: Uuid,
        turn: impl Send + 'static,
    ) -> Result<Option<(Diagnosis, units::Instant)>, Error> {
        let SchedulingState { cluster, policy, now } = self.scheduling_state().await?;
        let there = |id: &_| cluster.workloads().get(*id).is_some();
        let known = self.view().workloads.get(&id).and_then(|workload| workload.model);
        let Some(workload) = known.filter(there) else { return Ok(None) };
        let work = move || {
            let _turn = turn;
            sched::diagnose(&cluster, workload, now, &policy)
        };
        let diagnosis = tokio::task::spawn_blocking(work).await;
        let diagnosis = diagnosis.map_err(|cause| Error::Internal {
            message: format!("the diagnosis did not come to its end: {cause}"),
        })?;
        Ok(diagnosis.map(|diagnosis| (diagnosis, now)))
    }
}
