//! Conditions of pods that wait. Owns: the rate of these writes, newest first, and the word of the
//! API for each code.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube_api::types::Pod;
use kube_api::{Client, ObjectRef};
use serde_json::json;
use spec::PlacementReport;
use tokio::sync::Notify;
use uuid::Uuid;

/// Time between two writes: 20 a second.
const PAUSE: Duration = Duration::from_millis(50);
/// Reasons to wait for which another node would help. Autoscalers buy nodes for their word.
const NODE_HELPS: [&str; 10] =
    ["P101", "P102", "P103", "P104", "P105", "P107", "P109", "P110", "P111", "P112"];

/// Conditions to write.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    wanted: Mutex<Wanted>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Wanted {
    next: u64,
    by_age: BTreeMap<u64, (Uuid, PlacementReport)>,
    ages: BTreeMap<Uuid, u64>,
}

impl Reports {
    /// Adds a condition, in place of one for the pod that is not written yet.
    pub(crate) fn add(&self, pod: Uuid, report: PlacementReport) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.next += 1;
        let age = wanted.next;
        if let Some(before) = wanted.ages.insert(pod, age) {
            wanted.by_age.remove(&before);
        }
        wanted.by_age.insert(age, (pod, report));
        drop(wanted);
        self.more.notify_one();
    }

    fn newest(&self) -> Option<(Uuid, PlacementReport)> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, (pod, report)) = wanted.by_age.pop_last()?;
        wanted.ages.remove(&pod);
        Some((pod, report))
    }

    /// Writes conditions for ever. `find` returns the reference of a pod that is not bound, and the
    /// message of its present condition.
    pub(crate) async fn write(
        self: Arc<Self>,
        client: Client,
        find: impl Fn(Uuid) -> Option<(ObjectRef, Option<String>)> + Send,
    ) {
        loop {
            let Some((pod, report)) = self.newest() else {
                self.more.notified().await;
                continue;
            };
            let Some((reference, told)) = find(pod) else { continue };
            // Numbers change with every decision; only another kind of reason is written.
            if told.is_some_and(|told| told.starts_with(&format!("{}: ", report.code))) {
                continue;
            }
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": word_of(&report.code),
                "message": format!("{}: {}", report.code, report.message),
                "lastTransitionTime": jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
            });
            let status = json!({"conditions": [condition]});
            if let Err(error) = client.patch_status::<Pod>(&reference, &status).await {
                let name = &reference.name;
                tracing::warn!(pod = %name, "why it waits is not written: {error}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The reason of the condition for a code.
fn word_of(code: &str) -> &'static str {
    match code {
        code if NODE_HELPS.contains(&code) => "Unschedulable",
        "P305" => "SchedulingGated",
        "P310" => "NoProject",
        "P311" => "FieldNotSupported",
        code if code.starts_with("P2") => "WaitingForQuota",
        _ => "WaitingForRoom",
    }
}
