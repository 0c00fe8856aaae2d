//! The engine's operations. Owns: the order of the steps in each, which makes them safe to repeat
//! after a crash between any two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use async_trait::async_trait;
use engine::{
    Capabilities, Duplex, Engine, Error, ExecSpec, Fractions, GpuHealth, Leftover, ListedRun,
    LogRange, Measured, Observation, Outage, RunKey, RunSpec, Session, SharedDisk, TerminalSize,
};
use engine_fractions::Added;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::container;
use crate::copies;
use crate::environment::{self, Folders};
use crate::isolation::Account;
use crate::launch::launch;
use crate::logs;
use crate::measure;
use crate::memory::Pods;
use crate::open::LocalEngine;
use crate::paths::make_dir;
use crate::ports;
use crate::record::{ProcessSpec, Runtime, SpecFile, StateFile};
use crate::session_client;
use crate::shared::{LocalEngineState, blocking};
use crate::stop::stop;

#[async_trait]
impl Engine for LocalEngine {
    fn shared_disk(&self) -> Option<SharedDisk> {
        Some(SharedDisk { folder: self.shared.paths.root.clone(), stops_runs: true })
    }

    fn outage(&self) -> Option<Outage> {
        self.shared.outage()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: "process".to_owned(),
            fractions: Fractions {
                installed: self.shared.fractions.limit(false),
                simulated: self.shared.fractions.limit(true),
            },
            keeps_limits: self.shared.place.keeps(),
            isolation: self.shared.separator.found().clone(),
        }
    }

    fn leftovers(&self) -> Vec<Leftover> {
        self.shared.trash.leftovers()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        // A check does not wait: an account that is not known yet is left out.
        let separator = &self.shared.separator;
        let account = separator.known_account(&spec.submitted_by, &spec.submitter_id);
        let asked = spec.container.user.uid;
        if asked.is_some_and(|uid| separator.never_has(&spec.submitted_by, uid)) {
            return container::refused_uid();
        }
        check(&self.shared, spec, &self.shared.images.argv(spec)?, account.as_ref())
    }

    fn port_is_free(&self, port: u16) -> bool {
        std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).is_ok()
    }

    async fn list(&self) -> Result<Vec<ListedRun>, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || Ok(shared.list())).await
    }

    async fn start(&self, spec: RunSpec) -> Result<(), Error> {
        self.in_turn(spec.key, move |shared| start(shared, spec)).await
    }

    async fn limit_gpus(&self, key: RunKey, most: BTreeMap<String, u64>) -> Result<(), Error> {
        self.in_turn(key, move |shared| shared.fractions.set_most(key, &most)).await
    }

    async fn await_checkpoint(&self, key: RunKey, most_ms: u64) {
        let most = Duration::from_millis(most_ms);
        self.shared.channels.await_checkpoint(key, most).await;
    }

    async fn stop(&self, key: RunKey, grace_ms: u64) -> Result<(), Error> {
        self.shared.channels.stops(key);
        self.in_turn(key, move |shared| {
            stop(shared, key, grace_ms)
                .map_err(|source| Error::io(format!("stop run {key}"), source))
        })
        .await
    }

    async fn remove(&self, key: RunKey) -> Result<(), Error> {
        self.in_turn(key, move |shared| remove(shared, key)).await
    }

    async fn forget_pod(&self, pod: Uuid) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            shared.memory.iter().for_each(|memory| memory.forget(pod, &shared.trash));
            shared
                .trash
                .discard(&shared.paths.pod(pod))
                .map_err(|source| Error::io(format!("delete the files of pod {pod}"), source))
        })
        .await
    }

    async fn kept_pods(&self) -> Result<Vec<Uuid>, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let pods = shared.paths.pods();
            let unreadable = |source| Error::io(format!("read {}", pods.display()), source);
            let entries = fs::read_dir(&pods).map_err(unreadable)?;
            let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
            let names: Vec<_> = names.collect::<io::Result<_>>().map_err(unreadable)?;
            Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
        })
        .await
    }

    async fn pod_name(&self, key: RunKey) -> Option<String> {
        let dir = self.shared.dir(key);
        let found = tokio::task::spawn_blocking(move || dir.read_spec()).await.ok()?.ok()?;
        let Runtime::Process(process) = found.runtime;
        process.env.get("POD_NAME").cloned()
    }

    fn observations(&self) -> mpsc::UnboundedReceiver<Observation> {
        self.shared.observations.stream()
    }

    async fn logs(
        &self,
        key: RunKey,
        range: LogRange,
    ) -> Result<mpsc::Receiver<io::Result<Vec<u8>>>, Error> {
        logs::read(&self.shared, key, range)
    }

    async fn bytes_before(&self, key: RunKey, range: &LogRange) -> Result<Option<u64>, Error> {
        logs::bytes_before(&self.shared, key, range).await.map(Some)
    }

    async fn measure(&self) -> Result<Option<Measured>, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || Ok(Some(measure::measure(&shared)))).await
    }

    async fn gpu_health(
        &self,
        uuids: Vec<String>,
    ) -> Result<Option<BTreeMap<String, GpuHealth>>, Error> {
        let shared = Arc::clone(&self.shared);
        let driver =
            |why: String| Error::io("ask the driver how the GPUs are", io::Error::other(why));
        blocking(move || measure::gpu_health(&shared, &uuids).map_err(driver)).await
    }

    async fn exec(&self, key: RunKey, what: ExecSpec) -> Result<Session, Error> {
        session_client::exec(&self.shared, key, what).await
    }

    async fn attach(
        &self,
        key: RunKey,
        stdin: bool,
        terminal: Option<TerminalSize>,
    ) -> Result<Session, Error> {
        session_client::attach(&self.shared, key, stdin, terminal).await
    }

    async fn connect(&self, key: RunKey, port: u16) -> Result<Box<dyn Duplex>, Error> {
        ports::connect(&self.shared, key, port).await
    }
}

impl LocalEngine {
    /// Runs one operation of a run after the previous one, to its end even if the caller is
    /// dropped.
    async fn in_turn(
        &self,
        key: RunKey,
        verb: impl FnOnce(&Arc<LocalEngineState>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let turn = self.shared.turns.take(key).await;
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let _turn = turn;
            verb(&shared)
        })
        .await
    }
}

/// Writes the specification, then starts a supervisor, which decides whether it is the first.
/// Copies of repositories are made before, in the background.
fn start(shared: &Arc<LocalEngineState>, spec: RunSpec) -> Result<(), Error> {
    let key = spec.key;
    if shared.state(key).is_some() {
        return Ok(());
    }
    let file = resolve(shared, &spec)?;
    if engine::copy::copies(&spec.container).next().is_none() {
        return launch(shared, &spec, &file);
    }
    make_dir(shared.dir(key).path())?;
    shared.know(key, StateFile::Starting);
    copies::spawn(shared, spec, file);
    Ok(())
}

/// Rejects what this account cannot run.
fn check(
    shared: &LocalEngineState,
    spec: &RunSpec,
    argv: &[String],
    account: Option<&Account>,
) -> Result<(), Error> {
    environment::check(spec, argv, account, shared.separator.found().kind)
}

/// The words of its command.
fn argv(shared: &LocalEngineState, spec: &RunSpec) -> Result<Vec<String>, Error> {
    let mut argv = shared.images.argv(spec)?;
    if let Some(gang) = &spec.gang {
        gang.fill(&mut argv, &environment::address);
    }
    engine::environment::fill_completion_index(&mut argv, spec);
    engine::fill_base_path(&mut argv, spec);
    Ok(argv)
}

fn resolve(shared: &LocalEngineState, spec: &RunSpec) -> Result<SpecFile, Error> {
    let argv = argv(shared, spec)?;
    let account = shared.separator.account(&spec.submitted_by, &spec.submitter_id)?;
    check(shared, spec, &argv, account.as_ref())?;
    let memory = shared.memory.as_ref().map(|memory| memory.of(spec.key.pod));
    let (shims, tools) = (shared.paths.shims(), shared.paths.tools());
    let folders = Folders {
        home: shared.paths.home(spec.key.pod),
        checkpoint: shared.paths.checkpoint(spec.key.pod),
        shims: &shims,
        programs: shared.supervisor.parent().unwrap_or(std::path::Path::new("/")),
        secrets: shared.dir(spec.key).secrets_folder(),
        copies: shared.dir(spec.key).copies(),
        hostfile: shared.dir(spec.key).hostfile(),
        channel: shared.dir(spec.key).channel(),
        tools: &tools,
        memory: memory.as_ref().map(|memory| memory.folder.clone()),
    };
    let inherited = environment::of_account(&shared.inherited, account.as_ref());
    let mut env = environment::environment(&inherited, spec, &folders)?;
    let dir = shared.dir(spec.key);
    let added = shared.fractions.of(spec, &dir.fraction())?;
    let (fraction, mounts) = match added {
        None => (None, Vec::new()),
        Some(Added { fraction, delivery }) => {
            delivery.complete(&mut env);
            (Some(fraction), delivery.mounts)
        }
    };
    let port = match shared.images.port(spec) {
        None => None,
        Some(usual) => Some((usual, ports::set_port_variable(usual, spec, &mut env)?)),
    };
    let working_dir = match &spec.working_dir {
        Some(own) => environment::working_dir(&folders.copies, own, &spec.container),
        None => shared.paths.work(spec.key.pod),
    };
    let pod = shared.paths.pod(spec.key.pod);
    let mut visible = vec![pod, folders.secrets, folders.copies, folders.hostfile, folders.channel];
    visible.extend(folders.memory);
    let mut fixed = vec![shims.clone(), tools.clone()];
    if fraction.is_some() {
        visible.push(dir.fraction());
        fixed.push(shared.fractions.folder().to_owned());
    }
    let boundary = shared.separator.boundary(account, visible, fixed);
    let root = shared.memory.as_ref().map(Pods::root);
    let boundary = boundary.map(|boundary| boundary.mounting(mounts).without_memory(root));
    Ok(SpecFile {
        key: spec.key.to_string(),
        grace_ms: spec.grace_ms,
        secrets: !spec.secrets.is_empty(),
        runtime: Runtime::Process(ProcessSpec {
            argv,
            env,
            working_dir,
            umask: shared.umask,
            stdin: spec.stdin,
            tty: spec.tty,
            group: shared.place.group(spec.key),
            limits: spec.container.limits,
            output_bytes_max: shared.output_bytes_max,
            boundary,
            more_rights: spec.container.security.privilege_escalation == Some(true),
            fraction,
            port,
            memory,
        }),
    })
}

fn remove(shared: &Arc<LocalEngineState>, key: RunKey) -> Result<(), Error> {
    let dir = shared.dir(key);
    let failed = |source| Error::io(format!("remove run {key}"), source);
    match shared.state(key) {
        Some(StateFile::Exited { .. }) => {}
        Some(_) => return Err(Error::StillRunning(key)),
        None if !dir.exists() => return Ok(()),
        // Never started: a stop prevents a later start, or finds that it started.
        None => {
            stop(shared, key, 0).map_err(failed)?;
            if !matches!(shared.state(key), Some(StateFile::Exited { .. })) {
                return Err(Error::StillRunning(key));
            }
        }
    }
    // A group that the supervisor could not remove; its name is in the folder.
    if dir.group().is_some_and(|group| !group.end()) {
        tracing::warn!("the control group of the ended run {key} cannot be removed");
    }
    shared.trash.discard(dir.path()).map_err(failed)?;
    shared.forget(key);
    Ok(())
}
