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

/// A project that may be charged for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charged<'a> {
    /// Id.
    pub id: u64,
    /// Name; the project has the namespaces `<name>` and `runai-<name>`.
    pub name: &'a str,
    /// Further namespaces.
    pub namespaces: &'a [String],
}

impl Charged<'_> {
    /// True if it has a namespace.
    #[must_use]
    pub fn has(&self, namespace: &str) -> bool {
        namespace == self.name
            || namespace.strip_prefix(NAMESPACE_PREFIX) == Some(self.name)
            || self.namespaces.iter().any(|own| own == namespace)
    }

    /// All its namespaces, for a message.
    fn all(&self) -> String {
        let own = [self.name.to_owned(), format!("{NAMESPACE_PREFIX}{}", self.name)];
        own.iter().chain(self.namespaces).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The project that is charged for a pod, of all projects. A label counts only in a namespace of the
/// project that it names, so that the users of one namespace cannot use the quota of another.
/// Without a label the project with the namespace is charged, and for a namespace of no project the
/// one with the name `default`.
///
/// # Errors
/// The missing project, or the label that does not count.
pub fn project_of<'a>(
    pod: &AdoptedPod,
    mut projects: impl Iterator<Item = Charged<'a>>,
    default: Option<&str>,
) -> Result<u64, Held> {
    let namespace = pod.namespace.as_str();
    let Some((label, named)) = &pod.project else {
        return project_of_namespace(namespace, projects, default);
    };
    let Some(found) = projects.find(|project| project.name == named) else {
        return Err(held(format!(
            "label {label} names project {named}, which does not exist; make it with `elastane \
             project create {named}`"
        )));
    };
    if !found.has(namespace) {
        return Err(held(format!(
            "label {label} names project {named}, whose namespaces are {}; it does not count in \
             namespace {namespace}, unless `elastane project update {named} --namespaces` adds that",
            found.all()
        )));
    }
    Ok(found.id)
}

fn held(message: String) -> Held {
    Held { code: NO_PROJECT, message }
}

fn project_of_namespace<'a>(
    namespace: &str,
    projects: impl Iterator<Item = Charged<'a>>,
    default: Option<&str>,
) -> Result<u64, Held> {
    let (mut owners, mut usual) = (Vec::new(), None);
    for project in projects {
        if project.has(namespace) {
            owners.push(project);
        } else if Some(project.name) == default {
            usual = Some(project);
        }
    }
    match (&*owners, usual, default) {
        ([owner], ..) => Ok(owner.id),
        ([], Some(owner), _) => Ok(owner.id),
        ([], None, Some(missing)) => Err(held(format!(
            "no project has namespace {namespace}, and project {missing} of --default-project does \
             not exist; make it with `elastane project create {missing}`"
        ))),
        ([], None, None) => {
            let bare = namespace.strip_prefix(NAMESPACE_PREFIX).unwrap_or(namespace);
            Err(held(format!(
                "no project has namespace {namespace}: a project has the namespaces NAME, \
                 {NAMESPACE_PREFIX}NAME and those of --namespaces; make one with `elastane project \
                 create {bare}`, or `elastane project update NAME --namespaces {namespace}`"
            )))
        }
        ([owner, other, ..], ..) => Err(held(format!(
            "namespace {namespace} is one of project {} and of project {}; name the project in the \
             label elastane.dev/project",
            owner.name, other.name
        ))),
    }
}
