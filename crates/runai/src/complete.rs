//! The names that complete command lines. Owns: which objects of the server a line is about.

use clap_complete::engine::CompletionCandidate;

use super::args::Global;
use super::context::Context;
use super::intent::{Framework, Noun, Objects};
use super::{objects, rows};
use cli_kit::complete::{line, names as candidates, value_of};
use cli_kit::exit::Error;

/// Priorities, the lowest first.
const PRIORITIES: [&str; 7] =
    ["very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"];

/// Names of the workloads that the line can be about, of the project that it names, or of the default
/// one.
pub(super) fn workloads() -> Vec<CompletionCandidate> {
    asked(async |context| {
        let noun = noun_in(&line());
        let all = context.workloads().await?.into_iter();
        let all = all.filter(|workload| rows::is_a(workload, noun));
        Ok(all.map(|workload| (workload.name, workload.phase)).collect())
    })
}

/// Names of templates.
pub(super) fn templates() -> Vec<CompletionCandidate> {
    names(Objects::Template)
}

/// Names of environment assets.
pub(super) fn environments() -> Vec<CompletionCandidate> {
    names(Objects::Environment)
}

/// Names of compute assets.
pub(super) fn computes() -> Vec<CompletionCandidate> {
    names(Objects::Compute)
}

/// Names of node pools.
pub(super) fn pools() -> Vec<CompletionCandidate> {
    names(Objects::Nodepool)
}

/// Names of what the line is about beside workloads.
pub(super) fn named_objects() -> Vec<CompletionCandidate> {
    objects_in(&line()).map(names).unwrap_or_default()
}

fn names(of: Objects) -> Vec<CompletionCandidate> {
    asked(async |context| {
        let all = objects::names(of, context).await?;
        Ok(all.into_iter().map(|name| (name, String::new())).collect())
    })
}

/// The priorities, which no server has others of.
pub(super) fn priorities() -> Vec<CompletionCandidate> {
    PRIORITIES.map(CompletionCandidate::new).into()
}

/// Names of the projects.
pub(super) fn projects() -> Vec<CompletionCandidate> {
    asked(async |context| {
        let all = context.client.projects().await?;
        Ok(all.into_iter().map(|project| (project.name, String::new())).collect())
    })
}

/// What the server answers; nothing if it does not.
fn asked(
    ask: impl AsyncFnOnce(&Context) -> Result<Vec<(String, String)>, Error>,
) -> Vec<CompletionCandidate> {
    let project = value_of(&line(), &["-p", "--project"]);
    let global = Global { project, ..Global::default() };
    let Ok(context) = Context::open(&global, &|name| std::env::var(name).ok()) else {
        return Vec::new();
    };
    candidates(ask(&context))
}

/// What a line calls the workloads that it is about.
pub(super) fn noun_in(words: &[String]) -> Noun {
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

/// What a line is about beside workloads.
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
