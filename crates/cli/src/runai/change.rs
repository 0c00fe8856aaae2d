//! Deleting, suspending and resuming workloads by name. Names that do not exist are told one by
//! one and are no failure in v1 (reference A.1).

use std::io::Write;
use std::time::Duration;

use api_types::Workload;
use client::WorkloadKind;
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::intent::{Change, Dialect, Kind, Verb};
use super::submit::settle_others;
use crate::exit::{self, Error};

/// A deleted workload may take its grace to stop; this long the command stays to see it gone.
const GONE_WAIT_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(25);

pub(super) async fn run(
    change: Change,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let kind = change.kind.map(Kind::as_str);
    let mut there = context.workloads().await?;
    there.retain(|workload| kind.is_none_or(|kind| workload.kind == kind));
    let names = match change.names.clone() {
        Some(names) => names,
        None => there.iter().map(|workload| workload.name.clone()).collect(),
    };
    if names.is_empty() {
        writeln!(
            out,
            "There is nothing to {} in project {}",
            word(change.verb),
            context.project()?
        )?;
    }
    let mut worst = None;
    let mut deleted = Vec::new();
    for name in &names {
        let Some(workload) = there.iter().find(|workload| workload.name == *name) else {
            not_found(&change, name, context.project()?, out)?;
            if change.dialect == Dialect::V2 {
                worst = worst.or(Some(exit::NOT_FOUND));
            }
            continue;
        };
        match act(change.verb, workload, context).await {
            Ok(()) => {
                if change.verb == Verb::Delete {
                    deleted.push(workload);
                }
                done(&change, name, out)?;
            }
            Err(error @ Error::Server(client::Error::NotRunning { .. })) => return Err(error),
            Err(error) => {
                writeln!(std::io::stderr(), "error: {name}: {error}")?;
                worst = Some(error.code());
            }
        }
    }
    out.flush()?;
    wait_gone(&deleted, context).await?;
    settle_others(context).await;
    worst.map_or(Ok(()), |code| Err(Error::Said(code)))
}

async fn act(verb: Verb, workload: &Workload, context: &Context) -> Result<(), Error> {
    let Some(kind) = WorkloadKind::of(&workload.kind) else {
        let text = format!("this version does not know workloads of type {}", workload.kind);
        return Err(Error::Failed(text));
    };
    let (client, id) = (&context.client, workload.id.as_str());
    match verb {
        Verb::Delete => client.delete(kind, id).await?,
        Verb::Suspend => client.suspend(kind, id).await?,
        Verb::Resume => client.resume(kind, id).await?,
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

fn done(change: &Change, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let participle = match change.verb {
        Verb::Delete => "deleted",
        Verb::Suspend => "suspended",
        Verb::Resume => "resumed",
    };
    writeln!(out, "{} {name} {participle} successfully.", noun(change))?;
    Ok(())
}

fn not_found(change: &Change, name: &str, project: &str, out: &mut dyn Write) -> Result<(), Error> {
    let what = noun(change);
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

/// Stays until the deleted ones have no process any more.
async fn wait_gone(deleted: &[&Workload], context: &Context) -> Result<(), Error> {
    let deadline = Instant::now() + GONE_WAIT_MAX;
    for workload in deleted {
        loop {
            match context.client.workload(&workload.id).await {
                Ok(now) if now.deleted_at.is_none() => {}
                Ok(_) | Err(client::Error::Api { code: 404, .. }) => break,
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= deadline {
                let name = &workload.name;
                let text = "is still stopping; it leaves the list when its processes have ended";
                writeln!(std::io::stderr(), "{name} {text}")?;
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}
