//! Starting a run. Owns: the order of the steps, which is what makes it safe to start again after a
//! crash between any two: image, copies, network, container, files, start.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bollard::errors::Error as Fault;
use bollard::query_parameters::{CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use engine::copy::NotCopied;
use engine::{Error, Exit, MountSource, PullPolicy, RunSpec, RunState};
use tokio::sync::oneshot;

use crate::books::Known;
use crate::container;
use crate::copies::Copies;
use crate::look::plain;
use crate::open::{Shared, now};
use crate::user::Who;
use crate::{chain, failed, files, image, network, program, status, watch};

/// Of a daemon that is going down or has lost its own helpers: not the container's fault.
const PASSING: [&str; 4] = ["unavailable", "context canceled", "shutting down", "ttrpc: closed"];

/// Between two tries to remove what must not be left.
const REMOVE_PAUSE: Duration = Duration::from_secs(1);

/// Starts a run; the caller has its turn. An image that is not here is pulled first, and repositories are
/// copied; the caller does not wait for that.
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
    let copied = spec.container.copies().next().is_some();
    if let Some(user) = found.as_deref().filter(|_| !copied) {
        shared.books.know(key, Known::asked_for(spec.workload_id));
        let launched = launch(shared, &spec, user, &Copies::default()).await;
        if launched.is_err() {
            shared.books.forget(key);
            clear(shared, &spec).await;
        }
        return launched;
    }
    shared.books.know(key, Known::asked_for(spec.workload_id));
    let (running, cancelled) = oneshot::channel();
    shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).insert(key, running);
    let own = Arc::clone(shared);
    shared.spawn(async move { fetch(&own, &spec, found, cancelled).await });
    Ok(())
}

/// Gets what a run needs, then starts it. `found`: the user of the image, which is here.
async fn fetch(
    shared: &Arc<Shared>,
    spec: &RunSpec,
    found: Option<String>,
    mut cancelled: oneshot::Receiver<()>,
) {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let ended = |exit| shared.books.report(key, RunState::Exited { exit, at: now() });
    let got = get(shared, spec, found.is_none(), &mut cancelled).await;
    let _turn = shared.books.turns.take(key).await;
    // From here on a stop comes after it.
    let wanted = shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    let copies = match got {
        Ok(copies) if wanted.is_some() => copies,
        Err(NotCopied::Failed(why)) if wanted.is_some() => return ended(Exit::CannotRun(why)),
        _ => return,
    };
    let found = match found {
        Some(user) => Ok(Some(user)),
        None => image::find(docker, &spec.image).await,
    };
    let launched = match found {
        Ok(Some(user)) => launch(shared, spec, &user, &copies).await,
        Ok(None) => Err(Error::Invalid(format!(
            "image `{}` was pulled and is not there; it is perhaps made for another machine",
            spec.image
        ))),
        Err(error) => Err(error),
    };
    if let Err(error) = launched {
        // Nobody stops it after this: told as ended while it lives, it would be started a second time.
        while let Err(left) = shared.remove_container(key).await {
            tracing::warn!("{}; trying again", chain(&left));
            tokio::time::sleep(REMOVE_PAUSE).await;
        }
        clear(shared, spec).await;
        ended(match error {
            Error::Invalid(why) => Exit::CannotRun(why),
            other => {
                tracing::warn!("run {key} is lost: {}", chain(&other));
                Exit::Lost
            }
        });
    }
}

/// Pulls the image, if asked to, and copies the repositories.
async fn get(
    shared: &Shared,
    spec: &RunSpec,
    pull: bool,
    cancelled: &mut oneshot::Receiver<()>,
) -> Result<Copies, NotCopied> {
    let tell = |text| shared.books.report(spec.key, RunState::Preparing(text));
    if pull {
        let docker = &shared.daemon.docker;
        tokio::select! {
            pulled = image::pull(docker, &spec.image, spec.registry.as_ref(), tell) => pulled,
            _ = &mut *cancelled => return Err(NotCopied::Stopped),
        }
        .map_err(NotCopied::Failed)?;
    }
    Copies::make(&shared.copies, spec, cancelled, tell).await
}

/// Makes the container and starts it, whatever of that has been done before.
async fn launch(
    shared: &Arc<Shared>,
    spec: &RunSpec,
    user: &str,
    copies: &Copies,
) -> Result<(), Error> {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let name = container::name(key);
    let network = network::name(spec, &shared.owner);
    let turn = shared.networks.take(network.clone()).await;
    network::make(&shared.daemon, &network, &shared.owner).await?;
    // Nobody takes the network away of those that work alone.
    let _turn = spec.gang.is_some().then_some(turn);
    let found = match shared.look(key).await? {
        Some((_, look)) => look.state,
        None => {
            create(shared, spec, user, &network, copies).await?;
            RunState::Starting
        }
    };
    shared.books.has_container(key);
    let refused = match found {
        RunState::Starting => match swapped(spec).await {
            None => docker.start_container(&name, None).await.err().as_ref().and_then(refusal),
            swapped => swapped,
        },
        _ => None,
    };
    if let Some(why) = refused {
        // Kept: where the daemon refused, it is how a later server learns what became of the run.
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

async fn create(
    shared: &Shared,
    spec: &RunSpec,
    user: &str,
    network: &str,
    copies: &Copies,
) -> Result<(), Error> {
    let docker = &shared.daemon.docker;
    let (key, facts) = (spec.key, shared.facts());
    let name = container::name(key);
    let who = Who::of(spec, user);
    who.check(spec)?;
    let archives = files::archives(spec, who)?;
    let mut body = container::body(spec, &shared.owner, network, &facts)?;
    if let Some(program) = shared.program(spec) {
        program.stand_in(&mut body, spec);
    }
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
    copies.put(docker, spec, who).await
}

/// Why a folder of the node is no longer the one that was allowed, which had no link on the way to it.
/// Looked at as late as can be: between this and the daemon's own look are no more than milliseconds.
async fn swapped(spec: &RunSpec) -> Option<String> {
    for mount in &spec.container.mounts {
        let MountSource::HostPath { path, .. } = &mount.from else { continue };
        let shown = path.display();
        match tokio::fs::canonicalize(path).await {
            Ok(real) if real == *path => {}
            Ok(_) => {
                return Some(format!(
                    "{shown} was replaced by a link since the workload was submitted; submit it again"
                ));
            }
            Err(error) => {
                return Some(format!("{shown} cannot be mounted from this machine: {error}"));
            }
        }
    }
    None
}

/// Why the daemon cannot start this container at all; none if it may another time, or did not answer.
fn refusal(fault: &Fault) -> Option<String> {
    status(fault)?;
    let Fault::DockerResponseServerError { message, .. } = fault else { return None };
    let passing = PASSING.iter().any(|word| message.contains(word));
    (!passing).then(|| plain(message))
}

/// Nothing is left of a start that failed; what cannot be removed now is so by the stop that follows.
async fn clear(shared: &Shared, spec: &RunSpec) {
    let container = shared.remove_container(spec.key).await;
    let network = network::discard(shared, spec.workload_id).await;
    for left in [container, network].into_iter().filter_map(Result::err) {
        tracing::warn!("{}", chain(&left));
    }
}
