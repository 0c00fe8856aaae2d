//! Opening the engine. Owns: its options, and taking over the runs of an earlier server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use engine::{Error, Installation, KeyedLock, RunKey, RunState};
use engine_channel::Channels;
use engine_fractions::FractionOptions;
use tokio::task::JoinSet;
use trees::Trash;

use crate::channel::RunChannels;
use crate::daemon::Daemon;
use crate::gpu_fraction::GpuFractions;
use crate::inspect::Inspected;
use crate::owner::Owner;
use crate::program::Program;
use crate::run_registry::{RegisteredRun, RunRegistry};
use crate::shared::{DockerEngineState, blocking};
use crate::{copies, disk, events, gpu_watch};

/// The options of the engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The owner of the containers: servers that share a daemon do not touch each other's.
    pub installation: Installation,
    /// The daemon.
    pub daemon: Daemon,
    /// Programs that replace images, by plain image name ([`engine::image::plain_name`]), where no
    /// command is given.
    pub programs: BTreeMap<String, Program>,
    /// `nvidia-smi` of runs of these images, where the NVIDIA toolkit provides none.
    pub nvidia_smi: Option<Program>,
    /// The program of masters and parameter servers of elastic trainings; `None` for that of the
    /// image.
    pub job_program: Option<Program>,
    /// Enforcement of fractions of GPUs; `None` for an engine that starts nothing.
    pub fractions: Option<FractionOptions>,
    /// Pause before a failed pull is retried; see [`PULL_PAUSE`](crate::PULL_PAUSE).
    pub pull_pause: Duration,
    /// Most of the output of a run that the daemon keeps, in bytes.
    pub output_bytes_max: u64,
    /// Largest copy of a repository or bucket, in bytes.
    pub copy_bytes_max: u64,
}

/// The engine for containers. Dropping it leaves every container running.
#[derive(Debug)]
pub struct DockerEngine {
    pub(crate) shared: Arc<DockerEngineState>,
}

impl DockerEngine {
    /// Opens the engine, and takes over the runs of an earlier server. Containers that were
    /// created and never started are removed: the server starts such runs again.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let Options {
            installation,
            daemon,
            programs,
            nvidia_smi,
            job_program,
            fractions,
            pull_pause,
            output_bytes_max,
            copy_bytes_max,
        } = options;
        let state = installation.directory().to_owned();
        let trash = Arc::new(Trash::default());
        let own = Arc::clone(&trash);
        let opened = move || {
            let folder = state.join("trash");
            let added = own.add(&folder);
            added.map_err(|error| Error::io(format!("empty {}", folder.display()), error))?;
            GpuFractions::open(&state, fractions.as_ref(), own)
        };
        let fractions = Arc::new(blocking(opened).await?);
        let runs = RunRegistry::default();
        let channels = Channels::new(Arc::clone(&runs.observations));
        let channels = RunChannels::new(
            channels,
            installation.directory().join("channels"),
            Arc::clone(&trash),
        );
        let shared = Arc::new(DockerEngineState {
            facts: RwLock::new(daemon.facts.clone()),
            outage: Mutex::default(),
            full: Mutex::default(),
            daemon,
            owner: Owner::new(&installation, output_bytes_max),
            runs,
            channels,
            programs,
            nvidia_smi,
            job_program,
            fractions,
            pull_pause,
            tools: tokio::sync::Mutex::default(),
            networks: KeyedLock::default(),
            state: installation.directory().to_owned(),
            copies: installation.directory().join("copies"),
            trash,
            copy_bytes_max,
            fetching: Mutex::default(),
            asking: Mutex::default(),
            driver: gpu::Driver::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
        });
        for key in shared.containers().await? {
            adopt(&shared, key).await?;
        }
        let (fractions, containers) = (Arc::clone(&shared.fractions), shared.runs.all());
        shared.channels.adopt(&containers);
        blocking(move || fractions.adopt(&containers)).await?;
        copies::delete_earlier(&shared.copies, &shared.trash)?;
        let own = Arc::clone(&shared);
        shared.spawn(async move { events::follow(&own).await });
        gpu_watch::spawn(&shared);
        disk::spawn(&shared);
        Ok(Self { shared })
    }
}

impl Drop for DockerEngine {
    fn drop(&mut self) {
        // Dropped outside the lock: a task's end may need it.
        let tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(tasks);
        self.shared.trash.end();
    }
}

async fn adopt(shared: &DockerEngineState, key: RunKey) -> Result<(), Error> {
    let Some((_, inspected)) = shared.inspect(key).await? else { return Ok(()) };
    if inspected.state == RunState::Starting {
        return shared.remove_container(key).await;
    }
    let Inspected { state, address, workload_id, place, .. } = inspected;
    shared.runs.know(
        key,
        RegisteredRun {
            state,
            has_container: true,
            address,
            ..RegisteredRun::requested(workload_id, place)
        },
    );
    Ok(())
}
