//! Orders of the master to a server. Owns: the requests for them, and the switch to the generation
//! and checkpoint that they name. Does not know about: why the master decides so.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use elastic_proto::v1::{AttendReply, AttendRequest};
use tokio::task::JoinHandle;
use tonic::{Code, Request, Response};

use crate::Error;
use crate::checkpoint::{self, CheckpointError};
use crate::core::Core;
use crate::model::Model;
use crate::server::{Checkpoints, Connected, lock};

const WAIT_MS: u64 = 5_000;
/// A reply takes at most the time to wait, and some more.
const PATIENCE: Duration = Duration::from_millis(3 * WAIT_MS);
const AGAIN: Duration = Duration::from_millis(200);
/// A revision that no orders have: the reply comes without waiting.
const AT_ONCE: u64 = 0;

/// First message of a server that listens at an address.
pub(crate) fn introduction(server: &Connected, address: String) -> AttendRequest {
    // A number that only has to differ from that of any other process.
    let instance = RandomState::new().hash_one(std::process::id());
    let index = server.settings.index;
    AttendRequest { index, address, instance, settles: true, ..Default::default() }
}

/// Reports to the master, if it answers, that a server which has to stop has saved the model.
pub(crate) async fn say_saved(server: &Connected, introduction: AttendRequest) {
    let mut request = Request::new(AttendRequest { saved: true, ..introduction });
    request.set_timeout(PATIENCE);
    if let Err(error) = server.master.clone().attend(request).await {
        tracing::warn!(%error, "the master does not know that the model is saved");
    }
}

/// The last checkpoint, while it is made.
struct Finishing {
    generation: u64,
    task: JoinHandle<bool>,
}

/// Follows the master until the job has ended.
///
/// A request never waits for the state of the server: an update or the last checkpoint may hold it
/// until another server is there, and only the next orders name that server, or end the wait.
pub(crate) async fn follow(
    server: Arc<Connected>,
    introduction: AttendRequest,
) -> Result<(), Error> {
    let mut attend = AttendRequest { wait_ms: WAIT_MS, ..introduction };
    let mut finishing: Option<Finishing> = None;
    loop {
        describe(&server, &mut attend);
        let mut request = Request::new(attend.clone());
        request.set_timeout(PATIENCE);
        let mut master = server.master.clone();
        let orders = tokio::select! {
            orders = master.attend(request) => orders.map(Response::into_inner),
            (generation, done) = finished(&mut finishing) => {
                finishing = None;
                // The last checkpoint of an ended generation does not count.
                let is_over = *server.wanted.borrow() != generation;
                attend.done = done && !is_over;
                if done || is_over {
                    attend.revision = AT_ONCE;
                }
                continue;
            }
        };
        let orders = match orders {
            Ok(orders) => orders,
            Err(status) if refuses(status.code()) => {
                return Err(Error::Refused(status.message().to_owned()));
            }
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let was_done = attend.done && attend.model_generation == orders.model_generation;
        if orders.ended && was_done {
            return Ok(());
        }
        (attend.done, attend.message) = (false, String::new());
        let was_unreadable = attend.unreadable_version.take();
        match obey(&server, &orders, &mut attend).await {
            Ok(true) => attend.revision = orders.revision,
            Ok(false) => {
                attend.revision = AT_ONCE;
                continue;
            }
            Err(error) => {
                // The master knows it already, and has no other.
                if orders.ended && was_unreadable == Some(orders.checkpoint_version) {
                    return Ok(());
                }
                tracing::error!(%error, "a checkpoint cannot be restored");
                attend.revision = orders.revision;
                attend.unreadable_version = Some(orders.checkpoint_version);
                attend.message = error.to_string();
                continue;
            }
        }
        if orders.ended && !server.leads() {
            return Ok(());
        }
        if orders.ended && finishing.is_none() {
            let task = tokio::spawn(finish(Arc::clone(&server)));
            finishing = Some(Finishing { generation: orders.model_generation, task });
        }
    }
}

/// Adds the state of the model to the message, if it is free to read.
fn describe(server: &Connected, attend: &mut AttendRequest) {
    if let Ok(core) = server.core.try_lock() {
        describe_model(&core, attend);
    }
    let pushes = server.pushes();
    (attend.accepted, attend.rejected) = (pushes.accepted, pushes.rejected);
    attend.applied_records = server.counts.applied.load(Ordering::Relaxed);
}

fn describe_model(core: &Core, attend: &mut AttendRequest) {
    attend.model_generation = core.generation;
    attend.model_version = core.version;
    attend.rows = core.model.as_ref().map_or(0, |model| model.rows().0);
    attend.left = core.left();
}

/// True for errors that a repetition cannot change.
fn refuses(code: Code) -> bool {
    matches!(code, Code::Unauthenticated | Code::FailedPrecondition | Code::InvalidArgument)
}

/// Makes the last checkpoint. Returns whether it is there.
async fn finish(server: Arc<Connected>) -> bool {
    let result = server.finish().await;
    if let Err(error) = &result {
        tracing::error!(error, "the last checkpoint was not written; it is tried again");
        tokio::time::sleep(AGAIN).await;
    }
    result.is_ok()
}

/// The generation of the last checkpoint that was begun, and `true` if it was written. Never
/// returns if none was begun.
async fn finished(finishing: &mut Option<Finishing>) -> (u64, bool) {
    let Some(Finishing { generation, task }) = finishing else {
        return std::future::pending().await;
    };
    let done = task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the last checkpoint was not written");
        false
    });
    (*generation, done)
}

/// Goes to the generation that is ordered, and describes it. Returns false if the state is held so long that it may
/// be for lack of other orders.
async fn obey(
    server: &Arc<Connected>,
    orders: &AttendReply,
    attend: &mut AttendRequest,
) -> Result<bool, CheckpointError> {
    server.wanted.send_if_modified(|wanted| {
        std::mem::replace(wanted, orders.model_generation) != orders.model_generation
    });
    server.know_peers(&orders.parameter_servers);
    let Ok(mut core) = tokio::time::timeout(AGAIN, server.core.lock()).await else {
        return Ok(false);
    };
    core.know_workers(orders);
    if core.generation != orders.model_generation {
        // Closed until it is there.
        core.generation = 0;
        let at = restore(server, orders).await?;
        core.open(orders.model_generation, orders.settings.unwrap_or_default(), at);
        let applied = core.model.as_ref().map(Model::records).unwrap_or_default();
        server.counts.applied.store(applied, Ordering::Relaxed);
    }
    // The answers to these orders are in the next message, whether the state is free then or not.
    describe_model(&core, attend);
    drop(core);
    server.notify();
    Ok(true)
}

/// The model of the checkpoint that is ordered, with its version.
async fn restore(
    server: &Arc<Connected>,
    orders: &AttendReply,
) -> Result<(u64, Option<Model>), CheckpointError> {
    // Writes of an earlier generation must not come after the ones here.
    let _writes = server.writer.lock().await;
    let (settings, place) = (server.settings.clone(), server.place());
    let (version, job_id) = (orders.checkpoint_version, orders.job_id.clone());
    let known = job_id.clone();
    let load = move || {
        let model = match (version, &settings.init_dir) {
            (0, None) => (0, None),
            (0, Some(init)) => {
                let (version, model) = checkpoint::newest(init, place)?;
                (version, Some(model.without_records()))
            }
            (_, _) => {
                let none = CheckpointError::NoFolder { version };
                let root = settings.checkpoint_dir.as_deref().ok_or(none)?;
                (version, Some(checkpoint::load_own(root, version, &job_id, place)?))
            }
        };
        // Later checkpoints belong to a discarded history.
        let written = |root| checkpoint::written(root, &job_id, place);
        let mut kept = settings.checkpoint_dir.as_deref().map(written).unwrap_or_default();
        for later in kept.extract_if(.., |kept| *kept > version) {
            if let Some(root) = &settings.checkpoint_dir {
                checkpoint::remove(root, later, place)?;
            }
        }
        Ok::<_, CheckpointError>((model, kept))
    };
    let loaded = tokio::task::spawn_blocking(load).await;
    let ((version, model), kept) = loaded.map_err(|error| CheckpointError::Invalid {
        path: server.settings.checkpoint_dir.clone().unwrap_or_default(),
        what: error.to_string(),
    })??;
    *lock(&server.checkpoints) = Checkpoints { job_id: known, kept, ..Checkpoints::default() };
    Ok((version, model))
}
