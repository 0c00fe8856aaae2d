//! Completion of command lines: the script that a shell reads once, and the names that only the
//! server knows. Owns what it may cost: a moment, and no message.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use super::args::{Global, tree};
use super::context::Context;
use super::intent::{Framework, Noun, Objects, Shell};
use super::{objects, rows};
use cli_kit::exit::Error;

/// The variable by which a shell's script asks this program.
const ASKED_BY: &str = "COMPLETE";
/// Whoever presses Tab does not wait longer.
const ASK_MAX: Duration = Duration::from_millis(700);

/// Answers a shell that asks how a line goes on; false if none does.
///
/// # Errors
/// The shell is not known, or its question makes no sense.
pub(super) fn answered(argv: &[OsString]) -> Result<bool, clap::Error> {
    CompleteEnv::with_factory(tree).var(ASKED_BY).try_complete(argv, None)
}

/// Writes the script of a shell.
pub(super) fn script(shell: Shell, out: &mut dyn Write) -> Result<(), Error> {
    let shells = Shells::builtins();
    let completer = shells.completer(match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    });
    let completer = completer.ok_or_else(|| Error::Failed("this shell is not known".to_owned()))?;
    completer.write_registration(ASKED_BY, "runai", "runai", "runai", out)?;
    Ok(())
}

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

/// What the server answers; nothing if it does not, as nobody reads a message here.
fn asked(
    ask: impl AsyncFnOnce(&Context) -> Result<Vec<(String, String)>, Error>,
) -> Vec<CompletionCandidate> {
    let global = Global { project: project_in(&line()), ..Global::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok(context)) =
        (runtime, Context::open(&global, &|name| std::env::var(name).ok()))
    else {
        return Vec::new();
    };
    let answer = runtime.block_on(async { tokio::time::timeout(ASK_MAX, ask(&context)).await });
    let names = answer.ok().and_then(Result::ok).unwrap_or_default();
    let candidate = |(name, about): (String, String)| {
        let about = Some(about).filter(|about| !about.is_empty());
        CompletionCandidate::new(name).help(about.map(Into::into))
    };
    names.into_iter().map(candidate).collect()
}

/// The words so far.
fn line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The project that a line names so far.
fn project_in(words: &[String]) -> Option<String> {
    let behind = words.windows(2).find_map(|pair| match &*pair[0] {
        "-p" | "--project" => Some(pair[1].clone()),
        _ => None,
    });
    behind
        .or_else(|| words.iter().find_map(|word| Some(word.strip_prefix("--project=")?.to_owned())))
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
