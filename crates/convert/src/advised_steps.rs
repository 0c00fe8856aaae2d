//! The steps that make an advised change on a server. Owns: the command of each and, where there is
//! one, its request. Does not know about: how the change was found, and who may make it.

use std::sync::Arc;

use api_types::{
    AdvisedChange, AdvisedRequest, NodePatch, NodeScheduling, Raise, RepairedGpus, ResourceKind,
    ResourceShare, ResourcesMemory, ResourcesNodePool, ShareRequest, SimulatedNode, TaintKey,
    Units, WorkloadName, number_from_millis,
};
use http_kit::ApiError;
use orchestrator::{Command, OrgChange, SYSTEM, Wanted};
use serde_json::{Value, json};
use spec::{NodeGpu, NodeSpec, WorkloadKind, WorkloadSpec};
use units::Instant;
use uuid::Uuid;
use view::{NodeView, View, WorkloadView};

use super::advised_spec::resubmitted;

/// Field of a question whose values are read here.
const FIELD: &str = "changes";

/// A step that makes a change, or a part of it.
#[derive(Debug, Clone)]
pub enum Made {
    /// Other shares of a project (`true`) or a department with this id.
    Share(bool, u64, Box<ShareRequest>),
    /// A change of the node of this name.
    Node(String, NodePatch),
    /// An update of the workload itself.
    Update(Uuid, WorkloadKind, Box<api_types::WorkloadSpec>),
    /// Deletion of a workload.
    Delete(Uuid, WorkloadKind),
    /// The end of a revision of the inference with the second id, so that its successor starts.
    Retire(Uuid, Uuid),
    /// A submission to the project with this id.
    Submit(u64, Box<WorkloadSpec>),
    /// A revision of the inference with the first id after that with the second one, and the update
    /// that asks for it, if that is one.
    Revise(Uuid, Uuid, Box<WorkloadSpec>, Option<Box<api_types::WorkloadSpec>>),
    /// New nodes.
    Nodes(Vec<NodeSpec>),
    /// Repair of GPUs.
    Repair(RepairedGpus),
    /// Waiting until this time.
    Wait(Instant),
}

/// The steps that make a change for a workload that waits.
///
/// # Errors
/// A value that names no object, or does not suit the workload.
pub fn steps_of(
    change: &AdvisedChange,
    workload: &WorkloadView,
    view: &View,
) -> Result<Vec<Made>, ApiError> {
    let with_change = || {
        let unfit = format!("`{}` does not request that", workload.spec.name);
        let spec = resubmitted(change, &workload.spec);
        spec.map(Box::new).ok_or_else(|| ApiError::field(FIELD, unfit))
    };
    let update = |asked: api_types::WorkloadSpec| {
        let (id, asked) = (workload.id, Box::new(asked));
        Ok(vec![match workload.revisions.last() {
            Some(newest) => Made::Revise(id, *newest, with_change()?, Some(asked)),
            None => Made::Update(id, workload.spec.kind, asked),
        }])
    };
    if let Some((node, patch)) = node_patch(change) {
        return named(view, node).map(|_| vec![Made::Node(node.to_owned(), patch)]);
    }
    match change {
        AdvisedChange::Preemptible {} => update(api_types::WorkloadSpec {
            preemptibility: Some(api_types::Preemptibility::Preemptible),
            ..Default::default()
        }),
        AdvisedChange::Priority { priority_class } => update(api_types::WorkloadSpec {
            priority_class: Some(priority_class.clone()),
            ..Default::default()
        }),
        AdvisedChange::Ungate {} => update(api_types::WorkloadSpec {
            scheduling_gates: Some(Vec::new()),
            ..Default::default()
        }),
        AdvisedChange::Wait { until } => Ok(vec![Made::Wait(until.0)]),
        AdvisedChange::End { workload: other } => ended(other, workload, view).map(|one| vec![one]),
        AdvisedChange::Quota { raises } => {
            raises.iter().map(|one| raised(one, true, view)).collect()
        }
        AdvisedChange::Limit { raises } => {
            raises.iter().map(|one| raised(one, false, view)).collect()
        }
        AdvisedChange::MoreNodes { node, nodes } => {
            let like = named(view, node)?;
            Ok(vec![Made::Nodes(
                new_names(view, node, *nodes).map(|name| alike(like, name)).collect(),
            )])
        }
        AdvisedChange::Repair { repairs } => {
            Ok(repairs.iter().cloned().map(Made::Repair).collect())
        }
        _ => {
            let spec = with_change()?;
            if let Some(newest) = workload.revisions.last() {
                return Ok(vec![Made::Revise(workload.id, *newest, spec, None)]);
            }
            let again = Made::Submit(workload.project_id, spec);
            Ok(vec![Made::Delete(workload.id, workload.spec.kind), again])
        }
    }
}

/// The change of a node, with its name; `None` for a change of something else.
fn node_patch(change: &AdvisedChange) -> Option<(&str, NodePatch)> {
    let patch = NodePatch::default();
    Some(match change {
        AdvisedChange::Uncordon { node } => {
            (node, NodePatch { scheduling: Some(NodeScheduling::Enabled), ..patch })
        }
        AdvisedChange::Untaint { node, taint } => {
            let removed = TaintKey { key: taint.key.clone(), effect: Some(taint.effect) };
            (node, NodePatch { removed_taints: vec![removed], ..patch })
        }
        AdvisedChange::Label { node, labels } => {
            let labels = labels.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
            (node, NodePatch { labels: labels.collect(), ..patch })
        }
        _ => return None,
    })
}

fn named<'v>(view: &'v View, name: &str) -> Result<&'v NodeView, ApiError> {
    let found = view.nodes.iter().map(AsRef::as_ref).find(|node: &&NodeView| node.name == name);
    found.ok_or_else(|| ApiError::field(FIELD, format!("there is no node `{name}`")))
}

/// Names of so many new nodes like one.
pub(crate) fn new_names(view: &View, like: &str, count: u32) -> impl Iterator<Item = String> {
    let is_free = move |name: &String| view.nodes.iter().all(|node| node.name != *name);
    let names = (2..).map(move |number| format!("{like}-{number}")).filter(is_free);
    names.take(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A node of this name like another one, with the labels and taints of that. A label with a
/// different value on each node is not copied.
fn alike(like: &NodeView, name: String) -> NodeSpec {
    let mut labels = like.labels.clone();
    let own = labels.iter_mut().filter(|(label, _)| model::is_host(label));
    own.for_each(|(_, value)| value.clone_from(&name));
    let gpus = like.spec.gpus.iter().enumerate();
    let gpus = gpus.map(|(number, gpu)| NodeGpu {
        uuid: format!("GPU-{name}-{number}"),
        fault: None,
        instance: gpu.instance.clone().map(|of| {
            let gpu_uuid = format!("GPU-{name}-of-{}", of.gpu);
            spec::Instance { gpu_uuid, ..of }
        }),
        ..gpu.clone()
    });
    let (gpus, taints) = (gpus.collect(), like.taints.clone());
    NodeSpec { name, gpus, labels, taints, ..NodeSpec::clone(&like.spec) }
}

/// The end of a workload for one that waits. Of another revision of the same inference only that
/// ends.
fn ended(of: &WorkloadName, waits: &WorkloadView, view: &View) -> Result<Made, ApiError> {
    let id = of.id.as_ref().and_then(|id| id.parse::<Uuid>().ok());
    let is_named =
        |one: &&Arc<WorkloadView>| one.spec.name == of.name && one.project_name == of.project_name;
    let found = match id {
        Some(id) => view.workloads.get(&id),
        None => view.workloads.values().find(is_named),
    };
    let gone =
        || ApiError::field(FIELD, format!("there is no workload {}/{}", of.project_name, of.name));
    let found: &Arc<WorkloadView> = found.ok_or_else(gone)?;
    let Some(revision) = of.revision.as_ref().filter(|_| found.id == waits.id) else {
        return Ok(Made::Delete(found.id, found.spec.kind));
    };
    let revisions = found.revisions.iter().filter_map(|id| view.revisions.get(id));
    let revision = revisions.into_iter().find(|one| one.spec.name == *revision);
    revision.map(|one| Made::Retire(one.id, found.id)).ok_or_else(gone)
}

fn raised(raise: &Raise, is_quota: bool, view: &View) -> Result<Made, ApiError> {
    let department = raise.name.strip_prefix(model::DEPARTMENT_PREFIX);
    let id = match department {
        Some(name) => view.departments.values().find(|one| one.name == name).map(|one| one.id),
        None => {
            let mut projects = view.projects.values();
            projects.find(|one| one.unit.name == raise.name).map(|one| one.unit.id)
        }
    };
    let none = |what: &str| ApiError::field(FIELD, format!("there is no {what}"));
    let id = id.ok_or_else(|| none(&format!("project or department `{}`", raise.name)))?;
    let pool = match &raise.node_pool {
        None => None,
        Some(name) => {
            let found = view.pools.iter().find(|pool| pool.name == *name);
            let found = found.ok_or_else(|| none(&format!("node pool `{name}`")))?;
            Some(ResourcesNodePool { id: found.id.clone(), name: None })
        }
    };
    let (deserved, limit) = {
        let to = match raise.resource {
            ResourceKind::Gpu => number_from_millis(raise.to),
            // Cores are in thousandths, and memory in whole units.
            ResourceKind::Cpu => raise.to.into(),
            ResourceKind::Memory => raise.to.div_ceil(Units::Mib.bytes()).into(),
        };
        if is_quota { (Some(to), None) } else { (None, Some(to)) }
    };
    let mut share = ShareRequest { node_pool: pool, ..ShareRequest::default() };
    let of = ResourceShare {
        deserved: deserved.clone(),
        limit: limit.clone(),
        over_quota_weight: None,
        deserved_from_projects: None,
    };
    match raise.resource {
        ResourceKind::Gpu => share.gpu = Some(of),
        ResourceKind::Cpu => share.cpu = Some(of),
        ResourceKind::Memory => {
            share.memory = Some(ResourcesMemory {
                deserved,
                limit,
                over_quota_weight: None,
                deserved_from_projects: None,
                units: Units::Mib,
            });
        }
    }
    Ok(Made::Share(department.is_none(), id, Box::new(share)))
}

/// True if the nodes are simulated: they are not mixed with nodes with real GPUs.
pub(super) fn is_simulated(view: &View) -> bool {
    !view.is_kubernetes && view.nodes.iter().all(|node| !node.spec.has_real_gpus())
}

/// Nodes as a request for simulated ones; `None` if it cannot express them.
fn simulated(nodes: &[NodeSpec]) -> Option<SimulatedNode> {
    let (first, more) = nodes.split_first()?;
    let memory = first.gpus.first().map(|gpu| gpu.memory_bytes);
    let is_equal = |gpu: &NodeGpu| gpu.instance.is_none() && Some(gpu.memory_bytes) == memory;
    let labels = first.labels.iter().filter(|(key, _)| *key != model::HOST_LABEL);
    let is_expressed = first.gpus.iter().all(is_equal) && first.taints.is_empty();
    is_expressed.then(|| SimulatedNode {
        name: first.name.clone(),
        more: more.iter().map(|node| node.name.clone()).collect(),
        gpus: first.gpus.len() as u64,
        gpu_memory_bytes: memory,
        cpu_millis: Some(first.cpu_millis),
        memory_bytes: Some(first.memory_bytes),
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

fn path_of(kind: WorkloadKind, id: Uuid) -> String {
    let word = match kind {
        WorkloadKind::Distributed => "distributed",
        kind => super::kind_plural(kind),
    };
    format!("/api/v1/workloads/{word}/{id}")
}

/// The request that makes a change for a workload; `None` if none does, or it takes several.
#[must_use]
pub fn request_of(
    change: &AdvisedChange,
    workload: &WorkloadView,
    view: &View,
) -> Option<AdvisedRequest> {
    let steps = steps_of(change, workload, view).ok()?;
    let [step] = &steps[..] else { return None };
    step.request(view)
}

impl Made {
    /// The command; `None` for a step that is no command.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub fn command(&self) -> Result<Option<Command>, ApiError> {
        let by = SYSTEM.to_owned();
        Ok(Some(match self {
            Self::Share(is_project, id, share) => {
                let shares = super::some_shares(std::slice::from_ref(share))?;
                let (id, change) = (*id, OrgChange { shares, ..OrgChange::default() });
                match is_project {
                    true => Command::UpdateProject { by, id, change },
                    false => Command::UpdateDepartment { by, id, change },
                }
            }
            Self::Node(node, patch) => Command::ChangeNode {
                by,
                node: node.clone(),
                change: super::node_change(patch.clone()),
            },
            Self::Update(id, _, spec) => {
                let change = super::change(api_types::WorkloadSpec::clone(spec), spec)?;
                Command::UpdateWorkload { by, id: *id, change: Box::new(change) }
            }
            Self::Delete(id, _) => Command::Delete { by, id: *id },
            Self::Retire(revision, _) => {
                let why = "another revision takes its place".to_owned();
                Command::Scale { revision: *revision, wanted: Default::default(), why }
            }
            Self::Revise(id, from, spec, _) => {
                let wanted =
                    Wanted { spec: WorkloadSpec::clone(spec), runs: Ok(()), strict: false };
                let (id, from, wanted) = (*id, *from, Box::new(wanted));
                Command::UpdateInference { by, id, from, wanted }
            }
            Self::Submit(..) | Self::Nodes(_) | Self::Repair(_) | Self::Wait(_) => return Ok(None),
        }))
    }

    /// The request; `None` if there is no such request.
    fn request(&self, view: &View) -> Option<AdvisedRequest> {
        let request = |method: &str, path: String, body: Option<Value>| {
            Some(AdvisedRequest { method: method.to_owned(), path, body })
        };
        match self {
            Self::Share(is_project, id, share) => {
                let units = if *is_project { "projects" } else { "departments" };
                let path = format!("/api/v1/org-unit/{units}/{id}/resources");
                request("PATCH", path, Some(json!([share])))
            }
            // Kubernetes changes its nodes and pods itself.
            Self::Node(..) | Self::Update(..) | Self::Delete(..) if view.is_kubernetes => None,
            Self::Node(node, patch) => {
                request("PATCH", format!("/elastane/v1/nodes/{node}"), Some(json!(patch)))
            }
            Self::Update(id, kind, spec) => {
                request("PATCH", path_of(*kind, *id), Some(json!({"spec": spec})))
            }
            Self::Delete(id, kind) => request("DELETE", path_of(*kind, *id), None),
            Self::Retire(_, id) => {
                let body = json!({"spec": {}, "recreate": true});
                request("PATCH", path_of(WorkloadKind::Inference, *id), Some(body))
            }
            Self::Nodes(nodes) => {
                let node = simulated(nodes).filter(|_| is_simulated(view))?;
                request("POST", "/elastane/v1/simulated-nodes".to_owned(), Some(json!(node)))
            }
            Self::Repair(RepairedGpus { node, gpus }) => {
                let [gpu] = gpus[..] else { return None };
                let is_simulated = |one: &NodeView| one.name == *node && one.simulated;
                view.nodes.iter().find(|one| is_simulated(one))?;
                let path = format!("/elastane/v1/nodes/{node}/gpus/{gpu}/simulated-failure");
                request("DELETE", path, None)
            }
            Self::Revise(id, _, _, asked) => {
                let body = json!({"spec": asked.as_ref()?});
                request("PATCH", path_of(WorkloadKind::Inference, *id), Some(body))
            }
            Self::Submit(..) | Self::Wait(_) => None,
        }
    }
}
