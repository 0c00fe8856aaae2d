//! Starting a run. Owns: the order of the steps, which makes a start safe to repeat after a crash
//! between any two: image, copies, network, container, files, start.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bollard::errors::Error as Fault;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use engine::copy::NotCopied;
use engine::{Error, Exit, MountSource, PullPolicy, RunEvent, RunKey, RunPlace, RunSpec, RunState};
use tokio::sync::oneshot;

use crate::copies::Copies;
use crate::daemon::Daemon;
use crate::image::ImageDefaults;
use crate::inspect::plain;
use crate::run_registry::RegisteredRun;
use crate::shared::{DockerEngineState, blocking, now};
use crate::user::ContainerUser;
use crate::{
    base_image, chain, container, disk, events, failed, files, image, libpod, names, network,
    status,
};

/// Errors of a daemon that shuts down, has lost its helpers, or cannot connect a network now: not
/// the container's fault.
const PASSING: [&str; 5] = [
    "unavailable",
    "context canceled",
    "shutting down",
    "ttrpc: closed",
    "failed to create endpoint",
];

/// The signal that a run ended with which was stopped before it ran.
pub(crate) const TERM: i32 = 15;
/// Pause between two attempts to remove a failed start.
const REMOVE_PAUSE: Duration = Duration::from_secs(1);

/// Starts a run; the caller holds its lock. Pulling a missing image, copying repositories and
/// waiting for the gang's network happen in the background.
pub(crate) async fn start(shared: &Arc<DockerEngineState>, spec: RunSpec) -> Result<(), Error> {
    let key = spec.key;
    if shared.runs.state(key).is_some() {
        return Ok(());
    }
    shared.check(&spec)?;
    let found = match shared.program(&spec) {
        Some(_) => Some(ImageDefaults::default()),
        None => image::find(&shared.daemon.docker, &spec.image)
            .await?
            .filter(|_| spec.container.pull != PullPolicy::Always),
    };
    if found.is_none() && spec.container.pull == PullPolicy::Never {
        return Err(Error::Invalid(format!(
            "image `{0}` is not on this machine, and imagePullPolicy Never forbids pulling it; pull \
             it here (`docker pull {0}`), or submit with --image-pull-policy IfNotPresent",
            spec.image
        )));
    }
    let waits = engine::copy::copies(&spec.container).next().is_some() || spec.gang.is_some();
    shared.runs.know(key, RegisteredRun::requested(spec.workload_id, Some(RunPlace::of(&spec))));
    let (running, mut cancelled) = oneshot::channel();
    if let Some(image) = found.as_ref().filter(|_| !waits) {
        let launched = launch(shared, &spec, image, &Copies::default(), &mut cancelled).await;
        if launched.is_err() {
            shared.runs.forget(key);
            clear(shared, &spec).await;
        }
        return launched.map(drop);
    }
    shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).insert(key, running);
    let own = Arc::clone(shared);
    shared.spawn(async move { fetch(&own, &spec, found, cancelled).await });
    Ok(())
}

/// Prepares a run, then starts it. `found`: the image, if it is local.
async fn fetch(
    shared: &Arc<DockerEngineState>,
    spec: &RunSpec,
    found: Option<ImageDefaults>,
    mut cancelled: oneshot::Receiver<()>,
) {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let got = get(shared, spec, found.is_none(), &mut cancelled).await;
    let made = got.is_ok();
    let turn = shared.runs.turns.take(key).await;
    let launched = match (got, found) {
        (Ok(copies), Some(image)) => launch(shared, spec, &image, &copies, &mut cancelled).await,
        (Ok(copies), None) => match image::find(docker, &spec.image).await {
            Ok(Some(image)) => launch(shared, spec, &image, &copies, &mut cancelled).await,
            Ok(None) => Err(Error::Invalid(format!(
                "image `{}` was pulled and is not there; it is perhaps made for another machine",
                spec.image
            ))),
            Err(error) => Err(error),
        },
        (Err(NotCopied::Failed(why)), _) => Err(Error::Invalid(why)),
        (Err(NotCopied::Stopped), _) => Ok(false),
    };
    let exit = match launched {
        Ok(true) => None,
        Ok(false) => Some(Exit::Signal(TERM)),
        Err(Error::Invalid(why)) => Some(Exit::CannotRun(why)),
        Err(Error::NotKept(why)) => Some(Exit::NotKept(why)),
        Err(other) => Some(Exit::NotStarted(chain(&other))),
    };
    let failed = exit.is_some();
    if let Some(exit) = exit
        && (!made || is_removed(shared, key).await)
    {
        shared.runs.report(key, RunState::Exited { exit, at: now() });
    }
    shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    // Others of its gang may hold the network's lock for long.
    drop(turn);
    if failed
        && made
        && let Err(left) = network::discard(shared, spec.workload_id).await
    {
        tracing::warn!("{}", chain(&left));
    }
}

/// Removes what exists of a run that was not started: if it were reported as ended while it lives,
/// it would be started twice. False: it still exists, and a stop of the run removes it.
async fn is_removed(shared: &DockerEngineState, key: RunKey) -> bool {
    while let Err(left) = shared.remove_container(key).await {
        shared.runs.has_container(key);
        if !shared.fetching.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&key) {
            return false;
        }
        tracing::warn!("{}; trying again", chain(&left));
        tokio::time::sleep(REMOVE_PAUSE).await;
    }
    true
}

/// The result of a future; `None` if the run is stopped before.
async fn unless_stopped<T>(
    cancelled: &mut oneshot::Receiver<()>,
    what: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        _ = cancelled => None,
        done = what => Some(done),
    }
}

/// Pulls the image if needed, and copies the repositories.
async fn get(
    shared: &DockerEngineState,
    spec: &RunSpec,
    pull: bool,
    cancelled: &mut oneshot::Receiver<()>,
) -> Result<Copies, NotCopied> {
    let report = |event| shared.runs.report_preparation(spec.key, event);
    let tell = |text| report(RunEvent::Preparing(text));
    if pull {
        let (docker, login) = (&shared.daemon.docker, spec.registry.as_ref());
        let pulling = image::pull(docker, &spec.image, login, shared.pull_pause, report);
        tokio::select! {
            pulled = pulling => pulled,
            _ = &mut *cancelled => return Err(NotCopied::Stopped),
        }
        .map_err(NotCopied::Failed)?;
    }
    let limits = (&*shared.copies, shared.copy_bytes_max);
    Copies::make(limits, &shared.trash, spec, cancelled, tell).await
}

/// Creates the container and starts it, continuing after a crash. False: the run was stopped
/// before.
async fn launch(
    shared: &Arc<DockerEngineState>,
    spec: &RunSpec,
    image: &ImageDefaults,
    copies: &Copies,
    cancelled: &mut oneshot::Receiver<()>,
) -> Result<bool, Error> {
    let key = spec.key;
    let docker = &shared.daemon.docker;
    let name = names::container(key);
    let network = network::name(spec, &shared.owner);
    let turn = shared.networks.take(network.clone());
    let Some(turn) = unless_stopped(cancelled, turn).await else { return Ok(false) };
    network::make(&shared.daemon, &network, &shared.owner).await?;
    // The network of pods without a gang is not removed while the server runs.
    let _turn = spec.gang.is_some().then_some(turn);
    let found = match shared.inspect(key).await? {
        Some((_, inspected)) => inspected.state,
        None => {
            let who = create(shared, spec, image, &network).await?;
            let given = unless_stopped(cancelled, copies.put(docker, spec, who)).await;
            let Some(given) = given else { return Ok(false) };
            given?;
            RunState::Starting
        }
    };
    shared.runs.has_container(key);
    let refused = match found {
        RunState::Starting => match swapped(spec).await {
            None => docker.start_container(&name, None).await.err().as_ref().and_then(refusal),
            swapped => swapped,
        },
        _ => None,
    };
    if let Some(why) = refused {
        // The container is kept: if the daemon refused, a later server learns the result from it.
        // Its fraction is free for other runs before its end is reported.
        shared.fractions.fractions.forget(key);
        shared.runs.report(key, RunState::Exited { exit: Exit::CannotRun(why), at: now() });
        return Ok(true);
    }
    match shared.inspect(key).await? {
        Some((_, inspected)) if inspected.state != RunState::Starting => {
            events::take(shared, key, inspected).await.map(|()| true)
        }
        _ => Err(Error::Io {
            what: format!("start the container of run {key}"),
            source: std::io::Error::other("it did not start"),
        }),
    }
}

/// Creates the container, and reports its user.
async fn create(
    shared: &DockerEngineState,
    spec: &RunSpec,
    image: &ImageDefaults,
    network: &str,
) -> Result<ContainerUser, Error> {
    let docker = &shared.daemon.docker;
    let (key, mut facts) = (spec.key, shared.facts());
    facts.free_bytes = disk::free_bytes(&facts);
    let name = names::container(key);
    let who = ContainerUser::of(spec, &image.user);
    who.check(spec)?;
    let archives = files::archives(spec, who)?;
    let added = shared.fractions.of(spec)?;
    let mut body = container::body(spec, &shared.owner, network, &facts, (image, added.as_ref()))?;
    if let Some(program) = shared.program(spec) {
        program.replace_image(&mut body, spec, base_image::prepare(shared).await?);
    }
    if let Some(program) = shared.job_program(spec) {
        program.replace_command(&mut body);
    }
    if let Some(added) = added {
        shared.fractions.complete(&mut body, &added, image);
        let fractions = Arc::clone(&shared.fractions);
        blocking(move || fractions.prepare(key, &added.fraction)).await?;
    }
    shared.channels.add(spec, &mut body);
    let mut made = Box::pin(made(&shared.daemon, &name, body.clone())).await;
    if let Err(Fault::DockerResponseServerError { message, .. }) = &made
        && shared.channels.take_back(key, message, &mut body)
    {
        made = Box::pin(self::made(&shared.daemon, &name, body)).await;
    }
    match made {
        Ok(()) => {}
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
    Ok(who)
}

async fn made(daemon: &Daemon, name: &str, mut body: ContainerCreateBody) -> Result<(), Fault> {
    if daemon.facts.podman {
        libpod::make_volumes(&daemon.docker, &mut body).await?;
    }
    if libpod::is_needed(&body) {
        return libpod::create(&daemon.docker, &daemon.socket, name, body).await;
    }
    let options = CreateContainerOptionsBuilder::default().name(name).build();
    daemon.docker.create_container(Some(options), body).await.map(drop)
}

/// Why a folder of the node is no longer the one that was allowed, which had no symbolic link on
/// its path. Checked as late as possible: milliseconds before the daemon's own access.
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

/// Reason why the daemon can never start this container; `None` if a retry may succeed, or the
/// daemon did not answer.
fn refusal(fault: &Fault) -> Option<String> {
    status(fault)?;
    let Fault::DockerResponseServerError { message, .. } = fault else { return None };
    let passing = PASSING.iter().any(|word| message.contains(word));
    (!passing).then(|| plain(message))
}

/// Removes a failed start; what cannot be removed now is removed by the stop that follows.
async fn clear(shared: &DockerEngineState, spec: &RunSpec) {
    let container = shared.remove_container(spec.key).await;
    let network = network::discard(shared, spec.workload_id).await;
    for left in [container, network].into_iter().filter_map(Result::err) {
        tracing::warn!("{}", chain(&left));
    }
}
