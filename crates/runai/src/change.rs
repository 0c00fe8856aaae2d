//! Deletes, suspends and resumes workloads by name. Names that do not exist are reported one by
//! one, and the others are changed. Owns: that all workloads of a project are deleted only after a
//! confirmation, if a person can give it.

use std::io::{IsTerminal as _, Write};

use api_types::{BatchAction, Workload, WorkloadBatch, WorkloadPhase};

use super::context::{Context, capitalised};
use super::rows;
use super::stabilize::{AT_ONCE_MAX, at_once, wait_for_others, wait_until_gone};
use cli_kit::exit::Error;
use cli_kit::message::{is_shown, print_always, with_progress};
use dialects::intent::{Change, Verb};

/// Up to this number of named workloads, no total is printed.
const COUNTED_AT_A_GLANCE: usize = 10;

/// Maximum number of workloads in one request.
const BATCH_MAX: usize = 32;

/// Maximum number of names that a confirmation lists.
const LISTED_MAX: usize = 20;

/// Result of a change of several workloads.
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
        with_progress(doing, wait_until_gone(outcome.done, context)).await?;
    }
    wait_for_others(context).await;
    outcome.worst.map_or(Ok(()), |code| Err(Error::Said(code)))
}

/// Changes all workloads of the project.
async fn all(change: &Change, context: &Context, out: &mut dyn Write) -> Result<Outcome, Error> {
    let mut there = context.workloads().await?;
    there.retain(|workload| rows::is_a(workload, change.noun));
    if there.is_empty() {
        let project = context.project()?;
        writeln!(out, "There is nothing to {} in project {project}", word(change.verb))?;
    }
    if change.verb == Verb::Delete && !change.yes && !there.is_empty() && can_ask() {
        print_always(&question(change, context.project()?, &there));
        if !is_yes(&answer()?) {
            return Err(Error::Failed("nothing was deleted".to_owned()));
        }
    }
    let mut outcome = Outcome::default();
    for some in there.chunks(BATCH_MAX * AT_ONCE_MAX) {
        act(change, some, context, out, &mut outcome).await?;
    }
    Ok(outcome)
}

/// True if a person can answer a question.
fn can_ask() -> bool {
    std::io::stdin().is_terminal() && is_shown()
}

/// Text of the confirmation before a deletion, with the names of the workloads.
fn question(change: &Change, project: &str, there: &[Workload]) -> String {
    let plural = if there.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "This deletes {} {}{plural} of project {project}:",
        there.len(),
        change.noun.word()
    );
    for one in there.iter().take(LISTED_MAX) {
        text.push_str(&format!("\n  {} ({})", one.name, rows::status_v2(one)));
    }
    if there.len() > LISTED_MAX {
        text.push_str(&format!("\n  … and {} more", there.len() - LISTED_MAX));
    }
    text.push_str("\nDelete them? [y/N] (--yes deletes without this question)");
    text
}

/// A typed line; empty at the end of the input.
fn answer() -> Result<String, Error> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| Error::Failed(format!("failed to read the answer: {error}")))?;
    Ok(line)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Changes the named workloads; each is looked up by itself, at a cost independent of the number of
/// others.
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
    let leaving = if change.verb == Verb::Delete { names } else { &[] };
    let mut outcome = Outcome::default();
    let mut checked = false;
    for some in names.chunks(AT_ONCE_MAX) {
        let mut there = Vec::new();
        for (name, found) in some.iter().zip(at_once(some.iter().map(look)).await?) {
            match found?.filter(|workload| rows::is_a(workload, change.noun)) {
                Some(workload) => there.push(workload),
                None => {
                    if !std::mem::replace(&mut checked, true) {
                        context.known_project().await?;
                    }
                    out.flush()?;
                    let error = context.no_such(change.noun, name, leaving).await?;
                    print_always(&format!("error: {error}"));
                    outcome.worst = outcome.worst.or(Some(error.code()));
                }
            }
        }
        act(change, &there, context, out, &mut outcome).await?;
    }
    Ok(outcome)
}

/// Changes workloads at the same time, and prints the result of each.
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
            Err(Error::Server(client::Error::refusal(code, message)))
        });
        report_change(change, workload, answer, out, outcome)?;
    }
    Ok(())
}

/// Prints the result of a change of a workload, and counts it.
fn report_change(
    change: &Change,
    workload: &Workload,
    answer: Result<(), Error>,
    out: &mut dyn Write,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    match answer {
        Ok(()) => {
            let (what, name) = (capitalised(change.noun.word()), &workload.name);
            match without_effect(change.verb, workload.phase()) {
                Some(why) => writeln!(out, "{what} {name} {why}; nothing was changed.")?,
                None => writeln!(out, "{what} {name} {} successfully.", participle(change.verb))?,
            }
            outcome.done.push(workload.clone());
        }
        Err(error) => {
            print_always(&format!("error: {}: {error}", workload.name));
            outcome.failed += 1;
            outcome.worst = Some(error.code());
        }
    }
    Ok(())
}

/// The reason why a change has no effect on a workload in this phase; `None` if it has one.
fn without_effect(verb: Verb, phase: WorkloadPhase) -> Option<&'static str> {
    match (verb, phase) {
        (
            Verb::Resume,
            WorkloadPhase::Pending
            | WorkloadPhase::Initializing
            | WorkloadPhase::Running
            | WorkloadPhase::Degraded
            | WorkloadPhase::Updating,
        ) => Some("is not suspended"),
        (Verb::Suspend, WorkloadPhase::Stopped) => Some("is suspended already"),
        _ => None,
    }
}

/// Action of a batch request for a verb.
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

pub(super) const fn participle(verb: Verb) -> &'static str {
    match verb {
        Verb::Delete => "deleted",
        Verb::Suspend => "suspended",
        Verb::Resume => "resumed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::workload;
    use dialects::intent::Noun;

    #[test]
    fn the_question_lists_what_would_be_deleted_and_only_yes_is_yes() {
        let change = Change { verb: Verb::Delete, noun: Noun::Job, names: None, yes: false };
        let there = ["a1 Training Running p", "a2 Training Pending p"].map(workload);
        assert_eq!(
            question(&change, "p", &there),
            "This deletes 2 jobs of project p:\n  a1 (Running)\n  a2 (Pending)\n\
             Delete them? [y/N] (--yes deletes without this question)"
        );
        let many: Vec<_> = (0..23).map(|n| workload(&format!("a{n} Training Running p"))).collect();
        assert!(question(&change, "p", &many).contains("\n  a19 (Running)\n  … and 3 more\n"));
        for (typed, yes) in
            [("y\n", true), (" YES\n", true), ("\n", false), ("", false), ("n\n", false)]
        {
            assert_eq!(is_yes(typed), yes, "{typed:?}");
        }
    }
}
