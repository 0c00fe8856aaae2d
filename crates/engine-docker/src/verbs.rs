//! The engine's operations. Owns: the order of the steps in each, which makes them safe to repeat
//! after a crash between any two.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::errors::Error as Fault;
use bollard::models::Volume;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};
use engine::{
    Capabilities, Duplex, Engine, Error, ExecSpec, Exit, Fractions, GpuHealth, Isolation,
    IsolationKind, Leftover, LimitsKept, ListedRun, LogRange, Measured, Observation, Outage,
    RunKey, RunSpec, RunState, Session, SharedDisk, TerminalSize,
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::names::{self, POD_ID_LABEL, POD_LABEL};
use crate::open::DockerEngine;
use crate::run_registry::{RegisteredRun, has_ended};
use crate::shared::{DockerEngineState, blocking, now};
use crate::{
    container_options, disk, events, failed, logs, measure, network, session, silence, start,
    unless,
};

/// Pause before a failed kill of a container is retried.
const KILL_PAUSE: Duration = Duration::from_secs(1);

#[async_trait]
impl Engine for DockerEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: "docker".to_owned(),
            keeps_limits: LimitsKept::ALL,
            isolation: Isolation { kind: IsolationKind::Containers, missing: String::new() },
            fractions: Fractions {
                installed: self.shared.fractions.fractions.limit(false),
                simulated: self.shared.fractions.fractions.limit(true),
            },
        }
    }

    fn outage(&self) -> Option<Outage> {
        let silent = self.shared.outage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        silent.or_else(|| disk::full(&self.shared))
    }

    fn shared_disk(&self) -> Option<SharedDisk> {
        let (state, data) = (&self.shared.state, self.shared.facts().data_folder?);
        let is_shared = disk::is_shared(state, &data);
        is_shared.then(|| SharedDisk { folder: state.clone(), stops_runs: false })
    }

    fn leftovers(&self) -> Vec<Leftover> {
        self.shared.trash.leftovers()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        self.shared.check(spec)
    }

    fn address(&self, key: RunKey) -> Option<IpAddr> {
        self.shared.runs.get(key)?.address
    }

    async fn list(&self) -> Result<Vec<ListedRun>, Error> {
        Ok(self.shared.runs.all())
    }

    async fn start(&self, spec: RunSpec) -> Result<(), Error> {
        let _turn = self.shared.runs.turns.take(spec.key).await;
        start::start(&self.shared, spec).await
    }

    async fn stop(&self, key: RunKey, grace_ms: u64) -> Result<(), Error> {
        // Before taking the lock: the preparation of the run may hold it for long, and releases it
        // on this.
        self.shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let _turn = self.shared.runs.turns.take(key).await;
        self.shared.channels.stops(key);
        stop(&self.shared, key, grace_ms).await
    }

    async fn await_checkpoint(&self, key: RunKey, most_ms: u64) {
        self.shared.channels.await_checkpoint(key, Duration::from_millis(most_ms)).await;
    }

    async fn limit_gpus(&self, key: RunKey, most: BTreeMap<String, u64>) -> Result<(), Error> {
        let _turn = self.shared.runs.turns.take(key).await;
        let fractions = Arc::clone(&self.shared.fractions);
        blocking(move || fractions.fractions.set_most(key, &most)).await
    }

    async fn remove(&self, key: RunKey) -> Result<(), Error> {
        let _turn = self.shared.runs.turns.take(key).await;
        remove(&self.shared, key).await
    }

    async fn forget_pod(&self, pod: Uuid) -> Result<(), Error> {
        let doing = || format!("delete the files of pod {pod}");
        let label = format!("{POD_ID_LABEL}={pod}");
        let found = volumes(&self.shared, &label).await;
        let mut first = Ok(());
        for volume in found.map_err(|fault| failed(doing(), fault))? {
            first = first.and(remove_volume(&self.shared, &volume.name, doing()).await);
        }
        first
    }

    async fn kept_pods(&self) -> Result<Vec<Uuid>, Error> {
        let mut pods = BTreeSet::new();
        for label in self.shared.owner.filters() {
            let found = volumes(&self.shared, &label).await;
            let found = found.map_err(|fault| failed("list the volumes of pods", fault))?;
            let pod = |one: &Volume| one.labels.get(POD_ID_LABEL)?.parse::<Uuid>().ok();
            pods.extend(found.iter().filter_map(pod));
        }
        Ok(pods.into_iter().collect())
    }

    async fn remove_volume(&self, name: &str) -> Result<(), Error> {
        let volume = container_options::volume(&self.shared.owner, name);
        remove_volume(&self.shared, &volume, format!("delete the volume {name}")).await
    }

    async fn tidy(&self) -> Result<(), Error> {
        network::discard_own(&self.shared).await
    }

    async fn pod_name(&self, key: RunKey) -> Option<String> {
        let (found, _) = self.shared.inspect(key).await.ok()??;
        found.config?.labels?.remove(POD_LABEL)
    }

    fn observations(&self) -> mpsc::UnboundedReceiver<Observation> {
        self.shared.runs.stream()
    }

    async fn bytes_before(&self, _key: RunKey, range: &LogRange) -> Result<Option<u64>, Error> {
        // The daemon does not report the length of earlier lines.
        let all = range.tail_lines.is_none() && range.since.is_none();
        Ok(range.from_byte.or(all.then_some(0)))
    }

    async fn logs(
        &self,
        key: RunKey,
        range: LogRange,
    ) -> Result<mpsc::Receiver<io::Result<Vec<u8>>>, Error> {
        logs::read(&self.shared, key, range)
    }

    async fn measure(&self) -> Result<Option<Measured>, Error> {
        Ok(Some(measure::measure(&self.shared).await))
    }

    async fn gpu_health(
        &self,
        uuids: Vec<String>,
    ) -> Result<Option<BTreeMap<String, GpuHealth>>, Error> {
        measure::gpu_health(&self.shared, uuids).await
    }

    async fn exec(&self, key: RunKey, what: ExecSpec) -> Result<Session, Error> {
        session::exec(&self.shared, key, what).await.map_err(|error| self.named(error))
    }

    async fn attach(
        &self,
        key: RunKey,
        stdin: bool,
        terminal: Option<TerminalSize>,
    ) -> Result<Session, Error> {
        let attached = session::attach(&self.shared, key, stdin, terminal).await;
        attached.map_err(|error| self.named(error))
    }

    async fn connect(&self, key: RunKey, port: u16) -> Result<Box<dyn Duplex>, Error> {
        session::connect(&self.shared, key, port).await.map_err(|error| self.named(error))
    }
}

impl DockerEngine {
    /// The error of a session, for the user.
    fn named(&self, error: Error) -> Error {
        silence::named(self.shared.daemon.facts.product(), error)
    }
}

/// The volumes of this server that have a label.
async fn volumes(shared: &DockerEngineState, label: &str) -> Result<Vec<Volume>, Fault> {
    let filters = [("label", vec![label])].into();
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let found = shared.daemon.docker.list_volumes(Some(options)).await?.volumes;
    let is_own = |one: &Volume| shared.owner.owns(|name| one.labels.get(name));
    Ok(found.unwrap_or_default().into_iter().filter(is_own).collect())
}

async fn remove_volume(shared: &DockerEngineState, name: &str, doing: String) -> Result<(), Error> {
    let gone = shared.daemon.docker.remove_volume(name, None::<RemoveVolumeOptions>).await;
    unless(gone, &[404]).map_err(|fault| failed(doing, fault))
}

/// SIGTERM now, and SIGKILL after the grace period. A second stop can make the period shorter, not
/// longer.
async fn stop(shared: &Arc<DockerEngineState>, key: RunKey, grace_ms: u64) -> Result<(), Error> {
    if shared.runs.state(key).is_some_and(|state| has_ended(&state)) {
        return Ok(());
    }
    let Some((_, inspected)) = shared.inspect(key).await? else {
        return events::refresh(shared, key).await;
    };
    if shared.runs.state(key).is_none() {
        let known = RegisteredRun::requested(inspected.workload_id, inspected.place.clone());
        shared.runs.know(key, RegisteredRun { has_container: true, ..known });
    }
    match inspected.state {
        RunState::Starting => {
            shared.remove_container(key).await?;
            let stopped = RunState::Exited { exit: Exit::Signal(start::TERM), at: now() };
            shared.runs.report(key, stopped);
        }
        RunState::Running { .. } => {
            signal(shared, key, "SIGTERM").await?;
            let own = Arc::clone(shared);
            shared.spawn(async move {
                tokio::time::sleep(Duration::from_millis(grace_ms)).await;
                kill(&own, key).await;
            });
        }
        RunState::Exited { .. } => events::take(shared, key, inspected).await?,
    }
    Ok(())
}

/// Kills a run until it has ended; waits for an absent daemon.
async fn kill(shared: &DockerEngineState, key: RunKey) {
    loop {
        if shared.runs.state(key).is_none_or(|state| has_ended(&state)) {
            return;
        }
        let sent = signal(shared, key, "SIGKILL").await;
        // Its end may have been missed.
        let seen = match sent {
            Ok(()) => events::refresh(shared, key).await,
            failed => failed,
        };
        if let Err(error) = seen {
            tracing::warn!("{error}; trying again");
        }
        tokio::time::sleep(KILL_PAUSE).await;
    }
}

/// A container that does not exist or run is the goal.
async fn signal(shared: &DockerEngineState, key: RunKey, signal: &str) -> Result<(), Error> {
    let docker = &shared.daemon.docker;
    let name = names::container(key);
    let options = KillContainerOptionsBuilder::default().signal(signal).build();
    let sent = docker.kill_container(&name, Some(options)).await;
    unless(sent, &[404, 409])
        .map_err(|fault| failed(format!("send {signal} to run {key}"), fault))?;
    // A frozen process receives no signal.
    unless(docker.unpause_container(&name).await, &[404, 409, 500])
        .map_err(|fault| failed(format!("wake run {key}"), fault))
}

async fn remove(shared: &Arc<DockerEngineState>, key: RunKey) -> Result<(), Error> {
    let seen =
        shared.inspect(key).await?.map(|(_, inspected)| (inspected.state, inspected.workload_id));
    let known = shared.runs.get(key).map(|known| (known.state, known.workload_id));
    let unknown = known.is_none();
    let both: Vec<_> = [seen, known].into_iter().flatten().collect();
    let Some(&(_, workload_id)) = both.first() else {
        // A start that failed while the daemon was away took it, and made no container.
        shared.fractions.forget(key);
        return Ok(());
    };
    // Created and never started; nothing will start it, as this task holds the lock.
    let unstarted = unknown && both.iter().any(|(state, _)| *state == RunState::Starting);
    let over = unstarted || both.iter().any(|(state, _)| has_ended(state));
    if !over {
        return Err(Error::StillRunning(key));
    }
    shared.runs.forget(key);
    shared.remove_container(key).await?;
    network::discard(shared, workload_id).await
}
