//! Beginning and end of the dispatcher. Owns: opening it (recovery included) and running it.

use std::future::Future;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;

use crate::database::DatabaseDisk;
use crate::dispatcher::{Dispatcher, Inbox};
use crate::feed::Feed;
use crate::gpu_watch::Watch;
use crate::meter::{Meter, Sample, Traffic};
use crate::metrics::Metrics;
use crate::retention::Retention;
use crate::shared::ControlState;
use crate::time::MonotonicClock;
use crate::{ClusterInfo, Handle, Options, stored};
use orchestrator::{Error, IdleSince, check_nodes};
use view::{GpuFaults, View};

/// Requests that may wait for the dispatcher; more wait with their senders.
const REQUESTS_WAITING_MAX: usize = 1024;
/// Queries that may wait for the dispatcher.
const QUERIES_WAITING_MAX: usize = 4;
/// Events a subscriber may be behind before it has to read the log.
const EVENTS_BEHIND_MAX: usize = 4096;

/// The dispatcher, recovered and ready to run.
pub struct Service {
    dispatcher: Dispatcher,
    meter: Meter,
    watch: Watch,
    shared: Arc<ControlState>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Service {
    /// Reads the state, compares it with the engine's runs, takes the decisions that are due and
    /// publishes the first view. Nothing is served before it is run.
    ///
    /// # Errors
    /// The state cannot be read or written, or the engine cannot say what exists.
    pub async fn open(options: Options) -> Result<(Self, Handle), Error> {
        let snapshot = options.store.load().await.map_err(stored)?;
        if !options.replaces_nodes {
            check_nodes(&snapshot, &options.nodes)?;
        }
        let cluster = ClusterInfo {
            uuid: snapshot.cluster.uuid,
            name: options.cluster_name.clone(),
            created_at: snapshot.cluster.created_at,
            version: options.version.clone(),
        };
        let (events, _) = broadcast::channel(EVENTS_BEHIND_MAX);
        let shared = Arc::new(ControlState {
            view: ArcSwap::from_pointee(View::default()),
            sample: ArcSwap::from_pointee(Sample::default()),
            traffic: ArcSwap::from_pointee(Traffic::default()),
            events,
            feed: Arc::new(Feed::default()),
            metrics: Metrics::default(),
            cluster,
            engine: options.engine.clone(),
            store: options.store.clone(),
            database: DatabaseDisk::default(),
            node_access: options.node_access.clone(),
            user_limits: options.settings.user_limits.clone(),
        });
        let (requests, incoming) = mpsc::channel(REQUESTS_WAITING_MAX);
        let (queries, queried) = mpsc::channel(QUERIES_WAITING_MAX);
        let (idle, idling) = watch::channel(IdleSince::default());
        let (gpu_faults, gpus) = watch::channel(GpuFaults::default());
        let inbox = Inbox { requests: incoming, queries: queried, idle: idling, gpus };
        let clock = Arc::new(MonotonicClock::new(options.clock.clone()));
        let (engine, metrics) = (options.engine.clone(), shared.metrics.clone());
        let mut watch = Watch::new(engine, clock.clone(), gpu_faults, metrics);
        // The check comes before any placement.
        watch.check(options.nodes.nodes.iter()).await;
        let retention = Retention::new(options.kept, options.settings.user_limits.clone());
        let opened = Dispatcher::open(options, clock.clone(), shared.clone(), inbox, snapshot);
        let dispatcher = Box::pin(opened).await?;
        let meter = Meter::new(shared.clone(), clock, idle, retention);
        let handle = Handle::new(requests, queries, shared.clone());
        Ok((Self { dispatcher, meter, watch, shared }, handle))
    }

    /// Serves until `shutdown` is done. No run is stopped by that.
    ///
    /// # Errors
    /// The engine's stream of observations has ended: nothing can be decided without it.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let Self { dispatcher, meter, watch, shared } = self;
        let mut beside = JoinSet::new();
        beside.spawn(meter.run());
        let (feed, store, own) = (shared.feed.clone(), shared.store.clone(), shared.clone());
        let view = move || shared.view.load_full();
        beside.spawn(watch.run(view.clone()));
        beside.spawn(feed.run(move || own.outage().is_some(), store, view));
        let mut lost = None;
        let shutdown = async {
            tokio::select! {
                () = shutdown => {}
                // No task ends by itself. A server that no longer measures, prunes and watches must
                // not go on unnoticed.
                end = beside.join_next() => lost = Some(end),
            }
        };
        let mut ended = Box::pin(dispatcher.run(shutdown)).await;
        if let Some(end) = lost {
            tracing::error!(?end, "measuring or watching has ended");
            let message = "the part of the server that measures or watches has crashed, which is a fault of the \
                           server: please report it with its log. Workloads go on; start the server again";
            ended = ended.and(Err(Error::Internal { message: message.to_owned() }));
        }
        // Waited for: when this has ended, nothing holds the store any more.
        beside.shutdown().await;
        ended
    }
}
