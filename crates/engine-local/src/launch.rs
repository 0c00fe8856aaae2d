//! The last steps of a start, once all that the run needs exists. Owns: their order, which leaves
//! nothing behind that looks like a run, and how a supervisor is spawned.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use engine::{Error, RunSpec};
use engine_channel::Opens;
use tokio::process::{Child, Command};

use crate::environment;
use crate::events;
use crate::isolation::Boundary;
use crate::ownership;
use crate::paths::{Paths, make_dir};
use crate::process::SUPERVISE;
use crate::record::{RunDir, Runtime, SpecFile, StateFile};
use crate::secrets::Secrets;
use crate::shared::LocalEngineState;

/// Prepares the run and starts its supervisor.
pub(crate) fn launch(
    shared: &Arc<LocalEngineState>,
    spec: &RunSpec,
    file: &SpecFile,
) -> Result<(), Error> {
    let key = spec.key;
    let dir = shared.dir(key);
    let fresh = !dir.exists();
    let spawned = prepare(shared, &dir, spec, file).and_then(|()| {
        let Runtime::Process(process) = &file.runtime;
        let account = process.boundary.as_ref().and_then(Boundary::account);
        let gang = spec.gang.as_ref().map(|gang| gang.workload);
        shared.open_channel(key, account, Opens::First(gang));
        spawn_supervisor(shared, &dir).map_err(|source| Error::io("start the supervisor", source))
    });
    match spawned {
        Ok(supervisor) => {
            shared.know(key, StateFile::Starting);
            events::spawn_started(shared, key, supervisor);
            Ok(())
        }
        Err(error) => {
            shared.channels.close(key);
            // A directory that existed before may have a supervisor that is starting.
            if fresh {
                shared.fractions.forget(key);
                if let Err(left) = shared.trash.discard(dir.path()) {
                    tracing::warn!("cannot delete {}: {left}", dir.path().display());
                }
            }
            Err(error)
        }
    }
}

fn prepare(
    shared: &LocalEngineState,
    dir: &RunDir,
    spec: &RunSpec,
    file: &SpecFile,
) -> Result<(), Error> {
    let key = spec.key;
    let Runtime::Process(process) = &file.runtime;
    let account = process.boundary.as_ref().and_then(Boundary::account);
    let given = |path: &Path| {
        account.map_or(Ok(()), |account| ownership::give(path, account)).map_err(|source| {
            Error::io(format!("give {} to the account of the run", path.display()), source)
        })
    };
    let own = [Paths::work, Paths::home, Paths::checkpoint];
    for folder in own.map(|of| of(&shared.paths, key.pod)) {
        make_dir(&folder)?;
        // The folder around it may belong to the account of an earlier run, which deleted this
        // one.
        given(&folder)?;
    }
    given(&shared.paths.pod(key.pod))?;
    make_dir(dir.path())?;
    given(&dir.copies())?;
    if file.secrets {
        dir.write_secrets(&Secrets::of(&spec.secrets))
            .map_err(|source| Error::io(format!("write the secrets of {key}"), source))?;
    }
    if let Some(hosts) = spec.gang.as_ref().and_then(|gang| gang.hostfile(&environment::address)) {
        std::fs::write(dir.hostfile(), hosts)
            .map_err(|source| Error::io(format!("write the hostfile of {key}"), source))?;
        given(&dir.hostfile())?;
    }
    if let Some(fraction) = &process.fraction {
        let account = account.map(|account| (account.uid, account.gid));
        shared.fractions.prepare(key, fraction, &dir.fraction(), account)?;
    }
    if let Some(memory) = &process.memory {
        memory
            .prepare(account)
            .map_err(|source| Error::io(format!("make {}", memory.folder.display()), source))?;
    }
    dir.write_spec_once(file)
        .map_err(|source| Error::io(format!("write the specification of {key}"), source))
}

/// Starts a supervisor, which itself decides whether it is the first.
pub(crate) fn spawn_supervisor(shared: &LocalEngineState, dir: &RunDir) -> io::Result<Child> {
    let complaints: Stdio = dir.append("supervisor.log").map_or_else(|_| Stdio::null(), File::into);
    Command::new(&shared.supervisor)
        .arg(SUPERVISE)
        .arg(dir.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(complaints)
        .spawn()
}
