//! Deleting, suspending and resuming workloads by name. Names that do not exist are told one by
//! one and are no failure in v1 (reference A.1).

use std::io::Write;

use api_types::{BatchAction, Workload, WorkloadBatch};

use super::context::{Context, unknown_project};
use super::intent::{Change, Dialect, Noun, Verb};
use super::rows;
use super::settle::{AT_ONCE_MAX, at_once, settle_gone, settle_others};
use cli_kit::exit::{self, Error};
use cli_kit::plain::patiently;

/// So many lines are counted at a glance; a longer answer ends with their sum.
const COUNTED_AT_A_GLANCE: usize = 10;

/// Most workloads in one request.
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
        let (noun, plural) = (change.noun.word(), if count == 1 { "" } else { "s" });
        write!(out, "{count} {noun}{plural} {}", participle(change.verb))?;
        match outcome.failed {
            0 => writeln!(out, ".")?,
            failed => writeln!(out, ", {failed} not.")?,
        }
    }
    out.flush()?;
    if change.verb == Verb::Delete {
        let doing = "Waiting until it has stopped; it will without this command, too";
        patiently(doing, settle_gone(outcome.done, context)).await?;
    }
    settle_others(context).await;
    outcome.worst.map_or(Ok(()), |code| Err(Error::Said(code)))
}

/// Changes everything of the project.
async fn all(change: &Change, context: &Context, out: &mut dyn Write) -> Result<Outcome, Error> {
    let mut there = context.workloads().await?;
    there.retain(|workload| rows::is_a(workload, change.noun));
    if there.is_empty() {
        let project = context.project()?;
        writeln!(out, "There is nothing to {} in project {project}", word(change.verb))?;
    }
    let mut outcome = Outcome::default();
    for some in there.chunks(BATCH_MAX * AT_ONCE_MAX) {
        act(change, some, context, out, &mut outcome).await?;
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
    let look = |name: &String| {
        let (client, project, name) = (context.client.clone(), project.to_owned(), name.clone());
        async move { client.workload_named(&project, &name).await }
    };
    let mut outcome = Outcome::default();
    let mut project_is_known = false;
    for some in names.chunks(AT_ONCE_MAX) {
        let mut there = Vec::new();
        for (name, found) in some.iter().zip(at_once(some.iter().map(look)).await?) {
            match found?.filter(|workload| rows::is_a(workload, change.noun)) {
                Some(workload) => there.push(workload),
                None => {
                    if !project_is_known && context.client.project(project).await?.is_none() {
                        return Err(unknown_project(project));
                    }
                    project_is_known = true;
                    not_found(change, name, project, out)?;
                    if change.noun != Noun::Job {
                        outcome.worst = outcome.worst.or(Some(exit::NOT_FOUND));
                    }
                }
            }
        }
        act(change, &there, context, out, &mut outcome).await?;
    }
    Ok(outcome)
}

/// Changes workloads at the same time, and says of each how that went.
async fn act(
    change: &Change,
    workloads: &[Workload],
    context: &Context,
    out: &mut dyn Write,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let action = action(change.verb);
    let ask = |some: &[Workload]| {
        let ids = some.iter().map(|workload| workload.id.clone()).collect();
        let client = context.client.clone();
        async move { client.batch(&WorkloadBatch { ids, action }).await }
    };
    let mut failures = Vec::new();
    for answer in at_once(workloads.chunks(BATCH_MAX).map(ask)).await? {
        failures.extend(answer?.failed);
    }
    for workload in workloads {
        let failure = failures.iter().find(|failure| failure.id == workload.id);
        let answer = failure.map_or(Ok(()), |failure| {
            let (code, message) = (failure.code, failure.message.clone());
            Err(Error::Server(client::Error::Api { code, message, details: None }))
        });
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
            let (what, name) = (subject(change), &workload.name);
            writeln!(out, "{what} {name} {} successfully.", participle(change.verb))?;
            outcome.done.push(workload.clone());
        }
        Err(error) => {
            writeln!(std::io::stderr(), "error: {}: {error}", workload.name)?;
            outcome.failed += 1;
            outcome.worst = Some(error.code());
        }
    }
    Ok(())
}

/// How the server is asked for it.
pub(super) const fn action(verb: Verb) -> BatchAction {
    match verb {
        Verb::Delete => BatchAction::Delete,
        Verb::Suspend => BatchAction::Suspend,
        Verb::Resume => BatchAction::Resume,
    }
}

pub(super) const fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "delete",
        Verb::Suspend => "suspend",
        Verb::Resume => "resume",
    }
}

/// The noun at the beginning of a sentence.
fn subject(change: &Change) -> String {
    let mut word = change.noun.word().to_owned();
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    word
}

pub(super) const fn participle(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "deleted",
        Verb::Suspend => "suspended",
        Verb::Resume => "resumed",
    }
}

fn not_found(change: &Change, name: &str, project: &str, out: &mut dyn Write) -> Result<(), Error> {
    let (what, name, project) = (subject(change), units::shown(name), units::shown(project));
    match (change.noun.dialect(), change.verb) {
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
