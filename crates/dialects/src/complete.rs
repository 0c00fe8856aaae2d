//! Names that complete command lines. Owns: which objects of the server a line is about. Does not
//! know how they are queried.

use std::sync::OnceLock;

use clap_complete::engine::CompletionCandidate;

use cli_kit::complete::{line, value_of};

use crate::intent::{Framework, Noun, Objects};

/// Kinds of names that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// Workloads of a project.
    Workloads(Noun),
    /// Objects other than workloads.
    Objects(Objects),
    /// Projects.
    Projects,
}

/// Queries a server for names; empty if it does not answer. The project is that of the line.
pub type Ask = fn(NameKind, Option<String>) -> Vec<CompletionCandidate>;

static ASK: OnceLock<Ask> = OnceLock::new();

/// Completes lines with names of the server, too. Without this call only words are completed. The
/// first of several calls counts.
pub fn complete_with(ask: Ask) {
    ASK.get_or_init(|| ask);
}

/// Priority classes, the lowest first.
const PRIORITIES: [&str; 7] =
    ["very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"];

/// Names of the workloads that the line can be about, in the project of the line or the default
/// one.
pub(crate) fn workloads() -> Vec<CompletionCandidate> {
    query_names(NameKind::Workloads(noun_in(&line())))
}

/// Names of templates.
pub(crate) fn templates() -> Vec<CompletionCandidate> {
    names(Objects::Template)
}

/// Names of environment assets.
pub(crate) fn environments() -> Vec<CompletionCandidate> {
    names(Objects::Environment)
}

/// Names of compute assets.
pub(crate) fn computes() -> Vec<CompletionCandidate> {
    names(Objects::Compute)
}

/// Names of node pools.
pub(crate) fn pools() -> Vec<CompletionCandidate> {
    names(Objects::Nodepool)
}

/// Names of the objects other than workloads that the line is about.
pub(crate) fn named_objects() -> Vec<CompletionCandidate> {
    objects_in(&line()).map(names).unwrap_or_default()
}

fn names(of: Objects) -> Vec<CompletionCandidate> {
    query_names(NameKind::Objects(of))
}

/// Names of the priority classes; they are the same on every server.
pub(crate) fn priorities() -> Vec<CompletionCandidate> {
    PRIORITIES.map(CompletionCandidate::new).into()
}

/// Names of the projects.
pub(crate) fn projects() -> Vec<CompletionCandidate> {
    query_names(NameKind::Projects)
}

fn query_names(of: NameKind) -> Vec<CompletionCandidate> {
    let project = value_of(&line(), &["-p", "--project"]);
    ASK.get().map(|ask| ask(of, project)).unwrap_or_default()
}

/// Noun of the workloads that a line is about.
pub(crate) fn noun_in(words: &[String]) -> Noun {
    words.iter().map(String::as_str).fold(Noun::Job, |noun, word| match (noun, word) {
        (Noun::Job, "training" | "trainings") => Noun::Training,
        (Noun::Job, "workspace" | "workspaces") => Noun::Workspace,
        (Noun::Job, "inference" | "inferences") => Noun::Inference,
        (Noun::Job, "distributed") => Noun::Distributed,
        (Noun::Training, "standard") => Noun::Standard,
        (Noun::Job | Noun::Training, "mpi") => Noun::Framework(Framework::Mpi),
        (Noun::Job | Noun::Training, "pytorch") => Noun::Framework(Framework::PyTorch),
        (Noun::Job | Noun::Training, "tensorflow" | "tf") => Noun::Framework(Framework::Tf),
        (Noun::Job | Noun::Training, "xgboost") => Noun::Framework(Framework::XgBoost),
        (Noun::Job | Noun::Training, "jax") => Noun::Framework(Framework::Jax),
        (noun, _) => noun,
    })
}

/// Type of the objects other than workloads that a line is about; `None` if there is none.
fn objects_in(words: &[String]) -> Option<Objects> {
    words.iter().find_map(|word| match word.as_str() {
        "template" | "templates" => Some(Objects::Template),
        "environment" | "environments" => Some(Objects::Environment),
        "compute" => Some(Objects::Compute),
        "datasource" | "datasources" => Some(Objects::Datasource),
        "pvc" | "pvcs" => Some(Objects::Pvc),
        "credential" | "credentials" => Some(Objects::Credential),
        "department" | "departments" => Some(Objects::Department),
        "nodepool" | "nodepools" => Some(Objects::Nodepool),
        "workload-type" | "workload-types" => Some(Objects::WorkloadType),
        _ => None,
    })
}
