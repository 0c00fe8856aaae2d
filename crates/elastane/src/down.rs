//! `elastane down`: stops every workload, then the server. Without a server, stops the runs that an
//! earlier one has left.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Engine, ListedRun, RunState};
use tokio::time::{Instant, sleep};

use super::{runtime, up};
use cli_kit::exit::{Error, chain};

/// Milliseconds between SIGTERM and SIGKILL for runs without a server.
const GRACE_MS: u64 = 30_000;
/// Maximum wait: longer than the grace period of most workloads.
const GONE_WAIT_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(25);

pub(super) async fn run(state_dir: PathBuf) -> Result<(), Error> {
    let found = client::find(None, None, Some(&state_dir), None)?;
    let pid = client::read_server_file(&state_dir)?.map(|file| file.pid);
    match found.client.down().await {
        Ok(()) => {}
        Err(client::Error::NotRunning { .. }) => return without_server(&state_dir).await,
        // It may have ended before its response was complete.
        Err(client::Error::Dropped { .. }) if pid.is_some_and(|pid| !lives(pid)) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + GONE_WAIT_MAX;
    // The server removes the file after releasing everything; a server that died before leaves it
    // behind.
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

/// True if the process exists and is not a zombie.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name is in brackets and may contain any character.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn without_server(state_dir: &Path) -> Result<(), Error> {
    let mut out = std::io::stdout();
    let nothing = format!(
        "no server runs with the state directory {}, and nothing was left running",
        state_dir.display()
    );
    let Ok(state_dir) = std::fs::canonicalize(state_dir) else {
        writeln!(out, "{nothing}")?;
        return Ok(());
    };
    up::check_private(&state_dir)?;
    // Held until the end: no server may start while the runs are being stopped.
    let _lock = store::Lock::take(&state_dir).map_err(|error| Error::Failed(chain(&error)))?;
    let Some(runtime::Opened { engine, .. }) = runtime::open_last(&state_dir).await? else {
        writeln!(out, "{nothing}")?;
        return Ok(());
    };
    let living = runtime::living(&*engine).await?;
    for run in &living {
        let stopped = engine.stop(run.key, GRACE_MS).await;
        stopped.map_err(|error| Error::Failed(chain(&error)))?;
    }
    let deadline = Instant::now() + GONE_WAIT_MAX;
    loop {
        let left = runtime::living(&*engine).await?;
        if left.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            return Err(Error::Failed(still_there(&*engine, &left).await));
        }
        sleep(LOOK_EVERY).await;
    }
    engine.tidy().await.map_err(|error| Error::Failed(chain(&error)))?;
    match living.len() {
        0 => writeln!(out, "{nothing}")?,
        count => writeln!(out, "no server was running; stopped {count} left running")?,
    }
    Ok(())
}

/// Text that names the remaining workloads and their processes, with advice.
async fn still_there(engine: &dyn Engine, left: &[ListedRun]) -> String {
    let mut named = Vec::new();
    for ListedRun { key, state, .. } in left {
        // The name is for information only; a run whose files are gone is shown by its key.
        let name = engine.pod_name(*key).await.unwrap_or_else(|| format!("run {key}"));
        let pid = if let RunState::Running { pid, .. } = state { *pid } else { None };
        named.push(describe(&name, pid));
    }
    let look = match engine.capabilities().runtime.as_str() {
        "docker" => "docker ps --filter label=elastane.pod=<name>",
        _ => "ps -fp <process>",
    };
    format!(
        "these workloads do not end: {}; look at them with `{look}`, end what holds them, then run \
         `elastane down` again",
        named.join(", ")
    )
}

fn describe(name: &str, pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("{name} (process {pid})"),
        None => format!("{name} (no process known)"),
    }
}
