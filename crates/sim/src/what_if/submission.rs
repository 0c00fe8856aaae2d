//! A workload of a scenario as it would be submitted. Owns: what of it can be submitted.

use std::collections::BTreeMap;

use model::{Operator, Requirement};
use orchestrator::view::View;
use orchestrator::{Scope, levels_of};
use spec::{
    Container, GpuRequest, Group, Place, PodSet, PodSpec, Priority, Restart, TOPOLOGY, TopologyUse,
    WorkloadKind, WorkloadSpec,
};

use crate::near::hint;
use crate::scenario::{self as wire, At, Evicted, Workload};
use crate::world::{constraints, sets};

/// Failures after which a workload is given up, if it does not say.
const BACKOFF_LIMIT: u32 = 6;

/// What holds back a workload of a scenario that is gated.
const GATE: &str = "scenario";

/// The specification of a workload of this name.
///
/// # Errors
/// It says what only one can say that is there at the start, or names what is not there.
pub(super) fn specification(
    view: &View,
    wire: &At<Workload>,
    name: String,
) -> Result<WorkloadSpec, String> {
    let of_the_start = [
        ("age", wire.age.is_some()),
        ("started", wire.started.is_some()),
        ("resized", wire.resized.is_some()),
        ("checkpointed", wire.checkpointed.is_some()),
        ("restarts", wire.restarts > 0),
        ("stale", wire.stale.is_some()),
        ("last_evicted", wire.last_evicted.is_some()),
        ("not_before", wire.not_before.is_some()),
        ("tasks", !wire.tasks.is_empty()),
    ];
    if let Some((key, _)) = of_the_start.iter().find(|(_, is)| *is) {
        return Err(format!(
            "has `{key}`, which is for a workload that is there already; leave it out"
        ));
    }
    let preemptible = wire.preemptible.unwrap_or(true);
    let usual = if preemptible { 50 } else { 100 };
    let sets = sets(wire)?;
    let mut sets =
        sets.iter().map(|set| pod_set(view, wire, set)).collect::<Result<Vec<_>, _>>()?;
    let group = |group: &At<wire::Group>| {
        Ok(Group {
            name: group.name.clone(),
            parent: group.parent.clone(),
            children_min: group.children_min,
            topology: topology(view, group.topology.as_ref())?,
        })
    };
    Ok(WorkloadSpec {
        name,
        kind: WorkloadKind::Training,
        submitted_by: "what-if".to_owned(),
        submitter_id: String::new(),
        source: "Other".to_owned(),
        pods: sets.remove(0),
        more: sets,
        distributed: None,
        serving: None,
        urls: Vec::new(),
        related_urls: Vec::new(),
        revision: None,
        elastic: wire.elastic,
        priority: Priority { value: wire.priority.unwrap_or(usual), class: String::new() },
        preemptible,
        backoff_limit: wire.backoff_limit.unwrap_or(BACKOFF_LIMIT),
        delete_after_ms: None,
        delete_when_preempted: wire.evicted == Some(Evicted::Gone),
        command_line: None,
        uses: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        node_pools: wire.pools.clone(),
        node_types: Vec::new(),
        topology: topology(view, wire.topology.as_ref())?,
        groups: wire.groups.iter().map(group).collect::<Result<_, String>>()?,
        children_min: wire.children_min,
        gates: wire.gated.then(|| GATE.to_owned()).into_iter().collect(),
        preemption_delay_ms: wire.preemption_delay.map_or(0, |span| span.0),
        time_limit_ms: wire.time_limit.map(|span| span.0),
        manifest: None,
    })
}

fn pod_set(view: &View, of: &Workload, set: &At<wire::PodSet>) -> Result<PodSet, String> {
    // Of those that end one by one, each makes sense alone.
    let usual = if of.completions.is_some() { 1 } else { set.pods };
    Ok(PodSet {
        role: set.name.clone(),
        pods: of.completions.unwrap_or(set.pods),
        pods_min: set.pods_min.unwrap_or(usual),
        parallelism: of.completions.map(|_| set.pods),
        group: set.group.clone(),
        pod_priority: set.task_priority,
        set_topology: topology(view, set.topology.as_ref())?,
        pod: PodSpec {
            image: "what-if".to_owned(),
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            working_dir: None,
            place: place(set)?,
            gpu: gpus(set.gpu.0),
            cpu_millis: set.cpu.map_or(0, |amount| amount.0),
            memory_bytes: set.memory.map_or(0, |amount| amount.0),
            restart: Restart::Never,
            grace_ms: 0,
            stdin: false,
            tty: false,
            container: Container::default(),
        },
    })
}

const fn gpus(of: model::GpuRequest) -> GpuRequest {
    match of {
        model::GpuRequest::Whole(devices) => GpuRequest::Whole(devices),
        model::GpuRequest::Share { devices, millis } => GpuRequest::share(devices, millis),
        model::GpuRequest::Memory { devices, bytes } => GpuRequest::memory(devices, bytes),
        model::GpuRequest::Mig(instances) => GpuRequest::Mig(instances),
    }
}

/// Where pods of a set may go, but for node pools, which are a matter of the workload.
fn place(set: &wire::PodSet) -> Result<Place, String> {
    let said = constraints(set, &[])?;
    let mut affinity = said.required;
    let selected = said
        .selector
        .into_iter()
        .map(|(key, value)| Requirement { key, operator: Operator::In(vec![value]) });
    let selected: Vec<_> = selected.collect();
    if affinity.is_empty() && !selected.is_empty() {
        affinity.push(Vec::new());
    }
    affinity.iter_mut().for_each(|term| term.extend(selected.iter().cloned()));
    Ok(Place {
        affinity,
        preferred: said.preferred,
        tolerations: said.tolerations,
        colocation: None,
        labels: said.labels,
        pod_affinity: said.pod_affinity,
        pod_anti_affinity: said.pod_anti_affinity,
        pod_preferences: said.pod_preferences,
    })
}

fn topology(
    view: &View,
    wire: Option<&wire::TopologyConstraint>,
) -> Result<Option<TopologyUse>, String> {
    let Some(wire::TopologyConstraint { name, required, preferred }) = wire else {
        return Ok(None);
    };
    let found = view.objects.named(TOPOLOGY, Scope::Cluster, name).ok_or_else(|| {
        let known = view.objects.all(TOPOLOGY);
        let near = hint(name, known.iter().map(|topology| topology.name.as_str()));
        format!("there is no topology `{name}`{near}")
    })?;
    let levels = levels_of(found);
    if let Some(level) = required.iter().chain(preferred).find(|level| !levels.contains(level)) {
        let known = levels.join(", ");
        return Err(format!("topology `{name}`: there is no level `{level}`; known are {known}"));
    }
    let (required, preferred) = (required.clone(), preferred.clone());
    Ok(Some(TopologyUse { id: found.id.clone(), required, preferred }))
}
