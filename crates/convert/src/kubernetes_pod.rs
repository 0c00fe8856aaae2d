//! A pod of Kubernetes for the wire. Owns: the sentence about a pod that is in no workload.

use api_types::{KubernetesPod, Reason};
use spec::AdoptedPod;
use view::{AdoptedPodView, HeldPod, View};

/// Converts a pod of Kubernetes to the wire.
pub fn kubernetes_pod(of: &AdoptedPodView, view: &View) -> KubernetesPod {
    let AdoptedPodView { pod, workload_id, held } = of;
    let workload = workload_id.as_ref().and_then(|id| view.workloads.get(id));
    let name = pod.full_name();
    let summary = match (workload, held) {
        (Some(workload), _) => {
            let (own, project) = (&workload.spec.name, &workload.project_name);
            format!("{name} is a pod of workload {own} of project {project}")
        }
        (None, Some(_)) if !pod.holds() => format!("{name} waits"),
        (None, _) => format!("{name} {}", apart(pod)),
    };
    let held = held.as_ref().map(|HeldPod { reason, at, .. }| Reason {
        code: reason.code.clone(),
        message: reason.message.clone(),
        at: (*at).into(),
    });
    KubernetesPod {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        workload_id: workload.map(|workload| workload.id.to_string()),
        summary,
        held,
    }
}

/// State of a pod that is in no workload and waits for nothing.
fn apart(pod: &AdoptedPod) -> String {
    match &pod.node {
        _ if pod.phase.is_over() => "has ended".to_owned(),
        _ if pod.deleting => "is being deleted".to_owned(),
        Some(node) => format!("is on {node}, and no project is charged for it"),
        None => "is in no workload yet".to_owned(),
    }
}
