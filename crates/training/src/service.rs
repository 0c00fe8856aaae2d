//! All trainings. Owns: following each as long as its master runs, and the last status of each.
//! Does not know about: the contents of the status.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api_types::{JobTraining, PodTraining};
use control::{Clock as _, SystemClock};
use elastic_proto::v1::{self, StatusReply, StatusRequest, TellRequest};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::checkpoints::{Checkpoints, Moment};
use crate::conversation::{Master, MasterRun, Progress, news};
use crate::hangs::Hangs;
use crate::partings::Partings;

/// Time between two requests to a master without events.
const EVERY: Duration = Duration::from_secs(1);
/// Key of the value of a job's token.
const TOKEN: &str = "token";

/// Follows the trainings of a server.
pub struct Service {
    control: control::Handle,
    unseal: control::Unseal,
    known: Mutex<BTreeMap<Uuid, Progress>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// A training that is followed.
struct Followed {
    task: JoinHandle<()>,
    /// Notified after an event of the training.
    wake: Arc<Notify>,
}

impl Service {
    /// A service for the trainings of this dispatcher; `unseal` opens their tokens.
    #[must_use]
    pub fn new(control: control::Handle, unseal: control::Unseal) -> Arc<Self> {
        Arc::new(Self { control, unseal, known: Mutex::default() })
    }

    /// Progress of a training; `None` while it is not known.
    #[must_use]
    pub fn job(&self, workload: Uuid) -> Option<JobTraining> {
        self.lock().get(&workload).map(|known| known.job.clone())
    }

    /// Progress of a worker pod of a training; `None` while it is not known, or for other pods.
    #[must_use]
    pub fn pod(&self, workload: Uuid, name: &str) -> Option<PodTraining> {
        self.lock().get(&workload)?.pods.get(name).cloned()
    }

    /// Follows all trainings until the dispatcher ends.
    pub async fn run(self: Arc<Self>) {
        let mut events = self.control.subscribe();
        let mut followed = BTreeMap::new();
        self.look_at_all(&mut followed);
        loop {
            match events.recv().await {
                Ok(event) => {
                    event.workload_id.into_iter().for_each(|id| self.look(id, &mut followed));
                }
                // Missed events are in the state, too.
                Err(RecvError::Lagged(_)) => self.look_at_all(&mut followed),
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn look_at_all(self: &Arc<Self>, followed: &mut BTreeMap<Uuid, Followed>) {
        let view = self.control.view();
        let running = view.workloads.values().filter_map(|workload| MasterRun::of(workload));
        let ids: Vec<Uuid> = running.map(|run| run.workload).collect();
        ids.into_iter().for_each(|id| self.look(id, followed));
    }

    fn look(self: &Arc<Self>, id: Uuid, followed: &mut BTreeMap<Uuid, Followed>) {
        if let Some(one) = followed.get(&id) {
            one.wake.notify_one();
            if !one.task.is_finished() {
                return;
            }
            followed.remove(&id);
        }
        let view = self.control.view();
        if let Some(run) = view.workloads.get(&id).and_then(|workload| MasterRun::of(workload)) {
            let wake = Arc::new(Notify::new());
            let task = tokio::spawn(Arc::clone(self).follow(run, Arc::clone(&wake)));
            followed.insert(id, Followed { task, wake });
        }
    }

    /// Talks to a master as long as it runs, and then to the next one.
    async fn follow(self: Arc<Self>, first: MasterRun, wake: Arc<Notify>) {
        let (id, mut next) = (first.workload, Some(first));
        while let Some(run) = next {
            match self.token(&run).and_then(|token| run.connect(&self.control, &token)) {
                Some(master) => self.talk(&run, master, &wake).await,
                None => return tracing::error!(workload = %id, "a training has no token"),
            }
            let view = self.control.view();
            next = view.workloads.get(&id).and_then(|workload| MasterRun::of(workload));
        }
        self.lock().remove(&id);
    }

    fn token(&self, run: &MasterRun) -> Option<String> {
        (self.unseal)(&run.token, "").ok()?.remove(TOKEN)
    }

    async fn talk(&self, run: &MasterRun, mut master: Master, wake: &Notify) {
        let (mut checkpoints, began) = (Checkpoints::default(), Instant::now());
        let (mut hangs, mut partings) = (Hangs::default(), Partings::default());
        while run.is_in(&self.control.view()) {
            match master.status(StatusRequest {}).await {
                Ok(status) => {
                    let status = status.into_inner();
                    self.send_pod_events(run, &mut master, &status).await;
                    let wall_ms = SystemClock.now().0;
                    let now = Moment { passed: began.elapsed(), wall_ms };
                    self.see(run.workload, &status, (&mut checkpoints, now)).await;
                    if let Some(idle) = hangs.see(&status, now.passed) {
                        self.say_hang(run.workload, &status, idle).await;
                    }
                    for parting in partings.see(&status) {
                        self.say_parting(run.workload, parting).await;
                    }
                }
                // It does not listen yet, or no longer.
                Err(error) => tracing::debug!(workload = %run.workload, %error, "no answer"),
            }
            // An answer costs the master little; a burst of events causes only one.
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = wake.notified() => {}
            }
        }
    }

    /// Sends the events of pods that the master does not know yet.
    async fn send_pod_events(&self, run: &MasterRun, master: &mut Master, status: &StatusReply) {
        let view = self.control.view();
        let Some(workload) = view.workloads.get(&run.workload) else { return };
        for event in news(workload, &status.workers) {
            let told = master.tell(TellRequest { event: Some(event) }).await;
            // The next round sends it again.
            if let Err(error) = told {
                tracing::debug!(workload = %run.workload, %error, "a master was not told");
            }
        }
    }

    async fn see(
        &self,
        id: Uuid,
        status: &StatusReply,
        (checkpoints, now): (&mut Checkpoints, Moment),
    ) {
        let due = checkpoints.see(status.checkpoint_version, now);
        let progress = Progress::of(status, checkpoints.saved_ms());
        self.lock().insert(id, progress);
        if let Some(ago_ms) = due
            && let Err(error) = self.control.note_checkpoint(id, ago_ms).await
        {
            tracing::warn!(workload = %id, %error, "a checkpoint was not noted");
        }
    }

    async fn say_hang(&self, id: Uuid, status: &StatusReply, idle: Duration) {
        let workers = u32::try_from(status.workers.len()).unwrap_or(u32::MAX);
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        if let Err(error) = self.control.note_hang(id, workers, idle_ms).await {
            tracing::warn!(workload = %id, %error, "a training that hangs was not noted");
        }
    }

    async fn say_parting(&self, id: Uuid, parting: &v1::Parting) {
        let v1::Parting { pod, unreached, leaves, for_ms, .. } = parting.clone();
        let noted = self.control.note_parting(id, [pod, unreached], leaves, for_ms).await;
        if let Err(error) = noted {
            tracing::warn!(workload = %id, %error, "workers that do not reach each other were not noted");
        }
    }

    /// Ignores poisoning: no panic leaves the map inconsistent, as each holder changes one entry.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Progress>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
