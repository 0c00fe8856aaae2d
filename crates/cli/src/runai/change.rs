//! Deleting, suspending and resuming workloads by name. Names that do not exist are told one by
//! one and are no failure in v1 (reference A.1).

use std::io::Write;

use api_types::{BatchAction, Workload, WorkloadBatch};
use client::{Client, WorkloadKind};

use super::context::{Context, unknown_project};
use super::intent::{Change, Dialect, Kind, Verb};
use super::settle::{AT_ONCE_MAX, at_once, settle_gone, settle_others};
use crate::exit::{self, Error};

/// So many lines are counted at a glance; a longer answer ends with their sum.
const COUNTED_AT_A_GLANCE: usize = 10;

/// Workloads in one request when all of them are meant.
const BATCH_MAX: usize = 32;

/// How far a change of several workloads came.
#[derive(Debug, Default)]
struct Outcome {
    done: Vec<Workload>,
    failed: usize,
    worst: Option<u8>,
}

pub(super) async fn run(
    change: Change,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let outcome = match &change.names {
        Some(names) => named(&change, names, context, out).await?,
        None => all(&change, context, out).await?,
    };
    let count = outcome.done.len();
    if change.names.is_none() && count > 0 || count > COUNTED_AT_A_GLANCE {
        let nouns = noun(&change).to_lowercase();
        let plural = if count == 1 { "" } else { "s" };
        write!(out, "{count} {nouns}{plural} {}", participle(change.verb))?;
        match outcome.failed {
            0 => writeln!(out, ".")?,
            failed => writeln!(out, ", {failed} not.")?,
        }
    }
    out.flush()?;
    if change.verb == Verb::Delete {
        settle_gone(outcome.done, context).await?;
    }
    settle_others(context).await;
    outcome.worst.map_or(Ok(()), |code| Err(Error::Said(code)))
}

/// Changes everything of the project.
async fn all(change: &Change, context: &Context, out: &mut dyn Write) -> Result<Outcome, Error> {
    let kind = change.kind.map(Kind::as_str);
    let mut there = context.workloads().await?;
    there.retain(|workload| kind.is_none_or(|kind| workload.kind == kind));
    if there.is_empty() {
        let project = context.project()?;
        writeln!(out, "There is nothing to {} in project {project}", word(change.verb))?;
    }
    let mut outcome = Outcome::default();
    let action = match change.verb {
        Verb::Delete => BatchAction::Delete,
        Verb::Suspend => BatchAction::Suspend,
        Verb::Resume => BatchAction::Resume,
    };
    let ask = |some: &[Workload]| {
        let ids = some.iter().map(|workload| workload.id.clone()).collect();
        let client = context.client.clone();
        async move { client.batch(&WorkloadBatch { ids, action }).await }
    };
    for some in there.chunks(BATCH_MAX * AT_ONCE_MAX) {
        let mut failures = Vec::new();
        for answer in at_once(some.chunks(BATCH_MAX).map(ask)).await? {
            failures.extend(answer?.failed);
        }
        for workload in some {
            let failure = failures.iter().find(|failure| failure.id == workload.id);
            let answer = failure.map_or(Ok(()), |failure| {
                let (code, message) = (failure.code, failure.message.clone());
                Err(Error::Server(client::Error::Api { code, message, details: None }))
            });
            say(change, workload, answer, out, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Changes the named ones; each is looked up by itself, however many others there are.
async fn named(
    change: &Change,
    names: &[String],
    context: &Context,
    out: &mut dyn Write,
) -> Result<Outcome, Error> {
    let project = context.project()?;
    let kind = change.kind.map(Kind::as_str);
    let look = |name: &String| {
        let (client, project, name) = (context.client.clone(), project.to_owned(), name.clone());
        async move { client.workload_named(&project, &name).await }
    };
    let mut outcome = Outcome::default();
    let mut project_is_known = false;
    for some in names.chunks(AT_ONCE_MAX) {
        let mut there = Vec::new();
        for (name, found) in some.iter().zip(at_once(some.iter().map(look)).await?) {
            match found?.filter(|workload| kind.is_none_or(|kind| workload.kind == kind)) {
                Some(workload) => there.push(workload),
                None => {
                    if !project_is_known && context.client.project(project).await?.is_none() {
                        return Err(unknown_project(project));
                    }
                    project_is_known = true;
                    not_found(change, name, project, out)?;
                    if change.dialect == Dialect::V2 {
                        outcome.worst = outcome.worst.or(Some(exit::NOT_FOUND));
                    }
                }
            }
        }
        act(change, &there, context, out, &mut outcome).await?;
    }
    Ok(outcome)
}

/// Changes a few workloads at the same time, and says of each how that went.
async fn act(
    change: &Change,
    workloads: &[Workload],
    context: &Context,
    out: &mut dyn Write,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let one = |workload: &Workload| {
        request(change.verb, context.client.clone(), workload.kind.clone(), workload.id.clone())
    };
    for (workload, answer) in workloads.iter().zip(at_once(workloads.iter().map(one)).await?) {
        say(change, workload, answer, out, outcome)?;
    }
    Ok(())
}

/// Says how the change of a workload went, and counts it.
fn say(
    change: &Change,
    workload: &Workload,
    answer: Result<(), Error>,
    out: &mut dyn Write,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    match answer {
        Ok(()) => {
            let (what, name) = (noun(change), &workload.name);
            writeln!(out, "{what} {name} {} successfully.", participle(change.verb))?;
            outcome.done.push(workload.clone());
        }
        Err(error @ Error::Server(client::Error::NotRunning { .. })) => return Err(error),
        Err(error) => {
            writeln!(std::io::stderr(), "error: {}: {error}", workload.name)?;
            outcome.failed += 1;
            outcome.worst = Some(error.code());
        }
    }
    Ok(())
}

async fn request(verb: Verb, client: Client, kind: String, id: String) -> Result<(), Error> {
    let Some(kind) = WorkloadKind::of(&kind) else {
        let text = format!("this version does not know workloads of type {kind}");
        return Err(Error::Failed(text));
    };
    match verb {
        Verb::Delete => client.delete(kind, &id).await?,
        Verb::Suspend => client.suspend(kind, &id).await?,
        Verb::Resume => client.resume(kind, &id).await?,
    }
    Ok(())
}

const fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "delete",
        Verb::Suspend => "suspend",
        Verb::Resume => "resume",
    }
}

fn noun(change: &Change) -> &'static str {
    match (change.dialect, change.kind) {
        (Dialect::V1, _) => "Job",
        (Dialect::V2, Some(Kind::Training)) => "Training",
        (Dialect::V2, Some(Kind::Workspace)) => "Workspace",
        (Dialect::V2, None) => "Workload",
    }
}

const fn participle(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "deleted",
        Verb::Suspend => "suspended",
        Verb::Resume => "resumed",
    }
}

fn not_found(change: &Change, name: &str, project: &str, out: &mut dyn Write) -> Result<(), Error> {
    let (what, name, project) = (noun(change), units::shown(name), units::shown(project));
    match (change.dialect, change.verb) {
        (Dialect::V1, Verb::Suspend | Verb::Resume) => writeln!(out, "Job {name} not found")?,
        (Dialect::V1, Verb::Delete) => writeln!(
            out,
            "Job {name} does not exist in project {project}. If the job exists in a different \
             project, use -p <project-name>."
        )?,
        (Dialect::V2, _) => writeln!(
            std::io::stderr(),
            "error: {what} {name} does not exist in project {project}. If it exists in a \
             different project, use -p <project-name>."
        )?,
    }
    Ok(())
}
