//! The feed of nodes and pods, and the operations on pods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Error, PodFeed};
use kube_api::types::{Node, Pod};
use kube_api::{Change, Client, DeleteOptions, ObjectRef, Query, Reason, Watch, WatchSettings};
use spec::{FeedChange, FeedListing, FeedOutcome, PlacementReport};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::events::Events;
use crate::newest::{Newest, Seen};
use crate::node::node_spec;
use crate::owners::Owners;
use crate::pod::uid_of;
use crate::rate::Writes;
use crate::reports::Reports;
use crate::status_change::StatusChange;

/// Longest wait for the first listing.
const LISTING_WAIT: Duration = Duration::from_secs(60);
/// Time for which a pod counts as protected after its eviction was refused.
const PROTECTED_FOR: Duration = Duration::from_secs(30);
/// Tries of a binding whose answer is lost.
const BIND_TRIES: u32 = 3;

/// The feed of a cluster.
pub(crate) struct Feed {
    own: Weak<Self>,
    client: Client,
    schedulers: Vec<String>,
    newest: Mutex<Newest>,
    changed: Notify,
    /// Last interruption, for the error of a listing that does not come.
    interrupted: Mutex<Option<String>>,
    binds: Semaphore,
    reports: Reports,
    events: Events,
}

impl Feed {
    /// A feed that follows the cluster from now on.
    pub(crate) fn start(client: Client, schedulers: Vec<String>, writes: Writes) -> Arc<Self> {
        let feed = Arc::new_cyclic(|own: &Weak<Self>| Self {
            own: own.clone(),
            client: client.clone(),
            schedulers,
            newest: Mutex::default(),
            changed: Notify::new(),
            interrupted: Mutex::default(),
            binds: Semaphore::new(writes.binds_max),
            reports: Reports::new(writes.conditions),
            events: Events::new(writes.events),
        });
        let (nodes, pods, found) = (feed.clone(), feed.clone(), feed.clone());
        let settings = WatchSettings::default();
        let watch = client.watch::<Node>(Query::default(), settings);
        tokio::spawn(async move { nodes.follow_nodes(watch).await });
        let watch = client.watch::<Pod>(Query::default(), settings);
        let owners = Owners::new(client.clone());
        tokio::spawn(async move { pods.follow_pods(watch, owners).await });
        tokio::spawn(async move {
            let find = |uid| found.seen(uid);
            let note = |uid, written| found.newest().note_status(uid, written);
            found.reports.write(client, find, note).await;
        });
        feed
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn interrupted(&self, error: &kube_api::Error) {
        tracing::warn!("the cluster is not followed now; trying again: {error}");
        let text = Some(error.to_string());
        *self.interrupted.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    async fn follow_nodes(&self, mut watch: Watch<Node>) {
        loop {
            match watch.next().await {
                Change::Listing => self.newest().begin_nodes(),
                Change::Applied(node) => self.newest().node(node_spec(&node)),
                Change::Deleted(node) => self.newest().node_gone(&node.metadata.name),
                Change::Synced => self.newest().end_nodes(),
                Change::Unreadable(one) => {
                    tracing::warn!("node {} cannot be read: {}", one.meta.name, one.fault);
                    self.newest().node_is_there(&one.meta.name);
                }
                Change::Interrupted(error) => self.interrupted(&error),
            }
            self.changed.notify_waiters();
        }
    }

    async fn follow_pods(&self, mut watch: Watch<Pod>, mut owners: Owners) {
        loop {
            match watch.next().await {
                Change::Listing => self.newest().begin_pods(),
                Change::Applied(mut pod) => {
                    if self.schedulers.contains(&pod.spec.scheduler_name) {
                        owners.add_to(&mut pod).await;
                    }
                    self.take_pod(&pod);
                }
                Change::Deleted(pod) => self.newest().pod_deleted(&pod),
                Change::Synced => self.newest().end_pods(),
                Change::Unreadable(one) => {
                    let (namespace, name) = (&one.meta.namespace, &one.meta.name);
                    tracing::warn!("pod {namespace}/{name} cannot be read: {}", one.fault);
                    if let Ok(uid) = one.meta.uid.parse() {
                        self.newest().pod_is_there(uid);
                    }
                }
                Change::Interrupted(error) => self.interrupted(&error),
            }
            self.changed.notify_waiters();
        }
    }

    fn take_pod(&self, pod: &Pod) {
        let uid = uid_of(pod);
        let mut newest = self.newest();
        let is_new = newest.pod(uid).is_none();
        newest.take_pod(pod, &self.schedulers);
        let is_ours = newest.pod(uid).is_some_and(|seen| seen.pod.is_ours);
        drop(newest);
        // A server before this one kept room for it.
        if is_new && is_ours && !pod.status.nominated_node_name.is_empty() {
            self.nominate(uid, None);
        }
    }

    /// Waits until `found` finds something in the newest state, which is checked after each change.
    async fn until<T>(&self, mut found: impl FnMut(&mut Newest) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = found(&mut self.newest()) {
                return found;
            }
            changed.await;
        }
    }

    fn seen(&self, uid: Uuid) -> Option<Seen> {
        self.newest().pod(uid).cloned()
    }

    /// Reports a pod as protected for a while.
    fn protect(&self, uid: Uuid, why: String) {
        let refusal = self.newest().protect(uid, why);
        self.changed.notify_waiters();
        let own = self.own.clone();
        tokio::spawn(async move {
            tokio::time::sleep(PROTECTED_FOR).await;
            if let Some(feed) = own.upgrade() {
                feed.newest().unprotect(uid, refusal);
                feed.changed.notify_waiters();
            }
        });
    }

    /// The node of a pod, as the API server has it now: `None` if the pod is gone.
    async fn node_of(&self, pod: &ObjectRef) -> Result<Option<String>, kube_api::Error> {
        match self.client.get::<Pod>(&pod.namespace, &pod.name).await {
            Ok(found) => Ok((found.metadata.uid == pod.uid).then_some(found.spec.node_name)),
            Err(error) if error.reason() == Some(&Reason::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Outcome of a binding that was refused with a conflict, or whose answer is lost; `None` if
    /// the pod is not bound.
    async fn bound(&self, pod: &ObjectRef, node: &str) -> Option<FeedOutcome> {
        match self.node_of(pod).await {
            Ok(None) => Some(FeedOutcome::Gone),
            Ok(Some(at)) if at == node => Some(FeedOutcome::Done),
            Ok(Some(at)) if at.is_empty() => None,
            Ok(Some(at)) => Some(FeedOutcome::Conflict(format!("it is bound to {at}"))),
            Err(error) => Some(FeedOutcome::Unknown(error.to_string())),
        }
    }
}

/// The outcome of a refusal.
fn refused(error: &kube_api::Error) -> FeedOutcome {
    match error.reason() {
        Some(Reason::NotFound) => FeedOutcome::Gone,
        Some(Reason::Conflict) => FeedOutcome::Conflict(error.to_string()),
        _ if error.is_transient() => FeedOutcome::Later(error.to_string()),
        Some(Reason::TooManyRequests) => FeedOutcome::Later(error.to_string()),
        _ => FeedOutcome::Refused(error.to_string()),
    }
}

#[async_trait]
impl PodFeed for Feed {
    async fn listing(&self) -> Result<FeedListing, Error> {
        let listed = self.until(|newest| newest.is_synced().then(|| newest.all()));
        tokio::time::timeout(LISTING_WAIT, listed).await.map_err(|_| {
            let why = self.interrupted.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let why = why.unwrap_or_else(|| "no answer".to_owned());
            Error::io("list the nodes and pods of the cluster", std::io::Error::other(why))
        })
    }

    async fn changes(&self) -> Vec<FeedChange> {
        let taken = |newest: &mut Newest| {
            let taken = if newest.is_synced() { newest.take_changes() } else { Vec::new() };
            (!taken.is_empty()).then_some(taken)
        };
        self.until(taken).await
    }

    async fn bind(&self, uid: Uuid, node: &str) -> FeedOutcome {
        let Some(Seen { reference, .. }) = self.seen(uid) else { return FeedOutcome::Gone };
        let Ok(_turn) = self.binds.acquire().await else {
            return FeedOutcome::Later("the server ends".to_owned());
        };
        let none = BTreeMap::new();
        for _ in 0..BIND_TRIES {
            let error = match self.client.bind(&reference, node, &none, &none).await {
                Ok(()) => {
                    self.events.bound(&self.client, &reference, node);
                    return FeedOutcome::Done;
                }
                Err(error) => error,
            };
            let is_lost = matches!(error, kube_api::Error::Lost { .. });
            if !is_lost && error.reason() != Some(&Reason::Conflict) {
                return refused(&error);
            }
            match self.bound(&reference, node).await {
                Some(outcome) => return outcome,
                None if is_lost => {}
                None => return refused(&error),
            }
        }
        FeedOutcome::Unknown("the answers of the API server were lost".to_owned())
    }

    async fn evict(&self, uid: Uuid) -> FeedOutcome {
        let Some(Seen { reference, pod, .. }) = self.seen(uid) else { return FeedOutcome::Gone };
        if pod.deleting {
            return FeedOutcome::Done;
        }
        if pod.node.is_none() {
            match self.node_of(&reference).await {
                Ok(None) => return FeedOutcome::Gone,
                // It was never bound: there is nothing to end.
                Ok(Some(at)) if at.is_empty() => return FeedOutcome::Done,
                Ok(Some(_)) => {}
                Err(error) => return FeedOutcome::Later(error.to_string()),
            }
        }
        let outcome = match self.client.evict(&reference, &DeleteOptions::default()).await {
            Ok(()) => FeedOutcome::Done,
            // A disruption budget does not allow it now, or the pod has several, which is an internal
            // error of the API server.
            Err(error)
                if error.is_disruption_budget()
                    || error.reason() == Some(&Reason::InternalError) =>
            {
                FeedOutcome::Refused(error.to_string())
            }
            Err(error) => refused(&error),
        };
        if let FeedOutcome::Refused(why) = &outcome {
            self.protect(uid, why.clone());
        }
        outcome
    }

    fn report(&self, uid: Uuid, report: PlacementReport) {
        self.reports.add(uid, StatusChange { reason: Some(report), ..StatusChange::default() });
    }

    fn nominate(&self, uid: Uuid, node: Option<String>) {
        let node = Some(node.unwrap_or_default());
        self.reports.add(uid, StatusChange { node, ..StatusChange::default() });
    }
}
