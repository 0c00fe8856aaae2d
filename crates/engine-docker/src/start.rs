//! Starting a run. Owns: the order of the steps, which is what makes it safe to start again after a
//! crash between any two: image, network, container, files, start.

use std::sync::{Arc, PoisonError};

use bollard::errors::Error as Fault;
use bollard::query_parameters::{CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use engine::{Error, Exit, MountSource, PullPolicy, RunSpec, RunState};
use tokio::sync::oneshot;

use crate::books::Known;
use crate::container;
use crate::look::plain;
use crate::open::{Shared, now};
use crate::user::Who;
use crate::{failed, files, image, network, program, status, watch};

/// Of a daemon that is going down or has lost its own helpers: not the container's fault.
const PASSING: [&str; 4] = ["unavailable", "context canceled", "shutting down", "ttrpc: closed"];

/// Starts a run; the caller has its turn. Where the image is not here, it is pulled first, and the
/// caller does not wait for that.
pub(crate) async fn start(shared: &Arc<Shared>, spec: RunSpec) -> Result<(), Error> {
    let key = spec.key;
    if shared.books.state(key).is_some() {
        return Ok(());
    }
    container::check(&spec, &shared.facts())?;
    let found = match shared.program(&spec) {
        Some(_) => {
            program::prepare(&shared.daemon).await?;
            Some(String::new())
        }
        None => image::find(&shared.daemon.docker, &spec.image)
            .await?
            .filter(|_| spec.container.pull != PullPolicy::Always),
    };
    if found.is_none() && spec.container.pull == PullPolicy::Never {
        return Err(Error::Invalid(format!(
            "image `{}` is not on this machine, and imagePullPolicy Never says not to pull it",
            spec.image
        )));
    }
    if let Some(user) = found {
        shared.books.know(key, Known::default());
        let launched = launch(shared, &spec, &user).await;
        if launched.is_err() {
            undo(shared, &spec).await;
        }
        return launched;
    }
    let state = RunState::Preparing(format!("pulling image `{}`", spec.image));
    shared.books.know(key, Known::default());
    shared.books.report(key, state);
    let (running, cancelled) = oneshot::channel();
    shared.pulling.lock().unwrap_or_else(PoisonError::into_inner).insert(key, running);
    let own = Arc::clone(shared);
    shared.spawn(async move {
        tokio::select! {
            () = fetch(&own, &spec) => {}
            _ = cancelled => {}
        }
    });
    Ok(())
}

/// Pulls the image of a run, then starts it.
async fn fetch(shared: &Arc<Shared>, spec: &RunSpec) {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let ended = |exit| shared.books.report(key, RunState::Exited { exit, at: now() });
    let tell = |text| shared.books.report(key, RunState::Preparing(text));
    if let Err(why) = image::pull(docker, &spec.image, spec.registry.as_ref(), tell).await {
        return ended(Exit::CannotRun(why));
    }
    let _turn = shared.books.turns.take(key).await;
    // From here on a stop comes after it.
    if shared.pulling.lock().unwrap_or_else(PoisonError::into_inner).remove(&key).is_none() {
        return;
    }
    let launched = match image::find(docker, &spec.image).await {
        Ok(Some(user)) => launch(shared, spec, &user).await,
        Ok(None) => Err(Error::Invalid(format!(
            "image `{}` was pulled and is not there; it is perhaps made for another machine",
            spec.image
        ))),
        Err(error) => Err(error),
    };
    if let Err(error) = launched {
        if let Err(left) = shared.remove_container(key).await {
            tracing::warn!("{left}");
        }
        ended(match error {
            Error::Invalid(why) => Exit::CannotRun(why),
            _ => Exit::Lost,
        });
    }
}

/// Makes the container and starts it, whatever of that has been done before.
async fn launch(shared: &Arc<Shared>, spec: &RunSpec, user: &str) -> Result<(), Error> {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let name = container::name(key);
    let _network = match spec.gang {
        Some(_) => Some(shared.networks.lock().await),
        None => None,
    };
    let found = match shared.look(key).await? {
        Some((_, look)) => look.state,
        None => {
            create(shared, spec, user).await?;
            RunState::Starting
        }
    };
    shared.books.has_container(key);
    let refused = match found {
        RunState::Starting => match swapped(spec) {
            None => docker.start_container(&name, None).await.err().as_ref().and_then(refusal),
            swapped => swapped,
        },
        _ => None,
    };
    if let Some(why) = refused {
        // Kept: it is how a later server learns what became of the run.
        shared.books.report(key, RunState::Exited { exit: Exit::CannotRun(why), at: now() });
        return Ok(());
    }
    match shared.look(key).await? {
        Some((_, look)) if look.state != RunState::Starting => watch::take(shared, key, look).await,
        _ => Err(Error::Io {
            what: format!("start the container of run {key}"),
            source: std::io::Error::other("it did not start"),
        }),
    }
}

async fn create(shared: &Shared, spec: &RunSpec, user: &str) -> Result<(), Error> {
    let docker = &shared.daemon.docker;
    let (key, facts) = (spec.key, shared.facts());
    let name = container::name(key);
    let network = network::name(spec, &shared.owner);
    let who = Who::of(spec, user);
    who.check(spec)?;
    let archives = files::archives(spec, who)?;
    let mut body = container::body(spec, &shared.owner, &network, &facts)?;
    if let Some(program) = shared.program(spec) {
        program.stand_in(&mut body, spec);
    }
    let alone = match spec.gang {
        Some(_) => None,
        None => Some(shared.networks.lock().await),
    };
    network::make(&shared.daemon, &network, &shared.owner).await?;
    drop(alone);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    match docker.create_container(Some(options), body).await {
        Ok(_) => {}
        Err(Fault::DockerResponseServerError { status_code: 400 | 404, message }) => {
            return Err(Error::Invalid(message));
        }
        Err(fault) => return Err(failed(format!("make the container of run {key}"), fault)),
    }
    for (folder, archive) in archives {
        let there = UploadToContainerOptionsBuilder::default().path(folder).build();
        let sent = bollard::body_full(archive.into());
        let given = docker.upload_to_container(&name, Some(there), sent).await;
        given.map_err(|fault| failed(format!("give run {key} its files"), fault))?;
    }
    Ok(())
}

/// Why a folder of the node is no longer the one that was allowed, which had no link on the way to it.
/// Looked at as late as can be: between this and the daemon's own look are no more than milliseconds.
fn swapped(spec: &RunSpec) -> Option<String> {
    spec.container.mounts.iter().find_map(|mount| {
        let MountSource::HostPath { path, .. } = &mount.from else { return None };
        let shown = path.display();
        match path.canonicalize() {
            Ok(real) if real == *path => None,
            Ok(_) => Some(format!(
                "{shown} was replaced by a link since the workload was submitted; submit it again"
            )),
            Err(error) => Some(format!("{shown} cannot be mounted from this machine: {error}")),
        }
    })
}

/// Why the daemon cannot start this container at all; none if it may another time, or did not answer.
fn refusal(fault: &Fault) -> Option<String> {
    status(fault)?;
    let Fault::DockerResponseServerError { message, .. } = fault else { return None };
    let passing = PASSING.iter().any(|word| message.contains(word));
    (!passing).then(|| plain(message))
}

/// Nothing is left of a start that failed; what cannot be removed now is so by the stop that follows.
async fn undo(shared: &Shared, spec: &RunSpec) {
    shared.books.forget(spec.key);
    if let Err(error) = shared.remove_container(spec.key).await {
        tracing::warn!("{error}");
    }
    let network = network::name(spec, &shared.owner);
    if let Err(error) = network::discard(&shared.daemon.docker, &network, &shared.owner).await {
        tracing::warn!("{error}");
    }
}
