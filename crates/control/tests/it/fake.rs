//! An engine that runs nothing and reports scripted states, and a clock that is set by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use control::Clock;
use engine::{
    Capabilities, Engine, Error, Exit, Fractions, GpuHealth, Isolation, IsolationKind, LimitsKept,
    ListedRun, LogRange, Measured, Observation, PodFeed, RunKey, RunNews, RunPlace, RunSpec,
    RunState,
};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use units::Instant;

/// State of the engine; survives the dispatcher, as processes do.
#[derive(Default)]
struct Machine {
    runs: BTreeMap<RunKey, (RunSpec, RunState)>,
    /// Every call that changed something, in order.
    calls: Vec<String>,
    listener: Option<mpsc::UnboundedSender<Observation>>,
    /// Pods with data kept between runs.
    kept: BTreeSet<uuid::Uuid>,
    /// True if starts and deletions are accepted and lost, as in a crash before they are carried
    /// out.
    deaf: bool,
    /// Turns of other tasks that forgetting a pod takes.
    forget_turns: u32,
    /// Stops take until [`FakeEngine::let_go`].
    stubborn: bool,
    held_back: Vec<RunKey>,
    /// Runs have announced checkpoints, which they are writing.
    saving: bool,
    /// Stops that will fail before one is carried out.
    stops_failing: u32,
    /// Changes of limits of GPUs fail.
    refuses_limits: bool,
    /// Deletions of volumes that will fail before one is carried out.
    removals_failing: u32,
    most_in_use: BTreeMap<(String, u32), u64>,
    measured: Option<Measured>,
    gpus: BTreeMap<String, GpuHealth>,
    gpu_looks: u64,
    measurings: u64,
    /// The driver does not answer.
    hangs: bool,
    /// Ports that programs of others listen on.
    ports_in_use: std::ops::Range<u16>,
    /// Number of checks whether a port is free.
    ports_tried: usize,
    feed: Option<Arc<dyn PodFeed>>,
}

/// A scripted engine.
#[derive(Clone)]
pub(crate) struct FakeEngine {
    machine: Arc<Mutex<Machine>>,
    clock: ManualClock,
}

impl FakeEngine {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self { machine: Arc::default(), clock }
    }

    /// Gives it a feed, from the next start of the server on.
    pub(crate) fn set_feed(&self, feed: Arc<dyn PodFeed>) {
        self.with(|m| m.feed = Some(feed));
    }

    /// Ends the stream of observations.
    pub(crate) fn hang_up(&self) {
        self.with(|m| m.listener = None);
    }

    fn with<T>(&self, f: impl FnOnce(&mut Machine) -> T) -> T {
        f(&mut self.machine.lock().unwrap())
    }

    pub(crate) fn deaf(&self, deaf: bool) {
        self.with(|m| m.deaf = deaf);
    }

    /// Sets the turns of other tasks that forgetting a pod takes.
    pub(crate) fn forget_slowly(&self, turns: u32) {
        self.with(|m| m.forget_turns = turns);
    }

    /// Number of pods with data kept between runs.
    pub(crate) fn kept(&self) -> usize {
        self.with(|m| m.kept.len())
    }

    pub(crate) fn stubborn(&self, stubborn: bool) {
        self.with(|m| m.stubborn = stubborn);
    }

    /// Sets whether runs are writing checkpoints that they have announced.
    pub(crate) fn saving(&self, saving: bool) {
        self.with(|m| m.saving = saving);
    }

    /// Sets the measured use.
    pub(crate) fn uses(&self, measured: Measured) {
        self.with(|m| m.measured = Some(measured));
    }

    /// Sets the health of a GPU.
    pub(crate) fn gpu_is(&self, uuid: &str, health: GpuHealth) {
        self.with(|m| m.gpus.insert(uuid.to_owned(), health));
    }

    /// How often it was looked at how GPUs are.
    pub(crate) fn gpu_looks(&self) -> u64 {
        self.with(|m| m.gpu_looks)
    }

    /// Number of measurements of use.
    pub(crate) fn measurings(&self) -> u64 {
        self.with(|m| m.measurings)
    }

    /// From now on the driver does not answer.
    pub(crate) fn hang(&self) {
        self.with(|m| m.hangs = true);
    }

    async fn answers(&self) {
        if self.with(|m| m.hangs) {
            std::future::pending::<()>().await;
        }
    }

    /// Programs of others listen on these ports.
    pub(crate) fn use_ports(&self, ports: std::ops::Range<u16>) {
        self.with(|m| m.ports_in_use = ports);
    }

    /// Number of checks whether a port is free, since the last call.
    pub(crate) fn ports_tried(&self) -> usize {
        self.with(|m| std::mem::take(&mut m.ports_tried))
    }

    pub(crate) fn refuse_limits(&self) {
        self.with(|m| m.refuses_limits = true);
    }

    pub(crate) fn fail_stops(&self, count: u32) {
        self.with(|m| m.stops_failing = count);
    }

    pub(crate) fn fail_removals(&self, count: u32) {
        self.with(|m| m.removals_failing = count);
    }

    /// Ends every run whose stop was held back.
    pub(crate) fn let_go(&self) {
        let keys = self.with(|m| {
            m.stubborn = false;
            std::mem::take(&mut m.held_back)
        });
        for key in keys {
            self.end(key, Exit::Signal(9));
        }
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.with(|m| std::mem::take(&mut m.calls))
    }

    /// Living runs, by workload name and generation.
    pub(crate) fn alive(&self) -> Vec<(String, u32)> {
        self.with(|m| {
            let living = m.runs.values().filter(|(_, s)| !matches!(s, RunState::Exited { .. }));
            let mut list: Vec<_> =
                living.map(|(spec, _)| (spec.workload_name.clone(), spec.key.generation)).collect();
            list.sort();
            list
        })
    }

    /// The living runs of a workload, by the number of their pods.
    pub(crate) fn runs_of(&self, workload: &str) -> Vec<RunSpec> {
        self.with(|m| {
            let living = m.runs.values().filter(|(_, s)| !matches!(s, RunState::Exited { .. }));
            let of = living.map(|(spec, _)| spec).filter(|spec| spec.workload_name == workload);
            let mut runs: Vec<_> = of.cloned().collect();
            runs.sort_by_key(|spec| spec.pod_index);
            runs
        })
    }

    pub(crate) fn known(&self) -> usize {
        self.with(|m| m.runs.len())
    }

    /// The newest run of a workload.
    pub(crate) fn run_of(&self, workload: &str) -> RunSpec {
        self.with(|m| {
            let of = m.runs.values().filter(|(spec, _)| spec.workload_name == workload);
            of.map(|(spec, _)| spec.clone()).max_by_key(|spec| spec.key.generation).unwrap()
        })
    }

    /// The largest sum of shares that living runs ever had of one device.
    pub(crate) fn most_in_use(&self) -> u64 {
        self.with(|m| m.most_in_use.values().copied().max().unwrap_or(0))
    }

    pub(crate) fn end(&self, key: RunKey, exit: Exit) {
        let at = self.clock.now();
        self.tell(key, RunState::Exited { exit, at });
    }

    /// Puts a run into a state and reports it.
    pub(crate) fn tell(&self, key: RunKey, news: impl Into<RunNews>) {
        let news = news.into();
        self.with(|m| {
            if let (Some(run), RunNews::State(state)) = (m.runs.get_mut(&key), &news) {
                run.1 = state.clone();
            }
            m.report(key, news);
        });
    }

    /// Reports without changing anything: a message that is late or comes twice.
    pub(crate) fn report(&self, key: RunKey, news: impl Into<RunNews>) {
        self.with(|m| m.report(key, news));
    }

    /// Adds an orphaned run.
    pub(crate) fn plant(&self, spec: RunSpec, state: RunState) {
        self.with(|m| m.runs.insert(spec.key, (spec, state)));
    }

    /// Forgets a run as if it had never been.
    pub(crate) fn lose(&self, key: RunKey) {
        self.with(|m| m.runs.remove(&key));
    }
}

impl Machine {
    fn report(&self, key: RunKey, news: impl Into<RunNews>) {
        if let Some(listener) = &self.listener {
            // The dispatcher of before may be gone.
            let _ = listener.send(Observation::new(key, news));
        }
    }

    fn count(&mut self) {
        let mut sums: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for (spec, state) in self.runs.values() {
            if !matches!(state, RunState::Exited { .. }) {
                for device in &spec.devices {
                    *sums.entry((spec.node_name.clone(), device.index)).or_default() +=
                        device.millis;
                }
            }
        }
        for (device, sum) in sums {
            let most = self.most_in_use.entry(device).or_default();
            *most = sum.max(*most);
        }
    }
}

fn io(what: &str) -> Error {
    Error::Io { what: what.to_owned(), source: std::io::Error::other("in this test") }
}

#[async_trait]
impl Engine for FakeEngine {
    fn feed(&self) -> Option<Arc<dyn PodFeed>> {
        self.with(|m| m.feed.clone())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: "fake".to_owned(),
            fractions: Fractions::none("nothing is limited in tests"),
            keeps_limits: LimitsKept { cpu: false, memory: true, why: "this is a test".to_owned() },
            isolation: Isolation { kind: IsolationKind::Accounts, missing: String::new() },
        }
    }

    fn check(&self, spec: &RunSpec) -> Result<(), Error> {
        if spec.image == "unknown" && spec.command.is_none() {
            return Err(Error::Invalid("image `unknown` is not known; give a command".to_owned()));
        }
        Ok(())
    }

    fn port_is_free(&self, port: u16) -> bool {
        self.with(|m| {
            m.ports_tried += 1;
            !m.ports_in_use.contains(&port)
        })
    }

    async fn list(&self) -> Result<Vec<ListedRun>, Error> {
        let listed = |(&key, (spec, state)): (&RunKey, &(RunSpec, RunState))| {
            let mut place = RunPlace::of(spec);
            place.devices = place.devices.filter(|_| spec.image != "of-an-earlier-version");
            ListedRun { key, state: state.clone(), place: Some(place) }
        };
        Ok(self.with(|m| m.runs.iter().map(listed).collect()))
    }

    async fn start(&self, spec: RunSpec) -> Result<(), Error> {
        let started_at = self.clock.now();
        self.with(|m| {
            if m.deaf || m.runs.contains_key(&spec.key) {
                return Ok(());
            }
            let call = format!("start {}.{}", spec.workload_name, spec.key.generation);
            let is_first = !m.calls.contains(&call);
            m.calls.push(call);
            if spec.image == "clock-jumps" && is_first {
                self.clock.put_forward_ms(5000);
                return Err(io("read the clock"));
            }
            if spec.image == "broken" {
                return Err(Error::Invalid("the image is broken".to_owned()));
            }
            if spec.image == "not-now" {
                return Err(io("look up its account"));
            }
            let key = spec.key;
            let half = spec.image == "half-started";
            let state = match &*spec.image {
                "not-there-yet" => RunState::Starting,
                _ => RunState::Running { pid: None, started_at },
            };
            m.kept.insert(key.pod);
            m.runs.insert(key, (spec, state.clone()));
            m.count();
            if half {
                return Err(io("start it to the end"));
            }
            m.report(key, state);
            Ok(())
        })
    }

    async fn limit_gpus(&self, key: RunKey, most: BTreeMap<String, u64>) -> Result<(), Error> {
        self.with(|m| {
            let name = m.runs.get(&key).map(|(spec, _)| spec.workload_name.clone());
            let most: Vec<u64> = most.into_values().collect();
            m.calls.push(format!("limit {} {most:?}", name.unwrap_or_default()));
            if m.refuses_limits { Err(io("change its limit")) } else { Ok(()) }
        })
    }

    async fn await_checkpoint(&self, _key: RunKey, _most_ms: u64) {
        while self.with(|m| m.saving) {
            tokio::task::yield_now().await;
        }
    }

    async fn stop(&self, key: RunKey, _grace_ms: u64) -> Result<(), Error> {
        let at = self.clock.now();
        self.with(|m| {
            let Some((spec, state)) = m.runs.get_mut(&key) else { return Ok(()) };
            if matches!(state, RunState::Exited { .. }) {
                return Ok(());
            }
            m.calls.push(format!("stop {}.{}", spec.workload_name, key.generation));
            if m.stops_failing > 0 {
                m.stops_failing -= 1;
                return Err(io("stop it"));
            }
            if m.stubborn {
                m.held_back.push(key);
                return Ok(());
            }
            *state = RunState::Exited { exit: Exit::Signal(15), at };
            let state = state.clone();
            m.report(key, state);
            Ok(())
        })
    }

    async fn remove(&self, key: RunKey) -> Result<(), Error> {
        self.with(|m| {
            let is_alive = |(_, state): &(_, RunState)| !matches!(state, RunState::Exited { .. });
            if m.runs.get(&key).is_some_and(is_alive) {
                return Err(Error::StillRunning(key));
            }
            m.runs.remove(&key);
            Ok(())
        })
    }

    async fn forget_pod(&self, pod: uuid::Uuid) -> Result<(), Error> {
        for _ in 0..self.with(|m| m.forget_turns) {
            tokio::task::yield_now().await;
        }
        self.with(|m| {
            if m.deaf {
                return;
            }
            assert!(m.runs.keys().all(|key| key.pod != pod), "its runs were removed before");
            m.kept.remove(&pod);
            m.calls.push(format!("forget {pod}"));
        });
        Ok(())
    }

    async fn kept_pods(&self) -> Result<Vec<uuid::Uuid>, Error> {
        Ok(self.with(|m| m.kept.iter().copied().collect()))
    }

    async fn remove_volume(&self, name: &str) -> Result<(), Error> {
        self.with(|m| {
            if m.removals_failing > 0 {
                m.removals_failing -= 1;
                return Err(io("delete it"));
            }
            m.calls.push(format!("delete {name}"));
            Ok(())
        })
    }

    fn observations(&self) -> mpsc::UnboundedReceiver<Observation> {
        let (listener, stream) = mpsc::unbounded_channel();
        self.with(|m| m.listener = Some(listener));
        stream
    }

    async fn logs(
        &self,
        key: RunKey,
        _range: LogRange,
    ) -> Result<mpsc::Receiver<std::io::Result<Vec<u8>>>, Error> {
        if !self.with(|m| m.runs.contains_key(&key)) {
            return Err(Error::NoSuchRun(key));
        }
        let (chunks, stream) = mpsc::channel(1);
        chunks.send(Ok(format!("output of {}", key.generation).into_bytes())).await.unwrap();
        Ok(stream)
    }

    async fn gpu_health(
        &self,
        uuids: Vec<String>,
    ) -> Result<Option<BTreeMap<String, GpuHealth>>, Error> {
        let of = |m: &mut Machine, uuid: String| {
            let well = || GpuHealth { fault: None, foreign: Some(BTreeMap::new()) };
            let health = m.gpus.get(&uuid).cloned().unwrap_or_else(well);
            (uuid, health)
        };
        self.with(|m| m.gpu_looks += 1);
        self.answers().await;
        Ok(Some(self.with(|m| uuids.into_iter().map(|uuid| of(m, uuid)).collect())))
    }

    async fn measure(&self) -> Result<Option<Measured>, Error> {
        self.with(|m| m.measurings += 1);
        self.answers().await;
        Ok(self.with(|m| m.measured.clone()))
    }
}

/// A clock that stands until it is moved.
#[derive(Clone)]
pub(crate) struct ManualClock {
    /// Time of the wall clock, and time since the start of the machine, in milliseconds.
    now: Arc<watch::Sender<(u64, u64)>>,
    boot: Arc<Mutex<uuid::Uuid>>,
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        let now = Arc::new(watch::Sender::new((1_000_000, 1000)));
        Self { now, boot: Arc::new(Mutex::new(uuid::Uuid::from_u128(1))) }
    }

    pub(crate) fn set_back_ms(&self, span_ms: u64) {
        self.now.send_modify(|(now, _)| *now -= span_ms);
    }

    pub(crate) fn put_forward_ms(&self, span_ms: u64) {
        self.now.send_modify(|(now, _)| *now += span_ms);
    }

    /// Reads the clock a moment later than the time since the start of the machine.
    pub(crate) fn shake(&self) {
        self.now.send_modify(|(now, _)| *now += 1);
    }

    pub(crate) fn advance_ms(&self, span_ms: u64) {
        self.now.send_modify(|(now, up)| (*now, *up) = (*now + span_ms, *up + span_ms));
    }

    /// The machine restarts.
    pub(crate) fn reboot(&self) {
        *self.boot.lock().unwrap() = uuid::Uuid::from_u128(2);
        self.now.send_modify(|(_, up)| *up = 0);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant(self.now.borrow().0)
    }

    fn up_ms(&self) -> u64 {
        self.now.borrow().1
    }

    fn boot(&self) -> uuid::Uuid {
        *self.boot.lock().unwrap()
    }

    fn sleep_until_up_ms(&self, up_ms: u64) -> BoxFuture<'static, ()> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // The clock outlives every test's dispatcher; if not, nothing is due any more.
            if now.wait_for(|(_, up)| *up >= up_ms).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}
