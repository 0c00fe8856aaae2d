//! State shared by the engine and its tasks. Owns: the tasks, and the questions of every operation
//! to the daemon about the containers of this server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bollard::errors::Error as Fault;
use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use engine::image::plain_name;
use engine::{Error, Gang, JOB_PROGRAM, KeyedLock, Outage, RunKey, RunSpec, RunState};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use trees::Trash;
use units::Instant;

use crate::channel::RunChannels;
use crate::daemon::{self, Daemon, DaemonProperties};
use crate::gpu_fraction::GpuFractions;
use crate::inspect::{Inspected, inspect};
use crate::names::{self, RUN_LABEL};
use crate::owner::Owner;
use crate::program::Program;
use crate::run_registry::{RunRegistry, has_ended};
use crate::{container, failed, status, unless};

/// How many more looks at a container that is between two states, and the pause between them.
const SETTLE_ASKS_MAX: u32 = 100;
const SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// State shared by the engine and its tasks.
#[derive(Debug)]
pub(crate) struct DockerEngineState {
    pub(crate) daemon: Daemon,
    /// Properties of the daemon. They change when the daemon restarts.
    pub(crate) facts: RwLock<DaemonProperties>,
    /// The daemon's current outage; `None` while it answers.
    pub(crate) outage: Mutex<Option<Outage>>,
    /// Outage of a disk that containers fill.
    pub(crate) full: Mutex<Option<Outage>>,
    /// The owner of the containers.
    pub(crate) owner: Owner,
    pub(crate) runs: RunRegistry,
    pub(crate) programs: BTreeMap<String, Program>,
    pub(crate) nvidia_smi: Option<Program>,
    pub(crate) job_program: Option<Program>,
    pub(crate) fractions: Arc<GpuFractions>,
    pub(crate) channels: RunChannels,
    pub(crate) pull_pause: Duration,
    /// The base image of programs, once it is created.
    pub(crate) tools: tokio::sync::Mutex<Option<String>>,
    /// Operations on a network are serialized: one that is empty now must not be removed before
    /// the container being created has joined it.
    pub(crate) networks: KeyedLock<String>,
    /// The state directory.
    pub(crate) state: PathBuf,
    /// Where copies of repositories and buckets are until a container has them.
    pub(crate) copies: PathBuf,
    /// Deletes the files of ended runs.
    pub(crate) trash: Arc<Trash>,
    /// Largest copy of a repository or bucket, in bytes.
    pub(crate) copy_bytes_max: u64,
    /// Runs being prepared: their image is pulled, and copies are made and put into the container.
    /// Dropping the sender cancels that.
    pub(crate) fetching: Mutex<BTreeMap<RunKey, oneshot::Sender<()>>>,
    /// Runs whose inspection failed and is retried.
    pub(crate) asking: Mutex<BTreeSet<RunKey>>,
    pub(crate) driver: gpu::Driver,
    /// `None` once the engine is dropped.
    pub(crate) tasks: Mutex<Option<JoinSet<()>>>,
}

impl DockerEngineState {
    pub(crate) fn facts(&self) -> DaemonProperties {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks what no container can have.
    ///
    /// # Errors
    /// The field, why, and what to do.
    pub(crate) fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        container::check(spec, &self.facts())?;
        self.fractions.of(spec).map(drop)
    }

    /// The program that replaces a run's image, if any.
    pub(crate) fn program(&self, spec: &RunSpec) -> Option<&Program> {
        let own = spec.command.as_ref().is_some_and(|words| !words.is_empty());
        self.programs.get(plain_name(&spec.image)).filter(|_| !own)
    }

    /// The program that is brought into a container beside its image, if any.
    pub(crate) fn job_program(&self, spec: &RunSpec) -> Option<&Program> {
        let first = spec.command.as_ref().and_then(|words| words.first());
        let is_run = spec.gang.as_ref().is_some_and(Gang::runs_job_program)
            && first.is_some_and(|first| first == JOB_PROGRAM);
        self.job_program.as_ref().filter(|_| is_run)
    }

    /// Runs a task for as long as the engine lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tasks) = &mut *tasks {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// The containers of this server.
    pub(crate) async fn own_containers(&self) -> Result<Vec<ContainerSummary>, Error> {
        let mut own = Vec::new();
        for label in self.owner.filters() {
            let filters = [("label", vec![label.as_str()])].into();
            let options =
                ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
            let found = self.daemon.docker.list_containers(Some(options)).await;
            own.extend(found.map_err(|fault| failed("list the containers", fault))?);
        }
        let label = |one: &ContainerSummary| {
            one.labels.as_ref().is_some_and(|labels| self.owner.owns(|name| labels.get(name)))
        };
        own.retain(label);
        // A container with both labels is listed twice.
        own.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        own.dedup_by(|one, other| one.id == other.id);
        Ok(own)
    }

    /// The runs that have a container of this server.
    pub(crate) async fn containers(&self) -> Result<Vec<RunKey>, Error> {
        let found = self.own_containers().await?;
        let key = |label: &String| label.parse().ok();
        Ok(found
            .iter()
            .filter_map(|one| one.labels.as_ref()?.get(RUN_LABEL).and_then(key))
            .collect())
    }

    /// State of a run at the daemon; `None` if it has no container.
    pub(crate) async fn inspect(
        &self,
        key: RunKey,
    ) -> Result<Option<(ContainerInspectResponse, Inspected)>, Error> {
        match Box::pin(self.inspect_settled(&names::container(key))).await {
            Ok(found) => {
                let mut seen = inspect(&found, &self.facts(), now());
                if self.is_news(key, &seen.state) {
                    self.ask_new_connection().await?;
                    seen = inspect(&found, &self.facts(), now());
                }
                Ok(Some((found, seen)))
            }
            Err(fault) if status(&fault) == Some(404) => Ok(None),
            Err(fault) => Err(failed(format!("inspect the container of run {key}"), fault)),
        }
    }

    /// Podman calls a container that has ended `stopped`, which is no state of Docker's, until it
    /// has cleaned up after it.
    async fn inspect_settled(&self, name: &str) -> Result<ContainerInspectResponse, Fault> {
        let mut asked = 0;
        loop {
            match self.daemon.docker.inspect_container(name, None).await {
                Err(Fault::JsonDataError { message, .. })
                    if message.contains("`stopped`") && asked < SETTLE_ASKS_MAX =>
                {
                    asked += 1;
                    tokio::time::sleep(SETTLE_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// True if this is an end that was not recorded.
    fn is_news(&self, key: RunKey, state: &RunState) -> bool {
        has_ended(state) && !self.runs.state(key).is_some_and(|known| has_ended(&known))
    }

    /// An end is accepted once the daemon has answered a new connection since: then the daemon was
    /// not shutting down when it ended the run, or it has restarted and is known to have.
    pub(crate) async fn ask_new_connection(&self) -> Result<(), Error> {
        if self.facts().keeps {
            return Ok(());
        }
        let started_at = daemon::started_at(&self.daemon.socket).await;
        let started_at = started_at.map_err(|e| failed("ask Docker again", e.into()))?;
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        facts.ends_all_before = started_at;
        Ok(())
    }

    /// Removes a container that has ended or never started; an absent one is no error.
    pub(crate) async fn remove_container(&self, key: RunKey) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::default().v(true).force(true).build();
        let name = names::container(key);
        let removed = self.daemon.docker.remove_container(&name, Some(options)).await;
        unless(removed, &[404])
            .map_err(|fault| failed(format!("remove the container of run {key}"), fault))?;
        self.fractions.forget(key);
        self.channels.forget(key);
        Ok(())
    }
}

/// Now, on the machine's clock.
pub(crate) fn now() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// Runs what blocks on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(what).await;
    done.unwrap_or_else(|fault| {
        Err(Error::Io { what: "wait for a thread".into(), source: fault.into() })
    })
}
