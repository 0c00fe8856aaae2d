//! Following runs while the server lives. Owns: the state of each run, the tasks that follow
//! supervisors (by pipe, or for adopted ones by process handle), and the end of a run whose
//! supervisor vanished.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{KeyedLock, ListedRun, Observation, Observations, RunKey, RunState};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::cgroup::Place;
use crate::image::ImageTable;
use crate::isolation::Separator;
use crate::open::Paths;
use crate::process::kill_marked;
use crate::record::{ExitFile, RunDir, StateFile};
use crate::sys;

/// How often an adopted run that has not started its command is checked: there is no notification,
/// and it takes milliseconds.
const STARTING_PAUSE: Duration = Duration::from_millis(10);
/// Pause before a run that could not be read, or whose processes survive, is retried: first and
/// most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Ends the processes of runs that lost their supervisor; returns the keys of the survivors.
pub(crate) type Sweep = fn(&BTreeSet<String>) -> BTreeSet<String>;

/// State shared by the engine and its tasks.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) paths: Paths,
    pub(crate) supervisor: PathBuf,
    pub(crate) images: ImageTable,
    pub(crate) inherited: BTreeMap<String, String>,
    pub(crate) umask: Option<u32>,
    /// Most of a run's output that is kept; none: all.
    pub(crate) output_bytes_max: Option<u64>,
    /// Largest copy of a repository or bucket, in bytes.
    pub(crate) copy_bytes_max: u64,
    /// The parent control groups of runs.
    pub(crate) place: Place,
    /// The isolation of runs.
    pub(crate) separator: Separator,
    /// [`kill_marked`]; replaced in tests, where no process survives.
    pub(crate) kill_marked: Sweep,
    pub(crate) driver: gpu::Driver,
    pub(crate) observations: Observations,
    /// Out-of-memory kills of each run that were reported.
    kills: Mutex<BTreeMap<RunKey, u64>>,
    states: Mutex<BTreeMap<RunKey, StateFile>>,
    /// Operations of one run are serialized.
    pub(crate) turns: KeyedLock,
    /// Runs whose repositories are being copied; dropping the sender cancels that.
    copying: Mutex<BTreeMap<RunKey, oneshot::Sender<()>>>,
    /// The runs that are being killed in place of their supervisors.
    forced: Mutex<BTreeSet<RunKey>>,
    /// None once the engine is dropped.
    tasks: Mutex<Option<JoinSet<()>>>,
}

/// No code panics inside a change while it holds one of these locks.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        paths: Paths,
        supervisor: PathBuf,
        images: ImageTable,
        inherited: BTreeMap<String, String>,
    ) -> Self {
        Self {
            paths,
            supervisor,
            images,
            inherited,
            umask: None,
            output_bytes_max: None,
            copy_bytes_max: u64::MAX,
            place: Place::none("control groups were not looked for"),
            separator: Separator::none("nothing was looked for"),
            kill_marked,
            driver: gpu::Driver::default(),
            observations: Observations::default(),
            kills: Mutex::default(),
            states: Mutex::default(),
            turns: KeyedLock::default(),
            copying: Mutex::default(),
            forced: Mutex::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
        }
    }

    pub(crate) fn dir(&self, key: RunKey) -> RunDir {
        RunDir::new(&self.paths.runs(), key)
    }

    pub(crate) fn state(&self, key: RunKey) -> Option<StateFile> {
        open(&self.states).get(&key).cloned()
    }

    /// The runs in such a state.
    pub(crate) fn keys_where(&self, wanted: impl Fn(&StateFile) -> bool) -> Vec<RunKey> {
        let states = open(&self.states);
        states.iter().filter(|(_, state)| wanted(state)).map(|(key, _)| *key).collect()
    }

    /// Every registered run. Reads files.
    pub(crate) fn list(&self) -> Vec<ListedRun> {
        let states = open(&self.states).clone();
        let listed = |(key, state): (RunKey, StateFile)| {
            let has_ended = matches!(state, StateFile::Exited { .. });
            let place = if has_ended { None } else { self.dir(key).place() };
            ListedRun { key, state: state.into(), place }
        };
        states.into_iter().map(listed).collect()
    }

    /// Registers a run without reporting it.
    pub(crate) fn know(&self, key: RunKey, state: StateFile) {
        open(&self.states).insert(key, state);
    }

    /// False: a task is doing it already.
    pub(crate) fn begin_to_force(&self, key: RunKey) -> bool {
        open(&self.forced).insert(key)
    }

    pub(crate) fn end_to_force(&self, key: RunKey) {
        open(&self.forced).remove(&key);
    }

    pub(crate) fn forget(&self, key: RunKey) {
        open(&self.states).remove(&key);
        open(&self.kills).remove(&key);
    }

    /// Reports out-of-memory kills since the last report; `kills` counts from the start of the
    /// run.
    pub(crate) fn report_out_of_memory_kills(&self, key: RunKey, kills: u64) {
        let before = open(&self.kills).insert(key, kills).unwrap_or(0);
        if kills > before {
            let state = RunState::Struck(kills - before);
            self.observations.report(Observation { key, state });
        }
    }

    /// Marks them as reported: by the server before this one, if it could.
    pub(crate) fn restore_out_of_memory_kills(&self, key: RunKey, kills: u64) {
        open(&self.kills).insert(key, kills);
    }

    /// Records the state of a registered run, and reports it if it changed. The first end stays.
    pub(crate) fn report(&self, key: RunKey, state: StateFile) {
        let mut states = open(&self.states);
        let Some(known) = states.get_mut(&key) else { return };
        let news = match (&*known, &state) {
            (StateFile::Exited { .. }, _) | (_, StateFile::Starting) => false,
            (known, state) => known != state,
        };
        if news {
            *known = state.clone();
            self.observations.report(Observation { key, state: state.into() });
        }
    }

    /// Reports progress of a run's copies. It is not stored.
    pub(crate) fn tell(&self, key: RunKey, what: String) {
        self.observations.report(Observation { key, state: RunState::Preparing(what) });
    }

    /// Marks the copies as in progress, until the returned receiver fires.
    pub(crate) fn begin_copying(&self, key: RunKey) -> oneshot::Receiver<()> {
        let (wanted, stop) = oneshot::channel();
        open(&self.copying).insert(key, wanted);
        stop
    }

    /// Whether copies were in progress; they are cancelled, or complete.
    pub(crate) fn end_copying(&self, key: RunKey) -> bool {
        open(&self.copying).remove(&key).is_some()
    }

    /// Ends the processes of runs that lost their supervisor; returns the keys of the survivors.
    pub(crate) fn sweep(&self, keys: &BTreeSet<RunKey>) -> BTreeSet<RunKey> {
        let resist = |key: &&RunKey| self.dir(**key).group().is_some_and(|group| !group.end());
        let mut resisting: BTreeSet<RunKey> = keys.iter().filter(resist).copied().collect();
        // A process can leave its group where it may write, as root may everywhere.
        let marked = (self.kill_marked)(&keys.iter().map(ToString::to_string).collect());
        resisting.extend(keys.iter().filter(|key| marked.contains(&key.to_string())));
        resisting
    }

    /// Runs a task for as long as the engine lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = &mut *open(&self.tasks) {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    pub(crate) fn end_tasks(&self) {
        // Dropped outside the lock: a task's end may need it.
        let tasks = open(&self.tasks).take();
        drop(tasks);
    }
}

/// Follows a supervisor of this server: its states come through the pipe.
pub(crate) fn spawn_started(shared: &Arc<Shared>, key: RunKey, mut supervisor: Child) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        if let Some(pipe) = supervisor.stdout.take() {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(state) => own.report(key, state),
                    Err(error) => tracing::warn!("supervisor of {key} said `{line}`: {error}"),
                }
            }
        }
        if let Err(error) = supervisor.wait().await {
            tracing::warn!("cannot wait for the supervisor of {key}: {error}");
        }
        // Usually complete now; but another supervisor may have had the run before this one.
        follow(&own, key).await;
    });
}

/// Follows a supervisor of an earlier server.
pub(crate) fn spawn_adopted(shared: &Arc<Shared>, key: RunKey) {
    let own = Arc::clone(shared);
    shared.spawn(async move { follow(&own, key).await });
}

async fn follow(shared: &Arc<Shared>, key: RunKey) {
    let mut pause = RETRY_PAUSE.0;
    loop {
        match follow_once(shared, key).await {
            Ok(Step::Ended) => return,
            Ok(Step::Again) => {
                pause = RETRY_PAUSE.0;
                continue;
            }
            Ok(Step::Resisting) => tracing::error!(
                "processes of the lost run {key} cannot be killed ; its GPUs stay taken \
                 until they are gone"
            ),
            Err(error) => tracing::warn!("cannot follow run {key}: {error}; trying again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE.1);
    }
}

/// The result of one check of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Its end is recorded.
    Ended,
    /// Something changed: check again.
    Again,
    /// It has processes that survive, so it has not ended.
    Resisting,
}

/// Waits for the end of the run's supervisor; settles the run if there is none.
async fn follow_once(shared: &Arc<Shared>, key: RunKey) -> io::Result<Step> {
    let dir = shared.dir(key);
    let Some(holder) = dir.holder()? else {
        let own = Arc::clone(shared);
        let settled = tokio::task::spawn_blocking(move || settle(&own, key)).await;
        return settled.map_err(io::Error::other)?;
    };
    let Some(death) = handle(&dir, holder)? else { return Ok(Step::Again) };
    let death = sys::await_death(death)?;
    loop {
        let state = dir.read_state()?.unwrap_or(StateFile::Starting);
        let starting = state == StateFile::Starting;
        shared.report(key, state);
        tokio::select! {
            ended = death.readable() => return ended.map(|_| Step::Again),
            () = tokio::time::sleep(STARTING_PAUSE), if starting => {}
        }
    }
}

/// A handle on the lock's holder. None: it just ended. The second read of the lock proves that the
/// id was not reused before the handle existed.
pub(crate) fn handle(dir: &RunDir, holder: Pid) -> io::Result<Option<OwnedFd>> {
    match pidfd_open(holder, PidfdFlags::empty()) {
        Ok(fd) => Ok((dir.holder()? == Some(holder)).then_some(fd)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The run has no supervisor: finds out, or decides, how it ended.
fn settle(shared: &Shared, key: RunKey) -> io::Result<Step> {
    let dir = shared.dir(key);
    let told = shared.state(key).filter(|state| matches!(state, StateFile::Exited { .. }));
    let last = || told.clone().unwrap_or_else(|| StateFile::exited(ExitFile::Lost));
    let written = match dir.read_state()? {
        Some(state @ StateFile::Exited { .. }) => {
            shared.report(key, state);
            return Ok(Step::Ended);
        }
        // Removed meanwhile, by `remove`, which needs no report, or by hand.
        None if !dir.exists() && shared.state(key).is_none() => return Ok(Step::Ended),
        None if dir.exists() => match dir.claim(&last()) {
            Ok(false) => return Ok(Step::Again),
            claimed => claimed.map(drop),
        },
        _ => {
            if !shared.sweep(&BTreeSet::from([key])).is_empty() {
                return Ok(Step::Resisting);
            }
            if dir.exists() { dir.write_state(&last()) } else { Ok(()) }
        }
    };
    if let Err(error) = written {
        tracing::warn!("cannot record the end of run {key}: {error}");
    }
    shared.report(key, last());
    Ok(Step::Ended)
}
