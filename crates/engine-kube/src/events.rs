//! Events of pods that are bound. Owns: their text, and the number of them that are in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use kube_api::types::Event;
use kube_api::{Client, ObjectRef};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::rate::{Allowance, Rate};

/// Name of this scheduler in events.
const COMPONENT: &str = "elastane";
/// Maximum number of events in flight.
const IN_FLIGHT_MAX: usize = 16;

/// Writes events as far as their rate allows.
#[derive(Debug)]
pub(crate) struct Events {
    allowance: Mutex<Allowance>,
    turns: Arc<Semaphore>,
    /// True if the last event could not be written.
    is_failing: Arc<AtomicBool>,
}

impl Events {
    pub(crate) fn new(rate: Rate) -> Self {
        let turns = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let allowance = Mutex::new(Allowance::new(rate));
        Self { allowance, turns, is_failing: Arc::default() }
    }

    /// Writes that a pod is bound to a node, without a wait for the answer.
    pub(crate) fn bound(&self, client: &Client, pod: &ObjectRef, node: &str) {
        let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        if !allowance.takes(Instant::now()) {
            return;
        }
        drop(allowance);
        let (client, turns, is_failing) =
            (client.clone(), self.turns.clone(), self.is_failing.clone());
        let (event, namespace) = (scheduled(pod, node), pod.namespace.clone());
        tokio::spawn(async move {
            let Ok(_turn) = turns.acquire().await else { return };
            let written = client.create::<Event>(&namespace, &event).await;
            let failed_before = is_failing.swap(written.is_err(), Ordering::Relaxed);
            if let Err(error) = written
                && !failed_before
            {
                tracing::warn!("events of pods that are bound are not written: {error}");
            }
        });
    }
}

/// The event of a pod that is bound to a node.
fn scheduled(pod: &ObjectRef, node: &str) -> Value {
    let ObjectRef { namespace, name, uid } = pod;
    let now = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{name}."), "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid,
        },
        "type": "Normal",
        "reason": "Scheduled",
        "message": format!("assigned {namespace}/{name} to {node}"),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}
