//! Constraints of the pods of a workload on nodes, in the scheduler's types. Does not know about:
//! the existing nodes.

use std::collections::BTreeMap;

use model::{Constraints, Operator, PodPreference, PodTerm, Requirement, WORKLOAD_LABEL};
use uuid::Uuid;

use crate::{Place, PodSet, WorkloadSpec};

/// Label with the type of a node.
pub const NODE_TYPE_LABEL: &str = "run.ai/type";
/// Preference weight of a domain with other pods of the workload.
const NEAR_WEIGHT: i64 = 100;

/// Constraints of pods with this place in a workload with this id.
fn constraints(place: &Place, workload: Uuid) -> Constraints {
    let mut constraints = Constraints {
        required: place.affinity.clone(),
        preferred: place.preferred.clone(),
        tolerations: place.tolerations.clone(),
        labels: place.labels.clone(),
        pod_affinity: place.pod_affinity.clone(),
        pod_anti_affinity: place.pod_anti_affinity.clone(),
        pod_preferences: place.pod_preferences.clone(),
        ..Constraints::default()
    };
    if let Some(near) = &place.colocation {
        let labels = BTreeMap::from([(WORKLOAD_LABEL.to_owned(), workload.to_string())]);
        let term = PodTerm { labels: labels.clone(), topology_key: near.key.clone() };
        constraints.labels.extend(labels);
        if near.required {
            constraints.pod_affinity.push(term);
        } else {
            constraints.pod_preferences.push(PodPreference { weight: NEAR_WEIGHT, term });
        }
    }
    constraints
}

/// Constraints of a pod of a set, with the pools and the node types of the workload, which has the
/// id `id`.
#[must_use]
pub fn node_constraints(spec: &WorkloadSpec, set: &PodSet, id: Uuid) -> Constraints {
    let mut demands = constraints(&set.pod.place, id);
    demands.pools.clone_from(&spec.node_pools);
    if !spec.node_types.is_empty() {
        let operator = Operator::In(spec.node_types.clone());
        let requirement = Requirement { key: NODE_TYPE_LABEL.to_owned(), operator };
        if demands.required.is_empty() {
            demands.required.push(Vec::new());
        }
        // One of the terms must hold, and the type in any case.
        demands.required.iter_mut().for_each(|term| term.push(requirement.clone()));
    }
    demands
}
