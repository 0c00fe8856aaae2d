//! What the pods of a workload demand of nodes, in the scheduler's terms. Refuses to know: which
//! nodes there are.

use std::collections::BTreeMap;

use model::{Constraints, PodPreference, PodTerm};
use uuid::Uuid;

use crate::spec::Place;

/// The label by which the pods of a workload find each other.
const WORKLOAD_LABEL: &str = "elastane/workload";
/// How much better a domain is where others of the workload are.
const NEAR_WEIGHT: i64 = 100;

/// What pods with this place in a workload with this id demand.
pub(crate) fn constraints(place: &Place, workload: Uuid) -> Constraints {
    let mut constraints = Constraints {
        required: place.affinity.clone(),
        tolerations: place.tolerations.clone(),
        ..Constraints::default()
    };
    if let Some(near) = &place.near {
        let labels = BTreeMap::from([(WORKLOAD_LABEL.to_owned(), workload.to_string())]);
        let term = PodTerm { labels: labels.clone(), topology_key: near.key.clone() };
        constraints.labels = labels;
        if near.required {
            constraints.pod_affinity.push(term);
        } else {
            constraints.pod_preferences.push(PodPreference { weight: NEAR_WEIGHT, term });
        }
    }
    constraints
}
