//! Objects that install the server in a cluster. Owns: their text, which `kubectl` applies and
//! deletes.

use spec::Priority;

use crate::rights::RIGHTS;

const TEMPLATE: &str = include_str!("manifests.yaml");

/// Settings of the manifests.
#[derive(Debug, Clone)]
pub struct ManifestOptions {
    /// Namespace of the server.
    pub namespace: String,
    /// Image of the server.
    pub image: String,
    /// Names that pods give to this scheduler.
    pub schedulers: Vec<String>,
}

/// The manifests, as documents of YAML.
#[must_use]
pub fn manifests(options: &ManifestOptions) -> String {
    let ManifestOptions { namespace, image, schedulers } = options;
    let priorities: Vec<String> = Priority::all().map(|class| of_priority(&class)).collect();
    TEMPLATE
        .replace("{namespace}", namespace)
        .replace("{image}", image)
        .replace("{schedulers}", &schedulers.join(","))
        .replace("{rules}", &rules())
        .replace("{priorities}\n", &priorities.concat())
}

/// The rules of the role.
fn rules() -> String {
    let quoted = |names: Vec<&str>| {
        let names: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
        names.join(", ")
    };
    let rules = RIGHTS.iter().map(|right| {
        let verbs = quoted(right.verbs.iter().map(|verb| verb.name()).collect());
        let resources = quoted(right.resources.to_vec());
        format!("- apiGroups: [\"\"]\n  resources: [{resources}]\n  verbs: [{verbs}]\n")
    });
    rules.collect()
}

/// A priority class of Elastane, so that pods can name it. Another scheduler takes its value too.
fn of_priority(Priority { value, class }: &Priority) -> String {
    format!(
        "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: {class}\n\
         value: {value}\n"
    )
}
