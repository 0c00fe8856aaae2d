//! Events: messages about workloads, projects and the cluster at the time of a change.

use model::NodeId;
use uuid::Uuid;

use crate::state::State;
use crate::workloads::pod_name;
use view::{Beneficiary, Event};

/// An event without names, id and time.
#[derive(Debug, Clone)]
pub(crate) struct EventBuilder {
    kind: &'static str,
    warning: bool,
    pod: Option<usize>,
    code: Option<&'static str>,
    message: String,
    beneficiary: Option<Beneficiary>,
}

impl EventBuilder {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        let (pod, code, message) = (None, None, message.into());
        Self { kind, warning: false, pod, code, message, beneficiary: None }
    }

    pub(crate) fn warning(self) -> Self {
        Self { warning: true, ..self }
    }

    /// Sets the number of the pod that the event is about.
    pub(crate) fn pod(self, index: usize) -> Self {
        Self { pod: Some(index), ..self }
    }

    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Sets the workload for which it happened.
    pub(crate) fn beneficiary(self, beneficiary: Option<Beneficiary>) -> Self {
        Self { beneficiary, ..self }
    }
}

impl State {
    /// Name of a node.
    pub(crate) fn node_name(&self, id: NodeId) -> String {
        self.nodes.get(id).map(|node| node.spec.name.clone()).unwrap_or_default()
    }

    /// A placement in words: `node-1, GPUs 0 and 1` or `node-1, 0.5 of GPU 0`.
    pub(crate) fn place_in_words(&self, place: &model::Placement) -> String {
        let node = self.node_name(place.node);
        let shares: Vec<_> = place
            .devices
            .iter()
            .map(|share| match share.millis {
                units::GPU_MILLIS => format!("GPU {}", share.gpu),
                millis => format!("{} of GPU {}", units::format_millis(millis), share.gpu),
            })
            .collect();
        if shares.is_empty() { node } else { format!("{node}, {}", shares.join(" and ")) }
    }

    /// Records an event about a workload.
    pub(crate) fn emit(&mut self, id: Uuid, event: EventBuilder) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let project_id = workload.project_id;
        let pod = event.pod.and_then(|index| workload.pods.get(index));
        let pod_name = pod.map(|pod| pod_name(&workload.spec, pod));
        let owner = workload.spec.submitted_by.clone();
        let workload = (self.workloads.head_of(id), workload.spec.name.clone());
        let project = Some((project_id, self.org.project_name(project_id)));
        self.record(project, Some(workload), pod_name, (event, owner));
    }

    /// Records an event about a project.
    pub(crate) fn emit_of_project(&mut self, id: u64, event: EventBuilder) {
        self.emit_apart(Some((id, self.org.project_name(id))), event);
    }

    /// Records an event about the cluster.
    pub(crate) fn emit_of_cluster(&mut self, event: EventBuilder) {
        self.emit_apart(None, event);
    }

    /// Records an event about a project, which may be deleted, or about none.
    pub(crate) fn emit_apart(&mut self, project: Option<(u64, String)>, event: EventBuilder) {
        self.record(project, None, None, (event, String::new()));
    }

    /// Records an event with the present names.
    fn record(
        &mut self,
        project: Option<(u64, String)>,
        workload: Option<(Uuid, String)>,
        pod_name: Option<String>,
        (event, owner): (EventBuilder, String),
    ) {
        let EventBuilder { kind, warning, code, message, beneficiary, .. } = event;
        let (project_id, project_name) = project.unzip();
        let (workload_id, workload_name) = workload.unzip();
        self.last_event_seq += 1;
        let event = Event {
            seq: self.last_event_seq,
            at: self.now,
            kind: kind.to_owned(),
            warning,
            workload_id,
            workload_name: workload_name.unwrap_or_default(),
            pod_name,
            project_id,
            project_name: project_name.unwrap_or_default(),
            code: code.map(ToOwned::to_owned),
            message,
            beneficiary,
        };
        self.outbox.tell(event, owner);
    }
}
