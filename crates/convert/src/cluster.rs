//! Conversion of the cluster and its nodes to the wire.

use access::Family;
use api_types::{
    ClusterDisplayedStatus, DisplayedCluster, FractionLimit, Gpu, GpuFault, GpuInfo, GpuPod,
    Leftover, MigInstance, Millis, Node, NodePatch, NodePlatform, NodeScheduling, NodeStatus,
    NodeStatusConditionDetails, Outage, OutageKind, SimulatedNode, TENANT_ID, Taint, TaintEffect,
    TaintKey,
};
use control::{ClusterInfo, NewNode};
use http_kit::{Row, Scalar, Type};
use model::Effect;
use orchestrator::NodeChange;
use serde::{Deserialize, Serialize};
use spec::{NodeGpu, Scheduling, TimeSlicing};
use units::{Instant, format_bytes};
use view::{GpuView, NodeView, View};

use super::Context;

/// Kind of the object whose name is that of the cluster, once it has been renamed; there is at most
/// one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClusterName {}

impl Family for ClusterName {
    const KIND: &'static str = "cluster";
}

/// The cluster.
pub fn cluster(info: &ClusterInfo, context: &Context) -> DisplayedCluster {
    DisplayedCluster {
        uuid: context.cluster_id.clone(),
        tenant_id: TENANT_ID,
        name: context.cluster_name.clone(),
        created_at: info.created_at.into(),
        last_liveness: context.now.into(),
        version: info.version.clone(),
        status: ClusterDisplayedStatus {
            state: "Connected".to_owned(),
            platform: NodePlatform::default(),
        },
    }
}

/// A node.
pub fn node(view: &NodeView, context: &Context) -> Node {
    let gpus = view.gpu_memory_bytes.len() as u64;
    let info = GpuInfo { gpu_type: view.gpu_type.clone(), gpu_count: gpus };
    Node {
        id: view.name.clone(),
        name: view.name.clone(),
        status: status(view, context.outage.is_none()).to_owned(),
        conditions: conditions(view, context),
        node_pool: view.pool.clone(),
        cluster_uuid: context.cluster_id.clone(),
        created_at: view.created_at.into(),
        updated_at: context.now.into(),
        gpu_info: (gpus > 0).then_some(info),
        simulated: view.simulated,
        gpu_memory_bytes: view.gpu_memory_bytes.clone(),
        gpu_used: used(view),
        cpu_millis: view.capacity.cpu_millis,
        cpu_used_millis: view.used.cpu_millis,
        memory_bytes: view.capacity.memory_bytes,
        memory_used_bytes: view.used.memory_bytes,
        labels: view.labels.clone(),
        taints: view.taints.iter().map(taint).collect(),
        scheduling: scheduling(view.scheduling),
    }
}

/// Status in the words of `kubectl get nodes`.
const fn status(view: &NodeView, is_ready: bool) -> &'static str {
    match (is_ready, view.scheduling.is_enabled()) {
        (true, true) => "Ready",
        (true, false) => "Ready,SchedulingDisabled",
        (false, true) => "NotReady",
        (false, false) => "NotReady,SchedulingDisabled",
    }
}

const fn scheduling(of: Scheduling) -> NodeScheduling {
    match of {
        Scheduling::Enabled => NodeScheduling::Enabled,
        Scheduling::Disabled => NodeScheduling::Disabled,
        Scheduling::Draining => NodeScheduling::Draining,
    }
}

pub(super) fn taint(model::Taint { key, value, effect }: &model::Taint) -> Taint {
    let effect = match effect {
        Effect::NoSchedule => TaintEffect::NoSchedule,
        Effect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        Effect::NoExecute => TaintEffect::NoExecute,
    };
    Taint { key: key.clone(), value: value.clone(), effect }
}

pub(super) const fn effect(of: TaintEffect) -> Effect {
    match of {
        TaintEffect::NoSchedule => Effect::NoSchedule,
        TaintEffect::PreferNoSchedule => Effect::PreferNoSchedule,
        TaintEffect::NoExecute => Effect::NoExecute,
    }
}

/// Converts a change of a node from the wire.
#[must_use]
pub fn node_change(patch: NodePatch) -> NodeChange {
    let NodePatch { labels, taints, removed_taints, scheduling } = patch;
    let taint = |Taint { key, value, effect: of }| model::Taint { key, value, effect: effect(of) };
    let removed = |TaintKey { key, effect: of }| (key, of.map(effect));
    NodeChange {
        labels,
        replaces_labels: false,
        taints: taints.into_iter().map(taint).collect(),
        removed_taints: removed_taints.into_iter().map(removed).collect(),
        scheduling: scheduling.map(|scheduling| match scheduling {
            NodeScheduling::Enabled => Scheduling::Enabled,
            NodeScheduling::Disabled => Scheduling::Disabled,
            NodeScheduling::Draining => Scheduling::Draining,
        }),
    }
}

/// Converts a simulated node to add from the wire.
#[must_use]
pub fn new_node(node: SimulatedNode) -> NewNode {
    let SimulatedNode { name, more, gpus, gpu_memory_bytes, cpu_millis, memory_bytes, labels } =
        node;
    NewNode { name, more, gpus, gpu_memory_bytes, cpu_millis, memory_bytes, labels }
}

/// Converts an outage to the wire.
pub fn outage(outage: &engine::Outage) -> Outage {
    match outage {
        engine::Outage::Silent { who, why, since } => Outage {
            kind: OutageKind::Silent,
            message: format!("{who} does not answer: {why}"),
            since: (*since).into(),
        },
        engine::Outage::DiskFull { folder, free, kept, stops_runs, since } => {
            let (free, kept) = match free.bytes < kept.bytes {
                true => (format_bytes(free.bytes), format_bytes(kept.bytes)),
                false => (format!("{} files", free.files), kept.files.to_string()),
            };
            let least = match stops_runs {
                true => format!("{kept} are kept for the server"),
                false => format!("{kept} have to be"),
            };
            let message = format!("the disk of {folder} is almost full: {free} were free, {least}");
            Outage { kind: OutageKind::DiskFull, message, since: (*since).into() }
        }
        engine::Outage::DatabaseFull { database, since } => Outage {
            kind: OutageKind::DiskFull,
            message: format!("the disk that holds {database} is full"),
            since: (*since).into(),
        },
    }
}

/// Converts a folder with files that are still to be deleted to the wire.
pub fn leftover(left: engine::Leftover) -> Leftover {
    let engine::Leftover { folder, entries, why } = left;
    Leftover { folder: folder.display().to_string(), entries, message: why }
}

/// An outage as a line for people.
pub fn notice(outage: &engine::Outage) -> String {
    let Outage { message, since, .. } = self::outage(outage);
    match outage {
        engine::Outage::Silent { .. } => {
            format!(
                "{message}. States of workloads are those of {since}; they go on when it is back"
            )
        }
        engine::Outage::DiskFull { stops_runs: true, .. } => format!(
            "{message}. The workload that grows most is stopped before these are touched; delete \
             workloads, or free some space"
        ),
        engine::Outage::DiskFull { stops_runs: false, .. } => format!(
            "{message}. Without space containers and the server cannot write; delete workloads, \
             or free some space"
        ),
        engine::Outage::DatabaseFull { .. } => {
            format!("{message}. Workloads go on, and nothing can be changed; free some space")
        }
    }
}

fn conditions(view: &NodeView, context: &Context) -> Vec<NodeStatusConditionDetails> {
    let condition = |kind: &str, reason: &str, message: String| NodeStatusConditionDetails {
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        message,
        status: "True".to_owned(),
    };
    let ready = match &context.outage {
        None => condition("Ready", "Ready", "the server is here".to_owned()),
        Some(outage) if outage.is_of_disk() => {
            condition("DiskPressure", "DiskFull", notice(outage))
        }
        // As Kubernetes reports a node whose kubelet is silent.
        Some(outage) => NodeStatusConditionDetails {
            status: "Unknown".to_owned(),
            ..condition("Ready", "RuntimeDown", notice(outage))
        },
    };
    let fault = |fault: GpuFault| {
        let message = format!("GPU {} is {}", fault.gpu, fault.message);
        condition(&fault.name, &fault.code, message)
    };
    [ready].into_iter().chain(gpu_faults(view).map(fault)).collect()
}

/// The GPUs that are out of service.
fn gpu_faults(view: &NodeView) -> impl Iterator<Item = GpuFault> {
    view.gpu_faults.iter().map(|(gpu, fault)| gpu_fault(*gpu, fault))
}

fn gpu_fault(gpu: u32, fault: &view::GpuFault) -> GpuFault {
    GpuFault {
        gpu,
        code: fault.code().code.to_owned(),
        name: fault.code().name.to_owned(),
        message: fault.to_string(),
    }
}

/// A GPU, with those of its pods whose project the caller may see.
pub fn gpu(of: &GpuView<'_>, all: &View, context: &Context, is_seen: impl Fn(u64) -> bool) -> Gpu {
    let GpuView { node, index, uuid, gpu_type, simulated, pool, memory_bytes, .. } = *of;
    Gpu {
        id: format!("{node}/{index}"),
        node_name: node.to_owned(),
        node_pool: pool.to_owned(),
        index,
        uuid: uuid.to_owned(),
        gpu_type: match of.instance {
            // Name as in the driver.
            Some(instance) => format!("{gpu_type} MIG {}", instance.profile),
            None => gpu_type.to_owned(),
        },
        simulated,
        memory_bytes,
        allocated: Millis(of.used_millis),
        fault: of.fault.map(|fault| gpu_fault(index, fault)),
        fractions: Some(fraction_limit(
            &context.fractions.of(simulated).in_pool(of.fractions),
            of.time_slicing,
        )),
        pods: of.pods.iter().filter_map(|pod| gpu_pod(pod, all, &is_seen)).collect(),
    }
}

fn gpu_pod(held: &view::GpuPod, all: &View, is_seen: impl Fn(u64) -> bool) -> Option<GpuPod> {
    let id = &held.workload_id;
    let own = all.workloads.get(id).or_else(|| all.revisions.get(id))?;
    let pod = own.pods.iter().find(|pod| pod.id == held.pod_id)?;
    // A replica is shown as a pod of its inference.
    let known = own.spec.revision.and_then(|revision| all.workloads.get(&revision.of));
    let known = known.unwrap_or(own);
    is_seen(own.project_id).then(|| GpuPod {
        id: held.pod_id.to_string(),
        name: pod.name.clone(),
        workload_id: known.id.to_string(),
        workload_name: known.spec.name.clone(),
        project_id: own.project_id.to_string(),
        share: Millis(held.millis),
    })
}

fn used(view: &NodeView) -> Vec<Millis> {
    view.gpu_used_millis.iter().map(|millis| Millis(*millis)).collect()
}

fn mig_instances(view: &NodeView) -> Vec<MigInstance> {
    let instance = |(index, gpu): (u32, &NodeGpu)| {
        let of = gpu.instance.as_ref()?;
        Some(MigInstance {
            index,
            gpu: of.gpu,
            profile: of.profile.clone(),
            share: Millis(gpu.capacity_millis()),
            in_use: view.gpu_used_millis.get(index as usize).is_some_and(|&used| used > 0),
        })
    };
    (0..).zip(&view.spec.gpus).filter_map(instance).collect()
}

/// Short form of a node.
pub fn node_status(view: &NodeView, context: &Context) -> NodeStatus {
    let has_gpus = !view.gpu_memory_bytes.is_empty();
    NodeStatus {
        ready: context.outage.is_none(),
        scheduling: scheduling(view.scheduling),
        taints: view.taints.iter().map(taint).collect(),
        labels: view.labels.clone(),
        name: view.name.clone(),
        pool: view.pool.clone(),
        gpu_type: view.gpu_type.clone(),
        simulated: view.simulated,
        gpu_memory_bytes: view.gpu_memory_bytes.clone(),
        gpu_used: used(view),
        gpu_faults: gpu_faults(view).collect(),
        mig_instances: mig_instances(view),
        cpu_millis: view.capacity.cpu_millis,
        cpu_used_millis: view.used.cpu_millis,
        memory_bytes: view.capacity.memory_bytes,
        memory_used_bytes: view.used.memory_bytes,
        fractions: has_gpus.then(|| fractions_of_node(view, context)),
    }
}

/// Enforcement of GPU fractions on a node.
pub(super) fn fractions_on(node: &NodeView, context: &Context) -> FractionLimit {
    let kept = context.fractions.of(node.simulated).in_pool(node.fractions);
    fraction_limit(&kept, node.time_slicing)
}

/// Enforcement of GPU fractions on a node, for any run there.
fn fractions_of_node(node: &NodeView, context: &Context) -> FractionLimit {
    let limit = fractions_on(node, context);
    let has_limit = limit.enforcement != engine::Enforcement::None.name();
    let only =
        (node.simulated && has_limit).then_some(engine::FractionLimit::WITH_SIMULATED_DRIVER);
    let all = limit.why.iter().map(String::as_str).chain(only).collect::<Vec<_>>();
    FractionLimit { why: (!all.is_empty()).then(|| all.join("; ")), ..limit }
}

/// Enforcement of a share of a GPU on a node, with its guaranteed and maximum compute time.
pub(super) fn share_on(node: &NodeView, millis: u64, context: &Context) -> FractionLimit {
    let kept = context.fractions.of(node.simulated).in_pool(node.fractions);
    let compute = kept.time_slicing(node.time_slicing).of_share(millis);
    FractionLimit {
        compute_request: compute.map(|(request, _)| Millis(request)),
        compute_limit: compute.map(|(_, limit)| Millis(limit)),
        ..fraction_limit(&kept, node.time_slicing)
    }
}

/// Enforcement of GPU fractions with the time slicing of a node pool; `None` = default of the
/// server.
pub(super) fn fraction_limit(
    limit: &engine::FractionLimit,
    of_pool: Option<TimeSlicing>,
) -> FractionLimit {
    let engine::FractionLimit { level, mechanism, why, .. } = limit;
    FractionLimit {
        enforcement: level.name().to_owned(),
        mechanism: mechanism.name().to_owned(),
        meaning: mechanism.meaning().to_owned(),
        why: Some(why.clone()).filter(|why| !why.is_empty()),
        time_slicing: limit.time_slicing(of_pool).name().to_owned(),
        time_slicing_meaning: limit.time_slicing_meaning(of_pool).to_owned(),
        compute_request: None,
        compute_limit: None,
    }
}

impl Row<crate::Listed> for NodeView {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("name", Type::Text),
        ("status", Type::Text),
        ("nodePool", Type::Text),
        ("gpuType", Type::Text),
        ("gpuCount", Type::Number),
        ("createdAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "gpuType"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "name" => Scalar::text(self.name.as_str()),
            "status" => Scalar::text(status(self, true)),
            "nodePool" => Scalar::text(self.pool.as_str()),
            "gpuType" => Scalar::text(self.gpu_type.as_str()),
            "gpuCount" => Scalar::count(self.gpu_memory_bytes.len() as u64),
            "createdAt" => Scalar::time(self.created_at),
            _ => Scalar::Absent,
        }
    }
}

impl Row<crate::Listed> for GpuView<'_> {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("nodeName", Type::Text),
        ("nodePool", Type::Text),
        ("index", Type::Number),
        ("uuid", Type::Text),
        ("gpuType", Type::Text),
        ("memoryBytes", Type::Number),
        ("allocated", Type::Number),
    ];
    const SEARCHED: &'static [&'static str] = &["nodeName", "uuid", "gpuType"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(format!("{}/{}", self.node, self.index)),
            "nodeName" => Scalar::text(self.node),
            "nodePool" => Scalar::text(self.pool),
            "index" => Scalar::count(self.index.into()),
            "uuid" => Scalar::text(self.uuid),
            "gpuType" => Scalar::text(self.gpu_type),
            "memoryBytes" => Scalar::count(self.memory_bytes),
            "allocated" => Scalar::Number(self.used_millis),
            _ => Scalar::Absent,
        }
    }
}
