//! Requests to the engine about the runs of a workload: output, and sessions. Owns: which run a
//! person means. Reading never waits for the dispatcher. Does not know about: how a session is
//! opened.

use std::net::IpAddr;

use engine::{Duplex, ExecSpec, LogRange, RunKey, Session, TerminalSize};
use futures_util::stream::BoxStream;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use crate::Handle;
use orchestrator::Error;
use view::{PodState, PodView};

/// Output of a run, or a part of it.
pub struct Log {
    /// Which run.
    pub run: RunKey,
    /// How many bytes of it are before this part, where that is known.
    pub bytes_before: Option<u64>,
    /// The bytes, in order.
    pub chunks: BoxStream<'static, std::io::Result<Vec<u8>>>,
}

impl Handle {
    /// Output of the newest run of a pod (by name, or a run by its key; the first pod if none is
    /// named).
    ///
    /// # Errors
    /// There is no such workload or pod, or it has not run yet.
    pub async fn logs(&self, id: Uuid, pod: Option<String>, range: LogRange) -> Result<Log, Error> {
        let run = self.run(id, pod.as_deref()).await?;
        let mut found = self.log_of(run, &range).await;
        // A new run may be on disk and not yet with the engine; the one before has the output.
        if matches!(found, Err(engine::Error::NoSuchRun(_))) && run.generation > 1 {
            let before = RunKey { generation: run.generation - 1, ..run };
            found = self.log_of(before, &range).await;
        }
        found.map_err(from_engine)
    }

    /// The run of a pod before the one whose output [`logs`](Self::logs) tells.
    ///
    /// # Errors
    /// As there, or there was none.
    pub async fn run_before(&self, id: Uuid, pod: Option<&str>) -> Result<RunKey, Error> {
        let run = self.run(id, pod).await?;
        let before = RunKey { generation: run.generation - 1, ..run };
        if before.generation == 0 {
            let why = "this is the first run of the pod; there is none before it";
            return Err(Error::conflict(why));
        }
        Ok(before)
    }

    async fn log_of(&self, run: RunKey, range: &LogRange) -> Result<Log, engine::Error> {
        let engine = &self.shared.engine;
        let bytes_before = engine.bytes_before(run, range).await?;
        // The byte position keeps the range in place if lines were added since.
        let range = LogRange { from_byte: range.from_byte.or(bytes_before), ..range.clone() };
        let chunks = engine.logs(run, range).await?;
        Ok(Log { run, bytes_before, chunks: Box::pin(ReceiverStream::new(chunks)) })
    }

    /// Runs a command in a pod that runs: the named one, or the first.
    ///
    /// # Errors
    /// There is no such workload or pod, it does not run, or the engine cannot attach.
    pub async fn exec(
        &self,
        id: Uuid,
        pod: Option<&str>,
        what: ExecSpec,
    ) -> Result<Session, Error> {
        let run = self.running(id, pod).await?;
        self.shared.engine.exec(run, what).await.map_err(from_engine)
    }

    /// Attaches to the main process of a pod that runs: the named one, or the first.
    ///
    /// # Errors
    /// As of [`exec`](Self::exec), or it has no input or terminal.
    pub async fn attach(
        &self,
        id: Uuid,
        pod: Option<&str>,
        stdin: bool,
        terminal: Option<TerminalSize>,
    ) -> Result<Session, Error> {
        let run = self.running(id, pod).await?;
        self.shared.engine.attach(run, stdin, terminal).await.map_err(from_engine)
    }

    /// Connects to a port of a pod that runs: the named one, or the first.
    ///
    /// # Errors
    /// As of [`exec`](Self::exec), or nothing of it listens there.
    pub async fn connect(
        &self,
        id: Uuid,
        pod: Option<&str>,
        port: u16,
    ) -> Result<Box<dyn Duplex>, Error> {
        let run = self.running(id, pod).await?;
        let port = self.told_instead(id, run.pod, port).unwrap_or(port);
        self.shared.engine.connect(run, port).await.map_err(from_engine)
    }

    /// Port that a replica was given in place of its declared serving port.
    fn told_instead(&self, id: Uuid, pod: Uuid, port: u16) -> Option<u16> {
        let view = self.view();
        let workload = view.workloads.get(&id)?;
        workload.spec.serving.as_ref().filter(|serving| serving.container_port == port)?;
        workload.pods.iter().find(|one| one.id == pod)?.port
    }

    /// Address at which this machine reaches the ports of a run; `None` while it is not known.
    #[must_use]
    pub fn address(&self, pod: Uuid, generation: u32) -> Option<IpAddr> {
        self.shared.engine.address(RunKey { pod, generation })
    }

    /// The present run of a pod that runs.
    async fn running(&self, id: Uuid, pod: Option<&str>) -> Result<RunKey, Error> {
        let workload = self.find_workload(id).await?.ok_or_else(|| Error::no_workload(id))?;
        let runs = |one: &&PodView| one.state == PodState::Running;
        match (pod, workload.pods.iter().find(runs)) {
            (Some(_), _) => self.run(id, pod).await,
            (None, Some(first)) => Ok(RunKey { pod: first.id, generation: first.generation }),
            (None, None) => {
                let name = &workload.spec.name;
                Err(Error::conflict(format!("no pod of {name} is running")))
            }
        }
    }

    async fn run(&self, id: Uuid, pod: Option<&str>) -> Result<RunKey, Error> {
        let view = self.view();
        let workload = self.find_workload(id).await?.ok_or_else(|| Error::no_workload(id))?;
        let by_key = pod.and_then(|text| text.parse::<RunKey>().ok());
        let named = |p: &PodView| {
            let generation = match pod {
                None => p.generation,
                Some(name) if name == p.name => p.generation,
                Some(_) if by_key.is_some() => {
                    let run = by_key.filter(|run| run.pod == p.id)?;
                    (1..=p.generation).contains(&run.generation).then_some(run.generation)?
                }
                // An earlier run has its own name in the request.
                Some(name) => {
                    let revision = p.revision.and_then(|id| view.revisions.get(&id));
                    let own = &revision.unwrap_or(&workload).spec.name;
                    let prefix = format!("{own}-{}-", p.index);
                    let earlier = name.strip_prefix(&prefix)?.parse().ok()?;
                    (1..p.generation).contains(&earlier).then_some(earlier)?
                }
            };
            Some(RunKey { pod: p.id, generation })
        };
        if workload.pods.is_empty() && pod.is_none() {
            let name = &workload.spec.name;
            let why = format!("inference `{name}` has no replicas at the moment");
            return Err(Error::conflict(why));
        }
        let found = workload.pods.iter().find_map(named);
        let run = found.ok_or_else(|| Error::NotFound {
            what: "pod",
            name: pod.unwrap_or_default().to_owned(),
            hint: format!(
                "see `runai describe job {} -p {}`",
                workload.spec.name, workload.project_name
            ),
        })?;
        if run.generation == 0 {
            let (name, project) = (&workload.spec.name, &workload.project_name);
            return Err(Error::conflict(format!(
                "workload `{name}` has not started yet; `runai explain {name} -p {project}` shows \
                 why"
            )));
        }
        Ok(run)
    }
}

fn from_engine(error: engine::Error) -> Error {
    use engine::Error as E;
    match error {
        E::NoSuchRun(_) => {
            Error::conflict("it has not started yet, or what it left has been removed")
        }
        E::NotRunning(_) => Error::conflict("the pod does not run now"),
        E::Unsupported(_) | E::NotHere { .. } | E::NotKept(_) | E::Invalid(_) => {
            Error::conflict(error.to_string())
        }
        E::StillRunning(_) | E::Io { .. } => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let message = cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"));
            Error::Internal { message }
        }
    }
}
