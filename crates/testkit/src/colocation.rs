//! Checks of pod affinity: pods with anti-affinity are apart, and new pods with affinity are
//! together with others. Owns: those invariants, computed from labels and places alone.

use model::{Cluster, Node, PodId, PodTerm};

/// Checks who came somewhere in this decision. Others may be where they were, whatever the labels
/// are now.
///
/// # Panics
/// When a pod was placed with pods that it must not be with, or without those that it must be with.
pub(crate) fn check(before: &Cluster, after: &Cluster, stopped_any: bool) {
    for (id, _) in after.pods().iter() {
        let place = |cluster: &Cluster| {
            let pod = cluster.pods().get(id)?;
            pod.binding.effective().map(|place| place.node)
        };
        let came = place(after).is_some() && place(before) != place(after);
        if came {
            newcomer(after, id, stopped_any);
        }
    }
}

fn newcomer(cluster: &Cluster, id: PodId, stopped_any: bool) {
    let own = constraints(cluster, id);
    let name = &cluster.workload_of(id).spec.name;
    let others = || cluster.pods().ids().filter(|&other| other != id);
    for other in others() {
        let theirs = constraints(cluster, other);
        let avoids = |of: &model::Constraints, to: &model::Constraints| {
            of.pod_anti_affinity
                .iter()
                .any(|term| is_about(term, to) && together(cluster, id, other, &term.topology_key))
        };
        assert!(!avoids(own, theirs), "{name} came to those that it must not be with");
        assert!(!avoids(theirs, own), "{name} came to those that must not be with it");
    }
    // The pods that it joined may have been stopped afterwards, or, if they came in the same
    // decision, have lost their place again: then they wait.
    for term in own.pod_affinity.iter().filter(|_| !stopped_any) {
        let meets = |other| {
            is_about(term, constraints(cluster, other))
                && together(cluster, id, other, &term.topology_key)
        };
        let placed = |other: &PodId| cluster.pods()[*other].binding.effective().is_some();
        let mut rest = others().filter(|&other| is_about(term, constraints(cluster, other)));
        let first = is_about(term, own) && !rest.any(|other| placed(&other));
        let waits = |other: PodId| {
            cluster.pods()[other].wants
                && !placed(&other)
                && is_about(term, constraints(cluster, other))
        };
        let fine = first || others().any(meets) || others().any(waits);
        assert!(fine, "{name} is placed without a pod that it must be with");
    }
}

fn constraints(cluster: &Cluster, pod: PodId) -> &model::Constraints {
    let set = cluster.pods()[pod].set as usize;
    &cluster.workload_of(pod).spec.pod_sets[set].constraints
}

fn is_about(term: &PodTerm, of: &model::Constraints) -> bool {
    term.labels.iter().all(|(key, value)| of.labels.get(key) == Some(value))
}

fn together(cluster: &Cluster, one: PodId, other: PodId, key: &str) -> bool {
    let domain = |pod: PodId| {
        let node = &cluster.nodes()[cluster.pods()[pod].binding.effective()?.node];
        Some(value(node, key)?.to_owned())
    };
    domain(one).is_some_and(|own| domain(other) == Some(own))
}

fn value<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    if key == "hostname" { Some(&node.name) } else { node.labels.get(key).map(String::as_str) }
}
