//! Warnings about a submission that was accepted. Owns: nodes and MIG profiles that do not exist.
//! Does not know about: the fit of a request, which the scheduler judges.

use std::collections::BTreeSet;

use model::{Operator, Requirement};
use spec::GpuRequest;
use view::{View, WorkloadView};

/// Maximum number of nodes that are named.
const NAMED_MAX: usize = 5;

/// Warnings about a workload that was accepted, after that of the scheduler.
pub fn warnings(of: &WorkloadView, view: &View, scheduler: Option<String>) -> Vec<String> {
    let labels = unknown_labels(of, view);
    let unknown =
        unknown_nodes(of, view).into_iter().chain(labels).chain(unknown_profiles(of, view));
    scheduler.into_iter().chain(unknown).collect()
}

/// Text about nodes that it stays away from and that do not exist; a workload that asks for such a
/// node waits, and has a reason for it.
fn unknown_nodes(of: &WorkloadView, view: &View) -> Option<String> {
    let terms = of.spec.sets().flat_map(|set| &set.pod.place.affinity).flatten();
    let named = terms.filter(|requirement| requirement.key == model::HOST_LABEL);
    let excluded = named.filter_map(|requirement| match &requirement.operator {
        Operator::NotIn(names) => Some(names),
        _ => None,
    });
    let excluded: BTreeSet<&String> = excluded.flatten().collect();
    if excluded.is_empty() {
        return None;
    }
    let there: BTreeSet<&String> = view.nodes.iter().map(|node| &node.name).collect();
    let unknown = excluded.difference(&there).take(NAMED_MAX);
    let unknown: Vec<_> = unknown.map(|name| units::shown(name)).collect();
    (!unknown.is_empty()).then(|| {
        let (verb, plural) = if unknown.len() == 1 { ("is", "") } else { ("are", "s") };
        format!(
            "there {verb} no node{plural} `{}` to exclude; `runai node list` shows the nodes",
            unknown.join("`, `")
        )
    })
}

/// Text about labels by which it stays away from nodes and that no node has.
fn unknown_labels(of: &WorkloadView, view: &View) -> Option<String> {
    let is_there = |key: &String| view.nodes.iter().any(|node| node.labels.contains_key(key));
    let terms = of.spec.sets().flat_map(|set| &set.pod.place.affinity).flatten();
    let excludes = |of: &&Requirement| matches!(of.operator, Operator::NotIn(_));
    let excluding = terms.filter(excludes).map(|requirement| &requirement.key);
    // Each node has the label of its name.
    let unknown = excluding.filter(|key| **key != model::HOST_LABEL && !is_there(key));
    let unknown: BTreeSet<_> = unknown.map(|key| units::shown(key)).collect();
    let unknown: Vec<_> = unknown.into_iter().take(NAMED_MAX).collect();
    (!unknown.is_empty()).then(|| {
        let plural = if unknown.len() == 1 { "" } else { "s" };
        format!(
            "no node has the label{plural} `{}` by which nodes are excluded; the label of their \
             names is `{}`",
            unknown.join("`, `"),
            model::HOST_LABEL
        )
    })
}

/// Text about MIG profiles that it asks for and that no node has.
fn unknown_profiles(of: &WorkloadView, view: &View) -> Option<String> {
    let gpus = view.nodes.iter().flat_map(|node| &node.spec.gpus);
    let here: BTreeSet<String> =
        gpus.filter_map(|gpu| Some(gpu.mig?.profile.to_string())).collect();
    let asked = of.spec.sets().filter_map(|set| match &set.pod.gpu {
        GpuRequest::Mig(wanted) => Some(wanted.iter().map(|(profile, _)| profile.to_string())),
        _ => None,
    });
    let unknown: BTreeSet<String> = asked.flatten().filter(|one| !here.contains(one)).collect();
    (!unknown.is_empty()).then(|| {
        let unknown = Vec::from_iter(unknown).join(", ");
        match here.is_empty() {
            true => format!("no GPU here is divided into MIG instances, such as {unknown}"),
            false => format!(
                "no GPU here has a MIG instance {unknown}; there are {}",
                Vec::from_iter(here).join(", ")
            ),
        }
    })
}
