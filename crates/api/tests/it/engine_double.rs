//! An engine whose runs start at once and end on request.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use engine::{
    Capabilities, Duplex, Engine, Error, ExecSpec, Exit, Fractions, GpuUse, Input, Isolation,
    IsolationKind, Leftover, LimitsKept, ListedRun, LogRange, Measured, Observation, Output,
    RunKey, RunPlace, RunSpec, RunState, RunUse, Session, TerminalSize,
};
use http_kit::Shutdown;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, mpsc};
use units::Instant;

#[derive(Default)]
struct Machine {
    runs: BTreeMap<RunKey, (RunSpec, RunState)>,
    listener: Option<mpsc::UnboundedSender<Observation>>,
    /// Notified once there is a run.
    busy: Arc<Notify>,
    /// Answers of replicas; `None` if they do not listen.
    replica: Option<Router>,
    /// Remainders that are still to be deleted.
    leftovers: Vec<Leftover>,
    /// Ports that were found free, and stay so for the pods they are given to.
    ports: BTreeMap<u16, TcpListener>,
}

#[derive(Clone, Default)]
pub(crate) struct EngineDouble(Arc<Mutex<Machine>>);

impl EngineDouble {
    fn tell(&self, key: RunKey, state: RunState) {
        let mut machine = self.0.lock().unwrap();
        let Some(run) = machine.runs.get_mut(&key) else { return };
        run.1 = state.clone();
        if let Some(listener) = &machine.listener {
            // The dispatcher may be gone already.
            let _ = listener.send(Observation::new(key, state));
        }
    }

    /// Ends the run of a workload.
    pub(crate) fn end(&self, workload: &str, exit: Exit) {
        let of = |(key, (spec, state)): (&RunKey, &(RunSpec, RunState))| {
            let is_over = matches!(state, RunState::Exited { .. });
            (spec.workload_name == workload && !is_over).then_some(*key)
        };
        let key = self.0.lock().unwrap().runs.iter().find_map(of).unwrap();
        self.tell(key, RunState::Exited { exit, at: Instant(3) });
    }

    /// A run of before, as it was seen last.
    pub(crate) fn goes_on(&self, spec: RunSpec, state: RunState) {
        self.0.lock().unwrap().runs.insert(spec.key, (spec, state));
    }

    /// From now on replicas answer like this.
    pub(crate) fn serve(&self, replica: Router) {
        self.0.lock().unwrap().replica = Some(replica);
    }

    /// From now on this is still to be deleted.
    pub(crate) fn has_leftovers(&self, leftovers: Vec<Leftover>) {
        self.0.lock().unwrap().leftovers = leftovers;
    }

    pub(crate) fn alive(&self) -> usize {
        let machine = self.0.lock().unwrap();
        machine.runs.values().filter(|(_, s)| !matches!(s, RunState::Exited { .. })).count()
    }

    /// The secrets of a workload's run, in words.
    pub(crate) fn secrets_of(&self, workload: &str) -> Vec<String> {
        let machine = self.0.lock().unwrap();
        let mut runs = machine.runs.values().map(|(spec, _)| spec);
        let spec = runs.find(|spec| spec.workload_name == workload).unwrap();
        spec.secrets.iter().map(|one| format!("{:?}={}", one.to, one.value)).collect()
    }

    /// Container settings of a workload's run, as text.
    pub(crate) fn around(&self, workload: &str) -> String {
        let machine = self.0.lock().unwrap();
        let mut runs = machine.runs.values().map(|(spec, _)| spec);
        let spec = runs.find(|spec| spec.workload_name == workload).unwrap();
        format!("{:?} {:?}", spec.container, spec.registry)
    }

    fn listen(&self, port: Option<u16>) {
        let mut machine = self.0.lock().unwrap();
        let Some(replica) = machine.replica.clone() else { return };
        let Some(listener) = port.and_then(|port| machine.ports.remove(&port)) else { return };
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::spawn(http_kit::serve(listener, None, replica, Shutdown::default()));
    }

    fn spec(&self, key: RunKey) -> Result<RunSpec, Error> {
        let machine = self.0.lock().unwrap();
        machine.runs.get(&key).map(|(spec, _)| spec.clone()).ok_or(Error::NoSuchRun(key))
    }
}

#[async_trait]
impl Engine for EngineDouble {
    /// There is something to measure once something runs.
    async fn measure(&self) -> Result<Option<Measured>, Error> {
        let busy = self.0.lock().unwrap().busy.clone();
        busy.notified().await;
        let machine = self.0.lock().unwrap();
        let mut measured = Measured::default();
        for (key, (spec, _)) in &machine.runs {
            let run = RunUse { key: *key, cpu_time_ms: 0, memory_bytes: 7 << 20, gpus: Vec::new() };
            measured.runs.push(run);
            measured.gpus.extend(spec.devices.iter().map(|device| GpuUse {
                uuid: device.uuid.clone(),
                busy_millis: Some(250),
                memory_bytes: Some(4 << 30),
            }));
        }
        Ok(Some(measured))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: "double".into(),
            fractions: Fractions::none("nothing is limited in tests"),
            keeps_limits: LimitsKept { cpu: false, memory: true, why: "this is a test".to_owned() },
            isolation: Isolation { kind: IsolationKind::Accounts, missing: String::new() },
        }
    }

    fn leftovers(&self) -> Vec<Leftover> {
        self.0.lock().unwrap().leftovers.clone()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        if spec.image.is_empty() && spec.command.is_none() {
            return Err(Error::Invalid("an image or a command is needed".into()));
        }
        Ok(())
    }

    fn port_is_free(&self, port: u16) -> bool {
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) else { return false };
        listener.set_nonblocking(true).unwrap();
        let mut machine = self.0.lock().unwrap();
        if machine.replica.is_some() {
            machine.ports.insert(port, listener);
        }
        true
    }

    async fn list(&self) -> Result<Vec<ListedRun>, Error> {
        let machine = self.0.lock().unwrap();
        let listed = |(&key, (spec, state)): (&RunKey, &(RunSpec, RunState))| ListedRun {
            key,
            state: state.clone(),
            place: Some(RunPlace::of(spec)),
        };
        Ok(machine.runs.iter().map(listed).collect())
    }

    async fn start(&self, spec: RunSpec) -> Result<(), Error> {
        let key = spec.key;
        let broken = Exit::CannotRun("the image is broken".to_owned());
        let state = match spec.image.as_str() {
            "broken" => RunState::Exited { exit: broken, at: Instant(1) },
            _ => RunState::Running { pid: None, started_at: Instant(1) },
        };
        let port = spec.env.get("PORT").and_then(|port| port.parse().ok());
        self.listen(port);
        self.0.lock().unwrap().runs.entry(key).or_insert((spec, RunState::Starting));
        self.tell(key, state);
        self.0.lock().unwrap().busy.notify_one();
        Ok(())
    }

    async fn stop(&self, key: RunKey, _: u64) -> Result<(), Error> {
        self.tell(key, RunState::Exited { exit: Exit::Signal(15), at: Instant(2) });
        Ok(())
    }

    async fn remove(&self, key: RunKey) -> Result<(), Error> {
        self.0.lock().unwrap().runs.remove(&key);
        Ok(())
    }

    fn observations(&self) -> mpsc::UnboundedReceiver<Observation> {
        let (listener, observations) = mpsc::unbounded_channel();
        self.0.lock().unwrap().listener = Some(listener);
        observations
    }

    async fn logs(
        &self,
        key: RunKey,
        range: LogRange,
    ) -> Result<mpsc::Receiver<std::io::Result<Vec<u8>>>, Error> {
        let name = self.spec(key)?.workload_name;
        let (chunks, reader) = mpsc::channel(4);
        let mut text = format!("output of {name}, tail {:?}\n", range.tail_lines);
        if let Some(since) = range.since.filter(|_| range.timestamps) {
            text.insert_str(0, &format!("since {} ", since.0));
        }
        chunks.send(Ok(text.into_bytes())).await.unwrap();
        if range.follow {
            // Goes on until the reader leaves.
            tokio::spawn(async move { chunks.closed().await });
        }
        Ok(reader)
    }

    /// A command that says what it is, repeats its input, and ends with the input.
    async fn exec(&self, key: RunKey, what: ExecSpec) -> Result<Session, Error> {
        self.spec(key)?;
        let (input, mut typed) = mpsc::channel(4);
        let (printed, output) = mpsc::channel(4);
        tokio::spawn(async move {
            let hello = format!("{} {:?} {:?}", what.command.join(" "), what.terminal, what.env);
            let mut next = Some(Output::Stderr(hello.into_bytes()));
            while let Some(said) = next {
                let last = matches!(said, Output::End(_));
                if printed.send(said).await.is_err() || last {
                    return;
                }
                next = match typed.recv().await {
                    Some(Input::Bytes(bytes)) => Some(Output::Stdout(bytes)),
                    Some(Input::Resize(size)) => {
                        Some(Output::Stdout(format!("{size:?}").into_bytes()))
                    }
                    Some(Input::Eof) => Some(Output::End(Exit::Code(3))),
                    None => None,
                };
            }
        });
        Ok(Session { input, output })
    }

    async fn attach(
        &self,
        key: RunKey,
        stdin: bool,
        terminal: Option<TerminalSize>,
    ) -> Result<Session, Error> {
        if stdin && !self.spec(key)?.stdin {
            return Err(Error::Invalid("it was started without an input".into()));
        }
        self.exec(key, ExecSpec { terminal, ..ExecSpec::default() }).await
    }

    /// Port 80 repeats what comes, 83 breaks; at port 8888 is what replicas answer.
    async fn connect(&self, key: RunKey, port: u16) -> Result<Box<dyn Duplex>, Error> {
        self.spec(key)?;
        let alive = !matches!(self.0.lock().unwrap().runs[&key].1, RunState::Exited { .. });
        let pages = self.0.lock().unwrap().replica.clone().filter(|_| alive && port == 8888);
        if let Some(pages) = pages {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(http_kit::serve(listener, None, pages, Shutdown::default()));
            return Ok(Box::new(tokio::net::TcpStream::connect(address).await.unwrap()));
        }
        if port == 83 {
            let (what, source) =
                ("connect to port 83".to_owned(), ErrorKind::ConnectionReset.into());
            return Err(Error::Io { what, source });
        }
        if port != 80 {
            return Err(Error::Invalid(format!("no process of this pod listens on port {port}")));
        }
        let (here, there) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(there);
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            to.shutdown().await.unwrap();
        });
        Ok(Box::new(here))
    }
}
