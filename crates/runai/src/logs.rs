//! Output of a workload. Owns: that following continues at the same position after an outage of the
//! server, and with the next run of a pod that restarts.

use std::io::Write;
use std::time::Duration;

use api_types::{Workload, WorkloadPhase};
use client::{LogPosition, LogStream};
use tokio::time::{Instant, sleep, timeout};

use super::context::Context;
use super::rows;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::{AWAY_MAX, Error};
use cli_kit::message::print_note;
use dialects::intent::Target;

/// Phases without automatic restart.
const OVER: [WorkloadPhase; 5] = [
    WorkloadPhase::Completed,
    WorkloadPhase::Failed,
    WorkloadPhase::Stopping,
    WorkloadPhase::Stopped,
    WorkloadPhase::Deleting,
];
/// Delay before the note that following continues.
const TOLD_AFTER: Duration = Duration::from_secs(2);
/// Maximum interval between requests for the next run.
const ASK_MAX: Duration = Duration::from_secs(5);
/// First interval between requests for the next run, and interval of retries during an outage.
const ASK_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn run(
    of: &Target,
    which: &client::Logs,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    refuse_resting(&workload)?;
    let id = &workload.id;
    let mut stream = context.client.logs(id, of.pod.as_deref(), which).await?;
    let mut nothing = true;
    loop {
        match stream.next().await {
            Ok(Some(chunk)) => {
                nothing &= chunk.is_empty();
                out.write_all(&chunk)?;
                out.flush()?;
            }
            Ok(None) => match next_run(of, which, &workload.id, &stream, context).await? {
                Some(next) => stream = next,
                None => break,
            },
            Err(error) => match stream.position() {
                Some(at) if which.follow => stream = again(id, at, &error, context).await?,
                _ => return Err(error.into()),
            },
        }
    }
    let fields = &workload.additional_fields;
    if nothing && is_all(which) && workload.running_pods == 0 {
        match (&fields.last_exit, fields.pending_reasons.first()) {
            (Some(why), _) => print_note(&format!("{} wrote nothing: {why}", workload.name)),
            (None, Some(why)) => {
                let api_types::Reason { code, message, .. } = why;
                print_note(&format!("{} wrote nothing yet: {code} {message}", workload.name));
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// True if the selection excludes nothing: then empty output means that the newest run wrote
/// nothing.
const fn is_all(which: &client::Logs) -> bool {
    !which.previous && which.since.is_none() && !matches!(which.tail_lines, Some(0))
}

/// The output of the next run, once there is one; `None` if there will be none, or if this run only
/// was requested.
async fn next_run(
    of: &Target,
    which: &client::Logs,
    id: &str,
    ended: &LogStream,
    context: &Context,
) -> Result<Option<LogStream>, Error> {
    let run = ended.position().and_then(LogPosition::pod_and_generation);
    let Some(run) = run.filter(|_| which.follow && !which.previous && of.pod.is_none()) else {
        return Ok(None);
    };
    let since = Instant::now();
    let (mut told, mut lost, mut pause) = (false, None, ASK_EVERY);
    let mut pulse = ChangeWait::of_workload(&context.client, id);
    loop {
        let asked = match lost {
            None => begun_since(id, run, which.timestamps, context).await,
            // With a new context: the wait may have been longer than the login lasts.
            Some(_) => match context.renewed().await {
                Ok(now) => begun_since(id, run, which.timestamps, &now).await,
                Err(error) => Err(error),
            },
        };
        match asked {
            Ok(Next::Run(stream)) => return Ok(Some(*stream)),
            Ok(Next::Never) => return Ok(None),
            Ok(Next::NotYet) => lost = None,
            Err(error) if error.is_lost(lost) => {
                lost.get_or_insert_with(Instant::now);
            }
            Err(error) => return Err(error),
        }
        if since.elapsed() > TOLD_AFTER && !std::mem::replace(&mut told, true) {
            print_note(&format!("this run of {} has ended; waiting for the next one", of.name));
        }
        // The output of a run is readable a moment after the run appears, without a change event.
        drop(timeout(pause, pulse.changed(pause)).await);
        pause = (pause * 2).min(ASK_MAX);
    }
}

/// Next run of a pod.
enum Next {
    Run(Box<LogStream>),
    NotYet,
    Never,
}

async fn begun_since(
    id: &str,
    (pod, generation): (&str, u32),
    timestamps: bool,
    context: &Context,
) -> Result<Next, Error> {
    let client = &context.client;
    let over = match client.workload(id).await {
        Ok(workload) if workload.phase() == WorkloadPhase::Pending => return Ok(Next::NotYet),
        Ok(workload) => rows::rests(&workload) || OVER.contains(&workload.phase()),
        Err(client::Error::Api { code: 404, .. }) => return Ok(Next::Never),
        Err(error) => return Err(error.into()),
    };
    let pods = client.pods(id).await?;
    let newest = match pods.iter().find(|one| one.id == pod) {
        // Ended runs count too: a short one may have come and gone since the last request.
        Some(pod) if pod.generation > generation => pod.generation,
        Some(pod) if !over && !["Succeeded", "Failed"].contains(&&*pod.state) => {
            return Ok(Next::NotYet);
        }
        _ => return Ok(Next::Never),
    };
    let all = client::Logs { follow: true, timestamps, ..client::Logs::default() };
    // The run after the last one, unless the server has deleted it already.
    for next in [generation + 1, newest] {
        match client.logs(id, Some(&format!("{pod}.{next}")), &all).await {
            Err(client::Error::Api { code: 404, .. }) => {}
            // A run appears a moment before its output is readable.
            Err(client::Error::Api { code: 409, .. }) => return Ok(Next::NotYet),
            Err(error) => return Err(error.into()),
            Ok(stream) => {
                // Until then the server returns the output of the previous run.
                let of = stream.position().and_then(LogPosition::pod_and_generation);
                let later = of.is_some_and(|(_, of)| of > generation);
                return Ok(if later { Next::Run(Box::new(stream)) } else { Next::NotYet });
            }
        }
    }
    Ok(Next::NotYet)
}

/// Continues the output from the position where it was cut off, once the server answers.
async fn again(
    id: &str,
    at: &LogPosition,
    lost: &client::Error,
    context: &Context,
) -> Result<LogStream, Error> {
    print_note(&format!("{lost}; waiting for the server"));
    let until = Instant::now() + AWAY_MAX;
    loop {
        sleep(ASK_EVERY).await;
        let asked = match context.renewed().await {
            Ok(now) => now.client.logs_from(id, at).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        match asked {
            // A server that has just started may not know yet what runs.
            Err(Error::Server(client::Error::Api { code: 409, .. })) if Instant::now() < until => {}
            Err(error) if error.is_away() && Instant::now() < until => {}
            other => return other,
        }
    }
}

/// Refuses an inference that has no pods because there are no requests.
pub(super) fn refuse_resting(workload: &Workload) -> Result<(), Error> {
    if !rows::rests(workload) {
        return Ok(());
    }
    let name = &workload.name;
    Err(Error::Failed(format!(
        "{name} is scaled to zero, because there are no requests; the next request starts a replica"
    )))
}
