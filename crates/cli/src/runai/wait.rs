//! Waiting until workloads run, have ended or are gone. Owns: what ends the wait, what is told
//! meanwhile, and the exit codes. A server that starts again does not end it.

use std::io::Write as _;
use std::time::Duration;

use api_types::Workload;
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::intent::{Target, Until, Wait};
use crate::exit::{self, Error};

/// The first look comes at once, later ones less and less often.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);

pub(super) async fn run(wait: Wait, context: &Context) -> Result<(), Error> {
    let deadline = wait.timeout_s.map(|s| Instant::now() + Duration::from_secs(s));
    let mut worst = Ok(());
    for name in wait.names {
        let of = Target { noun: wait.noun, name, pod: None };
        let ended = match one(&of, wait.until, deadline, context).await {
            Err(Error::Failed(why)) => {
                writeln!(std::io::stderr(), "error: {why}")?;
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

/// Waits for one of them.
async fn one(
    of: &Target,
    until: Until,
    deadline: Option<Instant>,
    context: &Context,
) -> Result<(), Error> {
    let found = match (context.workload(of).await?, until) {
        (None, Until::Deleted) => return Ok(()),
        (None, _) => context.existing(of).await?,
        (Some(found), _) => found,
    };
    let id = found.id.clone();
    let mut pause = LOOK_FIRST;
    let mut last = (String::new(), found);
    loop {
        if let Some(done) = reached(&last.1, until) {
            return done;
        }
        tell(&mut last)?;
        let next = Instant::now() + pause;
        if deadline.is_some_and(|deadline| deadline < next) {
            let (said, workload) = last;
            return Err(Error::Failed(format!("{} is still {said}", workload.name)));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOK_MAX);
        match context.client.workload(&id).await {
            Ok(now) if now.deleted_at.is_none() => last.1 = now,
            Ok(_) | Err(client::Error::Api { code: 404, .. }) if until == Until::Deleted => {
                return Ok(());
            }
            Ok(_) | Err(client::Error::Api { code: 404, .. }) => {
                return Err(Error::Failed(format!("{} was deleted meanwhile", last.1.name)));
            }
            // The server has gone, perhaps in the middle of its answer. It comes again.
            Err(
                client::Error::NotRunning { .. }
                | client::Error::Protocol { .. }
                | client::Error::Api { code: 503, .. },
            ) => pause = LOOK_MAX,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the wait is over, and how.
pub(super) fn reached(workload: &Workload, until: Until) -> Option<Result<(), Error>> {
    let over = |why: &str| {
        let exit = workload.additional_fields.last_exit.as_ref();
        let exit = exit.map(|exit| format!(": {exit}")).unwrap_or_default();
        Some(Err(Error::Failed(format!("{} {why}{exit}", workload.name))))
    };
    match (until, workload.phase.as_str()) {
        (Until::Running, "Running") | (Until::Running | Until::Ended, "Completed") => Some(Ok(())),
        (Until::Running | Until::Ended, "Failed") => over("has failed"),
        (Until::Running | Until::Ended, "Stopped") => {
            over("was suspended; `resume` queues it again")
        }
        _ => None,
    }
}

/// Says where it is, if that is news.
fn tell((said, workload): &mut (String, Workload)) -> std::io::Result<()> {
    let reasons = &workload.additional_fields.pending_reasons;
    let why = reasons.first().map(|one| format!(": {} {}", one.code, one.message));
    let now = format!("{}{}", workload.phase, why.unwrap_or_default());
    if *said != now {
        writeln!(std::io::stderr(), "{} is {now}", workload.name)?;
        *said = now;
    }
    Ok(())
}
