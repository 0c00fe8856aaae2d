//! Engine of the workloads of a state directory. Owns: the choice, its storage, and the refusal of
//! another engine while workloads run under the last one. Does not know how engines work.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::image::QUICKSTARTS;
use engine::{Engine, Installation, ListedRun, RunState, TimeSlicing};
use engine_docker::{Daemon, DockerEngine, Program};
use engine_fractions::{FractionOptions, FractionPolicy, MemoryOver};
use engine_local::Separation;

use super::env;
use super::settings::{self, SettingText};
use cli_kit::exit::{Error, chain};

/// File in the state directory with the engine of its workloads.
const FILE: &str = "runtime";

/// Maximum size of the stored output of a run, in bytes.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// Requested engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The last engine; without one, containers if a Docker daemon answers, else processes.
    Auto,
    /// A given engine.
    Only(Runtime),
}

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Processes of this machine.
    Process,
    /// Containers of Docker or Podman.
    Docker,
    /// Pods of a Kubernetes cluster that name this scheduler.
    Kubernetes,
}

impl Runtime {
    const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// Form of its workloads, for messages.
    const fn of_workloads(self) -> &'static str {
        match self {
            Self::Process => "as processes",
            Self::Docker => "in containers",
            Self::Kubernetes => "on Kubernetes",
        }
    }
}

/// Reads the requested engine.
pub(super) fn choice(given: &SettingText) -> Result<Choice, settings::Error> {
    match given.text.as_str() {
        "auto" => Ok(Choice::Auto),
        "process" => Ok(Choice::Only(Runtime::Process)),
        "docker" => Ok(Choice::Only(Runtime::Docker)),
        "kubernetes" => Ok(Choice::Only(Runtime::Kubernetes)),
        "podman" => Err(given.fault(format!(
            "Podman is used as `docker`; write that, with DOCKER_HOST=unix://{} where a Docker answers \
             as well",
            engine_docker::PODMAN
        ))),
        other => Err(given.fault(format!(
            "`{other}` is not a runtime; write auto, process, docker or kubernetes"
        ))),
    }
}

/// Reads the enforcement of GPU fractions.
pub(super) fn fractions(given: &SettingText) -> Result<FractionPolicy, settings::Error> {
    FractionPolicy::named(&given.text).map_err(|why| given.fault(why))
}

/// Reads the action on GPU memory beyond a limit.
pub(super) fn memory_over(given: &SettingText) -> Result<MemoryOver, settings::Error> {
    match given.text.as_str() {
        "report" => Ok(MemoryOver::Report),
        "end" => Ok(MemoryOver::End),
        other => Err(given.fault(format!("`{other}` is not a policy; write report or end"))),
    }
}

/// Reads the time slicing of GPUs.
pub(super) fn time_slicing(given: &SettingText) -> Result<TimeSlicing, settings::Error> {
    TimeSlicing::named(&given.text).map_err(|why| given.fault(why))
}

/// Program of masters and parameter servers in containers; `None` = that of their image.
fn job_program() -> Option<Program> {
    let name = spec::JOB_PROGRAM;
    let none = |error: &std::io::Error| {
        tracing::warn!(
            "elastic trainings in containers need `{name}` in their image, as the one beside the server \
             cannot be used ({error}); `make install` puts it there"
        );
    };
    Program::beside(name).inspect_err(none).ok()
}

/// An open engine, and its description.
pub(super) struct Opened {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) said: String,
    /// Socket of the daemon that starts containers.
    pub(super) socket: Option<PathBuf>,
}

/// Options with which an engine is opened.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    /// Absolute path.
    pub(super) state_dir: &'a Path,
    /// Umask of processes; `None` = that of this one.
    pub(super) umask: Option<u32>,
    /// Isolation of processes; `None` for an engine that starts nothing.
    pub(super) separation: Option<Separation>,
    pub(super) copy_bytes_max: u64,
    /// Enforcement of GPU fractions; `None` for an engine that starts nothing.
    pub(super) fractions: Option<FractionOptions>,
    /// Settings of a Kubernetes cluster.
    pub(super) kubernetes: Option<ClusterAccess<'a>>,
}

/// Settings of a Kubernetes cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClusterAccess<'a> {
    pub(super) kubeconfig: Option<&'a Path>,
    pub(super) context: Option<&'a str>,
    /// Names of this scheduler in pods.
    pub(super) schedulers: &'a [String],
    /// Limits of its writes.
    pub(super) writes: engine_kube::Writes,
}

impl<'a> Setup<'a> {
    /// Options of an engine that starts nothing.
    const fn at_rest(state_dir: &'a Path) -> Self {
        Self {
            state_dir,
            umask: None,
            separation: None,
            copy_bytes_max: 0,
            fractions: None,
            kubernetes: None,
        }
    }
}

/// Opens the engine of a state directory; the caller holds the store's lock. `real_gpus` is true if
/// workloads need real GPUs.
pub(super) async fn open(
    choice: Choice,
    setup: Setup<'_>,
    real_gpus: bool,
) -> Result<Opened, Error> {
    let state_dir = setup.state_dir;
    let last = last(state_dir)?;
    let installation = installation(state_dir, last)?;
    let wanted = match (choice, last) {
        (Choice::Only(runtime), _) => runtime,
        // The volumes and output of its workloads are there.
        (Choice::Auto, Some(last)) => last,
        (Choice::Auto, None) => best(real_gpus).await,
    };
    // Pods of a cluster go on without a server.
    let before = last.filter(|last| *last != Runtime::Kubernetes);
    if let Some(last) = before.filter(|last| *last != wanted) {
        let found = open_one(last, Setup::at_rest(state_dir), &installation).await.map_err(|error| {
            Error::Failed(format!(
                "workloads of this state directory were started {}, and what became of them cannot be \
                 seen: {error}; make it answer, or delete {} if none is left",
                last.of_workloads(),
                state_dir.join(FILE).display()
            ))
        })?;
        let living = living(&*found.engine).await?.len();
        if living > 0 {
            return Err(Error::Failed(format!(
                "{living} of the workloads still run {}; stop them with `elastane down`, or go on with \
                 --runtime {}",
                last.of_workloads(),
                last.name()
            )));
        }
    }
    let opened = open_one(wanted, setup, &installation).await.map_err(Error::Failed)?;
    installation.record_directory().map_err(|error| Error::Failed(chain(&error)))?;
    if last != Some(wanted) {
        fs::write(state_dir.join(FILE), format!("{}\n", wanted.name()))?;
    }
    Ok(opened)
}

/// The last engine of the workloads; `None` if there was none.
pub(super) async fn open_last(state_dir: &Path) -> Result<Option<Opened>, Error> {
    let last = last(state_dir)?.filter(|last| *last != Runtime::Kubernetes);
    let Some(runtime) = last else { return Ok(None) };
    let installation = installation(state_dir, Some(runtime))?;
    let opened = open_one(runtime, Setup::at_rest(state_dir), &installation).await;
    opened.map(Some).map_err(Error::Failed)
}

fn installation(state_dir: &Path, last: Option<Runtime>) -> Result<Installation, Error> {
    let opened = Installation::open(state_dir, last.is_some());
    opened.map_err(|error| Error::Failed(chain(&error)))
}

/// Refuses a moved state directory whose processes still write to the old place.
async fn check_moved(engine: &dyn Engine, installation: &Installation) -> Result<(), String> {
    let Some(from) = installation.moved_from() else { return Ok(()) };
    let living = living(engine).await.map_err(|error| error.to_string())?.len();
    if living == 0 {
        return Ok(());
    }
    let (from, to) = (from.display(), installation.directory().display());
    Err(format!(
        "the state directory was moved from {from} to {to} while {living} of its workloads ran, which \
         still use {from}; move it back (`mv {to} {from}`), stop them (`elastane down --state-dir \
         {from}`), and move it then"
    ))
}

/// Runs that have not ended.
pub(super) async fn living(engine: &dyn Engine) -> Result<Vec<ListedRun>, Error> {
    let mut runs = engine.list().await.map_err(|error| Error::Failed(chain(&error)))?;
    runs.retain(|run| !matches!(run.state, RunState::Exited { .. }));
    Ok(runs)
}

fn last(state_dir: &Path) -> Result<Option<Runtime>, Error> {
    let path = state_dir.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) if text.trim() == Runtime::Docker.name() => Ok(Some(Runtime::Docker)),
        Ok(text) if text.trim() == Runtime::Process.name() => Ok(Some(Runtime::Process)),
        Ok(text) if text.trim() == Runtime::Kubernetes.name() => Ok(Some(Runtime::Kubernetes)),
        Ok(_) => Err(Error::Failed(format!(
            "{} says neither process, docker nor kubernetes; write what runs the workloads into it",
            path.display()
        ))),
        // The state directory is older than the choice of an engine.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(state_dir.join("runs").is_dir().then_some(Runtime::Process))
        }
        Err(error) => Err(error.into()),
    }
}

/// Containers, if a suitable daemon answers, else processes.
async fn best(real_gpus: bool) -> Runtime {
    match Daemon::find(&env).await {
        Ok(daemon) if !real_gpus || daemon.has_gpus() => Runtime::Docker,
        Ok(daemon) => {
            tracing::warn!(
                "{daemon} cannot hand GPUs to containers, so workloads are processes; install the \
                 NVIDIA container toolkit and restart it"
            );
            Runtime::Process
        }
        Err(error) => {
            tracing::info!("workloads are processes: {error}");
            Runtime::Process
        }
    }
}

/// On failure, the text has the reason.
async fn open_one(
    runtime: Runtime,
    Setup { state_dir, umask, separation, copy_bytes_max, fractions, kubernetes }: Setup<'_>,
    installation: &Installation,
) -> Result<Opened, String> {
    match runtime {
        Runtime::Kubernetes => open_cluster(kubernetes).await,
        Runtime::Process => {
            let program = std::env::current_exe()
                .map_err(|error| format!("cannot find this program's file: {error}"))?;
            let images = engine_local::ImageTable::new(&program);
            let state_dir = state_dir.to_owned();
            let options = engine_local::Options {
                state_dir,
                supervisor: program,
                images,
                umask,
                output_bytes_max: OUTPUT_BYTES_MAX,
                copy_bytes_max,
                separation,
                fractions,
            };
            let engine = engine_local::LocalEngine::open(options).map_err(|error| chain(&error))?;
            check_moved(&engine, installation).await?;
            let keeps = engine.capabilities().keeps_limits;
            if let Some(what) = keeps.missing() {
                tracing::warn!("limits of {what} are not kept; `elastane status` says why");
                tracing::info!("limits of {what} are not kept: {}", keeps.why);
            }
            Ok(Opened { engine: Arc::new(engine), said: "processes".to_owned(), socket: None })
        }
        Runtime::Docker => {
            let daemon = Daemon::find(&env).await.map_err(|error| chain(&error))?;
            let said = format!("containers ({daemon})");
            let socket = Some(daemon.socket().to_owned());
            let programs = QUICKSTARTS.iter().map(|(name, words)| {
                let words = [&["quickstart-workload"], *words].concat();
                Ok(((*name).to_owned(), Program::this(&words)?))
            });
            let programs = programs
                .collect::<std::io::Result<_>>()
                .map_err(|error| format!("cannot find this program's files: {error}"))?;
            let options = engine_docker::Options {
                installation: installation.clone(),
                daemon,
                programs,
                nvidia_smi: Program::this(&["nvidia-smi"]).ok(),
                job_program: job_program(),
                fractions,
                pull_pause: engine_docker::PULL_PAUSE,
                output_bytes_max: OUTPUT_BYTES_MAX,
                copy_bytes_max,
            };
            let engine = DockerEngine::open(options).await.map_err(|error| chain(&error))?;
            Ok(Opened { engine: Arc::new(engine), said, socket })
        }
    }
}

/// Connects to a cluster. On failure, the text has the reason.
async fn open_cluster(access: Option<ClusterAccess<'_>>) -> Result<Opened, String> {
    let Some(ClusterAccess { kubeconfig, context, schedulers, writes }) = access else {
        return Err("it has no settings".to_owned());
    };
    let config =
        kube_api::Config::find(kubeconfig, context, &env).map_err(|error| chain(&error))?;
    let server = config.server().to_string();
    let schedulers = schedulers.to_vec();
    let said =
        format!("Kubernetes at {server}, pods with schedulerName {}", schedulers.join(" or "));
    let seed = u64::from(std::process::id());
    let options = engine_kube::Options { config, schedulers, writes, seed };
    let opened = engine_kube::KubeEngine::open(options).await;
    let (engine, version) = opened.map_err(|error| chain(&error))?;
    let said = format!("{said} ({version})");
    Ok(Opened { engine: Arc::new(engine), said, socket: None })
}

/// True if the server is for a cluster: as requested, or as the last one was.
pub(super) fn is_kubernetes(choice: Choice, state_dir: &Path) -> bool {
    match choice {
        Choice::Only(runtime) => runtime == Runtime::Kubernetes,
        Choice::Auto => last(state_dir).is_ok_and(|last| last == Some(Runtime::Kubernetes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_engine_is_remembered_and_processes_are_what_was_before_the_choice() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last(dir.path()).unwrap(), None);
        fs::create_dir(dir.path().join("runs")).unwrap();
        assert_eq!(last(dir.path()).unwrap(), Some(Runtime::Process));
        fs::write(dir.path().join(FILE), "docker\n").unwrap();
        assert_eq!(last(dir.path()).unwrap(), Some(Runtime::Docker));
        fs::write(dir.path().join(FILE), "dock").unwrap();
        assert!(last(dir.path()).is_err(), "a guess could start workloads twice");
    }

    #[test]
    fn a_runtime_is_one_of_four_words() {
        let read = |text: &str| {
            choice(&SettingText { text: text.to_owned(), origin: "--runtime".to_owned() })
        };
        assert_eq!(read("docker").unwrap(), Choice::Only(Runtime::Docker));
        assert_eq!(read("auto").unwrap(), Choice::Auto);
        assert_eq!(read("kubernetes").unwrap(), Choice::Only(Runtime::Kubernetes));
        let fault = read("slurm").unwrap_err().to_string();
        let known = "write auto, process, docker or kubernetes";
        assert!(fault.ends_with(&format!("`slurm` is not a runtime; {known}")));
        let fault = read("podman").unwrap_err().to_string();
        let how = "write that, with DOCKER_HOST=unix:///run/podman/podman.sock";
        assert!(
            fault.starts_with("--runtime: Podman is used as `docker`; ") && fault.contains(how)
        );
    }
}
