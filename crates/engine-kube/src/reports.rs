//! The status of pods that wait. Owns: the order of these writes, newest first.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_api::types::Pod;
use kube_api::{Client, Reason};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::newest::Seen;
use crate::rate::Rate;
use crate::status_change::StatusChange;

/// Wait after a condition that could not be written.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Changes to write.
#[derive(Debug)]
pub(crate) struct Reports {
    /// Time between two writes; `None` if there are none.
    pause: Option<Duration>,
    wanted: Mutex<Wanted>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Wanted {
    next: u64,
    by_age: BTreeMap<u64, (Uuid, StatusChange)>,
    ages: BTreeMap<Uuid, u64>,
}

impl Wanted {
    fn take(&mut self, pod: Uuid) -> StatusChange {
        let before = self.ages.remove(&pod).and_then(|age| self.by_age.remove(&age));
        before.map(|(_, change)| change).unwrap_or_default()
    }

    fn put(&mut self, pod: Uuid, change: StatusChange) {
        self.next += 1;
        self.ages.insert(pod, self.next);
        self.by_age.insert(self.next, (pod, change));
    }
}

impl Reports {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { pause: rate.pause(), wanted: Mutex::default(), more: Notify::new() }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change, with those for the pod that are not written yet.
    pub(crate) fn add(&self, pod: Uuid, change: StatusChange) {
        if self.pause.is_none() {
            return;
        }
        let mut wanted = self.wanted();
        let change = wanted.take(pod).then(change);
        wanted.put(pod, change);
        drop(wanted);
        self.more.notify_one();
    }

    fn newest(&self) -> Option<(Uuid, StatusChange)> {
        let mut wanted = self.wanted();
        let (_, (pod, change)) = wanted.by_age.pop_last()?;
        wanted.ages.remove(&pod);
        Some((pod, change))
    }

    /// Puts a change back that could not be written, before later ones for the pod.
    fn put_back(&self, pod: Uuid, change: StatusChange) {
        let mut wanted = self.wanted();
        let change = change.then(wanted.take(pod));
        wanted.put(pod, change);
    }

    /// Writes changes of pods that are not bound, for ever. `find` returns the last state of a pod,
    /// `note` records a change that is written.
    pub(crate) async fn write(
        &self,
        client: Client,
        find: impl Fn(Uuid) -> Option<Seen> + Send + Sync,
        note: impl Fn(Uuid, StatusChange) + Send + Sync,
    ) {
        let Some(pause) = self.pause else { return };
        loop {
            let Some((pod, change)) = self.newest() else {
                self.more.notified().await;
                continue;
            };
            let waiting = find(pod).filter(|seen| seen.pod.node.is_none());
            let Some(Seen { reference, written, .. }) = waiting else { continue };
            let change = change.beyond(&written);
            let Some(status) = change.patch() else { continue };
            match client.patch_status::<Pod>(&reference, &status).await {
                Ok(_) => note(pod, change),
                Err(error) if error.reason() == Some(&Reason::NotFound) => {}
                Err(error) => {
                    let name = &reference.name;
                    tracing::warn!(pod = %name, "why it waits is not written now: {error}");
                    self.put_back(pod, change);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}
