//! The calls of a server. Owns: the checks of each, waiting, and that a call continues to its end
//! without its caller. Does not know about: the decisions.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use elastic_proto::v1::parameter_server_server::ParameterServer;
use elastic_proto::v1::{
    ApplyReply, ApplyRequest, InitModelReply, InitModelRequest, PullOutcome, PullReply,
    PullRequest, PullRowsReply, PullRowsRequest, PushGradientsReply, PushGradientsRequest,
    PushOutcome, ServerStatusReply, ServerStatusRequest, WriteCheckpointReply,
    WriteCheckpointRequest,
};
use prost::Message as _;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::core::Staged;
use crate::model::{Gradients, Model};
use crate::server::{Connected, lock};

/// Bytes of a message of rows that are none of them: numbers and the name of a table.
const ENVELOPE: usize = 4096;
/// The longest wait of a pull.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Service(pub Arc<Connected>);

/// Runs to the end although the caller is gone: tonic drops what serves a call that was cancelled,
/// and an update must not stop half-way.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let ended = tokio::spawn(work).await;
    ended.map_err(|error| Status::internal(error.to_string()))?
}

#[tonic::async_trait]
impl ParameterServer for Service {
    async fn init_model(
        &self,
        request: Request<InitModelRequest>,
    ) -> Result<Response<InitModelReply>, Status> {
        let (server, init) = (Arc::clone(&self.0), request.into_inner());
        server.count(|counts| &counts.bytes_received, init.encoded_len() as u64);
        if server.leads() {
            to_the_end(async move { server.init(init).await }).await?;
        } else {
            let model = Model::begin(&init, server.place())?;
            let mut core = server.core.lock().await;
            core.admit(init.worker_id, init.model_generation)?;
            core.stage((init.worker_id, 0), Staged::Init(model));
        }
        Ok(Response::new(InitModelReply {}))
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullReply>, Status> {
        let (server, pull) = (&self.0, request.into_inner());
        if pull.flush && server.leads() {
            let has_model = server.core.lock().await.model.is_some();
            if has_model {
                to_the_end(Arc::clone(server).flush()).await?;
            }
        }
        {
            let mut core = server.core.lock().await;
            if !pull.keeps_rows {
                core.reads_no_more(pull.worker_id);
            }
            if !pull.for_training && core.release(pull.worker_id) {
                server.notify();
            }
        }
        let deadline = Instant::now() + Duration::from_millis(pull.wait_ms).min(WAIT_MAX);
        let mut changed = server.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let mut core = server.core.lock().await;
            if let Some(reply) = core.pull(&pull, server.leads())? {
                server.count(|counts| &counts.bytes_sent, reply.encoded_len() as u64);
                return Ok(Response::new(reply));
            }
            let (version, model_generation) = (core.version, core.generation);
            drop(core);
            if tokio::time::timeout_at(deadline, changed.changed()).await.is_err() {
                let outcome = PullOutcome::Wait.into();
                let reply = PullReply { outcome, version, model_generation, ..Default::default() };
                return Ok(Response::new(reply));
            }
        }
    }

    async fn pull_rows(
        &self,
        request: Request<PullRowsRequest>,
    ) -> Result<Response<PullRowsReply>, Status> {
        let (server, pull) = (&self.0, request.into_inner());
        let room = server.settings.message_bytes_max.saturating_sub(ENVELOPE);
        let reply = server.core.lock().await.rows(&pull, room)?;
        server.count(|counts| &counts.bytes_received, pull.encoded_len() as u64);
        server.count(|counts| &counts.bytes_sent, reply.encoded_len() as u64);
        Ok(Response::new(reply))
    }

    async fn push_gradients(
        &self,
        request: Request<PushGradientsRequest>,
    ) -> Result<Response<PushGradientsReply>, Status> {
        let (server, push) = (Arc::clone(&self.0), request.into_inner());
        server.count(|counts| &counts.bytes_received, push.encoded_len() as u64);
        if push.sequence == 0 {
            return Err(Status::invalid_argument(
                "sequence 0 is not allowed; the first push has 1",
            ));
        }
        let gradients = Gradients::read(&push)?;
        if server.leads() {
            return to_the_end(server.push(push, gradients)).await.map(Response::new);
        }
        let mut core = server.core.lock().await;
        core.admit(push.worker_id, push.model_generation)?;
        core.model()?.check(&gradients)?;
        core.reads_no_more(push.worker_id);
        core.stage((push.worker_id, push.sequence), Staged::Push(gradients));
        let (outcome, version) = (PushOutcome::Staged.into(), core.version);
        Ok(Response::new(PushGradientsReply { outcome, version }))
    }

    async fn apply(&self, request: Request<ApplyRequest>) -> Result<Response<ApplyReply>, Status> {
        let (server, apply) = (&self.0, request.into_inner());
        let mut core = server.core.lock().await;
        core.is_present(apply.model_generation)?;
        core.apply(apply.version, &apply.pushes, (apply.learning_rate, false))?;
        core.drop_gone(&apply.workers, apply.workers_numbered);
        if apply.checkpoint {
            let taken = (server.header(&core), core.model()?.body());
            lock(&server.checkpoints).taken = Some(taken);
        }
        drop(core);
        server.notify();
        Ok(Response::new(ApplyReply {}))
    }

    async fn write_checkpoint(
        &self,
        request: Request<WriteCheckpointRequest>,
    ) -> Result<Response<WriteCheckpointReply>, Status> {
        let (server, write) = (&self.0, request.into_inner());
        let taken = lock(&server.checkpoints).taken.take();
        let taken = taken.filter(|(header, _)| {
            (header.model_generation, header.version) == (write.model_generation, write.version)
        });
        let nothing = || {
            let version = write.version;
            Status::failed_precondition(format!("no checkpoint of version {version} was taken"))
        };
        let (header, body) = taken.ok_or_else(nothing)?;
        server.write(header, body).await.map_err(Status::internal)?;
        server.counts.checkpoint.store(write.version, Ordering::Relaxed);
        let kept = server.keep_from(write.oldest_version, write.version);
        kept.await.map_err(Status::internal)?;
        Ok(Response::new(WriteCheckpointReply {}))
    }

    async fn server_status(
        &self,
        _: Request<ServerStatusRequest>,
    ) -> Result<Response<ServerStatusReply>, Status> {
        let server = &self.0;
        let core = server.core.lock().await;
        let counts = &server.counts;
        let (rows, row_bytes) = core.model.as_ref().map(Model::rows).unwrap_or_default();
        Ok(Response::new(ServerStatusReply {
            index: server.settings.index,
            model_generation: core.generation,
            version: core.version,
            initialized: core.model.is_some(),
            parameters: core.model.as_ref().map(Model::parameters).unwrap_or_default(),
            accepted: counts.accepted.load(Ordering::Relaxed),
            rejected: counts.rejected.load(Ordering::Relaxed),
            duplicates: counts.duplicates.load(Ordering::Relaxed),
            checkpoint_version: counts.checkpoint.load(Ordering::Relaxed),
            bytes_received: counts.bytes_received.load(Ordering::Relaxed),
            bytes_sent: counts.bytes_sent.load(Ordering::Relaxed),
            rows,
            row_bytes,
        }))
    }
}
