//! Conditions of pods that wait. Owns: the rate of these writes, newest first, and the word of the
//! API for each code.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube_api::types::Pod;
use kube_api::{Client, Reason};
use serde_json::json;
use spec::PlacementReport;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::newest::Seen;

/// Time between two writes: 20 a second.
const PAUSE: Duration = Duration::from_millis(50);
/// Code of pods that no project is charged for.
const NO_PROJECT: &str = "P310";
/// Code of pods with a field that is not supported.
const NOT_SUPPORTED: &str = "P311";
/// Code of gangs that lack pods or places.
const GANG: &str = "P106";
/// The word of the condition for each code. Autoscalers buy nodes for `Unschedulable`, so only
/// reasons for which another node would help have it.
pub(crate) const WORDS: [(&str, &str); 28] = [
    ("P101", "Unschedulable"),
    ("P102", "Unschedulable"),
    ("P103", "Unschedulable"),
    ("P104", "Unschedulable"),
    ("P105", "Unschedulable"),
    (GANG, "WaitingForRoom"),
    ("P107", "Unschedulable"),
    ("P108", "WaitingForRoom"),
    ("P109", "Unschedulable"),
    ("P110", "Unschedulable"),
    ("P111", "Unschedulable"),
    ("P112", "Unschedulable"),
    ("P201", "WaitingForQuota"),
    ("P202", "WaitingForQuota"),
    ("P203", "WaitingForQuota"),
    ("P204", "WaitingForQuota"),
    ("P205", "WaitingForQuota"),
    ("P301", "WaitingForRoom"),
    ("P302", "WaitingForRoom"),
    ("P303", "WaitingForRoom"),
    ("P304", "WaitingForRoom"),
    ("P305", "SchedulingGated"),
    ("P306", "WaitingForRoom"),
    ("P307", "NotConsidered"),
    ("P308", "NotConsidered"),
    ("P309", "WaitingForRoom"),
    (NO_PROJECT, "NoProject"),
    (NOT_SUPPORTED, "FieldNotSupported"),
];
/// Wait after a condition that could not be written.
const RETRY_AFTER: Duration = Duration::from_secs(1);

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

    /// Puts a condition back that could not be written, unless there is a later one for the pod.
    fn put_back(&self, pod: Uuid, report: PlacementReport) {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let has_later = wanted.ages.contains_key(&pod);
        drop(wanted);
        if !has_later {
            self.add(pod, report);
        }
    }

    /// Writes conditions of pods that are not bound, for ever. `find` returns the last state of a
    /// pod, `note` records a condition that is written.
    pub(crate) async fn write(
        &self,
        client: Client,
        find: impl Fn(Uuid) -> Option<Seen> + Send + Sync,
        note: impl Fn(Uuid, PlacementReport) + Send + Sync,
    ) {
        loop {
            let Some((pod, report)) = self.newest() else {
                self.more.notified().await;
                continue;
            };
            let waiting = find(pod).filter(|seen| seen.pod.node.is_none());
            let Some(Seen { reference, reported, .. }) = waiting else { continue };
            if reported.is_some_and(|before| is_same(&before, &report)) {
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
            match client.patch_status::<Pod>(&reference, &status).await {
                Ok(_) => note(pod, report),
                Err(error) if error.reason() == Some(&Reason::NotFound) => {}
                Err(error) => {
                    let name = &reference.name;
                    tracing::warn!(pod = %name, "why it waits is not written now: {error}");
                    self.put_back(pod, report);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// True if a condition says the same: numbers of a reason change with every decision, and only
/// another kind of reason is written. The sentences of pods that are held have no numbers, and the
/// number of missing pods of a gang changes only with these.
fn is_same(before: &PlacementReport, now: &PlacementReport) -> bool {
    let counts = [NO_PROJECT, NOT_SUPPORTED, GANG].contains(&now.code.as_str());
    before.code == now.code && (!counts || before.message == now.message)
}

/// The reason of the condition for a code.
fn word_of(code: &str) -> &'static str {
    WORDS.iter().find(|(known, _)| *known == code).map_or("Waiting", |(_, word)| *word)
}
