//! Calls of the engine. Owns: one task per call, in order for each pod, and reports of calls that
//! the engine refused, and of deleted volumes. Does not know why a call is made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Exit, Observation, RunEvent, RunKey, RunSpec, RunState};
use tokio::sync::{RwLock, mpsc};
use tokio::task::JoinHandle;
use units::Instant;
use uuid::Uuid;

use crate::feed_verbs::carry_out;
use crate::metrics::{Metrics, Verb};
use crate::secrets::Completion;
use crate::time::MonotonicClock;
use crate::waits::Gate;
use orchestrator::{Action, Input, PortsWanted};

/// Longest wait between two tries to stop a run.
const STOP_RETRY_MS_MAX: u64 = 60_000;
/// How long an eviction waits for checkpoints that are announced.
const AWAIT_CHECKPOINT_MS: u64 = 20_000;
/// Longest wait between two tries to change limits of GPUs.
const LIMIT_RETRY_MS_MAX: u64 = 10_000;
/// Longest wait between two tries to delete a volume.
const REMOVE_VOLUME_RETRY_MS_MAX: u64 = 300_000;
/// Tries to delete a volume that may fail before it is reported: its user may still be ending.
const REMOVE_VOLUME_TRIES: u32 = 4;
/// Time limit for the removal of ended runs at the end of a server: longer than all its attempts.
const CLEAR_WAIT: Duration = Duration::from_secs(10);
/// Most ports that are tried before other tasks get their turn.
const PORTS_AT_A_TIME: usize = 256;
/// Number of stored tasks at which ended ones are dropped.
const CHAINS_SWEPT_AT: usize = 256;

/// The engine; each call is counted.
struct Counted {
    engine: Arc<dyn Engine>,
    metrics: Metrics,
}

impl Counted {
    async fn start(&self, spec: RunSpec) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::Start, self.engine.start(spec)).await
    }

    async fn stop(&self, key: RunKey, grace_ms: u64) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::Stop, self.engine.stop(key, grace_ms)).await
    }

    async fn limit_gpus(
        &self,
        key: RunKey,
        most: BTreeMap<String, u64>,
    ) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::LimitGpus, self.engine.limit_gpus(key, most)).await
    }

    async fn remove(&self, key: RunKey) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::Remove, self.engine.remove(key)).await
    }

    async fn forget_pod(&self, pod: Uuid) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::ForgetPod, self.engine.forget_pod(pod)).await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), engine::Error> {
        self.metrics.engine(Verb::RemoveVolume, self.engine.remove_volume(name)).await
    }
}

/// Carries actions out, for one pod one after the other: a stop that overtook its start would
/// find nothing to stop.
pub(crate) struct Executor {
    engine: Arc<Counted>,
    clock: Arc<MonotonicClock>,
    completion: Completion,
    told: mpsc::UnboundedSender<Input>,
    last: BTreeMap<Uuid, Chain>,
    open: Gate,
}

/// The newest action for a pod, which waits for those before it.
struct Chain {
    task: JoinHandle<()>,
    /// True for the removal of an ended run, pod or volume.
    clears: bool,
}

impl Executor {
    /// An executor, and the stream of its reports.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<MonotonicClock>,
        completion: Completion,
        metrics: Metrics,
    ) -> (Self, mpsc::UnboundedReceiver<Input>) {
        let (told, news) = mpsc::unbounded_channel();
        (
            Self {
                engine: Arc::new(Counted { engine, metrics }),
                clock,
                completion,
                told,
                last: BTreeMap::new(),
                open: Arc::new(RwLock::new(true)),
            },
            news,
        )
    }

    /// Carries out an action after those before it for the same pod.
    pub(crate) fn act(&mut self, action: Action) {
        if self.last.len() >= CHAINS_SWEPT_AT {
            self.last.retain(|_, chain| !chain.task.is_finished());
        }
        let pod = pod_of(&action);
        let clears = matches!(action, Action::Remove(_) | Action::Forget(_));
        let before = self.last.remove(&pod).map(|chain| chain.task);
        let engine = self.engine.clone();
        let clock = self.clock.clone();
        let completion = self.completion.clone();
        let told = self.told.clone();
        let open = self.open.clone();
        let task = tokio::spawn(async move {
            if let Some(before) = before
                && let Err(error) = before.await
                && error.is_panic()
            {
                tracing::error!(%pod, "the action before this one panicked");
            }
            match action {
                Action::Start(wanted) => {
                    let key = wanted.spec.key;
                    let end = match completion.complete(*wanted).await {
                        Ok(spec) => start(&engine, spec, &open).await,
                        Err(why) => Some(Exit::CannotRun(why)),
                    };
                    if let Some(exit) = end {
                        let at: Instant = clock.wall();
                        // The channel is closed only when the dispatcher is gone, and the next
                        // one will ask.
                        let state = RunState::Exited { exit, at };
                        let _ = told.send(Input::Run(Observation::new(key, state)));
                    }
                }
                Action::Stop(key, grace_ms) => {
                    stop(&engine, key, grace_ms, &open).await;
                }
                Action::Evict { run, grace_ms, awaited } => {
                    await_checkpoints(&engine, &awaited).await;
                    stop(&engine, run, grace_ms, &open).await;
                }
                Action::LimitGpus(key, most) => {
                    limit_gpus(&engine, key, most, &open, &told).await;
                }
                Action::Remove(key) => remove(&engine, key).await,
                Action::Forget(pod) => {
                    if let Err(error) = engine.forget_pod(pod).await {
                        tracing::warn!(%pod, error = %chain(&error), "what the pod left stays");
                    }
                }
                Action::FindPorts(wanted) => {
                    let found = find_ports(&engine, &wanted).await;
                    // There is no receiver only when the dispatcher is gone; the next one asks
                    // again.
                    let _ = told.send(Input::Ports(wanted, found));
                }
                Action::Adopted(run, verb) => {
                    if let Some(feed) = engine.engine.feed() {
                        carry_out(&*feed, (run, verb), &open, &told, &clock).await;
                    }
                }
                Action::RemoveVolume(name) => remove_volume(&engine, &name, &open, &told).await,
            }
        });
        self.last.insert(pod, Chain { task, clears });
    }

    /// Ends starting and stopping: waits for a start in progress, and begins no other. The next
    /// server lists the engine's runs, so no run may appear later. A recorded stop may still take
    /// place, and so may the removal of past runs.
    pub(crate) async fn retire(&self) {
        *self.open.write().await = false;
    }

    /// Waits for the removals in progress: after this server there may be no other for long. The
    /// next server continues a removal that is late.
    pub(crate) async fn clear(&mut self) {
        let chains = std::mem::take(&mut self.last).into_values();
        let tasks = chains.filter(|chain| chain.clears).map(|chain| chain.task);
        let all = futures_util::future::join_all(tasks);
        if tokio::time::timeout(CLEAR_WAIT, all).await.is_err() {
            tracing::warn!("what ended workloads left is not removed in time; the next start does");
        }
    }
}

/// The pod that an action is about, or an id for its other object.
fn pod_of(action: &Action) -> Uuid {
    match action {
        Action::Start(start) => start.spec.key.pod,
        Action::Stop(key, _) | Action::LimitGpus(key, _) | Action::Remove(key) => key.pod,
        Action::Evict { run, .. } | Action::Adopted(run, _) => run.pod,
        Action::Forget(pod) => *pod,
        Action::FindPorts(wanted) => wanted.workload,
        Action::RemoveVolume(name) => Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()),
    }
}

/// Starts a run; answers how it ended if it could not be started.
async fn start(engine: &Counted, spec: RunSpec, open: &Gate) -> Option<Exit> {
    let key = spec.key;
    let error = {
        let open = open.read().await;
        if !*open {
            return None;
        }
        engine.start(spec).await.err()?
    };
    tracing::error!(run = %key, error = %chain(&error), "the engine could not start a run");
    // The engine reports that nothing of the run is left; if that is wrong, two runs would share a
    // GPU. So the run keeps its place until that is certain.
    if !end(engine, key, open).await {
        return None;
    }
    Some(match error {
        engine::Error::Invalid(why) => Exit::CannotRun(why),
        engine::Error::NotKept(why) => Exit::NotKept(why),
        error @ engine::Error::NotHere { .. } => Exit::CannotRun(error.to_string()),
        // The machine's fault, and perhaps over soon: it uses up no retry.
        error => Exit::NotStarted(chain(&error)),
    })
}

/// Ends the processes of a failed start. Returns `false` if some may still run because this
/// executor is retired.
async fn end(engine: &Counted, key: RunKey, open: &Gate) -> bool {
    if !stop(engine, key, 0, open).await {
        return false;
    }
    let mut wait_ms = 10;
    loop {
        if !*open.read().await {
            return false;
        }
        // Only an ended run can be removed; files that stay do not matter here.
        let Err(engine::Error::StillRunning(_)) = engine.remove(key).await else { return true };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms * 2).min(STOP_RETRY_MS_MAX);
    }
}

/// A run that is not stopped holds its GPUs for ever: this does not give up. Returns whether it was
/// stopped; if not, this executor is retired.
async fn stop(engine: &Counted, key: RunKey, grace_ms: u64, open: &Gate) -> bool {
    let mut wait_ms = 250;
    loop {
        // Not held meanwhile: stopping may be done twice, and may take long.
        if !*open.read().await {
            return false;
        }
        let Err(error) = engine.stop(key, grace_ms).await else { return true };
        tracing::error!(run = %key, error = %chain(&error), wait_ms, "stopping failed; trying again");
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms * 2).min(STOP_RETRY_MS_MAX);
    }
}

/// Waits for the checkpoints that these runs have announced, or save when they are wanted: of all
/// at once, because they may save together.
async fn await_checkpoints(engine: &Counted, runs: &[RunKey]) {
    let each = runs.iter().map(|run| engine.engine.await_checkpoint(*run, AWAIT_CHECKPOINT_MS));
    let all = futures_util::future::join_all(each);
    // A checkpoint that is not saved by then is lost.
    let _late = tokio::time::timeout(Duration::from_millis(AWAIT_CHECKPOINT_MS), all).await;
}

/// Changes limits of GPUs. A change that still fails after some tries is reported as an event of
/// the workload, and tried again at the next start.
async fn limit_gpus(
    engine: &Counted,
    key: RunKey,
    most: BTreeMap<String, u64>,
    open: &Gate,
    told: &mpsc::UnboundedSender<Input>,
) {
    let mut wait_ms = 100;
    while *open.read().await {
        let Err(error) = engine.limit_gpus(key, most.clone()).await else { return };
        let error = chain(&error);
        tracing::error!(run = %key, %error, "its limits of GPUs did not change");
        if wait_ms > LIMIT_RETRY_MS_MAX {
            let why = format!(
                "its limit was changed, and the change does not reach it: {error}; it is tried again at \
                 the next start of the server, or suspend and resume the workload"
            );
            let event = RunEvent::GpuUnlimited(why);
            // The channel is closed only when the dispatcher is gone; the next one tries again.
            let _ = told.send(Input::Run(Observation::new(key, event)));
            return;
        }
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms *= 4;
    }
}

/// Looks for as many free ports as are wanted.
async fn find_ports(engine: &Counted, wanted: &PortsWanted) -> Vec<u16> {
    let mut found = Vec::with_capacity(wanted.count);
    for (tried, port) in wanted.candidates().enumerate() {
        if found.len() == wanted.count {
            break;
        }
        if tried % PORTS_AT_A_TIME == 0 {
            tokio::task::yield_now().await;
        }
        found.extend(Some(port).filter(|&port| engine.engine.port_is_free(port)));
    }
    found
}

/// Deletes a volume, however long it takes. The executor that follows a retired one goes on.
async fn remove_volume(
    engine: &Counted,
    name: &str,
    open: &Gate,
    told: &mpsc::UnboundedSender<Input>,
) {
    let (mut wait_ms, mut tries, mut last) = (100, 0, String::new());
    let tell = |error| {
        // The channel is closed only when the dispatcher is gone; the next one asks again.
        let _ = told.send(Input::Volume(name.to_owned(), error));
    };
    loop {
        // Not held meanwhile: deleting may be done twice, and nothing waits for it.
        if !*open.read().await {
            return;
        }
        let error = match engine.remove_volume(name).await {
            Ok(()) => return tell(None),
            Err(error) => chain(&error),
        };
        tries += 1;
        tracing::warn!(volume = %name, %error, wait_ms, "a volume stays; trying again");
        if tries >= REMOVE_VOLUME_TRIES && error != last {
            tell(Some(error.clone()));
            last = error;
        }
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms * 2).min(REMOVE_VOLUME_RETRY_MS_MAX);
    }
}

async fn remove(engine: &Counted, key: RunKey) {
    for wait_ms in [50, 200, 1000, 5000] {
        match engine.remove(key).await {
            // The end was reported a moment before the last process was gone.
            Err(engine::Error::StillRunning(_)) => {
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            }
            Ok(()) => return,
            Err(error) => {
                // The next start finds and removes the rest.
                tracing::warn!(run = %key, error = %chain(&error), "what a run left stays");
                return;
            }
        }
    }
    tracing::warn!(run = %key, "what a run left stays: it still has processes");
}

fn chain(error: &engine::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
