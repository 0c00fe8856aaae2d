//! A pod of Kubernetes as an adopted pod. Owns: the meaning of its fields, and the fields that hold
//! it because they are not supported.

use kube_api::types::{ObjectMeta, Pod, PodSpec};
use spec::{
    AdoptedGang, AdoptedPhase, AdoptedPod, CPU_MILLIS_MAX, DEVICES_MAX, Hold, MEMORY_BYTES_MAX,
    Place, Priority,
};
use units::Instant;
use uuid::Uuid;

use crate::place::{not_yet, place_of};
use crate::quantity::thousandths;
use crate::requests::{GPU, requests_of, uncounted};

/// Labels that name the project of a pod, the first one that it has.
const PROJECT_LABELS: [&str; 4] =
    ["elastane.dev/project", "kai.scheduler/queue", "runai/queue", "project"];
/// Label or annotation with the priority class of Elastane.
const PRIORITY: &str = "elastane.dev/priority";
/// Label or annotation that is `true` for a pod that may be evicted for others.
const PREEMPTIBLE: &str = "elastane.dev/preemptible";
/// Annotations and labels with the number of pods that start together, the first one that it has.
const MIN_MEMBERS: [&str; 2] = ["elastane.dev/min-members", "kai.scheduler/batch-min-member"];
/// Label or annotation with the name of the pods that start together; without it, those of an owner
/// do.
const GROUP: &str = "elastane.dev/group";
/// Maximum number of pods that start together.
const MEMBERS_MAX: u32 = 10_000;
/// Volumes that need nothing of a node.
const VOLUMES: [&str; 6] =
    ["configMap", "secret", "emptyDir", "projected", "hostPath", "downwardAPI"];
/// Time between the request to end and the kill, where a pod has none, in seconds.
const GRACE_S: i64 = 30;

/// The uid of a pod.
pub(crate) fn uid_of(pod: &Pod) -> Uuid {
    let text = &pod.metadata.uid;
    text.parse().unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()))
}

/// An annotation, or else a label.
fn setting<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    meta.annotations.get(key).or_else(|| meta.labels.get(key))
}

/// Gives a pod the settings of an owner that it has not itself.
pub(crate) fn inherit(pod: &mut ObjectMeta, owner: &ObjectMeta) {
    if !PROJECT_LABELS.iter().any(|key| pod.labels.contains_key(*key)) {
        let labels = PROJECT_LABELS.iter().filter_map(|key| owner.labels.get_key_value(*key));
        pod.labels.extend(labels.map(|(key, project)| (key.clone(), project.clone())));
    }
    for keys in [&[PRIORITY][..], &[PREEMPTIBLE], &MIN_MEMBERS, &[GROUP]] {
        if keys.iter().all(|key| setting(pod, key).is_none()) {
            let settings = keys.iter().filter_map(|key| Some((*key, setting(owner, key)?)));
            let settings = settings.map(|(key, text)| (key.to_owned(), text.clone()));
            pod.annotations.extend(settings);
        }
    }
}

/// A pod, where `schedulers` are the names that pods give to this server.
pub(crate) fn adopted_pod(pod: &Pod, schedulers: &[String]) -> AdoptedPod {
    let Pod { metadata: meta, spec, status } = pod;
    let requests = requests_of(spec);
    let is_ours = schedulers.contains(&spec.scheduler_name);
    let said = |key| setting(meta, key).cloned();
    let owner = meta.controller();
    let mut project = PROJECT_LABELS.iter();
    let project = project.find_map(|key| Some(((*key).to_owned(), meta.labels.get(*key)?.clone())));
    let preemptible = match said(PREEMPTIBLE).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(Hold {
            field: format!("metadata: {PREEMPTIBLE}"),
            why: format!("is `{other}`; write true or false"),
        }),
    };
    let gang = gang_of(pod);
    let priority = said(PRIORITY);
    let unknown = priority.as_ref().and_then(|name| Priority::named(name).err());
    let unknown = unknown.map(|why| Hold { field: format!("metadata: {PRIORITY}"), why });
    let place = if is_ours { place_of(pod) } else { Ok(Place::default()) };
    let faults = [
        preemptible.as_ref().err().cloned(),
        gang.as_ref().err().cloned(),
        unknown,
        place.as_ref().err().cloned(),
    ];
    let fault = || faults.into_iter().flatten().next().or_else(|| hold_of(spec));
    let grace_s = spec.termination_grace_period_seconds.unwrap_or(GRACE_S);
    AdoptedPod {
        uid: uid_of(pod),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        created_at: instant(meta.creation_timestamp.as_deref()),
        owner: owner.map(|owner| (owner.kind.clone(), owner.name.clone())),
        is_ours,
        project: project.filter(|_| is_ours),
        gpus: u32::try_from(requests.gpus).unwrap_or(u32::MAX),
        cpu_millis: requests.cpu_millis,
        memory_bytes: requests.memory_bytes,
        place: place.unwrap_or_default(),
        priority_class: priority.unwrap_or_else(|| spec.priority_class_name.clone()),
        preemptible: preemptible.ok().flatten(),
        gang: gang.ok().flatten().filter(|_| is_ours),
        gates: spec.scheduling_gates.iter().map(|gate| gate.name.clone()).collect(),
        hold: is_ours.then(fault).flatten(),
        node: Some(spec.node_name.clone()).filter(|name| !name.is_empty()),
        protected: None,
        phase: match status.phase.as_str() {
            "Running" => AdoptedPhase::Running,
            "Succeeded" => AdoptedPhase::Succeeded,
            "Failed" => AdoptedPhase::Failed,
            _ => AdoptedPhase::Pending,
        },
        started_at: status.start_time.as_deref().map(|at| instant(Some(at))),
        deleting: meta.deletion_timestamp.is_some(),
        grace_ms: u64::try_from(grace_s).unwrap_or_default().saturating_mul(1000),
    }
}

/// The pods that a pod starts together with, if it names a number of more than one.
fn gang_of(pod: &Pod) -> Result<Option<AdoptedGang>, Hold> {
    let meta = &pod.metadata;
    let mut keys = MIN_MEMBERS.iter();
    let Some((key, text)) = keys.find_map(|key| Some((*key, setting(meta, key)?))) else {
        return Ok(None);
    };
    let hold = |why: String| Hold { field: format!("metadata: {key}"), why };
    let pods_min = match text.parse::<u32>() {
        Ok(pods_min) if (1..=MEMBERS_MAX).contains(&pods_min) => pods_min,
        _ => return Err(hold(format!("is `{text}`; write a number from 1 to {MEMBERS_MAX}"))),
    };
    if pods_min == 1 {
        return Ok(None);
    }
    let (of, name) = match (setting(meta, GROUP), meta.controller()) {
        (Some(group), _) => (format!("group/{group}"), format!("group.{group}")),
        (None, Some(owner)) => {
            (owner.uid.clone(), format!("{}.{}", owner.kind.to_lowercase(), owner.name))
        }
        (None, None) => {
            let why =
                format!("is {pods_min}, and the pod has no controller: name its group in {GROUP}");
            return Err(hold(why));
        }
    };
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}/{of}", meta.namespace).as_bytes());
    Ok(Some(AdoptedGang { id, name, pods_min }))
}

/// A time of the API server; 1970 without one.
fn instant(text: Option<&str>) -> Instant {
    let at = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Instant(at.and_then(|at| u64::try_from(at.as_millisecond()).ok()).unwrap_or_default())
}

/// The first field of a pod that is not supported.
fn hold_of(spec: &PodSpec) -> Option<Hold> {
    let lists = [
        ("spec.topologySpreadConstraints", spec.topology_spread_constraints.is_empty()),
        ("spec.resourceClaims", spec.resource_claims.is_empty()),
        ("spec.schedulingGroup", spec.scheduling_group.is_empty()),
        ("spec.workloadRef", spec.workload_ref.is_empty()),
    ];
    if let Some((field, _)) = lists.into_iter().find(|(_, is_empty)| !is_empty) {
        return Some(not_yet(field.to_owned()));
    }
    for (at, volume) in spec.volumes.iter().enumerate() {
        let kind = volume.keys().find(|key| *key != "name");
        if let Some(kind) = kind.filter(|kind| !VOLUMES.contains(&kind.as_str())) {
            return Some(not_yet(format!("spec.volumes[{at}].{kind}")));
        }
    }
    if spec.preemption_policy == "Never" {
        return Some(not_yet("spec.preemptionPolicy: Never".to_owned()));
    }
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    for (list, containers) in lists {
        for (at, container) in containers.iter().enumerate() {
            let path = format!("spec.{list}[{at}]");
            if container.ports.iter().any(|port| port.host_port != 0) {
                return Some(not_yet(format!("{path}.ports.hostPort")));
            }
            let mut requests = container.resources.requests.iter();
            if let Some((name, text)) = requests.find(|(_, text)| thousandths(text).is_none()) {
                let field = format!("{path}.resources.requests[{name}]");
                return Some(Hold { field, why: format!("is `{text}`, which is no quantity") });
            }
        }
    }
    let asked = requests_of(spec);
    let too_large = [
        ("cpu", asked.cpu_millis > CPU_MILLIS_MAX),
        ("memory", asked.memory_bytes > MEMORY_BYTES_MAX),
        (GPU, asked.gpus > u64::from(DEVICES_MAX)),
    ];
    if let Some((name, _)) = too_large.into_iter().find(|(_, is_too_large)| *is_too_large) {
        let why = "is more than a cluster may have".to_owned();
        return Some(Hold { field: format!("spec: the request of {name}"), why });
    }
    uncounted(spec).map(|field| Hold { field, why: "is a resource that is not counted yet".into() })
}
