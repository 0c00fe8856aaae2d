//! Conversion of workloads of every type to the wire, in the general form.

use api_types::{
    ActionsSupport, AllocatedResources, Eviction, GpuRequestType, Millis, PodStates, Reason,
    RequestCores, RequestQuantity, RequestResources, RequestedPods, TENANT_ID, Workload,
    WorkloadCondition, WorkloadExtras, WorkloadName, WorkloadPhase, WorkloadTopology,
};
use reasons::GATED;
use spec::{
    Framework, GpuRequest, PodSet, PodSpec, SharedGpus, TOPOLOGY, TopologyUse, WorkloadKind,
    WorkloadSpec,
};
use units::{Instant, Resources};
use view::{Beneficiary, EvictionView, Phase, PodState, PodView, ReasonView, View, WorkloadView};

use super::{COMPUTE_ASSET, Context, made_of, namespace, pods_shown, quantity};

/// Name of a phase in the API.
pub fn phase_name(phase: Phase) -> &'static str {
    let shown = match phase {
        Phase::Pending => WorkloadPhase::Pending,
        Phase::Initializing => WorkloadPhase::Initializing,
        Phase::Running => WorkloadPhase::Running,
        Phase::Degraded => WorkloadPhase::Degraded,
        Phase::Updating => WorkloadPhase::Updating,
        Phase::Stopping => WorkloadPhase::Stopping,
        Phase::Stopped => WorkloadPhase::Stopped,
        Phase::Resuming => WorkloadPhase::Resuming,
        Phase::Deleting => WorkloadPhase::Deleting,
        Phase::Completed => WorkloadPhase::Completed,
        Phase::Failed => WorkloadPhase::Failed,
    };
    shown.name()
}

/// The nearest Kubernetes phase.
const fn kubernetes_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending | Phase::Initializing | Phase::Resuming => "Pending",
        Phase::Running | Phase::Degraded | Phase::Updating => "Running",
        Phase::Stopping | Phase::Deleting => "Terminating",
        Phase::Stopped => "Suspended",
        Phase::Completed => "Succeeded",
        Phase::Failed => "Failed",
    }
}

/// The name of a kind.
pub const fn kind_name(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training => "Training",
        WorkloadKind::Workspace => "Workspace",
        WorkloadKind::Distributed => "Distributed",
        WorkloadKind::Inference => "Inference",
    }
}

/// Plural of a kind, for people.
pub const fn kind_plural(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training => "trainings",
        WorkloadKind::Workspace => "workspaces",
        WorkloadKind::Distributed => "distributed workloads",
        WorkloadKind::Inference => "inferences",
    }
}

/// Category of a kind.
pub const fn category(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training | WorkloadKind::Distributed => "Train",
        WorkloadKind::Inference => "Deploy",
        WorkloadKind::Workspace => "Build",
    }
}

/// Waiting time and run time in seconds, with the current phase.
pub(super) fn times_s(view: &WorkloadView, now: Instant) -> (u64, u64) {
    let since_ms = now.since_ms(view.phase_since);
    let (waiting_ms, running_ms) = match view.phase {
        Phase::Pending | Phase::Resuming | Phase::Initializing => (since_ms, 0),
        Phase::Running | Phase::Degraded => (0, since_ms),
        _ => (0, 0),
    };
    ((view.waited_ms + waiting_ms) / 1000, (view.ran_ms + running_ms) / 1000)
}

/// Converts a workload to the general form.
pub fn workload(view: &WorkloadView, all: &View, context: &Context) -> Workload {
    let spec = &*view.spec;
    let (waited_s, ran_s) = times_s(view, context.now);
    let why = all.why(view);
    let shown = pods_shown(spec);
    // Requests differ between pod sets; those of the workers are shown.
    let requested = requested_by(&shown.pod, view.requested);
    let of_each = requested_by(&shown.pod, requested_of(view, shown));
    Workload {
        id: view.id.to_string(),
        name: spec.name.clone(),
        kind: kind_name(spec.kind).to_owned(),
        tenant_id: TENANT_ID,
        cluster_id: context.cluster_id.clone(),
        project_id: view.project_id.to_string(),
        project_name: view.project_name.clone(),
        department_id: view.department_id.to_string(),
        department_name: view.department_name.clone(),
        namespace: namespace(&view.project_name),
        source: spec.source.clone(),
        category: category(spec.kind).to_owned(),
        priority: Some(spec.priority.value),
        priority_class_name: spec.priority.class.clone(),
        preemptible: spec.preemptible,
        submitted_by: spec.submitted_by.clone(),
        created_at: view.created_at.into(),
        updated_at: view.phase_since.into(),
        deleted_at: view.deleted_at.map(Into::into),
        completed_at: view.completed_at.map(Into::into),
        phase: phase_name(view.phase).to_owned(),
        phase_updated_at: view.phase_since.into(),
        phase_message: phase_message(view, &why),
        phase_reason: phase_reason(&why),
        k8s_phase: kubernetes_phase(view.phase).to_owned(),
        k8s_phase_updated_at: view.phase_since.into(),
        conditions: conditions(view, &why),
        running_pods: running_pods(view),
        requested_pods: requested_pods(view),
        workload_requested_resources: requested,
        pods_requested_resources: of_each,
        allocated_resources: allocated(view.allocated, gpu_memory(&view.pods)),
        actions_support: actions(view),
        requested_node_pools: if spec.node_pools.is_empty() {
            all.pools.iter().map(|pool| pool.name.clone()).collect()
        } else {
            spec.node_pools.clone()
        },
        current_node_pools: view.pool.iter().cloned().collect(),
        urls: match serving_url(view, context) {
            Some(url) => vec![url],
            None => crate::addresses(view, &context.origins),
        },
        external_connections: super::urls::connections(view, &context.origins),
        environments: made_of::environments(spec),
        datasources: made_of::data_sources(spec),
        images: images(spec),
        distributed_framework: spec.distributed.map(|one| framework_name(one.framework).to_owned()),
        environment_variables: Some(shown.pod.env.clone()),
        command: shown.pod.command.as_ref().map(shell_words::join),
        arguments: Some(&shown.pod.args).filter(|args| !args.is_empty()).map(shell_words::join),
        topology: spec.topology.as_ref().and_then(|of| topology_of(of, all)),
        idle_gpus: idle_gpus(view),
        idle_allocated_gpus: Millis(idle_gpu_millis(view)),
        total_pending_time_seconds: waited_s,
        total_running_time_seconds: ran_s,
        additional_fields: extras(view, &why),
    }
}

fn actions(view: &WorkloadView) -> ActionsSupport {
    let ended = matches!(view.phase, Phase::Completed | Phase::Failed | Phase::Deleting);
    ActionsSupport {
        delete: view.phase != Phase::Deleting && view.deleted_at.is_none(),
        suspend: !ended && view.spec.serving.is_none(),
    }
}

fn topology_of(of: &TopologyUse, all: &View) -> Option<WorkloadTopology> {
    Some(WorkloadTopology {
        name: all.objects.get(TOPOLOGY, &of.id)?.name.clone(),
        preferred_placement: of.preferred.clone(),
        required_placement: of.required.clone(),
    })
}

/// Requests of one pod of a set. GPU memory is converted to a share by the largest GPUs.
pub(super) fn requested_of(view: &WorkloadView, set: &PodSet) -> Resources {
    let pod = &set.pod;
    let gpu_millis = match pod.gpu {
        GpuRequest::Whole(devices) => u64::from(devices) * units::GPU_MILLIS,
        GpuRequest::Shared(SharedGpus { devices, compute: Some(compute), .. }) => {
            u64::from(devices) * compute.request
        }
        GpuRequest::Mig(instances) => instances.millis(),
        // As a share, it depends on the device; the workload's number is that of all its pods.
        GpuRequest::Shared(_) => view.requested.gpu_millis / wanted(view).max(1),
    };
    Resources { gpu_millis, cpu_millis: pod.cpu_millis, memory_bytes: pod.memory_bytes }
}

/// Number of pods that should run: for an inference, the current number of wanted replicas.
fn wanted(view: &WorkloadView) -> u64 {
    match &view.spec.serving {
        Some(_) => view.pods.iter().filter(|pod| pod.wanted).count() as u64,
        None => view.spec.sets().map(|set| u64::from(set.wanted())).sum(),
    }
}

/// Number of pods that run.
pub(super) fn running_pods(view: &WorkloadView) -> u64 {
    view.pods.iter().filter(|pod| pod.state == PodState::Running).count() as u64
}

pub(super) fn requested_pods(view: &WorkloadView) -> RequestedPods {
    let spec = &*view.spec;
    if let Some(serving) = &spec.serving {
        return RequestedPods {
            number: wanted(view),
            min: Some(serving.scaling.replicas_min.into()),
            max: Some(serving.scaling.replicas_max.into()),
            ..RequestedPods::default()
        };
    }
    let range = range(spec);
    let parallelism = spec.pods.parallelism;
    RequestedPods {
        number: sum(spec, PodSet::wanted),
        min: range.map(|(min, _)| min),
        max: range.map(|(_, max)| max),
        parallelism: parallelism.map(u64::from),
        completions: parallelism.map(|_| spec.pods.pods.into()),
    }
}

/// Sum of a number over all pod sets.
fn sum(spec: &WorkloadSpec, of: fn(&PodSet) -> u32) -> u64 {
    spec.sets().map(|set| u64::from(of(set))).sum()
}

/// Minimum and maximum number of pods, if these differ for a distributed workload.
fn range(spec: &WorkloadSpec) -> Option<(u64, u64)> {
    spec.distributed?;
    let (min, max) = (sum(spec, |set| set.pods_min), sum(spec, |set| set.pods));
    (min < max).then_some((min, max))
}

pub(super) fn images(spec: &WorkloadSpec) -> Vec<String> {
    let mut images: Vec<String> = Vec::new();
    for image in spec.sets().map(|set| &set.pod.image) {
        if !image.is_empty() && !images.contains(image) {
            images.push(image.clone());
        }
    }
    images
}

/// Name of a framework in the API.
pub(crate) const fn framework_name(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => "PyTorch",
        Framework::Mpi => "MPI",
        Framework::Tf => "TF",
        Framework::XgBoost => "XGBoost",
        Framework::Jax => "JAX",
        Framework::ElasticDl => "ElasticDL",
        Framework::Lws => "LWS",
    }
}

/// Address of an inference; `None` for other workloads.
pub(crate) fn serving_url(view: &WorkloadView, context: &Context) -> Option<String> {
    view.spec.serving.as_ref()?;
    Some(format!("{}/", context.origins.of_inference(view)))
}

/// Text about the phase: the pending reason, or the end.
fn phase_message(view: &WorkloadView, why: &[ReasonView]) -> Option<String> {
    match view.phase {
        Phase::Failed => view.failure.clone(),
        _ => why.first().map(|why| message_of(view, why)),
    }
}

/// Published reason, if the code has one.
fn phase_reason(why: &[ReasonView]) -> Option<String> {
    why.iter().find_map(|reason| {
        let published = match &*reason.code {
            "P201" => "OverLimit",
            "P202" => "NonPreemptibleOverQuota",
            _ => return None,
        };
        Some(published.to_owned())
    })
}

fn conditions(view: &WorkloadView, why: &[ReasonView]) -> Vec<WorkloadCondition> {
    let waits = why.iter().map(|reason| WorkloadCondition {
        // Codes that do not begin with `P` are about a pod that has a place.
        kind: match reason.code.starts_with('P') {
            true => "PodScheduled".to_owned(),
            false => "ContainersReady".to_owned(),
        },
        status: "False".to_owned(),
        message: message_of(view, reason),
        reason: reason.code.to_string(),
        last_transition_time: reason.at.into(),
    });
    waits.collect()
}

/// Converts allocated resources to the wire.
pub(super) fn allocated(held: Resources, gpu_memory_bytes: u64) -> AllocatedResources {
    AllocatedResources {
        gpu: Millis(held.gpu_millis),
        gpu_memory: (gpu_memory_bytes > 0).then(|| quantity(gpu_memory_bytes)),
        cpu: Millis(held.cpu_millis),
        cpu_memory: quantity(held.memory_bytes),
    }
}

/// GPU memory that a workload requests on each GPU, in bytes; `None` if it requests none by memory.
pub(super) fn requested_gpu_memory(spec: &WorkloadSpec) -> Option<u64> {
    match pods_shown(spec).pod.gpu {
        GpuRequest::Shared(SharedGpus { memory: Some(memory), .. }) => Some(memory.request),
        _ => None,
    }
}

/// GPUs of a workload that do not compute, and its parts of GPUs as one each.
pub(super) fn idle_gpus(view: &WorkloadView) -> u64 {
    let held = view.pods.iter().filter(|pod| pod.state.holds_place());
    view.idle_since.map_or(0, |_| held.map(|pod| pod.gpus.len() as u64).sum())
}

/// Thousandths of GPUs of a workload that do not compute.
pub(super) fn idle_gpu_millis(view: &WorkloadView) -> u64 {
    view.idle_since.map_or(0, |_| view.allocated.gpu_millis)
}

/// GPU memory that pods hold, in bytes.
pub(super) fn gpu_memory(pods: &[PodView]) -> u64 {
    pods.iter().map(|pod| pod.gpu_memory_bytes).sum()
}

/// Converts requested resources to the wire.
pub(super) fn requested_by(spec: &PodSpec, amounts: Resources) -> RequestResources {
    let (kind, memory) = match spec.gpu {
        GpuRequest::Whole(_) | GpuRequest::Mig(_) => (None, None),
        GpuRequest::Shared(SharedGpus { memory: Some(memory), .. }) => {
            (Some(GpuRequestType::Memory), Some(quantity(memory.request)))
        }
        GpuRequest::Shared(_) => (Some(GpuRequestType::Portion), None),
    };
    RequestResources {
        gpu_request_type: kind,
        gpu: Some(RequestCores { request: Millis(amounts.gpu_millis) }),
        gpu_memory: memory.map(|request| RequestQuantity { request }),
        cpu: Some(RequestCores { request: Millis(amounts.cpu_millis) }),
        cpu_memory: Some(RequestQuantity { request: quantity(amounts.memory_bytes) }),
    }
}

/// The nodes of its pods, each once.
pub(super) fn nodes(view: &WorkloadView) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for node in view.pods.iter().filter_map(|pod| pod.node_name.as_ref()) {
        if !nodes.contains(node) {
            nodes.push(node.clone());
        }
    }
    nodes
}

/// Additional fields of ours.
fn extras(view: &WorkloadView, why: &[ReasonView]) -> WorkloadExtras {
    let holding = || view.pods.iter().filter(|pod| pod.state.holds_place());
    let running = view.pods.iter().filter(|pod| pod.state == PodState::Running);
    let labels = &view.spec.labels;
    let annotations = &view.spec.annotations;
    WorkloadExtras {
        nodes: nodes(view),
        gpus: holding().flat_map(|pod| pod.gpus.iter().copied()).collect(),
        requested_gpus: Millis(view.requested.gpu_millis),
        pending_reasons: reasons(view, why),
        last_eviction: view.last_eviction.as_ref().map(eviction),
        template: made_of::one(&view.spec, made_of::TEMPLATE),
        compute_resource: made_of::one(&view.spec, COMPUTE_ASSET),
        over_quota: view.over_quota,
        reserved: view.pods.iter().any(|pod| pod.state == PodState::Reserved),
        restarts: view.pods.iter().map(|pod| pod.generation.saturating_sub(1)).sum(),
        elastic: view.spec.elastic || range(&view.spec).is_some(),
        command_line: view.spec.command_line.clone(),
        last_exit: view
            .failure
            .clone()
            .or_else(|| view.pods.iter().find_map(|pod| pod.last_exit.clone())),
        started_at: running.filter_map(|pod| pod.started_at).min().map(Into::into),
        pods: states(&view.pods),
        labels: labels.clone(),
        annotations: annotations.clone(),
        checkpointed_at: view.checkpointed_at.map(Into::into),
        training: None,
    }
}

/// Pending reasons, or the reason of its failure.
pub(super) fn reasons(view: &WorkloadView, why: &[ReasonView]) -> Vec<Reason> {
    let failed = (view.phase == Phase::Failed).then(|| Reason {
        code: view::codes::of_failure(view.failure_kind).code.to_owned(),
        message: failure(view),
        at: view.completed_at.unwrap_or(view.phase_since).into(),
    });
    why.iter().map(|why| reason_of(view, why)).chain(failed).collect()
}

/// Converts a reason of a workload to the wire. That of scheduling gates has their names.
pub(super) fn reason_of(view: &WorkloadView, why: &ReasonView) -> Reason {
    Reason { message: message_of(view, why), ..reason(why) }
}

/// The sentence of a reason of a workload; that of scheduling gates with their names.
pub(super) fn message_of(view: &WorkloadView, why: &ReasonView) -> String {
    match why.code == GATED.code && !view.spec.gates.is_empty() {
        true => format!("{}: {}", why.message, view.spec.gates.join(", ")),
        false => why.message.to_string(),
    }
}

/// Text about its failure.
pub(super) fn failure(view: &WorkloadView) -> String {
    let after = match view.restarts {
        0 => String::new(),
        1 => " after 1 retry".to_owned(),
        many => format!(" after {many} retries"),
    };
    format!("failed{after}: {}", view.failure.as_deref().unwrap_or("no trace"))
}

/// Converts an eviction to the wire.
pub(super) fn eviction(of: &EvictionView) -> Eviction {
    Eviction {
        code: of.code.to_string(),
        message: of.message.to_string(),
        at: of.at.into(),
        beneficiary: of.beneficiary.as_ref().map(beneficiary),
    }
}

/// Converts the workload for which another was stopped to the wire.
pub(super) fn beneficiary(of: &Beneficiary) -> WorkloadName {
    WorkloadName {
        id: Some(of.id.to_string()),
        name: of.name.to_string(),
        revision: None,
        project_name: of.project.to_string(),
    }
}

/// Converts a coded reason to the wire.
pub(super) fn reason(view: &ReasonView) -> Reason {
    Reason { code: view.code.to_string(), message: view.message.to_string(), at: view.at.into() }
}

fn states(pods: &[PodView]) -> PodStates {
    let mut states = PodStates::default();
    for pod in pods {
        states.crash_looping += u32::from(pod.state.is_crash_looping());
        let slot = match pod.state {
            PodState::Pending | PodState::BackingOff => &mut states.pending,
            PodState::Reserved => &mut states.reserved,
            PodState::Starting | PodState::PullFails | PodState::Paused | PodState::PlacesKept => {
                &mut states.starting
            }
            PodState::Running => &mut states.running,
            PodState::Terminating => &mut states.terminating,
            PodState::Succeeded => &mut states.succeeded,
            PodState::Failed => &mut states.failed,
            PodState::Suspended => &mut states.suspended,
            PodState::Later | PodState::Gone => continue,
        };
        *slot += 1;
    }
    states
}
