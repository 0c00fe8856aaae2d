//! The engine: the feed of a cluster, and the refusal of what it does not do yet.

use std::sync::Arc;

use async_trait::async_trait;
use engine::{
    Capabilities, Engine, Error, Fractions, Isolation, IsolationKind, LimitsKept, ListedRun,
    LogRange, Observation, Observations, PodFeed, RunKey, RunSpec,
};
use kube_api::{Client, Config};
use tokio::sync::mpsc;

use crate::feed::Feed;
use crate::rate::Writes;

/// Name of the engine.
const RUNTIME: &str = "kubernetes";

/// Options of the engine.
#[derive(Debug)]
pub struct Options {
    /// Connection to the API server.
    pub config: Config,
    /// Names that pods give to this scheduler in `schedulerName`.
    pub schedulers: Vec<String>,
    /// Limits of its writes.
    pub writes: Writes,
    /// Seed of the pauses between tries.
    pub seed: u64,
}

/// The pods of a Kubernetes cluster that name this scheduler.
pub struct KubeEngine {
    feed: Arc<Feed>,
    observations: Observations,
    schedulers: Vec<String>,
}

impl std::fmt::Debug for KubeEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeEngine").field("schedulers", &self.schedulers).finish_non_exhaustive()
    }
}

impl KubeEngine {
    /// Connects to the API server and begins to follow its nodes and pods; returns its version as
    /// well.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn open(options: Options) -> Result<(Self, String), kube_api::Error> {
        let Options { config, schedulers, writes, seed } = options;
        let client = Client::new(config, seed);
        let version = client.version().await?;
        let feed = Feed::start(client, schedulers.clone(), writes);
        let engine = Self { feed, observations: Observations::default(), schedulers };
        Ok((engine, version.git_version))
    }
}

#[async_trait]
impl Engine for KubeEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: RUNTIME.to_owned(),
            keeps_limits: LimitsKept::ALL,
            isolation: Isolation { kind: IsolationKind::Containers, missing: String::new() },
            fractions: Fractions::none("parts of GPUs come with a later part on Kubernetes"),
        }
    }

    fn feed(&self) -> Option<Arc<dyn PodFeed>> {
        Some(self.feed.clone())
    }

    fn check(&self, _spec: &RunSpec) -> Result<(), Error> {
        Err(Error::Invalid(format!(
            "submissions to Kubernetes come with a later part; make pods with `kubectl` whose \
             schedulerName is {}",
            self.schedulers.join(" or ")
        )))
    }

    async fn list(&self) -> Result<Vec<ListedRun>, Error> {
        Ok(Vec::new())
    }

    async fn start(&self, spec: RunSpec) -> Result<(), Error> {
        self.check(&spec)
    }

    async fn stop(&self, _key: RunKey, _grace_ms: u64) -> Result<(), Error> {
        Ok(())
    }

    async fn remove(&self, _key: RunKey) -> Result<(), Error> {
        Ok(())
    }

    fn observations(&self) -> mpsc::UnboundedReceiver<Observation> {
        self.observations.stream()
    }

    async fn logs(
        &self,
        _key: RunKey,
        _range: LogRange,
    ) -> Result<mpsc::Receiver<std::io::Result<Vec<u8>>>, Error> {
        Err(Error::Unsupported(RUNTIME))
    }
}
