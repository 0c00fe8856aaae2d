//! Waits until workloads run, have ended or are gone. Owns: the end of the wait, the messages
//! meanwhile, and the exit codes. A restart of the server does not end a wait.

use std::time::Duration;

use api_types::{Workload, WorkloadPhase};
use tokio::time::{Instant, timeout_at};

use super::context::Context;
use super::last_output;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::{self, Error};
use cli_kit::message::{print_always, print_note};
use dialects::intent::{Target, Wait, WaitCondition};

/// First and maximum interval between two requests, if the server has no change stream; the
/// interval grows.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Interval between requests for a workload that starts at once.
const LOOK_SOON: Duration = Duration::from_millis(100);

pub(super) async fn run(wait: Wait, context: &Context) -> Result<(), Error> {
    let deadline = wait.timeout_s.map(|s| Instant::now() + Duration::from_secs(s));
    let mut worst = Ok(());
    for name in wait.names {
        let of = Target { noun: wait.noun, name, pod: None };
        let ended = match one(&of, wait.until, deadline, context).await {
            Err(Error::Failed(why)) => {
                print_always(&format!("error: {why}"));
                Err(Error::Said(exit::FAILED))
            }
            other => other,
        };
        match ended {
            Err(failed @ Error::Said(_)) => worst = Err(failed),
            other => other?,
        }
    }
    worst
}

/// Waits for one workload.
async fn one(
    of: &Target,
    until: WaitCondition,
    deadline: Option<Instant>,
    context: &Context,
) -> Result<(), Error> {
    let found = match (context.workload(of).await?, until) {
        (None, WaitCondition::Deleted) => return Ok(()),
        (None, _) => context.existing(of).await?,
        (Some(found), _) => found,
    };
    let id = found.id.clone();
    let mut pause = LOOK_FIRST;
    let mut pulse = ChangeWait::of_workload(&context.client, &id);
    let mut last = (String::new(), found);
    let mut lost = None;
    loop {
        if let Some(done) = reached(&last.1, until) {
            // Otherwise the last printed state would seem to be the current one.
            if done.is_ok() && !last.0.is_empty() {
                tell_news(&mut last);
            }
            let Err(why) = done else { return done };
            return Err(last_output::with_why(why, &last.1, &context.client).await);
        }
        tell_news(&mut last);
        let now = Instant::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            let (said, workload) = last;
            return Err(Error::Failed(format!("{} is still {said}", workload.name)));
        }
        let change = pulse.changed(pause);
        match deadline {
            // The loop checks the deadline.
            Some(deadline) => drop(timeout_at(deadline, change).await),
            None => change.await,
        }
        pause = (pause * 2).min(LOOK_MAX);
        // With a new context: the wait may be longer than the login lasts.
        let looked = match lost {
            None => context.client.workload(&id).await.map_err(Error::from),
            Some(_) => look_anew(&id, context).await,
        };
        match looked {
            Ok(now) if now.deleted_at.is_none() => (last.1, lost) = (now, None),
            Ok(_) | Err(Error::Server(client::Error::Api { code: 404, .. })) => {
                // A workload with automatic deletion may have ended between two requests.
                let end = looked.ok().and_then(|end| reached(&end, until));
                let name = &last.1.name;
                let gone = || Err(Error::Failed(format!("{name} was deleted meanwhile")));
                return if until == WaitCondition::Deleted {
                    Ok(())
                } else {
                    end.unwrap_or_else(gone)
                };
            }
            Err(error) if error.is_lost(lost) => {
                if lost.is_none() && error.is_away() {
                    print_note(&format!("{error}; waiting for the server"));
                }
                lost.get_or_insert_with(Instant::now);
                pause = LOOK_MAX;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn look_anew(id: &str, context: &Context) -> Result<Workload, Error> {
    Ok(context.renewed().await?.client.workload(id).await?)
}

/// Waits for a workload that was just submitted to run; `None` means that it has ended already. The
/// submission stands whatever the result: if it does not run within this time, prints why it waits
/// and the command to return to it, whose words after the name are `rest`.
pub(super) async fn to_run(
    id: &str,
    within: Duration,
    (verb, rest): (&str, &str),
    context: &Context,
) -> Result<Option<Workload>, Error> {
    let until = Instant::now() + within;
    let mut told = false;
    let mut pulse = ChangeWait::of_workload(&context.client, id);
    loop {
        let workload = context.client.workload(id).await?;
        let Workload { name, project_name, .. } = &workload;
        match reached(&workload, WaitCondition::Running) {
            Some(Ok(())) if workload.phase() == WorkloadPhase::Running => {
                return Ok(Some(workload));
            }
            Some(Ok(())) => {
                print_note(&format!(
                    "{name} has ended already; `runai logs {name} -p {project_name}` shows what it \
                     wrote"
                ));
                return Ok(None);
            }
            Some(over) => return over.map(|()| None),
            None => {}
        }
        if Instant::now() >= until {
            let waits = still_waits(&workload);
            return Err(Error::Failed(format!(
                "{waits}\n\
                 It stays submitted; `runai {verb} {name} -p {project_name}{rest}` comes back to it"
            )));
        }
        if !std::mem::replace(&mut told, true) {
            print_note("Waiting for pod to start running...");
        }
        // The loop checks the deadline.
        drop(timeout_at(until, pulse.changed(LOOK_SOON)).await);
    }
}

/// Text about a workload that does not run in time, with its first reason.
pub(super) fn still_waits(workload: &Workload) -> String {
    let Workload { name, phase, .. } = workload;
    let why = workload.additional_fields.pending_reasons.first();
    let why = why.map(|one| format!(": {} {}", one.code, one.message)).unwrap_or_default();
    format!("Timeout waiting for job to start running; {name} is {phase}{why}")
}

/// Result of the wait; `None` if it continues.
pub(super) fn reached(workload: &Workload, until: WaitCondition) -> Option<Result<(), Error>> {
    let over = |why: &str| {
        let exit = workload.additional_fields.last_exit.as_ref();
        let exit = exit.map(|exit| format!(": {exit}")).unwrap_or_default();
        Some(Err(Error::Failed(format!("{} {why}{exit}", workload.name))))
    };
    match (until, workload.phase()) {
        (WaitCondition::Running, WorkloadPhase::Running)
        | (WaitCondition::Running | WaitCondition::Ended, WorkloadPhase::Completed) => Some(Ok(())),
        (WaitCondition::Running | WaitCondition::Ended, WorkloadPhase::Failed) => {
            over("has failed")
        }
        (WaitCondition::Running | WaitCondition::Ended, WorkloadPhase::Stopped) => {
            over("was suspended; `resume` queues it again")
        }
        _ => None,
    }
}

/// Prints the state of a workload if it has changed.
fn tell_news((said, workload): &mut (String, Workload)) {
    let reasons = &workload.additional_fields.pending_reasons;
    let why = reasons.first().map(|one| format!(": {} {}", one.code, one.message));
    let now = format!("{}{}", workload.phase, why.unwrap_or_default());
    if *said != now {
        print_note(&format!("{} is {now}", workload.name));
        *said = now;
    }
}
