//! Decisions of server 0: which pushes become an update, when a checkpoint is taken. Owns: an
//! update is made on all servers or on none; a checkpoint and the ledger of the master are one cut.
//! Does not know about: how a message arrives.
//!
//! Each decision holds the state to its end, calls to other servers included: no push is decided
//! meanwhile. It is given up only when the master wants another generation.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use elastic::{Push, Verdict, WorkerId};
use elastic_proto::v1::{
    ApplyRequest, BeginCheckpointRequest, CheckpointBody, CheckpointHeader, EndCheckpointRequest,
    InitModelRequest, PushGradientsReply, PushGradientsRequest, PushId, PushOutcome,
    ReportVersionRequest, WriteCheckpointRequest,
};
use futures_util::future::try_join_all;
use tonic::Status;

use crate::checkpoint;
use crate::core::{Core, Staged};
use crate::model::{Gradients, Model};
use crate::server::{Connected, lock};

impl Connected {
    /// The first model counts; any other changes nothing.
    pub(crate) async fn init(&self, init: InitModelRequest) -> Result<(), Status> {
        let model = Model::begin(&init, self.place())?;
        let peers = self.all_peers()?;
        let mut core = self.core.lock().await;
        core.admit(init.worker_id, init.model_generation)?;
        if core.model.is_some() {
            return Ok(());
        }
        let push = PushId { worker_id: init.worker_id, sequence: 0 };
        core.stage((init.worker_id, 0), Staged::Init(model));
        let (version, pushes) = (core.version, vec![push]);
        let apply = ApplyRequest {
            model_generation: core.generation,
            version,
            pushes,
            ..ApplyRequest::default()
        };
        self.apply_to_peers(&peers, &apply).await?;
        core.apply(version, &apply.pushes, (0.0, true))?;
        self.notify();
        Ok(())
    }

    /// Judges a push, and makes an update if it is the last that one waits for.
    pub(crate) async fn push(
        self: Arc<Self>,
        push: PushGradientsRequest,
        gradients: Gradients,
    ) -> Result<PushGradientsReply, Status> {
        let peers = self.all_peers()?;
        let mut core = self.core.lock().await;
        core.admit(push.worker_id, push.model_generation)?;
        core.model()?.check(&gradients)?;
        core.reads_no_more(push.worker_id);
        let own_rate = gradients.rate;
        let (worker, id) = (
            WorkerId(push.worker_id),
            PushId { worker_id: push.worker_id, sequence: push.sequence },
        );
        // A generation of the gate is that of the model, which was compared above.
        let (sequence, version) = (push.sequence, push.version);
        let verdict = core.gate.push(Push { worker, generation: 0, sequence, version });
        let outcome = match verdict {
            Verdict::Held { .. } | Verdict::Update { .. } => {
                core.stage((push.worker_id, push.sequence), Staged::Push(gradients));
                core.know_positions(push.worker_id, &push.positions);
                core.held.push(id);
                self.count(|counts| &counts.accepted, 1);
                PushOutcome::Accepted
            }
            Verdict::Duplicate { .. } => {
                self.count(|counts| &counts.duplicates, 1);
                PushOutcome::Accepted
            }
            Verdict::Stale { .. } => {
                self.count(|counts| &counts.rejected, 1);
                PushOutcome::Rejected
            }
            Verdict::Superseded { .. } | Verdict::FromTheFuture { .. } => {
                let text = format!("version {version} does not exist: pull the model first");
                return Err(Status::failed_precondition(text));
            }
        };
        if let Verdict::Update { version, staleness, .. } = verdict {
            let rate = if own_rate > 0.0 { own_rate } else { core.model()?.learning_rate() };
            let modulates = core.settings.lr_staleness_modulation && staleness > 1;
            #[expect(clippy::cast_precision_loss, reason = "staleness is a small number")]
            let rate = if modulates { rate / staleness as f32 } else { rate };
            self.update(&mut core, &peers, (version, rate)).await?;
        }
        self.notify();
        Ok(PushGradientsReply { outcome: outcome.into(), version: core.version })
    }

    /// Makes an update of the gradients that wait, however few.
    pub(crate) async fn flush(self: Arc<Self>) -> Result<(), Status> {
        let peers = self.all_peers()?;
        let mut core = self.core.lock().await;
        if let Some((version, _)) = core.gate.flush() {
            let rate = core.model()?.learning_rate();
            self.update(&mut core, &peers, (version, rate)).await?;
            self.notify();
        }
        Ok(())
    }

    async fn update(
        self: &Arc<Self>,
        core: &mut Core,
        peers: &[crate::server::Peer],
        (version, learning_rate): (u64, f32),
    ) -> Result<(), Status> {
        let pushes = std::mem::take(&mut core.held);
        let steps = core.settings.checkpoint_steps;
        let due = steps > 0 && version.is_multiple_of(steps);
        let checkpoint = due && self.settings.checkpoint_dir.is_some() && self.begin_writing();
        let model_generation = core.generation;
        let (workers, workers_numbered) = core.pushing();
        let apply = ApplyRequest {
            model_generation,
            version,
            pushes,
            learning_rate,
            checkpoint,
            workers,
            workers_numbered,
        };
        self.apply_to_peers(peers, &apply).await?;
        core.apply(version, &apply.pushes, (learning_rate, true))?;
        let applied = core.model()?.records();
        self.counts.applied.store(applied, Ordering::Relaxed);
        let every = core.settings.evaluation_steps;
        if every > 0 && version.is_multiple_of(every) {
            self.report_version(model_generation, version);
        }
        if checkpoint {
            let (header, body) = self.begin_checkpoint(core).await?;
            let this = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = this.write_checkpoint(header, body).await {
                    tracing::error!(error, "a checkpoint was not written; training goes on");
                }
            });
        }
        Ok(())
    }

    /// Has the others do what was decided.
    async fn apply_to_peers(
        &self,
        peers: &[crate::server::Peer],
        apply: &ApplyRequest,
    ) -> Result<(), Status> {
        let one = |peer: &crate::server::Peer| {
            let peer = peer.clone();
            self.insist(apply.model_generation, move || {
                let (mut peer, apply) = (peer.clone(), apply.clone());
                async move { peer.apply(apply).await }
            })
        };
        try_join_all(peers.iter().map(one)).await.map(drop)
    }

    fn report_version(self: &Arc<Self>, model_generation: u64, model_version: u64) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let report = ReportVersionRequest { model_generation, model_version };
            // The report is given up only with its generation.
            let _ = this
                .insist(model_generation, || {
                    let mut master = this.master.clone();
                    async move { master.report_version(report).await }
                })
                .await;
        });
    }

    fn begin_writing(&self) -> bool {
        !std::mem::replace(&mut lock(&self.checkpoints).writing, true)
    }

    /// Reports the contents of the model to the master, and takes a copy of the model.
    async fn begin_checkpoint(
        &self,
        core: &Core,
    ) -> Result<(CheckpointHeader, CheckpointBody), Status> {
        let begin = BeginCheckpointRequest {
            model_generation: core.generation,
            model_version: core.version,
            positions: core.positions(),
        };
        self.insist(core.generation, || {
            let (mut master, begin) = (self.master.clone(), begin.clone());
            async move { master.begin_checkpoint(begin).await }
        })
        .await?;
        Ok((self.header(core), core.model()?.body()))
    }

    pub(crate) fn header(&self, core: &Core) -> CheckpointHeader {
        CheckpointHeader {
            form: match core.model.as_ref().is_some_and(Model::has_tables) {
                true => checkpoint::FORM_WITH_TABLES,
                false => checkpoint::FORM,
            },
            job_id: lock(&self.checkpoints).job_id.clone(),
            model_generation: core.generation,
            version: core.version,
            index: self.settings.index,
            servers: self.settings.servers,
        }
    }

    async fn write_checkpoint(
        &self,
        header: CheckpointHeader,
        body: CheckpointBody,
    ) -> Result<(), String> {
        let result = self.write_and_keep(header, body).await;
        // Not before the master has confirmed it and old ones are removed: the end of the job waits
        // for that.
        lock(&self.checkpoints).writing = false;
        result
    }

    async fn write_and_keep(
        &self,
        header: CheckpointHeader,
        body: CheckpointBody,
    ) -> Result<(), String> {
        let (generation, version) = (header.model_generation, header.version);
        let keep_max = self.core.lock().await.settings.keep_checkpoint_max as usize;
        self.write_all(header, body).await?;
        if *self.wanted.borrow() != generation {
            return Err("the model goes back to an earlier checkpoint".to_owned());
        }
        let (oldest, removed) = {
            let mut checkpoints = lock(&self.checkpoints);
            checkpoints.kept.push(version);
            let extra =
                if keep_max == 0 { 0 } else { checkpoints.kept.len().saturating_sub(keep_max) };
            let removed: Vec<_> = checkpoints.kept.drain(..extra).collect();
            (checkpoints.kept.first().copied().unwrap_or(version), removed)
        };
        let end = EndCheckpointRequest {
            model_generation: generation,
            model_version: version,
            oldest_version: oldest,
        };
        let text = |status: Status| status.message().to_owned();
        let ended = self.insist(generation, || {
            let mut master = self.master.clone();
            async move { master.end_checkpoint(end).await }
        });
        ended.await.map_err(text)?;
        self.counts.checkpoint.store(version, Ordering::Relaxed);
        // Old files are removed only now: until the master knows the new one, it may restore an old
        // one.
        let servers = self.settings.servers;
        self.remove(removed, (0..servers).map(|index| (index, servers)).collect()).await
    }

    async fn write_all(
        &self,
        header: CheckpointHeader,
        body: CheckpointBody,
    ) -> Result<(), String> {
        let text = |status: Status| status.message().to_owned();
        let (model_generation, version) = (header.model_generation, header.version);
        let oldest_version = lock(&self.checkpoints).kept.first().copied().unwrap_or(version);
        let write = WriteCheckpointRequest { model_generation, version, oldest_version };
        let others = async {
            for mut peer in self.all_peers().map_err(text)? {
                peer.write_checkpoint(write).await.map_err(text)?;
            }
            Ok(())
        };
        futures_util::future::try_join(self.write(header, body), others).await.map(drop)
    }

    /// The job has ended: what waits becomes an update, and the model a checkpoint.
    pub(crate) async fn finish(self: &Arc<Self>) -> Result<(), String> {
        let text = |status: Status| status.message().to_owned();
        let has_model = self.core.lock().await.model.is_some();
        if !has_model || !self.leads() {
            return Ok(());
        }
        Arc::clone(self).flush().await.map_err(text)?;
        while !self.begin_writing() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let last = self.write_last().await;
        lock(&self.checkpoints).writing = false;
        last
    }

    async fn write_last(&self) -> Result<(), String> {
        let text = |status: Status| status.message().to_owned();
        let core = self.core.lock().await;
        let newest = lock(&self.checkpoints).kept.last().copied();
        if self.settings.checkpoint_dir.is_none() || newest == Some(core.version) {
            return Ok(());
        }
        let take = ApplyRequest {
            model_generation: core.generation,
            version: core.version,
            checkpoint: true,
            ..ApplyRequest::default()
        };
        self.apply_to_peers(&self.all_peers().map_err(text)?, &take).await.map_err(text)?;
        let (header, body) = self.begin_checkpoint(&core).await.map_err(text)?;
        drop(core);
        self.write_checkpoint(header, body).await
    }
}
