//! Conversion of events to the wire: in the form of Kubernetes, of the history, and of our own
//! stream.

use api_types::{
    HistoryMeta, HistoryRecord, HistorySpec, InvolvedObject, KubernetesEvent, LiveEvent,
    PhaseUpdate,
};
use units::Instant;
use view::{Event, Object, PENDING};

use super::workload::beneficiary;
use super::{Context, namespace};

/// Converts an event for our own stream.
pub fn live_event(event: &Event) -> LiveEvent {
    LiveEvent {
        seq: event.seq,
        at: event.at.into(),
        kind: event.kind.clone(),
        warning: event.warning,
        workload_id: event.workload_id.map(|id| id.to_string()),
        workload_name: event.workload_name.clone(),
        pod_name: event.pod_name.clone(),
        project_name: event.project_name.clone(),
        code: event.code.clone(),
        message: event.message.clone(),
    }
}

/// Converts an event to the form of Kubernetes.
pub fn kubernetes_event(event: &Event, context: &Context) -> KubernetesEvent {
    let workload = event.workload_id.map(|id| id.to_string());
    let (kind, name) = match (&event.pod_name, &workload) {
        (Some(pod), _) => ("Pod", pod.clone()),
        (None, Some(_)) => ("Workload", event.workload_name.clone()),
        (None, None) => ("Project", event.project_name.clone()),
    };
    KubernetesEvent {
        id: event.seq.to_string(),
        created_at: event.at.into(),
        kind: if event.warning { "Warning" } else { "Normal" }.to_owned(),
        cluster_id: context.cluster_id.clone(),
        message: event.message.clone(),
        reason: event.code.clone().unwrap_or_else(|| event.kind.clone()),
        source: "elastane".to_owned(),
        involved_object: InvolvedObject {
            uid: workload.unwrap_or_default(),
            kind: kind.to_owned(),
            name,
            namespace: namespace(&event.project_name),
        },
        beneficiary: event.beneficiary.as_ref().map(beneficiary),
    }
}

/// Converts an event to a record of a workload's history.
pub fn history(event: &Event, context: &Context) -> HistoryRecord {
    let phase = phase_of(event);
    let kind = if phase.is_some() { "PhaseUpdate" } else { "Event" };
    let spec = match phase {
        Some(phase) => {
            let phase = phase.to_owned();
            let update = PhaseUpdate { phase, phase_message: event.message.clone() };
            HistorySpec { event: None, phase_update: Some(update) }
        }
        None => HistorySpec { event: Some(kubernetes_event(event, context)), phase_update: None },
    };
    let meta = HistoryMeta { creation_timestamp: event.at.into(), kind: kind.to_owned() };
    HistoryRecord { meta, spec }
}

/// History of an asset: its creation, and its last change.
pub fn asset_history(object: &Object, updates: u64, context: &Context) -> Vec<HistoryRecord> {
    let record = |number: u64, (at, reason, message): (Instant, &str, String)| {
        let event = KubernetesEvent {
            id: format!("{}-{number}", object.id),
            created_at: at.into(),
            kind: "Normal".to_owned(),
            cluster_id: context.cluster_id.clone(),
            message,
            reason: reason.to_owned(),
            source: "elastane".to_owned(),
            involved_object: InvolvedObject {
                uid: object.id.clone(),
                kind: "Asset".to_owned(),
                name: object.name.clone(),
                namespace: String::new(),
            },
            beneficiary: None,
        };
        let kind = "Event".to_owned();
        let meta = HistoryMeta { creation_timestamp: at.into(), kind };
        HistoryRecord { meta, spec: HistorySpec { event: Some(event), phase_update: None } }
    };
    let made = (object.created_at, "Created", format!("created by {}", object.created_by));
    let by = &object.updated_by;
    let changed = (object.updated_at, "Changed", format!("change {updates}, by {by}"));
    let changed = (updates > 0).then(|| record(updates, changed));
    [record(0, made)].into_iter().chain(changed).collect()
}

/// The phase that starts with an event, if any.
fn phase_of(event: &Event) -> Option<&'static str> {
    let phase = match event.kind.as_str() {
        "Submitted" => "Creating",
        PENDING => "Pending",
        "Scheduled" => "Initializing",
        "Started" => "Running",
        "Suspended" => "Stopping",
        "Resumed" => "Resuming",
        "Deleting" => "Deleting",
        "Completed" => "Completed",
        "Failed" => "Failed",
        _ => return None,
    };
    Some(phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_wire(kind: &str) -> HistoryRecord {
        let event = Event {
            seq: 1,
            at: Instant(0),
            kind: kind.to_owned(),
            warning: true,
            workload_id: Some(uuid::Uuid::nil()),
            workload_name: "a1".to_owned(),
            pod_name: Some("a1-0-1".to_owned()),
            project_id: Some(1),
            project_name: "team-a".to_owned(),
            code: Some("E101".to_owned()),
            message: "why".to_owned(),
            beneficiary: None,
        };
        let context = Context {
            cluster_id: "c".to_owned(),
            cluster_name: "local".to_owned(),
            origins: crate::Origins { server: String::new(), domain: String::new() },
            now: Instant(0),
            outage: None,
            fractions: engine::Fractions::none(""),
        };
        history(&event, &context)
    }

    #[test]
    fn history_tells_phases_from_other_events() {
        let started = to_wire("Started");
        assert_eq!(started.meta.kind, "PhaseUpdate");
        assert_eq!(started.spec.phase_update.unwrap().phase, "Running");
        let evicted = to_wire("Evicted");
        assert_eq!(evicted.meta.kind, "Event");
        let event = evicted.spec.event.unwrap();
        assert_eq!((event.kind.as_str(), event.reason.as_str()), ("Warning", "E101"));
        let object = event.involved_object;
        assert_eq!((object.kind.as_str(), object.namespace.as_str()), ("Pod", "runai-team-a"));
    }
}
