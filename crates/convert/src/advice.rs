//! Advice for one caller. Owns: the rights that it requires, commands that depend on the existing
//! nodes, and who else may follow it. Does not know about: roles.

use std::collections::BTreeMap;

use model::Taint;
use reasons::WorkloadRef;
use reasons::diagnosis::{Advice, Change, HowTo, Raise};
use spec::NodeSpec;
use units::{format_bytes, format_millis, parse_bytes};
use uuid::Uuid;
use view::{OrgUnit, View, WorkloadView};

use super::advised_steps::{is_simulated, new_names};

/// A right that following an advice requires.
#[derive(Debug, Clone, Copy)]
pub enum Requirement<'v> {
    /// Delete the waiting workload, and submit it again.
    Resubmit(&'v WorkloadView),
    /// Update the waiting workload.
    Update(&'v WorkloadView),
    /// Delete another workload.
    Delete(&'v WorkloadView),
    /// Change a project.
    Project(u64),
    /// Change a department.
    Department(u64),
    /// Change nodes.
    Nodes,
}

/// Returns true if a caller has a right.
pub type May<'a> = dyn Fn(Requirement<'_>) -> bool + 'a;

/// Commands for an advice; without the required right, its owner.
pub(crate) fn how_to(
    advice: &Advice,
    view: &View,
    find: &dyn Fn(&WorkloadRef) -> Option<Uuid>,
    may: &May<'_>,
) -> HowTo {
    let workload = |of: &WorkloadRef| view.workloads.get(&find(of)?).map(AsRef::as_ref);
    let requirements = requirements(advice, view, &workload);
    let is_denied = |one: &&Requirement<'_>| one.is_of_kubernetes(view) || !may(**one);
    match requirements.iter().find(is_denied) {
        Some(requirement) => HowTo { commands: Vec::new(), ask: Some(who_may(*requirement, view)) },
        None => HowTo { commands: commands(advice, view), ask: None },
    }
}

impl Requirement<'_> {
    /// True if only Kubernetes can change its object, by the owner of the pods.
    const fn is_of_kubernetes(&self, view: &View) -> bool {
        match self {
            Self::Resubmit(_) | Self::Update(_) | Self::Delete(_) => view.is_kubernetes,
            Self::Project(_) | Self::Department(_) | Self::Nodes => false,
        }
    }
}

fn requirements<'v>(
    advice: &Advice,
    view: &'v View,
    workload: &dyn Fn(&WorkloadRef) -> Option<&'v WorkloadView>,
) -> Vec<Requirement<'v>> {
    let of_unit = |raise: &Raise| {
        let Raise { unit, is_project, .. } = raise;
        if *is_project {
            let mut projects = view.projects.values();
            projects.find(|one| one.unit.name == *unit).map(|one| Requirement::Project(one.unit.id))
        } else {
            let name = unit.strip_prefix(model::DEPARTMENT_PREFIX).unwrap_or(unit);
            let mut departments = view.departments.values();
            departments.find(|one| one.name == name).map(|one| Requirement::Department(one.id))
        }
    };
    match &advice.change {
        Change::Wait { .. } => Vec::new(),
        Change::Quota(raises) | Change::Limit(raises) => {
            raises.iter().filter_map(of_unit).collect()
        }
        Change::Uncordon { .. }
        | Change::Untaint { .. }
        | Change::Label { .. }
        | Change::Nodes { .. } => {
            vec![Requirement::Nodes]
        }
        Change::End { workload: other } if advice.replaces_own_revision() => {
            workload(other).map(Requirement::Update).into_iter().collect()
        }
        Change::End { workload: other } => {
            workload(other).map(Requirement::Delete).into_iter().collect()
        }
        Change::WithoutAffinity { .. } => {
            let resubmitted = workload(&advice.workload).into_iter();
            resubmitted
                .flat_map(|one| of_node_types(one, view).chain([Requirement::Resubmit(one)]))
                .collect()
        }
        Change::Preemptible | Change::Priority { .. } | Change::Ungate => {
            workload(&advice.workload).map(Requirement::Update).into_iter().collect()
        }
        _ => workload(&advice.workload).map(Requirement::Resubmit).into_iter().collect(),
    }
}

/// The units that give each workload of this kind the types of nodes that it may be on: another
/// submission has them again.
fn of_node_types<'v>(
    workload: &'v WorkloadView,
    view: &'v View,
) -> impl Iterator<Item = Requirement<'v>> {
    let project = view.projects.get(&workload.project_id);
    let department = view.departments.get(&workload.department_id);
    let sets_types = |unit: &OrgUnit| !unit.node_types.of(workload.spec.kind).is_empty();
    let department = department.filter(|one| sets_types(one));
    let project = project.map(|one| &one.unit).filter(|one| sets_types(one));
    let department = department.map(|one| Requirement::Department(one.id));
    department.into_iter().chain(project.map(|one| Requirement::Project(one.id)))
}

fn who_may(requirement: Requirement<'_>, view: &View) -> String {
    match requirement {
        Requirement::Resubmit(workload)
        | Requirement::Update(workload)
        | Requirement::Delete(workload) => {
            let WorkloadView { project_name, spec, .. } = workload;
            match &*spec.submitted_by {
                owner if view.is_kubernetes => format!("the owner of {owner} in Kubernetes"),
                "" => format!("an administrator of project {project_name}"),
                owner => {
                    format!("its owner {owner}, or an administrator of project {project_name}")
                }
            }
        }
        Requirement::Project(id) => {
            let name = view.projects.get(&id).map_or("", |project| &project.unit.name);
            format!("an administrator of project {name}")
        }
        Requirement::Department(id) => {
            let name = view.departments.get(&id).map_or("", |department| &department.name);
            format!("an administrator of department {name}")
        }
        Requirement::Nodes => "an administrator of the cluster".to_owned(),
    }
}

fn commands(advice: &Advice, view: &View) -> Vec<String> {
    let (like, count) = match &advice.change {
        Change::Nodes { like, count } => (like, count),
        change if view.is_kubernetes => {
            return kubectl(change).map_or_else(|| advice.commands(), |command| vec![command]);
        }
        _ => return advice.commands(),
    };
    let node = view.nodes.iter().find(|node| node.name == *like);
    let Some(node) = node.filter(|_| is_simulated(view)) else { return Vec::new() };
    let Some(flags) = simulated_like(&node.spec, &node.labels) else {
        return Vec::new();
    };
    let names: Vec<String> = new_names(view, like, *count).collect();
    let tainted = |name: &String| {
        let name = name.clone();
        node.taints.iter().map(move |taint| format!("elastane node taint {name} {taint}"))
    };
    // All at once: a decision in between could give the first node to others.
    let add = format!("elastane simulate node-add {}{flags}", names.join(" "));
    std::iter::once(add).chain(names.iter().flat_map(tainted)).collect()
}

/// The command for a change of a node of Kubernetes; `None` for other changes.
fn kubectl(change: &Change) -> Option<String> {
    Some(match change {
        Change::Uncordon { node } => format!("kubectl uncordon {node}"),
        Change::Untaint { node, taint: Taint { key, effect, .. } } => {
            format!("kubectl taint nodes {node} {key}:{effect}-")
        }
        Change::Label { node, key, value } => format!("kubectl label nodes {node} {key}={value}"),
        _ => return None,
    })
}

/// The flags that add a simulated node like this; `None` if no flags describe its GPUs.
fn simulated_like(node: &NodeSpec, labels: &BTreeMap<String, String>) -> Option<String> {
    if node.gpus.iter().any(|gpu| gpu.instance.is_some()) {
        return None;
    }
    let memories: Vec<u64> = node.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
    simulated_node_flags(&memories, (node.cpu_millis, node.memory_bytes), labels)
}

/// The flags of `elastane simulate node-add` for a node with GPUs of these memories in bytes, these
/// cores in thousandths and this memory in bytes; `None` if the GPUs differ.
#[must_use]
pub fn simulated_node_flags(
    gpu_memory_bytes: &[u64],
    (cpu_millis, memory_bytes): (u64, u64),
    labels: &BTreeMap<String, String>,
) -> Option<String> {
    let exact = |bytes: u64| {
        let short = format_bytes(bytes);
        let is_exact = parse_bytes(&short).is_ok_and(|parsed| parsed == bytes);
        if is_exact { short } else { bytes.to_string() }
    };
    let first = gpu_memory_bytes.first();
    if gpu_memory_bytes.iter().any(|bytes| Some(bytes) != first) {
        return None;
    }
    let gpu_memory =
        first.map_or_else(String::new, |bytes| format!(" --gpu-memory {}", exact(*bytes)));
    let labels = labels.iter().filter(|(key, _)| *key != model::HOST_LABEL);
    let labels: String = labels.map(|(key, value)| format!(" --label {key}={value}")).collect();
    Some(format!(
        " --gpus {}{gpu_memory} --cpu {} --memory {}{labels}",
        gpu_memory_bytes.len(),
        format_millis(cpu_millis),
        exact(memory_bytes)
    ))
}
