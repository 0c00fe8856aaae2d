//! Permissions that the server needs in a cluster. Owns: their one list, from which the role of the
//! manifests, the check and the guide follow.

use kube_api::{Rule, Verb};

/// Verbs on resources of the core group, in all namespaces.
pub(crate) struct Right {
    pub(crate) resources: &'static [&'static str],
    pub(crate) verbs: &'static [Verb],
}

/// All permissions.
pub(crate) const RIGHTS: [Right; 5] = [
    Right { resources: &["nodes"], verbs: &[Verb::List, Verb::Watch] },
    Right { resources: &["pods"], verbs: &[Verb::Get, Verb::List, Verb::Watch] },
    Right { resources: &["pods/binding", "pods/eviction"], verbs: &[Verb::Create] },
    Right { resources: &["pods/status"], verbs: &[Verb::Patch] },
    Right { resources: &["events"], verbs: &[Verb::Create] },
];

/// Each permission by itself.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    RIGHTS.iter().flat_map(|right| {
        right.resources.iter().flat_map(|resource| {
            right.verbs.iter().map(|&verb| Rule {
                verb,
                group: String::new(),
                resource: (*resource).to_owned(),
                namespace: None,
            })
        })
    })
}
