//! Permissions that the server needs in a cluster. Owns: their one list, from which the role of the
//! manifests, the check and the guide follow.

use kube_api::{Rule, Verb};

/// Verbs on resources of an API group, in all namespaces.
pub(crate) struct Right {
    /// The group, empty for the core.
    pub(crate) group: &'static str,
    pub(crate) resources: &'static [&'static str],
    pub(crate) verbs: &'static [Verb],
}

/// All permissions.
pub(crate) const RIGHTS: [Right; 7] = [
    Right { group: "", resources: &["nodes"], verbs: &[Verb::List, Verb::Watch] },
    Right { group: "", resources: &["pods"], verbs: &[Verb::Get, Verb::List, Verb::Watch] },
    Right { group: "", resources: &["pods/binding", "pods/eviction"], verbs: &[Verb::Create] },
    Right { group: "", resources: &["pods/status"], verbs: &[Verb::Patch] },
    Right { group: "", resources: &["events"], verbs: &[Verb::Create] },
    Right { group: "batch", resources: &["jobs"], verbs: &[Verb::Get] },
    Right {
        group: "apps",
        resources: &["deployments", "replicasets", "statefulsets"],
        verbs: &[Verb::Get],
    },
];

/// Each permission by itself.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    RIGHTS.iter().flat_map(|right| {
        right.resources.iter().flat_map(|resource| {
            right.verbs.iter().map(|&verb| Rule {
                verb,
                group: right.group.to_owned(),
                resource: (*resource).to_owned(),
                namespace: None,
            })
        })
    })
}
