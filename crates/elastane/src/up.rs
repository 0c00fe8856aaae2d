//! `elastane up`: starts the parts of the server, and stops them.
//!
//! ```text
//! values -> state directory -> token -> listener -> engine -> control -> interface -> server.json
//! ```

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control::{Clock as _, SystemClock};
use engine::{Capabilities, Engine, Isolation, IsolationKind, Mechanism};
use rustix::fs::Mode;
use rustix::process::umask;
use spec::NodeSpec;
use tokio::net::TcpListener;
use view::{Phase, PodState, WorkloadView};

use super::config::{self, Config};
use super::entries::{isolation, shared_disk};
use super::settings;
use super::signals::{Signals, stop_on};
use super::{addresses, certificate, initial_nodes, login, runtime, spare};
use cli_kit::exit::{Error, chain};

/// Maximum time from a signal to the end of a start, in which started work ends in order.
const STOP_WAIT: Duration = Duration::from_secs(2);
const STOPPED_EARLY: &str = "the server was stopped while it started\n";

/// Number of serving threads; the rest of the machine is for the workloads.
const WORKERS: usize = 2;
/// Interval of checks whether the local administrator's token needs to be renewed, or was revoked.
const TOKEN_LOOK: Duration = Duration::from_secs(2);
/// Interval of checks of the server's memory.
const MEMORY_LOOK: Duration = Duration::from_secs(5);

pub(super) fn run(state_dir: Option<PathBuf>, flags: settings::Layer) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Error::Failed(format!("failed to start: {error}")))?;
    // Before anything else, so that a signal during the start ends the server in order, too.
    let signals = {
        let _inside = runtime.enter();
        Signals::listen()?
    };
    settings::variables::warn();
    let config = config::resolve(state_dir.as_deref(), flags, &super::env)
        .map_err(|error| Error::Usage(error.to_string()))?;
    let log = telemetry::Log::to_stderr()
        .map_err(|error| Error::Failed(format!("failed to start: {error}")))?;
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(config.settings.log)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .init();
    let ended = serve_on(runtime, &config, signals);
    log.finish();
    print_text(&ended?);
    Ok(())
}

/// Serves until the end; returns the text to print then.
fn serve_on(
    runtime: tokio::runtime::Runtime,
    config: &Config,
    signals: Signals,
) -> Result<String, Error> {
    // Files of the server are private to its user; those of workloads have the usual mode.
    let umask = umask(Mode::RWXG | Mode::RWXO).as_raw_mode();
    let served = runtime.block_on(async {
        let shutdown = http_kit::Shutdown::default();
        let by_signal = stop_on(signals, shutdown.clone());
        serve(config, umask, shutdown, by_signal).await
    });
    // Ends the remaining users of the store now, so that a process that waits for the end of
    // `server.json` may start the next server at once.
    runtime.shutdown_timeout(Duration::from_secs(2));
    let withdrawn = withdraw(&config.settings.state_dir);
    // An error of the server is more important than one of the cleanup.
    let farewell = served?;
    withdrawn?;
    Ok(farewell)
}

/// Removes `server.json`, unless another server has written its own by now.
fn withdraw(state_dir: &Path) -> Result<(), Error> {
    let own = |file: client::ServerFile| file.pid == std::process::id();
    if client::read_server_file(state_dir)?.is_some_and(own) {
        fs::remove_file(state_dir.join(client::SERVER_FILE))?;
    }
    Ok(())
}

/// The parts of an open server.
struct Server {
    listener: TcpListener,
    tls: Option<http_kit::Tls>,
    service: control::Service,
    state: api::State,
    /// Its address on this machine.
    local_url: String,
    engine: Arc<dyn Engine>,
    store: store::Store,
    /// Description of the engine, for people.
    runtime: String,
}

/// Serves until `shutdown`; returns the text to print at the end.
async fn serve(
    config: &Config,
    umask: u32,
    shutdown: http_kit::Shutdown,
    by_signal: Arc<AtomicBool>,
) -> Result<String, Error> {
    let dir = state_dir(&config.settings.state_dir)?;
    let opening = async {
        let mut found = find_machines(config, &dir).await?;
        let server = open(config, &dir, &mut found, umask, shutdown.clone()).await?;
        found.nodes = present_nodes(config, &dir, &server.state.control);
        Ok::<_, Error>((found, server))
    };
    let (found, server) = tokio::select! {
        opened = opening => opened?,
        // The start may wait for ever, for instance for a database.
        () = too_late(&shutdown) => return Ok(STOPPED_EARLY.to_owned()),
    };
    initial_nodes::remember(&found, &dir)?;
    let url = server.local_url.clone();
    let file = client::ServerFile { url: url.clone(), pid: std::process::id() };
    client::write_server_file(&config.settings.state_dir, &file)?;
    if !by_signal.load(Ordering::Relaxed) {
        let link = login_link(&server.state.authority, &url)?;
        let (urls, dir) = ((&*url, link.as_deref()), &config.settings.state_dir);
        print_text(&banner(urls, dir, &server.runtime, &found, &server.state.control));
    }

    let Server { listener, tls, service, state, engine, store, .. } = server;
    tls.iter().cloned().try_for_each(certificate::follow)?;
    let serving = tokio::spawn(state.serving.clone().run());
    let training = tokio::spawn(state.training.clone().run());
    let control = state.control.clone();
    let (resealed, vault) = (control.clone(), state.vault.clone());
    tokio::spawn(async move { assets::reseal(&resealed, &vault).await });
    tokio::spawn(renew_token(state.authority.clone()));
    tokio::spawn(release_memory());
    tokio::spawn(spare::keep_room(store, dir));
    let limits = addresses::limits(&config.settings.trusted_proxies);
    let router = api::router(state);
    let interface = http_kit::serve_within(limits, listener, tls, router, shutdown.clone());
    let deciding = {
        let stop = shutdown.clone();
        service.run(async move { stop.wait().await })
    };
    // An error of one part ends the other as well.
    let interface = async {
        interface.await;
        shutdown.trigger();
    };
    let deciding = async {
        let ended = deciding.await;
        shutdown.trigger();
        ended
    };
    let ((), deciding) = tokio::join!(interface, deciding);
    // Open requests have had their time; replicas continue.
    serving.abort();
    training.abort();
    deciding.map_err(|error| Error::Failed(chain(&error)))?;
    let by_signal = by_signal.load(Ordering::Relaxed);
    if !by_signal && let Err(error) = engine.tidy().await {
        tracing::warn!("{}", chain(&error));
    }
    let view = control.view();
    let pods = view.workloads.values().flat_map(|workload| &workload.pods);
    Ok(farewell(by_signal, pods.map(|pod| pod.state)))
}

/// Returns free memory to the system after the start, and after each peak of load.
async fn release_memory() {
    let mut footprint = engine_local::Footprint::default();
    loop {
        tokio::time::sleep(MEMORY_LOOK).await;
        if let Err(error) = footprint.keep_small() {
            tracing::debug!("memory is not released: {error}");
        }
    }
}

/// Renews the token in the state directory in time, by the system clock, as the machine may have
/// been suspended.
async fn renew_token(authority: Arc<auth::Authority>) {
    loop {
        tokio::time::sleep(TOKEN_LOOK).await;
        if let Err(error) = authority.renew_local(SystemClock.now()) {
            tracing::warn!("cannot renew the local administrator's token: {}", chain(&error));
        }
    }
}

/// The state directory, created if needed, as an absolute path: it is an argument of other
/// processes, which have other working directories.
fn state_dir(dir: &Path) -> Result<PathBuf, Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| {
        Error::Failed(format!("cannot create the state directory {}: {error}", dir.display()))
    })?;
    let dir = fs::canonicalize(dir).map_err(|error| {
        Error::Failed(format!("cannot use the state directory {}: {error}", dir.display()))
    })?;
    check_private(&dir)?;
    if let Err(error) = spare::give_up(&dir) {
        tracing::warn!("the disk may be full, and no room is made for the start: {error}");
    }
    Ok(dir)
}

/// Address of the API on this machine.
fn local_url(listener: &TcpListener, encrypts: bool) -> Result<String, Error> {
    let scheme = if encrypts { "https" } else { "http" };
    Ok(format!("{scheme}://{}", addresses::reachable(listener.local_addr()?)))
}

async fn open(
    config: &Config,
    dir: &Path,
    found: &mut initial_nodes::InitialNodes,
    umask: u32,
    shutdown: http_kit::Shutdown,
) -> Result<Server, Error> {
    let failed = |error: &dyn std::error::Error| Error::Failed(chain(error));
    let tls = certificate::open(config)?;
    let store = store::Store::open_in(dir, &config.database).await.map_err(|e| failed(&e))?;
    let clock = Arc::new(SystemClock);
    // Before the first connection: its client finds the token of this start.
    let authority = auth::Authority::open(dir, &store, &local_user(), clock.now()).await;
    let authority = authority.map_err(|error| failed(&error))?;
    let listener = listen(config.settings.listen).await?;
    let vault = vault(config, dir)?;
    let login_provider = config.login.as_ref().map(login::open).transpose()?;
    let real_gpus = found.nodes.iter().any(NodeSpec::has_real_gpus);
    let setup = setup(config, dir, umask, found);
    let opened = runtime::open(config.settings.runtime, setup, real_gpus).await?;
    let Capabilities { isolation, fractions, .. } = opened.engine.capabilities();
    check_isolation(config, &isolation)?;
    let options = control::Options {
        cluster_name: config.settings.cluster_name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        nodes: found.list(fractions.installed.mechanism == Mechanism::Mig),
        // A change of real hardware is no mistake: workloads of a lost GPU are moved.
        replaces_nodes: config.settings.replace_nodes || real_gpus,
        engine: opened.engine.clone(),
        store: store.clone(),
        policy: policy(config, dir),
        clock: clock.clone(),
        unseal: api::unseal(vault.clone()),
        node_access: Arc::new(node_access(config, dir, opened.socket)?),
        settings: orchestrator::Settings {
            ended_kept: config.settings.ended_workloads_kept,
            user_limits: config.settings.user_limits.clone(),
            places_kept_ms: config.settings.places_kept,
            default_project: config.settings.default_project.clone(),
        },
        samples: assets::samples().map_err(|error| Error::Failed(error.message()))?,
        kept: config.kept(),
        recording: recording(dir, config.settings.recording_max),
        decision_fault: None,
        batch_fault: None,
    };
    let (service, control) =
        Box::pin(control::Service::open(options)).await.map_err(|error| failed(&error))?;
    let local_url = local_url(&listener, tls.is_some())?;
    let public_url = config.settings.public_url.as_deref();
    let state = api::State {
        serving: serving::Service::new(control.clone()),
        training: training::Service::new(control.clone(), api::unseal(vault.clone())),
        url: public_url.unwrap_or(&local_url).to_owned(),
        url_is_public: public_url.is_some(),
        control,
        authority: Arc::new(authority),
        login_provider,
        vault,
        clock,
        hosts: addresses::hosts(public_url, config.settings.listen, tls.as_ref()),
        proxies: config.settings.trusted_proxies.clone(),
        workloads_domain: config.settings.workloads_domain.clone(),
        client_program: client_program(),
        shutdown,
    };
    let (engine, runtime) = (opened.engine, opened.said);
    Ok(Server { listener, tls, service, state, local_url, engine, store, runtime })
}

/// The nodes for the announcement: they may have been added or removed since the first start with
/// these settings. Those of a cluster are not announced.
fn present_nodes(config: &Config, dir: &Path, control: &control::Handle) -> Vec<NodeSpec> {
    if runtime::is_kubernetes(config.settings.runtime, dir) {
        return Vec::new();
    }
    control.view().nodes.iter().map(|node| NodeSpec::clone(&node.spec)).collect()
}

/// Policy of decisions. A pod of Kubernetes cannot be moved, so none is stopped to be moved.
fn policy(config: &Config, dir: &Path) -> sched::Policy {
    let usual = sched::Policy { usage: config.usage, ..sched::Policy::default() };
    match runtime::is_kubernetes(config.settings.runtime, dir) {
        true => sched::Policy { consolidation_moves_max: 0, ..usual },
        false => usual,
    }
}

/// Settings of the engine.
fn setup<'d>(
    config: &'d Config,
    dir: &'d Path,
    umask: u32,
    found: &initial_nodes::InitialNodes,
) -> runtime::Setup<'d> {
    runtime::Setup {
        state_dir: dir,
        umask: Some(umask),
        separation: Some(separation(config)),
        copy_bytes_max: config.settings.copies_max,
        fractions: Some(fractions(config, found)),
        kubernetes: Some(runtime::ClusterAccess {
            kubeconfig: config.settings.kubeconfig.as_deref(),
            context: config.settings.context.as_deref(),
            schedulers: &config.settings.scheduler_name,
            writes: engine_kube::Writes {
                binds_max: config.settings.bind_concurrency,
                conditions: config.settings.status_rate,
                events: config.settings.event_rate,
            },
        }),
    }
}

/// Isolation of the runs of the local engine.
fn separation(config: &Config) -> engine_local::Separation {
    engine_local::Separation {
        accounts: config.accounts(),
        private_files: config.secret_files.clone(),
    }
}

/// Writer of the recording. A server that cannot record works nevertheless.
fn recording(dir: &Path, bytes_max: u64) -> recording::Writer {
    if bytes_max == 0 {
        return recording::Writer::default();
    }
    let started = recording::Writer::start(&dir.join(recording::FOLDER), bytes_max);
    started.unwrap_or_else(|error| {
        tracing::warn!("recording is off until the next start of the server: {error}");
        recording::Writer::default()
    })
}

/// Logs the isolation that this machine lacks, or refuses to start because of it.
fn check_isolation(config: &Config, found: &Isolation) -> Result<(), Error> {
    let Isolation { kind, missing } = found;
    if config.settings.require_isolation && *kind == IsolationKind::None {
        return Err(Error::Failed(format!(
            "workloads cannot be kept apart on this machine, which --require-isolation asks for: \
             {missing}"
        )));
    }
    if *kind == IsolationKind::None {
        // The announcement shows the kind of isolation.
        tracing::info!("workloads are not kept apart ({}): {missing}", kind.meaning());
    }
    Ok(())
}

/// Access of workloads to this machine: none to the private files of the server, nor to the daemon,
/// which would give access to all others.
fn node_access(
    config: &Config,
    dir: &Path,
    daemon: Option<PathBuf>,
) -> Result<control::NodeAccess, Error> {
    let mut private = vec![dir.to_owned()];
    private.extend(config.secret_files.iter().cloned());
    private.extend(daemon);
    let mut access =
        control::NodeAccess::new(&config.settings.host_paths, &private).map_err(Error::Failed)?;
    access.privileged = config.settings.allow_privileged;
    Ok(access)
}

/// The program `runai` installed with this one, for downloads.
fn client_program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("runai");
    beside.is_file().then_some(beside)
}

/// The keys of credentials.
fn vault(config: &Config, dir: &Path) -> Result<auth::Vault, Error> {
    auth::Vault::open(&vault_file(config, dir)).map_err(|error| Error::Failed(chain(&error)))
}

/// File with the keys of credentials.
pub(super) fn vault_file(config: &Config, dir: &Path) -> PathBuf {
    config.settings.credentials_key_file.clone().unwrap_or_else(|| dir.join(auth::VAULT_FILE))
}

/// Refuses a state directory in which other users could place commands that run as this user.
pub(super) fn check_private(state_dir: &Path) -> Result<(), Error> {
    let mode = fs::metadata(state_dir)?.permissions().mode();
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let dir = state_dir.display();
    Err(Error::Failed(format!(
        "the state directory {dir} is writable by other users (mode {:03o}), who could run commands \
         as this one; look through it, then `chmod go-w {dir}`, or name another with --state-dir",
        mode & 0o777
    )))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return Err(Error::Failed(format!("cannot listen on {address}: {error}")));
    }
    // A port that is free now, as an example to paste.
    let free = TcpListener::bind((address.ip(), 0)).await.and_then(|free| free.local_addr());
    let example = free.map_or_else(|_| "127.0.0.1:7171".to_owned(), |free| free.to_string());
    Err(Error::Failed(format!(
        "another program listens on {address} already; \
         choose another port, for example with `--listen {example}`"
    )))
}

/// The nodes; the driver may need a moment.
async fn find_machines(config: &Config, dir: &Path) -> Result<initial_nodes::InitialNodes, Error> {
    if runtime::is_kubernetes(config.settings.runtime, dir) {
        return Ok(initial_nodes::InitialNodes::default());
    }
    let (machines, replaced) = (config.machines.clone(), config.settings.replace_nodes);
    let dir = dir.to_owned();
    let find = move || initial_nodes::find(&machines, &dir, replaced);
    let found = tokio::task::spawn_blocking(find).await;
    found.map_err(|error| Error::Failed(format!("failed to find the nodes: {error}")))?
}

/// Returns `STOP_WAIT` after a shutdown during the start.
async fn too_late(shutdown: &http_kit::Shutdown) {
    shutdown.wait().await;
    tokio::time::sleep(STOP_WAIT).await;
}

/// A login link for the local administrator; `None` without the web interface.
fn login_link(authority: &auth::Authority, url: &str) -> Result<Option<String>, Error> {
    let made = authority.local_link(SystemClock.now());
    let made = made.map_err(|error| Error::Failed(chain(&error)))?;
    let made = made.filter(|_| cfg!(feature = "ui"));
    Ok(made.map(|(secret, _)| auth::login_url(url, &secret)))
}

fn banner(
    (url, link): (&str, Option<&str>),
    state_dir: &Path,
    runtime: &str,
    found: &initial_nodes::InitialNodes,
    control: &control::Handle,
) -> String {
    let view = control.view();
    // Pods that this start has just placed are not counted as taken over.
    let runs = |workload: &&Arc<WorkloadView>| {
        workload.pods.iter().any(|pod| pod.state == PodState::Running)
    };
    let running = view.workloads.values().filter(runs).count();
    let waiting = view.workloads.values().filter(|workload| workload.phase == Phase::Pending);
    let workloads = match (running, waiting.count()) {
        (0, 0) => String::new(),
        (0, waiting) => format!("  Workloads  {waiting} waiting\n"),
        (running, 0) => format!("  Workloads  {running} running, taken over\n"),
        (running, waiting) => {
            format!("  Workloads  {running} running, taken over; {waiting} waiting\n")
        }
    };
    // Commands need this variable if the state directory is not the default one.
    let elsewhere = client::state_dir(&super::env).is_none_or(|usual| usual != state_dir);
    let Isolation { kind, missing } = control.capabilities().isolation;
    let details = if missing.is_empty() { "" } else { "; `elastane status` says why" };
    let isolation = isolation(kind.name(), &format!("{}{details}", kind.meaning()), "");
    let export = match elsewhere {
        true => format!("  export ELASTANE_STATE_DIR='{}'\n", state_dir.display()),
        false => String::new(),
    };
    let first = match view.projects.values().next() {
        None => "elastane project create team-a --gpu-quota 2".to_owned(),
        Some(_) => "elastane project list".to_owned(),
    };
    let browser = link.map(|link| format!("  Browser    {link}\n")).unwrap_or_default();
    let project =
        view.projects.values().next().map_or("team-a", |project| project.unit.name.as_str());
    format!(
        "elastane {version} is running\n  URL        {url}\n{browser}  Token      {token}\n  \
         Runtime    {runtime}\n{isolation}{disk}{nodes}{workloads}\
         \nNext, in a second terminal:\n{export}  {first}\n  runai config project {project}\n  \
         runai submit train1 -i gcr.io/run-ai-demo/quickstart -g 1\n\
         \nCtrl-C stops the server; workloads go on. `elastane down` stops both.\n",
        version = env!("CARGO_PKG_VERSION"),
        token = state_dir.join(auth::TOKEN_FILE).display(),
        disk = control.shared_disk().map(|disk| shared_disk(&disk)).unwrap_or_default(),
        nodes = initial_nodes::announce(found),
    )
}

/// Enforcement of fractions of the real GPUs.
fn fractions(
    config: &Config,
    found: &initial_nodes::InitialNodes,
) -> engine_fractions::FractionOptions {
    let mut mps = engine_fractions::MpsPlace::default();
    if let Some(pipes) = super::env("CUDA_MPS_PIPE_DIRECTORY").filter(|pipes| !pipes.is_empty()) {
        mps.pipes = pipes.into();
    }
    engine_fractions::FractionOptions {
        policy: config.settings.fractions,
        gpus: found.whole_gpus(),
        over: config.settings.gpu_memory_over,
        time_slicing: config.settings.gpu_time_slicing,
        mps,
        instances: found.instances.clone(),
        ..engine_fractions::FractionOptions::default()
    }
}

/// Text about the remaining workloads: those with a process, even if it is being ended.
fn farewell(by_signal: bool, pods: impl Iterator<Item = PodState>) -> String {
    if !by_signal {
        return "elastane is down: its workloads were stopped\n".to_owned();
    }
    let running = pods.filter(|state| state.holds_place()).count();
    match running {
        0 => "the server has stopped; no workload was running\n".to_owned(),
        1 => "the server has stopped; 1 workload goes on running. `elastane up` takes it over, \
              `elastane down` stops it\n"
            .to_owned(),
        many => format!(
            "the server has stopped; {many} workloads go on running. `elastane up` takes them \
             over, `elastane down` stops them\n"
        ),
    }
}

/// Prints. A closed terminal or a full disk does not stop the server.
fn print_text(text: &str) {
    let mut out = std::io::stdout();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        tracing::debug!("cannot be printed: {error}");
    }
}

/// Name of the user of this process, else its number.
fn local_user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.find(|fields| fields.get(2) == Some(&uid.as_str()));
    own.and_then(|fields| fields.first().map(ToString::to_string)).unwrap_or(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farewell_counts_every_process_left_behind() {
        let said = |pods: &[PodState]| farewell(true, pods.iter().copied());
        assert!(said(&[PodState::Pending, PodState::Succeeded]).contains("no workload was"));
        for state in [PodState::Paused, PodState::Running, PodState::Terminating] {
            assert!(said(&[PodState::Pending, state]).contains("1 workload goes on"), "{state:?}");
        }
        assert!(said(&[PodState::Terminating; 2]).contains("2 workloads go on running"));
        assert!(farewell(false, [PodState::Running].into_iter()).contains("were stopped"));
    }
}
