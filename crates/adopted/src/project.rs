//! The project of a pod, and the reasons that hold a pod before it is a workload.

use reasons::Code;
use spec::{AdoptedPod, Hold, PlacementReport};
use view::codes::{FIELD_NOT_SUPPORTED, NO_PROJECT};

/// Prefix of the namespace of a project: `runai-<project>`.
const NAMESPACE_PREFIX: &str = "runai-";

/// The reason that holds a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Code of the reason.
    pub code: Code,
    /// The sentence.
    pub message: String,
}

impl Held {
    /// The reason as the cluster shows it.
    #[must_use]
    pub fn report(&self) -> PlacementReport {
        PlacementReport { code: self.code.code.to_owned(), message: self.message.clone() }
    }
}

/// The reason of a pod with a field that is not supported.
#[must_use]
pub fn held_by_field(Hold { field, why }: &Hold) -> Held {
    let message = format!("{field} {why}; the pod is not placed until it is made without that");
    Held { code: FIELD_NOT_SUPPORTED, message }
}

/// The project that is charged for a pod; `find` returns the project of a name. A label counts only
/// in a namespace of the project that it names, so that the users of one namespace cannot use the
/// quota of another.
///
/// # Errors
/// The missing project, or the label that does not count.
pub fn project_of<P>(pod: &AdoptedPod, find: impl Fn(&str) -> Option<P>) -> Result<P, Held> {
    let held = |message: String| Held { code: NO_PROJECT, message };
    let namespace = pod.namespace.as_str();
    let bare = namespace.strip_prefix(NAMESPACE_PREFIX);
    if let Some(bare) = bare.filter(|bare| find(bare).is_some() && find(namespace).is_some()) {
        return Err(held(format!(
            "namespace {namespace} is one of project {bare} and of project {namespace}; delete one \
             of these projects, or make the pod in namespace {bare}"
        )));
    }
    let Some((label, project)) = &pod.project else {
        let found = bare.and_then(&find).or_else(|| find(namespace));
        return found.ok_or_else(|| {
            held(format!(
                "no project has namespace {namespace}: a project has the namespaces NAME and \
                 {NAMESPACE_PREFIX}NAME; make one with `elastane project create {}`",
                bare.unwrap_or(namespace)
            ))
        });
    };
    let Some(found) = find(project) else {
        return Err(held(format!(
            "label {label} names project {project}, which does not exist; make it with `elastane \
             project create {project}`"
        )));
    };
    if namespace != project && bare != Some(project) {
        return Err(held(format!(
            "label {label} names project {project}, whose namespaces are {project} and \
             {NAMESPACE_PREFIX}{project}; it does not count in namespace {namespace}"
        )));
    }
    Ok(found)
}
