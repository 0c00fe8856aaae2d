//! `elastane down`: stops every workload, then the server. When no server runs, what an earlier
//! one left running is stopped all the same.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Engine as _, RunKey, RunState};
use tokio::time::{Instant, sleep};

use super::up;
use crate::exit::Error;

/// Between SIGTERM and SIGKILL for runs without a server.
const GRACE_MS: u64 = 30_000;
/// Longer than any grace most workloads ask for.
const GONE_WAIT_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(25);

pub(super) async fn run(state_dir: PathBuf) -> Result<(), Error> {
    let found = client::find(None, None, Some(&state_dir))?;
    let pid = client::read_server_file(&state_dir)?.map(|file| file.pid);
    match found.client.down().await {
        Ok(()) => {}
        Err(client::Error::NotRunning { url }) => return without_server(&state_dir, &url).await,
        // It may have ended before its answer was through.
        Err(client::Error::Protocol { .. }) if pid.is_some_and(|pid| !lives(pid)) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + GONE_WAIT_MAX;
    // The file goes when everything is released; a server that died in between leaves it behind.
    while client::read_server_file(&state_dir)?.is_some_and(|file| lives(file.pid)) {
        if Instant::now() >= deadline {
            return Err(Error::Failed(
                "the server is still stopping; look again with `elastane status`".to_owned(),
            ));
        }
        sleep(LOOK_EVERY).await;
    }
    writeln!(std::io::stdout(), "elastane is down: its workloads were stopped")?;
    Ok(())
}

/// Whether the process exists and has not ended; one that only waits for its parent has.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name is in brackets and may contain anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn without_server(state_dir: &Path, url: &str) -> Result<(), Error> {
    let mut out = std::io::stdout();
    if !state_dir.join("runs").is_dir() {
        writeln!(out, "no server is running at {url}, and nothing was left running")?;
        return Ok(());
    }
    let state_dir = std::fs::canonicalize(state_dir)?;
    up::check_private(&state_dir)?;
    // Held until the end: no server may start while its runs are being stopped.
    let _store =
        store::Store::open(&state_dir).await.map_err(|error| Error::Failed(up::chain(&error)))?;
    let engine = up::engine(&state_dir, None)?;
    let living = living(&engine).await?;
    for key in &living {
        engine.stop(*key, GRACE_MS).await.map_err(|error| Error::Failed(up::chain(&error)))?;
    }
    let deadline = Instant::now() + GONE_WAIT_MAX;
    while !self::living(&engine).await?.is_empty() {
        if Instant::now() >= deadline {
            return Err(Error::Failed("some workloads do not end; look at `ps`".to_owned()));
        }
        sleep(LOOK_EVERY).await;
    }
    match living.len() {
        0 => writeln!(out, "no server is running at {url}, and nothing was left running")?,
        count => writeln!(out, "no server was running at {url}; stopped {count} left running")?,
    }
    Ok(())
}

async fn living(engine: &engine_local::LocalEngine) -> Result<Vec<RunKey>, Error> {
    let runs = engine.list().await.map_err(|error| Error::Failed(up::chain(&error)))?;
    let lives = |state: &RunState| !matches!(state, RunState::Exited { .. });
    Ok(runs.into_iter().filter(|run| lives(&run.state)).map(|run| run.key).collect())
}
