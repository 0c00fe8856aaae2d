//! Objects that install the server in a cluster. Owns: their text, which `kubectl` applies and
//! deletes.

use spec::Priority;

use crate::rights::RIGHTS;

const TEMPLATE: &str = include_str!("manifests.yaml");

const NAMESPACE: &str = "apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
  labels:
    pod-security.kubernetes.io/enforce: restricted
---
";

/// Settings of the manifests.
#[derive(Debug, Clone)]
pub struct ManifestOptions {
    /// Namespace of the server.
    pub namespace: String,
    /// Image of the server.
    pub image: String,
    /// Names that pods give to this scheduler.
    pub schedulers: Vec<String>,
    /// True if the priority classes of Elastane are made for the whole cluster.
    pub priority_classes: bool,
}

/// The namespace that the manifests make. Another one exists, and may have other objects.
pub const OWN_NAMESPACE: &str = "elastane";

/// The manifests, as documents of YAML.
#[must_use]
pub fn manifests(options: &ManifestOptions) -> String {
    let ManifestOptions { namespace, image, schedulers, priority_classes } = options;
    let classes = Priority::all().filter(|_| *priority_classes);
    let priorities: Vec<String> = classes.map(|class| of_priority(&class)).collect();
    let own_namespace = if namespace == OWN_NAMESPACE { NAMESPACE } else { "" };
    TEMPLATE
        .replace("{own_namespace}", own_namespace)
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
        let group = right.group;
        format!("- apiGroups: [\"{group}\"]\n  resources: [{resources}]\n  verbs: [{verbs}]\n")
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
