//! Changes of the status of a pod that waits. Owns: the word of the API for each code, and the
//! differences that are worth a write. Does not know about: the order of writes.

use serde_json::{Value, json};
use spec::PlacementReport;

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

/// Changes of the status of a pod that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusChange {
    /// Why it is not placed.
    pub(crate) reason: Option<PlacementReport>,
    /// The node on which room is kept for it, empty for none any more.
    pub(crate) node: Option<String>,
}

impl StatusChange {
    /// This change and a later one, as one.
    pub(crate) fn then(self, later: Self) -> Self {
        Self { reason: later.reason.or(self.reason), node: later.node.or(self.node) }
    }

    /// The parts that differ from what is written.
    pub(crate) fn beyond(self, written: &Self) -> Self {
        let is_same =
            |now: &PlacementReport| written.reason.as_ref().is_some_and(|old| is_same(old, now));
        let is_there = |node: &String| *node == *written.node.as_deref().unwrap_or_default();
        Self {
            reason: self.reason.filter(|now| !is_same(now)),
            node: self.node.filter(|node| !is_there(node)),
        }
    }

    /// The status as a patch; `None` for no change.
    pub(crate) fn patch(&self) -> Option<Value> {
        let mut status = json!({});
        if let Some(PlacementReport { code, message }) = &self.reason {
            status["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": word_of(code),
                "message": format!("{code}: {message}"),
                "lastTransitionTime": jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
            }]);
        }
        if let Some(node) = &self.node {
            status["nominatedNodeName"] = json!(Some(node).filter(|node| !node.is_empty()));
        }
        (*self != Self::default()).then_some(status)
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
