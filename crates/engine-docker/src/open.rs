//! Opening the engine. Owns: what its parts share, and taking over what an earlier server left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use engine::image::plain_name;
use engine::{Error, Installation, Outage, RunKey, RunSpec, RunState, Turns};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use units::Instant;

use crate::books::{Books, Known, has_ended};
use crate::container::{self, RUN_LABEL};
use crate::daemon::{self, Daemon, Facts};
use crate::look::{Look, look};
use crate::owner::Owner;
use crate::program::Program;
use crate::{copies, failed, status, unless, watch};

/// What the engine needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whose containers they are: servers that share a daemon do not touch each other's.
    pub installation: Installation,
    /// The daemon.
    pub daemon: Daemon,
    /// Programs that stand for images, by their plain names ([`engine::image::plain_name`]), where no
    /// command is given.
    pub programs: BTreeMap<String, Program>,
    /// What runs of these images have as `nvidia-smi`, where the NVIDIA toolkit gives them no
    /// other.
    pub nvidia_smi: Option<Program>,
    /// How long after a pull that failed the image is pulled again; see
    /// [`PULL_PAUSE`](crate::PULL_PAUSE).
    pub pull_pause: Duration,
    /// Most of the output of a run that the daemon keeps, in bytes.
    pub output_bytes_max: u64,
    /// Largest copy of a repository or bucket that is made, in bytes.
    pub copy_bytes_max: u64,
}

/// The engine for containers. Dropping it leaves every container running.
#[derive(Debug)]
pub struct DockerEngine {
    pub(crate) shared: Arc<Shared>,
}

/// What the engine and its tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) daemon: Daemon,
    /// They change when the daemon is started again.
    pub(crate) facts: RwLock<Facts>,
    /// Since when the daemon does not answer; none while it does.
    pub(crate) outage: Mutex<Option<Outage>>,
    /// Whose the containers are.
    pub(crate) owner: Owner,
    pub(crate) books: Books,
    programs: BTreeMap<String, Program>,
    pub(crate) nvidia_smi: Option<Program>,
    pub(crate) pull_pause: Duration,
    /// The image around programs, once it was made.
    pub(crate) tools: tokio::sync::Mutex<Option<String>>,
    /// A network is made, filled or taken away by one at a time: one that is empty now must not go
    /// before the container that is being made is in it.
    pub(crate) networks: Turns<String>,
    /// Where copies of repositories and buckets are until a container has them.
    pub(crate) copies: PathBuf,
    /// Largest of them, in bytes.
    pub(crate) copy_bytes_max: u64,
    /// Runs that are being made ready: their image is pulled, what they need is copied and put into their
    /// container. Dropping the sender ends that.
    pub(crate) fetching: Mutex<BTreeMap<RunKey, oneshot::Sender<()>>>,
    /// Runs that could not be looked at and are asked for again.
    pub(crate) asking: Mutex<BTreeSet<RunKey>>,
    pub(crate) driver: gpu::Driver,
    /// None once the engine is dropped.
    tasks: Mutex<Option<JoinSet<()>>>,
}

impl DockerEngine {
    /// Opens the engine, and takes over the runs of an earlier server. Containers that were made and
    /// never started are removed: whoever wants them starts them again.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let Options {
            installation,
            daemon,
            programs,
            nvidia_smi,
            pull_pause,
            output_bytes_max,
            copy_bytes_max,
        } = options;
        let shared = Arc::new(Shared {
            facts: RwLock::new(daemon.facts.clone()),
            outage: Mutex::default(),
            daemon,
            owner: Owner::new(&installation, output_bytes_max),
            books: Books::default(),
            programs,
            nvidia_smi,
            pull_pause,
            tools: tokio::sync::Mutex::default(),
            networks: Turns::default(),
            copies: installation.directory().join("copies"),
            copy_bytes_max,
            fetching: Mutex::default(),
            asking: Mutex::default(),
            driver: gpu::Driver::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
        });
        for key in shared.containers().await? {
            adopt(&shared, key).await?;
        }
        copies::forget_earlier(&shared.copies)?;
        let own = Arc::clone(&shared);
        shared.spawn(async move { watch::follow(&own).await });
        Ok(Self { shared })
    }
}

impl Drop for DockerEngine {
    fn drop(&mut self) {
        // Dropped outside the lock: a task's end may want it.
        let tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(tasks);
    }
}

async fn adopt(shared: &Shared, key: RunKey) -> Result<(), Error> {
    let Some((_, look)) = shared.look(key).await? else { return Ok(()) };
    if look.state == RunState::Starting {
        return shared.remove_container(key).await;
    }
    let Look { state, address, workload_id, .. } = look;
    shared.books.know(key, Known { state, has_container: true, address, workload_id });
    Ok(())
}

impl Shared {
    pub(crate) fn facts(&self) -> Facts {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The program that stands for a run's image, if one does.
    pub(crate) fn program(&self, spec: &RunSpec) -> Option<&Program> {
        let own = spec.command.as_ref().is_some_and(|words| !words.is_empty());
        self.programs.get(plain_name(&spec.image)).filter(|_| !own)
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
        // With both labels it was found twice.
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

    /// What the daemon says of a run; none if it has no container.
    pub(crate) async fn look(
        &self,
        key: RunKey,
    ) -> Result<Option<(ContainerInspectResponse, Look)>, Error> {
        match self.daemon.docker.inspect_container(&container::name(key), None).await {
            Ok(found) => {
                let mut seen = look(&found, &self.facts(), now());
                if self.is_news(key, &seen.state) {
                    self.ask_anew().await?;
                    seen = look(&found, &self.facts(), now());
                }
                Ok(Some((found, seen)))
            }
            Err(fault) if status(&fault) == Some(404) => Ok(None),
            Err(fault) => Err(failed(format!("look at the container of run {key}"), fault)),
        }
    }

    /// Whether this is an end that was not known.
    fn is_news(&self, key: RunKey, state: &RunState) -> bool {
        has_ended(state) && !self.books.state(key).is_some_and(|known| has_ended(&known))
    }

    /// An end is believed once a daemon has answered somebody new since: then it was not the daemon that
    /// ended the run because it goes down, or it is another by now, and known to be.
    pub(crate) async fn ask_anew(&self) -> Result<(), Error> {
        if self.facts().keeps {
            return Ok(());
        }
        let started_at = daemon::started_at(&self.daemon.socket).await;
        let started_at = started_at.map_err(|e| failed("ask Docker anew", e.into()))?;
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        facts.ends_all_before = started_at;
        Ok(())
    }

    /// Removes a container that has ended or never started; one that is not there is as good.
    pub(crate) async fn remove_container(&self, key: RunKey) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::default().v(true).force(true).build();
        let name = container::name(key);
        let removed = self.daemon.docker.remove_container(&name, Some(options)).await;
        unless(removed, &[404])
            .map_err(|fault| failed(format!("remove the container of run {key}"), fault))
    }
}

/// Now, on the machine's clock.
pub(crate) fn now() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
