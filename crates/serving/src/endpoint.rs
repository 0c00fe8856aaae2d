//! Endpoint of the requests of one inference. Owns: the choice of the replica for a request (the
//! one with the fewest), and the queue of waiting requests, bounded in length and time. Does not
//! know about: HTTP, and the origin of replicas.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::RunKey;
use thiserror::Error;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::Sample;
use crate::counters::Meter;
use crate::limits::REQUESTS_MAX;

/// Maximum number of requests of one inference that wait for a replica.
pub const WAITING_MAX: usize = 1000;

/// Reason why a request found no replica.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoReplica {
    /// Too many requests wait already.
    #[error("{WAITING_MAX} requests wait for a replica already; try again later")]
    Full,
    /// Too many requests to all workloads are in progress.
    #[error("{REQUESTS_MAX} requests to workloads are under way already; try again later")]
    Crowded,
    /// No replica was ready in time.
    #[error("no replica was ready within {waited_s} s")]
    InTime {
        /// Waiting time, in seconds.
        waited_s: u64,
    },
    /// There will be no replica.
    #[error("{0}")]
    Closed(String),
}

/// A replica in the published state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaAddress {
    pub(crate) pod: Uuid,
    pub(crate) generation: u32,
    pub(crate) address: SocketAddr,
    /// True if it gets no new requests.
    pub(crate) leaving: bool,
}

#[derive(Debug)]
struct Replica {
    generation: u32,
    address: SocketAddr,
    leaving: bool,
    ready: bool,
    busy: u32,
    /// Sequence number of its last choice: among equals the longest unused one is chosen.
    chosen: u64,
    meter: Meter,
}

type Waiting = oneshot::Sender<Result<Lease, NoReplica>>;

#[derive(Debug, Default)]
struct Inner {
    replicas: BTreeMap<Uuid, Replica>,
    waiting: VecDeque<Waiting>,
    meter: Meter,
    busy_max: Option<u32>,
    closed: Option<String>,
    choices: u64,
}

/// Endpoint of the requests of one inference.
#[derive(Debug)]
pub struct Endpoint {
    inner: Mutex<Inner>,
    began: Instant,
    /// Notified when a request waits and there is no replica, or a replica's readiness changed.
    wake: Arc<Notify>,
}

impl Endpoint {
    pub(crate) fn new(wake: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), began: Instant::now(), wake })
    }

    /// Admits a request, which waits for a replica. Dropping the ticket ends the request.
    ///
    /// # Errors
    /// No replica is ready in time, too many requests wait, or there will be none.
    pub async fn admit(self: &Arc<Self>, wait: Duration) -> Result<Ticket, NoReplica> {
        let mut ticket = Ticket::new(self.clone());
        ticket.wait(wait).await?;
        Ok(ticket)
    }

    /// Updates the replicas. Remaining ones keep their requests.
    pub(crate) fn set_places(self: &Arc<Self>, places: &[ReplicaAddress], busy_max: Option<u32>) {
        {
            let mut inner = self.lock();
            inner.closed = None;
            inner.busy_max = busy_max;
            inner.replicas.retain(|pod, replica| {
                let same = |place: &&ReplicaAddress| {
                    (place.pod, place.generation) == (*pod, replica.generation)
                };
                places.iter().any(|place| same(&place))
            });
            for place in places {
                let replica = inner.replicas.entry(place.pod).or_insert_with(|| Replica {
                    generation: place.generation,
                    address: place.address,
                    leaving: false,
                    ready: false,
                    busy: 0,
                    chosen: 0,
                    meter: Meter::default(),
                });
                replica.leaving = place.leaving;
            }
        }
        self.hand_out();
    }

    /// Closes the endpoint: there are no replicas and will be none.
    pub(crate) fn close(&self, why: &str) {
        let refused = {
            let mut inner = self.lock();
            inner.replicas.clear();
            inner.closed = Some(why.to_owned());
            std::mem::take(&mut inner.waiting)
        };
        for waiting in refused {
            // The waiting request may have been dropped.
            let _ = waiting.send(Err(NoReplica::Closed(why.to_owned())));
        }
    }

    /// Sets the result of a probe of a replica.
    pub(crate) fn set_ready(self: &Arc<Self>, pod: Uuid, generation: u32, ready: bool) {
        let changed = {
            let mut inner = self.lock();
            let found = inner.replicas.get_mut(&pod).filter(|r| r.generation == generation);
            found.is_some_and(|replica| std::mem::replace(&mut replica.ready, ready) != ready)
        };
        if changed {
            self.wake.notify_one();
            self.hand_out();
        }
    }

    /// True if a replica is ready.
    pub(crate) fn is_ready(&self, pod: Uuid) -> bool {
        self.lock().replicas.get(&pod).is_some_and(|replica| replica.ready)
    }

    /// Number of replicas that get requests.
    pub(crate) fn ready(&self) -> u32 {
        let ready = |replica: &&Replica| replica.ready && !replica.leaving;
        self.lock().replicas.values().filter(ready).map(|_| 1).sum()
    }

    /// Number of requests at a replica.
    pub(crate) fn busy(&self, pod: Uuid) -> u32 {
        self.lock().replicas.get(&pod).map_or(0, |replica| replica.busy)
    }

    /// Number of requests that wait for a replica.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.iter().filter(|waiting| !waiting.is_closed()).count()
    }

    /// Measurements so far: of all requests, and of each replica's run.
    pub(crate) fn totals(&self) -> (Sample, BTreeMap<RunKey, Sample>) {
        let now_ms = self.now_ms();
        let mut inner = self.lock();
        let all = inner.meter.total(now_ms);
        let each = inner.replicas.iter_mut().map(|(pod, replica)| {
            let run = RunKey { pod: *pod, generation: replica.generation };
            (run, replica.meter.total(now_ms))
        });
        (all, each.collect())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns free replicas to waiting requests, in the order of arrival.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let (waiting, lease) = {
                let mut inner = self.lock();
                while inner.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                    inner.waiting.pop_front();
                }
                if inner.waiting.is_empty() {
                    return;
                }
                let Some(lease) = inner.choose(self) else { return };
                let Some(waiting) = inner.waiting.pop_front() else { return };
                (waiting, lease)
            };
            // Not under the lock: a lease that is no longer wanted is returned when it is dropped.
            if let Err(Ok(lease)) = waiting.send(Ok(lease)) {
                lease.give_back();
            }
        }
    }
}

impl Inner {
    fn choose(&mut self, endpoint: &Arc<Endpoint>) -> Option<Lease> {
        let busy_max = self.busy_max.unwrap_or(u32::MAX);
        let free = self
            .replicas
            .iter_mut()
            .filter(|(_, replica)| replica.ready && !replica.leaving && replica.busy < busy_max);
        let (pod, replica) = free.min_by_key(|(_, replica)| (replica.busy, replica.chosen))?;
        self.choices += 1;
        replica.chosen = self.choices;
        replica.busy += 1;
        replica.meter.came(endpoint.now_ms());
        Some(Lease {
            endpoint: endpoint.clone(),
            pod: *pod,
            generation: replica.generation,
            address: replica.address,
            began: Instant::now(),
            answered: false,
            over: false,
        })
    }
}

/// One request at one replica.
#[derive(Debug)]
struct Lease {
    endpoint: Arc<Endpoint>,
    pod: Uuid,
    generation: u32,
    address: SocketAddr,
    began: Instant,
    answered: bool,
    over: bool,
}

impl Lease {
    /// Frees the replica without assigning it to a waiting request.
    fn give_back(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let now_ms = self.endpoint.now_ms();
        let answered_ms = self.answered.then(|| millis(self.began.elapsed()));
        let mut inner = self.endpoint.lock();
        let found = inner.replicas.get_mut(&self.pod);
        if let Some(replica) = found.filter(|replica| replica.generation == self.generation) {
            replica.busy = replica.busy.saturating_sub(1);
            replica.meter.left(now_ms, answered_ms);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.over {
            self.end();
            self.endpoint.hand_out();
        }
    }
}

/// A request from its arrival to the end of its response.
#[derive(Debug)]
pub struct Ticket {
    endpoint: Arc<Endpoint>,
    came: Instant,
    lease: Option<Lease>,
    answered: bool,
    /// Its permit among the requests of all inferences.
    place: Option<OwnedSemaphorePermit>,
}

impl Ticket {
    fn new(endpoint: Arc<Endpoint>) -> Self {
        let now_ms = endpoint.now_ms();
        endpoint.lock().meter.came(now_ms);
        Self { endpoint, came: Instant::now(), lease: None, answered: false, place: None }
    }

    async fn wait(&mut self, wait: Duration) -> Result<(), NoReplica> {
        let granted = {
            let mut inner = self.endpoint.lock();
            if let Some(why) = &inner.closed {
                return Err(NoReplica::Closed(why.clone()));
            }
            // First come, first served: waiting requests go first.
            let none_waits = inner.waiting.iter().all(oneshot::Sender::is_closed);
            let lease = if none_waits { inner.choose(&self.endpoint) } else { None };
            if lease.is_some() {
                self.lease = lease;
                return Ok(());
            }
            if inner.waiting.len() >= WAITING_MAX {
                inner.waiting.retain(|waiting| !waiting.is_closed());
            }
            if inner.waiting.len() >= WAITING_MAX {
                return Err(NoReplica::Full);
            }
            let (waiting, granted) = oneshot::channel();
            inner.waiting.push_back(waiting);
            if inner.replicas.is_empty() {
                // There may be no replica to come. If there are some, a waiting request is measured
                // soon enough.
                self.endpoint.wake.notify_one();
            }
            granted
        };
        let in_time = NoReplica::InTime { waited_s: wait.as_secs() };
        let granted = tokio::time::timeout(wait, granted).await.map_err(|_| in_time)?;
        let gone = || NoReplica::Closed("the inference is gone".to_owned());
        self.lease = Some(granted.map_err(|_| gone())??);
        Ok(())
    }

    /// Address of the replica that answers.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.lease.as_ref().map(|lease| lease.address)
    }

    /// Waits for another replica after one that cannot be reached, which gets no more requests
    /// before its next probe.
    pub(crate) async fn try_another(&mut self, wait: Duration) -> Result<(), NoReplica> {
        if let Some(lease) = self.lease.take() {
            self.endpoint.set_ready(lease.pod, lease.generation, false);
        }
        self.wait(wait).await
    }

    /// Keeps a permit to its end.
    pub(crate) fn keep(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// Time since its arrival.
    pub(crate) fn age(&self) -> Duration {
        self.came.elapsed()
    }

    /// Records a complete response.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
        if let Some(lease) = &mut self.lease {
            lease.answered = true;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now_ms = self.endpoint.now_ms();
        let answered_ms = self.answered.then(|| millis(self.came.elapsed()));
        self.endpoint.lock().meter.left(now_ms, answered_ms);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u128) -> ReplicaAddress {
        let address = SocketAddr::from(([127, 0, 0, 1], 1000));
        ReplicaAddress { pod: Uuid::from_u128(number), generation: 1, address, leaving: false }
    }

    fn endpoint(replicas: u128, busy_max: Option<u32>) -> Arc<Endpoint> {
        let endpoint = Endpoint::new(Arc::default());
        let places: Vec<_> = (1..=replicas).map(place).collect();
        endpoint.set_places(&places, busy_max);
        for place in &places {
            endpoint.set_ready(place.pod, 1, true);
        }
        endpoint
    }

    fn pod(ticket: &Ticket) -> u128 {
        ticket.lease.as_ref().map_or(0, |lease| lease.pod.as_u128())
    }

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn the_replica_with_the_fewest_requests_is_next() {
        let endpoint = endpoint(3, None);
        let first = endpoint.admit(SOON).await.unwrap();
        let second = endpoint.admit(SOON).await.unwrap();
        let third = endpoint.admit(SOON).await.unwrap();
        assert_eq!([pod(&first), pod(&second), pod(&third)], [1, 2, 3]);
        drop(second);
        assert_eq!(pod(&endpoint.admit(SOON).await.unwrap()), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_served_in_order_as_replicas_get_free() {
        let endpoint = endpoint(1, Some(1));
        let first = endpoint.admit(SOON).await.unwrap();
        let waits = |endpoint: &Arc<Endpoint>| {
            let endpoint = endpoint.clone();
            tokio::spawn(async move { endpoint.admit(SOON).await })
        };
        let second = waits(&endpoint);
        tokio::task::yield_now().await;
        let third = waits(&endpoint);
        tokio::task::yield_now().await;
        assert_eq!(endpoint.waiting(), 2);
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(endpoint.waiting(), 1);
        drop(second);
        drop(third.await.unwrap().unwrap());
        assert_eq!(endpoint.busy(Uuid::from_u128(1)), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_is_held_until_a_replica_is_ready() {
        let endpoint = endpoint(0, None);
        let held = {
            let endpoint = endpoint.clone();
            tokio::spawn(async move { endpoint.admit(SOON).await })
        };
        tokio::task::yield_now().await;
        endpoint.set_places(&[place(1)], None);
        assert_eq!(endpoint.waiting(), 1, "there, but not ready");
        endpoint.set_ready(place(1).pod, 1, true);
        assert_eq!(pod(&held.await.unwrap().unwrap()), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_wakes_whoever_makes_replicas_only_if_there_are_none() {
        for (replicas, woken) in [(0, true), (1, false)] {
            let wake = Arc::new(Notify::new());
            let endpoint = Endpoint::new(wake.clone());
            let places: Vec<_> = (1..=replicas).map(place).collect();
            endpoint.set_places(&places, None);
            assert!(endpoint.admit(SOON).await.is_err(), "none is ready");
            let told = tokio::time::timeout(SOON, wake.notified()).await;
            assert_eq!(told.is_ok(), woken, "{replicas} replicas");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_in_time_and_number() {
        let endpoint = endpoint(0, None);
        let late = endpoint.admit(SOON).await.unwrap_err();
        assert_eq!(late, NoReplica::InTime { waited_s: 5 });
        let all: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let endpoint = endpoint.clone();
                tokio::spawn(async move { endpoint.admit(SOON).await.map(drop) })
            })
            .collect();
        while endpoint.waiting() < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(endpoint.admit(SOON).await.unwrap_err(), NoReplica::Full);
        endpoint.close("it was deleted");
        for one in all {
            assert_eq!(one.await.unwrap(), Err(NoReplica::Closed("it was deleted".into())));
        }
        assert!(matches!(endpoint.admit(SOON).await, Err(NoReplica::Closed(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_that_nobody_takes_goes_to_the_next() {
        let endpoint = endpoint(1, Some(1));
        let first = endpoint.admit(SOON).await.unwrap();
        // Granted and dropped before it was received.
        let mut gone = Box::pin(endpoint.admit(SOON));
        assert!(tokio::time::timeout(Duration::ZERO, &mut gone).await.is_err());
        drop(first);
        drop(gone);
        assert_eq!(endpoint.busy(Uuid::from_u128(1)), 0);
        drop(endpoint.admit(SOON).await.unwrap());
        let (all, _) = endpoint.totals();
        assert_eq!(all.arrived, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn each_run_counts_what_it_was_given() {
        let endpoint = endpoint(2, None);
        let mut ticket = endpoint.admit(SOON).await.unwrap();
        tokio::time::advance(Duration::from_millis(40)).await;
        ticket.answered();
        drop(ticket);
        endpoint.set_places(&[place(1), ReplicaAddress { generation: 2, ..place(2) }], None);
        let (all, each) = endpoint.totals();
        let counts = |seen: Sample| (seen.answered, seen.latency_ms, seen.busy_ms);
        assert_eq!(counts(all), (1, 40, 40));
        let each: Vec<_> =
            each.into_iter().map(|(run, seen)| (run.generation, counts(seen))).collect();
        assert_eq!(each, [(1, (1, 40, 40)), (2, (0, 0, 0))]);
        assert_eq!(endpoint.ready(), 1, "the other restarted");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_leaves_or_began_anew_gets_nothing() {
        let endpoint = endpoint(2, None);
        endpoint.set_places(&[ReplicaAddress { leaving: true, ..place(1) }, place(2)], None);
        assert_eq!(pod(&endpoint.admit(SOON).await.unwrap()), 2);
        endpoint.set_places(&[ReplicaAddress { generation: 2, ..place(1) }, place(2)], None);
        endpoint.set_ready(place(1).pod, 1, true);
        assert!(!endpoint.is_ready(place(1).pod), "that was another run");
    }
}
