//! All inferences. Owns: examining each after events and once a second, and the requests to the
//! dispatcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control::Traffic;
use http::{Request, Response};
use orchestrator::Readiness;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use uuid::Uuid;
use view::WorkloadView;

use crate::controller::{Controller, Order};
use crate::endpoint::Endpoint;
use crate::proxy::{Body, Error, Proxy};

/// Time between two measurements and decisions.
const PERIOD: Duration = Duration::from_secs(1);

/// Serves all inferences.
pub struct Service {
    control: control::Handle,
    proxy: Proxy,
    wake: Arc<Notify>,
    endpoints: Mutex<BTreeMap<Uuid, Arc<Endpoint>>>,
    began: Instant,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Service {
    /// A service for the inferences of this dispatcher. Requests can be forwarded at once; replicas
    /// are scaled while [`Service::run`] runs.
    #[must_use]
    pub fn new(control: control::Handle) -> Arc<Self> {
        let (proxy, wake, endpoints) = (Proxy::default(), Arc::default(), Mutex::default());
        Arc::new(Self { control, proxy, wake, endpoints, began: Instant::now() })
    }

    /// Forwards a request to a replica of an inference. The path is that of the replica, the
    /// headers are those that [`strip`](crate::strip) leaves, and those added since. An upgraded
    /// connection ends with `until`.
    ///
    /// # Errors
    /// No replica responded.
    pub async fn forward(
        &self,
        inference: &WorkloadView,
        request: Request<Body>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, Error> {
        let most = inference.spec.serving.as_ref().map_or(0, |serving| serving.request_ms_max);
        let endpoint = self.endpoint(inference.id);
        self.proxy.forward(&endpoint, request, Duration::from_millis(most), until).await
    }

    /// Sends a request over a connection to a workload, which is for it alone, and established when
    /// a permit is free. The rest is as in [`forward`](Self::forward).
    ///
    /// # Errors
    /// There was no connection or no response, or there are too many requests.
    pub async fn pass<C, E>(
        &self,
        workload: Uuid,
        connect: impl Future<Output = Result<C, E>>,
        request: Request<Body>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, E>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: From<Error>,
    {
        self.proxy.pass(workload, connect, request, until).await
    }

    /// Examines the inferences until the dispatcher ends.
    pub async fn run(self: Arc<Self>) {
        let mut news = self.control.subscribe();
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut keepers = BTreeMap::new();
        loop {
            let measure = tokio::select! {
                biased;
                _ = ticks.tick() => true,
                () = self.wake.notified() => false,
                told = news.recv() => match told {
                    Err(RecvError::Closed) => return,
                    // Missed events are in the state, too.
                    Ok(_) | Err(RecvError::Lagged(_)) => false,
                },
            };
            // One round is enough for all events so far.
            while news.try_recv().is_ok() {}
            self.look(&mut keepers, measure).await;
        }
    }

    async fn look(&self, keepers: &mut BTreeMap<Uuid, Controller>, measure: bool) {
        let view = {
            let mut endpoints = self.lock();
            // The view is read after taking the lock: every existing endpoint was published before.
            let view = self.control.view();
            endpoints.retain(|id, endpoint| {
                let there = view.workloads.contains_key(id);
                if !there {
                    endpoint.close("the inference was deleted");
                }
                there
            });
            view
        };
        keepers.retain(|id, _| view.workloads.contains_key(id));
        // Few workloads have names in this index; sorting by id makes the order deterministic.
        let named: BTreeSet<_> = view.by_name.values().copied().collect();
        let named = named.iter().filter_map(|id| view.workloads.get(id));
        let inferences = named.filter(|w| w.spec.serving.is_some());
        let host = |pod, generation| self.control.address(pod, generation);
        let mut seen: Vec<Readiness> = Vec::new();
        for inference in inferences {
            let keeper = keepers
                .entry(inference.id)
                .or_insert_with(|| Controller::new(self.endpoint(inference.id)));
            let (orders, of_these) = keeper.look(inference, &view, &self.proxy, &host, measure);
            seen.extend(of_these);
            for order in orders {
                self.carry_out(order).await;
            }
        }
        // One command for all: each is a batch of the dispatcher, and a write.
        if !seen.is_empty()
            && let Err(error) = self.control.note_ready(seen).await
        {
            // The next round finds it unpublished, and tries again.
            tracing::info!(%error, "whether replicas are ready could not be shown");
        }
        if measure {
            self.control.count(self.counted());
        }
    }

    /// Measurements of all requests up to now.
    fn counted(&self) -> Traffic {
        // Copied, because every request needs the lock.
        let endpoints = self.lock().clone();
        let span_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut traffic = Traffic { span_ms, ..Traffic::default() };
        for (id, endpoint) in endpoints {
            let (all, each) = endpoint.totals();
            traffic.inferences.insert(id, (all.into(), endpoint.ready()));
            traffic.replicas.extend(each.into_iter().map(|(run, seen)| (run, seen.into())));
        }
        traffic
    }

    async fn carry_out(&self, order: Order) {
        let told = match order.clone() {
            Order::Scale { revision, wanted, why } => {
                self.control.scale(revision, wanted, why).await
            }
            Order::Retire { revision } => self.control.retire(revision).await,
            Order::GiveUp { revision, why } => self.control.give_up(revision, why).await,
        };
        if let Err(error) = told {
            // Most likely the inference was changed or deleted meanwhile; else it is tried again.
            tracing::info!(?order, %error, "an order about replicas was refused");
        }
    }

    fn endpoint(&self, id: Uuid) -> Arc<Endpoint> {
        let wake = &self.wake;
        self.lock().entry(id).or_insert_with(|| Endpoint::new(wake.clone())).clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Endpoint>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
