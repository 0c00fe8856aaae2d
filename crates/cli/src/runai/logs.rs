//! What a workload wrote. Owns: that following goes on where it was when the server was away.

use std::io::Write;
use std::time::Duration;

use api_types::Workload;
use client::{LogPosition, LogStream};
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::intent::Target;
use super::rows;
use crate::exit::Error;
use crate::plain::tell;

/// How long a server that went away is waited for.
pub(super) const AWAY_MAX: Duration = Duration::from_secs(300);
/// How often it is asked meanwhile.
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
            Ok(None) => break,
            Err(error) => match stream.position() {
                Some(at) if which.follow => stream = again(id, at, &error, context).await?,
                _ => return Err(error.into()),
            },
        }
    }
    match &workload.additional_fields.last_exit {
        Some(why) if nothing && !which.previous && workload.running_pods == 0 => {
            tell(&format!("{} wrote nothing: {why}", workload.name));
        }
        _ => {}
    }
    Ok(())
}

/// The same output from where it was cut off, once there is a server to ask.
async fn again(
    id: &str,
    at: &LogPosition,
    lost: &client::Error,
    context: &Context,
) -> Result<LogStream, Error> {
    tell(&format!("{lost}; waiting for the server"));
    let until = Instant::now() + AWAY_MAX;
    loop {
        sleep(ASK_EVERY).await;
        let asked = match context.anew().await {
            Ok(now) => now.client.logs_from(id, at).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        match asked {
            // A server that has just begun may not know yet what runs.
            Err(Error::Server(client::Error::Api { code: 409, .. })) if Instant::now() < until => {}
            Err(error) if is_away(&error) && Instant::now() < until => {}
            other => return other,
        }
    }
}

/// Whether the server has gone, perhaps in the middle of its answer, and may come again.
pub(super) const fn is_away(error: &Error) -> bool {
    matches!(
        error,
        Error::Server(
            client::Error::NotRunning { .. }
                | client::Error::Unreachable { .. }
                | client::Error::Protocol { .. }
                | client::Error::Dropped { .. }
                | client::Error::Api { code: 503, .. }
        )
    )
}

/// Says of an inference that it has no pods because nobody asks.
pub(super) fn refuse_resting(workload: &Workload) -> Result<(), Error> {
    if !rows::rests(workload) {
        return Ok(());
    }
    let name = &workload.name;
    Err(Error::Failed(format!(
        "{name} has no replica now, because nobody asks; the next request brings one up"
    )))
}
